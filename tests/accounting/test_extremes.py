"""Very large, very small and degenerate losses: a true bound, quickly, and no warning."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from tacit.accounting import METHODS, bounds, delta, epsilon
from tacit.accounting.privacy_loss_distribution import PrivacyLossDistribution, coarser, discretize
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Parallel,
    PureDp,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

LOSSES = [
    PureDp(Fraction(10**6)),
    PureDp(Fraction(1, 10**9)),
    Repeat(PureDp(Fraction(1, 10**6)), 10**6),
    LaplaceNoise(Fraction(10**20), 10**20),
    ContinuousGaussianNoise(Fraction(1, 100)),
    ContinuousGaussianNoise(Fraction(10**6)),
    GaussianNoise(Fraction(1, 100), 1, 50),
    GaussianNoise(Fraction(10**18), 10**9),
    GaussianNoise(Fraction(5), 0),
    BoundedRange(Fraction(2000)),
    ApproximateDp(Fraction(1), Fraction(1)),
    ApproximateDp(Fraction(0), Fraction(1, 1000)),
    ConcentratedDp(Fraction(10**4)),
    Sampled(PureDp(Fraction(500)), Fraction(1, 10)),
    Sampled(PureDp(Fraction(1)), Fraction(1, 10**9)),
    Compose((PureDp(Fraction(10**5)), PureDp(Fraction(1, 10**5)))),
]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: str(loss)[:60])
def test_every_accountant_gives_a_bound(loss):
    for by in METHODS:
        assert epsilon(loss, 1e-5, by=by) >= 0
        assert 0 <= delta(loss, 1.0, by=by) <= 1
    low, high = bounds(loss, 1e-5)
    assert 0 <= low <= high


def test_noise_far_below_one_step():
    # variance 1/100, one step: the noise is 0 but for e^-50, so the loss is 50 and delta(x) = 1 - e^{x - 50}
    assert epsilon(GaussianNoise(Fraction(1, 100), 1), 1e-5) == pytest.approx(50 - 1e-5, abs=1e-6)
    # fifty coordinates: 2,500
    assert epsilon(GaussianNoise(Fraction(1, 100), 1, 50), 1e-5) == pytest.approx(2500, abs=1e-3)


@pytest.mark.parametrize(
    "loss",
    [
        BoundedRange(Fraction(10) ** 160),  # its square is no double
        BoundedRange(Fraction(10) ** 152),  # its square is one, and no double at a large order
        GaussianNoise(Fraction(40), 1000, 10**6),  # hardly any noise, and too many integers to list
    ],
    ids=lambda loss: str(loss)[:60],
)
def test_losses_far_beyond_any_use_have_a_bound_too(loss):
    for by in METHODS:
        assert epsilon(loss, 0.5, by=by) >= 0
        assert 0 <= delta(loss, 1.0, by=by) <= 1


def test_the_least_delta_there_is():
    assert epsilon(PureDp(Fraction(1, 3)), 5e-324, by="optimal") == pytest.approx(1 / 3)
    assert epsilon(PureDp(Fraction(10) ** 200), 5e-324, by="optimal") == pytest.approx(1e200)


@pytest.mark.parametrize("sigma", [Fraction(1, 10**6), Fraction(1, 10**8), Fraction(15, 10**10), Fraction(1, 10**9)])
def test_noise_that_hides_nothing_hides_nothing_in_company(sigma):
    # x > 1/2 has the probability 1 - e^(-1/(8 sigma^2))/2 or more beside 1, and e^(-1/(8 sigma^2)) or less beside 0
    loss = Compose((ContinuousGaussianNoise(sigma), LaplaceNoise(10, 1)))
    for at in (0, 1, 1000):
        assert delta(loss, at) >= 1 - 1e-15
    # N(mean^2/2, mean^2) is above mean^2/2 - 5 mean but for 3e-7, and delta(x) >= P[L > x + 20] (1 - e^-20)
    mean = 1 / float(sigma)
    assert epsilon(loss, 1e-6) >= mean**2 / 2 - 5 * mean - 20


def test_discrete_noise_that_hides_nothing_hides_nothing_in_company():
    # the noise has a standard deviation of 10^6 and the count moves by 10^14
    loss = Compose((GaussianNoise(Fraction(10) ** 12, 10**14), Repeat(LaplaceNoise(10**6, 1), 20)))
    assert delta(loss, 10) == 1
    assert epsilon(loss, 1e-6) >= 4.99e15  # shift^2/(2 variance) = 5e15


def test_no_loss_is_given_a_place_that_no_integer_holds():
    atoms = PrivacyLossDistribution(np.array([-1e280, 1.0, 1e280]), np.array([0.25, 0.5, 0.25]))
    with pytest.raises(ArithmeticError):
        discretize(atoms, 1.0)
    alike = PrivacyLossDistribution(np.linspace(1e20, 1e20 + 2**20, 65), np.full(65, 1 / 65))
    found = coarser(alike, 10)  # a step of 2^20/8 would have numbered them by 7.6e14 and up, more than 2^49
    assert found.delta(1e19) >= 1 - 1e-12


MINUTE = Fraction(1, 10**170)


@pytest.mark.parametrize(
    ("loss", "truth"),
    [
        (PureDp(MINUTE), 5e-171),  # delta(0) = tanh(epsilon/2)
        (BoundedRange(MINUTE), 2.4e-171),  # two outcomes, each with a loss of at most epsilon/2: tanh(epsilon/4)
        (ApproximateDp(MINUTE, Fraction(1, 10**170)), 1.5e-170),
        (LaplaceNoise(1 / MINUTE, 1), 5e-171),
        (LaplaceNoise(1 / MINUTE, 2), 9.9e-171),  # about d/(2 b)
        (LaplaceNoise(Fraction(10) ** 400, 2), 5e-324),  # less than any double
        (ContinuousLaplaceNoise(1 / MINUTE), 4.9e-171),  # 1 - e^(-1/(2 b))
        (ContinuousGaussianNoise(1 / MINUTE), 3.9e-171),  # 1/(sigma sqrt(2 pi))
        (GaussianNoise(1 / MINUTE**2, 1), 3.9e-171),
        (ConcentratedDp(MINUTE**2 / 2), 3.9e-171),  # as Gaussian noise has
        (Sampled(PureDp(1), MINUTE), 4.6e-171),  # rate tanh(1/2)
        (Repeat(ContinuousGaussianNoise(Fraction(10) ** 165), 10**308), 3.9e-12),  # 10^154/10^165/sqrt(2 pi)
        (Repeat(PureDp(Fraction(1, 10**163)), 10**308), 3.9e-10),  # the same, by the central limit
        (Repeat(Sampled(PureDp(1), MINUTE), 10**300), 4.6e-171),
        (Sampled(ApproximateDp(1, Fraction(1, 10**200)), Fraction(1, 10**200)), 4.6e-201),
        (Compose((Sampled(ApproximateDp(1, 1), Fraction(1, 10**200)), PureDp(0))), 9.9e-201),
        (Repeat(PureDp(MINUTE), 10**400), 0.9),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_underflows_is_still_lost(loss, truth):
    for by in METHODS:
        assert delta(loss, 0, by=by) >= truth


def test_the_epsilon_of_what_underflows():
    # (e^epsilon - e^x)/(1 + e^epsilon) = 1e-300 at x = 1e-170 - 2e-300
    for by in METHODS:
        assert epsilon(PureDp(MINUTE), Fraction(1, 10**300), by=by) >= 9.999999e-171


def of_approximate(loss, at):
    """delta of the pair that dominates (epsilon, delta)-DP, at 60 digits."""
    with mp.workdps(60):
        e, d, x = (mpf(n.numerator) / n.denominator for n in (loss.epsilon, loss.delta, Fraction(at)))
        return d + (1 - d) * max(mpf(0), (mp.exp(e) - mp.exp(x)) / (1 + mp.exp(e)))


def test_the_worst_of_almost_equal_deltas_is_the_larger():
    one, other = ApproximateDp(1, Fraction("1e-6")), ApproximateDp(1, Fraction("1.0000000005e-6"))
    steep = ApproximateDp(Fraction(3, 2), Fraction("1e-7"))
    for parts in ((one, other), (other, one), (one, other, steep), (steep, other)):
        loss = Parallel(parts, Neighbors.ADD_REMOVE)
        for at in (0.5, 1.0, 1.25, 1.5, 5.0):
            truth = max(of_approximate(part, at) for part in parts)
            for by in METHODS:
                assert mpf(delta(loss, at, by=by)) >= truth
        assert epsilon(loss, Fraction("1.0000000001e-6")) == float("inf")  # at most what is lost for certain


def test_the_lower_end_is_below_the_pair():
    # (1 - d) (e - e^x)/(1 + e) + d = 0.3 at x = ln(e - (1 + e) (0.3 - d)/(1 - d)), d = 1/10
    truth = mp.log(mp.e - (1 + mp.e) * (mpf("0.3") - mpf("0.1")) / mpf("0.9"))
    low, high = bounds(Compose((PureDp(1), ApproximateDp(0, Fraction(1, 10)))), Fraction(3, 10))
    assert low <= truth <= high <= truth + 1e-9
    low, high = bounds(ApproximateDp(1, Fraction(1, 10)), Fraction(3, 10))
    assert low <= truth <= high <= truth + 1e-9


@pytest.mark.parametrize("at", [0, 0.001, 1])
def test_noise_of_a_ten_millionth(at):
    for sigma in (Fraction(3, 10**7), Fraction(1, 10**7)):
        assert delta(ContinuousGaussianNoise(sigma), at) == 1


def test_more_uses_than_a_transform_can_count_hide_no_other():
    # each of the many loses nearly nothing, but its transform to their power is less than rounding; e^43 hides nothing
    many = Repeat(BoundedRange(Fraction(1, 10**58)), 10**52)
    for by in METHODS:
        assert delta(Compose((Repeat(ConcentratedDp(Fraction(51, 10**6)), 2), many, PureDp(43))), 0, by=by) >= 1 - 1e-15
        assert (
            delta(Parallel((Compose((many, PureDp(43), PureDp(Fraction(1, 3)))),), Neighbors.REPLACE), 0, by=by) > 0.99
        )
    low, high = bounds(Compose((many, PureDp(43))), Fraction(1, 10**6))
    assert 0 <= low <= 43 <= high + 1e-5
