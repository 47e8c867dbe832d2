"""Many at once: threads, processes, and forks in between. What fits is admitted, exactly."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.ledger.conftest import fresh, grains, limits, noise, rarely_on_postgres
from tests.support.counts import FULL
from tests.support.forks import in_child, outcome
from tests.support.interrupts import at_every_point

from tacit.accounting.filters import BudgetCharge, compute_charge
from tacit.curator import resources
from tacit.curator.resources import reopen_ledger
from tacit.errors import ErrorCode, LedgerError, Refused
from tacit.ledger import ledger as ledger_module
from tacit.ledger import reader, signing
from tacit.ledger.budget import BudgetLimits
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.signing import SigningKey
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.policy.model import LedgerLocation, Policy
from tacit.privacy.loss import GaussianNoise, Loss

pytestmark = pytest.mark.slow

ANALYSTS, RACERS = 8, 8 if FULL else 5
TENTH = noise("0.1")


def shared(overall: str, delta: str = "0") -> BudgetLimits:
    """Everyone has plenty; what is scarce is shared."""
    return limits(overall, delta=delta, **{f"analyst{number}": "100" for number in range(ANALYSTS)})


def race(work) -> list[int]:
    """The outcomes of racers that start together, each with its number."""
    start, go = os.pipe()

    def wait_and_work(number: int) -> int:
        os.read(start, 1)
        return work(number)

    children = [in_child(lambda number=number: wait_and_work(number)) for number in range(RACERS)]
    os.write(go, b"x" * RACERS)
    outcomes = [outcome(child) for child in children]
    os.close(start)
    os.close(go)
    return outcomes


def environment() -> dict[str, str]:
    """What another interpreter needs to import what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def ask_until_refused(ledger: Ledger, analyst: str, prefix: str) -> int:
    for number in range(1000):
        try:
            claim = ledger.reserve(analyst, TENTH, f"{prefix}-{number}")
            ledger.commit(claim, b"12")
        except Refused:
            return number
    return 1000


def for_the_last(place: Path | str, terms: BudgetLimits, loss: Loss = TENTH) -> int:
    """How many of the racers get a question answered. Whoever comes first makes the ledger."""

    def work(number: int) -> int:
        with Ledger(place, terms) as ledger:
            try:
                ledger.commit(ledger.reserve(f"analyst{number}", loss, f"{number}"), b"12")
            except Refused:
                return 0
        return 1

    outcomes = race(work)
    assert set(outcomes) <= {0, 1}
    with Ledger(place, terms) as ledger:
        assert ledger.overall().spent == sum([compute_charge(loss)] * sum(outcomes), BudgetCharge.zero())
        assert verify(ledger).problems == ()
    return sum(outcomes)


@pytest.mark.parametrize(("kind", "step"), [("sqlite", 2), ("postgres", 12)])
def test_an_opening_that_another_one_overtakes_at_any_line_of_it(kind, step, tmp_path, request):
    # The other one makes the ledger, its key and its witness, and asks; or finds the database in use, and gives up.
    terms, overtaken = shared("1"), 0
    folder, place = tmp_path, tmp_path / ""

    def open_one(wait: float) -> Ledger:
        witness = Witness(folder / "witness")
        key = SigningKey.at(folder / "key", create=not witness.exists())
        return Ledger(place, terms, key=key, witness=witness, wait=wait)

    def overtake() -> None:
        nonlocal overtaken
        try:
            other = open_one(wait=0.001)
        except LedgerError as error:
            if error.code is not ErrorCode.LEDGER_BUSY:
                raise
            return
        with other:
            other.commit(other.reserve("analyst1", TENTH, "other"), b"12")
        overtaken += 1

    def work() -> None:
        nonlocal folder, place
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        place = folder / "ledger" if kind == "sqlite" else fresh(request.getfixturevalue("postgres"))
        with open_one(wait=30) as ledger:
            ledger.commit(ledger.reserve("analyst1", TENTH, "own"), b"12")
            assert verify(ledger, Witness(folder / "witness")).ok

    code = (ledger_module.__file__, signing.__file__)
    points = len(list(at_every_point(work, lambda file: file in code, overtake, step=1 if FULL else step)))
    assert overtaken > points / 2


