"""Losses of linear models: l(w; x, y) = f(x.w; y), convex in the score x.w, with a bounded slope and a bounded bend.

>>> import numpy as np
>>> LogisticLoss().values(np.array([0.0]), np.array([1.0])).round(6).tolist()
[0.693147]
>>> LogisticLoss().residuals(np.array([0.0]), np.array([1.0])).tolist()
[-0.5]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError

Array = NDArray[Any]


class ConvexLoss(Protocol):
    """What a method of this room needs to know of a loss.

    The gradient of a row's loss is f'(x.w) x, or the outer product of x and f' where there are several outputs, so that
    its norm is at most slope |x|; the Hessian is at most bend |x|^2 times the identity.
    """

    @property
    def slope(self) -> float:
        """The largest |f'|, in L2 where there are several outputs."""

    @property
    def bend(self) -> float:
        """The largest f'': the largest eigenvalue where there are several outputs."""

    @property
    def relative_bend(self) -> float:
        """The largest |s f''(s)|: how much f' changes where the score s changes by a small part of itself.

        With several outputs, for scores s whose largest is 0, which changes none.
        """

    @property
    def is_smooth(self) -> bool:
        """Whether f'' is continuous."""

    @property
    def one_sided(self) -> bool:
        """Whether the label alone decides the sign of f'."""

    @property
    def outputs(self) -> int:
        """The scores of a row: columns of w. With one, w and the scores are vectors."""

    @property
    def corners(self) -> int:
        """How many extreme values other than 0 the residual f' of a known label has.

        The residuals of a label lie in the convex hull of 0 and its corners, whose norms are at most `slope`.
        """

    def admits(self, labels: Array) -> bool:
        """Whether all labels are ones that the loss is made for."""

    def values(self, scores: Array, labels: Array) -> Array:
        """f for each row."""

    def residuals(self, scores: Array, labels: Array) -> Array:
        """f' for each row, in the shape of the scores."""

    def curvature(self, scores: Array, labels: Array) -> Array:
        """f'' for each row. For `MultinomialLoss` the probabilities p, of which f'' is diag(p) - p p^T."""

    def chord(self, scores: Array, labels: Array) -> Array:
        """The curvature, at least f'', of a parabola that touches f at the score and lies above it everywhere.

        Where scores are far from where f bends, f'' says nothing of what lies on the way there, and this does. A step
        by it never overshoots. For `MultinomialLoss` it is the curvature itself.
        """

    def volume(self, share: Array, ratio: float) -> Array:
        """The largest ln det(I + f'' ratio) where the residual is at `share` of the way from 0 to its corners.

        For the share s of the residual sum_j s_j c_j of corners c_j, s = sum_j s_j. This is what one more row x, with
        |x|^2 at most ratio times the least eigenvalue of the Hessian, adds to the logarithm of its determinant.
        """


@dataclass(frozen=True)
class LogisticLoss:
    """f = ln(1 + exp(-y s)) for labels y of -1 and +1. The residual is -y t with t in [0, 1], and f'' = t (1 - t).

    With a `cut` below 1, f is a line of that slope where t would be larger: where a row is on the wrong side by far. It
    is convex still, and one row moves less.
    """

    cut: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.cut <= 1:
            raise ParameterError("cut", f"must be in (0, 1], got {self.cut}", fix="cut=1, or leave it out")

    bend = 0.25
    relative_bend = 0.25  # the most of s/(2 cosh(s/2))^2 is 0.224
    is_smooth = True
    one_sided = True
    outputs = 1
    corners = 1

    @property
    def slope(self) -> float:
        """The cut."""
        return float(self.cut)

    @property
    def _turn(self) -> float:
        """The margin y s below which f is a line."""
        return math.log(1 / self.cut - 1) if self.cut < 1 else -math.inf

    def admits(self, labels: Array) -> bool:
        """Whether every label is -1 or +1."""
        return are_signs(labels)

    def values(self, scores: Array, labels: Array) -> Array:
        """ln(1 + exp(-y s)), or the line."""
        margin = labels * scores
        bent = np.maximum(margin, self._turn)
        return np.asarray(np.logaddexp(0.0, -bent) + self.cut * (bent - margin))

    def residuals(self, scores: Array, labels: Array) -> Array:
        """-y/(1 + exp(y s)), at most the cut."""
        return np.asarray(-labels * np.minimum(_logistic(labels * scores), self.cut))

    def curvature(self, scores: Array, labels: Array) -> Array:
        """t (1 - t), or 0 on the line."""
        margin = labels * scores
        tail = _logistic(np.abs(margin))
        return np.asarray(tail * (1 - tail) * (margin >= self._turn))

    def chord(self, scores: Array, labels: Array) -> Array:
        """tanh(s/2)/(2 s), by Jaakkola and Jordan; for the line of a cut too, which lies below."""
        far = np.maximum(np.abs(scores), 1e-6)
        return np.asarray(np.tanh(far / 2) / (2 * far))

    def volume(self, share: Array, ratio: float) -> Array:
        """ln(1 + t (1 - t) ratio): where the residual is large, the bend is small."""
        t = share * self.cut
        return np.asarray(np.log1p(t * (1 - t) * ratio))


