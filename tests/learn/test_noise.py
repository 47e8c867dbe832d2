"""The noise is the real Gaussian's, rounded, but for a share that is counted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import kstwo
from tests.support.counts import FULL

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn.noise import GRID_BITS, GridGaussian, add_gaussian_noise, approximation_delta_of
from tacit.sampling.bits import ReplayBits

DRAWS = 400_000 if FULL else 40_000


@pytest.mark.parametrize("deviation", [2.0, 2.5, 4.0, 9.3])
def test_the_discrete_law_holds_all_of_the_rounded_gaussian_but_a_small_share(deviation: float) -> None:
    # the lemma, term by term: discrete(k) >= (1 - t) rounded(k) at every k, with t = 1/(100 s^4)
    k = np.arange(0.0, 30 * deviation)
    variance = deviation**2 + 1 / 11
    total = 2 * np.exp(-(k**2) / (2 * variance)).sum() - 1
    discrete = np.exp(-(k**2) / (2 * variance)) / total
    # the real noise that belongs to v = s^2/(1 - 1/(12 s^2)): 12 s^4 - 12 v s^2 + v = 0
    real = math.sqrt(variance / 2 * (1 + math.sqrt(1 - 1 / (3 * variance))))
    assert real >= deviation
    rounded = ndtr(-(k - 0.5) / real) - ndtr(-(k + 0.5) / real)
    assert np.all(discrete >= (1 - 1 / (100 * deviation**4)) * rounded)
    # it would not hold with no share, in the middle, nor for real noise of the same variance, in the tail
    assert not np.all(discrete >= rounded)
    same = ndtr(-(k - 0.5) / math.sqrt(variance)) - ndtr(-(k + 0.5) / math.sqrt(variance))
    assert not np.all(discrete >= (1 - 1 / (100 * deviation**4)) * same)


def test_a_share_strays_that_no_delta_notices() -> None:
    # 1/(100 2^128), at 2^32 steps: 2.9e-41 a coordinate
    assert float(approximation_delta_of(Fraction(2**GRID_BITS))) == pytest.approx(1 / (100 * 2.0**128), rel=1e-6)
    with pytest.raises(ParameterError, match="two steps"):
        approximation_delta_of(Fraction(3, 2))


def test_a_released_coordinate_is_gaussian_around_its_value() -> None:
    # Kolmogorov and Smirnov at a false alarm of 1e-9; a deviation off by a tenth is seen
    noise = GridGaussian.calibrated(Fraction(1), Fraction(1, 10**6), Fraction(3), DRAWS)
    drawn = np.sort(noise.release(np.full(DRAWS, 17.25), ReplayBits(b"one coordinate")))
    limit = kstwo.ppf(1 - 1e-9, DRAWS)

    def distance(sigma: float) -> float:
        share = ndtr((drawn - 17.25) / sigma)
        return float(max(np.max(np.arange(1, DRAWS + 1) / DRAWS - share), np.max(share - np.arange(DRAWS) / DRAWS)))

    sigma = float(noise.sigma)
    assert distance(sigma) < limit
    assert distance(1.1 * sigma) > limit and distance(sigma / 1.1) > limit


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "times"), [(0.1, 1e-9, 100), (1.0, 1e-5, 1), (4.0, 1e-12, 7)])
def test_what_is_spent_is_what_was_planned(epsilon: float, delta: float, times: int) -> None:
    from tacit.privacy.loss import Repeat

    noise = GridGaussian.calibrated(Fraction(str(epsilon)), Fraction(str(delta)), Fraction(5, 3), 100, times)
    spent = Repeat(noise.loss, times)
    assert 0.999 * epsilon <= epsilon_delta.epsilon(spent, delta) <= epsilon


@given(st.integers(-200, 200), st.integers(1, 999))
def test_sigma_is_between_two_powers_of_two_of_steps(power: int, odd: int) -> None:
    noise = GridGaussian(Fraction(odd) * Fraction(2) ** power, Fraction(1), 1)
    assert 2**GRID_BITS <= noise.sigma / noise.step < 2 ** (GRID_BITS + 1)


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5), st.integers(0, 60))
def test_whole_numbers_and_reals_are_released_alike(values: list[int], exponent: int) -> None:
    # where the values are doubles without error, both ways give the same noise on the same grid
    short = [value >> 25 << 25 for value in values]
    noise = GridGaussian(Fraction(3), Fraction(1), len(short))
    whole = noise.release_whole(np.array(short, dtype=object), exponent, ReplayBits(b"alike"))
    real = noise.release(np.array([math.ldexp(value, -exponent) for value in short]), ReplayBits(b"alike"))
    assert np.allclose(whole, real, rtol=0, atol=float(noise.step))
    assert np.all(np.abs(whole - real) <= float(noise.step))


def test_what_is_released_lies_on_the_grid() -> None:
    noise = GridGaussian(Fraction(3), Fraction(1), 50)
    drawn = noise.release(np.linspace(-1, 1, 50), ReplayBits(b"grid"))
    steps = drawn / float(noise.step)
    assert np.array_equal(steps, np.rint(steps))
    same = add_gaussian_noise(np.linspace(-1, 1, 50), noise.step, noise.sigma, ReplayBits(b"grid"))
    assert np.array_equal(drawn, same)


def test_noise_that_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="delta"):
        GridGaussian.calibrated(Fraction(1), Fraction(1, 10**40), Fraction(1), 100)
    with pytest.raises(ParameterError, match="too small for the grid"):
        GridGaussian.of(Fraction(2**34), Fraction(1), 100)
    with pytest.raises(ParameterError, match="above zero"):
        GridGaussian(Fraction(0), Fraction(1), 1)


def test_calibration_agrees_with_the_closed_form() -> None:
    # delta(1) = 1e-5 needs 3.730632 in units of the sensitivity
    noise = GridGaussian.calibrated(Fraction(1), Fraction(1, 10**5), Fraction(1), 1)
    assert float(noise.sigma) == pytest.approx(3.730632, rel=1e-5)
