"""The Walsh-Hadamard transform, in integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def walsh_hadamard(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """W[y] = sum of (-1)^parity(x & y) counts[x] over all x, for a length that is a power of two. Exact.

    Halves are added and subtracted, one bit after the other: n log n additions.
    """
    found, half = counts.astype(np.int64), 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        found = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).reshape(-1)
        half *= 2
    return found
