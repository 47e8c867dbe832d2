"""What a ledger tells others: an entry for a registry, a price by another accountant, whether a receipt holds."""

from __future__ import annotations

import math
import shutil
from fractions import Fraction

import pytest
from tests.ledger.conftest import grains, limits

from tacit.accounting.epsilon_delta import METHODS
from tacit.accounting.epsilon_delta import epsilon as price_of
from tacit.ledger.entries import GENESIS
from tacit.ledger.export import compose_nonadaptively, describe_deployment
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.recovery import accept_loss
from tacit.ledger.signing import SigningKey
from tacit.ledger.verify import check_receipt
from tacit.privacy.loss import ApproximateDp, Compose, GaussianNoise, LaplaceNoise, Loss, Repeat

DELTA = Fraction(1, 10**6)
SCOPE = {"neighbors": "add-remove", "unit of visits": "patient", "unit of staff": "row"}
LIMITS = limits("10", delta="1e-6", ada="10", bo="5", monthly=["bo"], scope=SCOPE)

LAPLACE = LaplaceNoise(Fraction(10), 1)  # epsilon 0.1
GAUSSIAN = GaussianNoise(Fraction(400), 1)  # sigma 20: rho 1/800
KEYS = Compose((ApproximateDp(Fraction(1, 5), Fraction(1, 10**9)), LAPLACE))  # epsilon 0.3, delta 1e-9


def ask(ledger: Ledger, analyst: str, loss: Loss, question: str):
    return ledger.commit(ledger.reserve(analyst, loss, question, delta=Fraction(1, 10**9)), b"12")


@pytest.fixture
def told(place, key, witness):
    """Three questions with noise of three kinds, one of them asked by another analyst too, one failure."""
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        ask(ledger, "ada", LAPLACE, "a")
        ask(ledger, "bo", LAPLACE, "a")
        ask(ledger, "ada", LAPLACE, "b")
        ask(ledger, "ada", GAUSSIAN, "c")
        ask(ledger, "ada", KEYS, "d")
        ledger.fail(ledger.reserve("ada", LAPLACE, "e"))
        ask(ledger, "ada", LAPLACE, "a")
    with LedgerReader(place) as history:
        yield history


def test_the_entry_for_a_registry(told, key):
    found = describe_deployment(told, Fraction(10), DELTA)
    entries = list(told.entries())
    assert found.pop("spent") == {
        "epsilon": str(float(Fraction(told.overall().spent.epsilon, 10**12))),
        "delta": told.overall().spent.delta_a / 1e18,
    }
    assert found == {
        "model": "central, interactive",
        "relation": "add-remove",
        "unit": {"visits": "patient", "staff": "row"},
        "epsilon": "10",
        "delta": 1e-6,
        "composition": "fully adaptive: a union of the basic and the zCDP filter",
        "mechanisms": ["discrete Gaussian", "discrete Laplace", "partition selection"],
        "analysts": 2,
        "refresh": ["monthly"],
        "answers": 4,  # a, b, c, d
        "failures": 1,  # e
        "repeats": 1,  # a by bo; what ada was shown again for nothing is not written down
        "accepted_losses": 0,
        "first": entries[0].time,
        "last": entries[-1].time,
        "entries": 12,  # open; five questions in two entries each; one repeat
        "head": told.head(),
        "public_key": key.public,
    }


def test_the_entry_of_a_ledger_that_was_never_asked(tmp_path):
    with Ledger(tmp_path / "ledger", limits("1")) as ledger:
        found = describe_deployment(ledger, Fraction(1), Fraction(0))
    assert (found["answers"], found["mechanisms"], found["analysts"], found["refresh"]) == (0, [], 0, [])
    assert (found["unit"], found["relation"], found["public_key"]) == ({}, "", "")
    assert found["head"] != GENESIS


def test_the_entry_tells_of_a_loss_that_was_accepted(tmp_path, key, witness):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        ask(ledger, "ada", LAPLACE, "a")
    path.unlink()
    accept_loss(path, LIMITS, key=key, witness=witness, because="the disk broke")
    with LedgerReader(path) as history:
        assert describe_deployment(history, Fraction(10), DELTA)["accepted_losses"] == 3  # ada, bo, all together


@pytest.mark.slow
@pytest.mark.parametrize("by", METHODS)
def test_the_price_is_that_of_the_passes_over_the_data(told, by):
    # a, b and e had Laplace noise; what bo was shown again was no new pass.
    passes = Compose((Repeat(LAPLACE, 3), GAUSSIAN, KEYS))
    found = compose_nonadaptively(told, 1e-6, by)
    assert found.charges == 5
    assert found.epsilon == pytest.approx(price_of(passes, 1e-6, by), rel=1e-9)
    assert found.standing == told.overall()
    assert (found.by, found.delta) == (by, 1e-6)


def test_the_price_says_that_it_decides_nothing(told):
    text = str(compose_nonadaptively(told, 1e-6))
    assert text.startswith("as if the 5 charged questions had been fixed beforehand: epsilon ")
    assert "what decides are the filters" in text


@pytest.mark.parametrize("by", METHODS)
def test_nothing_asked_costs_nothing(tmp_path, by):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        assert compose_nonadaptively(ledger, 1e-6, by).epsilon == 0


