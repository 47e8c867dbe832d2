"""Objective perturbation: the minimizer of the objective plus a random linear term.

>>> from tacit.learn.losses import LogisticLoss
>>> facts = {"loss": LogisticLoss(), "norm": 1.0, "features": 3, "rows": 1000, "neighbors": Neighbors.ADD_REMOVE}
>>> task = LearningTask(Fraction(1), Fraction(1, 10**5), **facts, penalty=2.0)
>>> plan = ObjectivePerturbation.calibrate(task, cut=1.0)
>>> round(float(plan.sigma), 2)  # a noisy sum of the rows would have as much
3.73
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.learn import profile
from tacit.learn.gradient import check_clip, default_clip, single_release_sigma
from tacit.learn.losses import Array, ConvexLoss
from tacit.learn.method import LearningTask
from tacit.learn.minimize import check_solvable, gradient_tolerance, minimize
from tacit.learn.minimize import least_penalty as solvable
from tacit.learn.noise import GRID_BITS, GridGaussian, add_gaussian_noise, approximation_delta_of
from tacit.learn.output import clip_loss, decisive_score
from tacit.learn.problem import RiskMinimization, check_positive, with_loss
from tacit.privacy.loss import ApproximateDp, Compose, Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

# chosen on synthetic data: benchmarks/rules.md
_SCORES = 0.5  # the scores that a penalty is for, in units of a decisive one, for a signal as large as its noise
_GROWTH = 0.625  # the power of the signal by which these scores grow
_DETERMINANT = Fraction(1, 8)  # of epsilon: what the determinant alone may take, where no penalty is chosen


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Releases about the minimizer of J(w) + b.w, with b of independent normal coordinates of deviation `sigma`.

    **Theorem.** The fit loses at most `privacy_loss`, on tables of at most `minimize.most_rows(rows)` rows, for which
    the solver keeps its tau; beyond, the theorem says nothing. **Proof.** `main` is what the exact minimizer w*(b) for
    a real normal b loses (`profile`). The b that is used is that b rounded to a grid, but for a small share
    (`noise.approximation_delta_of`), which is in the delta of `rest`. With d weights and a step of e, rounding moves it
    by at most sqrt(d) e/2, and the solver has its tau: the w that it finds has |grad J(w) + b| <= t = tau + sqrt(d) e/2
    for the real b, and is within t/penalty of w*(b). Given w*(b), b is known on either side, and so is w: it moves by
    at most 2 t/penalty between the sides. It is released with noise for that, `last`, the other part of `rest`: an
    adaptive composition, of which w* is not shown.

    A random term on a lattice, taken as such, would hide nothing: for another database the same w needs a term off it.
    """

    main: ApproximateDp
    rest: ApproximateDp
    sigma: Fraction
    last: GridGaussian
    loss: ConvexLoss
    norm: float
    rows: int
    neighbors: Neighbors
    penalty: float
    cut: float

    @classmethod
    def calibrate(cls, task: LearningTask, *, cut: float | None = None) -> Self:
        """The method for (epsilon, delta); what is not chosen follows `default_objective_penalty` and
        `gradient.default_clip`.
        """
        coordinates = to_integer("features", task.features, least=1) * task.loss.outputs
        unit = single_release_sigma(task.epsilon, task.delta, task.neighbors)
        most = default_clip(task.loss, unit, task.features, task.rows) if cut is None else check_clip(cut, task.loss)
        learned = clip_loss(task.loss, most)
        rule = (
            default_objective_penalty(task.loss, most, task.epsilon, unit, task.norm, coordinates, task.rows)
            if task.penalty is None
            else task.penalty
        )
        chosen = max(rule, solvable(learned, task.norm)) if task.penalty is None else task.penalty
        check_positive("penalty", chosen)
        check_solvable(learned, task.norm, task.features, chosen)
        bent = 1 + task.rows * task.loss.bend * task.norm**2 / (coordinates * chosen)
        share = _share(gradient_tolerance(learned, task.norm, task.rows) / (learned.slope * task.norm) * bent)
        astray = coordinates * approximation_delta_of(Fraction(2**GRID_BITS))
        main = ApproximateDp(task.epsilon * (1 - share), task.delta * (1 - share) - astray)
        if main.delta <= 0:
            raise ParameterError(
                "delta", f"is too small, got {float(task.delta):.3g}", fix="choose a delta of 1e-12, say"
            )
        sigma = profile.calibrate_deviation(
            float(main.epsilon) * (1 - 2.0**-50),
            float(main.delta) * (1 - 2.0**-50),
            loss=learned,
            norm=task.norm,
            penalty=chosen,
            neighbors=task.neighbors,
        )
        tau = Fraction(_goal(learned, task.norm, task.rows, Fraction(sigma), coordinates))
        tau += _rounding(Fraction(sigma), coordinates)
        last = GridGaussian.calibrated(
            task.epsilon * share, task.delta * share, 2 * tau / Fraction(chosen), coordinates
        )
        rest = ApproximateDp(task.epsilon * share, task.delta * share + astray)
        return cls(main, rest, Fraction(sigma), last, task.loss, task.norm, task.rows, task.neighbors, chosen, most)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""
        return Compose((self.main, self.rest))

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The weights."""
        learned = clip_loss(self.loss, self.cut)
        known = with_loss(problem, (self.loss, self.norm, self.neighbors, self.penalty), learned)
        tilt = add_gaussian_noise(np.zeros(problem.shape), _step(self.sigma), self.sigma, bits)
        goal = _goal(learned, self.norm, self.rows, self.sigma, math.prod(problem.shape))
        found = minimize(known, tilt, goal)
        return self.last.release(found, bits)


def default_objective_penalty(
    loss: ConvexLoss, cut: float, epsilon: Fraction, unit: float, norm: float, coordinates: int, rows: int
) -> float:
    """The penalty at which noise and bias are alike, v norm^2/b, or the least at which determinants cost little.

    A random term of length v norm, v = cut unit sqrt(coordinates), moves weights by v norm/penalty where the rows say
    little; the penalty takes away weights of about b/norm: scores of b = `_SCORES` `decisive_score` t^`_GROWTH`, where
    t = rows slope/v is the signal's size over the noise's. More rows tell more, and larger weights are worth learning.
    At least, the penalty keeps the determinant alone (`profile.max_determinant_cost`) to the part `_DETERMINANT` of
    epsilon.
    """
    length = cut * unit * math.sqrt(coordinates)
    scores = _SCORES * decisive_score(loss) * max(1.0, rows * loss.slope / length) ** _GROWTH
    least = profile.smallest_penalty(float(epsilon * _DETERMINANT), loss=clip_loss(loss, cut), norm=norm)
    return float(max(length * norm**2 / scores, least))


def _share(ratio: float) -> Fraction:
    """The part of epsilon and delta that the last noise takes: at most a quarter.

    The random term, of size slope norm, moves weights by its size over the curvature, which along all of them is on
    average at most penalty + rows bend norm^2/coordinates; the last noise is for 2 tau/penalty. So in units of the
    former the latter is about a = 2 ratio/share, for the ratio of tau to slope norm times that of the curvature to the
    penalty; and share + a^2/2 is least near this.
    """
    return Fraction(min(0.25, max(2.0**-10, (2 * ratio) ** (2 / 3))))


def _goal(loss: ConvexLoss, norm: float, rows: int, sigma: Fraction, coordinates: int) -> float:
    """The gradient that is solved for: no less than what rounding leaves of the random term."""
    return max(gradient_tolerance(loss, norm, rows), float(_rounding(sigma, coordinates)))


def _step(sigma: Fraction) -> Fraction:
    """The grid of the random term: a power of two, with 2^GRID_BITS to 2^(GRID_BITS + 1) steps in sigma."""
    return Fraction(2) ** (math.frexp(float(sigma))[1] - 1 - GRID_BITS)


def _rounding(sigma: Fraction, coordinates: int) -> Fraction:
    """How far rounding to the grid moves the random term."""
    return _step(sigma) * (math.isqrt(coordinates) + 1) / 2
