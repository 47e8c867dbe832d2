"""A new epoch while questions are answered: what began goes on with its own data, and what comes has the new one."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import httpx
import pytest
from tests.support.engines import halted, reached
from tests.support.interrupts import at_every_point

import tacit
from tacit.curator.curator import Curator, open_policy
from tacit.errors import PolicyError
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.serve import epoch_change
from tacit.serve.epoch_change import EpochChange
from tacit.serve.service import CuratorService

pytestmark = pytest.mark.slow

# At these epsilons noise is 0 but with probability below 1e-300.
COUNT = Question("SELECT COUNT(*) AS n FROM visits", epsilon=300)
OTHER = Question("SELECT COUNT(*) AS n FROM visits WHERE age >= 0", epsilon=300)


def grow(clinic, epoch: int) -> None:
    """A patient more, with two visits; and the epoch that says so."""
    source = clinic.policy.parent / "visits.csv"
    rows = source.read_text()
    source.write_text(rows + 2 * f"{1000 + epoch},50,1.5,A,2025-01-11,True,flu\n")
    text = clinic.policy.read_text()
    head = '[data]\nsource = "visits.csv"\n'
    rest = text.partition(head)[2].partition("\n[privacy]")[2]
    clinic.policy.write_text(f"{head}epoch = {epoch}\n\n[privacy]{rest}")


async def changed(service: CuratorService, clinic) -> None:
    change = EpochChange(service, clinic.policy)
    change.begin()
    change.begin()  # a second signal before the file is read is none
    await change.wait()


def test_a_question_that_began_ends_with_its_own_data_and_the_next_has_the_new(clinic):
    first = tacit.open(clinic.policy)

    async def work() -> list[int]:
        service = CuratorService(first, first=0)
        with halted(first) as entered:
            asked = asyncio.create_task(service.ask("ada", COUNT))
            await reached(entered, 1)
            grow(clinic, 2)
            await changed(service, clinic)
            assert service.policy.epoch == 2 and service.curator is not first
            found = [(await service.ask("ben", COUNT)).value]
        found.append((await asked).value)
        found.append((await service.ask("ben", COUNT)).value)  # a repeat, of the new epoch's
        while service._retiring:
            await asyncio.sleep(0.01)
        with pytest.raises(Exception, match=r"(?i)clos"):
            first.engine.run(first.planner.plan(OTHER).exact)
        await service.close()
        return found

    assert asyncio.run(work()) == [402, 400, 402]
    first.close()
    with tacit.open(clinic.policy) as curator:
        kinds = [entry.kind for entry in curator.ledger.entries()]
        assert kinds.count(EntryKind.RESERVE) == kinds.count(EntryKind.COMMIT) == 2 and EntryKind.FAIL not in kinds
        assert verify(curator.ledger, Witness(curator.policy.books.witness)).ok


@pytest.mark.parametrize("case", ["same epoch", "other budget", "unreadable"])
def test_what_cannot_be_served_is_said_and_the_epoch_stays(clinic, case, caplog):
    async def work(curator) -> int:
        service = CuratorService(curator, first=0)
        grow(clinic, 2)
        text = clinic.policy.read_text()
        if case == "same epoch":
            clinic.policy.write_text(text.replace("epoch = 2", "epoch = 1"))
        elif case == "other budget":
            clinic.policy.write_text(text.replace("epsilon = 1000\ndelta", "epsilon = 999\ndelta"))
        else:
            (clinic.policy.parent / "visits.csv").unlink()
        with caplog.at_level(logging.ERROR, "tacit.serve"):
            await changed(service, clinic)
        assert service.curator is curator and "epoch 1 is served as before" in caplog.text
        found = await service.ask("ada", COUNT)
        await service.close()
        return found.value

    with tacit.open(clinic.policy) as curator:
        assert asyncio.run(work(curator)) == 400


def test_an_edit_of_the_policy_during_an_epoch_change_is_not_served(clinic):
    tacit.open(clinic.policy).close()
    served = load(clinic.policy)
    grow(clinic, 2)
    checked = clinic.policy.read_text()
    edited = checked.replace("upper = 110", "upper = 999")
    found: list[str] = []

    def change() -> None:
        clinic.policy.write_text(checked)
        try:
            with epoch_change._open(clinic.policy, served) as curator:
                assert replace(curator.policy, epoch=served.epoch) == served
                found.append("opened")
        except PolicyError:
            found.append("refused")

    def inside(file: str) -> bool:
        return file == epoch_change.__file__

    for _ in at_every_point(change, inside, act=lambda: clinic.policy.write_text(edited)):
        pass
    assert set(found) == {"opened", "refused"}


def test_an_epoch_that_is_asked_for_while_another_is_opened_is_served_after_it(clinic, monkeypatch):
    epochs: list[int] = []

    async def work() -> None:
        service = CuratorService(first, first=0)
        change = EpochChange(service, clinic.policy)
        loop = asyncio.get_running_loop()

        def open_slowly(policy: Policy, *, known: int) -> Curator:
            epochs.append(policy.epoch)
            if policy.epoch == 2:
                grow(clinic, 3)
                loop.call_soon_threadsafe(change.begin)
                loop.call_soon_threadsafe(change.begin)  # both ask for the same
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(60)
            return open_policy(policy, known=known)

        monkeypatch.setattr(epoch_change, "open_policy", open_slowly)
        grow(clinic, 2)
        change.begin()
        await change.wait()
        assert service.policy.epoch == 3
        await service.close()

    with tacit.open(clinic.policy) as first:
        asyncio.run(work())
    assert epochs == [2, 3]


def test_an_epoch_that_is_opened_after_the_stop_began_is_closed_and_not_served(clinic, monkeypatch):
    opened: list[Curator] = []
    stopped = threading.Event()

    async def work() -> None:
        service = CuratorService(first, first=0)
        change = EpochChange(service, clinic.policy)
        loop, entered = asyncio.get_running_loop(), asyncio.Event()

        def open_slowly(policy: Policy, *, known: int) -> Curator:
            loop.call_soon_threadsafe(entered.set)
            assert stopped.wait(60)
            opened.append(open_policy(policy, known=known))
            return opened[0]

        monkeypatch.setattr(epoch_change, "open_policy", open_slowly)
        grow(clinic, 2)
        change.begin()
        await entered.wait()
        await change.close(patience=0.01)
        assert change.is_opening
        stopped.set()
        await change.wait()
        assert not change.is_opening and service.curator is first
        change.begin()
        await change.wait()
        await service.close()

    with tacit.open(clinic.policy) as first:
        asyncio.run(work())
    assert [curator._is_closed for curator in opened] == [True]


SERVE = """
import sys
from pathlib import Path
from tacit.serve.server import ServerConfig, run_server

