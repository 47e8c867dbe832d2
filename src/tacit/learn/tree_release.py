"""The noise of trees: a rule for each level is chosen at random by its score, and the sums of the leaves have noise.

>>> facts = {"trees": 20, "depth": 2, "outputs": 1, "most_leaves": 64, "neighbors": Neighbors.ADD_REMOVE}
>>> plan = TreeReleases.calibrate(Fraction(1), Fraction(1, 10**9), **facts)
>>> round(float(plan.noise.sigma), 1), round(float(plan.choice.epsilon), 3)
(36.5, 0.039)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn.gradient import l2_sensitivity
from tacit.learn.losses import Array
from tacit.learn.noise import GRID_BITS, GridGaussian, approximation_delta_of, sqrt_upper_bound
from tacit.learn.sums import ROW_BITS, quantize
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_splits import TreeSplit, list_candidates, score_candidates, sum_leaves
from tacit.mechanisms.exponential import Exponential
from tacit.privacy.loss import ApproximateDp, Compose, ConcentratedDp, ContinuousGaussianNoise, Loss, Repeat
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits
from tacit.sampling.exponential_weights import choose
from tacit.sampling.uniform import draw_below, draw_order

_UNIT = 2**ROW_BITS
_SEARCH = 40  # halvings, by which rho is found


@dataclass(frozen=True)
class TreeReleases:
    """All that `trees` trees of `depth` levels learn of the rows: their rules, and the sums of their leaves.

    **Theorem.** If every row has residuals of at most `most_residual` in L1 and moments of at most one in L2, which may
    depend on all that was released before, then the fit loses at most `privacy_loss`.

    **Proof.** A rule is chosen by the exponential mechanism: a row that is added or removed moves each score by at most
    its residuals in L1 (`score_candidates`), one that is replaced by twice that. A row is in one leaf of a tree,
    whatever its rules, so the sums of moments over all leaves move by at most one in L2, or by two; they have Gaussian
    noise for that. Both are exact on whole units of 2^-20, to which residuals and moments are truncated toward zero.
    Values of leaves and all later residuals are computed from what was released, and the releases compose adaptively.

    Where `choice` is None, rules are drawn at random without the rows, at no cost.
    """

    trees: int
    depth: int
    outputs: int
    most_leaves: int
    noise: GridGaussian
    choice: Exponential | None
    neighbors: Neighbors
    roots: int = 0  # trees without rules, before the others

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        trees: int,
        depth: int,
        outputs: int,
        most_leaves: int,
        neighbors: Neighbors,
        share: Fraction = Fraction(1, 2),
        roots: int = 0,
    ) -> Self:
        """The releases for (epsilon, delta), with noise calibrated to it; `share` goes to the rules, if any.

        All of it is rho-zCDP for the largest rho that is (epsilon, delta)-DP: equal parts go to the trees, and of a
        tree's part equal parts to its levels.
        """
        if delta <= 0:
            raise ParameterError("delta", "Gaussian noise needs a delta above 0", fix="delta=1e-9, say")
        coordinates = most_leaves * (outputs + 1)
        releases = trees + roots
        room = delta - releases * coordinates * approximation_delta_of(Fraction(2**GRID_BITS))
        if room <= 0:
            raise ParameterError("delta", f"is too small, got {float(delta):.3g}", fix="choose a delta of 1e-12, say")
        rho = find_rho(epsilon, room)
        for_rules = share if depth else Fraction(0)
        sensitivity = l2_sensitivity(neighbors)
        sigma = sqrt_upper_bound(releases / (2 * rho * (1 - for_rules))) * sensitivity
        noise = GridGaussian.of(sigma, sensitivity, coordinates)
        choice = None
        if for_rules:
            each = rho * for_rules / (trees * depth)
            most = _UNIT * _most_residual(outputs) * (1 if neighbors is Neighbors.ADD_REMOVE else 2)
            choice = Exponential(1 / sqrt_upper_bound(1 / (8 * each)), most)
        return cls(trees, depth, outputs, most_leaves, noise, choice, neighbors, roots)

    @property
    def most_residual(self) -> int:
        """The most that the residuals of a row are in L1: one, or two where there are several outputs."""
        return _most_residual(self.outputs)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        parts: list[Loss] = [Repeat(ContinuousGaussianNoise(self.noise.relative), self.trees + self.roots)]
        if self.choice is not None:
            parts.append(Repeat(self.choice.loss(), self.trees * self.depth))
        return Compose((*parts, ApproximateDp(Fraction(0), (self.trees + self.roots) * self.noise.stray)))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a sum of moments."""
        return float(self.noise.sigma)

    def choose_splits(
        self, bins: ColumnBins, places: Array, residuals: Array, bits: Bits, columns: int | None = None
    ) -> tuple[tuple[TreeSplit, ...], Array]:
        """The rules of a tree, and the leaf of each row. `residuals` are real; what is beyond their bound is cut.

        Where `columns` is given, each level is split by one of so many columns, which are drawn without the rows.
        """
        whole = quantize_residuals(residuals, self.most_residual)
        splits: list[TreeSplit] = []
        leaves, count = np.zeros(len(places), dtype=np.int64), 1
        for level in range(self.depth):
            later = 2 ** (self.depth - level - 1)  # leave room for the levels below
            candidates = list_candidates(bins, count, self.most_leaves // later)
            if columns is not None:
                drawn = _draw_columns({split.column for split in candidates}, columns, bits)
                candidates = [split for split in candidates if split.column in drawn]
            if self.choice is None:
                split = candidates[draw_below(len(candidates), bits)]
            else:
                scores = score_candidates(bins, candidates, places, leaves, count, whole)
                split = candidates[choose(scores, self.choice.factor, bits)]
            splits.append(split)
            leaves, count = leaves * split.ways + split.route(places), count * split.ways
        return tuple(splits), leaves

    def release_leaves(self, leaves: Array, count: int, moments: Array, bits: Bits) -> Array:
        """The sums of moments over each of `count` leaves, with noise; moments beyond one in L2 are shortened."""
        assert count <= self.most_leaves
        assert moments.shape[1] == self.outputs + 1
        exact = sum_leaves(leaves, count, quantize(moments, 1.0))
        return self.noise.release_whole(exact, ROW_BITS, bits)


def _draw_columns(columns: set[int], count: int, bits: Bits) -> set[int]:
    """So many of the columns, at random."""
    known = sorted(columns)
    return {known[place] for place in draw_order(len(known), bits)[:count]}


def quantize_residuals(residuals: Array, most: int) -> Array:
    """Residuals as whole units of 2^-20, truncated toward zero, of at most `most` in L1 for each row, exactly.

    Rows that rounding or a caller has made longer are shortened. What is not finite is 0.
    """
    found = quantize(residuals, float(most)) * most
    limit = float(most * _UNIT)
    while True:
        sizes = np.abs(found).sum(axis=1)
        long = sizes > limit
        if not long.any():
            return np.asarray(found)
        found[long] = np.trunc(found[long] * (limit * (1 - 2.0**-18) / sizes[long])[:, None])


@lru_cache(maxsize=256)
def find_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """About the largest rho such that rho-zCDP is (epsilon, delta)-DP, and no more than that."""
    low, high = Fraction(0), epsilon
    start = epsilon / 2**8
    while start > 0 and not _is_within(start, epsilon, delta):
        start /= 2**8
        if start < epsilon / 2**400:
            raise ParameterError("epsilon", "is too small for this delta", fix="choose a larger epsilon")
    low = start
    for _ in range(_SEARCH):
        middle = (low + high) / 2
        middle = Fraction(math.floor(middle * 2**200), 2**200) or middle
        low, high = (middle, high) if _is_within(middle, epsilon, delta) else (low, middle)
    return low


def _is_within(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    return Fraction(epsilon_delta.epsilon(ConcentratedDp(rho), delta, by="zcdp")) <= epsilon


def _most_residual(outputs: int) -> int:
    return 1 if outputs == 1 else 2
