"""floor(scale (c - ln U)) for U uniform on (0, 1), exactly: the inverse of every distribution with an exponential tail.

**How.** U is known by its first n bits. In machine arithmetic scale (c - ln U) has an error of at most
scale 2^-TRUSTED, for every U that begins with these bits, unless U is below 2^-20. Where everything that near has one
floor, that is the floor. Otherwise the draw is undecided: the same bits go to interval arithmetic, and more bits of U
are drawn until the floor is certain. So the machine's rounding can change the time a draw takes, never its value.

`docs/proofs/laplace.md` has the error analysis, for 0 <= c <= ln 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.errors import ParameterError
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import refine_until_decided, uniform_interval

if TYPE_CHECKING:
    from flint import arb

TRUSTED_BITS = 40
_COARSE = 20  # a U below 2^-20 is known too coarsely by its first bits
_WIDEST = 2**50  # beyond it a floor may not fit 64 bits, and every draw is undecided anyway


@lru_cache(maxsize=4096)
def _width(numerator: int, denominator: int) -> float:
    """The scale as a double, infinite where it is too wide for it; looked up by integers, which hash quickly."""
    if numerator <= 0:
        raise ParameterError("scale", f"must be positive, got {numerator}/{denominator}", fix="choose a scale above 0")
    return numerator / denominator if numerator <= _WIDEST * denominator else math.inf


def invert(scale: Fraction, c: float, uniform: int, known: int, trusted: int) -> int | None:
    """The floor for the U that begins with these `known` bits, or None where the machine cannot tell."""
    width = _width(scale.numerator, scale.denominator)
    if uniform < 1 << (known - _COARSE) or width == math.inf:
        return None
    x = width * (c - math.log((uniform + 0.5) * 2.0**-known))
    band = width * 2.0**-trusted
    low = math.floor(x - band)
    return max(low, 0) if low == math.floor(x + band) else None


def invert_array(
    scale: Fraction, c: float, uniform: npt.NDArray[np.uint64], known: int, trusted: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The floors, and which of them the machine cannot tell. The scale is at most 2^50, so that every floor fits."""
    width = _width(scale.numerator, scale.denominator)
    if width == math.inf:
        raise OverflowError("draws of this scale do not fit 64 bits: draw them one at a time")
    x = (uniform.astype(np.float64) + 0.5) * 2.0**-known
    np.log(x, out=x)
    np.subtract(c, x, out=x)
    x *= width
    band = width * 2.0**-trusted
    low = np.floor(x - band)
    undecided: npt.NDArray[np.bool_] = low != np.floor(x + band)
    undecided |= uniform < np.uint64(1 << (known - _COARSE))
    return np.maximum(low, 0.0).astype(np.int64), undecided


def invert_certified(scale: Fraction, c: Callable[[], arb], uniform: int, known: int, bits: Bits) -> int:
    """The floor for the U that begins with these `known` bits, drawing more of them until it is certain."""

    def decide(word: int, known: int) -> int | None:
        low, high = uniform_interval(word, known)
        least = (to_interval(scale) * (c() - high.log())).floor().unique_fmpz()
        if least is None or not word:
            return None
        return int(least) if (to_interval(scale) * (c() - low.log())).floor().unique_fmpz() == least else None

    return refine_until_decided(uniform, known, bits, decide, more=scale.numerator.bit_length())
