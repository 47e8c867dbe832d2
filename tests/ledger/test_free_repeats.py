"""A stored answer shown again for nothing: it writes nothing, and its receipt is that of the charge that paid."""

from __future__ import annotations

import pytest
from tests.ledger.conftest import by_hand, limits, noise, price, write_free_repeat

from tacit.accounting.filters import BudgetCharge
from tacit.errors import ErrorCode, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import check_receipt, verify
from tacit.privacy.loss import LaplaceNoise

LIMITS = limits("9", ada="5", bo="5")
ONE, NOTHING = noise("1"), BudgetCharge.zero()


@pytest.fixture
def ledger(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a", request="first"), b"12")
        yield ledger
        assert verify(ledger, witness).problems == ()


@pytest.mark.slow
def test_free_repeats_do_not_grow_the_ledger(ledger, place, witness):
    before = by_hand(place, "SELECT * FROM entries"), witness.path.read_bytes(), ledger.head()
    for _ in range(50):
        assert ledger.reserve("ada", ONE, "a").stored == b"12"
        assert ledger.repeats(lambda: [ledger.describe_request("ada", ONE, "a")])[0].stored == b"12"
    assert before == (by_hand(place, "SELECT * FROM entries"), witness.path.read_bytes(), ledger.head())


def test_another_analyst_s_charge_is_one_entry(ledger):
    charged = ledger.reserve("bo", ONE, "a")
    before = list(ledger.entries())
    free = ledger.reserve("bo", ONE, "a")
    assert list(ledger.entries()) == before
    assert before[-1].kind is EntryKind.REPEAT
    assert (charged.receipt.charged, free.receipt.charged, free.entry) == (price("1"), NOTHING, charged.entry)


@pytest.mark.slow
def test_the_receipt_of_a_free_repeat_names_the_charge_that_paid(ledger):
    first = ledger.reserve("ada", ONE, "a", request="first").receipt
    for analyst, paid in (("ada", first), ("bo", ledger.reserve("bo", ONE, "a").receipt)):
        ledger.reserve("ada", ONE, analyst)  # what is left now is not what was left then
        receipt = ledger.reserve(analyst, ONE, "a").receipt
        assert (receipt.entry, receipt.time, receipt.head) == (paid.entry, paid.time, paid.head)
        assert (receipt.repeat, receipt.charged, receipt.analyst_budget.spent) == (
            True,
            NOTHING,
            ledger.standing(analyst).spent,
        )
        plain = receipt.to_dict()
        assert check_receipt(ledger, plain) == []
        for name, other in [("entry", 1), ("who", "cy"), ("key", "z"), ("time", "2020")]:
            assert check_receipt(ledger, {**plain, name: other}) == [f"its {name} is not what the ledger says"]


def test_a_receipt_says_what_was_charged_and_under_which_name(ledger):
    plain = ledger.commit(ledger.reserve("ada", ONE, "b", request="monday"), b"34").receipt.to_dict()
    assert check_receipt(ledger, plain) == []
    forged = {"answer_epsilon": "0.5", "answer_delta": 0.1, "answer_rho": 0.0, "request": "tuesday"}
    for name, other in forged.items():
        assert check_receipt(ledger, {**plain, name: other}) == [f"its {name} is not what the ledger says"]


def test_the_receipt_of_a_failed_charge_holds_and_is_none_of_a_repeat(ledger, key):
    claim = ledger.reserve("ada", ONE, "f")
    ledger.fail(claim)
    head = list(ledger.entries())[-1].hash
    plain = {**claim.receipt.to_dict(), "head": head, "signature": key.sign(head)}
    assert check_receipt(ledger, plain) == []
    assert check_receipt(ledger, {**plain, "repeat": True, "charged_epsilon": "0"}) != []


@pytest.mark.slow
def test_a_free_repeat_binds_no_name_and_heeds_those_that_are_bound(ledger):
    for name in ("new", "new", "first"):
        assert ledger.reserve("ada", ONE, "a", request=name).stored == b"12"
    # The name is still free for a question that is charged, once.
    claim = ledger.commit(ledger.reserve("ada", ONE, "b", request="new"), b"34")
    assert ledger.reserve("ada", ONE, "b", request="new") == claim
    # From then on it is that question's, and asking the other one under it is refused as ever.
    for question, name in (("a", "new"), ("b", "first")):
        with pytest.raises(Refused) as refusal:
            ledger.reserve("ada", ONE, question, request=name)
        assert refusal.value.code is ErrorCode.REQUEST


def test_a_question_that_costs_nothing_is_written_once_for_each_analyst(ledger):
    free = LaplaceNoise(noise("1").scale, 0)
    ledger.commit(ledger.reserve("ada", free, "c"), b"56")
    assert ledger.reserve("bo", free, "c").receipt.repeat
    before = list(ledger.entries())
    assert ledger.reserve("bo", free, "c").stored == b"56"
    assert list(ledger.entries()) == before


def test_ledgers_that_wrote_free_repeats_down_stay_valid(ledger):
    ledger.reserve("bo", ONE, "a")
    for analyst, name in (("ada", ""), ("ada", "old"), ("bo", ""), ("bo", "old")):
        write_free_repeat(ledger, analyst, "a", name)
    before = list(ledger.entries())
    for analyst in ("ada", "bo"):
        for name in ("", "old"):
            claim = ledger.reserve(analyst, ONE, "a", request=name)
            assert (claim.stored, claim.receipt.charged) == (b"12", NOTHING)
            assert check_receipt(ledger, claim.receipt.to_dict()) == []
    assert list(ledger.entries()) == before


def test_an_answer_is_shown_again_only_once_its_witness_knows_it(ledger, place, key, witness):
    # Whoever stored it was stopped before the witness was told; another process shows it.
    with witness.path.open("r+b") as file:
        file.truncate(file.seek(0, 2) - 80)
    assert witness.last().sequence < 3
    for ask in (lambda: ledger.reserve("ada", ONE, "a"), lambda: ledger.reserve("ada", ONE, "a", request="first")):
        assert ask().stored == b"12"
        assert witness.last().sequence == 3
        with witness.path.open("r+b") as file:
            file.truncate(file.seek(0, 2) - 80)
    ledger.reserve("ada", ONE, "a")
