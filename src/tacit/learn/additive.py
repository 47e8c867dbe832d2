"""Additive models: a shape for each column, learned together under differential privacy.

>>> hats = HatBasis.of(lower=[0, 0], upper=[10, 2], knots=[3, 3])
>>> hats.read(np.array([[2.5, 1.0]])).tolist()  # halfway between the knots 0 and 5; at the knot 1
[[0.5, 0.5, 0.0, 0.0, 1.0, 0.0]]
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.arithmetic import Number, to_integer
from tacit.errors import ParameterError
from tacit.learn.base import FitPlan, PrivateEstimator, check_fit_arguments, clear_fitted_attributes, select_rows
from tacit.learn.facts import BitSource, Bounds, DeclaredParameters, Missing
from tacit.learn.fit_budget import charge_fit
from tacit.learn.labels import check_discrete
from tacit.learn.linear import LogisticRegression
from tacit.learn.losses import Array
from tacit.learn.read_rows import read_fit_rows, read_new_rows
from tacit.learn.sums import on_grid

_MOST_KNOTS = 1000


@dataclass(frozen=True, eq=False)
class HatBasis:
    """Each column as its weights on knots that are evenly spaced between its bounds: those on both sides of a value.

    **Theorem.** A row's reading is a function of that row and of what is declared, and has a norm of at most the root
    of the number of columns. Proof: a value at the share t of the way between two knots has the weights 1 - t and t, of
    which (1 - t)^2 + t^2 <= 1. A column with one knot has its place between the bounds, in [0, 1].

    A linear model of these is a sum of functions of one column each, linear between knots. Whole numbers from 0 to
    k - 1 with k knots are marks, one a category.
    """

    lower: Array
    upper: Array
    knots: tuple[int, ...]

    @classmethod
    def of(cls, lower: npt.ArrayLike, upper: npt.ArrayLike, knots: int | Sequence[int]) -> HatBasis:
        """Hats of so many knots for each column, or for all."""
        low, high = (np.asarray(end, dtype=np.float64) for end in (lower, upper))
        counts = list(knots) if isinstance(knots, Sequence | np.ndarray) else [knots] * len(low)
        if len(counts) != len(low):
            raise ParameterError("knots", f"do not fit {len(low)} columns", fix="give a number, or one a column")
        found = tuple(to_integer("knots", count, least=1) for count in counts)
        if max(found, default=1) > _MOST_KNOTS:
            raise ParameterError("knots", f"are more than {_MOST_KNOTS:,}", fix="knots=8, say")
        return cls(low, high, found)

    @property
    def width(self) -> int:
        """The numbers of a row."""
        return sum(self.knots)

    def read(self, features: Array) -> Array:
        """The rows as weights on knots."""
        found = np.zeros((len(features), self.width))
        rows, start = np.arange(len(features)), 0
        for column, count in enumerate(self.knots):
            span = float(self.upper[column] - self.lower[column])
            share = np.clip((features[:, column] - self.lower[column]) / span, 0, 1) if span else np.zeros(len(rows))
            if count == 1:
                found[:, start] = share
            else:
                place = share * (count - 1)
                below = np.minimum(on_grid(place, 1.0, count - 1).astype(np.intp), count - 2)
                found[rows, start + below] = 1 - (place - below)
                found[rows, start + below + 1] = place - below
            start += count
        return found

    def positions(self, column: int) -> Array:
        """Where a column's knots are, in its own units."""
        return np.linspace(self.lower[column], self.upper[column], self.knots[column])


