"""A question that runs for too long is really stopped, in the engine, and the next one is not."""

from __future__ import annotations

import time
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.engines import EndlessTables, OneLayout

from tacit.engines.base import TableSchema
from tacit.engines.copy_file import CopyFile
from tacit.engines.deadline import TimeLimit, interrupted_at_limit, seconds_left, time_limit
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.layout import CopyLayout
from tacit.query.nodes import Aggregation, ColumnReference, ContributionBounds, ExactStatistic, Quantize, Scan
from tacit.query.types import Type

pytestmark = pytest.mark.slow

SHAPE = TableSchema("t", (("x", Type.INT),), "who")
ROWS = Scan("t", (("x", "x"), ("who", "who")))
TOTAL = ExactStatistic("sum", Quantize(ColumnReference("x"), Fraction(1), 0, 9))
COUNTED = Aggregation(ROWS, None, "who", (), ContributionBounds(1, 2), (TOTAL,), "salt")
LAYOUT = CopyLayout("t", ROWS, "who", (Quantize(ColumnReference("x"), Fraction(1), 0, 9),), ((0, 9),), ())


@pytest.fixture(params=["plain", "sorted"])
def engine(tmp_path, request):
    pq.write_table(pa.table({"who": [1, 1, 2], "x": [1, 2, 3]}), tmp_path / "t.parquet")
    copy = CopyFile(tmp_path / "copy", "stamp") if request.param == "sorted" else None
    opened = DuckDBEngine([SHAPE], tmp_path / "t.parquet", layouts=OneLayout(LAYOUT), copy=copy)
    yield opened
    opened.close()


def test_at_the_limit_the_work_is_stopped_and_the_next_question_is_answered(engine):
    exact = engine.run(COUNTED)
    fast = engine._copy
    engine._copy = EndlessTables(fast)
    started = time.monotonic()
    with time_limit(0.3), pytest.raises(TimeLimit):
        engine.run(COUNTED)
    assert time.monotonic() - started < 60
    engine._copy = fast
    with time_limit(60):
        assert engine.run(COUNTED) == exact
    assert engine.run(COUNTED) == exact


def test_a_limit_that_is_past_begins_nothing(engine):
    with time_limit(0), pytest.raises(TimeLimit):
        engine.run(COUNTED)


def test_the_limit_is_that_of_a_thread_and_ends_with_its_block():
    with time_limit(60):
        with time_limit(None):
            assert seconds_left() is None
        assert 0 < seconds_left() <= 60
    assert seconds_left() is None


def test_an_interrupt_that_came_too_early_comes_again():
    # The first one finds nothing to stop, as between two statements.
    came = []

    def work():
        while len(came) < 3:
            time.sleep(0.01)
        raise RuntimeError("interrupted")

    with time_limit(0.01), pytest.raises(TimeLimit), interrupted_at_limit(lambda: came.append(1)):
        work()


def test_another_error_before_the_limit_stays_what_it_is():
    with time_limit(60), pytest.raises(KeyError), interrupted_at_limit(lambda: None):
        raise KeyError
