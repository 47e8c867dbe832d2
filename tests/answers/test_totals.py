"""A sum from the parts of a mean: its value, and how far its noise takes it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from tacit.aggregates.base import ReleasedVector, Releases
from tacit.aggregates.total import SumEstimator
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.query.types import Type
from tacit.sampling import gaussian, laplace
from tacit.sampling.bits import ReplayBits

DRAWS = 100_000
HALF = Fraction(1, 2)


def noises(mechanism: Laplace | Gaussian, seed: bytes) -> np.ndarray:
    if isinstance(mechanism, Laplace):
        return laplace.draw_array(mechanism.scale, DRAWS, ReplayBits(seed)).astype(float)
    return gaussian.draw_array(mechanism.variance, DRAWS, ReplayBits(seed)).astype(float)


@pytest.mark.parametrize("center", [Fraction(0), Fraction(-3), Fraction(50)])
@pytest.mark.parametrize(
    ("sums", "counts"),
    [
        (Laplace(Fraction(98)), Laplace(Fraction(2))),
        (Laplace(Fraction(7)), Laplace(Fraction(7))),
        (Gaussian(Fraction(9000)), Gaussian(Fraction(16))),
    ],
)
def test_the_interval_of_a_total_has_its_confidence_and_is_not_wide(sums, counts, center):
    how = SumEstimator(0, 1, center, Type.FLOAT)
    parts = ReleasedVector("s", sums, HALF), ReleasedVector("n", counts, Fraction(1))
    errors = np.abs(noises(sums, b"sums") * 0.5 + float(center) * noises(counts, b"counts"))
    width = float(how.half_width(Releases(parts), Fraction(95, 100)))
    missed = int((errors > width).sum())
    # At most 5 % of the draws are beyond: more than this is seen once in 1e9 runs. A 90 % interval would miss 10,000.
    most = binom.isf(1e-9, DRAWS, 0.05)
    assert missed <= most < 0.1 * DRAWS
    # The discrete steps cost at most one of each noise: half a unit, and the center.
    assert width <= np.quantile(errors, 0.955) + 0.5 + abs(float(center)) + 1


def test_an_integer_total_is_shown_as_the_nearest_integer():
    parts = ReleasedVector("s", Laplace(Fraction(10)), HALF), ReleasedVector("n", Laplace(Fraction(2)), Fraction(1))
    level = Fraction(95, 100)
    exact, whole = (
        SumEstimator(0, 1, Fraction(5), kind).half_width(Releases(parts), level) for kind in (Type.FLOAT, Type.INT)
    )
    assert whole - exact == HALF
