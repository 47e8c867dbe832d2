"""Additive models: a shape for each column, learned together under differential privacy.

>>> hats = HatBasis.of(lower=[0, 0], upper=[10, 2], knots=[3, 3])
>>> hats.read(np.array([[2.5, 1.0]])).tolist()  # halfway between the knots 0 and 5; at the knot 1
[[0.5, 0.5, 0.0, 0.0, 1.0, 0.0]]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.learn.base import FitPlan, check_fit_call, clear_fitted_attributes
from tacit.learn.facts import DeclaredParameters
from tacit.learn.linear import LogisticRegression
from tacit.learn.losses import Array
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
    def of(cls, lower: Any, upper: Any, knots: Any) -> HatBasis:
        """Hats of so many knots for each column, or for all."""
        low, high = (np.asarray(end, dtype=np.float64) for end in (lower, upper))
        counts = [knots] * len(low) if np.ndim(knots) == 0 else list(knots)
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


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on shapes: the score of a row is a sum of a function of each of its columns.

    Each function is a line between `knots`, so many for all columns or one number a column. A column of categories
    holds whole numbers from 0 to k - 1 and has k knots: a height of its own for each. The functions are `shapes_`, a
    pair a column: where the knots are, and how high. The number of knots that is there without a word was settled on
    made-up data (benchmarks/rules.md). All other parameters are those of `LogisticRegression`, which learns the heights
    in one fit, whose guarantee this has: the reading of rows is declared (`HatBasis`).
    """

    def __init__(
        self,
        epsilon: Any = None,
        delta: Any = None,
        *,
        classes: Any = None,
        bounds: Any = None,
        knots: Any = 8,
        rows: Any = None,
        neighbors: Any = "add-remove",
        C: Any = None,  # noqa: N803 - scikit-learn's name
        method: Any = "auto",
        missing: Any = "error",
        bits: Any = None,
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
        """What a fit on so many columns would do and cost. No data is needed."""
        return self._heights(features).plan(self._hats(self._read_settings(features, rows)).width, rows)

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:  # noqa: N803
        """Learn the shapes from the rows of X with the labels y. Costs `guarantee_`."""
        check_fit_call(refused)
        clear_fitted_attributes(self)
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_classification_targets(target)
        columns = features.shape[1]
        plan = self.plan(columns, len(features))
        self.guarantee_, self.loss_, self.method_ = plan.guarantee, plan.privacy_loss, plan.name
        facts = self._read_settings(columns, len(features))
        hats = self._hats(facts)
        heights = self._heights(columns).fit(hats.read(self._fill_missing(features)), target)
        self._model, self._basis = heights, hats
        self.classes_ = heights.classes_
        each = np.split(heights.coef_, np.cumsum(hats.knots)[:-1], axis=1)
        self.shapes_ = [
            (hats.positions(column), part[0] if len(part) == 1 else part) for column, part in enumerate(each)
        ]
        return self

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """The score of each row: above 0 for the second class of two, else one for each class."""
        return self._require_model().decision_function(self._again(X))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The class of each row."""
        return self._require_model().predict(self._again(X))

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probability of each class, for each row."""
        return self._require_model().predict_proba(self._again(X))

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """The logarithms of these."""
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
            bits=self.bits,
        )

    def _require_model(self) -> LogisticRegression:
        check_is_fitted(self)
        return self._model

    def _again(self, X: Any) -> Array:  # noqa: N803
        features = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=self._finite())
        return self._basis.read(self._fill_missing(features))

    def _fill_missing(self, features: Array) -> Array:
        """The rows with NaN as declared."""
        return features if self.missing == "error" else np.where(np.isnan(features), float(self.missing), features)

    def _finite(self) -> bool | str:
        return True if self.missing == "error" else "allow-nan"
