"""Questions answered from coded columns: integer by integer what the plain path and the reference say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.curator import test_sensitivity as sensitivity
from tests.curator.test_questions import arrow, awkward, clean, declare
from tests.curator.test_sorted_copy import EVERY, open_sorted
from tests.support.counts import FULL, some

from tacit.aggregates.registry import read_question
from tacit.engines import aggregate_codes, coded_columns
from tacit.engines import duckdb as duckdb_engine
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load

pytestmark = pytest.mark.slow
pytest.importorskip("numba", reason="the loops are compiled by numba")


@pytest.fixture
def coded(monkeypatch):
    """All tables are large, and no column has too many values; says how many questions were looked up."""
    monkeypatch.setattr(duckdb_engine, "_LARGE", 0)
    monkeypatch.setattr(coded_columns, "_ROWS_PER_VALUE", 0)
    taken: list[bool] = []
    look_up = DuckDBEngine._look_up

    def counted(self: DuckDBEngine, aggregation: Any) -> Any:
        found = look_up(self, aggregation)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(DuckDBEngine, "_look_up", counted)
    return taken


def run_both(engine: DuckDBEngine, exact: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The cells from coded columns, and without them."""
    ours = dict(engine.run(exact))
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "_look_up", lambda self, aggregation: None)
        return ours, dict(engine.run(exact))


@pytest.mark.parametrize("caps", [(4, 5, None), (1, 1, None), (2, 1, 3), (40, 64, None)])
@pytest.mark.parametrize("rows", ["clean", "awkward"])
def test_every_question_gives_what_the_plain_path_gives(rows, caps, coded, monkeypatch):
    tables = arrow(clean() if rows == "clean" else awkward())
    groups, most, total = caps
    policy = load(declare(groups, most, total=total))
    engine = open_sorted(policy, tables, monkeypatch)
    for text in some(EVERY, 8, 2 * most + (rows == "clean")):
        ours, plain = run_both(engine, plan_for(read_question(text), policy, 1).exact, monkeypatch)
        assert ours == plain, text
    assert sum(coded) > len(coded) // 2
    engine.close()
