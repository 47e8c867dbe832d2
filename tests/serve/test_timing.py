"""The time at which a run over data ended is seen nowhere: what it found comes to light at the edge of a step."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest
from tests.support.engines import halted, reached

import tacit
import tacit.curator.fit
import tacit.serve.server
import tacit.serve.service
from tacit.client.remote_fit import encode_estimator
from tacit.errors import ErrorCode, Failed, Refused
from tacit.learn import LogisticRegression
from tacit.ledger.entries import EntryKind
from tacit.plan.question import Question
from tacit.serve.fit_requests import fit_for_analyst
from tacit.serve.models import FitBody
from tacit.serve.receipts import load_receipt
from tacit.serve.scheduler import Scheduler
from tacit.serve.service import CuratorService

COUNT = "SELECT COUNT(*) AS n FROM visits"
ASKED = Question(COUNT, epsilon=1)
HOUR = 3600.0  # a first step whose edge no test lives to see; a stop of the service comes before it
SOON = 0.3  # seconds in which whatever does not wait for an edge has happened


class Runs:
    """Counts the runs over data that have ended, while what they found is on its way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, error: Exception | None = None) -> None:
        self._ended = threading.Semaphore(0)
        real = getattr(place, name)

        def run(*values: Any, **more: Any) -> Any:
            try:
                if error is not None:
                    raise error
                return real(*values, **more)
            finally:
                self._ended.release()

        monkeypatch.setattr(place, name, run)

    async def end(self, count: int = 1) -> None:
        """Wait until so many more have ended, and for what would follow at once."""
        for _ in range(count):
            assert await asyncio.to_thread(self._ended.acquire, timeout=60)
        await asyncio.sleep(SOON)


def kinds(curator: Any) -> list[EntryKind]:
    return [entry.kind for entry in curator.ledger.entries()][1:]  # without the opening


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, RuntimeError("a row")])
def test_nothing_of_a_run_is_seen_before_the_edge(curator, monkeypatch, error):
    runs = Runs(monkeypatch, tacit.serve.service, "release", error)

    async def work() -> None:
        service = CuratorService(curator, first=HOUR)
        asked = asyncio.create_task(service.ask("ada", ASKED))
        again = asyncio.create_task(service.ask("ada", ASKED))
        ben = asyncio.create_task(service.ask("ben", ASKED))
        await runs.end()
        assert kinds(curator) == [EntryKind.RESERVE]
        (entry,) = [entry.sequence for entry in curator.ledger.entries() if entry.kind is EntryKind.RESERVE]
        assert not load_receipt(curator, entry, entry_analyst(curator, entry))["answered"]
        assert not service.knows("ada", ASKED) and not service.knows("ben", ASKED)
        assert not any(task.done() for task in (asked, again, ben)) and service.in_use == 3
        await service.close(20)
        outcomes = await asyncio.gather(asked, again, ben, return_exceptions=True)
        if error is None:
            assert len({outcome.value for outcome in outcomes}) == 1
        else:
            assert any(isinstance(outcome, Failed) for outcome in outcomes)

    asyncio.run(work())
    assert kinds(curator)[1] is (EntryKind.COMMIT if error is None else EntryKind.FAIL)


def entry_analyst(curator: Any, sequence: int) -> str:
    return next(entry.analyst for entry in curator.ledger.entries() if entry.sequence == sequence)


