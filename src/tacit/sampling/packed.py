"""Many coins of one probability, eight to a byte, exactly: what a report of a thousand bits is made of.

**How.** Let P(b) be the probability of the byte b: probability^c (1 - probability)^(8 - c), where c counts its ones. Of
2^16 equally likely cells, floor(2^16 P(b)) belong to b, and the rest, at most 256 of them, to nobody. A draw takes a
cell by 16 bits; where it is nobody's, the byte is drawn from the residual distribution, P(b) - floor(2^16 P(b)) / 2^16
over its sum, by `Table`.

**Theorem.** The distribution of a byte is exactly P, and bytes are independent. Proof: b comes out of its own cells
with probability floor(2^16 P(b)) / 2^16, and of nobody's with the rest of P(b).

**Timing residual.** A byte takes the second way with probability at most 2^-8.

Two bits of randomness a coin, where a word for each would take 64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import loops
from tacit.arithmetic import certified_floor, to_interval
from tacit.sampling import table_lookup
from tacit.sampling.bits import Bits
from tacit.sampling.cdf_table import CdfTable
from tacit.sampling.table_lookup import TABLE_CELLS, Uint8Array

if TYPE_CHECKING:
    from flint import arb

BLOCK = 2**19  # bytes at a time, so that the rest of a block is worth a call and all of it stays near the processor


class Coins:
    """Coins that are heads, a one, with a probability strictly between 0 and 1.

    It is a rational, or an irrational number known as an interval at the working precision. With rationals the shares
    of the residual distribution are rationals too: one of them may be a multiple of 2^-64, which no interval around it
    would tell.
    """

    def __init__(self, chance: Fraction | Callable[[], arb]) -> None:
        def share_of(ones: int) -> Any:
            p: Any = chance if isinstance(chance, Fraction) else chance()
            return p**ones * (1 - p) ** (8 - ones) * TABLE_CELLS

        ones = np.bitwise_count(np.arange(256, dtype=np.uint8)).tolist()
        whole = [_floor(chance, share_of, c) for c in range(9)]
        self._cells = np.zeros(TABLE_CELLS, dtype=np.uint8)
        self._owned = sum(whole[c] for c in ones)
        self._cells[: self._owned] = np.repeat(np.arange(256, dtype=np.uint8), [whole[c] for c in ones])
        left = TABLE_CELLS - self._owned

        def shares() -> Iterator[arb]:
            rest = [(share_of(c) - whole[c]) / left for c in range(9)]
            total = rest[0] * 0
            yield _interval(total)  # nothing is below 0, so the table knows its first byte
            for c in ones:
                total = total + rest[c]
                yield _interval(total)

        def share(octet: int) -> arb:
            from flint import arb

            return arb(octet > 0) if not 0 <= octet < 255 else list(shares())[octet + 1]

        self._residual = CdfTable(-1, shares, share) if left else None

    def octets(self, count: int, bits: Bits) -> Uint8Array:
        """`count` bytes of independent coins."""
        found: Uint8Array = np.empty(count, dtype=np.uint8)
        self.fill(found, bits)
        return found

    def fill(self, found: Uint8Array, bits: Bits) -> None:
        """Put such bytes into a row of them."""
        for _ in self.filling(found, BLOCK, bits):
            pass

    def filling(self, found: Uint8Array, step: int, bits: Bits) -> Iterator[slice]:
        """The same, `step` bytes at a time; yields each block when it is filled, while it is near the processor."""
        look_up = loops.choose_implementation(len(found), table_lookup.look_up_loop, table_lookup.look_up_numpy)
        rest = np.empty(min(step, len(found)), dtype=np.int64)
        for start in range(0, len(found), step):
            part = found[start : start + step]
            drawn = bits.words(math.ceil(len(part) / 4)).view(np.uint16)[: len(part)]
            left = look_up(drawn, self._cells, self._owned, part, rest)
            if self._residual is not None and left:
                part[rest[:left]] = self._residual.draws(left, bits)
            yield slice(start, start + len(part))


def _floor(chance: object, share_of: Callable[[int], Any], ones: int) -> int:
    return math.floor(share_of(ones)) if isinstance(chance, Fraction) else certified_floor(lambda: share_of(ones))


def _interval(number: Any) -> arb:
    return to_interval(number) if isinstance(number, Fraction) else number
