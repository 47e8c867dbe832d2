"""Bounded work: what a question may take before it is charged, how long it may run, and whose turn it is."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import wait

import pytest
from tests.support.engines import EndlessTables, halted, reached

from tacit.answers import propagate
from tacit.errors import ErrorCode, Failed, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.plan.question import Question
from tacit.serve.scheduler import Scheduler
from tacit.serve.service import CuratorService

COUNT = "SELECT COUNT(*) AS n FROM visits"
ASKED = Question(COUNT, epsilon=1)
# 111 ages by 365 days is more than 10,000 groups; 111 by 3 wards by 2 is 666.
GROUPED = " FROM visits GROUP BY age, ward, paid"


def above(age: int) -> Question:
    return Question(f"{COUNT} WHERE age > {age}", epsilon=1)


HALVES = ", CASE WHEN cost > 50 THEN 'high' ELSE 'low' END"


def sums(count: int) -> str:
    return "SELECT " + ", ".join(f"SUM(cost * {1 + n / 1000}) AS s{n}" for n in range(count)) + GROUPED


@pytest.mark.slow
def test_a_question_of_too_many_cells_is_refused_before_it_is_charged(curator):
    async def work():
        service = CuratorService(curator, first=0)
        # 110 + 1 ages, 3 wards, 2 truth values and 2 halves: 1,332 groups by 80 columns are 106,560 cells.
        for asked in (service.ask, service.explain, service.plan):
            with pytest.raises(Refused, match=r"106,560 cells.*100,000") as caught:
                await asked("ada", Question(sums(80) + HALVES, epsilon=0.000001))
            assert caught.value.code == ErrorCode.TOO_LARGE and caught.value.fix
        assert (await service.budget("ada")).to_dict()["own"]["spent"] == "0"
        await service.explain("ada", Question(sums(70) + HALVES, epsilon=0.000001))
        await service.close()

    asyncio.run(work())
    assert [entry.kind for entry in curator.ledger.entries()] == [EntryKind.OPEN]


@pytest.mark.slow
def test_the_cells_of_private_keys_are_counted_by_the_most_that_are_shown(curator):
    # 10,000 keys at most: 10 columns fit into 100,000 cells, the key among them, and 11 do not.
    columns = [f"SUM(age + {n}) AS s{n}" for n in range(10)]

    async def work():
        service = CuratorService(curator, first=0)
        with pytest.raises(Refused) as caught:
            await service.plan(
                "ada", Question(f"SELECT illness, {', '.join(columns)} FROM visits GROUP BY illness", epsilon=1)
            )
        assert caught.value.code == ErrorCode.TOO_LARGE
        await service.plan(
            "ada", Question(f"SELECT illness, {', '.join(columns[1:])} FROM visits GROUP BY illness", epsilon=1)
        )
        await service.close()

    asyncio.run(work())


@pytest.mark.slow
def test_the_questions_of_one_analyst_leave_a_worker_to_others(curator):
    async def work():
        service = CuratorService(curator, workers=4, first=0)
        with halted(curator) as entered:
            asked = [asyncio.create_task(service.ask("ada", above(n))) for n in range(6)]
            loop = asyncio.get_running_loop()
            await reached(entered, 3)
            asked.append(asyncio.create_task(service.ask("ben", ASKED)))
            assert await loop.run_in_executor(None, lambda: entered.acquire(timeout=20))
            assert {entry.analyst for entry in curator.ledger.entries() if entry.kind is EntryKind.RESERVE} == {
                "ada",
                "ben",
            }
        await asyncio.gather(*asked)
        await service.close()

    asyncio.run(work())


@pytest.mark.slow
def test_a_question_that_reaches_the_time_limit_is_charged_and_never_resumed_free(curator):
    fast = curator.engine._copy

    async def work():
        service = CuratorService(curator, workers=1, first=0, limit=0.3)
        curator.engine._copy = EndlessTables(fast)
        started = time.monotonic()
        slow = Question(f"{COUNT} WHERE age >= 0", epsilon=1, request="first")
        with pytest.raises(Failed):
            await service.ask("ada", slow)
        assert time.monotonic() - started < 60
        assert service.in_use == 0
        curator.engine._copy, service._limit = fast, 60.0
        assert (await service.budget("ada")).to_dict()["own"]["spent"] == "1"
        with pytest.raises(Failed):  # under its own name it has one outcome
            await service.ask("ada", slow)
        again = await service.ask("ada", ASKED)  # and asked anew it is a new charge; the one worker is free
        assert not again.receipt.repeat
        assert (await service.budget("ada")).to_dict()["own"]["spent"] == "2"
        await service.close()

    asyncio.run(work())
    kinds = [entry.kind for entry in curator.ledger.entries()]
    assert kinds == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.FAIL, EntryKind.RESERVE, EntryKind.COMMIT]
    assert verify(curator.ledger, Witness(curator.policy.books.witness)).ok


def submitted(scheduler, who, gate, order):
    def work():
        order.append(who)
        gate.wait(20)

    return scheduler.submit(who, work)


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize(("workers", "alone"), [(1, 1), (2, 1), (3, 2), (8, 7)])
def test_one_analyst_alone_never_has_all_workers_where_there_are_several(workers, alone):
    scheduler, gate, order = Scheduler(workers, 100, "test"), threading.Event(), []
    futures = [submitted(scheduler, "ada", gate, order) for _ in range(20)]
    until(lambda: len(order) == alone)
    time.sleep(0.05)
    assert len(order) == alone
    if workers > 1:
        futures.append(submitted(scheduler, "ben", gate, order))
        until(lambda: "ben" in order)
    gate.set()
    wait(futures, 20)
    assert len(order) == len(futures)
    scheduler.close()


def test_work_that_comes_at_once_has_a_thread_each_as_far_as_there_are_some():
    # A thread that has been told of one piece of work must not be counted on for the next.
    for _ in range(20):
        scheduler, gate, order = Scheduler(4, 100, "test"), threading.Event(), []
        scheduler.submit("first", lambda: None).result(20)  # now one thread waits for work
        futures = [submitted(scheduler, who, gate, order) for who in ("ada", "ben", "eve")]
        until(lambda order=order: len(order) == 3)
        gate.set()
        wait(futures, 20)
        scheduler.close()


def test_among_those_who_wait_whoever_has_fewest_running_and_used_least_is_next():
    scheduler, gate, order = Scheduler(1, 100, "test"), threading.Event(), []
    futures = [submitted(scheduler, "ada", gate, order) for _ in range(4)]
    until(lambda: order == ["ada"])
    futures += [submitted(scheduler, who, gate, order) for who in ("ben", "ben", "eve")]
    time.sleep(0.02)  # of ada's use
    gate.set()
    wait(futures, 20)
    # Those who have used nothing come before ada's second, and both of them before anybody's second.
    assert order[0] == "ada" and set(order[1:3]) == {"ben", "eve"} and order.count("ada") == 4
    scheduler.close()


def test_what_is_canceled_while_it_waits_leaves_its_place_and_is_not_run():
    scheduler, gate, order = Scheduler(1, 8, "test"), threading.Event(), []
    running = submitted(scheduler, "ada", gate, order)
    until(lambda: order == ["ada"])
    for _ in range(50):
        assert submitted(scheduler, "ada", gate, order).cancel()
    assert scheduler.in_use == 1 and not scheduler._waiting
    gate.set()
    running.result(20)
    assert order == ["ada"]
    scheduler.close()


def test_what_is_remembered_of_analysts_is_bounded(monkeypatch):
    monkeypatch.setattr("tacit.serve.scheduler.RECENT", 0.0)
    monkeypatch.setattr("tacit.serve.scheduler._LITTLE", 1.0)
    scheduler = Scheduler(1, 8, "test")
    for n in range(100):
        scheduler.submit(f"analyst {n}", lambda: None).result(20)
    until(lambda: not scheduler._running)
    assert len(scheduler._used) <= 1
    assert not scheduler._inside
    scheduler.close()


@pytest.mark.slow
def test_error_bars_of_many_groups_are_drawn_a_stretch_at_a_time(curator, monkeypatch):
    sql = "SELECT age, 2 * COUNT(*) AS n, SUM(cost) / COUNT(*) AS c FROM visits GROUP BY age"
    ada = curator.analyst("ada")
    held = []
    redrawn = propagate._redrawn
    monkeypatch.setattr(propagate, "_MOST_VALUES", 60_000)
    monkeypatch.setattr(propagate, "_redrawn", lambda *all: held.append(len(all[0]) * all[2]) or redrawn(*all))
    answer = ada.ask(sql, epsilon=1)
    assert len(answer) == 111 and max(held) <= 60_000 // 2
    values = answer.to_arrow().to_pydict()
    assert all(low < n < high for low, n, high in zip(values["n_low"], values["n"], values["n_high"], strict=True))
    assert answer.to_arrow() == ada.ask(sql, epsilon=1).to_arrow()  # a repeat shows the same
