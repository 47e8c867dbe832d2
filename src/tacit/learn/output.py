"""Output perturbation: the minimizer, with noise.

>>> from tacit.learn.losses import LogisticLoss
>>> facts = {"loss": LogisticLoss(), "norm": 1.0, "features": 3, "rows": 1000, "neighbors": Neighbors.ADD_REMOVE}
>>> task = LearningTask(Fraction(1), Fraction(1, 10**6), **facts, penalty=10.0)
>>> plan = OutputPerturbation.calibrate(task, cut=1.0)
>>> round(float(plan.noise.sensitivity), 6), round(plan.deviation, 4)
(0.1, 0.4225)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.arithmetic import to_integer, to_rational
from tacit.learn.gradient import check_clip, default_clip, l2_sensitivity, single_release_sigma
from tacit.learn.losses import Array, ConvexLoss, LogisticLoss
from tacit.learn.method import LearningTask
from tacit.learn.minimize import check_solvable, gradient_tolerance, least_penalty, minimize
from tacit.learn.noise import GridGaussian
from tacit.learn.problem import RiskMinimization, check_positive, with_loss
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.validation import check_epsilon
from tacit.privacy.loss import LaplaceNoise, Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

_STEPS = 30  # a Laplace scale is about 2^30 steps of its grid
_SCORES = 0.5  # the scores that a penalty is for, in units of a decisive one; from benchmarks/rules.md


@dataclass(frozen=True)
class GridLaplace:
    """Laplace noise on a fine grid, for `coordinates` numbers that together move by at most `sensitivity` in L2.

    **Theorem.** The release is epsilon-DP. Proof: in L1 they move by at most sqrt(coordinates) times that, and once
    rounded to the grid by at most a step more each; `Laplace` gives the privacy loss on integers.
    """

    epsilon: Fraction
    sensitivity: Fraction
    coordinates: int

    @property
    def exponent(self) -> int:
        """The e for which the grid's step is 2^-e."""
        scale = math.sqrt(self.coordinates) * float(self.sensitivity / self.epsilon)
        return _STEPS - math.floor(math.log2(scale))

    @property
    def move(self) -> int:
        """How far the numbers move in L1, in steps."""
        root = Fraction(math.isqrt(self.coordinates << 80) + 1, 2**40)
        return math.floor(root * self.sensitivity * Fraction(2) ** self.exponent) + self.coordinates

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a number."""
        return math.sqrt(2) * float(self.move / self.epsilon * Fraction(2) ** -self.exponent)

    @property
    def loss(self) -> LaplaceNoise:
        """What a release costs."""
        return Laplace.calibrated(self.epsilon, self.move).loss(self.move)

    def release(self, values: Array, bits: Bits) -> Array:
        """The values, rounded to the grid, with noise."""
        whole = [int(value) for value in np.rint(np.ldexp(np.nan_to_num(values), self.exponent)).ravel()]
        noisy = Laplace.calibrated(self.epsilon, self.move).release(whole, bits)
        step = Fraction(2) ** -self.exponent
        return np.array([float(value * step) for value in noisy]).reshape(values.shape)


@dataclass(frozen=True)
class OutputPerturbation:
    """Releases a minimizer of J with noise on each weight.

    **Theorem.** With L the slope and R the norm, a row more or less moves the minimizer by at most L R/penalty in L2; a
    row replaced, by twice that. Proof: J is penalty-strongly convex, and at the minimizer of one side the gradient of
    the other is that of the row alone. The solver's w is within tau/penalty of the minimizer on either side, whatever
    the rows hold (`minimize.minimize`; settings for which it does not promise that are refused), if there are at most
    `minimize.most_rows(rows)` of them on both sides: beyond, the theorem says nothing. So what is released moves by at
    most (L R + 2 tau)/penalty. `GridGaussian`, or `GridLaplace` for a delta of 0, gives the privacy loss. L
    is the cut, where the logistic loss is cut.
    """

    noise: GridGaussian | GridLaplace
    loss: ConvexLoss
    norm: float
    rows: int
    neighbors: Neighbors
    penalty: float
    cut: float

    @classmethod
    def calibrate(cls, task: LearningTask, *, cut: float | None = None) -> Self:
        """The method for (epsilon, delta); the rest follows `default_output_penalty` and `gradient.default_clip`."""
        coordinates = to_integer("features", task.features, least=1) * task.loss.outputs
        check_epsilon(task.epsilon)
        if to_rational("delta", task.delta):
            unit = single_release_sigma(task.epsilon, task.delta, task.neighbors)
        else:
            unit = math.sqrt(2 * coordinates) / float(task.epsilon) * float(l2_sensitivity(task.neighbors))
        most = default_clip(task.loss, unit, task.features, task.rows) if cut is None else check_clip(cut, task.loss)
        learned = clip_loss(task.loss, most)
        rule = default_output_penalty(task.loss, most, unit, task.norm, task.rows)
        weight = max(rule, least_penalty(learned, task.norm)) if task.penalty is None else task.penalty
        check_positive("penalty", weight)
        check_solvable(learned, task.norm, task.features, weight)
        move = l2_sensitivity(task.neighbors) * Fraction(learned.slope) * Fraction(task.norm)
        sensitivity = (move + 2 * Fraction(gradient_tolerance(learned, task.norm, task.rows))) / Fraction(weight)
        noise: GridGaussian | GridLaplace
        if task.delta:
            noise = GridGaussian.calibrated(task.epsilon, task.delta, sensitivity, coordinates)
        else:
            noise = GridLaplace(task.epsilon, sensitivity, coordinates)
        return cls(noise, task.loss, task.norm, task.rows, task.neighbors, weight, most)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a weight."""
        return self.noise.deviation if isinstance(self.noise, GridLaplace) else float(self.noise.sigma)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        return self.noise.loss

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights, with noise."""
        learned = clip_loss(self.loss, self.cut)
        known = with_loss(problem, (self.loss, self.norm, self.neighbors, self.penalty), learned)
        found = minimize(known, np.zeros(problem.shape), gradient_tolerance(learned, self.norm, self.rows))
        return self.noise.release(found, bits)


def clip_loss(loss: ConvexLoss, cut: float) -> ConvexLoss:
    """The loss with residuals of at most the cut, which only the logistic one can have below its slope."""
    return replace(loss, cut=cut) if isinstance(loss, LogisticLoss) else loss


def default_output_penalty(loss: ConvexLoss, cut: float, unit: float, norm: float, rows: int) -> float:
    """The penalty at which noise and bias cost alike: norm^2 (2 rows bend (cut unit)^2/b^2)^(1/3).

    Noise of deviation s = cut norm unit/penalty on a weight costs about s^2/2 times the trace of the Hessian, at most
    rows bend norm^2; the penalty costs (penalty/2) |w|^2, for weights of about b/norm: scores of b, `_SCORES`
    times `decisive_score`. The sum is least where the derivative by the penalty is zero.
    """
    scores = _SCORES * decisive_score(loss)
    return float(norm**2 * (2 * rows * loss.bend * (cut * unit / scores) ** 2) ** (1 / 3))


def decisive_score(loss: ConvexLoss) -> float:
    """A score that says much: slope/bend, the width on which the loss bends; of classes, whose scores have no unit, at
    least the logistic loss's, 4."""
    width = loss.slope / loss.bend
    return max(width, 4.0) if loss.one_sided else width
