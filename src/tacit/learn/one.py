"""What the estimators of one release share: declared parameters, a privacy loss that is known before a fit.

**Guarantee.** A fit releases noisy sums, from which all fitted attributes are computed; they cost `loss_`, which is
within `guarantee_`. Both are set before a value of the data is used, so they stand where a fit is stopped half-way.
`guarantee_` is for one fit: fits add up, and `tacit.learn.budget` adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.learn.base import (
    PrivateEstimator,
    check_fit_arguments,
    clear_fitted_attributes,
    resolve_bits,
    select_rows,
)
from tacit.learn.facts import DeclaredParameters
from tacit.learn.fit_budget import charge_fit
from tacit.learn.losses import Array
from tacit.learn.read_rows import read_fit_rows, read_new_rows
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits


class PlannedRelease(Protocol):
    """Calibrated noise whose privacy loss is known."""

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of all that is released."""


ReleaseT = TypeVar("ReleaseT", bound=PlannedRelease)


@dataclass(frozen=True, eq=False)
class ReleasePlan(Generic[ReleaseT]):
    """All that a fit will do, decided by what is declared."""

    facts: DeclaredParameters
    release: ReleaseT

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the fit, as the accountants read it."""
        return self.release.privacy_loss

    @property
    def guarantee(self) -> DpGuarantee:
        """The guarantee of the fit."""
        return self.facts.guarantee


class OneShotEstimator(PrivateEstimator):
    """An estimator of noisy sums over bounded rows; one row is one unit.

    Its parameters, which each estimator documents, are public; they are stored as given and read when a fit begins.
    """

    _last: ClassVar[str]  # the attribute that a fit sets last

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
        return self._read_settings(self.bounds, features, rows)

    def _read_settings(self, bounds: Any, features: int, rows: int | None) -> DeclaredParameters:
        return DeclaredParameters.from_settings(
            columns=features,
            found=rows,
            epsilon=self.epsilon,
            delta=self.delta,
            bounds=bounds,
            rows=self.rows,
            neighbors=self.neighbors,
            intercept=0,
            missing=self.missing,
        )

    def plan(self, features: int, rows: int | None = None) -> ReleasePlan[Any]:
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
            The release, its privacy loss and its guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        raise NotImplementedError

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        public: bool = False,
        **refused: object,
    ) -> Self:
        """Learn from rows, at the privacy loss `guarantee_`.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows: one row is one unit. Numbers, NaN only where `missing` says what it is read as.
        y : array of shape (n_rows,), optional
            The label of each row, where the estimator is a classifier; else ignored.
        public : bool
            Whether the rows are public: the fit then is not charged to a budget.
        **refused : object
            Not accepted: `sample_weight` would multiply what a row can change, and noise that a `random_state`
            repeats protects nobody.

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
        return self._fit(X, y, None, public)

    def _fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None, weights: npt.ArrayLike | None, public: bool) -> Self:
        clear_fitted_attributes(self)
        features, target = select_rows(weights, *read_fit_rows(self, X, y), self.neighbors)
        plan = self.plan(features.shape[1], len(features))
        charge_fit(self, plan.guarantee, plan.privacy_loss, public=public)
        self.guarantee_, self.loss_, self._facts = plan.guarantee, plan.privacy_loss, plan.facts
        self._learn(plan, features, target, resolve_bits(self.bits))
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._last)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.non_deterministic = self.bits is None
        return tags

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Any]:
        """The rows as an array, and the targets where there are any."""
        return validate_data(self, X, dtype=np.float64, ensure_all_finite=self._finite()), None

    def _again(self, X: npt.ArrayLike) -> Array:
        """Rows for a fitted model, read as those of the fit were, in their own units."""
        check_is_fitted(self)
        features = read_new_rows(self, X)
        return clip_rows(self._facts, features)

    def _finite(self) -> bool | str:
        return True if self.missing == "error" else "allow-nan"

    def _learn(self, plan: ReleasePlan[Any], features: Array, target: Any, bits: Bits) -> None:
        """Draw the noise, and set what is fitted."""
        raise NotImplementedError


def center_and_half_width(facts: DeclaredParameters) -> tuple[Array, Array]:
    """The middle of each column's bounds, and half their width: one where the bounds are equal."""
    half = facts.upper / 2 - facts.lower / 2
    return facts.lower / 2 + facts.upper / 2, np.where(half > 0, half, 1.0)


def clip_rows(facts: DeclaredParameters, features: Array) -> Array:
    """The rows with NaN as declared, and each value within its bounds. Every row's reading is its own."""
    known = features if facts.missing is None else np.where(np.isnan(features), facts.missing, features)
    return np.clip(known, facts.lower, facts.upper)


def scale_rows(facts: DeclaredParameters, features: Array) -> Array:
    """The rows with each column scaled from its bounds to [-1, 1]."""
    middle, half = center_and_half_width(facts)
    return np.asarray((clip_rows(facts, features) - middle) / half)