@pytest.mark.slow
def test_a_receipt_over_http_says_that_it_is_answered_no_earlier_than_the_edge(clinic, serving, monkeypatch):
    ended = threading.Event()
    real = tacit.serve.service.release

    def release(*values: Any, **more: Any) -> bytes:
        found = real(*values, **more)
        ended.set()
        return found

    monkeypatch.setattr(tacit.serve.service, "release", release)
    monkeypatch.setattr(tacit.serve.server, "CuratorService", partial(CuratorService, first=HOUR))
    found: list[httpx.Response] = []
    with serving(clinic, postgres=None) as served:
        tls = ssl.create_default_context(cafile=served.cafile)
        with httpx.Client(
            timeout=60, base_url=served.http, verify=tls, headers={"Authorization": f"Bearer {served.key('ada')}"}
        ) as client:

            def ask() -> None:
                with suppress(httpx.TransportError):  # a stop may be over before a slow machine has answered
                    found.append(client.post("/v1/ask", json={"sql": COUNT, "epsilon": 1}))

            asking = threading.Thread(target=ask)
            asking.start()
            assert ended.wait(60)
            time.sleep(SOON)
            (entry,) = [each.sequence for each in served.curator.ledger.entries() if each.kind is EntryKind.RESERVE]
            receipt = client.get(f"/v1/receipts/{entry}")
            assert receipt.status_code == 200 and receipt.json()["answered"] is False
            assert not found
    asking.join(60)
    assert not asking.is_alive()


@pytest.mark.slow
def test_an_answer_is_there_from_the_edge_on(curator, monkeypatch):
    seconds: list[float] = []
    real = tacit.serve.service.release

    def release(*values: Any, **more: Any) -> bytes:
        seconds.append(time.monotonic())
        return real(*values, **more)

    monkeypatch.setattr(tacit.serve.service, "release", release)

    async def work() -> None:
        service = CuratorService(curator, first=0.4)
        asked = asyncio.create_task(service.ask("ada", ASKED))
        while not service.knows("ada", ASKED):
            await asyncio.sleep(0.005)
        assert time.monotonic() - seconds[0] >= 0.39
        await asyncio.wait_for(asked, 20)
        await service.close()

    asyncio.run(work())


@pytest.mark.slow
def test_a_clip_and_what_follows_from_it_are_each_seen_at_an_edge(make_clinic, tmp_path, monkeypatch):
    clinic = make_clinic(tmp_path)
    text = clinic.policy.read_text()
    clinic.policy.write_text(text.replace("max_groups = 2\nmax_rows_per_group = 2\n", 'max_rows = "auto"\n'))
    runs = Runs(monkeypatch, tacit.serve.service, "release")

    async def work(curator: Any) -> None:
        service = CuratorService(curator, first=HOUR)
        by_ward = Question("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", within={"n": 40})
        asked = asyncio.create_task(service.ask("ada", by_ward))
        await runs.end()
        assert kinds(curator) == [EntryKind.RESERVE]  # the epsilon of the second would tell the clip
        await service.close(20)
        assert (await asked).receipt.clip is not None

    with tacit.open(clinic.policy) as curator:
        asyncio.run(work(curator))


@pytest.mark.slow
def test_nothing_of_a_fit_is_seen_before_the_edge(curator, monkeypatch):
    runs = Runs(monkeypatch, tacit.curator.fit.ChargedFit, "release")
    model = LogisticRegression(missing=0, rows=200, classes=[False, True])
    form = {**encode_estimator(model), "sql": "SELECT age, paid FROM visits", "target": "paid", "epsilon": 3}
    body = FitBody.model_validate(form)

    async def work() -> None:
        service = CuratorService(curator, first=HOUR)
        fitted = asyncio.create_task(
            service.fit("ada", lambda found, hold: fit_for_analyst(found, "ada", body, "", hold=hold))
        )
        await runs.end()
        assert kinds(curator) == [EntryKind.RESERVE] and not fitted.done()
        await service.close(20)
        assert (await fitted)["released"]

    asyncio.run(work())
    assert kinds(curator) == [EntryKind.RESERVE, EntryKind.COMMIT]


