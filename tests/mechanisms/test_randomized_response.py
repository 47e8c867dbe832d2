"""Randomized response: its matrix, its exact epsilon, its estimator with variance and interval."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Script
from tests.support.counts import FULL
from tests.support.statistics import chi_square

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits

HALF = RandomizedResponse(coin=Fraction(1, 2))


def test_the_table_of_a_fair_coin():
    # q = 1/2: truth 1/2 + 1/4 = 3/4; epsilon = ln 3 = 1.098612
    assert HALF.law() == [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    assert float(HALF.loss().epsilon) == pytest.approx(1.098612, abs=5e-7)


@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)], ids=str)
@pytest.mark.parametrize("choices", [2, 3, 10])
def test_the_epsilon_of_a_coin_is_its_largest_ratio_rounded_up(q, choices):
    mechanism = RandomizedResponse(coin=q, choices=choices)
    law = mechanism.law()
    assert all(sum(row) == 1 for row in law)
    largest = max(one[y] / other[y] for one in law for other in law for y in range(choices))
    assert largest == 1 + choices * q / (1 - q)
    with working_precision(128):
        excess = to_interval(mechanism.loss().epsilon) - to_interval(largest).log()
        assert excess >= 0
        assert excess <= arb(2) ** -64
    if choices == 2:
        assert largest == (1 + q) / (1 - q)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5), Fraction(50)], ids=str)
@pytest.mark.parametrize("choices", [2, 3, 10])
def test_the_largest_ratio_is_e_to_the_epsilon(epsilon, choices):
    mechanism = RandomizedResponse.calibrated(epsilon, choices)
    law = mechanism.law()
    with working_precision(128):
        bound = to_interval(epsilon).exp()
        assert (law[0][0] / law[1][0]).overlaps(bound)
        for one in law:
            assert sum(one[1:], one[0]).overlaps(arb(1))
            assert all(not one[y] > bound * other[y] + arb(2) ** -90 for other in law for y in range(choices))
    # truth with e^epsilon/(choices - 1 + e^epsilon)
    assert float(law[0][0]) == pytest.approx(1 / (1 + (choices - 1) * math.exp(-epsilon)), rel=1e-12)
    assert mechanism.loss() == PureDp(epsilon)


@pytest.mark.parametrize("prior", [Fraction(1, 100), Fraction(1, 4), Fraction(9, 10)], ids=str)
def test_plausible_deniability(prior):
    # (3/4) r / ((3/4) r + (1/4)(1 - r)) <= 3r
    found = HALF.posterior(prior)
    assert found == Fraction(3, 4) * prior / (Fraction(3, 4) * prior + Fraction(1, 4) * (1 - prior))
    assert found <= 3 * prior
    assert RandomizedResponse(Fraction(1)).posterior(prior) <= arb(1).exp() * to_interval(prior)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [HALF, RandomizedResponse(Fraction(1)), RandomizedResponse(Fraction(1), 4), RandomizedResponse(None, 5, 0.3)],
    ids=str,
)
def test_release_has_the_law(mechanism):
    # Chi square over the answers to one value, alone and in a vector. p > 1e-11 for each of 8: false alarm below 1e-10.
    # The law with q a tenth larger is rejected.
    k, bits, alone = mechanism.choices, ReplayBits(b"randomized response"), 4_000 if FULL else 1_000
    many = np.bincount(mechanism.release(np.full(200_000, k - 1), bits), minlength=k)
    single = np.bincount([mechanism.release(k - 1, bits) for _ in range(alone)], minlength=k)
    row = [float(p) for p in mechanism.law()[k - 1]]
    assert chi_square(many, [200_000 * p for p in row]) > 1e-11
    assert chi_square(single, [alone * p for p in row]) > 1e-11
    q = 1.1 * (row[k - 1] - row[0])
    off = [(1 - q) / k] * (k - 1) + [q + (1 - q) / k]
    assert chi_square(many, [200_000 * p for p in off]) < 1e-9


def test_a_word_at_the_threshold_is_settled_with_more_bits():
    # epsilon = 1: P(lie) = 1/(1 + e) = 0.2689...; the word that equals floor(2^64 P) decides nothing by itself.
    mechanism = RandomizedResponse(Fraction(1))
    with working_precision(300):
        exact = 1 / (1 + arb(1).exp())
        first, second = (int((exact * arb(2) ** n).floor().unique_fmpz()) for n in (64, 128))
    rest = second - (first << 64)
    assert mechanism.release(0, Script(first - 1)) == 1
    assert mechanism.release(0, Script(first + 1)) == 0
    assert mechanism.release(0, Script(first, rest - 1)) == 1
    assert mechanism.release(0, Script(first, rest + 1)) == 0
    assert mechanism.release(0, Script(first, rest, 0)) == 1
    assert mechanism.release(0, Script(first, rest, 2**64 - 1)) == 0
    assert mechanism.release([0, 0, 0], Script(first, first - 1, first, rest + 1, rest - 1)).tolist() == [0, 1, 1]
    # P(lie) = 1/4 exactly: a word of 2^62 is not below it, whatever follows.
    assert HALF.release(0, Script(2**62)) == 0
    assert HALF.release(0, Script(2**62 - 1)) == 1


def test_hardly_any_lies():
    # epsilon = 10^6: P(lie) = e^-1000000, below 2^-64: only a word of zeros leaves it open.
    mechanism = RandomizedResponse(Fraction(10**6))
    assert mechanism.release([1] * 1_000, ReplayBits(b"truth")).tolist() == [1] * 1_000
    assert mechanism.release(1, Script(0, 1)) == 1


def test_the_estimator_is_unbiased():
    # z = (y - 1/(1 + e^eps)) (e^eps + 1)/(e^eps - 1) has mean x: over the law, for x = 0 and 1.
    for mechanism in (HALF, RandomizedResponse(Fraction(1)), RandomizedResponse(Fraction(1, 10))):
        law = mechanism.law()
        for x in (0, 1):
            values = [mechanism.estimate([y], 0.95).value for y in (0, 1)]
            assert math.fsum(float(law[x][y]) * values[y] for y in (0, 1)) == pytest.approx(x, abs=1e-12)
    e = math.e
    assert RandomizedResponse(Fraction(1)).estimate([1, 1, 0], 0.9).value == pytest.approx(
        (2 / 3 - 1 / (1 + e)) * (e + 1) / (e - 1)
    )
    # coin form: (p - (1 - q)/2)/q = (2/3 - 1/4)/(1/2) = 5/6
    assert HALF.estimate([1, 1, 0], 0.9).value == pytest.approx(5 / 6)
    # three values, q = 1/2: truth 2/3, each lie 1/6; (1/2 - 1/6)/(1/2) = 2/3
    three = RandomizedResponse(coin=Fraction(1, 2), choices=3)
    assert three.estimate([2, 2, 0, 1], 0.9, value=2).value == pytest.approx(2 / 3)


def test_the_variance():
    # One answer at q = 1/2: (3/4)(1/4)/(1/2)^2 = 3/4, whoever answers. epsilon: e^eps/(e^eps - 1)^2.
    assert HALF.variance(0, 1) == HALF.variance(1, 1) == pytest.approx(0.75)
    assert RandomizedResponse(Fraction(1)).variance(0.3, 10) == pytest.approx(math.e / (math.e - 1) ** 2 / 10)
    # Three values, q = 1/2: (2/3)(1/3)/(1/4) = 8/9 for those who have it, (1/6)(5/6)/(1/4) = 5/9 for others.
    three = RandomizedResponse(coin=Fraction(1, 2), choices=3)
    assert three.variance(1, 1) == pytest.approx(8 / 9)
    assert three.variance(0, 1) == pytest.approx(5 / 9)
    # The error O(1/(eps sqrt n)): at small epsilon the deviation is 1/(eps sqrt n).
    assert math.sqrt(RandomizedResponse(Fraction(1, 100)).variance(0, 10_000)) == pytest.approx(1, rel=1e-4)


def fixed_people(have, total, truth, lie):
    """The law of the number of yes: `have` coins of chance `truth` and the rest of chance `lie`."""
    law = np.array([1.0])
    for i in range(total):
        chance = truth if i < have else lie
        law = np.convolve(law, [1 - chance, chance])
    return law


@pytest.mark.parametrize("mechanism", [HALF, RandomizedResponse(Fraction(3))], ids=["ln 3", "3"])
@pytest.mark.parametrize("confidence", [0.2, 0.5, 0.95])
@pytest.mark.parametrize("total", [1, 2, 25])
def test_the_interval_covers_fixed_people(mechanism, confidence, total):
    # Exactly, for every true share of `total` people.
    truth, lie = (float(p) for p in mechanism.law()[0])
    found = [mechanism.estimate([1] * y + [0] * (total - y), confidence) for y in range(total + 1)]
    for have in range(total + 1):
        chances = fixed_people(have, total, truth, lie)
        covered = math.fsum(chances[y] for y in range(total + 1) if found[y].low <= have / total <= found[y].high)
        assert covered >= confidence


@pytest.mark.slow
def test_the_interval_is_not_wasteful():
    # A million answers at epsilon 1, 30 % true: half the width over that of the normal law, 1.96 * 0.5/(q sqrt n).
    mechanism, bits = RandomizedResponse(Fraction(1)), ReplayBits(b"many")
    values = np.repeat([1, 0], [300_000, 700_000])
    start = time.process_time()
    answers = mechanism.release(values, bits)
    assert time.process_time() - start < 5  # about 0.1 s
    found = mechanism.estimate(answers, 0.95)
    q = math.tanh(0.5)
    answered = 0.3 * q + (1 - q) / 2
    normal = 1.96 * math.sqrt(answered * (1 - answered)) / (q * 1000)
    assert (found.high - found.low) / 2 == pytest.approx(normal, rel=0.01)
    # deviation e^0.5/(e - 1)/1000 = 0.00096; seven of them: a false alarm of 3e-12
    assert found.deviation == pytest.approx(0.000959517, abs=1e-8)
    assert abs(found.value - 0.3) < 7 * found.deviation
    assert found.low < found.value < found.high


def test_every_answer_is_a_value():
    answers = RandomizedResponse(Fraction(1, 10), 7).release(list(range(7)) * 1_000, ReplayBits(b"values"))
    assert set(answers.tolist()) == set(range(7))
    assert HALF.release([], ReplayBits(b"")).tolist() == []
    assert HALF.release(np.array([1, 0], dtype=np.uint8), ReplayBits(b"small")).dtype == np.int64


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans()))
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        RandomizedResponse(epsilon)


@pytest.mark.parametrize("coin", [0, 1, -0.1, 1.1, math.nan, "0.5", True])
def test_no_such_coin(coin):
    with pytest.raises(ParameterError, match="coin: "):
        RandomizedResponse(coin=coin)


def test_epsilon_or_coin():
    for both in ({}, {"epsilon": 1, "coin": 0.5}):
        with pytest.raises(ParameterError, match="epsilon: give epsilon or coin"):
            RandomizedResponse(**both)


@pytest.mark.parametrize("choices", [1, 0, -2, 2.0, True, "2", None, 2**63])
def test_no_such_choices(choices):
    with pytest.raises(ParameterError, match="choices: "):
        RandomizedResponse(Fraction(1), choices)


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(), st.text(), st.booleans(), st.none(), st.integers(min_value=2), st.integers(max_value=-1)))
def test_no_such_values(value):
    with pytest.raises(ParameterError, match="values: "):
        HALF.release(value, ReplayBits(b""))
    with pytest.raises(ParameterError, match="values: "):
        HALF.release([0, value], ReplayBits(b""))


@pytest.mark.parametrize(
    "values", [np.array([0.0, 1.0]), np.array([[0, 1]]), np.array([0, 2]), np.array([True])], ids=str
)
def test_no_such_array(values):
    with pytest.raises(ParameterError, match="values: "):
        HALF.release(values, ReplayBits(b""))


def test_nothing_to_estimate():
    with pytest.raises(ParameterError, match="answers: there are none"):
        HALF.estimate([], 0.95)
