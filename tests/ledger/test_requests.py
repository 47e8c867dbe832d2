"""One question asked more than once: under one name, in flight, or after whoever asked it is gone."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.ledger.conftest import limits, noise, price, rarely_on_postgres
from tests.support.forks import in_child, outcome

from tacit.accounting.filters import BudgetCharge
from tacit.errors import ErrorCode, Failed, ParameterError, Refused
from tacit.ledger.entries import EntryKind, Reservation
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import verify

LIMITS = limits("3", ada="2", bob="2")
HALF = noise("0.5")
NOTHING = BudgetCharge.zero()
SOON = 30.0  # seconds; a wait for somebody else's patience of 60 would be longer


@pytest.fixture
def ledger(place):
    with Ledger(place, LIMITS, patience=60) as ledger:
        yield ledger
        assert verify(ledger).problems == ()


def kinds(ledger: Ledger) -> list[EntryKind]:
    return [entry.kind for entry in ledger.entries()]


def answered(ledger: Ledger, analyst: str = "ada", key: str = "a", request: str = "") -> Reservation:
    return ledger.commit(ledger.reserve(analyst, HALF, key, request=request), b"12")


# Names of questions


def test_the_same_name_and_question_is_one_charge_and_one_answer(ledger):
    claim = answered(ledger, request="r-1")
    before = list(ledger.entries())
    assert ledger.reserve("ada", HALF, "a", request="r-1") == claim
    assert list(ledger.entries()) == before
    assert claim.receipt.request == "r-1"
    assert ledger.standing("ada").spent == price("0.5")


@rarely_on_postgres
@pytest.mark.parametrize(("loss", "key"), [(HALF, "b"), (noise("0.25"), "a")])
def test_the_same_name_for_another_question_is_refused(ledger, loss, key):
    answered(ledger, request="r-1")
    before = list(ledger.entries())
    with pytest.raises(Refused) as refusal:
        ledger.reserve("ada", loss, key, request="r-1")
    assert refusal.value.code is ErrorCode.REQUEST
    assert list(ledger.entries()) == before


@rarely_on_postgres
def test_every_analyst_has_names_of_their_own(ledger):
    answered(ledger, "ada", "a", request="r-1")
    claim = answered(ledger, "bob", "b", request="r-1")
    assert claim.receipt.charged == price("0.5")
    assert ledger.reserve("bob", HALF, "b", request="r-1") == claim


@rarely_on_postgres
def test_questions_without_a_name_are_questions_of_their_own(ledger):
    first, second = answered(ledger), answered(ledger)
    assert (first.receipt.repeat, second.receipt.repeat) == (False, True)
    assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.COMMIT]


def test_a_failed_request_fails_again_without_a_charge(ledger):
    ledger.fail(ledger.reserve("ada", HALF, "a", request="r-1"))
    before = list(ledger.entries())
    for _ in range(2):
        with pytest.raises(Failed):
            ledger.reserve("ada", HALF, "a", request="r-1")
    assert list(ledger.entries()) == before
    # Also where another request for the same question was answered since.
    answered(ledger, request="r-2")
    with pytest.raises(Failed):
        ledger.reserve("ada", HALF, "a", request="r-1")


def test_a_repeat_is_bound_to_its_name_too(ledger):
    answered(ledger, "ada", "a", request="r-1")
    repeat = ledger.reserve("bob", HALF, "a", request="r-9")
    assert (repeat.receipt.charged, repeat.receipt.repeat) == (price("0.5"), True)
    before = list(ledger.entries())
    assert ledger.reserve("bob", HALF, "a", request="r-9") == repeat
    with pytest.raises(Refused, match="another question"):
        ledger.reserve("bob", HALF, "b", request="r-9")
    assert list(ledger.entries()) == before


@rarely_on_postgres
def test_a_refusal_does_not_bind_its_name(ledger):
    with pytest.raises(Refused) as refusal:
        ledger.reserve("ada", noise("2.5"), "a", request="r-1")
    assert refusal.value.code is ErrorCode.BUDGET
    assert ledger.reserve("ada", HALF, "b", request="r-1").receipt.request == "r-1"


@rarely_on_postgres
@pytest.mark.slow
@pytest.mark.parametrize("bad", ["x" * 201, " r", "r ", "r\n", "r\x00", "\t", "r\u200b"])
def test_what_is_not_a_name_is_a_parameter_error(ledger, bad):
    before = list(ledger.entries())
    with pytest.raises(ParameterError) as error:
        ledger.reserve("ada", HALF, "a", request=bad)
    assert error.value.name == "request"
    assert list(ledger.entries()) == before


@pytest.mark.slow
@pytest.mark.parametrize("good", ["x" * 200, "2f1c-4e", "Frau Müllers Frage 7", "'; DROP TABLE entries; --", "%s ?"])
def test_a_name_is_any_printable_text(ledger, good):
    claim = answered(ledger, request=good)
    assert ledger.reserve("ada", HALF, "a", request=good) == claim


def test_a_name_holds_after_opening_again(ledger, place):
    claim = answered(ledger, request="r-1")
    with Ledger(place, LIMITS) as again:
        assert again.reserve("ada", HALF, "a", request="r-1") == claim


@rarely_on_postgres
@pytest.mark.slow
def test_a_request_is_answered_by_another_analyst_s_answer(place):
    # Both are charged, as neither waits; bob's name leads to the one answer there is.
    with Ledger(place, LIMITS, patience=0) as ledger:
        ledger.reserve("bob", HALF, "a", request="r-1")
        answered(ledger, "ada", "a")
        claim = ledger.reserve("bob", HALF, "a", request="r-1")
        assert claim.stored == b"12"
        assert ledger.overall().spent == price("0.5") + price("0.5")
        assert verify(ledger).problems == ()


# Questions in flight


def while_in_flight(ledger: Ledger, claim: Reservation, ask, settle) -> Reservation:
    """What another thread gets that asks while a claim is worked on."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask)
        time.sleep(0.15)
        assert not waiting.done()
        settle()
        return waiting.result(timeout=SOON)


