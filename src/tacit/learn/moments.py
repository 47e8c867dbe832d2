"""Least squares from noisy sums of products: X^T X and X^T y are released once, and the rest is a solve.

>>> from tacit.learn.losses import HuberLoss
>>> facts = dict(loss=HuberLoss(1.0), norm=1.0, features=10, rows=20_000, neighbors=Neighbors.ADD_REMOVE)
>>> plan = SufficientStatistics.calibrate(LearningTask(Fraction(1), Fraction(1, 10**9), **facts))
>>> [round(float(sigma), 2) for sigma in (plan.second.sigma, plan.noise.sigma)]
[7.77, 7.77]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.arithmetic import to_rational_between
from tacit.errors import ParameterError
from tacit.learn.gradient import default_gradient_penalty, l2_sensitivity, single_release_sigma
from tacit.learn.losses import Array, HuberLoss
from tacit.learn.method import LearningTask
from tacit.learn.moment_shrinkage import estimate_weights
from tacit.learn.newton import NoisySecondMoments
from tacit.learn.noise import GridGaussian, sqrt_upper_bound, unit_sigma
from tacit.learn.problem import RiskMinimization, check_penalty
from tacit.learn.sums import EXPONENT, QuantizedRows
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise, Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

# chosen on synthetic data: benchmarks/rules.md
_SHARE = Fraction(1, 2)  # of the budget, for X^T X
_FLOOR = 0.75  # the least eigenvalue that is believed, in units of the largest that noise alone has


@dataclass(frozen=True)
class SufficientStatistics:
    """Ridge regression: solves (X^T X + penalty) w = X^T y for the two sums with noise.

    **Theorem.** The fit loses at most `privacy_loss`. **Proof.** `NoisySecondMoments` for X^T X. Targets are cut to
    their bound B and truncated to a grid, so in units of norm B one row adds at most one to X^T y, in L2; a replacement
    is two such. The solve is post-processing.

    Eigenvalues of X^T X below `_FLOOR` times the largest that noise alone has are raised to that: the solve does not
    divide by noise. (Raising all of them by one number, as is usual, takes more from the directions that are known.)
    """

    second: NoisySecondMoments
    noise: GridGaussian
    bound: float
    penalty: float
    neighbors: Neighbors

    @classmethod
    def calibrate(cls, task: LearningTask, *, share: Fraction | None = None) -> Self:
        """The method for (epsilon, delta), with noise calibrated to it; `share` goes to X^T X."""
        if not isinstance(task.loss, HuberLoss):
            raise ParameterError("loss", "only the squared loss has sums that suffice", fix="use Newton")
        unit = single_release_sigma(task.epsilon, task.delta, task.neighbors)
        weight = (
            default_gradient_penalty(task.loss, task.loss.slope, unit, task.norm, task.features)
            if task.penalty is None
            else task.penalty
        )
        check_penalty(task.loss, task.norm, weight)
        part = to_rational_between("share", _SHARE if share is None else share, Fraction(1, 1000), Fraction(999, 1000))
        whole = unit_sigma(task.epsilon, task.delta, task.features * (task.features + 3) // 2)
        second = NoisySecondMoments.of(whole * sqrt_upper_bound(1 / part), task.features, task.neighbors)
        sensitivity = l2_sensitivity(task.neighbors)
        noise = GridGaussian.of(whole * sqrt_upper_bound(1 / (1 - part)) * sensitivity, sensitivity, task.features)
        return cls(second, noise, task.loss.target_bound, weight, task.neighbors)

    @property
    def cut(self) -> float:
        """Residuals are not clipped."""
        return math.inf

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        both = ContinuousGaussianNoise(self.second.relative), ContinuousGaussianNoise(self.noise.relative)
        return Compose((*both, ApproximateDp(Fraction(0), self.second.stray + self.noise.stray)))

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights."""
        second, pull = self._release(problem, bits)
        values, vectors = np.linalg.eigh(second)
        raised = np.maximum(values, _FLOOR * self.second.edge) + self.penalty / problem.norm**2
        return np.asarray(vectors @ ((vectors.T @ pull) / raised) * (self.bound / problem.norm))

    def fit_tuned(self, problem: RiskMinimization, bits: Bits, constant: float = 0.0) -> Array:
        """The weights with each direction shrunk by what the released sums say of it: `estimate_weights`.

        The last column of the rows is `constant`, unless that is 0. The penalty is not used.
        """
        second, pull = self._release(problem, bits)
        sigmas = float(self.second.sigma), float(self.noise.sigma)
        found = estimate_weights(second, pull, sigmas, rows=problem.rows, constant=constant / problem.norm)
        return np.asarray(found * (self.bound / problem.norm))

    def _release(self, problem: RiskMinimization, bits: Bits) -> tuple[Array, Array]:
        """X^T X with noise, and X^T y with noise, in units of norm and bound."""
        self.second.check(problem)
        rows = QuantizedRows.of(problem.features, problem.norm)
        second = self.second.release(rows, bits)
        return second, self.noise.release_whole(rows.pull(problem.labels, self.bound), EXPONENT, bits)
