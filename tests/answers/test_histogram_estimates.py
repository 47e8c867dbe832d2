"""What is read off a noisy histogram: false bins, half widths and quantiles, checked against exact convolutions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.support.counts import FULL

from tacit.answers.histogram_estimates import (
    FALSE_BIN,
    estimate_rank,
    find_occupied,
    half_width,
    occupied_threshold,
)
from tacit.mechanisms.laplace import Laplace
from tacit.sampling.bits import ReplayBits


def pmf(scale: float, most: int) -> np.ndarray:
    """The probabilities of discrete Laplace noise from -most to most, from its definition."""
    weights = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    return weights / (2 / -np.expm1(-1 / scale) - 1)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(90)])
@pytest.mark.parametrize("cells", [2, 143, 203])
def test_an_empty_bin_is_taken_for_occupied_with_the_stated_probability(scale, cells):
    threshold = occupied_threshold(cells, scale)
    tail = pmf(float(scale), 60 * math.ceil(scale))
    at = len(tail) // 2
    assert tail[at + threshold :].sum() * cells <= float(FALSE_BIN)
    assert tail[at + threshold - 1 :].sum() * max(cells, 3) > float(FALSE_BIN)  # and no lower threshold would do


@pytest.mark.slow
def test_false_bins_are_as_rare_as_stated_in_releases():
    # 143 empty bins, 1,000 releases: false ones in each with probability at most 1%. Above 33 of 1,000 with
    # probability below 1e-9 (Chernoff: exp(-10 (3.3 ln 3.3 - 2.3)) < 1e-7 at 33; at 40: exp(-10 (4 ln 4 - 3)) < 1e-11).
    bits = ReplayBits(b"empty")
    found = sum(bool(find_occupied(Laplace(5).release([0] * 143, bits), Fraction(5))) for _ in range(1000))
    assert found <= 40


@pytest.mark.parametrize("count", [1, 2, 3, 10, 150])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_sums_of_noise_are_within_the_half_width(count, scale):
    one = pmf(scale, int(40 * scale) + 5)
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, one)
    width = half_width(count, Fraction(scale))
    places = np.arange(len(total)) - len(total) // 2
    assert total[np.abs(places) > width].sum() <= 0.05
    assert count < 10 or scale < 1 or total[np.abs(places) > 0.85 * width].sum() > 0.05  # nor much too wide


def test_quantiles_of_counts_without_noise():
    # 10, 20, 30 and 40 units: the median is number 50, a third of the way into the third bin
    cells = [10_000, 20_000, 30_000, 40_000]
    found = estimate_rank(cells, Fraction(1, 10), Fraction(1, 2))
    assert (found.cell, found.low, found.high) == (2, 2, 2)
    assert found.within == pytest.approx(2 / 3)
    assert estimate_rank(cells, Fraction(1, 10), Fraction(1, 20)).cell == 0
    assert estimate_rank([0, 0], Fraction(1), Fraction(1, 2)).cell == 1


@pytest.mark.slow
@pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 2), Fraction(95, 100)])
def test_intervals_of_quantiles_cover(share):
    # 2,000 releases at 95% or more: fewer than 1,830 with probability below 1e-9 (70 below the mean of 1,900, whose
    # deviation is 9.7: 7 deviations).
    rounds = 8000 if FULL else 2000
    exact = [40, 0, 130, 300, 220, 90, 10]
    truth = next(place for place in range(len(exact)) if sum(exact[: place + 1]) >= share * sum(exact))
    bits, scale = ReplayBits(b"ranks"), Fraction(25)
    found = [estimate_rank(Laplace(scale).release(exact, bits), scale, share) for _ in range(rounds)]
    assert sum(each.low <= truth <= each.high for each in found) >= rounds * 0.95 - 7 * math.sqrt(rounds * 0.0475)
    # and they say something: with a tenth of the width so many would miss
    assert sum(each.low == each.high for each in found) < rounds
