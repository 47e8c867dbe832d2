"""Learning by noisy gradients in the right metric: the second moments of the rows are released once.

>>> from tacit.learn.losses import LogisticLoss
>>> facts = dict(loss=LogisticLoss(), norm=1.0, features=100, rows=20_000, neighbors=Neighbors.ADD_REMOVE)
>>> plan = NoisyNewton.calibrate(LearningTask(Fraction(1), Fraction(1, 10**9), **facts))
>>> plan.steps, round(plan.penalty, 3), round(plan.cut, 3)
(40, 2.175, 0.633)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.arithmetic import to_integer, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.gradient import (
    NoisyGradients,
    check_clip,
    default_clip,
    default_gradient_penalty,
    l2_sensitivity,
    single_release_sigma,
)
from tacit.learn.losses import Array
from tacit.learn.method import LearningTask
from tacit.learn.noise import GRID_BITS, GridGaussian, sqrt_upper_bound, unit_sigma
from tacit.learn.problem import RiskMinimization, check_penalty
from tacit.learn.sums import EXPONENT, QuantizedRows, round_weights
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise, Loss, Repeat
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

# chosen on synthetic data: benchmarks/rules.md
_SHARE = Fraction(1, 48)  # of the budget, for the second moments
_STEPS = 40
_SKIPPED = Fraction(1, 2)  # of the steps: what they pass is not in the mean
_FLOOR = 1.0  # the least eigenvalue that is believed, in units of the largest that noise alone has

_HALF = Fraction(99, 140)  # just above the root of 1/2
_ROOT = Fraction(99, 70)  # just above the root of 2


@dataclass(frozen=True)
class NoisySecondMoments:
    """The second moments X^T X in units of norm^2, with noise of `sigma` on the diagonal and sigma/sqrt 2 beside it.

    **Theorem.** The release loses at most `loss`. **Proof.** One row adds x x^T of Frobenius norm at most one; a
    replacement adds x x^T - y y^T, whose square is |x|^4 + |y|^4 - 2 (x.y)^2 <= 2. In units of the noise of each entry
    the upper triangle moves by the Frobenius norm over sigma, as entries beside the diagonal count twice there. The
    entries are rounded to grids as in `GridGaussian`: each moves by at most 2^-32 of its deviation more, all of them by
    less than 2 (features + 1) steps of the diagonal's grid.
    """

    sigma: Fraction
    features: int
    neighbors: Neighbors

    @classmethod
    def of(cls, relative: Fraction, features: int, neighbors: Neighbors) -> Self:
        """Noise whose loss is at most that of real noise of `relative` times the sensitivity."""
        part = relative * 2 * (features + 1) / 2**GRID_BITS
        if part >= Fraction(1, 2):
            raise ParameterError("epsilon", "is too small for the grid of the noise", fix="choose a larger epsilon")
        moved = Fraction(1) if neighbors is Neighbors.ADD_REMOVE else _ROOT
        sigma = relative * moved / (1 - part)
        return cls(Fraction(math.ceil(sigma * 2**60), 2**60), features, neighbors)

    @property
    def relative(self) -> Fraction:
        """Sigma in units of what a neighbor may move the entries by."""
        moved = Fraction(1) if self.neighbors is Neighbors.ADD_REMOVE else _ROOT
        return self.sigma / (moved + 2 * (self.features + 1) * self._diagonal.step)

    @property
    def stray(self) -> Fraction:
        """The probability with which the noise is not a rounded Gaussian."""
        return self._diagonal.stray + (self._beside.stray if self.features > 1 else 0)

    @property
    def loss(self) -> Loss:
        """What a release costs."""
        return Compose((ContinuousGaussianNoise(self.relative), ApproximateDp(Fraction(0), self.stray)))

    @property
    def edge(self) -> float:
        """About the largest eigenvalue that noise alone has, sigma sqrt(2 features), by the semicircle distribution."""
        return float(self.sigma) * math.sqrt(2 * self.features)

    def check(self, problem: RiskMinimization) -> None:
        """Refuse a problem that this was not planned for."""
        if problem.neighbors is not self.neighbors or problem.features.shape[1] != self.features:
            raise ParameterError(
                "problem", "has other neighbors or another shape than planned", fix="plan for this problem"
            )

    def release(self, rows: QuantizedRows, bits: Bits) -> Array:
        """The symmetric matrix, in units of norm^2."""
        exact = rows.gram()
        found: Array = np.zeros(exact.shape)
        upper = np.triu_indices(self.features, 1)
        found[upper] = self._beside.release_whole(exact[upper], EXPONENT, bits) if self.features > 1 else 0.0
        found += found.T
        found[np.diag_indices(self.features)] = self._diagonal.release_whole(np.diagonal(exact), EXPONENT, bits)
        return found

    @property
    def _diagonal(self) -> GridGaussian:
        return GridGaussian(self.sigma, Fraction(1), self.features)

    @property
    def _beside(self) -> GridGaussian:
        return GridGaussian(self.sigma * _HALF, Fraction(1), max(1, self.features * (self.features - 1) // 2))


@dataclass(frozen=True)
class NoisyNewton:
    """Minimizes J by a few noisy gradients, each preconditioned by (bend S + penalty)^-1, S the released X^T X.

    The curvature of J is at most that, so a step with exact sums never overshoots, and directions that many rows agree
    on are learned in a few steps. What is returned is the mean of the later weights.

    **Theorem.** The fit loses at most `privacy_loss`. **Proof.** `NoisySecondMoments` for S and
    `NoisyGradientDescent`'s proof for each step; the eigenvalues' floor and the solves are post-processing.
    """

    second: NoisySecondMoments
    noise: GridGaussian
    steps: int
    cut: float
    penalty: float
    neighbors: Neighbors

    @classmethod
    def calibrate(
        cls, task: LearningTask, *, steps: int | None = None, cut: float | None = None, share: Fraction | None = None
    ) -> Self:
        """The method for (epsilon, delta), with noise calibrated to it.

        n releases of real noise of deviations s_i are one of deviation (sum s_i^-2)^-1/2, so `share` of the inverse
        variance goes to the second moments, and equal parts of the rest to the steps.
        """
        unit = single_release_sigma(task.epsilon, task.delta, task.neighbors)
        most = default_clip(task.loss, unit, task.features, task.rows) if cut is None else check_clip(cut, task.loss)
        weight = (
            default_gradient_penalty(task.loss, most, unit, task.norm, task.features)
            if task.penalty is None
            else task.penalty
        )
        check_penalty(task.loss, task.norm, weight)
        times = to_integer("steps", _STEPS if steps is None else steps, least=1)
        part = to_rational_between("share", _SHARE if share is None else share, Fraction(1, 1000), Fraction(999, 1000))
        coordinates = task.features * task.loss.outputs
        releases = times * coordinates + task.features * (task.features + 1) // 2
        whole = unit_sigma(task.epsilon, task.delta, releases)
        second = NoisySecondMoments.of(whole * sqrt_upper_bound(1 / part), task.features, task.neighbors)
        sensitivity = l2_sensitivity(task.neighbors)
        noise = GridGaussian.of(whole * sqrt_upper_bound(times / (1 - part)) * sensitivity, sensitivity, coordinates)
        return cls(second, noise, times, most, weight, task.neighbors)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        steps = Repeat(ContinuousGaussianNoise(self.noise.relative), self.steps)
        lost = self.second.stray + self.steps * self.noise.stray
        return Compose((ContinuousGaussianNoise(self.second.relative), steps, ApproximateDp(Fraction(0), lost)))

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights."""
        pulls = NoisyGradients.of(problem, self.cut, self.noise, self.neighbors)
        self.second.check(problem)
        values, vectors = np.linalg.eigh(self.second.release(pulls.rows, bits))
        believed = np.maximum(values, _FLOOR * self.second.edge)
        bends = problem.loss.bend * problem.norm**2 * believed + problem.penalty
        metric = (vectors / bends) @ vectors.T
        weights = total = np.zeros(problem.shape)
        skipped = math.floor(self.steps * _SKIPPED)
        for step in range(self.steps):
            pull = pulls.noisy(weights, bits)
            weights = round_weights(weights - metric @ (pull + problem.penalty * weights))
            if step >= skipped:
                total = total + weights
        return np.asarray(total / (self.steps - skipped))
