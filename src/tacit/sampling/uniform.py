"""Uniform integers, exactly.

A number of as many bits as n - 1 has is drawn until it is below n. Each try succeeds with probability above one half,
and how many tries there were says nothing about the number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError
from tacit.sampling.bits import Bits


def draw_below(n: int, bits: Bits) -> int:
    """An integer from 0 to n - 1, each with probability 1/n, however large n is."""
    _check(n)
    size = (n - 1).bit_length()
    count = -(-size // 64)
    while True:
        drawn = 0
        for word in bits.words(count).tolist():
            drawn = drawn << 64 | word
        drawn >>= 64 * count - size
        if drawn < n:
            return drawn


def draw_array_below(n: int, count: int, bits: Bits) -> npt.NDArray[np.int64]:
    """`count` independent integers from 0 to n - 1; n is at most 2^63."""
    _check(n)
    if n > 2**63:
        raise OverflowError("integers of this size do not fit 64 bits: use below")
    found = np.empty(count, dtype=np.int64)
    shift = np.uint64(64 - max(1, (n - 1).bit_length()))
    have = 0
    while have < count:
        tries = bits.words(int((count - have) * (2.0**64 / (n << int(shift))) * 1.02) + 16) >> shift
        good = tries[tries < np.uint64(n)][: count - have]
        found[have : have + len(good)] = good.astype(np.int64)
        have += len(good)
    return found


def draw_order(count: int, bits: Bits) -> npt.NDArray[np.int64]:
    """Return 0 .. count - 1 in an order, each with the same probability: that of words of which no two are equal.

    Proof: independent words are in any order with the same probability, given that they differ; others are drawn again.
    """
    while True:
        words = bits.words(count)
        order = np.argsort(words, kind="stable")
        if (words[order[1:]] != words[order[:-1]]).all():
            return order.astype(np.int64)


def _check(n: int) -> None:
    if n < 1:
        raise ParameterError("n", f"there is no integer below {n}", fix="choose n of at least 1")