@dataclass(frozen=True)
class SmoothedHinge:
    """The hinge max(0, 1 - y s), smoothed by a parabola where |1 - y s| <= width; labels are -1 and +1.

    The residual is -y t, where t grows from 0 to 1 as y s falls from 1 + width to 1 - width; f'' is 1/(2 width) there
    and 0 elsewhere.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.width < math.inf:
            raise ParameterError("width", f"must be positive, got {self.width}", fix="width=0.5, say")

    slope = 1.0
    is_smooth = False
    one_sided = True
    outputs = 1
    corners = 1

    @property
    def bend(self) -> float:
        """1/(2 width)."""
        return 1 / (2 * self.width)

    @property
    def relative_bend(self) -> float:
        """(1 + width)/(2 width), where the parabola begins."""
        return (1 + self.width) * self.bend

    def admits(self, labels: Array) -> bool:
        """Whether every label is -1 or +1."""
        return are_signs(labels)

    def values(self, scores: Array, labels: Array) -> Array:
        """0, (1 + width - y s)^2/(4 width), or 1 - y s."""
        margin = 1 - labels * scores
        inside = np.clip(margin + self.width, 0, 2 * self.width)
        return np.asarray(inside**2 / (4 * self.width) + np.maximum(margin - self.width, 0))

    def residuals(self, scores: Array, labels: Array) -> Array:
        """-y t, t = (1 + width - y s)/(2 width) in [0, 1]."""
        return np.asarray(-labels * np.clip((1 + self.width - labels * scores) * self.bend, 0, 1))

    def curvature(self, scores: Array, labels: Array) -> Array:
        """1/(2 width) on the parabola, 0 beside it."""
        return np.asarray((np.abs(1 - labels * scores) < self.width) * self.bend)

    def chord(self, scores: Array, labels: Array) -> Array:
        """One over twice the width, or the distance from the margin where that is more."""
        return np.asarray(0.5 / np.maximum(np.abs(1 - labels * scores), self.width))

    def volume(self, share: Array, ratio: float) -> Array:
        """ln(1 + bend ratio), whatever the residual is."""
        return np.full(np.shape(share), math.log1p(self.bend * ratio))


@dataclass(frozen=True)
class HuberLoss:
    """f = (s - y)^2/2 where |s - y| <= slope, and a line of that slope beyond; slope = target_bound + prediction_bound.

    Targets lie in [-target_bound, target_bound]. A model whose predictions stay within the prediction bound, which is
    the target's where none is declared, has the squared loss itself.
    """

    target_bound: float
    prediction_bound: float | None = None

    def __post_init__(self) -> None:
        for name in ("target_bound", "prediction_bound"):
            number = getattr(self, name)
            if number is not None and not 0 < number < math.inf:
                raise ParameterError(name, f"must be positive, got {number}", fix=f"{name}=1, say")

    bend = 1.0
    is_smooth = False
    one_sided = False
    outputs = 1
    corners = 2

    @property
    def relative_bend(self) -> float:
        """The largest score on the parabola."""
        return self.target_bound + self.slope

    @property
    def slope(self) -> float:
        """The largest residual: the target's bound and the prediction's, rounded up."""
        other = self.target_bound if self.prediction_bound is None else self.prediction_bound
        return math.nextafter(self.target_bound + other, math.inf)

    def admits(self, labels: Array) -> bool:
        """Whether every target is within its bound."""
        return bool(np.all(np.abs(labels) <= self.target_bound))

    def values(self, scores: Array, labels: Array) -> Array:
        """e^2/2, or slope (|e| - slope/2), with e = s - y."""
        error = np.abs(scores - labels)
        inside = np.minimum(error, self.slope)
        return np.asarray(inside * (error - inside / 2))

    def residuals(self, scores: Array, labels: Array) -> Array:
        """s - y, clipped to the slope."""
        return np.asarray(np.clip(scores - labels, -self.slope, self.slope))

    def curvature(self, scores: Array, labels: Array) -> Array:
        """1 inside, 0 beyond."""
        return np.asarray((np.abs(scores - labels) < self.slope) * 1.0)

    def chord(self, scores: Array, labels: Array) -> Array:
        """The slope over the error, or 1 where that is less."""
        return np.asarray(self.slope / np.maximum(np.abs(scores - labels), self.slope))

    def volume(self, share: Array, ratio: float) -> Array:
        """ln(1 + ratio), whatever the residual is."""
        return np.full(np.shape(share), math.log1p(ratio))


@dataclass(frozen=True)
class MultinomialLoss:
    """f = ln(sum_j exp s_j) - s_y for labels y of 0 .. classes - 1, with a score a class.

    The residual is p - e_y, with the probabilities p. **Theorem.** |p - e_y|^2 <= 2, and f'' = diag(p) - p p^T has no
    eigenvalue above 1/2. Proof: |p - e_y|^2 is convex in p, so largest at a corner of the simplex, where it is 0 or 2.
    v^T f'' v is the variance under p of v, which is at most (max v - min v)^2/4 <= |v|^2/2.
    """

    classes: int

    def __post_init__(self) -> None:
        to_integer("classes", self.classes, least=2)

    slope = math.sqrt(2) * (1 + 2**-52)
    bend = 0.5
    is_smooth = True
    one_sided = True

    @property
    def relative_bend(self) -> float:
        """2 ln(classes): |f'' (e s)| <= 2 e sum_j p_j |s_j|, which is 2 e times at most the entropy of p."""
        return 2 * math.log(self.classes)

    @property
    def outputs(self) -> int:
        """One score a class."""
        return self.classes

    @property
    def corners(self) -> int:
        """p = e_j for each class j but the label's."""
        return self.classes - 1

    def admits(self, labels: Array) -> bool:
        """Whether every label is one of 0 .. classes - 1."""
        return bool(np.all((labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))))

    def values(self, scores: Array, labels: Array) -> Array:
        """ln(sum_j exp s_j) - s_y."""
        from scipy.special import logsumexp

        return np.asarray(logsumexp(scores, axis=1) - scores[np.arange(len(scores)), labels.astype(np.intp)])

    def residuals(self, scores: Array, labels: Array) -> Array:
        """p - e_y."""
        found = self.curvature(scores, labels)
        found[np.arange(len(scores)), labels.astype(np.intp)] -= 1
        return found

    def curvature(self, scores: Array, labels: Array) -> Array:
        """The probabilities p; the curvature is diag(p) - p p^T."""
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def chord(self, scores: Array, labels: Array) -> Array:
        """The probabilities."""
        return self.curvature(scores, labels)

    def volume(self, share: Array, ratio: float) -> Array:
        """(K - 1) ln(1 + t ratio/(K - 1)), with t = 1 - (1 - s)^2 - s^2/(K - 1) for the share s = 1 - p_y.

        **Theorem.** ln det(I + f'' ratio) is at most this. Proof: f'' has K - 1 eigenvalues other than 0 and the trace
        1 - |p|^2 <= t, as the other K - 1 probabilities add up to s; the logarithm is concave, so for a given trace
        equal eigenvalues are the worst. Where p is uniform they are.
        """
        others = self.classes - 1
        trace = 1 - (1 - share) ** 2 - share**2 / others
        return np.asarray(others * np.log1p(np.maximum(trace, 0) * ratio / others))


def _logistic(margin: Array) -> Array:
    """1/(1 + exp(margin)); beyond 700, where the exponential would overflow, what it is there: below 2^-1000."""
    return np.asarray(1 / (1 + np.exp(np.minimum(margin, 700.0))))


def are_signs(labels: Array) -> bool:
    """Whether every label is -1 or +1."""
    return bool(np.all(np.abs(labels) == 1))
