"""Naive Bayes: each class has a normal distribution in each column, learned from noisy counts and moments."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from tacit.arithmetic import Number, to_rational
from tacit.errors import ParameterError
from tacit.learn.base import check_fit_arguments
from tacit.learn.columns import GroupMoments, estimate_moments
from tacit.learn.facts import BitSource, Bounds, Missing
from tacit.learn.labels import check_classes, check_discrete, encode_labels
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, ReleasePlan, center_and_half_width, scale_rows
from tacit.sampling.bits import Bits


class GaussianNB(ClassifierMixin, OneShotEstimator):
    """Gaussian naive Bayes for declared classes, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: a row is in one
    class, so its count and moments are in one group of `GroupMoments`; all else is computed from what that releases.

    No variance is taken to be below the deviation of its noise; and where the noise on a mean is large beside the
    number of rows, the mean is drawn to the middle of the bounds, and the variance to that of a uniform distribution,
    as Bayes' rule has it.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None.
    classes : collection, optional
        All labels that may occur, two or more, of one type. They are declared, since which labels occur is private.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in predictions.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    priors : array, optional
        The probabilities of the sorted classes, above 0 and one in all. Where it is None, they are the shares of the
        noisy counts.
    var_smoothing : number
        The least variance, as a share in (0, 1] of the square of half a column's width.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    theta_, var_ : array of shape (n_classes, n_features)
        The mean and the variance of each column in each class.
    class_count_ : array
        The noisy number of rows of each class.
    class_prior_ : array
        The probability of each class.
    classes_ : array
        The declared classes, sorted.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
    >>> model = GaussianNB(epsilon=1, classes=[0, 1], bounds=(18, 90), rows=3000, bits=partial(ReplayBits, b"doc"))
    >>> model.fit(ages, sick).predict([[25.0], [75.0]]).tolist()
    [0, 1]
    >>> model.theta_.round().tolist()  # the means of 20 .. 49 and of 50 .. 79 are 34.5 and 64.5
    [[34.0], [65.0]]
    """

    _last = "var_"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        priors: npt.ArrayLike | None = None,
        var_smoothing: Number = 1e-9,
        missing: Missing = "error",
        bits: BitSource | None = None,
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
        """Plan a fit: what it would do and cost. No data is needed.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        ReleasePlan
            The noisy counts and moments of the classes, their privacy loss and guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        self._priors()
        self._floor()
        groups = len(check_classes(self.classes))
        shape = {"groups": groups, "columns": features, "degree": 2}
        return ReleasePlan(
            facts, GroupMoments.calibrate(facts.epsilon, facts.delta, **shape, neighbors=facts.neighbors)
        )

    def fit(  # type: ignore[override]  # the others refuse weights
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        public: bool = False,
        **refused: object,
    ) -> Self:
        """Learn from rows, at the privacy loss `guarantee_`.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows: one row is one unit. Numbers, NaN only where `missing` says what it is read as.
        y : array of shape (n_rows,)
            The label of each row, one of the declared classes.
        sample_weight : array of shape (n_rows,), optional
            1 for a row to learn from and 0 for one to leave out; no other weight, which would multiply what a row can
            change.
        public : bool
            Whether the rows are public: the fit then is not charged to a budget.
        **refused : object
            Not accepted; `random_state` is not, since noise that can be repeated protects nobody.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range, or if the rows do not fit what is declared.
        Refused
            Before a value of the data is used, if a budget (`tacit.learn.budget`) does not admit the fit.
        """
        check_fit_arguments(refused)
        return self._fit(X, y, sample_weight, public)

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict the class of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,)
            A class for each row.
        """
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Probabilities in the order of `classes_`, one in all for each row.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        from scipy.special import log_softmax

        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    def predict_joint_log_proba(self, X: npt.ArrayLike) -> Array:
        """Compute the logarithm of each class's probability times the density of the row in it.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Unnormalized log-probabilities, in the order of `classes_`.
        """
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

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Any]:
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_discrete(target)
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
