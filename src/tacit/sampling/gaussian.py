"""The discrete Gaussian distribution, exactly: P(k) proportional to exp(-k^2 / (2 variance)) for every integer k.

**How.** A discrete Laplace draw y of scale t, the least integer above sqrt(variance), is kept with probability
exp(-(|y| - variance/t)^2 / (2 variance)): what is kept has the discrete Gaussian distribution (Canonne, Kamath, Steinke
2020, with any exact Laplace draw and any exact coin). How often it is drawn again says nothing about what is kept.
Where many draws of a narrow distribution are wanted, a table of the distribution (`cdf_table.py`) is quicker.

**Theorem.** The distribution of a draw is the discrete Gaussian distribution, exactly: both the proposal and the coin
are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.sampling import laplace, wide
from tacit.sampling.bernoulli import TRUSTED_BITS, draw_exp, draw_exp_array, draw_exp_from_float
from tacit.sampling.bits import Bits
from tacit.sampling.cdf_table import CdfTable, is_table_worthwhile

if TYPE_CHECKING:
    from flint import arb

_WIDEST = 2**40  # standard deviations for which a vector fits 64 bits, and the machine's coin is worth its while
_ERROR = 2.0**-38  # of the coin's exponent in doubles, where it matters
_DOUBLES = 2**900  # variances up to which sizes are doubles
_NARROW = 2**10  # standard deviations for which a table may be made


def draw(variance: Fraction, bits: Bits, trusted: int = TRUSTED_BITS) -> int:
    """One draw."""
    scale, wide, deviation = _proposal_constants(variance.numerator, variance.denominator)
    while True:
        y = laplace.draw(wide, bits, trusted)
        if _is_kept(abs(y), scale, deviation, variance, bits, trusted):
            return y


def draw_array(variance: Fraction, count: int, bits: Bits, trusted: int = TRUSTED_BITS) -> npt.NDArray[np.int64]:
    """`count` independent draws; the standard deviation is at most 2^40."""
    scale = _proposal(variance)
    if scale > _WIDEST:
        raise OverflowError("draws of this width do not fit 64 bits: use draw")
    if trusted == TRUSTED_BITS and scale <= _NARROW and is_table_worthwhile(count, _entries(variance)):
        return _table(variance).draws(count, bits)
    kept = np.empty(count, dtype=np.int64)
    have = 0
    while have < count:
        y = laplace.draw_array(Fraction(scale), int(1.35 * (count - have)) + 16, bits, trusted)
        good = y[_accept_each(np.abs(y), scale, variance, bits, trusted)][: count - have]
        kept[have : have + len(good)] = good
        have += len(good)
    return kept


def draw_integers(variance: Fraction, count: int, bits: Bits) -> list[int]:
    """Return `count` independent draws, as integers of any size. The standard deviation is at least 2^20."""
    scale = _proposal(variance)
    kept: list[int] = []
    while len(kept) < count:
        drawn = wide.draw_integers(Fraction(scale), int(1.35 * (count - len(kept))) + 16, bits)
        if variance > _DOUBLES:
            coins = [draw_exp(_excess(abs(y), scale, variance), bits) for y in drawn]
        else:
            coins = _accept_each([abs(y) for y in drawn], scale, variance, bits, TRUSTED_BITS).tolist()
        kept += [y for y, heads in zip(drawn, coins, strict=True) if heads][: count - len(kept)]
    return kept


@lru_cache(maxsize=1024)  # the columns of one question mostly share their noise
def tail_quantile(variance: Fraction, chance: Fraction) -> int:
    """A w with P(|k| > w) <= probability, where 0 < probability < 1: the least one, or for wide distributions at most
    one step above.

    The sum over k > w is at most the integral from w + 1/2 on beyond the standard deviation, where the density is
    convex; before it, where it is concave, the distribution up to w is at least its integral, but for 3 exp(-19
    variance) (Poisson; `docs/proofs/sampling.md`). Narrow distributions are summed term by term.
    """
    if not 0 < chance < 1:
        raise ParameterError("chance", f"is no chance: {chance}", fix="choose it between 0 and 1")
    width = _proposal(variance)
    if width <= _NARROW:
        return _summed_tail(variance, chance)
    low, high = 0, 64 * width * (1 + math.isqrt(chance.denominator.bit_length()))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_beyond(variance, middle, chance) else (middle + 1, high)
    return low


def _proposal(variance: Fraction) -> int:
    """The scale of the proposal: the least integer above the standard deviation."""
    if variance <= 0:
        raise ParameterError("variance", f"must be positive, got {variance}", fix="choose a variance above 0")
    return math.isqrt(math.floor(variance)) + 1


@lru_cache(maxsize=4096)
def _proposal_constants(numerator: int, denominator: int) -> tuple[int, Fraction, float]:
    """The proposal's scale, twice, and the standard deviation; looked up by integers, which hash quickly."""
    variance = Fraction(numerator, denominator)
    scale = _proposal(variance)
    return scale, Fraction(scale), _deviation(variance)