@pytest.mark.slow
@pytest.mark.parametrize(("analyst", "own"), [("ada", NOTHING), ("bob", price("0.5"))])
def test_a_second_thread_waits_and_gets_the_same_answer(ledger, analyst, own):
    claim = ledger.reserve("ada", HALF, "a")
    found = while_in_flight(
        ledger, claim, lambda: ledger.reserve(analyst, HALF, "a"), lambda: ledger.commit(claim, b"12")
    )
    assert (found.stored, found.receipt.charged) == (b"12", own)
    assert ledger.overall().spent == price("0.5")
    assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.COMMIT] + [EntryKind.REPEAT] * (
        own != NOTHING
    )


@pytest.mark.slow
def test_the_same_request_waits_for_itself(ledger):
    claim = ledger.reserve("ada", HALF, "a", request="r-1")
    found = while_in_flight(
        ledger,
        claim,
        lambda: ledger.reserve("ada", HALF, "a", request="r-1"),
        lambda: ledger.commit(claim, b"12"),
    )
    assert (found.stored, found.entry) == (b"12", claim.entry)
    assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.COMMIT]


@rarely_on_postgres
@pytest.mark.slow
def test_the_same_request_fails_with_itself(ledger):
    claim = ledger.reserve("ada", HALF, "a", request="r-1")
    with pytest.raises(Failed):
        while_in_flight(
            ledger, claim, lambda: ledger.reserve("ada", HALF, "a", request="r-1"), lambda: ledger.fail(claim)
        )
    assert ledger.standing("ada").spent == price("0.5")


