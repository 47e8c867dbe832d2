"""Bytes looked up by 16 bits each in a table of 2^16 cells, of which the last ones are nobody's.

Two ways of one result: numpy's, and a compiled loop that takes a third of the time. The loop is used where numba is
installed (`tacit[fast]`) and so many bytes are wanted that loading it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

CELLS = 2**16
_WORTHWHILE = 2**26  # bytes; numpy looks them up in the time in which numba loads
_PIECE = 2**15  # numpy's places take eight bytes each: a piece of them stays near the processor

Octets: TypeAlias = npt.NDArray[np.uint8]
Halves: TypeAlias = npt.NDArray[np.uint16]
Places: TypeAlias = npt.NDArray[np.int64]
LookUp: TypeAlias = Callable[[Halves, Octets, int, Octets], Places]


def way_for(count: int) -> LookUp:
    """The better way to look up so many bytes in all."""
    return compiled if count >= _WORTHWHILE and find_spec("numba") is not None else plain


def plain(cells: Halves, table: Octets, owned: int, found: Octets) -> Places:
    """Put the byte of each cell into `found`; returns the places, in order, whose cell is not below `owned`."""
    places = np.empty(min(len(cells), _PIECE), dtype=np.intp)
    for start in range(0, len(cells), _PIECE):
        part = cells[start : start + _PIECE]
        places[: len(part)] = part
        table.take(places[: len(part)], mode="clip", out=found[start : start + len(part)])
    if owned == CELLS:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(cells >= np.uint16(owned))


def compiled(cells: Halves, table: Octets, owned: int, found: Octets) -> Places:
    """The same, in one pass. Needs numba."""
    rest = np.empty(len(cells), dtype=np.int64)
    return rest[: _loop()(cells, table, owned, found, rest)]


@lru_cache(maxsize=1)
def _loop() -> Any:
    from numba import njit

    return njit(nogil=True, cache=True)(_look_up)


def _look_up(cells: Halves, table: Octets, owned: int, found: Octets, rest: Places) -> int:
    count = 0
    for place in range(len(cells)):
        cell = cells[place]
        found[place] = table[cell]
        if cell >= owned:
            rest[count] = place
            count += 1
    return count