def _deviation(variance: Fraction) -> float:
    """The standard deviation as a double; below 2^-500 nothing but zero is kept anyway."""
    if variance > _DOUBLES:
        return math.inf
    return max(math.sqrt(float(variance)), 2.0**-500)


def _is_kept(size: int, scale: int, deviation: float, variance: Fraction, bits: Bits, trusted: int) -> bool:
    """The coin of one proposal, in doubles where they reach."""
    if deviation == math.inf:
        return draw_exp(_excess(size, scale, variance), bits, trusted)
    x = (size / deviation - deviation / scale) ** 2 / 2  # as in _accepted
    return draw_exp_from_float(x, _ERROR, lambda: _excess(size, scale, variance), bits, trusted)


def _excess(size: int, scale: int, variance: Fraction) -> Fraction:
    """What the proposal's exponent lacks: (size - variance/scale)^2 / (2 variance)."""
    return (size - variance / scale) ** 2 / (2 * variance)


def _accept_each(
    sizes: npt.NDArray[np.int64] | list[int], scale: int, variance: Fraction, bits: Bits, trusted: int
) -> npt.NDArray[np.bool_]:
    """The coins of the proposals.

    With s the standard deviation, x = (|y|/s - s/scale)^2 / 2 is computed with a few roundings. Where x <= 64, |y|/s is
    below 13, so the difference is wrong by less than 13 2^-50 and x by less than 2^-42. Where x is larger, no U above
    2^-20 comes near it, since -ln U < 14.
    """
    deviation = _deviation(variance)
    x = np.array(sizes, dtype=np.float64)
    x *= 1 / deviation
    x -= deviation / scale
    x *= x
    x *= 0.5
    return draw_exp_array(x, _ERROR, lambda i: _excess(int(sizes[i]), scale, variance), bits, trusted)


def _entries(variance: Fraction) -> int:
    """Half the width of a table outside which less than 2^-64 of the distribution lies: exp(-k^2 / 2v) < 2^-70."""
    return math.isqrt(math.ceil(variance * 98)) + 2


@lru_cache(maxsize=32)
def _table(variance: Fraction) -> CdfTable:
    """The distribution as a table."""
    edge = _entries(variance)

    def shares() -> Iterator[arb]:
        weights = _weights(variance)
        half = sum(weights, weights[0] * 0) - weights[0] / 2
        below = _rest(variance, len(weights) - 1)
        total = 2 * half + 2 * below
        running = below + sum((weights[k] for k in range(len(weights) - 1, edge, -1)), weights[0] * 0)
        for k in range(-edge, edge + 1):
            running += weights[abs(k)]
            yield running / total

    def exactly(k: int) -> arb:
        weights = _weights(variance)
        rest = _rest(variance, len(weights) - 1)
        total = 2 * (sum(weights, weights[0] * 0) + rest) - weights[0]
        reach = min(max(k, -len(weights)), len(weights) - 1)
        return (rest + sum((weights[abs(j)] for j in range(1 - len(weights), reach + 1)), weights[0] * 0)) / total

    return CdfTable(-edge, shares, exactly)


def _weights(variance: Fraction) -> list[arb]:
    """exp(-k^2 / (2 variance)) for k = 0, 1, ... until it is below what the working precision sees."""
    from flint import ctx

    reach = math.isqrt(math.ceil(2 * variance * (ctx.prec + 32))) + 2
    exponent = -1 / (2 * to_interval(variance))
    return [(exponent * (k * k)).exp() for k in range(reach + 1)]


def _rest(variance: Fraction, last: int) -> arb:
    """An interval that holds the sum of exp(-k^2 / 2v) over k > last, which is at most v/last exp(-last^2 / 2v)."""
    from flint import arb

    bound = to_interval(variance) / last * (-(to_interval(Fraction(last * last)) / (2 * to_interval(variance)))).exp()
    return arb(0).union(bound)


def _summed_tail(variance: Fraction, chance: Fraction) -> int:
    """The least w, by adding up from the far end."""
    with working_precision(128 + chance.denominator.bit_length()):
        weights = _weights(variance)
        total = 2 * sum(weights, weights[0] * 0) - weights[0] + 2 * _rest(variance, len(weights) - 1)
        beyond = 2 * _rest(variance, len(weights) - 1)
        for w in range(len(weights) - 2, -1, -1):
            beyond += 2 * weights[w + 1]
            if not beyond <= to_interval(chance) * total:
                return w + 1
    return 0


def _is_beyond(variance: Fraction, w: int, chance: Fraction) -> bool:
    """Whether less than `chance` lies beyond w, by the integral from w + 1/2 on: erfc((w + 1/2) / sqrt(2 variance))."""
    with working_precision(128 + chance.denominator.bit_length()):
        edge = to_interval(Fraction(2 * w + 1, 2)) / (2 * to_interval(variance)).sqrt()
        return bool(edge.erfc() + 3 * (-19 * to_interval(variance)).exp() <= to_interval(chance))