def test_an_owner_who_lowers_a_cap_while_a_table_is_unlocked(tmp_path):
    # At any line of the unlocking: the lower cap stays, and it binds the process that ran before.
    lowered = 0

    def opened(overall: str, wait: float = 30) -> Ledger:
        key = SigningKey.at(folder / "key", create=True)
        return Ledger(folder / "ledger", shared(overall), key=key, witness=Witness(folder / "witness"), wait=wait)

    def lower() -> None:
        nonlocal lowered
        try:
            opened("0.5", wait=0.001).close()
        except LedgerError as error:
            if error.code is not ErrorCode.LEDGER_BUSY:
                raise
            return
        lowered += 1

    def work() -> None:
        nonlocal folder
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        books, before = LedgerLocation(folder / "ledger", folder / "key", folder / "witness"), lowered
        with opened("1") as running:
            running.fail(running.reserve("analyst1", TENTH, "a", tables=["visits"]))
            tracer = sys.gettrace()
            sys.settrace(tracing.pop())
            with reopen_ledger(cast("Policy", SimpleNamespace(books=books))) as ledger:
                assert ledger.unlock("visits").table == "visits"
            sys.settrace(tracer)
            assert ask_until_refused(running, "analyst2", "b") == (4 if lowered > before else 9)

    def traced() -> None:
        tracing.append(sys.gettrace())
        sys.settrace(None)
        work()

    folder, tracing = tmp_path, []
    code = (ledger_module.__file__, resources.__file__, reader.__file__)
    points = len(list(at_every_point(traced, lambda file: file in code, lower, step=1 if FULL else 3)))
    assert lowered > points / 2


def test_an_opening_undoes_no_cap_that_was_lowered_after_its_policy_was_read(place):
    with Ledger(place, shared("1")) as running:
        with LedgerReader(place) as history:
            known = history.last_opening()
        Ledger(place, shared("1"), known=known).close()  # with the same budgets any number of processes may open it
        Ledger(place, shared("0.5"), known=known).close()
        with pytest.raises(LedgerError) as caught:
            Ledger(place, shared("1"), known=known)
        assert caught.value.code is ErrorCode.LEDGER_BUSY and "open it again" in caught.value.fix
        assert ask_until_refused(running, "analyst1", "a") == 5
        with LedgerReader(place) as history:
            Ledger(place, shared("1"), known=history.last_opening()).close()
        assert ask_until_refused(running, "analyst1", "b") == 5


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_race_for_the_last_of_the_budget(kind, tmp_path, request, full):
    # 0.19, 0.29 and so on admit 1, 2, ... questions of 0.1, and at last one less than there are racers.
    rounds = {"sqlite": 200 if full else 2, "postgres": 40 if full else 1}[kind]
    server = request.getfixturevalue("postgres") if kind == "postgres" else ""
    for number in range(rounds):
        affordable = (3 * number + 3) % (RACERS - 1) + 1
        place = fresh(server) if server else tmp_path / f"ledger{number}"
        assert for_the_last(place, shared(f"0.{affordable}9")) == affordable


def test_processes_race_for_the_last_of_the_second_filter(place):
    # Of epsilon 1 at delta 1e-6 rho is 0.02167, and Gaussian noise of variance 100 costs 1/200: 4 of them.
    assert for_the_last(place, shared("1", delta="1e-6"), GaussianNoise(Fraction(100), 1)) == 4


def test_processes_race_until_nothing_is_left(place):
    # An overall cap of 2.05 admits 20 questions of 0.1, whoever asks them.
    def work(number: int) -> int:
        with Ledger(place, shared("2.05")) as ledger:
            return ask_until_refused(ledger, f"analyst{number}", f"{number}")

    assert sum(race(work)) == 20
    with Ledger(place, shared("2.05")) as ledger:
        assert ledger.overall().spent.epsilon == grains("2")
        assert verify(ledger).problems == ()


def test_processes_that_ask_the_same_share_one_charge(place):
    # All are charged for themselves, and once for all together: the others wait for the first.
    def work(number: int) -> int:
        with Ledger(place, shared("1")) as ledger:
            claim = ledger.reserve(f"analyst{number}", TENTH, "same")
            return int(ledger.commit(claim, b"%d" % (number + 100)).stored or b"0")

    assert len(set(race(work))) == 1
    with Ledger(place, shared("1")) as ledger:
        assert ledger.overall().spent == compute_charge(TENTH)
        assert all(ledger.standing(f"analyst{number}").spent == compute_charge(TENTH) for number in range(RACERS))
        assert verify(ledger).problems == ()


def test_processes_under_one_name_are_charged_once(place):
    def work(number: int) -> int:
        with Ledger(place, shared("1")) as ledger:
            claim = ledger.reserve("analyst0", TENTH, "same", request="r-1")
            return int(ledger.commit(claim, b"%d" % (number + 100)).stored or b"0")

    assert len(set(race(work))) == 1
    with Ledger(place, shared("1")) as ledger:
        assert [entry.kind for entry in ledger.entries()] == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.COMMIT]


