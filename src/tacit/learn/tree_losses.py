"""What trees minimize: residuals and curvatures of rows within public bounds, and the step that noisy sums of them say.

>>> loss = LogisticTreeLoss()
>>> residuals, curvatures = loss.moments(np.array([[0.0]]), np.array([1]))
>>> residuals.tolist(), curvatures.tolist()
([[1.0]], [1.0])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.learn.losses import Array

# chosen on splits of Adult that benchmarks/trees.md does not report
CURVATURE = 0.35  # the part of a row's moments that is its curvature, in L2; the rest is its residuals
RIDGE = 1.0  # what is added to the curvature of a leaf, in deviations of its noise
_LONGEST = 3.0  # step of a score


class TreeLoss(Protocol):
    """A loss whose negative gradients by scores are at most `cut`, and whose curvatures are at most `bend`.

    The moments of a row are a function of its own scores and label, to the last bit, wherever it stands.
    """

    @property
    def outputs(self) -> int:
        """The scores of a row."""

    @property
    def cut(self) -> float:
        """The largest residual that is counted; larger ones are cut to it."""

    @property
    def bend(self) -> float:
        """The largest curvature."""

    @property
    def longest(self) -> float:
        """The longest step of a score."""

    def moments(self, scores: Array, labels: Array) -> tuple[Array, Array]:
        """The residuals in units of `cut`, (rows, outputs), and the curvatures in units of `bend`, (rows,)."""


@dataclass(frozen=True)
class LogisticTreeLoss:
    """Two classes: labels are 0 and 1, and the score is the logarithm of odds.

    Residuals y - p are cut at 1/2: a row on the wrong side of the boundary counts as much as one at it, at half of the
    noise that residuals up to 1 need. It is the loss ln(1 + exp(-m)) for margins m >= 0, continued as a line below 0.
    """

    outputs: int = 1
    cut: float = 0.5
    bend: float = 0.25
    longest: float = _LONGEST

    def moments(self, scores: Array, labels: Array) -> tuple[Array, Array]:
        """Residuals and curvatures."""
        positive = 1 / (1 + np.exp(-np.clip(scores[:, 0], -500.0, 500.0)))
        residuals = np.clip((labels - positive) / self.cut, -1.0, 1.0)
        return residuals[:, None], positive * (1 - positive) / self.bend

    def compute_probabilities(self, scores: Array) -> Array:
        """The probability q of the class 1 for which a score minimizes the expected loss.

        With p = 1/(1 + exp(-score)) >= 1/2, residuals of 1 - p and of -1/2 have the mean 0 where q (1 - p) = (1 - q)/2,
        which is at q = 1/(3 - 2 p). Scores below 0 are those of the other class.
        """
        likely = 1 / (1 + np.exp(-np.minimum(np.abs(scores), 500.0)))
        found = 1 / (3 - 2 * likely)
        return np.asarray(np.where(scores >= 0, found, 1 - found))


@dataclass(frozen=True)
class MultinomialTreeLoss:
    """Several classes: labels are from 0 on, and a score for each class is a logarithm, up to a constant.

    A row whose class has the probability p has residuals of 2 (1 - p) in L1. They are shortened where 1 - p is above
    1 - 1/classes, what it is where nothing is known.
    """

    classes: int

    @property
    def outputs(self) -> int:
        """A score a class."""
        return self.classes

    @property
    def cut(self) -> float:
        """The largest 1 - p."""
        return 1 - 1 / self.classes

    @property
    def bend(self) -> float:
        """The largest mean of p (1 - p) over the classes."""
        return (1 - 1 / self.classes) / self.classes

    @property
    def longest(self) -> float:
        """The longest step of a score."""
        return _LONGEST

    def moments(self, scores: Array, labels: Array) -> tuple[Array, Array]:
        """Residuals and curvatures."""
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        residuals = (labels[:, None] == np.arange(self.classes)) - shares
        sizes = np.abs(residuals).sum(axis=1) / 2
        residuals /= np.maximum(sizes, self.cut)[:, None]
        curvatures = (1 - (shares**2).sum(axis=1)) / self.classes
        return residuals, np.clip(curvatures / self.bend, 0.0, 1.0)


@dataclass(frozen=True)
class SquaredTreeLoss:
    """Targets in [-1, 1], and the score is their mean. Residuals beyond 1 are cut to it."""

    outputs: int = 1
    cut: float = 1.0
    bend: float = 1.0
    longest: float = 1.0

    def moments(self, scores: Array, labels: Array) -> tuple[Array, Array]:
        """Residuals and curvatures."""
        return np.clip(labels - scores[:, 0], -1.0, 1.0)[:, None], np.ones(len(labels))


def join_moments(loss: TreeLoss, residuals: Array, curvatures: Array) -> Array:
    """Residuals and curvatures side by side, at most one in L2: residuals are at most one in L1, or sqrt(2) in L2."""
    most = 1.0 if loss.outputs == 1 else math.sqrt(2)
    weight = math.sqrt(1 - CURVATURE**2) / most
    return np.column_stack([residuals * weight, curvatures * CURVATURE])


def compute_steps(loss: TreeLoss, sums: Array, deviation: float) -> Array:
    """The steps of the scores that noisy sums of moments over leaves say: residuals over curvature, and some more.

    `RIDGE` deviations of the curvature's noise are added to it, so that a leaf of few rows moves little.
    """
    most = 1.0 if loss.outputs == 1 else math.sqrt(2)
    residuals = sums[:, :-1] * (loss.cut * most / math.sqrt(1 - CURVATURE**2))
    unit = loss.bend / CURVATURE
    curvatures = np.maximum(sums[:, -1], 0.0) * unit + RIDGE * deviation * unit
    steps = residuals / curvatures[:, None]
    if loss.outputs > 1:
        steps *= 1 - 1 / loss.outputs
    return np.clip(steps, -loss.longest, loss.longest)