class AdditiveClassifier(ClassifierMixin, PrivateEstimator):
    """Logistic regression on piecewise linear functions: the score of a row is a sum of a function of each column.

    **Theorem.** A fit is `guarantee_`-DP, where one row is one unit: `LogisticRegression` learns the heights of all
    functions in one fit, and the reading of a row depends on that row and on what is declared (`HatBasis`).

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
        clipped to them.
    knots : int or sequence of int
        How many evenly spaced knots each column's function has, from 1 to 1000: one number for all columns, or one for
        each. More follow the data closer and need more rows. A column of categories holds whole numbers from 0 to k - 1
        and has k knots. The default was chosen on synthetic data (benchmarks/rules.md).
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
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    shapes_ : list of pairs of arrays
        For each column, where its knots are and how high its function is there; a row of heights for each class where
        there are more than two.
    classes_ : array
        The declared classes, sorted.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        The method that was used.

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
    >>> model = AdditiveClassifier(epsilon=1, knots=4, **settings).fit(ages, sick)
    >>> model.predict([[25.0], [75.0]]).tolist()
    [0, 1]
    >>> model.shapes_[0][0].tolist()
    [18.0, 42.0, 66.0, 90.0]
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        knots: int | Sequence[int] = 8,
        rows: int | None = None,
        neighbors: str = "add-remove",
        C: float | None = None,
        method: str = "auto",
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.knots = knots
        self.rows = rows
        self.neighbors = neighbors
        self.C = C
        self.method = method
        self.missing = missing
        self.bits = bits

    def plan(self, features: int, rows: int | None = None) -> FitPlan:
        """Plan a fit: what it would do and cost. No data is needed.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        FitPlan
            The method, its noise, its privacy loss and its guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        return self._heights(features).plan(self._hats(self._read_settings(features, rows)).width, rows)

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
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
        clear_fitted_attributes(self)
        features, target = select_rows(sample_weight, *read_fit_rows(self, X, y), self.neighbors)
        columns = features.shape[1]
        plan = self.plan(columns, len(features))
        charge_fit(self, plan.guarantee, plan.privacy_loss, public=public)
        self.guarantee_, self.loss_, self.method_ = plan.guarantee, plan.privacy_loss, plan.name
        facts = self._read_settings(columns, len(features))
        hats = self._hats(facts)
        heights = self._heights(columns)
        heights.fit(hats.read(self._fill_missing(features)), target, public=True)  # charged above
        self._model, self._basis = heights, hats
        self.classes_ = heights.classes_
        each = np.split(heights.coef_, np.cumsum(hats.knots)[:-1], axis=1)
        self.shapes_ = [
            (hats.positions(column), part[0] if len(part) == 1 else part) for column, part in enumerate(each)
        ]
        return self

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
        return self._require_model().decision_function(self._again(X))

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
        return self._require_model().predict(self._again(X))

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
        return self._require_model().predict_proba(self._again(X))

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
        return self._require_model().predict_log_proba(self._again(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shapes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.non_deterministic = True
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) > 2
        return tags

    def _read_settings(self, columns: int, rows: int | None) -> DeclaredParameters:
        return DeclaredParameters.from_settings(
            columns=columns,
            found=rows,
            epsilon=self.epsilon,
            delta=self.delta,
            bounds=self.bounds,
            rows=self.rows,
            neighbors=self.neighbors,
            intercept=0,
            missing=self.missing,
        )

    def _hats(self, facts: DeclaredParameters) -> HatBasis:
        return HatBasis.of(facts.lower, facts.upper, self.knots)

    def _heights(self, columns: int) -> LogisticRegression:
        """What learns the heights. The hats of a column add up to one, so there is no constant to learn beside them."""
        return LogisticRegression(
            self.epsilon,
            self.delta,
            classes=self.classes,
            bounds=(0, 1),
            norm=math.sqrt(columns),
            rows=self.rows,
            neighbors=self.neighbors,
            C=self.C,
            method=self.method,
            fit_intercept=False,
            scaling="bounds",
            bits=self.bits,
        )

    def _require_model(self) -> LogisticRegression:
        check_is_fitted(self)
        return self._model

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """The rows and labels as arrays of the right shapes."""
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_discrete(target)
        return features, target

    def _again(self, X: npt.ArrayLike) -> Array:
        features = read_new_rows(self, X)
        return self._basis.read(self._fill_missing(features))

    def _fill_missing(self, features: Array) -> Array:
        """The rows with NaN as declared."""
        return features if self.missing == "error" else np.where(np.isnan(features), float(self.missing), features)

    def _finite(self) -> bool | str:
        return True if self.missing == "error" else "allow-nan"