@rarely_on_postgres
@pytest.mark.slow
def test_who_waited_for_a_failure_is_charged(ledger):
    claim = ledger.reserve("ada", HALF, "a")
    found = while_in_flight(ledger, claim, lambda: ledger.reserve("bob", HALF, "a"), lambda: ledger.fail(claim))
    assert found.stored is None
    assert (ledger.standing("bob").spent, ledger.overall().spent) == (price("0.5"), price("0.5") + price("0.5"))


@pytest.mark.parametrize("loss", [HALF, noise("0.25")])
def test_other_questions_do_not_wait(ledger, loss):
    ledger.reserve("ada", HALF, "a")
    begun = time.monotonic()
    ledger.reserve("ada", loss, "a" if loss != HALF else "b")
    assert time.monotonic() - begun < SOON


@pytest.mark.slow
@pytest.mark.parametrize(("analyst", "own"), [("ada", NOTHING), ("bob", price("0.5"))])
def test_a_second_process_waits_and_gets_the_same_answer(ledger, place, analyst, own):
    reserved, go = os.pipe()
    ready, tell = os.pipe()

    def work() -> int:
        os.read(reserved, 1)
        with Ledger(place, LIMITS, patience=60) as other:
            os.write(tell, b"1")
            found = other.reserve(analyst, HALF, "a")
        return 0 if (found.stored, found.receipt.charged) == (b"12", own) else 1

    child = in_child(work)  # before there is a claim: a fork closes the connection that PostgreSQL knows it by
    claim = ledger.reserve("ada", HALF, "a")
    os.write(go, b"1")
    os.read(ready, 1)
    time.sleep(0.15)
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    ledger.commit(claim, b"12")
    assert outcome(child) == 0
    assert ledger.overall().spent == price("0.5")


# Whoever asked is gone


def die_in_flight(place, request: str = "") -> None:
    """A process is killed between its charge and its answer."""

    def work() -> int:
        Ledger(place, LIMITS).reserve("ada", HALF, "a", request=request)
        os.kill(os.getpid(), signal.SIGKILL)
        return 1

    assert outcome(in_child(work)) == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("request_name", ["", "r-1", "r-2"])
def test_the_claim_of_a_dead_process_is_taken_up_at_once_by_who_paid(ledger, place, request_name):
    die_in_flight(place, request="r-1")
    begun = time.monotonic()
    claim = ledger.reserve("ada", HALF, "a", request=request_name)
    assert time.monotonic() - begun < SOON
    assert (claim.entry, claim.stored) == (2, None)
    assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.RESUME]
    done = ledger.commit(claim, b"12")
    assert ledger.standing("ada").spent == ledger.overall().spent == price("0.5")
    for name in {"r-1", request_name} - {""}:
        assert ledger.reserve("ada", HALF, "a", request=name).stored == done.stored == b"12"
    assert kinds(ledger)[3:] == [EntryKind.COMMIT]


@pytest.mark.slow
@rarely_on_postgres
def test_a_request_that_took_up_a_claim_fails_with_it(ledger, place):
    die_in_flight(place, request="r-1")
    ledger.fail(ledger.reserve("ada", HALF, "a", request="r-2"))
    for name in ("r-1", "r-2"):
        with pytest.raises(Failed):
            ledger.reserve("ada", HALF, "a", request=name)
    with pytest.raises(Refused, match="another question"):
        ledger.reserve("ada", HALF, "b", request="r-2")


def test_the_claim_of_a_dead_process_is_charged_anew_to_another_analyst(ledger, place):
    die_in_flight(place)
    begun = time.monotonic()
    claim = ledger.reserve("bob", HALF, "a")
    assert time.monotonic() - begun < SOON
    assert claim.receipt.charged == price("0.5")
    assert ledger.overall().spent == price("0.5") + price("0.5")
    ledger.commit(claim, b"13")
    # The one who paid first gets the answer that there is now, for nothing.
    late = ledger.reserve("ada", HALF, "a")
    assert (late.stored, late.entry) == (b"13", 2)
    assert ledger.standing("ada").spent == price("0.5")


