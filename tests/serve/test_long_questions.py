"""Questions of many cells in a process of their own: over the same data, charged once, whatever ends that process."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from tests.support.bits import Ones

import tacit
from tacit.answers.answer import Answer
from tacit.curator.curator import Curator
from tacit.curator.prepare import prepare
from tacit.engines.deadline import TimeLimit
from tacit.errors import ErrorCode, Failed, Refused
from tacit.ledger.entries import EntryKind
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.serve import long_questions as module
from tacit.serve.long_questions import LongQuestions
from tacit.serve.service import CuratorService

pytestmark = pytest.mark.slow  # each starts a process

EPSILON = 900
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
# 111 ages by 3 wards by 2 truth values are 666 groups; by 40 columns 26,640 cells.
MANY = "SELECT " + ", ".join(f"SUM(age + {n}) AS s{n}" for n in range(40))
LONG = Question(f"{MANY} FROM visits GROUP BY age, ward, paid", epsilon=0.1)


@pytest.fixture
def opened(curator):
    """Long questions of the curator, once the other process has its data."""
    found = LongQuestions(curator)
    assert wait_until_open(found)
    yield found
    found.close()


def wait_until_open(found: LongQuestions) -> bool:
    end = time.monotonic() + 60
    while not found.is_open() and time.monotonic() < end:
        time.sleep(0.02)
    return found.is_open()


def charges(curator: Curator) -> list[EntryKind]:
    return [entry.kind for entry in curator.ledger.entries()][1:]


def signal_process(service: CuratorService, number: int) -> None:
    os.kill(service._epoch.long_questions._process._process.pid, number)


async def ask_and_halt(service: CuratorService, curator: Curator) -> asyncio.Task[Answer]:
    """A long question that is charged, and whose process stands still."""
    signal_process(service, signal.SIGSTOP)
    asked = asyncio.create_task(service.ask("ada", LONG))
    while charges(curator) != [EntryKind.RESERVE]:
        await asyncio.sleep(0.01)
    return asked


def test_a_release_of_the_other_process_is_one_of_the_same_data(opened, curator):
    """At this epsilon noise is 0 but with probability below 1e-300."""
    plan = curator.planner.plan(Question(WARDS, epsilon=EPSILON), "ada")
    assert opened.release(plan, 60.0) == module.release(plan, curator.engine, curator.bits)
    assert opened._process.call(os.getpid) != os.getpid()


def test_a_release_reaches_its_time_limit_there(opened, curator):
    plan = curator.planner.plan(Question(WARDS, epsilon=EPSILON), "ada")
    with pytest.raises(TimeLimit):
        opened.release(plan, 0.0)


def test_other_data_is_not_read_in_place_of_the_curators(clinic):
    with tacit.open(clinic.policy) as curator:
        source = clinic.policy.parent / "visits.csv"
        source.write_text("\n".join(source.read_text().splitlines()[:-1]) + "\n")
        assert not opens_elsewhere(curator)


def opens_elsewhere(curator: Curator) -> bool:
    """Whether the other process has the curator's data when it has tried once."""
    found = LongQuestions(curator)
    try:
        assert not found.is_open()
        found._opening.join()
        return found.is_open()
    finally:
        found.close()


def test_a_copy_is_attached_and_never_made(clinic):
    text, copy = clinic.policy.read_text(), clinic.policy.with_name("visits.copy")
    source = clinic.policy.with_name("visits.csv")
    clinic.policy.write_text(text.replace("[data]", '[data]\ncopy = "visits.copy"'))
    with tacit.open(clinic.policy) as curator:
        rows = source.read_text()
        source.unlink()  # nothing is read but the copy
        assert opens_elsewhere(curator)
        source.write_text(rows)
        clinic.policy.write_text(text.replace("[data]", '[data]\ncopy = "visits.copy"\nepoch = 2'))
        prepare(load(clinic.policy), lambda what, share: None)
        prepared = copy.read_bytes()
        assert not opens_elsewhere(curator) and copy.read_bytes() == prepared
        copy.unlink()
        assert not opens_elsewhere(curator) and not copy.exists()
        assert len(curator.analyst("ada").ask(WARDS, epsilon=1)) == 3


def test_bits_that_are_not_the_systems_stay_here(curator):
    bits, curator.bits = curator.bits, Ones()
    try:
        found = LongQuestions(curator)
        assert not found.is_open() and found._opening is None
    finally:
        curator.bits = bits


async def open_service(curator: Curator) -> CuratorService:
    service = CuratorService(curator, first=0)
    await asyncio.to_thread(wait_until_open, service._epoch.long_questions)
    return service


def test_a_long_question_is_answered_from_there(curator):
    async def work():
        service = await open_service(curator)
        seen = []
        release = service._epoch.long_questions.release
        service._epoch.long_questions.release = lambda plan, seconds: seen.append(plan) or release(plan, seconds)
        answer = await service.ask("ada", LONG)
        short = await service.ask("ada", Question(WARDS, epsilon=1))
        await service.close()
        return answer, short, seen

    answer, short, seen = asyncio.run(work())
    assert len(answer) == 666 and len(short) == 3 and len(seen) == 1
    assert charges(curator) == 2 * [EntryKind.RESERVE, EntryKind.COMMIT]


def test_a_process_that_dies_during_a_question_is_a_failure_and_another_takes_its_place(curator):
    async def work():
        service = await open_service(curator)
        asked = await ask_and_halt(service, curator)
        signal_process(service, signal.SIGKILL)
        with pytest.raises(Failed):
            await asked
        assert charges(curator) == [EntryKind.RESERVE, EntryKind.FAIL]
        assert await asyncio.to_thread(wait_until_open, service._epoch.long_questions)
        await service.ask("ada", LONG)
        await service.close()

    asyncio.run(work())
    assert charges(curator) == [EntryKind.RESERVE, EntryKind.FAIL, EntryKind.RESERVE, EntryKind.COMMIT]


def test_a_stop_during_a_question_leaves_its_charge_to_be_taken_up(curator):
    async def work():
        service = await open_service(curator)
        asked = await ask_and_halt(service, curator)
        await service.close(patience=0.1)
        with pytest.raises(Refused) as caught:
            await asked
        assert caught.value.code == ErrorCode.BUSY and "same charge" in caught.value.fix

    asyncio.run(work())
    assert charges(curator) == [EntryKind.RESERVE]
    assert len(curator.analyst("ada").ask(LONG.sql, epsilon=0.1)) == 666
    assert EntryKind.FAIL not in charges(curator) and charges(curator).count(EntryKind.COMMIT) == 1
    assert float(curator.analyst("ada").budget.to_dict()["own"]["spent"]) <= 0.1
