"""Failed is spent, not paid: which charge pays for which answer, with others, lost copies and months in between."""

from __future__ import annotations

import shutil

import pytest
from tests.ledger.conftest import by_hand, clock, limits, noise, price, write_free_repeat

from tacit.accounting.filters import BudgetCharge
from tacit.errors import ErrorCode, Failed, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.recovery import accept_loss
from tacit.ledger.verify import verify

LIMITS = limits("9", ada="2", bo="3", cy="1")
ONE, NOTHING = noise("1"), BudgetCharge.zero()


@pytest.fixture
def ledger(place):
    with Ledger(place, LIMITS, patience=0) as ledger:
        yield ledger
        assert verify(ledger).problems == ()


def kinds(ledger: Ledger) -> list[EntryKind]:
    return [entry.kind for entry in ledger.entries()]


def answered(ledger: Ledger, analyst: str, key: str = "a", answer: bytes = b"12") -> bytes | None:
    return ledger.commit(ledger.reserve(analyst, ONE, key), answer).stored


# A charge that failed


def test_a_failed_charge_does_not_pay_for_another_analyst_s_answer(ledger):
    ledger.fail(ledger.reserve("ada", ONE, "a"))
    answered(ledger, "bo")
    again = ledger.reserve("ada", ONE, "a")
    assert (again.stored, again.receipt.charged) == (b"12", price("1"))
    assert ledger.standing("ada").spent == price("1") + price("1")
    assert ledger.overall().spent == price("1") + price("1")  # ada's failure and bo's answer; nothing new is told


def test_a_failed_charge_does_not_pay_where_nothing_is_left(ledger):
    ledger.fail(ledger.reserve("cy", ONE, "a"))
    answered(ledger, "bo")
    with pytest.raises(Refused) as refusal:
        ledger.reserve("cy", ONE, "a")
    assert refusal.value.code is ErrorCode.BUDGET


def test_a_failed_charge_is_no_free_repeat_of_the_server(ledger):
    ledger.fail(ledger.reserve("ada", ONE, "a"))
    answered(ledger, "bo")
    assert ledger.repeats(lambda: [ledger.describe_request("ada", ONE, "a")]) == [None]


def test_the_charge_after_a_failure_pays(ledger):
    ledger.fail(ledger.reserve("ada", ONE, "a"))
    answered(ledger, "ada")
    before = kinds(ledger)
    assert ledger.reserve("ada", ONE, "a").receipt.charged == NOTHING
    assert kinds(ledger) == before


def test_a_failed_charge_pays_in_no_later_month(place):
    with clock() as set_to:
        set_to("2030-01-15")
        with Ledger(place, limits("9", ada="2", bo="2", monthly=["ada"]), patience=0) as ledger:
            ledger.fail(ledger.reserve("ada", ONE, "a"))
            set_to("2030-02-15")
            answered(ledger, "bo")
            assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")
            assert ledger.standing("ada").spent == price("1")  # of February
            set_to("2030-03-15")
            assert ledger.reserve("ada", ONE, "a").receipt.charged == NOTHING
            assert verify(ledger).problems == ()


def test_a_charge_of_another_loss_under_the_same_key_does_not_pay(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"rough")
    answered(ledger, "bo")
    assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")


def test_a_charge_that_an_accepted_loss_failed_does_not_pay(tmp_path, key, witness):
    # Ada's answer was lost with the newest copy; bo's is another one, of a pass of its own.
    place = tmp_path / "ledger"
    with Ledger(place, LIMITS, key=key, witness=witness, patience=0) as ledger:
        claim = ledger.reserve("ada", ONE, "a")
        ledger._flying.clear()
        with ledger.store._lock:
            ledger.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        shutil.copy(place, tmp_path / "copy")
        assert ledger.commit(claim, b"first").stored == b"first"
    shutil.copy(tmp_path / "copy", place)
    accept_loss(place, LIMITS, key=key, witness=witness, because="the disk broke")
    with Ledger(place, LIMITS, key=key, witness=witness, patience=0) as ledger:
        assert answered(ledger, "bo", answer=b"second") == b"second"
        assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")
        assert verify(ledger, witness).problems == ()


def test_a_repeat_that_charged_nothing_does_not_pay(place):
    # An earlier version took ada's failure for a payment, and wrote a repeat that charged nothing.
    with Ledger(place, LIMITS, patience=0) as ledger:
        ledger.fail(ledger.reserve("ada", ONE, "a"))
        answered(ledger, "bo")
        write_free_repeat(ledger, "ada", "a")
        assert not ledger.is_free(ledger.describe_request("ada", ONE, "a"))
        assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")
        assert any("a repeat is charged its privacy loss once" in problem for problem in verify(ledger).problems)


