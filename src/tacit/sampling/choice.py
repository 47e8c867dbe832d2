"""Exponential weights: one of many, index i with probability proportional to exp(factor scores[i]), exactly.

**How.** With U uniform on (0, 1), the choice is the least i with U W < w_0 + ... + w_i, where w_i is
exp(factor (scores[i] - best)) and W is their sum. In machine arithmetic each partial sum is wrong by less than
(n + 1024) 2^-50 W: a double's exponential of x <= 0 is wrong by at most |x| 2^-52 + 2^-50 of itself, |x| exp(x) < 1,
and adding up n of them adds n 2^-52 W. Where U W is further than that from both ends of its part, the choice is
certain; otherwise interval arithmetic decides it, with more bits of U.

**Timing residual.** A choice is undecided with probability at most 2 n (n + 1024) 2^-50.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import ball
from tacit.errors import ParameterError
from tacit.sampling.bits import Bits
from tacit.sampling.real import ends, settle

if TYPE_CHECKING:
    from flint import arb

TRUSTED = 50
Scores = Sequence[int] | npt.NDArray[np.int64]


def choose(scores: Scores, factor: Fraction, bits: Bits, trusted: int = TRUSTED) -> int:
    """One index, drawn by the weights of its score."""
    return int(choices(scores, factor, 1, bits, trusted)[0])


def choices(scores: Scores, factor: Fraction, count: int, bits: Bits, trusted: int = TRUSTED) -> npt.NDArray[np.int64]:
    """`count` independent indices."""
    if not len(scores):
        raise ParameterError("scores", "there is nothing to choose from", fix="give at least one score")
    best = max(scores) if factor >= 0 else min(scores)
    gaps = [int(score) - int(best) for score in scores]
    sums = np.cumsum(np.exp(_exponents(gaps, factor)))
    total = sums[-1]
    words = bits.words(count)
    target = (words.astype(np.float64) + 0.5) * 2.0**-64 * total
    found: npt.NDArray[np.int64] = np.minimum(np.searchsorted(sums, target, side="right"), len(sums) - 1)
    band = (len(gaps) + 1024) * 2.0**-trusted * total
    after, before = sums[found] - target, target - np.where(found > 0, sums[found - 1], -np.inf)
    undecided = ((after <= band) & (found < len(sums) - 1)) | (before <= band)
    for index in np.flatnonzero(undecided):
        found[index] = _certified(gaps, factor, int(words[index]), bits)
    return found


def _exponents(gaps: list[int], factor: Fraction) -> npt.NDArray[np.float64]:
    """factor * gap as doubles, none of them wrong by more than 2^-52 of itself; below -2000 they weigh nothing."""
    if -min(gaps) < 2**53 and max(gaps) < 2**53 and float(abs(factor)) < 2.0**900:
        return np.maximum(np.array(gaps, dtype=np.float64) * float(factor), -2000.0)
    return np.array([float(max(factor * gap, Fraction(-2000))) for gap in gaps])


def _certified(gaps: list[int], factor: Fraction, word: int, bits: Bits) -> int:
    """The choice of the U that begins with this word, drawing more bits until it is certain."""

    def decide(word: int, known: int) -> int | None:
        sums = _partial_sums(gaps, factor)
        low, high = ends(word, known)
        first = next((i for i, edge in enumerate(sums) if not low * sums[-1] >= edge), len(sums) - 1)
        return first if first == len(sums) - 1 or high * sums[-1] <= sums[first] else None

    return settle(word, 64, bits, decide)


def _partial_sums(gaps: list[int], factor: Fraction) -> list[arb]:
    """w_0, w_0 + w_1, ... as intervals at the working precision."""
    weight = ball(factor)
    sums = [(weight * gaps[0]).exp()]
    for gap in gaps[1:]:
        sums.append(sums[-1] + (weight * gap).exp())
    return sums
