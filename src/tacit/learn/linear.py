"""Linear classifiers: logistic regression and a support vector classifier."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from tacit.arithmetic import Number, to_rational_between
from tacit.learn import labels
from tacit.learn.base import PrivateLinearModel
from tacit.learn.facts import BitSource, Bounds, Missing
from tacit.learn.labels import check_discrete
from tacit.learn.losses import Array, ConvexLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.multiclass_hinge import MulticlassHinge

_WIDTHS = Fraction(1, 16), Fraction(512)  # of a hinge: for these, all methods are proved to end


class _Classifier(ClassifierMixin, PrivateLinearModel):
    """What the classifiers share: declared classes, and `C` as scikit-learn has it, on scaled features.

    J(w) = sum of losses + |w|^2/(2 C). Where `C` is None each method has a rule of its own, from public facts.
    """

    _strength = "C"

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Compute the score of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
            The scores: above 0 for the second class of two, else one for each class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

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

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_discrete(target)
        return features, target

    def _encode(self, target: Array) -> Array:
        classes = self._classes()
        places = labels.encode_labels(classes, target)
        return 2.0 * places - 1 if len(classes) == 2 else places.astype(np.float64)

    @property
    def _most_points(self) -> int:
        return 1

    def _points(self, X: npt.ArrayLike, target: Array) -> tuple[Array, int]:
        """A point for each right class."""
        return np.asarray(self.predict(X) == target, dtype=np.int64), self._most_points

    def _show(self, coefficients: Array, intercept: Array) -> None:
        """One row of coefficients for two classes, else one a class."""
        self.classes_ = self._classes()
        self.coef_ = np.atleast_2d(coefficients.T)
        self.intercept_ = np.atleast_1d(intercept)


class LogisticRegression(_Classifier):
    """Logistic regression for two declared classes, multinomial for more, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP, where one row is one unit: it releases the weights by one of four methods,
    each with its proof (`learn/output.py`, `objective.py`, `gradient.py`, `newton.py`), and all else is computed from
    these.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None. At 0 only output perturbation is
        possible.
    classes : collection, optional
        All labels that may occur, two or more, of one type. They are declared, since which labels occur is private.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them, and columns are scaled by them to [-1, 1].
    norm : number, optional
        The largest L2 norm of a row once its columns are scaled; longer rows are shortened to it. A smaller one needs
        less noise: one-hot columns of k categories have a norm of sqrt(k). Where `bounds` is None, it is that of the
        rows as they are.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted. The guarantees of "output" and "objective" are for at most 4,096 times as many
        as are declared, or as 16,384 (64 times on machines without extended precision).
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    C : number, optional
        Inverse strength of the regularization, positive: the sum of losses plus |w|^2/(2 C) is minimized, on scaled
        columns. Where it is None, the method has a rule of its own, from public facts.
    method : {"auto", "output", "objective", "gradient", "newton"}
        How the weights are made private: by noise on the minimizer, a random linear term in the objective, noisy
        gradients, or noisy second moments with noisy gradients. "auto" chooses by public facts.
    fit_intercept : bool
        Whether a constant column is added. Its weight is regularized like the others.
    intercept_scaling : number
        The constant column's value in units of the norm, from 0 to 1000; a larger one is regularized less and adds
        noise. The default was chosen on synthetic data (benchmarks/rules.md).
    scaling : {"auto", "bounds", "norm", "ranges"}
        How rows are scaled: columns to [-1, 1] by the declared bounds, and nothing learned; or rows to the length that
        most of them have ("norm", `learn/row_norm.py`); or that, and columns by ranges inside of the bounds that hold
        most values ("ranges", `learn/column_ranges.py`). Values beyond a range are clipped to it, and longer rows are
        shortened. "auto" learns each where public facts say that an eighth of epsilon or less is enough for it.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights in the columns' own units; one row for two classes.
    intercept_ : array
        The constant term of each row of `coef_`.
    classes_ : array
        The declared classes, sorted.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        The method that was used.
    ranges_ : pair of arrays
        The lower and the upper ends that columns were clipped to and scaled by.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
    >>> settings = {"classes": [0, 1], "bounds": (18, 90), "rows": 3000, "bits": partial(ReplayBits, b"doc")}
    >>> model = LogisticRegression(epsilon=1, **settings)
    >>> model.fit(ages, sick).predict([[25.0], [75.0]]).tolist()
    [0, 1]
    >>> print(float(model.guarantee_.epsilon), model.method_)
    1.0 objective
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        norm: Number | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        C: float | None = None,
        method: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: Number = 0.5,
        scaling: str = "auto",
        missing: Missing = "error",
        bits: BitSource | None = None,
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
        self.scaling = scaling
        self.missing = missing
        self.bits = bits

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

        Where residuals are clipped at c, a score s balances c p' and q' p, for the probability p of the likelier class,
        p' of the other, and q' = 1/(1 + exp|s|) below 1 - c. So p' is not q' there but q'/(c + q').

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
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
    """A linear support vector classifier for declared classes, under differential privacy.

    Its hinge loss is smoothed within `width` of the margin; of three classes or more it is one loss of all scores
    (`learn/multiclass_hinge.py`), which one row moves less than it moves one classifier for each class.
    **Theorem.** A fit is `guarantee_`-DP, where one row is one unit: see `LogisticRegression`.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None. At 0 only output perturbation is
        possible.
    classes : collection, optional
        All labels that may occur, two or more, of one type. They are declared, since which labels occur is private.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them, and columns are scaled by them to [-1, 1].
    norm : number, optional
        The largest L2 norm of a row once its columns are scaled; longer rows are shortened to it. A smaller one needs
        less noise: one-hot columns of k categories have a norm of sqrt(k). Where `bounds` is None, it is that of the
        rows as they are.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted. The guarantees of "output" and "objective" are for at most 4,096 times as many
        as are declared, or as 16,384 (64 times on machines without extended precision).
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    C : number, optional
        Inverse strength of the regularization, positive: the sum of losses plus |w|^2/(2 C) is minimized, on scaled
        columns. Where it is None, the method has a rule of its own, from public facts.
    width : number
        How far from the margin the hinge is rounded off, from 1/16 to 512, in units of the score.
    method : {"auto", "output", "objective", "gradient", "newton"}
        How the weights are made private: by noise on the minimizer, a random linear term in the objective, noisy
        gradients, or noisy second moments with noisy gradients. "auto" chooses by public facts. For three classes or
        more there are "gradient", which "auto" then is, and "newton".
    fit_intercept : bool
        Whether a constant column is added. Its weight is regularized like the others.
    intercept_scaling : number
        The constant column's value in units of the norm, from 0 to 1000; a larger one is regularized less and adds
        noise. The default was chosen on synthetic data (benchmarks/rules.md).
    scaling : {"auto", "bounds", "norm", "ranges"}
        How rows are scaled: columns to [-1, 1] by the declared bounds, and nothing learned; or rows to the length that
        most of them have ("norm", `learn/row_norm.py`); or that, and columns by ranges inside of the bounds that hold
        most values ("ranges", `learn/column_ranges.py`). Values beyond a range are clipped to it, and longer rows are
        shortened. "auto" learns each where public facts say that an eighth of epsilon or less is enough for it.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights in the columns' own units; one row for two classes.
    intercept_ : array
        The constant term of each row of `coef_`.
    classes_ : array
        The declared classes, sorted.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        The method that was used.
    ranges_ : pair of arrays
        The lower and the upper ends that columns were clipped to and scaled by.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
    >>> model = LinearSVC(epsilon=1, classes=[0, 1], bounds=(18, 90), rows=3000, bits=partial(ReplayBits, b"doc"))
    >>> model.fit(ages, sick).predict([[25.0], [75.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        norm: Number | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        C: float | None = None,
        width: Number = 0.5,
        method: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: Number = 0.5,
        scaling: str = "auto",
        missing: Missing = "error",
        bits: BitSource | None = None,
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
        self.scaling = scaling
        self.missing = missing
        self.bits = bits

    def _loss(self) -> ConvexLoss:
        classes, width = len(self._classes()), float(to_rational_between("width", self.width, *_WIDTHS))
        return SmoothedHinge(width) if classes == 2 else MulticlassHinge(classes, width)
