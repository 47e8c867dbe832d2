"""Single trees and forests under differential privacy: rules that part the targets, and noisy sums of the leaves.

>>> from tacit.privacy.unit import Neighbors
>>> facts = {"loss": ClassCounts(2), "neighbors": Neighbors.ADD_REMOVE, "trees": 8, "depth": 4}
>>> plan = AveragedTrees.calibrate(Fraction(1), Fraction(1, 10**9), **facts)
>>> plan.releases.trees, plan.releases.roots, plan.columns
(8, 1, None)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np

from tacit.arithmetic import to_rational
from tacit.errors import ParameterError
from tacit.learn.boosted_trees import MOST_LEAVES, check_count, compute_importances
from tacit.learn.facts import DeclaredParameters
from tacit.learn.losses import Array
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_release import TreeReleases
from tacit.learn.tree_symmetric import SymmetricTree
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

_PART = math.sqrt(0.5)  # of a row's moments, for the target and for the count


class LeafSums(Protocol):
    """What is summed over the rows of a leaf, and what it says of them. A row's moments are at most one in L2."""

    @property
    def outputs(self) -> int:
        """One less than the moments of a row."""

    def moments(self, labels: Array) -> Array:
        """The moments of rows."""

    def means(self, sums: Array, prior: Array | None, weight: float) -> Array:
        """The means that sums over leaves tell of, with `weight` more rows that are as `prior` says."""

    def residuals(self, labels: Array, prior: Array) -> Array:
        """How rows differ from the prior: at most one in L1, or two where there are several outputs."""

    def split_sums(self, sums: Array, prior: Array) -> Array:
        """Sums over leaves as those of residuals, and the number of rows."""


@dataclass(frozen=True)
class ClassCounts:
    """How many rows of each class there are: a row is in one of them."""

    classes: int

    @property
    def outputs(self) -> int:
        """One less than the classes."""
        return self.classes - 1

    def moments(self, labels: Array) -> Array:
        """A mark for the class."""
        return np.asarray(labels[:, None] == np.arange(self.classes), dtype=np.float64)

    def means(self, sums: Array, prior: Array | None, weight: float) -> Array:
        """The shares of the classes."""
        known = np.maximum(sums, 0.0)
        start = np.full(self.classes, 1 / self.classes) if prior is None else prior
        return np.asarray((known + weight * start) / (known.sum(axis=1, keepdims=True) + weight))

    def residuals(self, labels: Array, prior: Array) -> Array:
        """With two classes that of the second; else one for each class but the last, which the others tell."""
        marks = self.moments(labels) - prior
        return np.asarray(marks[:, 1:] if self.classes == 2 else marks[:, :-1])

    def split_sums(self, sums: Array, prior: Array) -> Array:
        """Counts above those by the prior, and the number of rows."""
        rows = sums.sum(axis=1, keepdims=True)
        return np.hstack([sums - prior * rows, rows])


@dataclass(frozen=True)
class TargetSums:
    """The sum of targets in [-1, 1], and how many rows there are."""

    outputs: int = 1

    def moments(self, labels: Array) -> Array:
        """The target and a one, each sqrt(1/2) of what it is."""
        return np.column_stack([labels, np.ones(len(labels))]) * _PART

    def means(self, sums: Array, prior: Array | None, weight: float) -> Array:
        """The means of the targets."""
        start = 0.0 if prior is None else float(prior[0])
        total, rows = sums[:, 0] / _PART, np.maximum(sums[:, 1] / _PART, 0.0)
        return np.asarray(np.clip((total + weight * start) / (rows + weight), -1.0, 1.0)[:, None])

    def residuals(self, labels: Array, prior: Array) -> Array:
        """Targets above the prior, cut to [-1, 1]."""
        return np.asarray(np.clip(labels - prior[0], -1.0, 1.0)[:, None])

    def split_sums(self, sums: Array, prior: Array) -> Array:
        """Targets above the prior, and the number of rows."""
        return np.column_stack([sums[:, 0] - prior[0] * sums[:, 1], sums[:, 1]]) / _PART