@pytest.mark.slow
def test_a_question_in_the_other_process_is_held_too(curator, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(tacit.serve.service, "_MANY", 0)

    async def work() -> None:
        service = CuratorService(curator, first=HOUR)
        process = service._epoch.long_questions
        monkeypatch.setattr(process, "is_open", lambda: True)
        real = tacit.serve.service.release

        def release(plan: Any, seconds: float | None) -> bytes:
            found = real(plan, curator.engine, curator.bits, seconds)
            ended.set()
            return found

        monkeypatch.setattr(process, "release", release)
        asked = asyncio.create_task(service.ask("ada", ASKED))
        assert await asyncio.to_thread(ended.wait, 60)
        await asyncio.sleep(SOON)
        assert kinds(curator) == [EntryKind.RESERVE] and not asked.done()
        await service.close(20)
        assert (await asked).receipt.entry

    asyncio.run(work())


@pytest.mark.slow
def test_who_cannot_pay_is_refused_while_another_asks_the_same(make_clinic, tmp_path):
    async def work(curator: Any) -> None:
        service = CuratorService(curator, first=0)
        with halted(curator) as entered:
            asked = asyncio.create_task(service.ask("ben", ASKED))
            await reached(entered, 1)
            with pytest.raises(Refused) as caught:
                await asyncio.wait_for(service.ask("ada", ASKED), 10)
            assert caught.value.code is ErrorCode.BUDGET and not asked.done()
        await asked
        await service.close()

    with tacit.open(make_clinic(tmp_path, ada=0.5).policy) as curator:
        asyncio.run(work(curator))


@pytest.mark.slow
def test_the_next_question_of_an_analyst_begins_at_the_edge_and_others_do_not_wait(curator, monkeypatch):
    # one worker: a question of ada's that waits for its edge holds back her next one, and leaves the worker to ben
    runs = Runs(monkeypatch, tacit.serve.service, "release")

    async def work() -> None:
        service = CuratorService(curator, workers=1, first=HOUR)
        asked = [asyncio.create_task(service.ask("ada", ASKED))]
        await runs.end()
        too_dear = asyncio.create_task(service.ask("ada", Question(COUNT, epsilon=999.5)))
        await asyncio.sleep(SOON)
        assert not too_dear.done()  # its refusal would say that the worker is free
        asked.append(asyncio.create_task(service.ask("ben", Question(f"{COUNT} WHERE paid", epsilon=1))))
        await runs.end()
        assert kinds(curator) == [EntryKind.RESERVE] * 2
        await service.close(20)
        with pytest.raises(Refused):
            await too_dear
        assert all(answer.receipt.entry for answer in await asyncio.gather(*asked))

    asyncio.run(work())


@pytest.mark.slow
def test_work_that_pauses_leaves_its_thread_to_others_and_a_stop_ends_the_pause():
    scheduler, order, begun = Scheduler(1, 100, "test"), [], threading.Semaphore(0)

    def work(who: str) -> None:
        order.append(who)
        begun.release()
        scheduler.pause(HOUR)

    futures = [scheduler.submit(who, partial(work, who)) for who in ("ada", "ada", "ben", "eve", "ben")]
    for _ in range(3):
        assert begun.acquire(timeout=20)
    time.sleep(0.05)
    assert order == ["ada", "ben", "eve"]  # one of each: theirs are held back by their own
    for future in scheduler.close():
        if not future.cancelled():
            future.result(20)
    assert [future.cancelled() for future in futures] == [False, True, False, False, True]


def test_no_more_work_runs_than_there_are_workers_beside_what_pauses():
    scheduler, gate, order = Scheduler(2, 100, "test"), threading.Event(), []
    begun = threading.Semaphore(0)

    def paused() -> None:
        begun.release()
        scheduler.pause(HOUR)

    def busy(who: str) -> None:
        order.append(who)
        begun.release()
        gate.wait(20)

    for who in ("ada", "ben", "eve"):
        scheduler.submit(who, paused)
    for _ in range(3):
        assert begun.acquire(timeout=20)
    for who in ("max", "zoe", "joe"):
        scheduler.submit(who, partial(busy, who))
    for _ in range(2):
        assert begun.acquire(timeout=20)
    time.sleep(0.02)
    assert order == ["max", "zoe"]
    gate.set()
    assert begun.acquire(timeout=20)
    scheduler.close()
