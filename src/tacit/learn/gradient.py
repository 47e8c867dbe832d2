"""Learning by noisy gradients: every step sees a sum over the rows, with noise, and nothing else of the data.

>>> from tacit.learn.losses import LogisticLoss
>>> facts = dict(loss=LogisticLoss(), norm=1.0, features=100, rows=20_000, neighbors=Neighbors.ADD_REMOVE)
>>> plan = NoisyGradientDescent.calibrate(LearningTask(Fraction(1), Fraction(1, 10**9), **facts))
>>> plan.steps, round(plan.penalty, 3), round(plan.cut, 3)
(96, 2.175, 0.633)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np

from tacit.accounting.calibrate import gaussian_sigma
from tacit.arithmetic import to_integer, to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.losses import Array, ConvexLoss, LogisticLoss
from tacit.learn.method import LearningTask
from tacit.learn.noise import GRID_BITS, GridGaussian, approximation_delta_of
from tacit.learn.problem import RiskMinimization, check_penalty, check_positive
from tacit.learn.sums import EXPONENT, QuantizedRows, quantize, round_weights
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise, Loss, Repeat, Sampled
from tacit.privacy.unit import Neighbors
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits

# chosen on synthetic data: benchmarks/rules.md
_REACH = 4.0  # the penalty is for weights whose scores are about so many times slope/bend
_PATIENCE = 2.0  # steps, in units of the root of the condition number
_FEWEST, _MOST = 16, 200  # steps
_SKIPPED = Fraction(1, 4)  # of the steps: what they pass is not in the mean
_CUT = 1000.0  # how soon noise brings the cut down


@dataclass(frozen=True)
class NoisyGradientDescent:
    """Minimizes J by `steps` accelerated steps along noisy gradients, and returns the mean of the later ones.

    **Theorem.** The fit loses at most `privacy_loss`, for neighbors of the relation that was planned. **Proof.**
    Weights are a function of what was released before, so each step releases sum_i x_i r_i, the residuals r_i being cut
    to `cut` and both factors truncated to a grid (`sums.QuantizedRows`): in units of norm cut one row adds at most one,
    in L2; a replacement is two such. `GridGaussian` gives the privacy loss of a release. The penalty's part and the
    steps are public. Where only a sample is summed, each row is in it with probability `rate`, by 64 fair bits of its
    own.

    Residuals are cut where the noise is large: for the logistic loss this means a line of slope `cut` where a row is on
    the wrong side by far, a convex loss still, with less noise. As the noise vanishes beside the number of rows the
    loss becomes itself.
    """

    noise: GridGaussian
    steps: int
    rate: Fraction
    cut: float
    penalty: float
    neighbors: Neighbors

    @classmethod
    def calibrate(
        cls, task: LearningTask, *, steps: int | None = None, cut: float | None = None, rate: Fraction | None = None
    ) -> Self:
        """The method for (epsilon, delta), with noise calibrated to it; what is not chosen follows the public rules.

        The rules: `default_clip` and `default_gradient_penalty`; and `_PATIENCE` times the root of the condition number
        of J steps, as many as accelerated steps need, but from `_FEWEST` to `_MOST`.
        """
        unit = single_release_sigma(task.epsilon, task.delta, task.neighbors)
        most = default_clip(task.loss, unit, task.features, task.rows) if cut is None else check_clip(cut, task.loss)
        weight = (
            default_gradient_penalty(task.loss, most, unit, task.norm, task.features)
            if task.penalty is None
            else task.penalty
        )
        check_penalty(task.loss, task.norm, weight)
        condition = 1 + task.loss.bend * task.norm**2 * task.rows / weight
        chosen = min(max(math.ceil(_PATIENCE * math.sqrt(condition)), _FEWEST), _MOST)
        times = chosen if steps is None else to_integer("steps", steps, least=1)
        sensitivity, coordinates = l2_sensitivity(task.neighbors), task.features * task.loss.outputs
        if rate is None:
            noise = GridGaussian.calibrated(task.epsilon, task.delta, sensitivity, coordinates, times)
            return cls(noise, times, Fraction(1), most, weight, task.neighbors)
        if task.neighbors is not Neighbors.ADD_REMOVE:
            raise ParameterError("rate", "sampling is proved for add-remove neighbors only", fix="leave rate out")
        share = Fraction(math.floor(to_rational_between("rate", rate, Fraction(1, 2**32), Fraction(1)) * 2**64), 2**64)
        noise = _sampled_noise(task.epsilon, task.delta, share, times, coordinates)
        return cls(noise, times, share, most, weight, task.neighbors)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        once: Loss = ContinuousGaussianNoise(self.noise.relative)
        if self.rate < 1:
            once = Sampled(once, self.rate)
        return Compose((Repeat(once, self.steps), ApproximateDp(Fraction(0), self.steps * self.noise.stray)))

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights."""
        pulls = NoisyGradients.of(problem, self.cut, self.noise, self.neighbors)
        smooth = problem.loss.bend * problem.norm**2 * problem.rows + problem.penalty
        ratio = math.sqrt(problem.penalty / smooth)
        momentum = (1 - ratio) / (1 + ratio)
        weights = ahead = total = np.zeros(problem.shape)
        skipped = math.floor(self.steps * _SKIPPED)
        for step in range(self.steps):
            kept = None if self.rate == 1 else bernoulli.draw_array_dyadic(self.rate, len(problem.labels), bits)
            pull = pulls.noisy(ahead, bits, kept) / float(self.rate)
            before, weights = weights, ahead - (pull + problem.penalty * ahead) / smooth
            ahead = round_weights(weights + momentum * (weights - before))
            if step >= skipped:
                total = total + weights
        return np.asarray(total / (self.steps - skipped))


