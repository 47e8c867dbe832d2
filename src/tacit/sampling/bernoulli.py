"""Coins: heads with a rational probability, with exp(-x) for a rational x, or with one known as an interval; exactly.

**How, for exp(-x).** Heads is U < exp(-x), that is -ln U > x, for U uniform on (0, 1). The machine's -ln U for the
first 64 bits of U is within 2^-TRUSTED of every -ln U that begins with them (U below 2^-20 excepted). Where x is
further away than that and its own error, the coin is decided; otherwise interval arithmetic decides it, with more bits
of U where they are needed.

**Timing residual.** A coin is undecided with probability at most 2^-20 + 4 (2^-TRUSTED + error).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import certified_floor, to_interval
from tacit.errors import ParameterError
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import is_below
from tacit.sampling.uniform import draw_below

if TYPE_CHECKING:
    from flint import arb

TRUSTED_BITS = 40
_SMALL = 1 << 44  # a U below 2^-20
Floats = npt.NDArray[np.float64]


def draw_rational(chance: Fraction, bits: Bits) -> bool:
    """Heads with probability `chance`."""
    if not 0 <= chance <= 1:
        raise ParameterError("chance", f"is no probability: {chance}", fix="choose it between 0 and 1")
    return draw_below(chance.denominator, bits) < chance.numerator


def draw_array_dyadic(chance: Fraction, count: int, bits: Bits) -> npt.NDArray[np.bool_]:
    """`count` coins, heads with a probability that is a multiple of 2^-64 below one: a word each, compared."""
    edge = chance * 2**64
    if not 0 <= chance < 1 or edge.denominator != 1:
        raise ParameterError("chance", f"is no such probability: {chance}", fix="round it to a multiple of 2^-64")
    heads: npt.NDArray[np.bool_] = bits.words(count) < np.uint64(int(edge))
    return heads


def draw_exp(x: Fraction, bits: Bits, trusted: int = TRUSTED_BITS) -> bool:
    """Heads with probability exp(-x), for x >= 0."""
    if x < 0:
        raise ParameterError("x", f"exp(-x) is no probability for {x}", fix="choose x of at least 0")
    near = float(min(x, Fraction(10**6)))  # -ln U is far below that
    return draw_exp_from_float(near, near * 2.0**-52, lambda: x, bits, trusted)


def draw_exp_from_float(
    x: float, error: float, exactly: Callable[[], Fraction], bits: Bits, trusted: int = TRUSTED_BITS
) -> bool:
    """Heads with probability exp(-exactly()), where x is within `error` of it; beyond 64 both may be anything."""
    word = int(bits.words(1)[0])
    if word >= _SMALL:
        gap = -math.log((word + 0.5) * 2.0**-64) - x
        if abs(gap) > 2.0**-trusted + error:
            return gap > 0
    return is_below(word, 64, bits, _exp_minus(exactly()))


def draw_exp_array(
    x: Floats, error: float, exactly: Callable[[int], Fraction], bits: Bits, trusted: int = TRUSTED_BITS
) -> npt.NDArray[np.bool_]:
    """For each i heads with probability exp(-exactly(i)), where x[i] is within `error` of the rational exactly(i)."""
    words = bits.words(len(x))
    gap = (words.astype(np.float64) + 0.5) * 2.0**-64
    np.log(gap, out=gap)
    np.negative(gap, out=gap)
    gap -= x
    heads: npt.NDArray[np.bool_] = gap > 0
    undecided = (np.abs(gap) <= 2.0**-trusted + error) | (words < np.uint64(_SMALL))
    for index in np.flatnonzero(undecided):
        heads[index] = is_below(int(words[index]), 64, bits, _exp_minus(exactly(int(index))))
    return heads


def is_below_exp(word: int, x: Fraction, bits: Bits) -> bool:
    """Whether U < exp(-x), for the U that begins with these 64 bits."""
    return is_below(word, 64, bits, _exp_minus(x))


def draw_certified(chance: Callable[[], arb], bits: Bits) -> bool:
    """Heads with a probability that is known as an interval at the working precision."""
    return is_below(int(bits.words(1)[0]), 64, bits, chance)


def draw_array_certified(chance: Callable[[], arb], count: int, bits: Bits) -> npt.NDArray[np.bool_]:
    """`count` such coins: the first 64 bits of U against the floor of 2^64 times it, and more where these are equal."""
    edge = min(certified_floor(lambda: chance() * 2**64), 2**64 - 1)
    words = bits.words(count)
    heads: npt.NDArray[np.bool_] = words < np.uint64(edge)
    for index in np.flatnonzero(words == np.uint64(edge)):
        heads[index] = is_below(int(words[index]), 64, bits, chance)
    return heads


def _exp_minus(x: Fraction) -> Callable[[], arb]:
    def chance() -> arb:
        return (-to_interval(x)).exp()  # at the precision of the moment, so not computed beforehand

    return chance
