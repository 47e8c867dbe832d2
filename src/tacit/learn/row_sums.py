"""Lengths and products of rows in doubles, each of which depends on its own row alone.

>>> multiply_rows(np.array([[1.0, 2.0, 3.0]]), np.array([1.0, 10.0, 100.0])).tolist()
[321.0]

A matrix product, `einsum` and a sum along an axis add the numbers of a row in an order that depends on how many rows
there are, on their layout and on where a buffer ends. So the rounding of one row may depend on others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.learn.losses import Array

_ENTRIES = 2**16  # of a block that stays in the cache


def square_lengths(table: Array) -> Array:
    """The squares of the lengths of the rows; infinite where they overflow."""
    with np.errstate(over="ignore"):
        return _of_blocks(table, lambda block: add_columns(np.square(block)))


def multiply_rows(table: Array, weights: Array) -> Array:
    """The products of the rows with weights of the shape (columns,) or (columns, outputs)."""
    if weights.ndim == 1:
        return _of_blocks(table, lambda block: add_columns(block * weights))
    return np.stack([multiply_rows(table, output) for output in weights.T], axis=1)


def add_columns(table: Array) -> Array:
    """The sum of each row.

    **Theorem.** It is a function of that row and of the number of columns. Proof: columns are added in pairs, and
    these in pairs again. Each step adds two numbers of one row, rounded as IEEE 754 says; which two depends on the
    number of columns only.
    """
    parts = table
    while (width := parts.shape[1]) > 1:
        half = width // 2
        pairs = parts[:, :half] + parts[:, half : 2 * half]
        if width % 2:
            pairs[:, 0] += parts[:, -1]
        parts = pairs
    return np.array(parts[:, 0]) if parts.shape[1] else np.zeros(len(parts))


def _of_blocks(table: Array, sums: Callable[[Array], Array]) -> Array:
    """The sums of all rows, block by block."""
    found: Array = np.empty(len(table))
    step = max(1, _ENTRIES // max(1, int(table.shape[1])))
    for start in range(0, len(table), step):
        found[start : start + step] = sums(table[start : start + step])
    return found
