"""Every figure is at least the real number, rounding included: against mpmath, and at the edges of doubles."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from tacit.accounting import METHODS, delta, epsilon
from tacit.accounting.filters import (
    GRAINS_PER_RHO,
    BudgetCharge,
    FilterLimits,
    compute_charge,
    compute_limits,
    max_rho,
    remaining_epsilon,
)
from tacit.accounting.interpretation import max_true_positive_rate, min_guessing_error, posterior_bounds
from tacit.accounting.rounding import ball_above, ball_below, digits_above, double_above, double_below
from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.accounting.zcdp import rho_from_epsilon
from tacit.arithmetic import to_interval, working_precision
from tacit.privacy.guarantee import delta_from_rho, epsilon_from_rho
from tacit.privacy.loss import (
    ApproximateDp,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    PureDp,
    Repeat,
    Sampled,
)

mp.dps = 60
TINY, HUGE = Fraction(1, 10**300), Fraction(10**300)


def exactly(number: Fraction | float) -> mpf:
    number = Fraction(number)
    return mpf(number.numerator) / number.denominator


def converted(rho: mpf, lost: mpf) -> mpf:
    """The least of rho a + (ln(1/delta) - ln a)/(a - 1) + ln(1 - 1/a) over the orders, to 60 digits."""

    def at(t: mpf) -> mpf:
        less = mp.exp(t)
        return rho * (1 + less) + (-mp.log(lost) - mp.log1p(less)) / less - mp.log1p(1 / less)

    low = mp.log(max(-mp.log(lost), mpf("1e-3")) / rho) / 2 - 10
    high, golden = low + 20, (mp.sqrt(5) - 1) / 2
    for _ in range(110):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return max(mpf(0), at((low + high) / 2))


def of_optimal(each: Fraction, lost: Fraction, times: int, at: Fraction) -> mpf:
    """The formula of Kairouz, Oh and Viswanath, term by term."""
    e, d, x = exactly(each), exactly(lost), exactly(at)
    wrong, total = int(mp.ceil((times - x / e) / 2)) - 1, mpf(0)
    right = 1 / (1 + mp.exp(-e))
    choose = mp.loggamma(times + 1) - mp.loggamma(wrong + 1) - mp.loggamma(times - wrong + 1)
    term = mp.exp(choose + wrong * mp.log(1 - right) + (times - wrong) * mp.log(right))
    while wrong >= 0 and term > total * mpf(10) ** -50:
        total += term * -mp.expm1(x - (times - 2 * wrong) * e)
        term *= mpf(wrong) / (times - wrong + 1) * mp.exp(e)
        wrong -= 1
    return 1 - (1 - d) ** times + (1 - d) ** times * total


@pytest.mark.slow
def test_the_optimal_theorem_for_many_uses():
    # at 100,000 uses logarithms of factorials in doubles were 1.5e-10 too low
    for each, lost, times, at in [
        (Fraction(1, 10), Fraction(0), 100_000, Fraction(700)),
        (Fraction(1, 100), Fraction(1, 10**9), 100_000, Fraction(20)),
        (Fraction(1, 3), Fraction(0), 50_000, Fraction(3000)),
        (Fraction(2), Fraction(1, 1000), 3, Fraction(5)),
        (Fraction(5), Fraction(0), 100, Fraction(499)),
    ]:
        truth = of_optimal(each, lost, times, at)
        claimed = exactly(delta(Repeat(ApproximateDp(each, lost), times), at, by="optimal"))
        assert truth <= claimed <= truth * (1 + mpf(10) ** -9)


@pytest.mark.slow
def test_what_is_lost_for_certain_is_rounded_up():
    for lost in (Fraction(1, 10), Fraction(1, 3 * 10**7), Fraction(7, 10**15), Fraction(999, 1000)):
        for times in (1, 2, 3, 1000):
            loss, truth = Repeat(ApproximateDp(Fraction(1), lost), times), 1 - (1 - lost) ** times
            for by in METHODS:
                assert Fraction(delta(loss, 1.5 * times, by=by)) >= truth
            assert Fraction(delta(loss, 1.5 * times)) <= truth * (1 + Fraction(1, 10**9))


@pytest.mark.slow
@pytest.mark.parametrize("rho", [5e-324, 1e-300, 1e-12, 1e-3, 1.0, 1e6, 1e300])
def test_conversions_of_rho_at_the_edges_of_doubles(rho):
    for at in (5e-324, 1e-300, 1e-6, 0.5, 1.0, 1e3, 1e300):
        found = delta_from_rho(rho, at)
        assert 0 < found <= 1  # never zero, however small
    for lost in (5e-324, 1e-300, 1e-30, 1e-6, 0.5):
        found = epsilon_from_rho(rho, lost)
        truth = converted(exactly(rho), exactly(lost))
        assert truth <= exactly(found) * (1 + mpf(10) ** -40)
        assert exactly(found) <= truth * (1 + mpf(10) ** -7) + mpf(10) ** -12 * (1 + exactly(rho))


@pytest.mark.slow
def test_the_delta_of_a_rho_is_at_least_the_real_one():
    rng = random.Random(3)
    for _ in range(40):
        rho, at = 10 ** rng.uniform(-6, 2), 10 ** rng.uniform(-3, 3)
        found = delta_from_rho(rho, at)
        # whoever has this delta has at most this epsilon, by the same theorem at 60 digits
        if found < 1 and found > 1e-300:
            assert converted(exactly(rho), exactly(found)) <= exactly(at) * (1 + mpf(10) ** -30)


@pytest.mark.slow
def test_caps_and_what_noise_may_cost_convert_to_no_more_than_the_budget(full):
    rng = random.Random(4)
    for _ in range(200 if full else 12):
        price = Fraction(rng.randint(1, 10**6), rng.choice([10**4, 10**6, 10**8]))
        lost = Fraction(1, 10 ** rng.randint(2, 14))
        limit = compute_limits(price, lost)
        if limit.rho:
            assert converted(exactly(Fraction(limit.rho, GRAINS_PER_RHO)), exactly(lost / 4)) <= exactly(price)
        noise = max_rho(price, lost)
        if noise:
            assert converted(exactly(noise), exactly(lost)) <= exactly(price)
        charged = compute_charge(ConcentratedDp(noise), lost) if noise else BudgetCharge.zero()
        assert Fraction(charged.epsilon, 10**12) <= price * (1 + Fraction(1, 10**9)) + Fraction(1, 10**12)
    # 28,444 questions of 0.01 at epsilon 10 and delta 1e-6, as always
    assert (
        compute_limits(Fraction(10), Fraction(1, 10**6)).rho // compute_charge(LaplaceNoise(Fraction(100), 1)).rho
        == 28_444
    )


def test_budgets_at_the_edges():
    for price in (TINY, Fraction(1, 10**12), Fraction(8000), HUGE):
        for lost in (TINY, Fraction(1, 10**6), Fraction(999, 1000)):
            assert max_rho(price, lost) >= 0
            assert compute_limits(min(price, Fraction(9000)), lost).rho >= 0
    assert (
        compute_charge(ConcentratedDp(HUGE), TINY).rho == compute_charge(GaussianNoise(TINY, 1), TINY).rho == 2**63 - 1
    )


def test_what_remains_fits():
    rng = random.Random(5)
    for _ in range(100):
        left = rng.randint(1, 10 ** rng.randint(1, 18))
        grains = remaining_epsilon(BudgetCharge.zero(), FilterLimits(0, 0, left, 0))
        assert math.ceil(rho_from_epsilon(Fraction(grains, 10**12)) * GRAINS_PER_RHO) <= left


LEAVES = [
    PureDp,
    lambda x: LaplaceNoise(1 / x, 1),
    lambda x: LaplaceNoise(3 / x, 3),
    lambda x: ContinuousLaplaceNoise(1 / x),
    lambda x: ContinuousGaussianNoise(1 / x),
    lambda x: GaussianNoise(1 / x**2, 1),
    ConcentratedDp,
    lambda x: ApproximateDp(x, TINY),
    lambda x: Sampled(PureDp(x), Fraction(1, 3)),
]


@pytest.mark.slow
@pytest.mark.parametrize("leaf", LEAVES)
def test_every_accountant_at_the_edges_of_doubles(leaf):
    for x in (TINY, Fraction(1, 10**12), Fraction(10**12), HUGE):
        loss = leaf(x)
        for by in ("basic", "advanced", "optimal", "zcdp", "renyi", "pld"):
            assert epsilon(loss, TINY, by=by) >= 0
            assert epsilon(loss, 1e-6, by=by) >= 0
            assert 0 <= delta(loss, TINY, by=by) <= 1
            assert 0 <= delta(loss, HUGE, by=by) <= 1


@pytest.mark.slow
def test_a_thousand_million_uses():
    each = Fraction(1, 10**6)
    loss = Repeat(PureDp(each), 10**9)
    found = {by: epsilon(loss, 1e-6, by=by) for by in METHODS}
    # all above the law itself, which is normal here: N(n e^2/2, n e^2) with n e^2 = 1e-3
    normal = 0.11592  # Phi(m/2 - x/m) - e^x Phi(-m/2 - x/m) = 1e-6 at m = sqrt(1e-3)
    assert all(one > normal for one in found.values())
    assert found["optimal"] < 0.11594 and found["pld"] < 0.11594


def test_a_table_is_rounded_up():
    third = TransitionMatrix([[Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]])
    assert exactly(third.epsilon) >= mp.log(2)
    for at in (0.0, 0.1, 0.5, 0.69):
        truth = (2 - mp.exp(exactly(at))) / 3
        assert truth <= exactly(third.delta(at)) <= truth + mpf(10) ** -15
    assert third.delta(1e9) == 0


def test_what_a_person_is_told_is_rounded_against_tacit():
    for at in (0.1, 1.0, 5.0, 40.0, 700.0):
        assert exactly(min_guessing_error(at)) <= 1 / (1 + mp.exp(exactly(Fraction(str(at)))))
        low, high = posterior_bounds(at, 0.3)
        odds = mpf(7) / 3
        assert exactly(low) <= 1 / (1 + odds * mp.exp(exactly(Fraction(str(at)))))
        assert exactly(high) >= min(mpf(1), 1 / (1 + odds * mp.exp(-exactly(Fraction(str(at)))))) * (1 - mpf(10) ** -50)
        rate = exactly(max_true_positive_rate(at, 1e-3, 1e-9))
        assert (
            rate >= min(1, mp.exp(exactly(Fraction(str(at)))) / 1000 + mpf(10) ** -9) * (1 - mpf(10) ** -50) or at > 5
        )


def test_roundings():
    rng = random.Random(6)
    for _ in range(200):
        number = Fraction(rng.randint(-(10**30), 10**30), rng.randint(1, 10**30)) * Fraction(10) ** rng.randint(
            -290, 300
        )
        assert Fraction(double_below(number)) <= number <= Fraction(double_above(number))
        assert math.nextafter(double_above(number), -math.inf) < number or double_above(number) == double_below(number)
        with working_precision(64):
            assert Fraction(ball_below(to_interval(number))) <= number <= Fraction(ball_above(to_interval(number)))
        assert Fraction(digits_above(abs(number))) >= abs(number) * (1 - Fraction(1, 10**15))
    assert double_above(Fraction(10) ** 400) == math.inf and double_above(-(Fraction(10) ** 400)) < -1e308
    assert digits_above(Fraction(12301, 10**10)) == "1.24e-06" and digits_above(Fraction(1, 10**6)) == "1e-06"


@pytest.mark.slow
@pytest.mark.parametrize("length", [2**9, 3 * 2**8, 5 * 2**8])
def test_the_error_of_a_transform_is_as_the_proof_assumes(length):
    # masses that add up to one: each coefficient within 2^-50 log2 N of the sum in long doubles
    rng = np.random.default_rng(7)
    masses = rng.random(length) ** 8
    masses /= masses.sum()
    found = np.fft.rfft(masses)
    two_pi = 8 * np.arctan(np.longdouble(1))
    turns = (np.outer(np.arange(found.size), np.arange(length)) % length).astype(np.longdouble) * (two_pi / length)
    real, imaginary = (np.cos(turns) * masses).sum(axis=1), -(np.sin(turns) * masses).sum(axis=1)
    error = np.hypot(real - found.real, imaginary - found.imag).max()
    assert error < 2.0**-50 * math.log2(length) / 2
