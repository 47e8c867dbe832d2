"""The discrete Laplace law, exactly, at machine speed.

P(k) = (1 - q)/(1 + q) q^|k| for every integer k, where q = exp(-1/scale).

**How.** Let U be uniform on (0, 1), known by its first 63 bits and extended when needed, and let a further fair bit be
the sign. Since P(|k| >= m) = 2 q^m / (1 + q) for m >= 1, the magnitude is the largest m with U < P(|k| >= m), that is

    m = floor(x),  x = scale (ln(2/(1 + q)) - ln U).

x is computed in machine arithmetic with an error of at most scale 2^-TRUSTED. Where all of
[x - scale 2^-TRUSTED, x + scale 2^-TRUSTED] has one floor, that floor is the floor of the true x, for every U that
begins with the drawn bits. Otherwise the draw is undecided: the same bits go to interval arithmetic, and more bits of U
are drawn until the floor is certain. So the machine's rounding can change the time a draw takes, never its value.

**Theorem.** The law of a draw is the discrete Laplace law, exactly. `docs/proofs/laplace.md` has the error analysis.

**Timing residual.** A draw is undecided with probability at most 2^-20 + 3 scale 2^-TRUSTED, and then takes longer by
tens of microseconds. Apart from that, the work does not depend on the noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import ball, certified_floor, precision
from tacit.sampling.bits import Bits

if TYPE_CHECKING:
    from flint import arb

TRUSTED = 40
_SMALL = 1 << 43  # a U below 2^-20 is known too coarsely by 63 bits: undecided
_WIDEST = Fraction(2) ** 50  # beyond it a magnitude may not fit 64 bits, and every draw is undecided anyway


def draw(scale: Fraction, bits: Bits, trusted: int = TRUSTED) -> int:
    """One draw."""
    word = int(bits.words(1)[0])
    uniform = word >> 1
    magnitude: int | None = None
    if uniform >= _SMALL and scale <= _WIDEST:
        width = float(scale)
        x = width * (_offset(scale) - math.log((uniform + 0.5) * 2.0**-63))
        band = width * 2.0**-trusted
        low = math.floor(x - band)
        if low == math.floor(x + band):
            magnitude = max(low, 0)
    if magnitude is None:
        magnitude = _certified(scale, uniform, bits)
    return -magnitude if word & 1 else magnitude


def draws(scale: Fraction, count: int, bits: Bits, trusted: int = TRUSTED) -> npt.NDArray[np.int64]:
    """`count` independent draws. The scale is at most 2^50, so that every magnitude fits."""
    if scale > _WIDEST:
        raise OverflowError("draws of this scale do not fit 64 bits: use draw")
    words = bits.words(count)
    uniform = words >> np.uint64(1)
    width = float(scale)
    x = (uniform.astype(np.float64) + 0.5) * 2.0**-63
    np.log(x, out=x)
    np.subtract(_offset(scale), x, out=x)
    x *= width
    band = width * 2.0**-trusted
    low = np.floor(x - band)
    undecided = (low != np.floor(x + band)) | (uniform < np.uint64(_SMALL))
    magnitude = np.maximum(low, 0.0).astype(np.int64)
    for index in np.flatnonzero(undecided):
        magnitude[index] = _certified(scale, int(uniform[index]), bits)
    sign = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
    return magnitude * sign


def tail(scale: Fraction, chance: Fraction) -> int:
    """The least w >= 0 with P(|k| > w) <= chance, where 0 < chance < 1.

    P(|k| > w) = 2 q^(w+1) / (1 + q), so w + 1 is the ceiling of scale ln(2 / ((1 + q) chance)). That number is no
    integer: q is transcendental (Lindemann), so 2 q^(w+1) = chance (1 + q) has no solution. Below zero, w = 0.
    """
    return max(0, certified_floor(lambda: ball(scale) * ((_twice_share(scale) / ball(chance)).log())))


def _twice_share(scale: Fraction) -> arb:
    """2 / (1 + q) as an interval at the working precision."""
    return 2 / (1 + (-1 / ball(scale)).exp())


@lru_cache(maxsize=4096)
def _offset(scale: Fraction) -> float:
    """ln(2 / (1 + q)), correct to the last place or next to it."""
    with precision(96):
        return float(_twice_share(scale).log().mid())


def _certified(scale: Fraction, uniform: int, bits: Bits) -> int:
    """The floor of x for the U that begins with these 63 bits, drawing more of them until it is certain."""
    from flint import arb

    known = 63
    while True:
        with precision(2 * known + 64 + scale.numerator.bit_length()):
            lowest = arb(uniform) * arb(2) ** -known if uniform else None
            highest = arb(uniform + 1) * arb(2) ** -known
            offset = _twice_share(scale).log()
            least = (ball(scale) * (offset - highest.log())).floor().unique_fmpz()
            if lowest is not None and least is not None:
                most = (ball(scale) * (offset - lowest.log())).floor().unique_fmpz()
                if most is not None and least == most:
                    return int(least)
        uniform = uniform << 64 | int(bits.words(1)[0])
        known += 64