def test_the_price_counts_what_may_be_lost(tmp_path, key, witness):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        ask(ledger, "ada", LAPLACE, "a")
    copy = shutil.copy(path, tmp_path / "copy")
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        ask(ledger, "ada", KEYS, "b")
    shutil.copy(copy, path)
    accept_loss(path, LIMITS, key=key, witness=witness, because="the witness saw epsilon 0.3 and delta 1e-9 more")
    with LedgerReader(path) as history:
        found = compose_nonadaptively(history, 1e-6, "basic")
        assert (found.charges, found.epsilon) == (1, pytest.approx(0.4))
        assert str(found).startswith("as if the 1 charged questions and those that may be lost had been fixed before")
        assert compose_nonadaptively(history, 0.9e-9, "basic").epsilon == math.inf
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        ask(ledger, "ada", LAPLACE, "c")
    witness.path.unlink()
    accept_loss(path, LIMITS, key=key, witness=witness, because="nobody knows")
    with LedgerReader(path) as history:  # all of it is within the cap of (10, 1e-6), and no more is known of any part
        assert compose_nonadaptively(history, 2e-6, "pld").epsilon == pytest.approx(10)
        assert compose_nonadaptively(history, 0.9e-6, "pld").epsilon == math.inf


def test_a_new_key_adds_nothing_to_the_price(tmp_path, key, witness):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        ask(ledger, "ada", LAPLACE, "a")
    accept_loss(path, LIMITS, key=SigningKey.at(tmp_path / "other", create=True), witness=witness, because="a lost key")
    with LedgerReader(path) as history:
        assert str(compose_nonadaptively(history, 0, "basic")).startswith("as if the 1 charged questions had been")


@pytest.mark.slow
def test_a_better_accountant_tells_less_of_many_questions(tmp_path):
    # 100 of epsilon 0.1: 10 by adding up, 4.77 at delta 1e-6 by the distribution of the privacy loss.
    with Ledger(tmp_path / "ledger", limits("100", ada="100")) as ledger:
        for number in range(100):
            ledger.reserve("ada", LAPLACE, f"{number}")
        assert compose_nonadaptively(ledger, 1e-6, "basic").epsilon == pytest.approx(10)
        assert compose_nonadaptively(ledger, 1e-6, "pld").epsilon == pytest.approx(4.77, abs=0.01)
        assert ledger.overall().spent.epsilon == grains("10")  # what decides


# Receipts.


def altered(text: str) -> str:
    return ("1" if text[0] == "0" else "0") + text[1:]


def test_a_true_receipt_holds_and_an_altered_one_does_not(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        claims = [ask(ledger, "ada", LAPLACE, "a"), ask(ledger, "bo", LAPLACE, "a"), ask(ledger, "ada", LAPLACE, "a")]
        for claim in claims:
            receipt = claim.receipt.to_dict()
            assert check_receipt(ledger, receipt) == []
            for name in ("head", "signature"):
                unsigned = {**receipt, name: altered(receipt[name])}
                assert check_receipt(ledger, unsigned) == ["the receipt is not signed by this ledger"]
                missing = {field: value for field, value in receipt.items() if field != name}
                assert check_receipt(ledger, missing) == ["the receipt is not signed by this ledger"]


def test_a_receipt_that_says_something_else_does_not_hold(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        for analyst in ("ada", "bo"):
            receipt = ask(ledger, analyst, LAPLACE, "a").receipt.to_dict()
            others = {"entry": 1, "time": "2020", "who": "cy", "key": "b", "charged_epsilon": "9", "repeat": None}
            for name, value in others.items():  # a receipt of bo's that says nothing was charged is one of a repeat
                assert check_receipt(ledger, {**receipt, name: value}) == [f"its {name} is not what the ledger says"]


def test_a_receipt_of_a_question_taken_up_again_holds(place, key):
    with Ledger(place, LIMITS, key=key) as ledger:
        ledger.reserve("ada", LAPLACE, "a", request="mine")
    with Ledger(place, LIMITS, key=key) as ledger:
        for _ in range(2):  # taken up, then handed out again
            claim = ledger.commit(ledger.reserve("ada", LAPLACE, "a", request="mine"), b"12")
            assert check_receipt(ledger, claim.receipt.to_dict()) == []


def test_a_claim_without_an_answer_is_not_signed(tmp_path, key):
    with Ledger(tmp_path / "ledger", LIMITS, key=key) as ledger:
        receipt = ledger.reserve("ada", LAPLACE, "a").receipt
        assert receipt.signature == ""
        assert check_receipt(ledger, receipt.to_dict()) == ["the receipt is not signed by this ledger"]


def test_a_receipt_of_another_ledger_does_not_hold(tmp_path, key):
    other = SigningKey.at(tmp_path / "other.key", create=True)
    with Ledger(tmp_path / "one", LIMITS, key=key) as one, Ledger(tmp_path / "two", LIMITS, key=other) as two:
        receipt = ask(two, "ada", LAPLACE, "a").receipt.to_dict()
        assert check_receipt(two, receipt) == []
        assert check_receipt(one, receipt) == ["the receipt is not signed by this ledger"]


def test_a_receipt_proves_that_its_entry_was_rolled_back(tmp_path, key):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, key=key) as ledger:
        kept = ask(ledger, "ada", LAPLACE, "a").receipt.to_dict()
    shutil.copy(path, tmp_path / "copy")
    with Ledger(path, LIMITS, key=key) as ledger:
        lost = ask(ledger, "ada", LAPLACE, "b").receipt.to_dict()
        assert check_receipt(ledger, lost) == []
    shutil.copy(tmp_path / "copy", path)
    with Ledger(path, LIMITS, key=key) as ledger:
        assert check_receipt(ledger, kept) == []
        told = check_receipt(ledger, lost)
        assert told == ["the receipt is signed by this ledger, which no longer holds what it says"]
        ask(ledger, "ada", LAPLACE, "c")  # another entry in its place
        assert check_receipt(ledger, lost) == told
