"""Threads that write together: one transaction for those who wait, and to each what it would have had alone."""

from __future__ import annotations

import resource
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.ledger.conftest import grains, limits, noise
from tests.ledger.test_tampering import edit
from tests.support.forks import in_child, outcome

from tacit.errors import ErrorCode, LedgerError, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import is_valid_signature
from tacit.ledger.verify import verify

TENTH = noise("0.1")
LIMITS = limits("10", ada="5", ben="5", eve="0.05")


@pytest.fixture
def ledger(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as opened:
        yield opened


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.001)


def together(ledger: Ledger, works: list[Callable[[], Any]]) -> list[Future[Any]]:
    """Run works in threads so that the first leads alone, and all others wait for the transaction after it."""
    with ThreadPoolExecutor(len(works)) as pool:
        with ledger.store._lock:
            found = [pool.submit(works[0])]
            until(lambda: ledger._turns._led)
            for number, work in enumerate(works[1:], 1):
                found.append(pool.submit(work))
                until(lambda number=number: len(ledger._turns._waiting) == number)
        return found


def asks(ledger: Ledger, analyst: str, *keys: str) -> list[Callable[[], Any]]:
    return [lambda key=key: ledger.reserve(analyst, TENTH, key) for key in keys]


def kinds(ledger: Ledger) -> list[EntryKind]:
    return [entry.kind for entry in ledger.entries()]


def answered(ledger: Ledger, analyst: str, key: str) -> None:
    ledger.commit(ledger.reserve(analyst, TENTH, key), key.encode())


def test_those_who_wait_go_in_one_transaction(ledger, witness):
    claims = [each.result() for each in together(ledger, asks(ledger, "ada", *"abcdefghij"))]
    assert [claim.entry for claim in claims] == list(range(2, 12))
    assert ledger.standing("ada").spent.epsilon == grains("1")
    # The opening, the first question, and nine at once: each transaction tells the witness its last entry.
    assert [sight.sequence for sight in witness.backwards()] == [11, 2, 1]
    assert verify(ledger, witness).problems == ()


@pytest.mark.slow
def test_sums_hold_within_a_transaction(ledger):
    # 5 in all, a tenth each: of 60 who come at once the first 50 are admitted. Each finds what those before it paid.
    found = together(ledger, asks(ledger, "ada", *map(str, range(60))))
    assert [each.exception() is None for each in found] == [True] * 50 + [False] * 10
    assert ledger.standing("ada").spent.epsilon == grains("5")
    assert verify(ledger).problems == ()


def test_a_refusal_is_its_own_and_writes_nothing(ledger):
    works = [*asks(ledger, "ada", "a", "b"), *asks(ledger, "eve", "c"), *asks(ledger, "ben", "d")]
    found = together(ledger, works)
    refused = found[2].exception()
    assert isinstance(refused, Refused) and refused.code == ErrorCode.BUDGET
    assert [found[n].result().entry for n in (0, 1, 3)] == [2, 3, 4]
    assert ledger.standing("eve").spent.epsilon == 0


def test_an_error_of_one_is_not_an_error_of_the_others(ledger, place, witness):
    answered(ledger, "ada", "a")
    edit(place, "UPDATE answers SET answer = " + ("x'00'" if not isinstance(place, str) else "'\\x00'"))
    works = [*asks(ledger, "ada", "b", "c"), *asks(ledger, "ben", "a"), *asks(ledger, "ben", "d")]
    found = together(ledger, works)
    failed = found[2].exception()
    assert isinstance(failed, LedgerError) and failed.code == ErrorCode.LEDGER_TAMPERED
    assert [found[n].result().entry for n in (0, 1, 3)] == [4, 5, 6]  # each charged once
    assert ledger.overall().spent.epsilon == grains("0.4")
    assert kinds(ledger).count(EntryKind.RESERVE) == 4
    for n in (0, 1, 3):
        ledger.commit(found[n].result(), b"12")
    assert ledger._flying == set()


def test_a_large_answer_that_does_not_fit_takes_no_other_with_it(tmp_path):
    # SQLite writes what is below its cache at the commit only. Alone, ada's answer fits.
    def work() -> int:
        with Ledger(tmp_path / "ledger", LIMITS) as ledger:
            asked = ("ben", "a"), ("ada", "b"), ("ben", "c")
            claims = [ledger.reserve(analyst, TENTH, key) for analyst, key in asked]
            answers = [b"7", b"41", bytes(1_000_000)]
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
            works = [lambda c=c, a=a: ledger.commit(c, a) for c, a in zip(claims, answers, strict=True)]
            errors = [each.exception() for each in together(ledger, works)]
        return [isinstance(error, LedgerError) for error in errors].index(True)

    assert outcome(in_child(work)) == 2
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        assert ledger.reserve("ada", TENTH, "b").stored == b"41"
        assert kinds(ledger).count(EntryKind.COMMIT) == 2
        assert verify(ledger).problems == ()


