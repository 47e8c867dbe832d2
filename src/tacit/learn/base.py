"""What the private linear models share: declared parameters, and a privacy loss that is known before a fit.

**Guarantee.** A fit releases the weights, from which all fitted attributes and predictions are computed; they cost
`loss_`, which is within `guarantee_`. Both are set before a value of the data is used, so they stand where a fit is
stopped half-way. `guarantee_` is for one fit: fits add up (`tacit.privacy.guarantee.together`). Scores are computed
from the rows they are given, without noise: on private rows they are for whoever holds these. Errors about what the
rows hold are too; a curator's analysts never see them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.errors import ParameterError
from tacit.learn.auto import plan_method
from tacit.learn.facts import BitSource, DeclaredParameters
from tacit.learn.losses import Array, ConvexLoss
from tacit.learn.method import Method
from tacit.learn.problem import RiskMinimization
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits, SystemBits

_SEARCHES = "sklearn.model_selection"


@dataclass(frozen=True)
class FitPlan:
    """All that a fit will do, decided by what is declared."""

    facts: DeclaredParameters
    loss: ConvexLoss
    name: str
    method: Method

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the fit, as the accountants read it."""
        return self.method.privacy_loss

    @property
    def guarantee(self) -> DpGuarantee:
        """The guarantee of the fit."""
        return self.facts.guarantee

    def weights(self, features: Array, labels: Array, bits: Bits) -> Array:
        """The released weights for rows as they lie, and labels as the loss takes them."""
        problem = RiskMinimization(
            self.facts.read(features),
            labels,
            self.loss,
            self.facts.norm,
            self.facts.neighbors,
            self.facts.rows,
            self.method.penalty,
        )
        return self.method.fit(problem, bits)


class PrivateLinearModel(BaseEstimator):
    """A linear model, fitted under differential privacy; one row is one unit.

    Its parameters, which each estimator documents, are public; they are stored as given and read when a fit begins.
    """

    _strength: ClassVar[str]  # the parameter that says how strong the regularization is

    def facts(self, features: int, rows: int | None = None) -> DeclaredParameters:
        """Read the declared parameters for so many columns.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        DeclaredParameters
            The parameters as exact numbers, one bound for each column.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        return DeclaredParameters.from_settings(
            columns=features,
            found=rows,
            epsilon=self.epsilon,
            delta=self.delta,
            bounds=self.bounds,
            norm=self.norm,
            rows=self.rows,
            neighbors=self.neighbors,
            intercept=self.intercept_scaling if self.fit_intercept else 0,
            missing=self.missing,
        )

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
        facts, loss = self.facts(features, rows), self._loss()
        name, method = plan_method(self.method, facts, loss, self._penalty())
        return FitPlan(facts, loss, name, method)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **refused: object) -> Self:
        """Learn from rows, at the privacy loss `guarantee_`.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows: one row is one unit. Numbers, NaN only where `missing` says what it is read as.
        y : array of shape (n_rows,)
            The target of each row: a declared class, or a number.
        **refused : object
            Not accepted: weights of rows would multiply what a row can change.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range, if the rows do not fit what is declared, or inside scikit-learn's
            searches, which would choose by unprotected scores.
        """
        check_fit_call(refused)
        clear_fitted_attributes(self)
        features, target = self._read(X, y)
        plan = self.plan(features.shape[1], len(features))
        self.guarantee_, self.loss_, self.method_ = plan.guarantee, plan.privacy_loss, plan.name
        return self.take(plan, plan.weights(features, self._encode(target), resolve_bits(self.bits)))

    def take(self, plan: FitPlan, weights: Array) -> Self:
        """Set the fitted attributes from released weights.

        Parameters
        ----------
        plan : FitPlan
            The plan that the weights were released by.
        weights : array
            The released weights, on scaled columns.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.guarantee_, self.loss_, self.method_ = plan.guarantee, plan.privacy_loss, plan.name
        self.n_features_in_, self._facts = plan.facts.columns, plan.facts
        self._cut = plan.method.cut
        coefficients, intercept = plan.facts.in_units(weights)
        self._show(coefficients, intercept)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.non_deterministic = True
        return tags

    def _scores(self, X: npt.ArrayLike) -> Array:
        """x coef + intercept for each row, read as the rows of the fit were."""
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=self._finite())
        return np.asarray(self._facts.read_unscaled(features) @ self.coef_.T + self.intercept_)

    def _finite(self) -> bool | str:
        return True if self.missing == "error" else "allow-nan"

    def _penalty(self) -> float | None:
        """Lambda, where the strength is declared."""
        value = getattr(self, self._strength)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise ParameterError(self._strength, f"must be a positive number, got {value!r:.40}", fix="1.0, or None")
        return self._lambda(float(value))

    def _loss(self) -> ConvexLoss:
        """The loss, by what is declared."""
        raise NotImplementedError

    def _lambda(self, strength: float) -> float:
        raise NotImplementedError

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """The rows and targets as arrays of the right shapes."""
        raise NotImplementedError

    def _encode(self, target: Array) -> Array:
        """The targets as the loss takes them."""
        raise NotImplementedError

    @property
    def _most_points(self) -> int:
        """The most points that a row can have."""
        raise NotImplementedError

    def _points(self, X: npt.ArrayLike, target: Array) -> tuple[Array, int]:
        """How well each row is predicted, as whole points from 0 to the most there are."""
        raise NotImplementedError

    def _show(self, coefficients: Array, intercept: Array) -> None:
        """Set coef_, intercept_ and what goes with them."""
        raise NotImplementedError


def resolve_bits(bits: BitSource | None) -> Bits:
    """The source of bits that a parameter means."""
    if bits is None:
        return SystemBits()
    source = bits if hasattr(bits, "words") else bits()
    if not hasattr(source, "words"):
        raise ParameterError("bits", "is no source of bits", fix="leave it out")
    found: Bits = source
    return found


def clear_fitted_attributes(estimator: BaseEstimator) -> None:
    """Delete what an earlier fit set, so that one that is stopped leaves no model, but its privacy loss."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def check_fit_call(unknown: dict[str, object]) -> None:
    """Refuse weights of rows, and fits inside a search that would choose by unprotected scores."""
    for name in unknown:
        what = "weighing rows would multiply what a row can change" if name == "sample_weight" else "is not understood"
        raise ParameterError(name, what, fix="leave it out")
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_SEARCHES):
            what = "scikit-learn's searches and cross-validation fit many times and choose by unprotected scores"
            fix = "tacit.learn.PrivateSearchCV has one guarantee for all of it"
            raise ParameterError("fit", what, fix=fix)
        frame = frame.f_back
