"""Symmetric trees: all leaves of a level are split by the same rule, so that a rule is chosen by all rows.

>>> bins = ColumnBins.of([0.0], [4.0], most=4)
>>> tree = SymmetricTree((TreeSplit(0, SplitKind.ABOVE, 1),), np.array([[-0.5], [0.5]]))
>>> tree.values[tree.find_leaves(bins.read(np.array([[1.0], [3.0]])))].tolist()
[[-0.5], [0.5]]
>>> print(tree.describe(bins, ["age"]))
|--- age <= 2
|   |--- value: [-0.50]
|--- age >  2
|   |--- value: [0.50]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.learn.losses import Array
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_splits import SplitKind, TreeSplit

_FIELDS = 4  # numbers of a split


@dataclass(frozen=True, eq=False)
class SymmetricTree:
    """Rules, one a level, and the values of the leaves, of which there is one for each answer to all rules."""

    splits: tuple[TreeSplit, ...]
    values: Array  # (leaves, outputs)

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return math.prod(split.ways for split in self.splits)

    def find_leaves(self, places: Array) -> Array:
        """The leaf of each row of bins."""
        found = np.zeros(len(places), dtype=np.int64)
        for split in self.splits:
            found = found * split.ways + split.route(places)
        return found

    def describe(self, bins: ColumnBins, names: Sequence[str] | None = None, decimals: int = 2) -> str:
        """The rules and the values of the leaves as text, a line each."""
        lines: list[str] = []
        self._describe(bins, names, decimals, 0, 0, lines)
        return "\n".join(lines)

    def _describe(
        self, bins: ColumnBins, names: Sequence[str] | None, decimals: int, level: int, leaf: int, lines: list[str]
    ) -> None:
        before = "|   " * level
        if level == len(self.splits):
            numbers = ", ".join(f"{value:.{decimals}f}" for value in self.values[leaf])
            lines.append(f"{before}|--- value: [{numbers}]")
            return
        split = self.splits[level]
        for part in range(split.ways):
            rule = split.describe(bins, names, part).replace(" > ", " >  ")
            lines.append(f"{before}|--- {rule}")
            self._describe(bins, names, decimals, level + 1, leaf * split.ways + part, lines)


def flatten_trees(trees: Sequence[SymmetricTree]) -> Array:
    """The trees as one vector of doubles, for storage."""
    parts: list[Array] = [np.array([len(trees)], dtype=np.float64)]
    for tree in trees:
        rules = [(split.column, split.kind, split.place, split.ways) for split in tree.splits]
        parts.append(np.array([len(rules), tree.values.shape[1]], dtype=np.float64))
        parts.append(np.array(rules, dtype=np.float64).ravel())
        parts.append(tree.values.ravel())
    return np.concatenate(parts)


def restore_trees(numbers: Array, bins: ColumnBins, outputs: int) -> tuple[SymmetricTree, ...]:
    """The trees that `flatten_trees` wrote, with so many values a leaf; ValueError where they are none."""
    found = []
    known, at = np.asarray(numbers, dtype=np.float64).ravel(), 1
    if not len(known) or not np.all(np.isfinite(known)):
        raise ValueError("trees")
    for _ in range(int(known[0])):
        depth, width = (int(number) for number in known[at : at + 2])
        at += 2
        rules = known[at : at + _FIELDS * depth].astype(np.int64).reshape(depth, _FIELDS).tolist()
        at += _FIELDS * depth
        splits = tuple(_check_split(bins, *rule) for rule in rules)
        size = math.prod(split.ways for split in splits) * width
        values = known[at : at + size]
        if width != outputs or len(values) != size:
            raise ValueError("trees")
        found.append(SymmetricTree(splits, values.reshape(-1, width)))
        at += size
    if at != len(known):
        raise ValueError("trees")
    return tuple(found)


def _check_split(bins: ColumnBins, column: int, kind: int, place: int, ways: int) -> TreeSplit:
    """A stored rule, or ValueError."""
    if not 0 <= column < len(bins.counts) or not 0 <= place < bins.counts[column]:
        raise ValueError("trees")
    split = TreeSplit(column, SplitKind(kind), place, ways)
    if ways != (bins.counts[column] if split.kind is SplitKind.EACH else 2):
        raise ValueError("trees")
    return split
