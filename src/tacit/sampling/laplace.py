"""The discrete Laplace distribution, exactly, at machine speed.

P(k) = (1 - q)/(1 + q) q^|k| for every integer k, where q = exp(-1/scale).

**How.** Let U be uniform on (0, 1), known by its first 63 bits and extended when needed, and let a further fair bit be
the sign. Since P(|k| >= m) = 2 q^m / (1 + q) for m >= 1, the magnitude is the largest m with U < P(|k| >= m), that is

    m = floor(x),  x = scale (ln(2/(1 + q)) - ln U).

`exponential_inversion.py` computes that floor exactly, at machine speed. Where many draws of a narrow distribution are
wanted, a table of the distribution (`cdf_table.py`) is quicker still, and where draws of a wide one are wanted,
`wide.py`.

**Theorem.** The distribution of a draw is the discrete Laplace distribution, exactly. `docs/proofs/laplace.md` has the
error analysis.

**Timing residual.** A draw is undecided with probability at most 2^-20 + 3 scale 2^-TRUSTED, or 2^-17 where many draws
of a wide distribution are made, and then takes longer by tens of microseconds. Apart from that, the work does not
depend on the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import certified_floor, to_interval, working_precision
from tacit.errors import ParameterError
from tacit.sampling import exponential_inversion, wide
from tacit.sampling.bits import Bits
from tacit.sampling.cdf_table import CdfTable, is_table_worthwhile
from tacit.sampling.exponential_inversion import TRUSTED_BITS

if TYPE_CHECKING:
    from flint import arb

_BITS = 63  # of a word for U; the last is the sign
_NARROW = 2**10  # scales for which a table may be made
_WIDE = 2**24  # scales above which a logarithm leaves too many draws undecided


def draw(scale: Fraction, bits: Bits, trusted: int = TRUSTED_BITS) -> int:
    """One draw."""
    word = int(bits.words(1)[0])
    offset = _offset(scale.numerator, scale.denominator)
    magnitude = exponential_inversion.invert(scale, offset, word >> 1, _BITS, trusted)
    if magnitude is None:
        magnitude = _draw_certified(scale, word >> 1, bits)
    return -magnitude if word & 1 else magnitude


def draw_array(scale: Fraction, count: int, bits: Bits, trusted: int = TRUSTED_BITS) -> npt.NDArray[np.int64]:
    """`count` independent draws. The scale is at most 2^50, so that every magnitude fits."""
    if trusted == TRUSTED_BITS and 0 < scale <= _NARROW and is_table_worthwhile(count, _entries(scale)):
        return _table(scale).draws(count, bits)
    if trusted == TRUSTED_BITS and scale > _WIDE:
        return wide.draw_array(scale, count, bits)
    words = bits.words(count)
    uniform = words >> np.uint64(1)
    offset = _offset(scale.numerator, scale.denominator)
    magnitude, undecided = exponential_inversion.invert_array(scale, offset, uniform, _BITS, trusted)
    for index in np.flatnonzero(undecided):
        magnitude[index] = _draw_certified(scale, int(uniform[index]), bits)
    sign = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
    return magnitude * sign


def tail_quantile(scale: Fraction, chance: Fraction) -> int:
    """The least w >= 0 with P(|k| > w) <= probability, where 0 < probability < 1.

    P(|k| > w) = 2 q^(w+1) / (1 + q), so w + 1 is the ceiling of scale ln(2 / ((1 + q) probability)). That number is no
    integer: q is transcendental (Lindemann), so 2 q^(w+1) = probability (1 + q) has no solution. Below zero, w = 0.
    """
    return max(0, certified_floor(lambda: to_interval(scale) * ((_twice_share(scale) / to_interval(chance)).log())))


def _twice_share(scale: Fraction) -> arb:
    """2 / (1 + q) as an interval at the working precision."""
    return 2 / (1 + (-1 / to_interval(scale)).exp())


@lru_cache(maxsize=4096)
def _offset(numerator: int, denominator: int) -> float:
    """ln(2 / (1 + q)), correct to the last place or next to it; looked up by integers, which hash quickly."""
    if numerator <= 0:
        raise ParameterError("scale", f"must be positive, got {numerator}/{denominator}", fix="choose a scale above 0")
    with working_precision(96):
        return float(_twice_share(Fraction(numerator, denominator)).log().mid())


def _draw_certified(scale: Fraction, uniform: int, bits: Bits) -> int:
    """The magnitude for the U that begins with these 63 bits, drawing more of them until it is certain."""
    return exponential_inversion.invert_certified(scale, lambda: _twice_share(scale).log(), uniform, _BITS, bits)


def _entries(scale: Fraction) -> int:
    """Half the width of a table outside which less than 2^-64 of the distribution lies: exp(-k/scale) < 2^-66."""
    return math.ceil(46 * scale) + 1


@lru_cache(maxsize=32)
def _table(scale: Fraction) -> CdfTable:
    """The distribution as a table: F(k) is q^-k / (1 + q) below zero, and 1 - q^(k+1) / (1 + q) from there on."""
    edge = _entries(scale)

    def exactly(k: int) -> arb:
        q = (-1 / to_interval(scale)).exp()
        return q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)

    def shares() -> Iterator[arb]:
        return (exactly(k) for k in range(-edge, edge + 1))

    return CdfTable(-edge, shares, exactly)
