"""What an answer says of its charge."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.accounting.filters import BudgetCharge, BudgetStatus, FilterLimits, compute_charge
from tacit.accounting.receipt import Receipt
from tacit.privacy.loss import GaussianNoise

HALF = BudgetCharge(5 * 10**11, 10**12, 2 * 10**14, 0)  # epsilon 0.5, delta 1e-6 and rho 0.2
RECEIPT = Receipt(
    entry=7,
    time="2030-01-01T00:00:00+00:00",
    analyst="ada",
    key="5eed",
    charged=HALF,
    cost=HALF,
    repeat=False,
    analyst_budget=BudgetStatus(HALF, FilterLimits(3 * 10**12, 10**13, 0, 0)),
    overall_budget=BudgetStatus(HALF + HALF, FilterLimits(10 * 10**12, 10**13, 0, 0)),
    head="0123456789abcdef",
)


def test_a_charge_in_one_line():
    assert str(RECEIPT) == "epsilon 0.5, delta 1e-06 · ada has 2.5 of 3 left · entry 7 · head 0123456789ab"


def test_a_free_repeat():
    repeat = replace(RECEIPT, repeat=True, charged=BudgetCharge.zero())
    assert str(repeat) == "a repeat, free · ada has 2.5 of 3 left · entry 7 · head 0123456789ab"


def test_a_repeat_that_someone_else_asked_first_is_charged():
    assert str(replace(RECEIPT, repeat=True)).startswith("epsilon 0.5, delta 1e-06 · ")


def test_a_charge_of_nothing_is_no_repeat():
    assert str(replace(RECEIPT, charged=BudgetCharge.zero())).startswith("epsilon 0 · ")


def test_gaussian_noise_without_a_delta_is_told_by_its_rho():
    # 1/(2 * 100) = 0.005
    free = replace(RECEIPT, charged=compute_charge(GaussianNoise(Fraction(100), 1)))
    assert str(free).startswith("epsilon without bound, rho 0.005 · ")


def test_what_is_left_is_what_the_more_generous_filter_has_left():
    # A has nothing left of 3; B has 0.25 left of rho 0.5, and e tanh(e/2) = 0.25 at e = 0.722
    standing = BudgetStatus(BudgetCharge(3 * 10**12, 0, 25 * 10**13, 0), FilterLimits(3 * 10**12, 0, 5 * 10**14, 0))
    left = replace(RECEIPT, analyst_budget=standing).to_dict()["remaining_epsilon"]
    assert float(left) == pytest.approx(0.722, abs=0.001)


def test_as_plain_values():
    assert replace(RECEIPT, request="r-1", signature="5160").to_dict() == {
        "entry": 7,
        "time": "2030-01-01T00:00:00+00:00",
        "who": "ada",
        "request": "r-1",
        "key": "5eed",
        "charged_epsilon": "0.5",
        "answer_epsilon": "0.5",
        "answer_delta": 1e-6,
        "answer_rho": 0.2,
        "repeat": False,
        "remaining_epsilon": "2.5",
        "remaining_epsilon_overall": "9",  # 10 less twice a half
        "head": "0123456789abcdef",
        "signature": "5160",
    }
    json.dumps(RECEIPT.to_dict())
