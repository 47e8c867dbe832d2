"""Timing: counted work tells the noise of a sampler by coins, and nothing of Tacit's.

All tests use counted words, never the clock. Seeds are fixed; a test of fit alarms falsely with probability 1e-10.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare, pearsonr, rankdata
from tests.support.counts import FULL

from tacit.accounting.interval import clopper_pearson_interval
from tacit.attacks import timing
from tacit.attacks.timing import (
    CountingBits,
    TimingSample,
    coin_counting_laplace,
    detect_leak,
    measure_draws,
    single_word_laplace,
)
from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

DRAWS = 20_000 if FULL else 2_000
SURE = 1 - 1e-10


@pytest.fixture(scope="module")
def coins() -> TimingSample:
    return measure_draws(coin_counting_laplace(10), DRAWS, ReplayBits(b"coins"))


@pytest.fixture(scope="module")
def ours() -> TimingSample:
    return measure_draws(single_word_laplace(10), DRAWS, ReplayBits(b"ours"))


def fits(noise: np.ndarray, scale: float) -> float:
    """The p value of draws against the discrete Laplace law, magnitudes of 12 and more together with their sign."""
    q = math.exp(-1 / scale)
    inner = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-11, 12)]
    tail = q**12 / (1 + q)
    counts = np.bincount(np.clip(noise, -12, 12).astype(int) + 12, minlength=25)
    return float(chisquare(counts, np.array([tail, *inner, tail]) * len(noise)).pvalue)


@pytest.mark.parametrize("sampler", [coin_counting_laplace, single_word_laplace])
def test_both_samplers_draw_the_same_law(sampler):
    noise = measure_draws(sampler(Fraction(3)), 100_000 if FULL else 20_000, ReplayBits(b"law")).noise
    assert fits(noise, 3.0) > 1e-10
    assert fits(noise, 3.6 if not FULL else 3.3) < 1e-10  # power: the law of another scale is rejected


def test_coins_take_one_word_more_for_each_step_of_the_noise(coins):
    # m + 1 coins and a sign: words = |k| + 2, or 2 more for each minus zero drawn before
    extra = coins.words - np.abs(coins.noise) - 2
    assert (extra >= 0).all()
    assert (extra % 2 == 0).all()
    assert (extra == 0).mean() > 0.9


def test_the_work_by_coins_tells_the_noise(coins):
    found = detect_leak(coins)
    assert found.correlation > 0.99
    assert found.p == 1 / 2000  # no permutation comes near
    assert found.verdict == "time tells the noise"
    assert clopper_pearson_interval(found.right, found.guesses, SURE)[0] > 0.95


def test_a_draw_of_tacit_takes_one_word_whatever_it_is(ours):
    assert (ours.words == 1).all()
    assert len(np.unique(ours.noise)) > 50


def test_the_work_of_tacit_tells_nothing(ours):
    found = detect_leak(ours)
    assert (found.correlation, found.p, found.verdict) == (0.0, 1.0, "nothing found")
    low, _ = clopper_pearson_interval(found.right, found.guesses, SURE)
    assert low < found.blind


def test_work_that_is_chance_is_found_as_seldom_as_the_level_says():
    # 200 samplers whose work is independent of the noise: p <= 0.05 is Binomial(200, 0.05) or rarer, above 40 with
    # probability 1e-13; of 60 above 18 with 5e-11. A level of a half would show so few with 1e-3.
    samplers, most = (200, 40) if FULL else (60, 18)
    rng, alarms = np.random.default_rng(1), 0
    for seed in range(samplers):
        timed = TimingSample(rng.laplace(size=60), rng.integers(1, 9, 60).astype(float), np.zeros(60))
        alarms += detect_leak(timed, permutations=99, seed=seed).p <= 0.05
    assert alarms <= most


def test_a_faint_leak_is_found():
    # power: work that grows with the noise and is mostly chance, correlation near 0.3 over 2,000 draws
    rng = np.random.default_rng(2)
    noise = rng.laplace(size=2000)
    timed = TimingSample(noise, np.abs(noise) + rng.normal(0, 3, 2000), np.zeros(2000))
    assert detect_leak(timed).verdict == "time tells the noise"


def test_the_clock_is_compared_by_ranks():
    # one draw that was interrupted hides nothing
    rng = np.random.default_rng(3)
    noise = rng.laplace(size=1000)
    clock = 100 + 10 * np.abs(noise)
    clock[5] = 1e9
    found = detect_leak(TimingSample(noise, np.ones(1000), clock), by="nanoseconds")
    assert found.correlation > 0.8 and found.by == "nanoseconds"


numbers = arrays(np.float64, st.integers(4, 30), elements=st.integers(0, 8).map(float))


@given(numbers)
def test_ranks_are_those_of_the_books(numbers):
    assert timing._ranks(numbers).tolist() == rankdata(numbers).tolist()


@given(st.integers(4, 30).flatmap(lambda n: st.tuples(*[arrays(np.float64, n, elements=st.floats(-9, 9))] * 2)))
@settings(max_examples=50)
def test_the_correlation_is_that_of_the_books(pair):
    one, other = pair
    assume(np.ptp(one) > 1e-3 and np.ptp(other) > 1e-3)
    assert timing._correlation(one, other) == pytest.approx(pearsonr(one, other).statistic, abs=1e-9)


def test_what_is_taken_is_counted_and_passed_on():
    counted, plain = CountingBits(ReplayBits(b"same")), ReplayBits(b"same")
    assert counted.words(3).tolist() == plain.words(3).tolist()
    assert counted.words(2).tolist() == plain.words(2).tolist()
    assert counted.words_drawn == 5


def test_words_and_json(coins, ours):
    assert "blindly" in str(detect_leak(coins, permutations=9))
    assert json.loads(json.dumps(detect_leak(ours, permutations=9).to_dict()))["verdict"] == "nothing found"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: coin_counting_laplace(0), "scale"),
        (lambda: single_word_laplace(math.nan), "scale"),
        (lambda: measure_draws(coin_counting_laplace(1), 2, ReplayBits(b"x")), "draws"),
        (lambda: detect_leak(TimingSample(np.ones(5), np.ones(5), np.ones(5)), by="hours"), "by"),
        (lambda: detect_leak(TimingSample(np.ones(5), np.ones(4), np.ones(5))), "timed"),
        (lambda: detect_leak(TimingSample(np.ones(5), np.ones(5), np.ones(5)), permutations=0), "permutations"),
    ],
)
def test_mistakes_are_clear_errors(make, name):
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.name == name and caught.value.fix
