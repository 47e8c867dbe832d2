"""Loops over coded rows. Compiled: needs numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def write_looked_up(codes: NDArray[Any], table: NDArray[np.int32], into: NDArray[np.int32]) -> None:
    """Write what a table has for the code of each row."""
    for row in range(codes.shape[0]):
        into[row] = table[np.uint64(codes[row])]


@njit(nogil=True, cache=True)
def add_looked_up(codes: NDArray[Any], table: NDArray[np.int32], into: NDArray[np.int32]) -> None:
    """Add what a table has for the code of each row."""
    for row in range(codes.shape[0]):
        into[row] += table[np.uint64(codes[row])]


@njit(nogil=True, cache=True)
def write_combined(first: NDArray[Any], second: NDArray[Any], size: int, into: NDArray[np.uint32]) -> None:
    """Write one number for two codes, of which the second has `size` values."""
    for row in range(first.shape[0]):
        into[row] = np.uint32(first[row]) * np.uint32(size) + np.uint32(second[row])


@njit(nogil=True, cache=True)
def count_kept(
    kept: NDArray[np.int32], group: NDArray[np.int32], codes: NDArray[Any], size: int, counts: NDArray[np.int32]
) -> None:
    """Count each of `size` codes in each group, over the rows that are kept; all of these are in a group."""
    for i in range(kept.shape[0]):
        row = np.uint64(kept[i])
        counts[np.uint64(np.int64(group[row]) * size + np.int64(codes[row]))] += 1


@njit(nogil=True, cache=True)
def count_kept_of_one(kept: NDArray[np.int32], codes: NDArray[Any], counts: NDArray[np.int32]) -> None:
    """The same where all rows are in one group."""
    for i in range(kept.shape[0]):
        counts[np.uint64(codes[np.uint64(kept[i])])] += 1


@njit(nogil=True, cache=True)
def count_all_of_one(codes: NDArray[Any], counts: NDArray[np.int32]) -> None:
    """The same where all rows are kept."""
    for row in range(codes.shape[0]):
        counts[np.uint64(codes[row])] += 1


@njit(nogil=True, cache=True)
def list_grouped(group: NDArray[np.int32], kept: NDArray[np.int32], rows: NDArray[np.int64]) -> int:
    """Write the rows that are in a group, count them in it, and return how many they are."""
    many = np.uint64(0)
    for row in range(group.shape[0]):
        kept[many] = row
        c = group[row]
        if c >= 0:
            rows[np.uint64(c)] += 1
            many += np.uint64(1)
    return int(many)
