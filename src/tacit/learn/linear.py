"""The estimators: logistic regression, a linear support vector classifier, ridge regression.

>>> from functools import partial
>>> from tacit.sampling.bits import ReplayBits
>>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
>>> model = LogisticRegression(epsilon=1, classes=[0, 1], bounds=(18, 90), rows=3000, bits=partial(ReplayBits, b"doc"))
>>> model.fit(ages, sick).predict([[25.0], [75.0]]).tolist()
[0, 1]
>>> model.guarantee_
DpGuarantee(epsilon=Fraction(1, 1), delta=Fraction(1, 9000000), neighbors=<Neighbors.ADD_REMOVE: 'add-remove'>)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from tacit.arithmetic import to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.learn import labels
from tacit.learn.base import PrivateLinearModel
from tacit.learn.losses import Array, ConvexLoss, HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.sums import on_grid

_GRID = 2**20  # points of a regressor's row
_WIDTHS = Fraction(1, 16), Fraction(512)  # of a hinge: for these, all methods are proved to end
_TARGETS = 1e100, 1e-100  # the farthest that targets may be, and the least width of their bounds


class _Classifier(ClassifierMixin, PrivateLinearModel):
    """What the classifiers share: declared classes, and `C` as scikit-learn has it, on scaled features.

    J(w) = sum of losses + |w|^2/(2 C). Where `C` is None each method has a rule of its own, from public facts.
    """

    _strength = "C"

    def decision_function(self, X: Any) -> Array:  # noqa: N803 - scikit-learn's name
        """The score of each row: above 0 for the second class of two, else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The class of each row."""
        scores = self.decision_function(X)
        positions = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[positions])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) > 2
        return tags

    def _lambda(self, strength: float) -> float:
        return 1 / strength

    def _classes(self) -> Array:
        """The declared classes, sorted."""
        return labels.check_classes(self.classes)

    def _read(self, X: Any, y: Any) -> tuple[Array, Array]:  # noqa: N803
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_classification_targets(target)
        return features, target

    def _encode(self, target: Array) -> Array:
        classes = self._classes()
        places = labels.encode_labels(classes, target)
        return 2.0 * places - 1 if len(classes) == 2 else places.astype(np.float64)

    @property
    def _most_points(self) -> int:
        return 1

    def _points(self, X: Any, target: Array) -> tuple[Array, int]:  # noqa: N803
        """A point for each right class."""
        return np.asarray(self.predict(X) == target, dtype=np.int64), self._most_points

    def _show(self, coefficients: Array, intercept: Array) -> None:
        """One row of coefficients for two classes, else one a class."""
        self.classes_ = self._classes()
        self.coef_ = np.atleast_2d(coefficients.T)
        self.intercept_ = np.atleast_1d(intercept)


class LogisticRegression(_Classifier):
    """Logistic regression for two declared classes, multinomial for more; see `PrivateLinearModel`."""

    def __init__(
        self,
        epsilon: Any = None,
        delta: Any = None,
        *,
        classes: Any = None,
        bounds: Any = None,
        norm: Any = None,
        rows: Any = None,
        neighbors: Any = "add-remove",
        C: Any = None,  # noqa: N803 - scikit-learn's name
        method: Any = "auto",
        fit_intercept: bool = True,
        intercept_scaling: Any = 0.5,
        missing: Any = "error",
        bits: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.norm = norm
        self.rows = rows
        self.neighbors = neighbors
        self.C = C
        self.method = method
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.missing = missing
        self.bits = bits

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probability of each class, for each row."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """The logarithms of these.

        Where residuals are cut at c, a score s balances c p' and q' p, for the probability p of the likelier class, p'
        of the other, and q' = 1/(1 + exp|s|) below 1 - c. So p' is not q' there but q'/(c + q').
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            other = np.exp(-np.logaddexp(0.0, np.abs(scores)))
            other = np.where(other < 1 - self._cut, other / (self._cut + other), other)
            pair = np.log1p(-other), np.log(np.maximum(other, np.finfo(np.float64).tiny))
            return np.stack([np.where(scores > 0, *reversed(pair)), np.where(scores > 0, *pair)], axis=1)
        from scipy.special import log_softmax

        return np.asarray(log_softmax(scores, axis=1))

    def _loss(self) -> ConvexLoss:
        classes = len(self._classes())
        return LogisticLoss() if classes == 2 else MultinomialLoss(classes)


class LinearSVC(_Classifier):
    """A linear support vector classifier for two declared classes, its hinge smoothed within `width` of the margin."""

    def __init__(
        self,
        epsilon: Any = None,
        delta: Any = None,
        *,
        classes: Any = None,
        bounds: Any = None,
        norm: Any = None,
        rows: Any = None,
        neighbors: Any = "add-remove",
        C: Any = None,  # noqa: N803
        width: Any = 0.5,
        method: Any = "auto",
        fit_intercept: bool = True,
        intercept_scaling: Any = 0.5,
        missing: Any = "error",
        bits: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.norm = norm
        self.rows = rows
        self.neighbors = neighbors
        self.C = C
        self.width = width
        self.method = method
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.missing = missing
        self.bits = bits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _loss(self) -> ConvexLoss:
        if len(self._classes()) != 2:
            fix = "declare two classes, or use LogisticRegression"
            raise ParameterError("classes", "Only binary classification is supported.", fix=fix)
        return SmoothedHinge(float(to_rational_between("width", self.width, *_WIDTHS)))


class Ridge(RegressorMixin, PrivateLinearModel):
    """Linear regression with the penalty `alpha`, as scikit-learn has it, on scaled features and targets.

    `target_bounds` = (low, high) are declared. Targets outside are read as the nearest bound, and are scaled to
    [-1, 1]: J(w) = sum of squares/2 + alpha |w|^2/2, where a residual beyond 2 counts linearly unless the method is
    "newton", which learns from sufficient statistics.
    """

    _strength = "alpha"

    def __init__(
        self,
        epsilon: Any = None,
        delta: Any = None,
        *,
        target_bounds: Any = None,
        bounds: Any = None,
        norm: Any = None,
        rows: Any = None,
        neighbors: Any = "add-remove",
        alpha: Any = None,
        method: Any = "auto",
        fit_intercept: bool = True,
        intercept_scaling: Any = 0.5,
        missing: Any = "error",
        bits: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.bounds = bounds
        self.norm = norm
        self.rows = rows
        self.neighbors = neighbors
        self.alpha = alpha
        self.method = method
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.missing = missing
        self.bits = bits

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The target of each row."""
        return self._scores(X)

    def _loss(self) -> ConvexLoss:
        self._target()
        return HuberLoss(1.0)

    def _lambda(self, strength: float) -> float:
        return strength

    def _target(self) -> tuple[float, float]:
        """The middle of the targets and half their width."""
        if self.target_bounds is None:
            what = "are not declared, and are never read from the data"
            raise ParameterError("target_bounds", what, fix="target_bounds=(0, 100), say")
        try:
            low, high = (float(to_rational("target_bounds", end)) for end in self.target_bounds)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not low < high:
            raise ParameterError("target_bounds", "must be two numbers, the lower one first", fix="(0, 100), say")
        if max(-low, high) > _TARGETS[0] or high - low < _TARGETS[1]:
            what = "must be within 1e100 of 0, and 1e-100 apart"
            raise ParameterError("target_bounds", what, fix="predict the target in other units")
        return (low + high) / 2, (high - low) / 2

    def _read(self, X: Any, y: Any) -> tuple[Array, Array]:  # noqa: N803
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite(), y_numeric=True)
        return features, column_or_1d(target, warn=True)

    def _encode(self, target: Array) -> Array:
        middle, half = self._target()
        known = np.asarray(target, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are beyond the ends
            return np.clip(np.nan_to_num((known - middle) / half, nan=0.0), -1.0, 1.0)

    @property
    def _most_points(self) -> int:
        return _GRID

    def _points(self, X: Any, target: Array) -> tuple[Array, int]:  # noqa: N803
        """The squared error of what is clipped to the bounds, off the most there can be, on a grid."""
        error = self._encode(self.predict(X)) - self._encode(target)
        return _GRID - on_grid(error**2 / 4, _GRID, _GRID).astype(np.int64), self._most_points

    def _show(self, coefficients: Array, intercept: Array) -> None:
        middle, half = self._target()
        self.coef_ = coefficients * half
        self.intercept_ = float(intercept) * half + middle
