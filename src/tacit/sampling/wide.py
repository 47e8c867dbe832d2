"""The discrete Laplace distribution of a large scale, exactly, at machine speed.

P(k) = (1 - q)/(1 + q) q^|k| for every integer k, where q = exp(-1/scale) and scale >= 2^20.

**How.** The machine's logarithm does not know the last digits of a wide draw, so they are drawn apart. Let M be the
power of two with scale/M in [2^19, 2^20). A geometric variable of ratio q is M b + a with b and a independent: b is
geometric of ratio q^M, that is of scale/M, which `geometric.py` draws at machine speed; a is below M with probability
proportional to q^a, drawn uniformly and kept with probability exp(-a/scale). With a fair sign, and zero with the sign
minus drawn again, that is the discrete Laplace distribution.

**Theorem.** The distribution of a draw is the discrete Laplace distribution, exactly. Proof: for a < M,
(1 - q) q^(M b + a) = (1 - q^M) q^(M b) (1 - q)/(1 - q^M) q^a, so b and a are independent and have the distributions
above; a uniform a that is kept with probability exp(-a/scale) has probability proportional to q^a. Signs and
magnitudes without the pair (minus, 0) have P(k) proportional to q^|k| for every k. The geometric draw is exact, and
the coin is: a/scale < M/scale <= 2^-19 and exp(-x) >= 1 - x, so a U below 1 - 2^-19 is heads (`_unsure`); interval
arithmetic decides the others.

**Timing residual.** A draw is undecided, or drawn again, with probability below 2^-17, and then takes longer by tens
of microseconds. Apart from that, the work does not depend on the noise.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.sampling import geometric
from tacit.sampling.bernoulli import is_below_exp
from tacit.sampling.bits import Bits

_WIDEST = 2**50  # the largest scale whose draws fit 64 bits
_COARSE = 20  # bits of the scale of b


def draw_array(scale: Fraction, count: int, bits: Bits) -> npt.NDArray[np.int64]:
    """Return `count` independent draws. The scale is from 2^20 to 2^50."""
    if scale > _WIDEST:
        raise OverflowError("draws of this scale do not fit 64 bits: use any_draws")
    shift = _shift(scale)
    found = np.empty(count, dtype=np.int64)
    left = np.arange(count)
    while left.size:
        minus = _minus(left.size, bits)
        coarse = geometric.draw_array(scale / 2**shift, left.size, bits)
        if coarse.size and coarse.max() >= 1 << (62 - shift):  # at most once in exp(2^12) draws
            raise OverflowError("a draw does not fit 64 bits")
        fine = _fine_words(scale, shift, left.size, bits)
        magnitude = (coarse << shift) | fine
        found[left] = np.where(minus, -magnitude, magnitude)
        left = left[minus & (magnitude == 0)]
    return found


def draw_integers(scale: Fraction, count: int, bits: Bits) -> list[int]:
    """Return `count` independent draws, as integers of any size. The scale is at least 2^20."""
    shift = _shift(scale)
    found: list[int] = []
    while len(found) < count:
        more = count - len(found)
        signs = _minus(more, bits).tolist()
        coarse = geometric.draw_array(scale / 2**shift, more, bits).tolist()
        fine = _fine_integers(scale, shift, more, bits)
        for minus, high, low in zip(signs, coarse, fine, strict=True):
            magnitude = high << shift | low
            if magnitude or not minus:
                found.append(-magnitude if minus else magnitude)
    return found


def _minus(count: int, bits: Bits) -> npt.NDArray[np.bool_]:
    """Return for each draw whether its sign is minus."""
    minus: npt.NDArray[np.bool_] = (bits.words(count) & np.uint64(1)) == 0
    return minus


def _shift(scale: Fraction) -> int:
    """Return log2 of M."""
    return (scale.numerator // scale.denominator).bit_length() - _COARSE


def _unsure(coins: npt.NDArray[np.uint64]) -> list[int]:
    """Return the places of the words that may be tails for some a: U may be above 1 - 2^-(_COARSE - 1)."""
    unsure: list[int] = np.flatnonzero(coins >= np.uint64(2**64 - 2 ** (65 - _COARSE))).tolist()
    return unsure


def _fine_words(scale: Fraction, shift: int, count: int, bits: Bits) -> npt.NDArray[np.int64]:
    """Return draws of a, for M of at most 62 bits: the complement of a word, so that a U near 1 is a small a."""
    fine = np.empty(count, dtype=np.int64)
    left = np.arange(count)
    while left.size:
        fine[left] = (~bits.words(left.size) & np.uint64((1 << shift) - 1)).astype(np.int64)
        coins = bits.words(left.size)
        drawn_again = [
            place
            for place in _unsure(coins)
            if not is_below_exp(int(coins[place]), Fraction(int(fine[left[place]])) / scale, bits)
        ]
        left = left[drawn_again]
    return fine


def _fine_integers(scale: Fraction, shift: int, count: int, bits: Bits) -> list[int]:
    """Return draws of a, for M of any size."""
    width = -(-shift // 64)
    blocks = (~bits.words(width * count)).tolist()
    coins = bits.words(count)
    fine = [0] * count
    mask = (1 << shift) - 1
    for start in range(width):
        fine = [value << 64 | word for value, word in zip(fine, blocks[start::width], strict=True)]
    fine = [value & mask for value in fine]
    for place in _unsure(coins):
        coin = int(coins[place])
        while not is_below_exp(coin, Fraction(fine[place]) / scale, bits):
            fine[place] = int.from_bytes((~bits.words(width)).tobytes(), "little") & mask
            coin = int(bits.words(1)[0])
    return fine
