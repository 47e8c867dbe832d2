"""Averaging: fresh noise goes away like 1/sqrt(t), a remembered answer does not.

Seeds are fixed. The normal and Hoeffding tails used here are at 6.5 standard errors or 1e-10: false alarms below 1e-9.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.counts import FULL

import tacit
from tacit.attacks.averaging import average_answers, required_answers, reword_condition
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.mechanisms import Laplace
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

ASKS = 100_000 if FULL else 20_000
TRUTH = 120
PRICE = Fraction(1, 10)


def fresh(seed: bytes, epsilon: Fraction = PRICE):
    """A curator that draws new noise for every question, repeated or not."""
    mechanism, bits = Laplace.calibrated(epsilon, 1), ReplayBits(seed)
    return lambda question: mechanism.release([TRUTH], bits)[0]


def remembering(seed: bytes):
    """A curator that gives a repeat the answer it gave before, and charges new texts until its budget is spent."""
    ask = fresh(seed)
    known: dict[str, int] = {}

    def answer(question: str) -> int:
        if question not in known and len(known) == 10:
            raise Refused(ErrorCode.BUDGET, "epsilon 1 is spent", fix="ask for less")
        if question not in known:
            known[question] = ask(question)
        return known[question]

    return answer


@pytest.fixture(scope="module")
def found():
    """Very many fresh answers to one question."""
    return average_answers(fresh(b"averages"), ["n"] * ASKS)


def test_fresh_noise_averages_out(found):
    # Lap(10) has a standard deviation of about 10 sqrt 2 = 14.1; the mean of 20,000 is off by 0.1.
    assert found.deviation == pytest.approx(14.1, rel=0.05)
    assert abs(found.estimate - TRUTH) < 6.5 * 14.2 / math.sqrt(ASKS)
    assert (found.verdict, found.value) == ("recovered", TRUTH)
    assert found.low < TRUTH < found.high
    assert found.method == "batch means"


def test_the_error_falls_like_the_root_of_the_number_of_asks(found):
    # The standard error of 100 times as many is a tenth. Two sample deviations are within 15 % of each other.
    few = average_answers(fresh(b"root"), ["n"] * (ASKS // 100))
    assert few.standard_error / found.standard_error == pytest.approx(10, rel=0.35)
    assert few.verdict == "narrowed"


def test_the_test_of_the_mean_has_power(found):
    # A curator whose truth is off by one is told apart: 1 is more than 9 standard errors of 0.1.
    assert abs(found.estimate - (TRUTH + 1)) > 6.5 * 14.2 / math.sqrt(ASKS)


def test_a_repeat_that_is_one_answer_teaches_nothing_more():
    found = average_answers(remembering(b"same"), ["n"] * 1000)
    assert found.verdict == "repeats are one answer"
    assert (found.low, found.high, found.value) == (-math.inf, math.inf, None)
    assert found.to_dict()["low"] is None
    assert "teaches nothing" in str(found)


def test_rewordings_are_fresh_answers_and_each_is_charged():
    # ten rewordings at 0.1 spend the budget of 1; the eleventh is refused
    found = average_answers(remembering(b"reworded"), reword_condition("age >= 65", "age", 1000))
    assert found.answer_count == 10 and found.distinct > 1
    assert found.stopped == "epsilon 1 is spent"
    assert found.verdict == "narrowed"
    assert "refused" in str(found)


def test_a_curator_answers_a_repeat_the_same_and_charges_rewordings(tmp_path):
    policy = {
        "privacy": {"epsilon": 3.0},
        "ledger": {"store": tmp_path / "grades.ledger"},
        "analysts": {"ada": {"epsilon": 0.5}},
        "tables": {"grades": {"unit": "row", "columns": {"grade": {"type": "int", "lower": 0, "upper": 100}}}},
    }
    with tacit.open(policy, data={"grades": pa.table({"grade": [90] + [50] * 29})}) as curator:
        ada = curator.analyst("ada")

        def ask(condition: str) -> float:
            return ada.ask(f"SELECT COUNT(*) AS n FROM grades WHERE {condition}", epsilon=0.1).value

        assert average_answers(ask, ["grade > 80"] * 20).verdict == "repeats are one answer"
        found = average_answers(ask, reword_condition("grade > 80", "grade", 20))
    assert found.answer_count == 4  # five times 0.1 is the budget, and the first text has had its share
    assert "budget" in found.stopped


def test_a_first_refusal_is_the_callers():
    def closed(question: str) -> float:
        raise Refused(ErrorCode.BUDGET, "nothing is left")

    with pytest.raises(Refused):
        average_answers(closed, ["n"])


def test_hoeffding_holds_where_answers_are_bounded():
    # 400 answers in [0, 200] at 1 - 1e-10: half width 200 sqrt(ln(2e10)/800) = 34.4
    rng = np.random.default_rng(3)
    found = average_answers(lambda q: TRUTH + rng.uniform(-80, 80), ["n"] * 400, bounds=(0, 200), confidence=1 - 1e-10)
    assert found.method == "Hoeffding"
    assert (found.high - found.low) / 2 == pytest.approx(200 * math.sqrt(math.log(2e10) / 800), rel=1e-6)
    assert found.low < TRUTH < found.high


def test_the_interval_covers_as_often_as_it_says():
    # 400 intervals at 0.9: the number that covers is Binomial(400, 0.9), below 315 with probability 2e-11 (and a t
    # interval over 40 Laplace answers covers nearly as often as it says).
    covered = 0
    for seed in range(400):
        found = average_answers(fresh(b"cover %d" % seed), ["n"] * 40, confidence=0.9)
        covered += found.low <= TRUTH <= found.high
    assert 315 < covered < 395


def test_how_many_asks_it_takes():
    # epsilon 0.1: deviation 14.14, (2 * 2.5758 * 14.142)^2 = 5307.9 asks, at a price of 531 in all
    assert required_answers(14.142135623730951) == 5308
    assert required_answers(0.01) == 1


@given(st.floats(0, 1e3), st.floats(0.01, 10))
def test_half_the_step_takes_four_times_the_asks(deviation, step):
    whole, half = required_answers(deviation, step=step), required_answers(deviation, step=step / 2)
    assert half <= 4 * whole
    assert whole <= half


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=50), st.integers(-500, 500))
def test_a_shift_of_all_answers_shifts_the_interval(answers, shift):
    one = average_answers(lambda index: answers[index], range(len(answers)))
    other = average_answers(lambda index: answers[index] + shift, range(len(answers)))
    assert other.estimate == pytest.approx(one.estimate + shift)
    if one.distinct > 1:
        assert other.high - other.low == pytest.approx(one.high - one.low)
    else:
        assert other.verdict == one.verdict


@pytest.mark.parametrize(
    ("ask", "questions", "options", "name"),
    [
        (lambda q: math.nan, ["n"], {}, "ask"),
        (lambda q: math.inf, ["n"], {}, "ask"),
        (lambda q: "many", ["n"], {}, "ask"),
        (lambda q: 1 / 0, ["n"], {}, "ask"),
        (lambda q: 1, [], {}, "questions"),
        (lambda q: 1, ["n"], {"confidence": 1}, "confidence"),
        (lambda q: 1, ["n"], {"step": 0}, "step"),
        (lambda q: 5, ["n"], {"bounds": (0, 1)}, "bounds"),
    ],
)
def test_what_cannot_be_averaged_is_a_clear_error(ask, questions, options, name):
    with pytest.raises(ParameterError) as caught:
        average_answers(ask, questions, **options)
    assert caught.value.name == name and caught.value.fix


def test_a_raising_curator_is_the_cause():
    with pytest.raises(ParameterError) as caught:
        average_answers(lambda q: 1 / 0, ["n"])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_result_is_json_and_a_picture(tmp_path):
    found = average_answers(fresh(b"picture"), ["n"] * 200)
    assert json.loads(json.dumps(found.to_dict()))["asked"] == 200
    found.plot(tmp_path / "mean.svg")
    assert (tmp_path / "mean.svg").stat().st_size > 1000
    assert average_answers(lambda q: 3, ["n"]).verdict == "one answer"
    assert "3" in str(average_answers(lambda q: 3, ["n"]))
