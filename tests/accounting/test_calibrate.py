"""The least noise, safe and not a digit more."""

from __future__ import annotations

import math
import time
import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from tests.support.counts import FULL

from tacit.accounting import calibrate, delta, pld
from tacit.accounting.calibrate import discrete_gaussian_delta, gaussian_sigma, gaussian_variance, laplace_scale
from tacit.errors import ParameterError
from tacit.mechanisms import Gaussian
from tacit.privacy.loss import ContinuousGaussianNoise, GaussianNoise

epsilons = st.fractions(Fraction(1, 20), 8, max_denominator=100)
deltas = st.integers(3, 12).map(lambda power: Fraction(1, 10**power))


def test_figures():
    # continuous (1, 1e-5), where the classical rule gives sqrt(2 ln 125000) = 4.844805
    assert float(gaussian_sigma(Fraction(1), Fraction(1, 10**5))) == pytest.approx(3.730632, abs=1e-6)
    assert math.sqrt(2 * math.log(1.25e5)) == pytest.approx(4.844805, abs=5e-7)
    # discrete, one step: 3.7405
    assert math.sqrt(gaussian_variance(Fraction(1), Fraction(1, 10**5), 1)) == pytest.approx(3.7405, abs=5e-5)
    # (10, 1e-6) needs 0.541; the classical rule gives 0.530
    assert float(gaussian_sigma(Fraction(10), Fraction(1, 10**6))) == pytest.approx(0.541, abs=5e-4)
    assert laplace_scale(Fraction(1, 10), 3) == 30


def summed(epsilon: Fraction, variance: Fraction, coordinates: int = 1) -> mpf:
    """delta of narrow noise whose coordinates move by one: the sum over all outcomes, to 60 digits."""
    with mp.workdps(60):
        e, v = (mpf(number.numerator) / number.denominator for number in (epsilon, variance))
        reach = range(-12, 13)
        law = {k: mp.exp(-(mpf(k) ** 2) / (2 * v)) for k in range(-13, 14)}
        whole, growth, found = sum(law.values()), mp.exp(e), mpf(0)
        for place in product(reach, repeat=coordinates):
            there = mp.fprod(law[k] for k in place) - growth * mp.fprod(law[k - 1] for k in place)
            found += max(there, mpf(0))
        return found / whole**coordinates


@pytest.mark.parametrize("coordinates", [1, 2])
def test_an_epsilon_just_below_a_loss_of_an_integer_counts_it(coordinates):
    # the noise is 0 but for e^-50, so the loss is 50 for each coordinate, and delta is what epsilon lacks of that
    variance = Fraction(1, 100)
    for lacking in (Fraction(5, 10**15), Fraction(1, 10**18), Fraction(1, 10**30), Fraction(0)):
        price = 50 * coordinates - lacking
        assert summed(price, variance, coordinates) <= discrete_gaussian_delta(price, variance, 1, coordinates)
    for place in range(700, 1000, 25):
        variance = Fraction(place, 10_000) ** 2
        price = Fraction(repr(float(Fraction(coordinates, 2) / variance)))
        assert summed(price, variance, coordinates) <= discrete_gaussian_delta(price, variance, 1, coordinates)


def test_noise_for_an_epsilon_that_a_loss_nearly_is():
    found = Gaussian.calibrated(epsilon=100.03020912315519, delta=1e-17)
    assert summed(Fraction("100.03020912315519"), found.variance) <= mpf(10) ** -17


@pytest.mark.parametrize(("epsilon", "needed"), [(8.7, False), (8.9, True)])
def test_the_classical_rule_fails_from_about_nine_on(epsilon, needed):
    classical = math.sqrt(2 * math.log(1.25e6)) / epsilon
    assert (gaussian_sigma(Fraction(epsilon), Fraction(1, 10**6)) > classical) is needed


@pytest.mark.slow
@settings(max_examples=25 if FULL else 8, deadline=None, derandomize=True)
@given(epsilons, deltas, st.sampled_from([1, 2, 7, 100, 10**4]), st.sampled_from([1, 2, 5]))
def test_the_variance_is_safe_and_least(epsilon, goal, shift, coordinates):
    variance = gaussian_variance(epsilon, goal, shift, coordinates)
    # the accountant, which knows nothing of calibration, agrees to its own small error
    assert delta(GaussianNoise(variance, shift, coordinates), float(epsilon)) <= float(goal) * 1.003
    less = variance * Fraction(998, 1000)
    assert pld.delta(GaussianNoise(less, shift, coordinates), float(epsilon)) > float(goal) * 0.999


@pytest.mark.slow
@settings(max_examples=25 if FULL else 5, deadline=None, derandomize=True)
@given(epsilons, deltas)
def test_sigma_is_safe_and_least(epsilon, goal):
    sigma = gaussian_sigma(epsilon, goal)
    assert delta(ContinuousGaussianNoise(sigma), float(epsilon)) <= float(goal) * 1.001
    assert delta(ContinuousGaussianNoise(sigma * Fraction(999, 1000)), float(epsilon)) > float(goal)


