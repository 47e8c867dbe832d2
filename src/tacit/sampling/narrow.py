"""Coins and small integers from 16 bits each, exactly: where there are many of them, bits are what takes time.

**How.** A coin is U < chance for U uniform on (0, 1): the first 16 bits of U against the certified floor of 2^16
chance. Where they are equal, more bits of the same U decide. A small integer is 16 bits, or the upper ones of them,
drawn anew where it is not below n. So both laws are exact.

**Timing residual.** A coin is undecided with probability 2^-16. How often an integer is drawn says nothing about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import certified_floor
from tacit.errors import ParameterError
from tacit.sampling.bits import Bits
from tacit.sampling.real import is_below

if TYPE_CHECKING:
    from flint import arb

WIDTH = 16
Halves = npt.NDArray[np.uint16]


def halves(count: int, bits: Bits) -> Halves:
    """`count` numbers of 16 fair bits."""
    return bits.words(math.ceil(count / 4)).view(np.uint16)[:count]


class Coin:
    """Heads with a chance between 0 and 1, known as an interval at the working precision."""

    def __init__(self, chance: Callable[[], arb]) -> None:
        self._chance = chance
        self._edge = min(certified_floor(lambda: chance() * 2**WIDTH), 2**WIDTH - 1)

    def tosses(self, count: int, bits: Bits) -> npt.NDArray[np.bool_]:
        """`count` of them."""
        drawn = halves(count, bits)
        heads: npt.NDArray[np.bool_] = drawn < np.uint16(self._edge)
        for index in np.flatnonzero(drawn == np.uint16(self._edge)):
            heads[index] = is_below(self._edge, WIDTH, bits, self._chance)
        return heads


def belows(n: int, count: int, bits: Bits) -> Halves:
    """`count` independent integers from 0 to n - 1; n is at most 2^16."""
    if not 1 <= n <= 2**WIDTH:
        raise ParameterError("n", "must be from 1 to 2^16", fix="use sampling.uniform for larger ones")
    size = (n - 1).bit_length()
    if n == 1:
        return np.zeros(count, dtype=np.uint16)
    found: Halves = np.empty(count, dtype=np.uint16)
    have = 0
    while have < count:
        tries = halves(int((count - have) * (2.0**size / n) * 1.02) + 16, bits) >> np.uint16(WIDTH - size)
        good = tries if n == 1 << size else tries[tries < np.uint16(n)]
        good = good[: count - have]
        found[have : have + len(good)] = good
        have += len(good)
    return found