@dataclass(frozen=True)
class AveragedTrees:
    """Learns trees that part the targets, each by itself, and says the mean of what they say.

    **Theorem.** The fit loses at most `privacy_loss`. **Proof.** The sums of all rows are released first, as a tree
    without rules, and give the prior. All trees see all rows, so their losses add up: nothing is gained by parallel
    composition, and nothing is sampled. A row's residuals and moments are functions of the row and of the prior,
    within the bounds that `TreeReleases` needs. Shares, means and predictions are post-processing.

    Where `columns` is given, each level chooses among so many columns, drawn without the rows, so that trees differ.
    """

    releases: TreeReleases
    loss: LeafSums
    columns: int | None

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        loss: LeafSums,
        neighbors: Neighbors,
        trees: int,
        depth: int,
        leaves: int | None = None,
        columns: int | None = None,
    ) -> Self:
        """The method for (epsilon, delta), with noise calibrated to it."""
        most = max(MOST_LEAVES, 2**depth) if leaves is None else leaves
        if most < 2**depth:
            what = f"are fewer than {2**depth:,}, which {depth} levels need"
            raise ParameterError("max_leaf_nodes", what, fix=f"max_leaf_nodes={2**depth}, or a lower max_depth")
        releases = TreeReleases.calibrate(
            epsilon,
            delta,
            trees=trees,
            depth=depth,
            outputs=loss.outputs,
            most_leaves=most,
            neighbors=neighbors,
            roots=1,
        )
        return cls(releases, loss, columns)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        return self.releases.privacy_loss

    def fit(self, bins: ColumnBins, places: Array, labels: Array, bits: Bits) -> list[SymmetricTree]:
        """The root and the trees, whose values are the noisy sums of their leaves."""
        moments = self.loss.moments(labels)
        whole = np.zeros(len(places), dtype=np.int64)
        trees = [SymmetricTree((), self.releases.release_leaves(whole, 1, moments, bits))]
        residuals = self.loss.residuals(labels, self.find_prior(trees[0]))
        for _ in range(self.releases.trees):
            splits, leaves = self.releases.choose_splits(bins, places, residuals, bits, self.columns)
            count = math.prod(split.ways for split in splits)
            trees.append(SymmetricTree(splits, self.releases.release_leaves(leaves, count, moments, bits)))
        return trees

    def find_prior(self, root: SymmetricTree) -> Array:
        """What the sums of all rows say."""
        return np.asarray(self.loss.means(root.values, None, self.releases.deviation)[0])

    def explain_values(self, trees: tuple[SymmetricTree, ...], tree: SymmetricTree) -> Array:
        """What one of the trees says of the rows in its leaves."""
        return self.compute_values(tree, self.find_prior(trees[0]))

    def compute_values(self, tree: SymmetricTree, prior: Array) -> Array:
        """What a tree says of the rows in its leaves: leaves of few rows are near the prior."""
        return self.loss.means(tree.values, prior, 2 * self.releases.deviation)

    def compute_scores(self, trees: tuple[SymmetricTree, ...], places: Array) -> Array:
        """The mean of what all trees say of rows, by their bins."""
        root, *others = trees
        prior = self.find_prior(root)
        found = [self.compute_values(tree, prior)[tree.find_leaves(places)] for tree in others]
        return np.asarray(np.mean(found, axis=0))

    def compute_importances(self, trees: tuple[SymmetricTree, ...], columns: int) -> Array:
        """How much each column's splits are worth, one in all."""
        root, *others = trees
        prior = self.find_prior(root)
        known = (SymmetricTree(tree.splits, self.loss.split_sums(tree.values, prior)) for tree in others)
        return compute_importances(tuple(known), columns, self.releases.deviation)


def plan_averages(
    model: Any, facts: DeclaredParameters, loss: LeafSums, trees: Any = 1, columns: Any = None
) -> AveragedTrees:
    """The method by the parameters of an estimator, of which a single tree has neither `trees` nor `columns`."""
    leaves = None if model.max_leaf_nodes is None else check_count("max_leaf_nodes", model.max_leaf_nodes)
    return AveragedTrees.calibrate(
        facts.epsilon,
        facts.delta,
        loss=loss,
        neighbors=facts.neighbors,
        trees=check_count("n_estimators", trees),
        depth=check_count("max_depth", model.max_depth),
        leaves=leaves,
        columns=None if columns is None else count_columns(columns, facts.columns),
    )


def count_columns(value: Any, columns: int) -> int:
    """Among how many of the columns a level chooses."""
    fix = 'max_features="sqrt", a whole number, or a share such as 0.5'
    if isinstance(value, str):
        if value != "sqrt":
            raise ParameterError("max_features", f"there is no {value!r:.60}", fix=fix)
        return math.isqrt(columns - 1) + 1
    if isinstance(value, bool):
        raise ParameterError("max_features", "is no number", fix=fix)
    known = to_rational("max_features", value)
    if isinstance(value, int | np.integer):
        if not 1 <= known <= columns:
            raise ParameterError("max_features", f"must be from 1 to {columns}", fix=fix)
        return int(known)
    if not 0 < known <= 1:
        raise ParameterError("max_features", "must be a share above 0 and at most 1", fix=fix)
    return max(1, math.ceil(known * columns))
