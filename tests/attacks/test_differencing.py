"""Differencing: without noise one person's value is exact; under epsilon a guess stays a guess.

Seeds are fixed; binomial tails below are at 1e-10, so false alarms stay below 1e-9.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from tests.support.counts import FULL

from tacit.accounting.interval import clopper_pearson_interval
from tacit.attacks.counting_oracles import ExactOracle, GaussianNoiseOracle
from tacit.attacks.differencing import reconstruct_leaving_one_out, subtract_answers
from tacit.attacks.oracle import FunctionOracle
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.mechanisms import Laplace
from tacit.sampling.bits import ReplayBits

SURE = 1 - 1e-10

counts = st.lists(st.integers(0, 1), min_size=1, max_size=40)


@given(counts, st.data())
def test_two_counts_that_differ_in_one_person_are_that_persons_bit(bits, data):
    person = data.draw(st.integers(0, len(bits) - 1))
    everyone = range(len(bits))
    found = subtract_answers(
        lambda who: sum(bits[i] for i in who), list(everyone), [i for i in everyone if i != person]
    )
    assert (found.value, found.verdict) == (bits[person], "exact")


@given(st.lists(st.integers(0, 100), min_size=2, max_size=40))
def test_two_averages_are_one_grade(grades):
    # n times the mean of n, less n - 1 times the mean of n - 1, is the first grade
    n = len(grades)
    found = subtract_answers(np.mean, grades, grades[1:], weights=(n, n - 1), values=())
    assert found.value == pytest.approx(grades[0], abs=1e-9)
    assert found.verdict == "exact"


@given(counts)
def test_leaving_each_out_gives_everyone_away_where_there_is_no_noise(bits):
    found = reconstruct_leaving_one_out(ExactOracle(bits), len(bits), truth=bits)
    assert found.share == 1 and found.queries == len(bits) + 1


def test_all_of_a_hundred_bits_are_blatant():
    bits = np.random.default_rng(1).random(100) < 0.5
    assert reconstruct_leaving_one_out(ExactOracle(bits), 100, truth=bits).blatant


@pytest.mark.slow
def test_noise_leaves_little_to_a_difference():
    # Two Gaussian noises of 2 differ by one of sqrt(8). The first is shared by all guesses, so play many classes of
    # one: a bit is right with probability Phi(0.5/sqrt(8)) = 0.570.
    rng, rounds, right = np.random.default_rng(2), 20_000 if FULL else 1_000, 0
    for _ in range(rounds):
        bit = rng.random() < 0.5
        right += reconstruct_leaving_one_out(GaussianNoiseOracle([bit], 2.0, rng), 1, truth=[bit]).right
    low, high = clopper_pearson_interval(right, rounds, SURE)
    assert low < norm.cdf(0.5 / math.sqrt(8)) < high
    # power: a fifth of the noise is another law, of which 1,000 rounds are missed with probability 1e-24
    assert not low < norm.cdf(0.5 / math.sqrt(8) * 5) < high


def wrong_guesses(price: Fraction, rounds: int) -> int:
    """How often the difference of two counts, each at this price, misses a fair secret bit."""
    mechanism, bits, rng = Laplace.calibrated(price, 1), ReplayBits(b"difference"), np.random.default_rng(4)
    secrets = rng.integers(0, 2, rounds).tolist()
    return sum(
        subtract_answers(lambda n: mechanism.release([n], bits)[0], 50 + bit, 50).value != bit for bit in secrets
    )


@pytest.mark.slow
def test_a_private_difference_errs_as_often_as_the_theorem_says():
    # Two counts at 0.1 each are 0.2-DP together: error at least 1/(e^0.2 + 1) = 0.450166.
    least = subtract_answers(lambda n: n, 1, 0, epsilon=0.2).least_error
    assert least == pytest.approx(0.450166, abs=1e-6)
    rounds = 20_000 if FULL else 2_000
    assert clopper_pearson_interval(wrong_guesses(Fraction(1, 10), rounds), rounds, SURE)[1] > least
    # power: at 3 each the same attack errs far less often, and this test would say so
    assert clopper_pearson_interval(wrong_guesses(Fraction(3), rounds), rounds, SURE)[1] < least


def test_noise_shows_where_the_difference_is_no_value():
    found = subtract_answers(lambda n: n + 0.3 * n, 11, 10)
    assert found.difference == pytest.approx(1.3)
    assert (found.verdict, found.value) == ("noisy", 1)
    assert "there is noise" in str(found)


def test_the_three_verdicts_in_words():
    assert "exactly" in str(subtract_answers(lambda n: n, 1, 0))
    assert "errs at least 0.475" in str(subtract_answers(lambda n: n, 1, 0, epsilon=0.1))
    assert json.loads(json.dumps(subtract_answers(lambda n: n, 1, 0).to_dict()))["verdict"] == "exact"


@pytest.mark.parametrize("answer", [math.nan, -math.inf, "one", None])
def test_what_is_no_number_is_a_clear_error(answer):
    with pytest.raises(ParameterError) as caught:
        subtract_answers(lambda n: answer, 1, 0)
    assert caught.value.name == "ask" and caught.value.fix


def test_a_raising_curator_is_the_cause_and_a_refusal_passes_through():
    with pytest.raises(ParameterError) as caught:
        subtract_answers(lambda n: 1 / 0, 1, 0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def closed(n: int) -> float:
        raise Refused(ErrorCode.BUDGET, "nothing is left")

    with pytest.raises(Refused):
        subtract_answers(closed, 1, 0)


def test_other_mistakes_are_named():
    with pytest.raises(ParameterError, match="epsilon"):
        subtract_answers(lambda n: n, 1, 0, epsilon=-1)
    with pytest.raises(ParameterError, match="people"):
        reconstruct_leaving_one_out(ExactOracle([1]), 0)
    with pytest.raises(ParameterError, match="oracle"):
        reconstruct_leaving_one_out(FunctionOracle(lambda subset: math.nan), 3)