@dataclass(frozen=True, eq=False)
class NoisyGradients:
    """The noisy sums of a problem's gradients."""

    rows: QuantizedRows
    labels: Array
    loss: ConvexLoss
    cut: float
    noise: GridGaussian

    @classmethod
    def of(cls, problem: RiskMinimization, cut: float, noise: GridGaussian, neighbors: Neighbors) -> NoisyGradients:
        """The pulls of a problem that the noise was planned for."""
        if problem.neighbors is not neighbors or math.prod(problem.shape) != noise.coordinates:
            raise ParameterError(
                "problem", "has other neighbors or another shape than planned", fix="plan for this problem"
            )
        return cls(QuantizedRows.of(problem.features, problem.norm), problem.labels, problem.loss, cut, noise)

    def noisy(self, weights: Array, bits: Bits, kept: Array | None = None) -> Array:
        """Return the sum of x r over the rows (or the kept ones) with noise, at weights rounded by `round_weights`."""
        total = self.rows.sum_of(self._factors(weights), kept)
        return self.noise.release_whole(total, EXPONENT, bits) * (self.rows.norm * self.cut)

    def _factors(self, weights: Array) -> Iterator[Array]:
        for block in self.rows.blocks():
            yield quantize(self.loss.residuals(self.rows.scores(weights, block), self.labels[block]), self.cut)


@lru_cache(maxsize=256)
def single_release_sigma(epsilon: Fraction, delta: Fraction, neighbors: Neighbors) -> float:
    """The sigma of one release of a sum to which a row adds at most one: the measure of all default choices."""
    if to_rational("delta", delta) <= 0:
        raise ParameterError("delta", "Gaussian noise needs a delta above 0", fix="delta=1e-9, say")
    return float(gaussian_sigma(epsilon, delta)) * float(l2_sensitivity(neighbors))


def l2_sensitivity(neighbors: Neighbors) -> Fraction:
    """How far a sum of vectors of length one moves: a replacement takes one away and adds one."""
    return Fraction(1 if neighbors is Neighbors.ADD_REMOVE else 2)


def default_clip(loss: ConvexLoss, unit: float, features: int, rows: int) -> float:
    """Where residuals are cut: for the logistic loss at 1/2 + 1/2 1/(1 + `_CUT` v), v = unit sqrt(features)/rows.

    v is the length of the noise over the largest gradient there can be. At weights of zero residuals are 1/2, so less
    would lose signal. The hinge's residual is constant where a row is on the wrong side, and is not cut.
    """
    if not isinstance(loss, LogisticLoss):
        return loss.slope
    return min(loss.slope, 0.5 + 0.5 / (1 + _CUT * unit * math.sqrt(features) / rows))


def check_clip(cut: float, loss: ConvexLoss) -> float:
    """A cut that was chosen: at most the slope, and for losses of several outputs or not one-sided the slope itself."""
    check_positive("cut", cut)
    if cut > loss.slope or (cut < loss.slope and (loss.outputs > 1 or not loss.one_sided)):
        raise ParameterError("cut", f"must be at most {loss.slope:g}, or that", fix="leave cut out")
    return float(cut)


def default_gradient_penalty(loss: ConvexLoss, cut: float, unit: float, norm: float, features: int) -> float:
    """The penalty that keeps noise and bias alike: cut unit sqrt(features) norm^2 bend/(`_REACH` slope).

    Noise of length s = cut unit sqrt(features) norm moves weights by s/penalty where the rows say little; a penalty
    takes away weights of about `_REACH` slope/(bend norm), for scores a few times the width on which the loss bends.
    They are equal for this penalty.
    """
    return cut * unit * math.sqrt(features) * norm**2 * loss.bend / (_REACH * loss.slope)


def _sampled_noise(epsilon: Fraction, delta: Fraction, rate: Fraction, times: int, coordinates: int) -> GridGaussian:
    """About the least noise for sums over samples, by bisection on its Renyi bound and a few exact computations."""
    from tacit.accounting import epsilon_delta

    def cost(sigma: Fraction, by: str) -> float:
        return epsilon_delta.epsilon(Repeat(Sampled(ContinuousGaussianNoise(sigma), rate), times), room, by=by)

    goal = float(epsilon) * (1 - 1e-9)
    low, best = Fraction(1, 8), GridGaussian.calibrated(epsilon, delta, Fraction(1), coordinates, times).sigma
    room = float(delta - times * coordinates * approximation_delta_of(Fraction(2**GRID_BITS))) * (1 - 1e-9)
    while best > low * Fraction(1001, 1000):
        middle = _short(math.sqrt(low * best))
        low, best = (low, middle) if cost(middle, "renyi") <= goal else (middle, best)
    spent = cost(best, "pld")
    for _ in range(2):
        trial = _short(float(best) * (spent / goal) ** 0.75)
        price_of_trial = cost(trial, "pld")
        if price_of_trial <= goal:
            best, spent = trial, price_of_trial
    return GridGaussian.of(best, Fraction(1), coordinates)


def _short(number: float) -> Fraction:
    """A number with few digits."""
    return Fraction(round(number * 2**20), 2**20)