run_server(Path(sys.argv[1]), ServerConfig(http=0, postgres=None), lambda where: print(where.http, flush=True))
"""


def test_a_signal_says_that_there_is_a_new_epoch(clinic):

    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(clinic.policy)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            place = child.stdout.readline().strip()
            headers = {"Authorization": f"Bearer {clinic.secrets['ada'].key}"}

            def count() -> int:
                body = {"sql": COUNT.sql, "epsilon": 300}
                found = httpx.post(f"{place}/v1/ask", json=body, headers=headers, timeout=60).json()
                return found["rows"][0]["n"]["value"] if isinstance(found["rows"][0], dict) else found["rows"][0][0]

            assert count() == 400
            grow(clinic, 2)
            child.send_signal(signal.SIGHUP)
            end = time.monotonic() + 60
            while (found := count()) == 400 and time.monotonic() < end:
                time.sleep(0.1)
            assert found == 402
        finally:
            child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0


SERVE_SLOW = """
import sys, time
from pathlib import Path
from tacit.serve import epoch_change
from tacit.serve.server import ServerConfig, run_server

def open_slowly(policy, known):
    print("opening", flush=True)
    time.sleep(120)

epoch_change.open_policy = open_slowly
config = ServerConfig(http=0, postgres=None, patience=0.2)
run_server(Path(sys.argv[1]), config, lambda where: print(where.http, flush=True))
"""


def test_a_stop_waits_for_the_opening_of_an_epoch_no_longer_than_its_patience(clinic):
    command = [sys.executable, "-c", SERVE_SLOW, str(clinic.policy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline().startswith("http://")
            grow(clinic, 2)
            child.send_signal(signal.SIGHUP)
            assert child.stdout.readline() == "opening\n"
            child.send_signal(signal.SIGTERM)
            assert child.wait(30) == 0
            assert "stopped while a new epoch was being opened" in child.stderr.read()
        finally:
            child.kill()
