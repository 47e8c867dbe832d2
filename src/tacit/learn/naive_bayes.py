"""Naive Bayes: each class has a normal distribution in each column, learned from noisy counts, sums and sums of
squares.

>>> from functools import partial
>>> from tacit.sampling.bits import ReplayBits
>>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
>>> model = GaussianNB(epsilon=1, classes=[0, 1], bounds=(18, 90), rows=3000, bits=partial(ReplayBits, b"doc"))
>>> model.fit(ages, sick).predict([[25.0], [75.0]]).tolist()
[0, 1]
>>> model.theta_.round().tolist()  # the means of 20 .. 49 and of 50 .. 79 are 34.5 and 64.5
[[34.0], [65.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.arithmetic import to_rational
from tacit.errors import ParameterError
from tacit.learn.columns import GroupMoments, estimate_moments
from tacit.learn.labels import check_classes, encode_labels
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, ReleasePlan, center_and_half_width, scale_rows
from tacit.sampling.bits import Bits


class GaussianNB(ClassifierMixin, OneShotEstimator):
    """Gaussian naive Bayes for declared classes. See `OneShotEstimator` for the parameters that are not said here.

    **Theorem.** A fit loses at most `loss_`. Proof: a row is in one class, so its count and moments are in one group of
    `GroupMoments`; all else is computed from what that releases.

    `priors` are the declared probabilities of the (sorted) classes, or None: then the noisy counts say. `var_smoothing`
    is the least variance, as a share of the square of half a column's width. No variance is believed below the
    deviation of its noise either; and where the noise on a mean is large beside the number of rows, the mean is drawn
    to the middle of the bounds, and the variance to that of a uniform distribution, as Bayes' rule has it.
    """

    _last = "var_"

    def __init__(
        self,
        epsilon: Any = None,
        delta: Any = None,
        *,
        classes: Any = None,
        bounds: Any = None,
        rows: Any = None,
        neighbors: Any = "add-remove",
        priors: Any = None,
        var_smoothing: Any = 1e-9,
        missing: Any = "error",
        bits: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.rows = rows
        self.neighbors = neighbors
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.missing = missing
        self.bits = bits

    def plan(self, features: int, rows: int | None = None) -> ReleasePlan[GroupMoments]:
        """What a fit on so many columns would do and cost. No data is needed."""
        facts = self.facts(features, rows)
        self._priors()
        self._floor()
        groups = len(check_classes(self.classes))
        shape = {"groups": groups, "columns": features, "degree": 2}
        return ReleasePlan(
            facts, GroupMoments.calibrate(facts.epsilon, facts.delta, **shape, neighbors=facts.neighbors)
        )

    def predict(self, X: Any) -> Array:  # noqa: N803 - scikit-learn's name
        """The class of each row."""
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probability of each class, for each row."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """The logarithms of these."""
        from scipy.special import log_softmax

        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    def predict_joint_log_proba(self, X: Any) -> Array:  # noqa: N803
        """The logarithm of a class's probability times the density of the row in it, for each class."""
        rows = self._again(X)
        found = np.empty((len(rows), len(self.classes_)))
        for place, (mean, variance) in enumerate(zip(self.theta_, self.var_, strict=True)):
            normal = np.log(2 * np.pi * variance).sum() + ((rows - mean) ** 2 / variance).sum(axis=1)
            found[:, place] = np.log(self.class_prior_[place]) - normal / 2
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) > 2
        return tags

    def _read(self, X: Any, y: Any) -> tuple[Array, Any]:  # noqa: N803
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_classification_targets(target)
        return features, target

    def _learn(self, plan: ReleasePlan[GroupMoments], features: Array, target: Any, bits: Bits) -> None:
        classes = check_classes(self.classes)
        released = plan.release.release(scale_rows(plan.facts, features), encode_labels(classes, target), bits)
        counts, means, variances = estimate_moments(released, plan.release.deviations)
        middle, half = center_and_half_width(plan.facts)
        priors = self._priors()
        self.classes_, self.class_count_ = classes, counts
        self.class_prior_ = counts / counts.sum() if priors is None else priors
        self.theta_ = middle + half * means
        self.var_ = half**2 * np.maximum(variances, self._floor())

    def _floor(self) -> float:
        """The least variance, in units of the squares of half widths."""
        share = float(to_rational("var_smoothing", self.var_smoothing))
        if not 0 < share <= 1:
            raise ParameterError("var_smoothing", "must be above 0 and at most 1", fix="var_smoothing=1e-9, say")
        return share

    def _priors(self) -> Array | None:
        """The declared probabilities of the classes."""
        if self.priors is None:
            return None
        found = np.asarray(self.priors, dtype=np.float64)
        if found.shape != (len(check_classes(self.classes)),) or not np.all(found > 0) or abs(found.sum() - 1) > 1e-8:
            what = "must be a probability above 0 for each class, one in all"
            raise ParameterError("priors", what, fix="leave them out: they are learned")
        return found
