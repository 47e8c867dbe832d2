"""Gradient boosting under differential privacy: trees that follow residuals, one after another.

>>> from fractions import Fraction
>>> from tacit.learn.tree_losses import LogisticTreeLoss
>>> from tacit.privacy.unit import Neighbors
>>> facts = {"loss": LogisticTreeLoss(), "rows": 24_000, "neighbors": Neighbors.ADD_REMOVE}
>>> plan = BoostedTrees.calibrate(Fraction(1), Fraction(1, 10**9), **facts)
>>> plan.releases.trees, plan.releases.depth, plan.learning_rate
(20, 2, 0.6)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.arithmetic import to_integer, to_rational
from tacit.errors import ParameterError
from tacit.learn.losses import Array
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_losses import TreeLoss, compute_steps, join_moments
from tacit.learn.tree_release import TreeReleases
from tacit.learn.tree_symmetric import SymmetricTree
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

# chosen on synthetic data: benchmarks/trees.md
_TREES = 20
_DEPTH = 2
_RATE = 0.6
MOST_LEAVES = 64
_LIMITS = {"max_iter": 1000, "n_estimators": 1000, "max_depth": 12, "max_leaf_nodes": 4096}


@dataclass(frozen=True)
class BoostedTrees:
    """Learns `releases.trees` symmetric trees: each splits the rows where the residuals of those before it differ most.

    **Theorem.** The fit loses at most `privacy_loss`. **Proof.** Scores of rows are computed from the row and from
    trees that were released, so its residuals and curvatures are functions of the row and of public values, within the
    bounds that `TreeReleases` needs: `TreeLoss.moments` has residuals of at most one in L1, or two with several
    outputs, and `join_moments` at most one in L2; what rounding makes longer is shortened. Steps are post-processing.
    """

    releases: TreeReleases
    loss: TreeLoss
    learning_rate: float

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        loss: TreeLoss,
        rows: int,
        neighbors: Neighbors,
        trees: Any = None,
        depth: Any = None,
        leaves: Any = None,
        learning_rate: Any = None,
    ) -> Self:
        """The method for (epsilon, delta), with noise calibrated to it. What is None follows a rule of public facts."""
        levels = check_count("max_depth", _DEPTH if depth is None else depth)
        most = check_count("max_leaf_nodes", max(MOST_LEAVES, 2**levels) if leaves is None else leaves)
        if most < 2**levels:
            what = f"are fewer than {2**levels:,}, which {levels} levels need"
            raise ParameterError("max_leaf_nodes", what, fix=f"max_leaf_nodes={2**levels}, or a lower max_depth")
        releases = TreeReleases.calibrate(
            epsilon,
            delta,
            trees=check_count("max_iter", _TREES if trees is None else trees),
            depth=levels,
            outputs=loss.outputs,
            most_leaves=most,
            neighbors=neighbors,
        )
        return cls(releases, loss, check_rate(_RATE if learning_rate is None else learning_rate))

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        return self.releases.privacy_loss

    def fit(self, bins: ColumnBins, places: Array, labels: Array, bits: Bits) -> list[SymmetricTree]:
        """The trees, whose values are the noisy sums of their leaves."""
        scores = np.zeros((len(places), self.loss.outputs))
        trees = []
        for _ in range(self.releases.trees):
            residuals, curvatures = self.loss.moments(scores, labels)
            splits, leaves = self.releases.choose_splits(bins, places, residuals, bits)
            count = int(np.prod([split.ways for split in splits]))
            moments = join_moments(self.loss, residuals, curvatures)
            trees.append(SymmetricTree(splits, self.releases.release_leaves(leaves, count, moments, bits)))
            scores += self.compute_values(trees[-1])[leaves]
        return trees

    def compute_values(self, tree: SymmetricTree) -> Array:
        """What a tree adds to the scores of its leaves' rows."""
        return self.learning_rate * compute_steps(self.loss, tree.values, self.releases.deviation)

    def explain_values(self, trees: tuple[SymmetricTree, ...], tree: SymmetricTree) -> Array:  # as others
        """What one of the trees adds to the scores of its leaves' rows."""
        return self.compute_values(tree)

    def compute_importances(self, trees: tuple[SymmetricTree, ...], columns: int) -> Array:
        """How much each column's splits are worth, one in all."""
        return compute_importances(trees, columns, self.releases.deviation)

    def compute_scores(self, trees: tuple[SymmetricTree, ...], places: Array) -> Array:
        """The scores of rows, by their bins."""
        scores = np.zeros((len(places), self.loss.outputs))
        for tree in trees:
            scores += self.compute_values(tree)[tree.find_leaves(places)]
        return scores


def check_count(name: str, value: Any) -> int:
    """A number of trees, levels or leaves."""
    found = to_integer(name, value, least=1)
    if found > _LIMITS[name]:
        raise ParameterError(name, f"is more than {_LIMITS[name]:,}", fix=f"leave {name} out")
    return found


def check_rate(value: Any) -> float:
    """A learning rate above 0 and at most 1."""
    found = float(to_rational("learning_rate", value))
    if not 0 < found <= 1:
        raise ParameterError("learning_rate", "must be above 0 and at most 1", fix="learning_rate=0.5, say")
    return found


def compute_importances(trees: tuple[SymmetricTree, ...], columns: int, deviation: float) -> Array:
    """How much each column's splits are worth by the released sums, one in all; zeros where none is worth anything.

    A tree is worth the sum of R^2/(H + deviation) over its leaves, R and H the sums of their residuals and curvatures,
    where R^2 is lowered by the variance of its noise. A split is worth what is lost where the leaves that it parts are
    put together.
    """
    found = np.zeros(columns)
    for tree in trees:
        sums = tree.values.reshape(*(split.ways for split in tree.splits), -1)
        whole = _worth(sums, deviation, 1)
        for level, split in enumerate(tree.splits):
            found[split.column] += max(0.0, whole - _worth(sums.sum(axis=level), deviation, split.ways))
    total = found.sum()
    return np.asarray(found / total if total > 0 else found)


def _worth(sums: Array, deviation: float, joined: int) -> float:
    """The worth of leaves, each of which is so many that are put together."""
    squares = np.maximum(sums[..., :-1] ** 2 - joined * deviation**2, 0.0)
    return float((squares / (np.maximum(sums[..., -1:], 0.0) + deviation)).sum())
