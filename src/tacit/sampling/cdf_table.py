"""Any distribution on few integers, exactly, by one table look-up a draw.

**How.** Let F be the cumulative distribution and T_k = floor(2^64 F(k)) for k = first, ..., last. A draw is the least k
with U < F(k), where U is uniform on (0, 1) and known by its first 64 bits, the word w. If w < T_k then U < F(k), and if
w > T_k then U > F(k), whatever the other bits are. So the draw is the least k with w < T_k, unless w equals some T_j or
lies beyond the table; then interval arithmetic decides, with more bits of U.

**Theorem.** The distribution of a draw is exactly F, if the T_k are right, and they are computed with interval
arithmetic. There is no rounding in a draw.

**Timing residual.** A draw is undecided with probability at most (last - first + 2) 2^-64 + F(first) + 1 - F(last).

A guide of 2^16 cells, by the first bits of the word, finds most draws without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import retry_with_more_precision
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import refine_until_decided, uniform_interval

if TYPE_CHECKING:
    from flint import arb

_GUIDE = 16
_WHOLE = 2**64


def is_table_worthwhile(count: int, entries: int) -> bool:
    """Whether so many draws make up for making the table."""
    return count >= max(1 << _GUIDE, 200 * entries)


class CdfTable:
    """A distribution on integers. `shares` yields F(first), F(first + 1), ..., F(last); `exactly(k)` is F(k) for any k:
    both are
    intervals at the working precision."""

    def __init__(self, first: int, shares: Callable[[], Iterable[arb]], exactly: Callable[[int], arb]) -> None:
        self._first = first
        self._exactly = exactly
        self._thresholds = np.array(_floors(shares), dtype=np.uint64)
        cells = np.arange(1 << _GUIDE, dtype=np.uint64) << np.uint64(64 - _GUIDE)
        ends = cells | np.uint64((1 << (64 - _GUIDE)) - 1)
        # Of all words in a cell, the first has the least draw and the last the largest; between them no threshold lies
        # where both are the same, and no word of the cell is a threshold.
        self._lowest = np.searchsorted(self._thresholds, cells, side="left")
        self._certain = self._lowest == np.searchsorted(self._thresholds, ends, side="right")
        self._certain &= (self._lowest > 0) & (self._lowest < len(self._thresholds))

    def __len__(self) -> int:
        return len(self._thresholds)

    def draws(self, count: int, bits: Bits) -> npt.NDArray[np.int64]:
        """`count` independent draws."""
        words = bits.words(count)
        cell = (words >> np.uint64(64 - _GUIDE)).astype(np.intp)
        found = self._lowest[cell]
        rest = np.flatnonzero(~self._certain[cell])
        found[rest] = np.searchsorted(self._thresholds, words[rest], side="right")
        ties = found[rest] != np.searchsorted(self._thresholds, words[rest], side="left")
        beyond = (found[rest] == len(self._thresholds)) | (found[rest] == 0)
        for index in rest[ties | beyond]:
            found[index] = self._search(int(words[index]), int(found[index]) + self._first, bits) - self._first
        return found + self._first

    def _search(self, word: int, near: int, bits: Bits) -> int:
        """The least k with U < F(k), for the U that begins with `word`, searched from `near` on."""
        return refine_until_decided(word, 64, bits, lambda word, known: self._bracket(word, known, near))

    def _bracket(self, word: int, known: int, near: int) -> int | None:
        """The draw, if all U that begin with these bits have the same; None if more bits are needed."""
        low, high = uniform_interval(word, known)
        while low >= self._exactly(near):
            near += 1
        while high <= self._exactly(near - 1):
            near -= 1
        return near if high <= self._exactly(near) and low >= self._exactly(near - 1) else None


def _threshold(share: arb) -> int | None:
    """floor(2^64 F), where F <= 1 is known: 2^64 - 1 from there on, however near to one F is."""
    if share >= _WHOLE - 1:
        return _WHOLE - 1
    floor = share.floor().unique_fmpz()
    return None if floor is None else int(floor)


def _floors(shares: Callable[[], Iterable[arb]]) -> list[int]:
    """floor(2^64 F) for each share, at a precision that makes all of them certain."""

    def floors() -> list[int] | None:
        found = [_threshold(share * _WHOLE) for share in shares()]
        certain = [floor for floor in found if floor is not None]
        return certain if len(certain) == len(found) else None

    return retry_with_more_precision(floors, 192)
