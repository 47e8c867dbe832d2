"""Many at once: threads, processes, and forks in between. What fits is admitted, exactly."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

from tacit.accounting.filter import Amount
from tacit.errors import LedgerError, Refused
from tacit.ledger.budget import Limits
from tacit.ledger.sqlite import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise

TENTH = LaplaceNoise(Fraction(10), 1)  # a price of epsilon 0.1


def cap(epsilon: str) -> Amount:
    return Amount.cap(Fraction(epsilon), Fraction(0))


def limits(overall: str) -> Limits:
    return Limits(cap(overall), {f"analyst{number}": cap("100") for number in range(8)})


def in_child(work) -> int:
    """Run `work` in a forked process that exits with the number it returns, or 255."""
    child = os.fork()
    if child:
        return child
    code = 255
    signal.alarm(60)  # a child that hangs is a child that fails
    try:
        code = work()
    finally:
        os._exit(code)


def outcome(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ask_until_refused(ledger: Ledger, who: str, prefix: str) -> int:
    for number in range(1000):
        try:
            claim = ledger.reserve(who, TENTH, f"{prefix}-{number}")
            ledger.commit(claim, b"12")
        except Refused:
            return number
    return 1000


def test_four_processes_race_for_the_last_of_the_budget(tmp_path, full):
    # An overall cap of 2.05 admits 20 questions of 0.1, whoever asks them.
    for round_number in range(50 if full else 3):
        path = tmp_path / f"ledger{round_number}"
        start, go = os.pipe()

        def work(who, path=path, start=start):
            os.read(start, 1)
            with Ledger(path, limits("2.05")) as ledger:
                return ask_until_refused(ledger, who, who)

        children = [in_child(lambda who=f"analyst{number}": work(who)) for number in range(4)]
        os.write(go, b"1234")
        assert sum(map(outcome, children)) == 20
        os.close(start)
        os.close(go)
        with Ledger(path, limits("2.05")) as ledger:
            assert ledger.overall().spent == cap("2")
            assert verify(ledger).problems == ()


SCRIPT = """
import sys
from fractions import Fraction
from pathlib import Path
from tacit.accounting.filter import Amount
from tacit.errors import Refused
from tacit.ledger.budget import Limits
from tacit.ledger.sqlite import Ledger
from tacit.privacy.loss import LaplaceNoise
cap = Amount.cap(Fraction(2), Fraction(0))
ledger = Ledger(Path(sys.argv[1]), Limits(cap, {"ada": cap}))
count = 0
try:
    while True:
        ledger.reserve("ada", LaplaceNoise(Fraction(10), 1), f"{sys.argv[2]}-{count}")
        count += 1
except Refused:
    print(count)
"""


def test_interpreters_of_their_own_race_too(tmp_path):
    # 2 / 0.1 = 20
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "ledger")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    racers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True, env=environment)
        for name in ("x", "y", "z")
    ]
    assert sum(int(racer.communicate(timeout=60)[0]) for racer in racers) == 20


def test_threads_race_on_one_ledger(tmp_path):
    # 3 / 0.1 = 30
    with Ledger(tmp_path / "ledger", limits("3")) as ledger:
        with ThreadPoolExecutor(8) as pool:
            counts = pool.map(lambda number: ask_until_refused(ledger, f"analyst{number}", f"{number}"), range(8))
            assert sum(counts) == 30
        assert verify(ledger).problems == ()


def test_the_same_question_by_many_at_once_has_one_answer(tmp_path):
    with Ledger(tmp_path / "ledger", limits("100")) as ledger:

        def ask(number: int) -> bytes | None:
            claim = ledger.reserve(f"analyst{number % 8}", TENTH, "same")
            return claim.stored if claim.stored is not None else ledger.commit(claim, f"{number}".encode()).stored

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(ask, range(64)))) == 1
        assert verify(ledger).problems == ()


def test_a_child_goes_on_with_the_ledger_of_its_parent(tmp_path):
    path = tmp_path / "ledger"
    ledger = Ledger(path, limits("100"))
    ledger.reserve("analyst0", TENTH, "before")

    def work() -> int:
        for number in range(10):
            ledger.commit(ledger.reserve("analyst1", TENTH, f"child-{number}"), b"12")
        return 0

    child = in_child(work)
    for number in range(10):
        ledger.commit(ledger.reserve("analyst0", TENTH, f"parent-{number}"), b"12")
    assert outcome(child) == 0
    assert ledger.overall().spent == cap("2.1")  # 1 + 10 + 10 questions of 0.1
    assert verify(ledger).problems == ()
    ledger.close()


def test_what_a_child_wrote_stays_when_its_parent_closes_first(tmp_path):
    # The child's connection must hold locks of its own, or the parent, closing, removes the log under it.
    path = tmp_path / "ledger"
    ledger = Ledger(path, limits("100"))
    ledger.reserve("analyst0", TENTH, "before")
    opened, tell_opened = os.pipe()
    closed, tell_closed = os.pipe()

    def work() -> int:
        ledger.reserve("analyst1", TENTH, "while the parent is open")
        os.write(tell_opened, b"1")
        os.read(closed, 1)
        ledger.reserve("analyst1", TENTH, "after the parent has closed")
        return 0

    child = in_child(work)
    os.read(opened, 1)
    ledger.close()
    os.write(tell_closed, b"1")
    assert outcome(child) == 0
    with Ledger(path, limits("100")) as again:
        assert again.standing("analyst1").spent == cap("0.2")


def test_forks_amid_busy_threads(tmp_path):
    with Ledger(tmp_path / "ledger", limits("100")) as ledger:
        stop = threading.Event()
        asked = [0] * 3

        def ask(number: int) -> None:
            while not stop.is_set():
                ledger.reserve(f"analyst{number}", LaplaceNoise(Fraction(10**6), 1), f"{number}-{asked[number]}")
                asked[number] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()

        def work() -> int:
            ledger.reserve("analyst7", TENTH, f"{os.getpid()}")
            return 0

        outcomes = [outcome(in_child(work)) for _ in range(8)]
        stop.set()
        for thread in threads:
            thread.join()
        assert outcomes == [0] * 8
        assert ledger.standing("analyst7").spent == cap("0.8")
        assert sum(entry.who in ("analyst0", "analyst1", "analyst2") for entry in ledger.entries()) == sum(asked)
        assert verify(ledger).problems == ()


def test_a_fork_that_python_does_not_see_is_noticed(tmp_path):
    ledger = Ledger(tmp_path / "ledger", limits("100"))
    child = ctypes.PyDLL(None).fork()  # the C function, which runs none of Python's hooks
    if child == 0:
        code = 1
        try:
            ledger.close()
            ledger.reserve("analyst0", TENTH, "a")
        except LedgerError as error:
            code = 0 if "before this process was forked" in error.what else 2
        finally:
            os._exit(code)
    assert outcome(child) == 0
    ledger.reserve("analyst0", TENTH, "a")
    assert verify(ledger).problems == ()
    ledger.close()
