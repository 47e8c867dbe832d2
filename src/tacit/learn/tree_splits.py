"""Splits of rows by one column's bins, and how much each candidate tells of residuals: exact integers.

>>> bins = ColumnBins.of([0.0], [4.0], most=4)
>>> places, residuals = bins.read(np.array([[0.5], [1.5], [2.5], [3.5]])), np.array([[-1.0], [-1.0], [1.0], [1.0]])
>>> candidates = list_candidates(bins, leaves=1, most_leaves=8)
>>> [candidate.describe(bins) for candidate in candidates]
['column 0 <= 1', 'column 0 <= 2', 'column 0 <= 3']
>>> score_candidates(bins, candidates, places, np.zeros(4, dtype=np.int64), 1, residuals).tolist()
[2, 4, 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tacit.learn.losses import Array
from tacit.learn.tree_bins import ColumnBins

_BLOCK = 2**30  # rows whose residuals of at most 2^20 add up in a double without error


class SplitKind(IntEnum):
    """What a split asks of a row's bin. The numbers are stored with models and never change."""

    ABOVE = 0
    EQUALS = 1
    EACH = 2


@dataclass(frozen=True)
class TreeSplit:
    """A rule that sends a row to one of `ways` parts, by its bin in one column."""

    column: int
    kind: SplitKind
    place: int = 0  # the bin that is compared with
    ways: int = 2

    def route(self, places: Array) -> Array:
        """The part of each row, from 0 on."""
        column = places[:, self.column]
        match self.kind:
            case SplitKind.ABOVE:
                return np.asarray(column > self.place, dtype=np.int64)
            case SplitKind.EQUALS:
                return np.asarray(column == self.place, dtype=np.int64)
            case SplitKind.EACH:
                return np.asarray(column)

    def describe(self, bins: ColumnBins, names: Sequence[str] | None = None, part: int | None = None) -> str:
        """The rule of the first part as text, or that of another."""
        name = f"column {self.column}" if names is None else names[self.column]
        which = 0 if part is None else part
        if self.kind is SplitKind.EACH:
            return f"{name} each" if part is None else f"{name} == {bins.edge(self.column, which):g}"
        value = f"{bins.edge(self.column, self.place):g}"
        signs = ("<=", ">") if self.kind is SplitKind.ABOVE else ("!=", "==")
        return f"{name} {signs[which]} {value}"


def list_candidates(bins: ColumnBins, leaves: int, most_leaves: int) -> list[TreeSplit]:
    """All splits of so many leaves that leave no more than `most_leaves`. They depend on public facts alone."""
    found = []
    for column, count in enumerate(bins.counts):
        if not bins.categorical[column]:
            found += [TreeSplit(column, SplitKind.ABOVE, place) for place in range(count - 1)]
            continue
        if count > 2:
            found += [TreeSplit(column, SplitKind.EQUALS, place) for place in range(count)]
        if count > 1 and leaves * count <= most_leaves:
            found.append(TreeSplit(column, SplitKind.EACH, 0, count))
    return found


def score_candidates(
    bins: ColumnBins,
    candidates: Sequence[TreeSplit],
    places: Array,
    leaves: Array,
    count: int,
    residuals: Array,
) -> npt.NDArray[np.int64]:
    """For each candidate the sum of |S| over all new leaves and outputs, S the sum of the residuals in a leaf.

    `residuals` are whole numbers, a row of outputs for each row; `leaves` are the leaves that rows are in, of `count`.

    **Theorem.** If the outputs of a row's residuals are at most m together, in size, then a row that is added or
    removed moves every score by at most m, and one that is replaced by at most 2 m, exactly. **Proof.** A row is in one
    leaf of each candidate, whose sums it moves by its residuals. All sums are of whole numbers and are not rounded.
    """
    found: list[Array] = []
    start = 0
    for column, bins_here in enumerate(bins.counts):
        stop = start
        while stop < len(candidates) and candidates[stop].column == column:
            stop += 1
        here, start = candidates[start:stop], stop
        if not here:
            continue
        cells = _sum_cells(leaves * bins_here + places[:, column], count * bins_here, residuals)
        sums = cells.reshape(count, bins_here, residuals.shape[1])
        whole = sums.sum(axis=1, keepdims=True)
        match here[0].kind:
            case SplitKind.ABOVE:
                parts = np.cumsum(sums, axis=1)[:, :-1]
                found.append((np.abs(parts) + np.abs(whole - parts)).sum(axis=(0, 2)))
            case SplitKind.EQUALS:
                found.append((np.abs(sums) + np.abs(whole - sums)).sum(axis=(0, 2)))
        if here[-1].kind is SplitKind.EACH:
            found.append(np.abs(sums).sum().reshape(1))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _sum_cells(cells: Array, count: int, values: Array) -> npt.NDArray[np.int64]:
    """The sums of whole values over the rows of each cell, exactly."""
    found = np.zeros((count, values.shape[1]), dtype=np.int64)
    for start in range(0, len(cells), _BLOCK):
        block = slice(start, start + _BLOCK)
        for output in range(values.shape[1]):
            found[:, output] += np.bincount(cells[block], values[block, output], count).astype(np.int64)
    return found


def sum_leaves(leaves: Array, count: int, values: Array) -> npt.NDArray[np.int64]:
    """The sums of whole values over the rows of each leaf, exactly."""
    return _sum_cells(leaves, count, values)
