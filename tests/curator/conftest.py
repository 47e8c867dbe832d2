from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.bits import Ones
from tests.support.policies import policy_of

TYPES = {"who": pa.int64(), "g": pa.string(), "x": pa.int64(), "y": pa.float64(), "w": pa.bool_()}


@pytest.fixture(scope="session")
def ones() -> Ones:
    """Bits that set the noise aside."""
    return Ones()


@pytest.fixture(scope="session")
def declared() -> Callable[..., dict[str, Any]]:
    """A policy as a dict: tables of one shape, `g` with four keys, `x` and `y` bounded, `w` a condition."""

    def policy(tables: Sequence[str], unit: str, neighbors: str, **caps: int) -> dict[str, Any]:
        columns = {
            "g": {"type": "text", "values": ["A", "B", "C", "D"]},
            "x": {"type": "int", "lower": -3, "upper": 10},
            "y": {"type": "float", "lower": -4, "upper": 1, "step": 0.5},
            "w": {"type": "bool"},
        }
        table = {"unit": unit, "columns": columns, **(caps if unit != "row" else {})}
        return policy_of(dict.fromkeys(tables, table), analysts=["ada", "bo"], neighbors=neighbors)

    return policy


@pytest.fixture(scope="session")
def write() -> Callable[[Any, Sequence[tuple[Any, ...]]], None]:
    """Writes rows (who, g, x, y, w) to a Parquet file."""

    def to(path: Any, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(TYPES)
        arrays = {name: pa.array(column, kind) for (name, kind), column in zip(TYPES.items(), columns, strict=True)}
        pq.write_table(pa.table(arrays), path)

    return to
