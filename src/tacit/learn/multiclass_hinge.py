"""The hinge loss of several classes, smoothed: what `LinearSVC` minimizes for three classes or more.

>>> import numpy as np
>>> loss = MulticlassHinge(classes=3, width=0.5)
>>> scores = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
>>> loss.values(scores, np.array([0.0, 0.0])).round(4).tolist()
[0.0, 1.125]
>>> loss.residuals(scores, np.array([0.0, 0.0])).round(4).tolist()
[[0.0, 0.0, 0.0], [-1.0, 0.5, 0.5]]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arithmetic import to_integer
from tacit.learn.losses import Array
from tacit.learn.problem import check_positive


@dataclass(frozen=True)
class MulticlassHinge:
    """f = max over j of (s_j - s_y + 1 - [j = y]), smoothed; labels y are 0 .. classes - 1, with a score a class.

    It is Crammer and Singer's loss, smoothed by the width g:

        f(s) = max over t in the simplex of t.v - (g/2) (|t|^2 - 1),   v_j = s_j - s_y + 1 - [j = y].

    The best t is the point of the simplex that is nearest to v/g, and the residual is t - e_y. Of two classes it is
    `SmoothedHinge` of the difference of the scores.

    **Theorem.** |t - e_y|^2 <= 2, however many classes there are, and f'' has at most classes - 1 eigenvalues that are
    not 0, each of them 1/g. **Proof.** |t - e_y|^2 is convex in t, so largest at a corner of the simplex, where it is 0
    or 2. Where t is known to be above 0 in a set S of entries, the projection is t_S = v_S/g - mean + 1/|S|, so its
    Jacobian is (I - 1 1^T/|S|)/g on S and 0 elsewhere, which is 1/g times a projection onto |S| - 1 dimensions.

    One hinge for each class against the rest would have residuals of length up to the root of the classes in place of
    the root of two: all of these classifiers see all rows, so what one row moves adds up over them.
    """

    classes: int
    width: float = 0.5

    def __post_init__(self) -> None:
        to_integer("classes", self.classes, least=2)
        check_positive("width", self.width)

    slope = math.sqrt(2) * (1 + 2**-52)
    is_smooth = False
    one_sided = True

    @property
    def bend(self) -> float:
        """1/width."""
        return 1 / self.width

    @property
    def relative_bend(self) -> float:
        """(1 + width) bend sqrt(classes): where t is above 0, a score is within 1 + width of the largest."""
        return (1 + self.width) * self.bend * math.sqrt(self.classes)

    @property
    def outputs(self) -> int:
        """One score a class."""
        return self.classes

    @property
    def corners(self) -> int:
        """t = e_j for each class j but the label's."""
        return self.classes - 1

    def admits(self, labels: Array) -> bool:
        """Whether every label is one of 0 .. classes - 1."""
        return bool(np.all((labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))))

    def values(self, scores: Array, labels: Array) -> Array:
        """t.v - (g/2) (|t|^2 - 1) at the best t."""
        margins = self._margins(scores, labels)
        shares = self._shares(margins)
        smoothing = self.width / 2 * (np.einsum("ij,ij->i", shares, shares) - 1)
        return np.asarray(np.einsum("ij,ij->i", shares, margins) - smoothing)

    def residuals(self, scores: Array, labels: Array) -> Array:
        """t - e_y."""
        found = self._shares(self._margins(scores, labels))
        found[np.arange(len(found)), labels.astype(np.intp)] -= 1
        return found

    def curvature(self, scores: Array, labels: Array) -> Array:
        """The uniform distribution p on the classes whose t is above 0; f'' is (diag(p) - p p^T)/(width max p)."""
        active = self._shares(self._margins(scores, labels)) > 0
        return np.asarray(active / active.sum(axis=1, keepdims=True))

    def chord(self, scores: Array, labels: Array) -> Array:
        """The same distribution."""
        return self.curvature(scores, labels)

    def volume(self, share: Array, ratio: float) -> Array:
        """(classes - 1) ln(1 + bend ratio), whatever the residual is: all eigenvalues may be as large as they can."""
        return np.full(np.shape(share), (self.classes - 1) * math.log1p(self.bend * ratio))

    def _margins(self, scores: Array, labels: Array) -> Array:
        """v: by how much each class is above the label's, and one more for every class but that."""
        rows, own = np.arange(len(scores)), labels.astype(np.intp)
        found = scores - scores[rows, own][:, None] + 1
        found[rows, own] = 0
        return np.asarray(found)

    def _shares(self, margins: Array) -> Array:
        """t: the point of the simplex nearest to v/width.

        It is max(u - c, 0), u being v/width less its largest entry and c the number for which it adds up to one. As c
        is at least -1, entries below -2 are as good as -2, so no number here is large, whatever the scores are.
        """
        apart = np.maximum((margins - margins.max(axis=1, keepdims=True)) / self.width, -2.0)
        falling = -np.sort(-apart, axis=1)
        sums = (np.cumsum(falling, axis=1) - 1) / np.arange(1, self.classes + 1)
        count = np.count_nonzero(falling > sums, axis=1)
        return np.asarray(np.maximum(apart - np.take_along_axis(sums, count[:, None] - 1, axis=1), 0.0))
