"""The figures that a correct accountant reproduces."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tacit.accounting import bounds, delta, epsilon, pld
from tacit.accounting.convert import epsilon_from_rho
from tacit.privacy.loss import (
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    PureDp,
    Repeat,
    Sampled,
)

LAPLACE = Repeat(ContinuousLaplaceNoise(Fraction(10)), 1000)


@pytest.mark.parametrize(
    ("by", "figure"),
    [
        ("basic", 100.0),  # 1,000 times 0.1
        ("advanced", 25.69),  # 0.1 sqrt(2000 ln 1e5) + 100 (e^0.1 - 1)
        ("zcdp", 19.04),  # rho = 1000 * 0.1 tanh 0.05 = 4.9958; the textbook's 0.1^2/2 gives 19.05, below
        ("renyi", 18.58),
        ("optimal", 17.79),
        ("pld", 17.42),
    ],
)
def test_a_thousand_real_laplace_noises_of_scale_ten(by, figure):
    assert epsilon(LAPLACE, 1e-5, by=by) == pytest.approx(figure, abs=0.005)


def test_the_textbook_zcdp_of_the_same():
    # 1,000 * 0.1^2/2 = 5
    assert epsilon_from_rho(5.0, 1e-5) == pytest.approx(19.05, abs=0.005)
    assert epsilon(ConcentratedDp(Fraction(5)), 1e-5, by="zcdp") == pytest.approx(19.05, abs=0.005)


def test_a_discrete_law_is_priced_as_itself():
    # One grid step is randomized response: what the optimal theorem says of any 0.1-DP mechanism.
    coarse = Repeat(LaplaceNoise(Fraction(10), 1), 1000)
    assert epsilon(coarse, 1e-5) == pytest.approx(17.787, abs=0.0005)
    assert epsilon(coarse, 1e-5) == pytest.approx(epsilon(coarse, 1e-5, by="optimal"), rel=1e-7)
    # On a grid a thousand times finer it is the real law's.
    fine = Repeat(LaplaceNoise(Fraction(10_000), 1000), 1000)
    assert epsilon(fine, 1e-5) == pytest.approx(17.42, abs=0.005)


def test_the_discrete_gaussian_at_the_real_ones_sigma_is_not_safe():
    at = GaussianNoise(Fraction("3.730632") ** 2, 1)
    assert delta(at, 1.0) == pytest.approx(1.035e-5, abs=5e-9)
    assert delta(GaussianNoise(Fraction("3.7405") ** 2, 1), 1.0) <= 1e-5
    assert pld.delta(GaussianNoise(Fraction("3.7404") ** 2, 1), 1.0, upper=False) > 1e-5


def test_the_real_gaussian():
    assert delta(ContinuousGaussianNoise(Fraction("3.730632")), 1.0) == pytest.approx(1e-5, rel=1e-4)
    assert epsilon(ContinuousGaussianNoise(Fraction("3.730632")), 1e-5) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
def test_the_classical_rule_fails_for_large_epsilon():
    # sigma = sqrt(2 ln(1.25/delta))/epsilon at delta = 1e-6: 0.530 at epsilon 10, where 0.541 is needed
    sigma = math.sqrt(2 * math.log(1.25e6)) / 10
    assert sigma == pytest.approx(0.530, abs=0.0005)
    assert delta(ContinuousGaussianNoise(Fraction(sigma)), 10) > 1e-6
    assert delta(ContinuousGaussianNoise(Fraction(math.sqrt(2 * math.log(1.25e6)) / 8)), 8) < 1e-6
    assert delta(ContinuousGaussianNoise(Fraction("0.542")), 10) < 1e-6


@pytest.mark.slow
def test_private_gradient_descent():
    # q = 0.01, sigma = 1, 10^4 steps: each better theorem says less
    steps = Repeat(Sampled(ContinuousGaussianNoise(Fraction(1)), Fraction(1, 100)), 10**4)
    assert epsilon(steps, 1e-5) < epsilon(steps, 1e-5, by="renyi") < epsilon(steps, 1e-5, by="zcdp")


@pytest.mark.slow
def test_bounds_hold_the_truth_between_them():
    # Gaussian noise has a closed form: 25 uses at sigma 5 are one at sigma 1.
    low, high = bounds(Repeat(ContinuousGaussianNoise(Fraction(5)), 25), 1e-5)
    assert low <= 4.3771781 <= high  # Phi(1/2 - e) - exp(e) Phi(-1/2 - e) = 1e-5
    assert high - low < 0.01
    low, high = bounds(Repeat(LaplaceNoise(Fraction(10), 1), 1000), 1e-5)
    assert high - low < 1e-5
    low, high = bounds(LAPLACE, 1e-5)
    assert low <= 17.4236 <= high and high - low < 0.01


def test_small_deltas_are_exact_in_relative_terms():
    # One use of randomized response: delta(x) = (e^e - e^x)/(1 + e^e) at e = 1, x = 1 - 1e-3
    small = -math.expm1(-1e-3) * math.e / (1 + math.e)
    assert delta(PureDp(Fraction(1)), 1 - 1e-3) == pytest.approx(small, rel=1e-4)
    # 100 uses of epsilon 0.5 all tell the truth: (e^50 - e^49)/(1 + e^0.5)^100
    least = (math.e**50 - math.e**49) / (1 + math.e**0.5) ** 100
    assert delta(Repeat(PureDp(Fraction(1, 2)), 100), 49.0) == pytest.approx(least, rel=1e-6)
    # 1e-80, where a plain transform is blind below 1e-16
    tail = epsilon(Repeat(GaussianNoise(Fraction(10**4), 1), 100), 1e-80)
    assert delta(Compose((Repeat(GaussianNoise(Fraction(10**4), 1), 100),)), tail) <= 1.001e-80
