"""What a histogram with discrete Laplace noise says of the values: which bins hold units, and quantiles with intervals.

All of it is post-processing of the noisy counts, so it costs nothing.

>>> cells = [3, -2, 400, 250, 5, -1]
>>> find_occupied(cells, Fraction(10))
[2, 3]
>>> estimate_rank(cells[2:4], Fraction(10), Fraction(1, 2))
RankEstimate(cell=0, within=0.8125, low=0, high=0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.mechanisms.laplace import Laplace

FALSE_BIN = Fraction(1, 100)
"""Probability that at least one empty bin of a histogram is taken to be occupied."""

_DEVIATIONS = 2.12  # within so many standard deviations lies a sum of Laplace noises, 95% of the time or more


@dataclass(frozen=True)
class RankEstimate:
    """A quantile of a histogram: the cell it is in and the share of that below it, and the cells it may be in."""

    cell: int
    within: float
    low: int
    high: int


def occupied_threshold(cells: int, scale: Fraction) -> int:
    """Return the least noisy count with which a cell is taken to be occupied.

    **Theorem.** Of so many empty cells with discrete Laplace noise of the scale, none reaches it with probability at
    least 1 - `FALSE_BIN`. Proof: with w the least number that |noise| exceeds with probability at most 2 FALSE_BIN/n,
    by symmetry noise >= w + 1 has at most FALSE_BIN/n, and there are n cells.
    """
    return Laplace(scale).error(1 - 2 * FALSE_BIN / max(cells, 3)) + 1


def find_occupied(cells: Sequence[int], scale: Fraction) -> list[int]:
    """Return the positions of the cells that are taken to be occupied."""
    least = occupied_threshold(len(cells), scale)
    return [place for place, count in enumerate(cells) if count >= least]


def half_width(weights: float, scale: Fraction) -> float:
    """Return how far a weighted sum of noises is from zero at most, 95% of the time or more.

    `weights` is the sum of the squares of the weights, each at most 1. The variance of discrete Laplace noise is below
    2 scale^2. A single Laplace variable is within 2.12 standard deviations 95% of the time, and a sum of several, whose
    tails are lighter, more often. One is added because the noise is of whole numbers.
    """
    return _DEVIATIONS * math.sqrt(2 * weights) * float(scale) + 1


def estimate_rank(cells: Sequence[int], scale: Fraction, share: Fraction) -> RankEstimate:
    """Return the cell below which a share of all units lies, and the cells between which it does 95% of the time.

    With D(i) the units up to cell i minus the share of all, the quantile is in the first cell with D >= 0. The lowest
    cell of the interval is the first whose noisy D is not below zero by more than its half width, w, and the highest
    the one after the last whose noisy D is not above w. **Theorem.** Each end is wrong with probability at most 2.5%.
    Proof. Let the quantile be in cell c: D(c) >= 0 > D(c - 1), and D grows. If the interval begins above c, the noisy
    D(c) is below -w though D(c) >= 0. If it ends below c, the noisy D(c - 1) is above w though D(c - 1) < 0. Either is
    one tail of one weighted sum of noises.
    """
    total, before, last = sum(cells), 0, len(cells) - 1
    low, high = last, 0
    for place, count in enumerate(cells):
        before += count
        rank = before - float(share) * total
        weights = float(1 - share) ** 2 * (place + 1) + float(share) ** 2 * (last - place)
        width = half_width(weights, scale)
        if rank >= -width:
            low = min(low, place)
        if rank < width:
            high = min(place + 1, last)
    cell, within = _locate(cells, share)
    return RankEstimate(cell, within, min(low, cell), max(high, cell))


def _locate(cells: Sequence[int], share: Fraction) -> tuple[int, float]:
    """The cell of a quantile of the counts, those below zero read as zero, and the share of the cell below it."""
    positive = [max(0, count) for count in cells]
    wanted, before = float(share) * sum(positive), 0.0
    for place, count in enumerate(positive):
        if count and before + count >= wanted:
            return place, (wanted - before) / count
        before += count
    return max(0, len(cells) - 1), 1.0