@pytest.mark.slow
def test_a_claim_survives_its_process_many_times(ledger, place):
    for _ in range(3):
        die_in_flight(place)
    assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.RESUME, EntryKind.RESUME]
    assert ledger.overall().spent == price("0.5")


class Interrupted(BaseException):
    """What a user's Ctrl-C is to the ledger."""


def interrupt(ledger: Ledger, claim: Reservation) -> None:
    with pytest.raises(Interrupted), ledger.hold(claim):
        raise Interrupted


def test_an_interruption_while_held_is_taken_up_at_once(ledger):
    first = ledger.reserve("ada", HALF, "a", request="r-1")
    interrupt(ledger, first)
    begun = time.monotonic()
    second = ledger.reserve("ada", HALF, "a", request="r-1")
    assert time.monotonic() - begun < SOON
    assert second.entry == first.entry
    assert ledger.commit(second, b"12").stored == b"12"
    assert ledger.overall().spent == price("0.5")


@pytest.mark.slow
def test_an_interruption_while_held_is_seen_by_other_processes(ledger, place):
    interrupt(ledger, ledger.reserve("ada", HALF, "a"))

    def work() -> int:
        with Ledger(place, LIMITS, patience=60) as other:
            claim = other.reserve("ada", HALF, "a")
            other.commit(claim, b"12")
        return claim.entry

    child = in_child(work)
    ledger.head()
    assert outcome(child) == 2
    assert ledger.reserve("ada", HALF, "a").stored == b"12"
    assert ledger.overall().spent == price("0.5")


@rarely_on_postgres
@pytest.mark.parametrize("settle", ["commit", "fail"])
def test_a_settled_claim_is_not_released(ledger, settle):
    claim = ledger.reserve("ada", HALF, "a")
    with ledger.hold(claim):
        ledger.commit(claim, b"12") if settle == "commit" else ledger.fail(claim)
    before = kinds(ledger)
    interrupt(ledger, claim)
    assert kinds(ledger) == before


@rarely_on_postgres
def test_of_two_who_work_on_one_claim_the_first_answer_stands(ledger):
    first = ledger.reserve("ada", HALF, "a")
    interrupt(ledger, first)
    second = ledger.reserve("ada", HALF, "a")
    assert ledger.commit(second, b"12").stored == b"12"
    assert ledger.commit(first, b"13").stored == b"12"  # it was not gone after all


@rarely_on_postgres
def test_a_late_answer_does_not_undo_a_failure(ledger):
    first = ledger.reserve("ada", HALF, "a")
    interrupt(ledger, first)
    ledger.fail(ledger.reserve("ada", HALF, "a"))
    with pytest.raises(Failed):
        ledger.commit(first, b"13")


@pytest.mark.slow
def test_when_patience_is_over_the_question_is_taken_up(place):
    with Ledger(place, LIMITS, patience=0.3) as ledger:
        first = ledger.reserve("ada", HALF, "a")
        begun = time.monotonic()
        second = ledger.reserve("ada", HALF, "a")
        assert 0.3 <= time.monotonic() - begun < SOON
        assert second.entry == first.entry  # by who paid, free of charge
        assert ledger.reserve("bob", HALF, "a").receipt.charged == price("0.5")  # by another, charged anew
        assert ledger.overall().spent == price("0.5") + price("0.5")
        assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.RESUME, EntryKind.RESERVE]
        assert verify(ledger).problems == ()


def test_many_threads_under_one_name_are_charged_once(ledger):
    passes, one_pass = [], threading.Lock()

    def ask(number: int) -> bytes | None:
        claim = ledger.reserve("ada", HALF, "a", request="r-1")
        if claim.stored is None:
            with one_pass:
                passes.append(number)
            claim = ledger.commit(claim, f"{number}".encode())
        return claim.stored

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(16)))) == 1
    assert len(passes) == 1
    assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.COMMIT]