def test_the_same_question_in_one_transaction_is_charged_once(ledger):
    def ask(analyst: str) -> Any:
        claim = ledger.reserve(analyst, TENTH, "same")
        return claim if claim.stored else ledger.commit(claim, b"12")

    found = [each.result() for each in together(ledger, [*asks(ledger, "ada", "first"), *[lambda: ask("ada")] * 5])]
    assert {claim.stored for claim in found[1:]} == {b"12"}
    # Whoever comes first charges and answers; the other four wait for that, and repeat it.
    assert [kinds(ledger).count(kind) for kind in (EntryKind.RESERVE, EntryKind.COMMIT, EntryKind.REPEAT)] == [2, 1, 0]
    assert ledger.standing("ada").spent.epsilon == grains("0.2")


def test_repeats_are_what_asking_again_gives_and_the_rest_is_left_alone(ledger, key, witness):
    for name in ("a", "b"):
        answered(ledger, "ada", name)
    ledger.reserve("ada", TENTH, "open")
    before = len(kinds(ledger))
    asked = [
        ledger.describe_request(analyst, TENTH, name)
        for analyst, name in [("ada", "a"), ("ben", "a"), ("ada", "b"), ("ada", "open")]
    ]
    one, unpaid, other, unanswered = ledger.repeats(lambda: asked)
    assert unpaid is None and unanswered is None  # these must be reserved
    assert (one.stored, other.stored) == (b"a", b"b")
    assert len(kinds(ledger)) == before
    alone = ledger.reserve("ada", TENTH, "a")
    for receipt in (one.receipt, other.receipt, alone.receipt):
        assert (
            receipt.repeat
            and receipt.charged.epsilon == 0
            and is_valid_signature(receipt.head, receipt.signature, key.public)
        )
    assert (
        one.receipt.analyst_budget == alone.receipt.analyst_budget
        and one.receipt.overall_budget == alone.receipt.overall_budget
    )
    assert ledger.standing("ada").spent.epsilon == grains("0.3") and ledger.standing("ben").spent.epsilon == 0
    assert verify(ledger, witness).problems == ()


def test_an_altered_answer_is_not_repeated(ledger, place):
    answered(ledger, "ada", "a")
    edit(place, "UPDATE answers SET answer = " + ("x'00'" if not isinstance(place, str) else "'\\x00'"))
    with pytest.raises(LedgerError) as caught:
        ledger.repeats(lambda: [ledger.describe_request("ada", TENTH, "a")])
    assert caught.value.code == ErrorCode.LEDGER_TAMPERED


@pytest.mark.parametrize("leading", [True, False])
def test_who_is_interrupted_while_waiting_has_charged_nothing(ledger, leading):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # with that of polars, where it is loaded, waits go on
    other = threading.Thread(target=lambda: ledger.reserve("ben", TENTH, "other"))
    out = threading.Event()

    def interrupt() -> None:
        until(lambda: ledger._turns._led if leading else len(ledger._turns._waiting) == 1)
        while not out.is_set():  # again, as one that comes right before the lock is waited for does not end the wait
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # no other thread can take it
            out.wait(2)

    helper = threading.Thread(target=interrupt)
    with ledger.store._lock:
        if not leading:
            other.start()
            until(lambda: ledger._turns._led)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve("ada", TENTH, "mine")
        out.set()
        helper.join()
    if leading:
        other.start()
    other.join()
    assert ledger.standing("ada").spent.epsilon == 0 and ledger.standing("ben").spent.epsilon == grains("0.1")
    assert ledger.reserve("ada", TENTH, "mine").stored is None
    assert verify(ledger).problems == ()


def test_who_is_interrupted_after_the_charge_goes_on_with_it(ledger):
    take = ledger._turns._wait

    def wait(part: Any) -> None:
        take(part)
        raise KeyboardInterrupt

    ledger._turns._wait = wait
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve("ada", TENTH, "mine")
    ledger._turns._wait = take
    again = ledger.reserve("ada", TENTH, "mine")  # at once: nobody works on it
    assert again.stored is None and ledger.standing("ada").spent.epsilon == grains("0.1")
    assert kinds(ledger)[-2:] == [EntryKind.RESERVE, EntryKind.RESUME]


def test_a_child_does_not_wait_for_the_threads_of_its_parent(tmp_path):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        ledger._turns._led = True  # as if a thread of the parent were writing
        child = in_child(lambda: ledger.reserve("ada", TENTH, "a").entry)
        assert outcome(child) == 2
        ledger._turns._led = False
        assert ledger.standing("ada").spent.epsilon == grains("0.1")
