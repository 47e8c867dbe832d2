"""The Walsh-Hadamard transform, in integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_LOW = 64  # the block of the lowest bits, which is transformed on its own: adding neighbors is slow


def walsh_hadamard(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return W[y] = sum of (-1)^parity(x & y) counts[x] over all x, for a length that is a power of two. Exact.

    Halves are added and subtracted, one bit after the other: n log n additions. The bits are independent of each other,
    so the lowest ones are done on the transposed table.
    """
    transposed = counts.astype(np.int64).reshape(-1, min(len(counts), _LOW)).T.copy()
    _butterfly(transposed)
    found = transposed.T.copy()
    _butterfly(found)
    return found.reshape(-1)


def _butterfly(rows: npt.NDArray[np.int64]) -> None:
    """Replace, for each bit of the row's number, the pair a and b by a + b and a - b, in place."""
    half = 1
    while half < len(rows):
        pairs = rows.reshape(-1, 2, half * rows.shape[1])
        one, other = pairs[:, 0], pairs[:, 1]
        one += other
        other *= -2
        other += one
        half *= 2