def test_a_failed_charge_is_not_gone_on_with(ledger):
    first = ledger.reserve("ada", ONE, "a")
    ledger.fail(first)
    assert not ledger.is_free(ledger.describe_request("ada", ONE, "a"))
    again = ledger.reserve("ada", ONE, "a")
    assert (again.receipt.charged, ledger.standing("ada").spent) == (price("1"), price("1") + price("1"))
    assert again.entry != first.entry


def test_a_failed_charge_that_is_listed_as_open_is_not_gone_on_with(ledger, place):
    first = ledger.reserve("ada", ONE, "a")
    ledger.fail(first)
    by_hand(place, f"INSERT INTO flights (claim, key, holder) VALUES ({first.entry}, 'a', '')")
    assert not ledger.is_free(ledger.describe_request("ada", ONE, "a"))
    assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")


# A charge without an answer


def test_an_open_charge_of_another_loss_does_not_pay(ledger):
    ledger.reserve("ada", noise("0.5"), "a")
    answered(ledger, "bo")
    assert not ledger.is_free(ledger.describe_request("ada", ONE, "a"))
    assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")
    assert ledger.is_free(ledger.describe_request("ada", noise("0.5"), "a"))


def test_an_open_charge_of_another_analyst_does_not_pay(ledger):
    ledger.reserve("bo", ONE, "a")
    answered(ledger, "cy")
    assert not ledger.is_free(ledger.describe_request("ada", ONE, "a"))
    assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")
    assert ledger.standing("ada").spent == price("1")


def test_an_open_charge_is_settled_by_the_answer_that_it_shows(ledger):
    claim = ledger.reserve("ada", ONE, "a")
    answered(ledger, "bo")
    taken = ledger.reserve("ada", ONE, "a", request="r-1")
    assert (taken.entry, taken.stored) == (claim.entry, b"12")
    assert ledger.standing("ada").spent == price("1")
    assert kinds(ledger)[-2:] == [EntryKind.RESUME, EntryKind.COMMIT]
    again = ledger.reserve("ada", ONE, "a", request="r-1")
    assert (again.stored, again.entry, again.receipt) == (b"12", claim.entry, taken.receipt)


@pytest.mark.parametrize("request_name", ["", "r-1"])
def test_a_charge_that_showed_an_answer_does_not_show_a_failure_too(ledger, request_name):
    # Ada's first process still runs while her second one is shown bo's answer under the same charge. Then it fails.
    claim = ledger.reserve("ada", ONE, "a", request=request_name)
    answered(ledger, "bo")
    assert ledger.reserve("ada", ONE, "a", request=request_name).stored == b"12"
    assert ledger.fail(claim) == b"12"  # what to show in its place
    assert EntryKind.FAIL not in kinds(ledger)
    assert ledger.reserve("ada", ONE, "a").receipt.charged == NOTHING
    assert ledger.standing("ada").spent == price("1")


def test_a_failure_before_the_answer_is_shown_stays_one(ledger):
    claim = ledger.reserve("ada", ONE, "a")
    answered(ledger, "bo")
    assert ledger.fail(claim) is None
    with pytest.raises(Failed):
        ledger.commit(claim, b"13")
    assert ledger.reserve("ada", ONE, "a").receipt.charged == price("1")


# What verify finds by counting


@pytest.mark.parametrize(
    ("history", "is_paid"),
    [
        ("reserve ada, commit ada, free ada, free ada", True),
        ("reserve ada, fail ada, reserve bo, commit bo, free ada", False),
        ("reserve ada, reserve bo, commit bo, free ada, commit ada", True),
        ("reserve ada, reserve bo, commit bo, free ada", True),
        ("reserve ada, reserve bo, commit bo, free ada, fail ada", False),
        ("reserve bo, commit bo, free ada", False),
        ("reserve ada, fail ada, reserve ada, reserve bo, commit bo, free ada", True),
        ("reserve ada, fail ada, reserve ada, reserve bo, commit bo, free ada, fail ada", False),
        ("reserve ada, fail ada, reserve bo, commit bo, charged ada, free ada", True),
    ],
)
def test_verify_counts_what_was_shown_against_what_was_charged(tmp_path, history, is_paid):
    with Ledger(tmp_path / "ledger", LIMITS, patience=0) as ledger:
        claims = {}
        for step in history.split(", "):
            what, analyst = step.split()
            if what in {"reserve", "charged"}:
                claims[analyst] = ledger.reserve(analyst, ONE, "a")
            elif what == "commit":
                ledger.commit(claims[analyst], b"12")
            elif what == "fail":
                ledger.fail(claims[analyst])
            else:
                write_free_repeat(ledger, analyst, "a")
        problems = verify(ledger).problems
    assert (problems == ()) is is_paid, problems
