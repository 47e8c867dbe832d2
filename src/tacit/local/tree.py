"""Shares on a tree over an ordered domain, made consistent by least squares: a node is the sum of its children.

>>> tree = Tree(size=4, fanout=2)
>>> tree.sizes
(2, 4)
>>> fitted = tree.fit([np.array([0.6, 0.4]), np.array([0.5, 0.3, 0.1, 0.1])], variances=[1.0, 1.0])
>>> [round(share, 4) for share in fitted.tolist()]  # the left half is 2/3 0.6 + 1/3 (0.5 + 0.3)
[0.4333, 0.2333, 0.1667, 0.1667]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_BLOCK = 2**16  # values at a time


@dataclass(frozen=True)
class Tree:
    """The values 0 to size - 1 are leaves; a node stands for `fanout` neighbors of the level below, the last for fewer.

    **Theorem.** Let each level be measured with independent errors of one variance, and the total be one. `fit` is the
    least-squares estimate of the leaves under the constraint that nodes are the sums of their children: the best linear
    unbiased one. Proof: from the leaves up, the best estimate z of a node from its own subtree weighs its own
    measurement and the sum of its children's z by their precision. From the root down, what a node's value differs from
    that sum is shared among the children in proportion to their variances: the conditional mean of independent normals
    given their sum, and least squares is that of normals. It is linear, and exact on consistent shares, so it stays
    unbiased whatever the variances really are.
    """

    size: int
    fanout: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, the leaves last; the root is not among them."""
        found = [self.size]
        while found[-1] > self.fanout:
            found.append(-(-found[-1] // self.fanout))
        return tuple(reversed(found))

    def ancestors(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return a row for each value: its node on each level."""
        levels = len(self.sizes)
        return np.stack([values // self.fanout ** (levels - 1 - level) for level in range(levels)], axis=1)

    def fit(self, shares: Sequence[Floats], variances: Sequence[float]) -> Floats:
        """Return the least-squares estimate of the leaves, from the measured shares of all levels."""
        weights, parts = self._weights(variances)
        best = [np.asarray(level, dtype=np.float64) for level in shares]
        for level in range(len(best) - 2, -1, -1):
            best[level] = weights[level] * best[level] + (1 - weights[level]) * self._sums(best[level + 1])
        above = np.ones(1)
        for level, found in enumerate(best):
            gap = above - (self._sums(found) if level else found.sum())
            above = found + parts[level] * self._spread(gap, level)
        return above

    def coefficients(self, wanted: Floats, variances: Sequence[float]) -> list[Floats]:
        """Return how a weighted sum of the leaves depends on each measured share: the transpose of `fit`."""
        weights, parts = self._weights(variances)
        found, carried = [], np.asarray(wanted, dtype=np.float64)
        for level in range(len(self.sizes) - 1, -1, -1):
            up = self._sums(carried * parts[level]) if level else np.array([(carried * parts[level]).sum()])
            found.append(carried - self._spread(up, level))
            carried = up
        found.reverse()
        for level in range(len(found) - 1):
            found[level + 1] = found[level + 1] + self._spread((1 - weights[level]) * found[level], level + 1)
            found[level] = weights[level] * found[level]
        return found

    def prefix_variances(self, costs: Sequence[Floats], variances: Sequence[float]) -> Floats:
        """Return for each value v the sum of cost c^2 over all nodes, c the `coefficients` of the leaves up to v.

        **Theorem.** It takes fanout steps a level for each v. Proof: only the nodes above v, and their siblings, have a
        coefficient other than the one inherited from their parents. Below a sibling with the coefficient c every node
        inherits a fixed share of c, so its subtree adds c^2 times a number of its own.
        """
        weights, parts = self._weights(variances)
        below = [weight**2 * cost for weight, cost in zip(weights, costs, strict=True)]
        whole = list(below)
        for level in range(len(whole) - 2, -1, -1):
            whole[level] = below[level] + (1 - weights[level]) ** 2 * self._sums(whole[level + 1])
        earlier = [self._earlier(each) for each in whole]
        later = [self._earlier(each, backward=True) for each in whole]
        lead = [self._earlier(each) for each in parts]
        found = np.zeros(self.size)
        for start in range(0, self.size, _BLOCK):
            path = self.ancestors(np.arange(start, min(start + _BLOCK, self.size))).T
            sums_above = [np.ones(path.shape[1])]  # of the nodes above v, the leaf first; then the root's
            for level in range(len(path) - 1, -1, -1):
                sums_above.append(lead[level][path[level]] + parts[level][path[level]] * sums_above[-1])
            sums_above.reverse()
            inherited, total = np.zeros(path.shape[1]), np.zeros(path.shape[1])
            for level, nodes in enumerate(path):
                base = inherited - sums_above[level]
                own = sums_above[level + 1] + base
                total += (1 + base) ** 2 * earlier[level][nodes] + base**2 * later[level][nodes]
                total += own**2 * below[level][nodes]
                inherited = (1 - weights[level][nodes]) * own
            found[start : start + _BLOCK] = total
        return found

    def _weights(self, variances: Sequence[float]) -> tuple[list[Floats], list[Floats]]:
        """Return for each level the weight of a node's own measurement, and its part of a gap among its siblings."""
        spreads = [np.full(size, float(variance)) for size, variance in zip(self.sizes, variances, strict=True)]
        weights = [np.ones(size) for size in self.sizes]
        for level in range(len(spreads) - 2, -1, -1):
            below = self._sums(spreads[level + 1])
            weights[level] = below / (below + spreads[level])
            spreads[level] = spreads[level] * weights[level]
        sums = [self._sums(each) if level else each.sum()[None] for level, each in enumerate(spreads)]
        return weights, [each / self._spread(sums[level], level) for level, each in enumerate(spreads)]

    def _sums(self, level: Floats) -> Floats:
        return np.add.reduceat(level, np.arange(0, len(level), self.fanout))

    def _spread(self, parents: Floats, level: int) -> Floats:
        """Return each parent's number, for all of its children on this level."""
        size = self.sizes[level]
        return np.repeat(parents, self.fanout)[:size] if level else np.full(size, parents[0])

    def _earlier(self, level: Floats, backward: bool = False) -> Floats:
        """Return for each node the sum over the siblings before it; those after it with `backward`."""
        padded = np.zeros(-(-len(level) // self.fanout) * self.fanout)
        padded[: len(level)] = level
        groups = padded.reshape(-1, self.fanout)
        turned = groups[:, ::-1] if backward else groups
        sums = np.cumsum(turned, axis=1) - turned
        return np.asarray((sums[:, ::-1] if backward else sums).reshape(-1)[: len(level)])
