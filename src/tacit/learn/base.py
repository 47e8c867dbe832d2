"""What the private linear models share: declared parameters, and a privacy loss that is known before a fit.

**Guarantee.** A fit releases the weights, from which all fitted attributes and predictions are computed; they cost
`loss_`, which is within `guarantee_`. Both are set before a value of the data is used, so they stand where a fit is
stopped half-way. `guarantee_` is for one fit: fits add up, and `tacit.learn.budget` adds them up. Scores are computed
from the rows they are given, without noise: on private rows they are for whoever holds these. Errors about what the
rows hold are too; a curator's analysts never see them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from tacit.errors import ParameterError
from tacit.learn.auto import THRESHOLDS, TUNED, plan_method, relax_hinge
from tacit.learn.facts import BitSource, DeclaredParameters, read_relation
from tacit.learn.fit_budget import BudgetedEstimator, charge_fit
from tacit.learn.learned_scaling import LearnedScaling, plan_scaling
from tacit.learn.losses import Array, ConvexLoss, HuberLoss
from tacit.learn.method import Method
from tacit.learn.moments import SufficientStatistics
from tacit.learn.problem import RiskMinimization
from tacit.learn.read_rows import read_fit_rows, read_new_rows
from tacit.learn.row_sums import multiply_rows
from tacit.learn.signal import compute_noise_to_signal, warn_of_noise
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.loss import Compose, Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits, SystemBits

_REFUSED = {
    "sample_weight": "weighing rows would multiply what a row can change",
    "random_state": "noise that can be repeated protects nobody",
}


@dataclass(frozen=True)
class FitPlan:
    """All that a fit will do, decided by what is declared.

    Where it is `tuned`, a method that can chooses its penalty by what it has released.
    """

    facts: DeclaredParameters
    loss: ConvexLoss
    name: str
    method: Method
    scaling: LearnedScaling = LearnedScaling()
    tuned: bool = False

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the fit, as the accountants read it."""
        before = self.scaling.losses
        return Compose((*before, self.method.privacy_loss)) if before else self.method.privacy_loss

    @property
    def guarantee(self) -> DpGuarantee:
        """The guarantee of the fit.

        **Theorem.** Where the scaling is learned, it is that of all releases by basic composition: the weights' is
        within its own whatever the scaling is, since a row's reading is a function of the row and of that.
        """
        spent, before = self.facts.guarantee, self.scaling
        return DpGuarantee(spent.epsilon + before.epsilon, spent.delta + before.delta, spent.neighbors)

    @property
    def noise_to_signal(self) -> float:
        """How long the noise of one sum over the rows would be, in units of the longest that the sum can be.

        The sum is that of the rows times their residuals, whose part of a row is at most one; the noise is that of a
        single release at all of epsilon and delta, over all weights. No method has less. It is a public figure.
        """
        return compute_noise_to_signal(self.facts, self.loss.outputs)

    def scale_columns(self, features: Array, bits: Bits) -> FitPlan:
        """The plan with the scaling of rows, which is released here, where it is learned."""
        return replace(self, facts=self.scaling.learn(self.facts, features, bits))

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
        if self.tuned and isinstance(self.method, SufficientStatistics):
            return self.method.fit_tuned(problem, bits, self.facts.constant)
        return self.method.fit(problem, bits)


class PrivateEstimator(BudgetedEstimator):
    """An estimator whose fits are charged to budgets. It has no `random_state`."""

    def __new__(cls, *_: object, **named: object) -> Self:
        """Refuse what is not a parameter, with the reason, before Python does it without one."""
        check_fit_arguments({name: value for name, value in named.items() if name in _REFUSED})
        made: Self = super().__new__(cls)
        return made


class PrivateLinearModel(PrivateEstimator):
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
        declared = {"has_bounds": self.bounds is not None, "has_norm": self.norm is not None}
        scaling = plan_scaling(self.scaling, facts, **declared, is_linear=isinstance(loss, HuberLoss))
        facts = facts.split_off(scaling.epsilon, scaling.delta)
        penalty = self._penalty()
        tuned = penalty is None and self.scaling != "bounds"
        name, method = plan_method(self.method, facts, loss, penalty, TUNED if tuned else THRESHOLDS)
        if tuned:
            method = relax_hinge(name, facts, loss, method)
        return FitPlan(facts, loss, name, method, scaling, tuned)

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
            The target of each row: a declared class, or a number.
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
        plan = self.plan(features.shape[1], len(features))
        charge_fit(self, plan.guarantee, plan.privacy_loss, public=public)
        self.guarantee_, self.loss_, self.method_ = plan.guarantee, plan.privacy_loss, plan.name
        unscaled = self.scaling == "auto" and self.norm is None and plan.scaling.norm is None
        warn_of_noise(plan.facts, plan.loss.outputs, plan.guarantee.epsilon, unscaled=unscaled)
        labels, bits = self._encode(target), resolve_bits(self.bits)
        ready = plan.scale_columns(features, bits)
        return self.take(ready, ready.weights(features, labels, bits))

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
        self.ranges_ = plan.facts.lower, plan.facts.upper
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
        """x coef + intercept for each row, read as the rows of the fit were; a function of that row alone."""
        check_is_fitted(self)
        features = read_new_rows(self, X)
        return np.asarray(multiply_rows(self._facts.read_unscaled(features), self.coef_.T) + self.intercept_)

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


def check_fit_arguments(unknown: dict[str, object]) -> None:
    """Refuse what no private estimator takes, with the reason where there is one."""
    for name in unknown:
        raise ParameterError(name, _REFUSED.get(name, "is not understood"), fix=f"leave {name} out")


def select_rows(weights: npt.ArrayLike | None, features: Array, target: Any, neighbors: str) -> tuple[Array, Any]:
    """The rows of weight 1, and their targets where there are any; an error for weights other than 0 and 1.

    **Theorem.** What is learned from is a part of the rows with each of them at most once, so a row that is added or
    removed is one row of it or none. A weight of 2 would make it two rows, at twice the epsilon and more. Under
    replace a row of weight 1 that becomes one of weight 0 changes how many rows are left, which is public there, so
    no weights are accepted.
    """
    if weights is None:
        return features, target
    if read_relation(neighbors) is Neighbors.REPLACE:
        what = "under replace the number of rows is public, and a row that is replaced may change it by its weight"
        raise ParameterError(
            "sample_weight", what, fix='leave sample_weight out, or neighbors="add-remove", rows=10_000'
        )
    known = column_or_1d(np.asarray(weights, dtype=np.float64), warn=False)
    check_consistent_length(features, known)
    kept = known == 1
    if not np.all(kept | (known == 0)):
        what = "a weight other than 0 or 1 would multiply what a row can change"
        fix = "leave it out; BaggingClassifier takes each row at most once with bootstrap=False, max_samples=0.5"
        raise ParameterError("sample_weight", what, fix=fix)
    if not kept.any():
        raise ParameterError(
            "sample_weight", "all weights are zero, so no row is left", fix="sample_weight=None, for all rows"
        )
    return features[kept], None if target is None else target[kept]
