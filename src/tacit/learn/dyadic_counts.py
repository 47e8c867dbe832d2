"""How many rows are below each point of a column: counts of halves, quarters and so on of its bounds, with noise.

>>> from tacit.sampling.bits import ReplayBits
>>> plan = DyadicCounts.calibrate(Fraction(100), Fraction(1, 10**6), columns=1, neighbors=Neighbors.ADD_REMOVE)
>>> shares = plan.release(np.linspace(-1, 1, 1001)[:, None], ReplayBits(b"example"))
>>> shares.shape, shares[0, [256, 512]].round(2).tolist()
((1, 1025), [0.25, 0.5])
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.learn.losses import Array
from tacit.learn.noise import GridGaussian, sqrt_upper_bound
from tacit.learn.sums import on_grid
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

LEVELS = 10  # of halves: the smallest parts are 1/1024 of the bounds
LEAVES = 2**LEVELS
_NODES = 2 * LEAVES - 2  # parts of all levels


@dataclass(frozen=True)
class DyadicCounts:
    """Releases how many rows are in each half, quarter, ... of each column's bounds, with noise.

    **Theorem.** The release loses at most `privacy_loss`. **Proof.** Which parts a value is in depends on the value and
    on what is declared: on each of the `LEVELS` levels it is in one. So a row that is added or removed changes
    LEVELS columns counts by one each: by that in L1, and by its root in L2. A row that is replaced leaves as many
    parts as it enters: twice that in L1, and the root of twice that in L2. Counts have discrete Gaussian noise for
    that, or Laplace noise for a delta of 0. All else is post-processing.

    The number of rows below a point is a sum of `LEVELS` counts at most, where 1,024 bins of their own would have noise
    from all bins below.
    """

    noise: GridGaussian | Laplace
    columns: int
    neighbors: Neighbors

    @classmethod
    def calibrate(cls, epsilon: Fraction, delta: Fraction, *, columns: int, neighbors: Neighbors) -> Self:
        """The release for (epsilon, delta), with noise calibrated to it."""
        changes = _changes(columns, neighbors)
        noise = (
            GridGaussian.calibrated(epsilon, delta, sqrt_upper_bound(Fraction(changes)), columns * _NODES)
            if delta
            else Laplace.calibrated(epsilon, changes)
        )
        return cls(noise, columns, neighbors)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the release."""
        if isinstance(self.noise, GridGaussian):
            return self.noise.loss
        return self.noise.loss(_changes(self.columns, self.neighbors))

    def release(self, values: Array, bits: Bits) -> Array:
        """For each column the share of rows below each of the 1,025 ends of its smallest parts, never falling.

        `values` are the columns, scaled from their bounds to [-1, 1].
        """
        exact = self.counts(values)
        if isinstance(self.noise, GridGaussian):
            noisy = self.noise.release_whole(exact, 0, bits)
        else:
            noisy = np.array(self.noise.release([int(count) for count in exact.ravel()], bits), dtype=np.float64)
        rows = len(values) if self.neighbors is Neighbors.REPLACE else None
        return estimate_shares(noisy.reshape(exact.shape), rows)

    def counts(self, values: Array) -> Array:
        """The counts without noise, (columns, parts): of both halves, then of the quarters, and so on."""
        places = np.minimum(on_grid((values + 1) / 2, LEAVES, LEAVES).astype(np.int64), LEAVES - 1)
        found = np.empty((self.columns, _NODES), dtype=np.int64)
        for column in range(self.columns):
            leaves = np.bincount(np.maximum(places[:, column], 0), minlength=LEAVES)
            levels = [leaves.reshape(2**level, -1).sum(axis=1) for level in range(1, LEVELS + 1)]
            found[column] = np.concatenate(levels)
        return found


def estimate_shares(noisy: Array, rows: int | None) -> Array:
    """The shares below each end, from noisy counts of all levels; `rows` is their number where it is public.

    Counts of a part and of its halves are two measurements of one number: the least squares of all levels together are
    computed from the smallest parts up, and from the largest down (Hay et al., 2010). What is below each end then never
    falls, by isotonic regression, and is from 0 to 1.
    """
    from sklearn.isotonic import isotonic_regression

    levels = np.split(noisy, np.cumsum([2**level for level in range(1, LEVELS)]), axis=1)
    best = [levels[-1]]
    for height, level in enumerate(reversed(levels[:-1]), start=2):
        own = (2**height - 2 ** (height - 1)) / (2**height - 1)
        best.append(own * level + (1 - own) * _add_pairs(best[-1]))
    total = np.sum(best[-1], axis=1, keepdims=True) if rows is None else np.full((len(noisy), 1), float(rows))
    fitted = total
    for level in reversed(best):
        missing = (fitted - _add_pairs(level)) / 2
        fitted = level + np.repeat(missing, 2, axis=1)
    below = np.concatenate([np.zeros((len(noisy), 1)), np.cumsum(fitted, axis=1)], axis=1)
    count = np.maximum(total, 1.0)
    rising = [
        isotonic_regression(row, y_min=0.0, y_max=float(most)) for row, most in zip(below, count[:, 0], strict=True)
    ]
    found: Array = np.array(rising) / count
    found[:, 0], found[:, -1] = 0.0, 1.0
    return found


def _add_pairs(level: Array) -> Array:
    """The sums of neighboring pairs: of the halves of each part."""
    return np.asarray(level[:, ::2] + level[:, 1::2])


def _changes(columns: int, neighbors: Neighbors) -> int:
    """How many counts a neighbor changes by one."""
    return LEVELS * columns * (1 if neighbors is Neighbors.ADD_REMOVE else 2)