SCRIPT = """
import sys
from fractions import Fraction
from pathlib import Path
from tacit.errors import Refused
from tacit.ledger.budget import BudgetLimits
from tacit.ledger.ledger import Ledger
from tacit.privacy.loss import LaplaceNoise
two = (Fraction(2), Fraction(0))
place = sys.argv[1] if sys.argv[1].startswith("postgresql:") else Path(sys.argv[1])
ledger = Ledger(place, BudgetLimits.of(*two, {"ada": two}))
count = 0
try:
    while True:
        ledger.reserve("ada", LaplaceNoise(Fraction(10), 1), f"{sys.argv[2]}-{count}")
        count += 1
except Refused:
    print(count)
"""


@rarely_on_postgres
def test_interpreters_of_their_own_race_too(place):
    # 2 / 0.1 = 20
    command = [sys.executable, "-c", SCRIPT, str(place)]
    racers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True, env=environment())
        for name in ("xyz" if FULL else "xy")
    ]
    assert sum(int(racer.communicate(timeout=60)[0]) for racer in racers) == 20


def test_threads_race_on_one_ledger(place):
    # 3 / 0.1 = 30
    with Ledger(place, shared("3")) as ledger:
        with ThreadPoolExecutor(8) as pool:
            counts = pool.map(lambda number: ask_until_refused(ledger, f"analyst{number}", f"{number}"), range(8))
            assert sum(counts) == 30
        assert verify(ledger).problems == ()


def test_the_same_question_by_many_threads_has_one_answer_and_one_charge(place):
    with Ledger(place, shared("100")) as ledger:

        def ask(number: int) -> bytes | None:
            claim = ledger.reserve(f"analyst{number % 8}", TENTH, "same")
            return ledger.commit(claim, f"{number}".encode()).stored

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(ask, range(64)))) == 1
        assert ledger.overall().spent == compute_charge(TENTH)
        assert verify(ledger).problems == ()


# Forks


def test_a_child_goes_on_with_the_ledger_of_its_parent(place):
    ledger = Ledger(place, shared("100"))
    ledger.reserve("analyst0", TENTH, "before")

    def work() -> int:
        for number in range(10):
            ledger.commit(ledger.reserve("analyst1", TENTH, f"child-{number}"), b"12")
        return 0

    child = in_child(work)
    for number in range(10):
        ledger.commit(ledger.reserve("analyst0", TENTH, f"parent-{number}"), b"12")
    assert outcome(child) == 0
    assert ledger.overall().spent.epsilon == grains("2.1")  # 1 + 10 + 10 questions of 0.1
    assert verify(ledger).problems == ()
    ledger.close()


def test_what_a_child_wrote_stays_when_its_parent_closes_first(place):
    # The child's connection must hold locks of its own, or the parent, closing, removes SQLite's log under it.
    ledger = Ledger(place, shared("100"))
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
    with Ledger(place, shared("100")) as again:
        assert again.standing("analyst1").spent.epsilon == grains("0.2")


def test_forks_amid_busy_threads(place):
    with Ledger(place, shared("100")) as ledger:
        stop = threading.Event()
        asked = [0] * 3

        def ask(number: int) -> None:
            while not stop.is_set():
                ledger.reserve(f"analyst{number}", noise("0.000001"), f"{number}-{asked[number]}")
                asked[number] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()

        def work() -> int:
            ledger.reserve("analyst7", TENTH, f"{os.getpid()}")
            return 0

        forks = 8 if FULL else 4
        outcomes = [outcome(in_child(work)) for _ in range(forks)]
        stop.set()
        for thread in threads:
            thread.join()
        assert outcomes == [0] * forks
        assert ledger.standing("analyst7").spent.epsilon == grains(f"0.{forks}")
        assert sum(entry.analyst in ("analyst0", "analyst1", "analyst2") for entry in ledger.entries()) == sum(asked)
        assert verify(ledger).problems == ()


UNSEEN = """
import ctypes, os, sys
from fractions import Fraction
from pathlib import Path
from tacit.errors import LedgerError
from tacit.ledger.budget import BudgetLimits
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise
one, tenth = (Fraction(1), Fraction(0)), LaplaceNoise(Fraction(10), 1)
place = sys.argv[1] if sys.argv[1].startswith("postgresql:") else Path(sys.argv[1])
ledger = Ledger(place, BudgetLimits.of(*one, {"ada": one}))
child = ctypes.PyDLL(None).fork()
if child == 0:
    code = 1
    try:
        ledger.close()
        ledger.reserve("ada", tenth, "a")
    except LedgerError as error:
        code = 0 if "before this process was forked" in error.what else 2
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
ledger.reserve("ada", tenth, "a")
assert verify(ledger).problems == ()
ledger.close()
"""


def test_a_fork_that_python_does_not_see_is_noticed(place):
    # The C function runs none of Python's hooks. Amid other threads it could leave the interpreter's own lock held
    # in the child, for ever: so it is called in an interpreter that has one thread.
    subprocess.run([sys.executable, "-c", UNSEEN, str(place)], env=environment(), check=True, timeout=60)
