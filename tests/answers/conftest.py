from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from math import exp, lgamma, log
from pathlib import Path
from typing import Any

import pytest
from tests.support.bits import Ones
from tests.support.policies import policy_of

from tacit.analyst import Analyst
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.engines.base import GroupedMeasures
from tacit.ledger.ledger import Ledger
from tacit.policy.load import load
from tacit.query.nodes import Aggregation

WARDS = ["A", "B", "C", "<script>alert('x')</script>"]


class Known:
    """An engine that knows the count and the integer sum of each group, and nothing else."""

    def __init__(self, groups: Mapping[Any, tuple[int, int]]) -> None:
        self._groups = groups

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        found = {}
        for key, (rows, total) in self._groups.items():
            group = (key,) if aggregation.keys else ()
            found[group] = tuple(rows if measure.function == "count" else total for measure in aggregation.measures)
        return found

    def close(self) -> None:
        """Nothing to let go of."""


COLUMNS: dict[str, Any] = {
    "ward": {"type": "text", "values": WARDS},
    "grade": {"type": "int", "lower": 0, "upper": 4000, "values": list(range(4000))},
    "day": {"type": "date", "values": ["2025-01-01", "2025-01-02"]},
    "urgent": {"type": "bool"},
    "age": {"type": "int", "lower": 0, "upper": 100},
    "cost": {"type": "float", "lower": 0, "upper": 50, "step": 0.5},
    "big": {"type": "int", "lower": -(2**62), "upper": 2**62},
}


@pytest.fixture
def analyst_of(tmp_path: Path) -> Iterator[Callable[..., Analyst]]:
    """An analyst over groups whose count and sum are known: {key: (count, sum)}; no noise unless bits are given."""
    opened: list[Curator] = []
    numbers = count()

    def make(groups: Mapping[Any, tuple[int, int]], bits: Any = None) -> Analyst:
        policy = load(policy_of({"visits": {"unit": "row", "columns": COLUMNS}}, analysts=["ada", "bob"]))
        ledger = Ledger(tmp_path / f"ledger {next(numbers)}", budget_limits(policy))
        opened.append(Curator(policy, Known(groups), ledger, bits or Ones()))
        return opened[-1].analyst("ada")

    yield make
    for curator in opened:
        curator.close()


@pytest.fixture(scope="session")
def at_least() -> Callable[[int, int, float], bool]:
    """Whether `hits` of `tries` are compatible with a probability of at least p.

    False only where so few have probability at most 1e-9 under p: the false-alarm rate of one use.
    """

    def check(hits: int, tries: int, p: float) -> bool:
        logs = (
            lgamma(tries + 1) - lgamma(k + 1) - lgamma(tries - k + 1) + k * log(p) + (tries - k) * log(1 - p)
            for k in range(hits + 1)
        )
        return sum(exp(value) for value in logs) > 1e-9

    return check
