"""A question that runs for too long is really stopped, in the engine, and the next one is not."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.engines import EndlessTables, OneLayout

from tacit.engines import deadline
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


def stopped_after(seconds: float) -> tuple[float, int]:
    """Run work that ends only when it is interrupted; how long it ran, and in which thread the limit was raised."""
    came, started = threading.Event(), time.monotonic()

    def work() -> None:
        assert came.wait(60)
        raise RuntimeError("interrupted")

    with pytest.raises(TimeLimit), time_limit(seconds), interrupted_at_limit(came.set):
        work()
    return time.monotonic() - started, threading.get_ident()


def count_watchers() -> int:
    return sum(thread.name == "tacit-deadline" for thread in threading.enumerate())


def test_many_at_once_are_each_stopped_at_their_own_limit_by_one_thread():
    limits = [0.05 * (number % 8 + 1) for number in range(32)]
    with time_limit(60), interrupted_at_limit(lambda: None), ThreadPoolExecutor(32) as pool:
        found = list(pool.map(stopped_after, limits))
        assert count_watchers() == 1
    assert all(ran >= limit for limit, (ran, _) in zip(limits, found, strict=True))
    assert threading.get_ident() not in {thread for _, thread in found}


def test_work_in_time_is_never_interrupted_and_nothing_of_it_is_left():
    came = []
    for _ in range(200):
        with time_limit(60), interrupted_at_limit(lambda: came.append(1)):
            pass
    with time_limit(0.5), interrupted_at_limit(lambda: came.append(1)):  # which a busy machine meets too
        pass
    time.sleep(0.7)
    assert came == []
    assert not deadline._watch._works
    assert count_watchers() <= 1


def test_an_inner_block_has_a_limit_of_its_own():
    outer = []
    with time_limit(60), interrupted_at_limit(lambda: outer.append(1)):
        assert stopped_after(0.05)[0] < 60
        assert seconds_left() > 0
    assert outer == []


def test_an_interrupt_that_fails_leaves_the_others_watched():
    def fail() -> None:
        raise OSError("closed")

    with time_limit(0.01), interrupted_at_limit(fail), ThreadPoolExecutor(1) as pool:
        assert pool.submit(stopped_after, 0.2).result()[0] >= 0.2


def test_an_interrupt_that_has_to_wait_holds_up_no_other():
    # As one does that is sent over a network that does not answer.
    ends = threading.Event()
    with time_limit(0.01), interrupted_at_limit(lambda: ends.wait(60)), ThreadPoolExecutor(1) as pool:
        time.sleep(0.2)
        assert pool.submit(stopped_after, 0.05).result()[0] < 50
        ends.set()


def test_work_that_no_thread_could_be_started_for_is_interrupted_later(monkeypatch):
    tried = []
    start = deadline._LimitedWork.start_interrupting

    def fail_first(work):
        tried.append(work)
        if len(tried) < 3:
            raise RuntimeError("can't start new thread")
        start(work)

    monkeypatch.setattr(deadline._LimitedWork, "start_interrupting", fail_first)
    stopped_after(0.01)
    assert len(tried) == 3


def test_the_thread_ends_where_there_is_no_work_and_comes_again(monkeypatch):
    monkeypatch.setattr(deadline, "_IDLE", 0.01)
    monkeypatch.setattr(deadline, "_watch", deadline._DeadlineWatch())
    for _ in range(2):
        with time_limit(1), interrupted_at_limit(lambda: None):
            stopped_after(0.01)
            thread = deadline._watch._thread  # which lives while there is work
        assert thread is not None
        thread.join(60)
        assert not thread.is_alive()
        assert deadline._watch._thread is None


def test_a_forked_child_has_a_watch_of_its_own():
    with time_limit(60), interrupted_at_limit(lambda: None):
        child = multiprocessing.get_context("fork").Process(target=stopped_after, args=(0.05,))
        child.start()
        child.join(60)
    assert child.exitcode == 0
