"""The Laplace mechanism: its theorem in numbers, exact addition, its error."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from tests.support.bits import Ones

from tacit.accounting.basic import epsilon
from tacit.errors import ParameterError
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import LaplaceNoise
from tacit.sampling.bits import ReplayBits


def log_chance(scale: Fraction, k: int) -> float:
    """ln P(k), from P(k) = (1 - q)/(1 + q) q^|k|."""
    q = math.exp(-1 / float(scale))
    return math.log((1 - q) / (1 + q)) - abs(k) / float(scale)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(7, 3), Fraction(100)], ids=str)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_largest_log_ratio_is_d_over_scale(scale, d):
    # Neighbors 0 and d: every output in the tails beyond them has the ratio exp(d/scale), none has more.
    ratios = [log_chance(scale, k) - log_chance(scale, k - d) for k in range(-300, 300)]
    assert max(ratios) == pytest.approx(float(d / scale))
    assert min(ratios) == pytest.approx(-float(d / scale))
    assert epsilon(Laplace(scale).loss(d)) == d / scale


def test_the_law_is_a_law():
    # The formula above adds up to one: sum over |k| <= 4000 at scale 100 leaves out 2 q^4001/(1 + q) = e^-40.
    assert math.fsum(math.exp(log_chance(Fraction(100), k)) for k in range(-4_000, 4_001)) == pytest.approx(1)


def test_a_vector_that_moves_in_two_places():
    # (3, 0) and (0, 2) differ by 5 in L1: the joint log ratio at (10, -10) is (3 + 2)/scale.
    scale = Fraction(4)
    ratio = sum(
        log_chance(scale, at - one) - log_chance(scale, at - other) for at, one, other in [(10, 3, 0), (-10, 0, 2)]
    )
    assert ratio == pytest.approx(float(Fraction(5, 4)))
    assert epsilon(LaplaceNoise(scale, 5)) == Fraction(5, 4)


def test_calibration_is_exact():
    assert Laplace.calibrated(Fraction(1, 3), 7).scale == 21
    assert epsilon(Laplace.calibrated(Fraction(1, 3), 7).loss(7)) == Fraction(1, 3)


def test_what_cannot_move_gets_the_noise_of_one_and_costs_nothing():
    constant = Laplace.calibrated(Fraction(1, 2), 0)
    assert constant.scale == 2
    assert epsilon(constant.loss(0)) == 0


@pytest.mark.parametrize("count", [1, 16, 17, 1_000])
def test_large_values_lose_nothing(count):
    # Beyond 2^53 a double, beyond 2^63 a machine integer would lose the last digits.
    values = [2**53 + 1, 2**63 + 1, -(2**64) - 3, 10**40 + 7][:count] + [2**70 + i for i in range(count - 4)]
    assert Laplace(Fraction(5)).release(values, Ones()) == values
    released = Laplace(Fraction(5)).release(values, ReplayBits(b"large"))
    assert all(type(value) is int for value in released)
    # 1,000 draws of scale 5: beyond 5 * 40 = 200 with probability 1000 * 2 e^-40 = 8e-15
    assert max(abs(a - b) for a, b in zip(released, values, strict=True)) < 200


@pytest.mark.parametrize("count", [3, 40])
def test_wide_noise_is_not_cut(count):
    # Scale 2^80: with probability 1 - 40 * 2^-16 or so every draw passes 2^63; this seed is one of those.
    released = Laplace(Fraction(2**80)).release([0] * count, ReplayBits(b"wide"))
    assert min(abs(value) for value in released) > 2**63


def test_each_value_has_noise_of_its_own():
    released = Laplace(Fraction(10**6)).release([0] * 1_000, ReplayBits(b"own"))
    # 1,000 draws of scale 10^6: two of them are equal about 1000^2/2 / (4 * 10^6) = 0.1 times
    assert len(set(released)) > 990


def test_nothing_to_release():
    assert Laplace(Fraction(1)).release([], ReplayBits(b"")) == []


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1, 2), 0, -3])
def test_a_scale_is_positive(scale):
    with pytest.raises(ParameterError, match="scale: must be positive"):
        Laplace(scale)


@pytest.mark.parametrize("price", [Fraction(0), Fraction(-1)])
def test_an_epsilon_is_positive(price):
    with pytest.raises(ParameterError, match="epsilon: must be positive"):
        Laplace.calibrated(price, 1)


@pytest.mark.parametrize(("scale", "sensitivity"), [(Fraction(0), 1), (Fraction(1), -1)])
def test_no_such_loss(scale, sensitivity):
    with pytest.raises(ParameterError):
        LaplaceNoise(scale, sensitivity)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(10)], ids=str)
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**6)], ids=str)
def test_error_is_the_least_that_covers(scale, confidence):
    w = Laplace(scale).error(confidence)

    def covered(width: int) -> float:
        return math.fsum(math.exp(log_chance(scale, k)) for k in range(-width, width + 1))

    assert covered(w) >= float(confidence)
    assert w == 0 or covered(w - 1) < float(confidence)


def test_error_in_draws():
    # Scale 10 at 95 %: 2 q^(w+1)/(1 + q) <= 0.05 with q = e^-0.1 gives w = 30: P = 2 e^-3.1/1.9048 = 0.0473.
    noise = Laplace(Fraction(10))
    assert noise.error(Fraction(95, 100)) == 30
    released = noise.release([0] * 100_000, ReplayBits(b"error"))
    missed = sum(abs(value) > 30 for value in released)
    # 4,730 expected, standard deviation 67; six of them: a false alarm of 2e-9
    assert 4_730 - 402 < missed < 4_730 + 402
