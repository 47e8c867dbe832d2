"""Exponential weights: one of many, index i with probability proportional to sizes[i] exp(factor scores[i]), exactly.

A size says how many equal candidates an index stands for; without sizes each is one.

**How.** With U uniform on (0, 1), the choice is the least i with U W < w_0 + ... + w_i, where w_i is sizes[i]
exp(factor (scores[i] - best)) and W, at least one, is their sum. In machine arithmetic each partial sum is wrong by
less than (n/8 + 300) 2^-50 W. Three roundings make x = factor (score - best) wrong by at most 0.38 2^-50 of itself,
which is worth 270 2^-50 of the weight down to x = -708; the exponential is worth 2^-50, rounding the size (it is exact
up to 2^53) and the product 2^-53 each; adding up n of them is worth n 2^-53 W. Beyond x = -708 a weight is below 2^-509
with a size of 512 bits, which is nothing beside W. An edge, the sum that U is compared with and U itself: less than
(n + 1024) 2^-50 W together. Where U W is further than that from both ends of its part, the choice is certain; otherwise
interval arithmetic decides it, with more bits of U.

**Timing residual.** A choice is undecided with probability at most 2 n (n + 1024) 2^-50.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.errors import ParameterError
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import refine_until_decided, uniform_interval

if TYPE_CHECKING:
    from flint import arb

TRUSTED_BITS = 50
MAX_SIZE_BITS = 512  # bits of a size
_FITS = 2**62
Scores = Sequence[int] | npt.NDArray[np.int64]
Whole = npt.NDArray[Any]  # of int64, or of Python's integers where these do not fit


def choose(
    scores: Scores, factor: Fraction, bits: Bits, trusted: int = TRUSTED_BITS, sizes: Scores | None = None
) -> int:
    """One index, drawn by the weights of its score and size. Arrays of int64 are quick."""
    return int(choices(scores, factor, 1, bits, trusted, sizes)[0])


def choices(
    scores: Scores, factor: Fraction, count: int, bits: Bits, trusted: int = TRUSTED_BITS, sizes: Scores | None = None
) -> npt.NDArray[np.int64]:
    """`count` independent indices."""
    if not len(scores):
        raise ParameterError("scores", "there is nothing to choose from", fix="give at least one score")
    gaps = _gaps(_whole(scores), factor)
    many = None if sizes is None else _positive(_whole(sizes), len(gaps))
    weights = np.exp(_exponents(gaps, factor))
    sums = np.cumsum(weights if many is None else weights * many.astype(np.float64))
    total = sums[-1]
    words = bits.words(count)
    target = (words.astype(np.float64) + 0.5) * 2.0**-64 * total
    found: npt.NDArray[np.int64] = np.minimum(np.searchsorted(sums, target, side="right"), len(sums) - 1)
    band = (len(gaps) + 1024) * 2.0**-trusted * total
    after, before = sums[found] - target, target - np.where(found > 0, sums[found - 1], -np.inf)
    undecided = ((after <= band) & (found < len(sums) - 1)) | (before <= band)
    for index in np.flatnonzero(undecided):
        found[index] = _choose_certified(gaps, many, factor, int(words[index]), bits)
    return found


def _whole(values: Scores) -> Whole:
    """The integers as an array, exact however large they are."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return values
    exact = [int(value) for value in values]
    fits = min(exact, default=0) > -_FITS and max(exact, default=0) < _FITS
    return np.array(exact, dtype=np.int64 if fits else object)


def _positive(sizes: Whole, count: int) -> Whole:
    if len(sizes) != count:
        raise ParameterError("sizes", "there is not one for each score", fix="give as many sizes as scores")
    if sizes.min() < 1 or int(sizes.max()).bit_length() > MAX_SIZE_BITS:
        raise ParameterError(
            "sizes", f"must be positive, and of at most {MAX_SIZE_BITS} bits", fix="leave out what is empty"
        )
    return sizes


def _gaps(scores: Whole, factor: Fraction) -> Whole:
    """score - best, exactly: none has the sign of the factor."""
    least, most = int(scores.min()), int(scores.max())
    exact = scores if most - least < _FITS else scores.astype(object)
    gaps: Whole = exact - (most if factor >= 0 else least)
    return gaps


def _exponents(gaps: Whole, factor: Fraction) -> npt.NDArray[np.float64]:
    """factor * gap as doubles, none wrong by more than three roundings; below -2000 they weigh nothing."""
    if gaps.dtype == np.int64 and abs(factor) < 2**900:
        return np.maximum(gaps.astype(np.float64) * float(factor), -2000.0)
    return np.array([float(max(factor * int(gap), Fraction(-2000))) for gap in gaps])


def _choose_certified(gaps: Whole, sizes: Whole | None, factor: Fraction, word: int, bits: Bits) -> int:
    """The choice of the U that begins with this word, drawing more bits until it is certain."""

    def decide(word: int, known: int) -> int | None:
        sums = _partial_sums(gaps, sizes, factor)
        low, high = (end * sums[-1] for end in uniform_interval(word, known))
        last = len(sums) - 1
        # Whatever the search skips: the edge before `first` is certainly not above U W.
        first = bisect_left(range(last), True, key=lambda i: not low >= sums[i])
        return first if first == last or high <= sums[first] else None

    return refine_until_decided(word, 64, bits, decide)


def _partial_sums(gaps: Whole, sizes: Whole | None, factor: Fraction) -> list[arb]:
    """w_0, w_0 + w_1, ... as intervals at the working precision."""
    from flint import arb

    weight, sums, running = to_interval(factor), [], arb(0)
    for gap, size in zip(gaps.tolist(), [1] * len(gaps) if sizes is None else sizes.tolist(), strict=True):
        running += (weight * gap).exp() * size
        sums.append(running)
    return sums
