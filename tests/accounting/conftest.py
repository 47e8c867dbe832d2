"""Losses of every kind, for the tests of accountants."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.privacy import loss as kinds
from tacit.privacy.unit import Neighbors

LEAVES = {
    "laplace": kinds.LaplaceNoise(Fraction(10), 1),
    "laplace on a finer grid": kinds.LaplaceNoise(Fraction(40), 7),
    "gaussian": kinds.GaussianNoise(Fraction(25), 1),
    "gaussian, three coordinates": kinds.GaussianNoise(Fraction(50), 2, 3),
    "narrow gaussian": kinds.GaussianNoise(Fraction(2), 1, 2),
    "real laplace": kinds.ContinuousLaplaceNoise(Fraction(5)),
    "real gaussian": kinds.ContinuousGaussianNoise(Fraction(4)),
    "pure": kinds.PureDp(Fraction(1, 5)),
    "bounded range": kinds.BoundedRange(Fraction(1, 5)),
    "approximate": kinds.ApproximateDp(Fraction(1, 5), Fraction(1, 10**8)),
    "concentrated": kinds.ConcentratedDp(Fraction(1, 100)),
    "sampled": kinds.Sampled(kinds.ContinuousGaussianNoise(Fraction(1)), Fraction(1, 20)),
    "sampled laplace": kinds.Sampled(kinds.LaplaceNoise(Fraction(2), 1), Fraction(1, 10)),
    "parallel": kinds.Parallel(
        (kinds.PureDp(Fraction(1, 10)), kinds.LaplaceNoise(Fraction(5), 1)), Neighbors.ADD_REMOVE
    ),
    "one of several": kinds.OneOf(
        (kinds.PureDp(Fraction(1, 5)), kinds.ConcentratedDp(Fraction(1, 1000))), Fraction(1, 10**9)
    ),
    "group": kinds.Group(kinds.ApproximateDp(Fraction(1, 20), Fraction(1, 10**8)), 3),
}


@pytest.fixture(params=LEAVES.values(), ids=LEAVES.keys())
def leaf(request) -> kinds.Loss:
    return request.param


@pytest.fixture
def leaves() -> dict[str, kinds.Loss]:
    return dict(LEAVES)
