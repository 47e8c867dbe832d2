"""What an answer says of its charge."""

from __future__ import annotations

import json
from dataclasses import replace

from tacit.accounting.filter import Amount, Standing
from tacit.accounting.receipt import Receipt

HALF = Amount(500_000_000_000, 0)
RECEIPT = Receipt(
    entry=7,
    time="2030-01-01T00:00:00+00:00",
    who="ada",
    key="5eed",
    charged=HALF,
    price=HALF,
    repeat=False,
    analyst=Standing(HALF, Amount(3 * 10**12, 0)),
    overall=Standing(HALF + HALF, Amount(10 * 10**12, 0)),
    head="0123456789abcdef",
)


def test_a_charge_in_one_line():
    assert str(RECEIPT) == "epsilon 0.5 · ada has 2.5 of 3 left · entry 7 · head 0123456789ab"


def test_a_free_repeat():
    repeat = replace(RECEIPT, repeat=True, charged=Amount.zero())
    assert str(repeat) == "a repeat, free · ada has 2.5 of 3 left · entry 7 · head 0123456789ab"


def test_a_repeat_that_someone_else_asked_first_is_charged():
    assert str(replace(RECEIPT, repeat=True)).startswith("epsilon 0.5 · ")


def test_a_charge_of_nothing_is_no_repeat():
    assert str(replace(RECEIPT, charged=Amount.zero())).startswith("epsilon 0 · ")


def test_as_plain_values():
    assert RECEIPT.to_dict() == {
        "entry": 7,
        "time": "2030-01-01T00:00:00+00:00",
        "who": "ada",
        "key": "5eed",
        "charged_epsilon": "0.5",
        "answer_epsilon": "0.5",
        "repeat": False,
        "remaining_epsilon": "2.5",
        "remaining_epsilon_overall": "9",  # 10 less twice a half
        "head": "0123456789abcdef",
    }
    json.dumps(RECEIPT.to_dict())
