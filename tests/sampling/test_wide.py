"""Wide discrete Laplace draws are exact.

Each statistical test has a false-alarm rate of 1e-11 and rejects, with the same draws, a scale that is off by a tenth.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.support.counts import some

from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.sampling import gaussian, laplace, wide
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11
WIDTHS = [Fraction(2**20), Fraction(2**24) + Fraction(1, 3), Fraction(10**12, 7), Fraction(2**49)]
BEYOND = [Fraction(2**60), Fraction(3**100, 7), Fraction(2**200)]
SMALL = [Fraction(2), Fraction(5), Fraction(10), Fraction(61, 3)]


@pytest.mark.parametrize("scale", WIDTHS, ids=str)
def test_arrays_have_the_distribution(fit, scale, full):
    drawn = wide.draw_array(scale, 1_000_000 if full else 100_000, ReplayBits(f"array {scale}".encode()))
    assert fit(drawn, scale) > ALARM
    assert fit(drawn, scale * Fraction(11, 10)) < ALARM
    assert fit(drawn, scale * Fraction(9, 10)) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", [*WIDTHS, *BEYOND], ids=str)
def test_integers_have_the_distribution(fit, scale, full):
    # A scale off by a tenth: 30,000 (1/(0.909 * 1.091) - 1) = 250 or more, and 125 is 1e-11 of forty bins.
    drawn = wide.draw_integers(scale, 1_000_000 if full else 30_000, ReplayBits(f"list {scale}".encode()))
    assert fit(drawn, scale) > ALARM
    assert fit(drawn, scale * Fraction(11, 10)) < ALARM
    assert fit(drawn, scale * Fraction(9, 10)) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("draws", "scale"), some(product([wide.draw_array, wide.draw_integers], SMALL), 3))
def test_every_value_has_its_probability_where_all_can_be_counted(fit, monkeypatch, draws, scale, full):
    # With two bits for b, half of the coins are unsure, the fine part is rejected often and zero is drawn again.
    monkeypatch.setattr(wide, "_COARSE", 2)
    drawn = draws(scale, 400_000 if full else 8_000, ReplayBits(f"small {scale}".encode()))
    assert fit(drawn, scale) > ALARM
    counts = Counter(map(int, drawn))
    q = np.exp(-1 / float(scale))
    for k in range(-4, 5):  # each by itself: seven standard deviations, 1e-11
        share = (1 - q) / (1 + q) * q ** abs(k)
        assert abs(counts[k] - len(drawn) * share) < 7 * (len(drawn) * share) ** 0.5 + 7


@pytest.mark.parametrize("scale", [Fraction(2**47), Fraction(2**70)], ids=str)
def test_the_last_bits_are_uniform(chi_square, scale):
    drawn = wide.draw_integers(scale, 51_200, ReplayBits(f"last {scale}".encode()))
    for shift in (0, 13, 26):
        observed = np.bincount([abs(value) >> shift & 255 for value in drawn], minlength=256)
        assert chi_square(observed.tolist(), [200.0] * 256) > ALARM


def test_a_uniform_number_next_to_one_is_no_noise():
    class Ones:
        def words(self, count: int) -> np.ndarray:
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    assert (
        wide.draw_array(Fraction(2**40), 3, Ones()).tolist()
        == wide.draw_integers(Fraction(2**90), 3, Ones())
        == [0, 0, 0]
    )


def test_an_array_refuses_draws_that_may_not_fit():
    with pytest.raises(OverflowError, match="fit"):
        wide.draw_array(Fraction(2**50 + 1), 3, ReplayBits(b"too wide"))


def test_laplace_and_gaussian_of_any_width_take_the_quick_way(monkeypatch, full):
    """Interval arithmetic decides at most 2^-17 of the draws: of 30,000 fewer than 20 but with probability 1e-24."""
    asked: list[int] = []
    for module, name in ((laplace, "_draw_certified"), (wide, "is_below_exp"), (wide.geometric, "_draw_certified")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, real=real: asked.append(1) or real(*given))
    bits = ReplayBits(b"quick")
    for exponent in (25, 39, 47, 60, 300):
        Laplace(Fraction(2) ** exponent).release([0] * 3_000, bits)
        Gaussian(Fraction(4) ** exponent).release([0] * 3_000, bits)
    assert len(asked) < 20


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [Fraction(2**41), Fraction(2**100), Fraction(2**500)], ids=str)
def test_wide_gaussian_draws_have_the_distribution(binned, deviation, full):
    from math import erfc, sqrt

    count = 200_000 if full else 20_000 if deviation < 2**450 else 4_000
    drawn = gaussian.draw_integers(deviation**2, count, ReplayBits(f"gaussian {deviation}".encode()))
    edges = [int(deviation * step / 8) for step in range(-16, 17)]
    for scale, agrees in ((1.0, True), (1.15, False), (0.85, False)):
        found = binned(drawn, lambda m, scale=scale: erfc(float(m / deviation) / scale / sqrt(2)) / 2, edges)
        assert (found > ALARM) == agrees