def test_one_wide_coordinate_is_the_real_law():
    # at sigma about 5,000 the grid of steps of one is fine
    wide = gaussian_variance(Fraction(1), Fraction(1, 10**5), 1500)
    assert math.sqrt(wide) / 1500 == pytest.approx(3.730632, rel=1e-5)


def test_narrow_coordinates_one_by_one():
    # two coordinates of variance 2: the sum of all pairs of noises, directly
    law = {k: math.exp(-(k**2) / 4) for k in range(-40, 41)}
    total = sum(law.values()) ** 2
    direct = sum(
        max(0.0, law[a] * law[b] - math.e * math.exp(-((a + 1) ** 2 + (b + 1) ** 2) / 4)) / total
        for a in law
        for b in law
    )
    assert discrete_gaussian_delta(Fraction(1), Fraction(2), 1, 2) == pytest.approx(direct, rel=1e-9)
    assert delta(GaussianNoise(Fraction(2), 1, 2), 1.0) == pytest.approx(direct, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "goal", "shift", "coordinates"),
    [
        (Fraction(1, 10**6), Fraction(1, 10**6), 1000, 1),  # sigma 2.8e8, and epsilon sigma^2/shift is below sigma
        (Fraction(1, 10**6), Fraction(1, 10**6), 1000, 1000),
        (Fraction(1, 10**15), Fraction(1, 10**30), 2**63, 1),
        (Fraction(2**64), Fraction(1, 10**6), 2**64, 2**20),
        (Fraction(1000), Fraction(1, 10**6), 1, 10**7),  # narrow noise on many coordinates
        (Fraction(1, 10**300), Fraction(1, 2), 10**200, 10**200),
        (Fraction(1, 2), Fraction(999, 1000), 5, 1),
    ],
)
def test_memory_does_not_grow_with_the_parameters(epsilon, goal, shift, coordinates):
    tracemalloc.start()
    variance = gaussian_variance(epsilon, goal, shift, coordinates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20
    assert discrete_gaussian_delta(epsilon, variance, shift, coordinates) <= goal


def test_the_sum_and_the_integral_with_corrections_agree():
    # at a variance of 2^28, where one takes over from the other
    for price, far in [(Fraction(1, 100), 1000), (Fraction(1), 30_000), (Fraction(1, 10**6), 3), (Fraction(8), 40_000)]:
        direct, wide = calibrate._sum(price, Fraction(2**28), far), calibrate._tails(price, Fraction(2**28), far)
        assert wide == pytest.approx(direct, rel=1e-9)


def test_wide_noise_by_its_own_sum():
    # sigma 20,000 and a shift of 9,000 at epsilon 1/2: the sum of max(0, p(k) - e^epsilon p(k + 9000)) over all k
    sigma, far = 20_000.0, 9000
    k = np.arange(-200_000.0, 200_001.0)
    law = np.exp(-((k / sigma) ** 2) / 2)
    moved = np.exp(-(((k + far) / sigma) ** 2) / 2)
    direct = float(np.maximum(law - math.exp(0.5) * moved, 0.0).sum() / law.sum())
    found = discrete_gaussian_delta(Fraction(1, 2), Fraction(400_000_000), far)
    assert direct * (1 - 1e-12) <= found <= direct * (1 + 1e-9)


def test_it_takes_milliseconds():
    gaussian_variance(Fraction(1), Fraction(1, 10**5), 1)  # imports
    start = time.process_time()
    for shift in (1, 30, 10**6):
        gaussian_variance(Fraction(1), Fraction(1, 10**6), shift, 4)
    assert time.process_time() - start < 0.3  # three of them; 1 ms each on a quiet machine


def test_bad_input():
    for call in (
        lambda: gaussian_sigma(Fraction(0), Fraction(1, 10)),
        lambda: gaussian_sigma(Fraction(1), Fraction(0)),
        lambda: gaussian_variance(Fraction(1), Fraction(1), 1),
        lambda: gaussian_variance(Fraction(1), Fraction(1, 10), -1),
        lambda: laplace_scale(Fraction(-1), 1),
    ):
        with pytest.raises(ParameterError, match=r"epsilon|delta|shift"):
            call()


@pytest.mark.parametrize("far", [15, 17, 30])
def test_a_delta_next_to_one_is_calibrated_at_once(far, monkeypatch):
    # no double is between 1 - 2^-53 and 1, and what is returned is proven with doubles
    looked = []
    real = calibrate._real_delta
    monkeypatch.setattr(calibrate, "_real_delta", lambda *given: looked.append(given) or real(*given))
    sigma = calibrate.gaussian_sigma(Fraction(1), 1 - Fraction(1, 10**far))
    assert real(Fraction(1), sigma) <= 1 - Fraction(1, 10**far)
    assert len(looked) < 500
