"""Bytes looked up by 16 bits each in a table of 2^16 cells, of which the last ones are nobody's.

Two ways of one result: numpy's, and a loop that takes a third of the time where it is compiled. Both put the byte of
each cell into `found`, and into `rest` the places, in order, whose cell is not below `owned`. They return how many.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

TABLE_CELLS = 2**16
_PIECE = 2**15  # numpy's places take eight bytes each: a piece of them stays near the processor

Uint8Array: TypeAlias = npt.NDArray[np.uint8]
Uint16Array: TypeAlias = npt.NDArray[np.uint16]
IndexArray: TypeAlias = npt.NDArray[np.int64]


def look_up_numpy(cells: Uint16Array, table: Uint8Array, owned: int, found: Uint8Array, rest: IndexArray) -> int:
    """By numpy."""
    places = np.empty(min(len(cells), _PIECE), dtype=np.intp)
    for start in range(0, len(cells), _PIECE):
        part = cells[start : start + _PIECE]
        places[: len(part)] = part
        table.take(places[: len(part)], mode="clip", out=found[start : start + len(part)])
    if owned == TABLE_CELLS:
        return 0
    left = np.flatnonzero(cells >= np.uint16(owned))
    rest[: len(left)] = left
    return len(left)


def look_up_loop(cells: Uint16Array, table: Uint8Array, owned: int, found: Uint8Array, rest: IndexArray) -> int:
    """Cell by cell."""
    count = 0
    for place in range(len(cells)):
        cell = cells[place]
        found[place] = table[cell]
        if cell >= owned:
            rest[count] = place
            count += 1
    return count
