"""The Gaussian mechanism: its zCDP exactly, its law, its error, exact addition."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Ones
from tests.support.statistics import chi_square

from tacit.errors import ParameterError
from tacit.mechanisms.gaussian import Gaussian
from tacit.privacy.loss import GaussianNoise
from tacit.sampling.bits import ReplayBits


def law(variance, reach=400):
    weights = {k: math.exp(-k * k / (2 * float(variance))) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def divergence(variance, shift, order):
    """The Renyi divergence of this order between the law and the law moved by `shift`, summed term by term."""
    chances = law(variance)
    terms = []
    for k in range(-150, 151):
        # In logarithms: p(k)^a p(k - shift)^(1 - a), without the two normalizers, of which one remains.
        terms.append(-(order * k * k + (1 - order) * (k - shift) ** 2) / (2 * float(variance)))
    top = max(terms)
    total = math.fsum(math.exp(term - top) for term in terms)
    return (math.log(total) + top + math.log(chances[0])) / (order - 1)


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(4), Fraction(25)], ids=str)
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_the_zcdp_cost_is_exact(variance, shift):
    rho = float(Gaussian(variance).rho(shift))
    assert rho == shift**2 / (2 * float(variance))
    for order in (2, 3, 5):  # reached at whole orders
        assert divergence(variance, shift, order) == pytest.approx(order * rho, rel=1e-9)
    for order in (1.25, 1.5, 2.5, 7.3):  # and nowhere passed
        assert divergence(variance, shift, order) <= order * rho * (1 + 1e-9)


def test_coordinates_add_up():
    # Four counts that move by 3 each: 4 * 9 / (2 * 50) = 0.36
    noise = Gaussian(Fraction(50))
    assert noise.rho(3, 4) == Fraction(36, 100)
    assert noise.loss(3, 4) == GaussianNoise(Fraction(50), 3, 4)


def test_calibration_is_exact():
    assert Gaussian.for_rho(Fraction(36, 100), sensitivity=3, coordinates=4).variance == 50
    assert Gaussian.for_rho(0.5).variance == 1
    assert Gaussian.for_rho(Decimal("0.5"), sensitivity=0).variance == 1


def delta_of(variance, shift, coordinates, epsilon):
    """The sum of (p(k) - e^epsilon p(k - shift))+ over all vectors k, straight from the law.

    The loss of a vector, the sum of ((k - shift)^2 - k^2)/2, depends on the sum of its coordinates alone.
    """
    reach = 14 * math.isqrt(math.ceil(variance)) + 14
    chances, sums = np.array([*law(variance, reach).values()]), np.ones(1)
    for _ in range(coordinates):
        sums = np.convolve(sums, chances)
    losses = {shift * (shift * coordinates / 2 - k): p for k, p in enumerate(sums.tolist(), -reach * coordinates)}
    return math.fsum(
        -math.expm1(epsilon - x / float(variance)) * p for x, p in losses.items() if x / variance > epsilon
    )


@pytest.mark.slow
def test_the_discrete_law_is_priced_as_itself():
    # sigma = 3.730632 is enough for real noise at (1, 1e-5), but one step of the discrete law has delta 1.035e-5.
    assert delta_of(Fraction(3.730632) ** 2, 1, 1, 1) == pytest.approx(1.035e-5, abs=5e-9)
    # The least safe sigma is 3.7405.
    assert math.sqrt(Gaussian.calibrated(1, 1e-5).variance) == pytest.approx(3.7405, abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "coordinates"), [(1, 1), (3, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (0.25, 1e-3), (4, 1e-6)])
def test_calibrated_noise_is_the_least(epsilon, delta, shift, coordinates):
    variance = Gaussian.calibrated(epsilon, delta, shift, coordinates).variance
    assert delta_of(variance, shift, coordinates, epsilon) <= delta
    # No smaller move is worse, and hardly any less noise would do.
    assert delta_of(variance, max(shift - 1, 1), coordinates, epsilon) <= delta
    assert delta_of(variance, shift, coordinates - 1, epsilon) <= delta
    assert delta_of(variance * Fraction(9999, 10_000), shift, coordinates, epsilon) > delta


def test_nothing_moves():
    assert Gaussian.calibrated(1, 1e-5, sensitivity=0) == Gaussian.calibrated(1, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(25, 3)], ids=str)
def test_release_has_the_law(variance, single):
    # p > 1e-11 for each of 4: a false alarm in at most 4e-11. A tenth more variance is rejected.
    count, bits, noise = (60_000 if not single else 15_000), ReplayBits(b"gaussian"), Gaussian(variance)
    drawn = [noise.release(7, bits) - 7 for _ in range(count)] if single else noise.release([0] * count, bits)
    edge = 1 if variance < 1 else 6
    observed = [sum(k == j for k in drawn) for j in range(-edge, edge + 1)]
    observed.append(count - sum(observed))

    def expected(law_of):
        inside = [count * law_of[j] for j in range(-edge, edge + 1)]
        return [*inside, count - math.fsum(inside)]

    assert chi_square(observed, expected(law(variance))) > 1e-11
    if not single:
        assert chi_square(observed, expected(law(variance * Fraction(11, 10)))) < 1e-9


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(25), Fraction(400)], ids=str)
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**6)], ids=str)
def test_error_is_the_least_that_covers(variance, confidence):
    chances, w = law(variance), Gaussian(variance).error(confidence)
    assert math.fsum(chances[k] for k in range(-w, w + 1)) >= float(confidence) - 1e-12
    assert w == 0 or math.fsum(chances[k] for k in range(1 - w, w)) < float(confidence)


@pytest.mark.parametrize("count", [1, 16, 17, 1_000])
def test_large_values_lose_nothing(count):
    values = [2**53 + 1, 2**63 + 1, -(2**64) - 3, 10**40 + 7][:count] + [2**70 + i for i in range(count - 4)]
    released = Gaussian(Fraction(25)).release(values, ReplayBits(b"large"))
    assert all(type(value) is int for value in released)
    # 1,000 draws of deviation 5: beyond 50 with probability 1000 * 1.5e-23
    assert max(abs(a - b) for a, b in zip(released, values, strict=True)) <= 50


def test_scalars_and_vectors():
    noise = Gaussian(Fraction(1, 100))  # P(k != 0) = 2 e^-50
    assert noise.release(2**63 + 1, ReplayBits(b"one")) == 2**63 + 1
    assert noise.release(np.int64(5), ReplayBits(b"one")) == 5
    assert noise.release(np.arange(20), ReplayBits(b"array")).tolist() == list(range(20))
    assert noise.release([], ReplayBits(b"")) == []


@pytest.mark.parametrize("count", [3, 40])
def test_wide_noise_is_not_cut(count):
    # Deviation 2^80: within 2^63 of zero with probability 40 * 2^-17; this seed is none of those.
    released = Gaussian(Fraction(2**160)).release([0] * count, ReplayBits(b"wide"))
    assert min(abs(value) for value in released) > 2**63


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans(), st.none()))
def test_no_such_variance(variance):
    with pytest.raises(ParameterError, match="variance: "):
        Gaussian(variance)
    with pytest.raises(ParameterError, match="rho: "):
        Gaussian.for_rho(variance)
    with pytest.raises(ParameterError, match="epsilon: "):
        Gaussian.calibrated(variance, 1e-5)
    with pytest.raises(ParameterError, match="delta: "):
        Gaussian.calibrated(1, variance)


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(), st.text(), st.booleans(), st.none()))
def test_no_such_values(value):
    with pytest.raises(ParameterError, match="values: "):
        Gaussian(Fraction(1)).release([value], Ones())
    with pytest.raises(ParameterError, match="values: "):
        Gaussian(Fraction(1)).release(value, Ones())


@pytest.mark.parametrize("bad", [-1, 1.0, math.nan, True, "1", None])
def test_no_such_sensitivity(bad):
    with pytest.raises(ParameterError, match="sensitivity: "):
        Gaussian(Fraction(1)).loss(bad)
    with pytest.raises(ParameterError, match="coordinates: "):
        Gaussian(Fraction(1)).rho(1, bad)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, math.nan, "0.5", True])
def test_no_such_confidence(confidence):
    with pytest.raises(ParameterError, match="confidence: "):
        Gaussian(Fraction(1)).error(confidence)
