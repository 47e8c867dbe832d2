"""Least squares with any penalty, from the sums of products that `SufficientStatistics` releases.

>>> found = minimize_quadratic(np.diag([2.0, 1.0]), np.array([4.0, 0.5]), np.array([1.0, 1.0]), np.zeros(2))
>>> found.tolist()  # (4 - 1)/2, and 0 as 0.5 is below 1
[1.5, 0.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from tacit.learn.losses import Array
from tacit.learn.method import LearningTask
from tacit.learn.moments import SufficientStatistics
from tacit.learn.problem import RiskMinimization
from tacit.learn.sums import EXPONENT, QuantizedRows
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits

_FLOOR = 0.75  # the least eigenvalue that is believed, in units of the largest that noise alone has: as for ridge
_SWEEPS = 2000  # over all weights
_STILL = 1e-12  # of the largest weight: a sweep that moves none by more is the last


@dataclass(frozen=True)
class PenalizedSums:
    """Minimizes w^T A w/2 - b^T w + l1 |w|_1 + l2 |w|^2/2 for the noisy sums A of X^T X and b of X^T y.

    **Theorem.** The fit loses at most the privacy loss of `sums`, whatever the penalties are. **Proof.** A and b are
    what `SufficientStatistics` releases, and the minimizer is a function of these and of public numbers:
    post-processing. So the penalties cost nothing beside the sums.

    Eigenvalues of A below `_FLOOR` times the largest that noise alone has are raised to that, as for ridge regression.
    So A is positive definite whatever the noise is, there is one minimizer, and without a penalty it is the solution of
    the normal equations in all directions that noise does not hide; in the others it is shortened.

    `constant` is the place of the constant column, which has no penalty.
    """

    sums: SufficientStatistics
    l1: float = 0.0
    l2: float = 0.0
    constant: int | None = None

    @classmethod
    def calibrate(cls, task: LearningTask) -> Self:
        """The method for (epsilon, delta), with noise calibrated to it, and no penalty."""
        return cls(SufficientStatistics.calibrate(task))

    @property
    def penalty(self) -> float:
        """What `sums` was calibrated with; it is not used."""
        return self.sums.penalty

    @property
    def cut(self) -> float:
        """Residuals are not clipped."""
        return math.inf

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        return self.sums.privacy_loss

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights."""
        self.sums.second.check(problem)
        rows = QuantizedRows.of(problem.features, problem.norm)
        values, vectors = np.linalg.eigh(self.sums.second.release(rows, bits))
        pull = self.sums.noise.release_whole(rows.pull(problem.labels, self.sums.bound), EXPONENT, bits)
        raised = np.maximum(values, _FLOOR * self.sums.second.edge)
        scale = self.sums.bound / problem.norm
        if self.l1 == 0 == self.l2:
            return np.asarray(vectors @ ((vectors.T @ pull) / raised) * scale)
        # w = scale v: of what is minimized, in units of bound^2, |w|_1 is |v|_1/(norm bound) and |w|^2 is |v|^2/norm^2
        penalized = np.ones(len(pull))
        if self.constant is not None:
            penalized[self.constant] = 0.0
        first = self.l1 / (problem.norm * self.sums.bound) * penalized
        second = self.l2 / problem.norm**2 * penalized
        return minimize_quadratic((vectors * raised) @ vectors.T, pull, first, second) * scale


def minimize_quadratic(matrix: Array, pull: Array, first: Array, second: Array) -> Array:
    """The minimizer of v^T M v/2 - p^T v + sum_j first_j |v_j| + second_j v_j^2/2, by coordinate descent.

    For a positive definite M the objective has one minimizer, and each step finds the least along one coordinate: it
    never grows, and sweeps converge (Tseng, 2001). It begins at zero, where all weights are if the penalty is large.
    """
    found = np.zeros(len(pull))
    gradient = -np.asarray(pull, dtype=np.float64)
    bends = np.diagonal(matrix) + second
    for _ in range(_SWEEPS):
        moved = 0.0
        for place in range(len(found)):
            before = found[place]
            aim = matrix[place, place] * before - gradient[place]
            after = math.copysign(max(abs(aim) - first[place], 0.0), aim) / bends[place]
            if after != before:
                found[place] = after
                gradient += matrix[place] * (after - before)
                moved = max(moved, abs(after - before))
        if moved <= _STILL * np.max(np.abs(found), initial=0.0):
            break
    return found + 0.0  # no negative zero
