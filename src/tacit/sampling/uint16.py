"""Coins and small integers from 16 bits each, exactly: where there are many of them, bits are what takes time.

**How.** A coin is U < probability for U uniform on (0, 1): the first 16 bits of U against the certified floor of 2^16
probability. Where they are equal, more bits of the same U decide. A small integer is 16 bits, or the upper ones of
them, drawn anew where it is not below n. So both distributions are exact. The bits that an integer leaves over are fair
and independent of it: they can be the first of a coin's, which needs no others unless they are those of its
probability.

**Timing residual.** A coin is undecided with probability 2^-16, one that begins with s bits asks for more with 2^-s.
How often an integer is drawn says nothing about it.
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
from tacit.sampling.lazy_uniform import is_below

if TYPE_CHECKING:
    from flint import arb

WIDTH = 16
Uint16Array = npt.NDArray[np.uint16]


def draw_uint16(count: int, bits: Bits) -> Uint16Array:
    """`count` numbers of 16 fair bits."""
    return bits.words(math.ceil(count / 4)).view(np.uint16)[:count]


class Bernoulli16:
    """Heads with a probability between 0 and 1, known as an interval at the working precision."""

    def __init__(self, chance: Callable[[], arb]) -> None:
        self._chance = chance
        self._edge = min(certified_floor(lambda: chance() * 2**WIDTH), 2**WIDTH - 1)

    def tosses(self, count: int, bits: Bits) -> npt.NDArray[np.bool_]:
        """`count` of them."""
        drawn = draw_uint16(count, bits)
        heads: npt.NDArray[np.bool_] = drawn < np.uint16(self._edge)
        for index in np.flatnonzero(drawn == np.uint16(self._edge)):
            heads[index] = is_below(self._edge, WIDTH, bits, self._chance)
        return heads


class ContinuedBernoulli:
    """Coins of such a probability whose first `size` bits are there already.

    **Theorem.** Let U = (first + V)/2^size, with V uniform, and let e = floor(2^size probability). Then U < probability
    where first < e, or where first = e and V < 2^size probability - e. So a fresh coin of that last probability
    decides, exactly.
    """

    def __init__(self, chance: Callable[[], arb], size: int) -> None:
        edge = min(certified_floor(lambda: chance() * 2**size), 2**size - 1)
        self._edge = np.uint16(edge)
        self._rest = Bernoulli16(lambda: chance() * 2**size - edge)

    def heads(self, first: Uint16Array, bits: Bits) -> npt.NDArray[np.intp]:
        """Where there are heads."""
        even = np.flatnonzero(first == self._edge)
        found = even[self._rest.tosses(len(even), bits)]
        return np.concatenate([np.flatnonzero(first < self._edge), found]) if self._edge else found


def unused_bits(n: int) -> int:
    """How many of 16 bits an integer below n leaves over."""
    return WIDTH - (n - 1).bit_length()


def draw_with_unused_bits(n: int, count: int, bits: Bits) -> Uint16Array:
    """`count` numbers of 16 bits: the upper bits are an integer below n, the other `unused_bits(n)` are fair."""
    if not 1 <= n <= 2**WIDTH:
        raise ParameterError("n", "must be from 1 to 2^16", fix="use sampling.uniform for larger ones")
    if n.bit_count() == 1:
        return draw_uint16(count, bits)
    limit = n << unused_bits(n)
    found: Uint16Array = np.empty(count, dtype=np.uint16)
    have = 0
    while have < count:
        tries = draw_uint16(int((count - have) * (2**WIDTH / limit) * 1.02) + 16, bits)
        good = tries[tries < np.uint16(limit)][: count - have]
        found[have : have + len(good)] = good
        have += len(good)
    return found


def draw_array_below(n: int, count: int, bits: Bits) -> Uint16Array:
    """`count` independent integers from 0 to n - 1; n is at most 2^16."""
    if n == 1:
        return np.zeros(count, dtype=np.uint16)
    return draw_with_unused_bits(n, count, bits) >> np.uint16(unused_bits(n))
