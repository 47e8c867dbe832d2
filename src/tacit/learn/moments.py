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

_GRID = 2.0 ** np.arange(17)  # of penalties, in units of the least one


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
        return self._solve(*self._release(problem, bits), self.penalty / problem.norm**2, problem)

    def fit_tuned(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights for a penalty of at least `penalty`, chosen by the released sums: `choose_penalty`."""
        values, vectors, pull = self._release(problem, bits)
        least = self.penalty / problem.norm**2
        chosen = choose_penalty(self._raise(values), vectors.T @ pull, float(self.noise.sigma), least)
        return self._solve(values, vectors, pull, chosen, problem)

    def _release(self, problem: RiskMinimization, bits: Bits) -> tuple[Array, Array, Array]:
        """The eigenvalues and eigenvectors of X^T X with noise, and X^T y with noise, in units of norm and bound."""
        self.second.check(problem)
        rows = QuantizedRows.of(problem.features, problem.norm)
        values, vectors = np.linalg.eigh(self.second.release(rows, bits))
        return values, vectors, self.noise.release_whole(rows.pull(problem.labels, self.bound), EXPONENT, bits)

    def _raise(self, values: Array) -> Array:
        return np.maximum(values, _FLOOR * self.second.edge)

    def _solve(self, values: Array, vectors: Array, pull: Array, penalty: float, problem: RiskMinimization) -> Array:
        solved = vectors @ ((vectors.T @ pull) / (self._raise(values) + penalty))
        return np.asarray(solved * (self.bound / problem.norm))


def choose_penalty(raised: Array, pulls: Array, sigma: float, least: float) -> float:
    """The penalty of a grid from `least` on whose weights have the least estimated error on the rows.

    In the eigenbasis of the noisy X^T X, w_i = p_i/(raised_i + penalty), p the noisy X^T y. The squared error on the
    rows is w^T A w - 2 w^T b up to a constant, A and b being the sums without noise. The noise of p is independent of
    that of X^T X and has the variance sigma^2, so w^T p - sigma^2 sum_i 1/(raised_i + penalty) is an unbiased estimate
    of w^T b (Stein's). A is taken to be what is divided by, which is no less where noise hides it: so more is taken
    away there. All of it is post-processing.
    """
    found = []
    for penalty in least * _GRID:
        weights = pulls / (raised + penalty)
        risk = weights**2 @ raised - 2 * weights @ pulls + 2 * sigma**2 * np.sum(1 / (raised + penalty))
        found.append((float(risk), float(penalty)))
    return min(found)[1]
