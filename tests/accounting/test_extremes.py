"""Very large, very small and degenerate losses: a true bound, quickly, and no warning."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.accounting import METHODS, bounds, delta, epsilon
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    PureDp,
    Repeat,
    Sampled,
)

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
