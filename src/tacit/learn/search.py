"""Private tuning: the best of several private fits, with one guarantee for all of it.

**Theorem.** The best model, its parameters and its noisy score are together `guarantee_`-DP. Proof. A coin that no row
decides puts each row into the part that is learned from or into the part that is held out. A trial draws a candidate,
fits it on the first part and scores it on the second, with Laplace noise. A row that is added, removed or replaced is
in one part: the fit is (e, d)-DP for it, or the score is e-DP; so a trial is (e, d)-DP. `learn/trials.py` says what the
best of K trials costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.arithmetic import Number, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.base import (
    PrivateEstimator,
    PrivateLinearModel,
    check_fit_arguments,
    clear_fitted_attributes,
    resolve_bits,
    select_rows,
)
from tacit.learn.facts import BitSource, DeclaredParameters
from tacit.learn.fit_budget import charge_fit
from tacit.learn.losses import Array
from tacit.learn.read_rows import read_fit_rows
from tacit.learn.trials import TrialCount
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import ApproximateDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below, draw_below

_NOT_TUNABLE = {"epsilon", "delta", "rows", "neighbors", "bits", "classes", "target_bounds", "missing"}


def _has(name: str) -> Any:
    return lambda search: hasattr(search.estimator, name)


class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):
    """Tuning under differential privacy: the best of a random number of private fits.

    **Theorem.** The best model, its parameters and its noisy score are together `guarantee_`-DP (the proof is that of
    the module). How many trials there were is not released, since the guarantee does not cover it; nor is how long they
    took.

    Parameters
    ----------
    estimator : linear model
        The model whose parameters are tuned: `LogisticRegression`, `LinearSVC`, `Ridge`, `LinearRegression`, `Lasso` or
        `ElasticNet`. Its own epsilon and delta are not used. Trees and models of a few sums are not tuned.
    param_grid : mapping or sequence of mappings
        For each tuned parameter the values to try, as in scikit-learn's `ParameterGrid`. They are public, and none may
        be a parameter of the guarantee or of what is learned.
    epsilon : number, optional
        Privacy loss of the whole search, from 1e-9 to 1e9. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None.
    trials : number
        The mean number of fits, from 1.1 to 100,000. It does not change the epsilon of a trial, only its delta.
    distribution : {"logarithmic", "geometric"}
        The distribution of the number of fits. With "logarithmic" a trial has epsilon/2; with "geometric" it has
        epsilon/3, and a single trial is rarer.
    held_out : number
        The share of the rows that models are scored on, from 0.01 to 0.99.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted model with the best noisy score.
    best_params_ : dict
        Its values of the tuned parameters.
    best_score_ : float
        Its noisy score on the held-out rows: about 1 where every row is predicted right.
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
    >>> from tacit.learn import LogisticRegression
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
    >>> model = LogisticRegression(classes=[0, 1], bounds=(18, 90), rows=3000)
    >>> search = PrivateSearchCV(model, {"C": [0.1, 1.0]}, epsilon=2, trials=2, bits=partial(ReplayBits, b"doc"))
    >>> search.fit(ages, sick).predict([[25.0], [75.0]]).tolist()
    [0, 1]
    >>> sorted(search.best_params_)
    ['C']
    """

    def __init__(
        self,
        estimator: PrivateLinearModel,
        param_grid: Mapping[str, Sequence[object]] | Sequence[Mapping[str, Sequence[object]]],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        trials: Number = 10,
        distribution: str = "logarithmic",
        held_out: Number = 0.2,
        bits: BitSource | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.trials = trials
        self.distribution = distribution
        self.held_out = held_out
        self.bits = bits

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        public: bool = False,
        **refused: object,
    ) -> Self:
        """Search, and keep the best model, at the privacy loss `guarantee_`.

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
        model, candidates = self._model(), self._candidates()
        trials = TrialCount.about(self.trials, self.distribution)
        share = to_rational_between("held_out", self.held_out, Fraction(1, 100), Fraction(99, 100))
        features, target = select_rows(sample_weight, *read_fit_rows(model, X, y), model.neighbors)
        facts = model.facts(features.shape[1], len(features))
        each: dict[str, Any] = {"epsilon": facts.epsilon / trials.factor, "delta": facts.delta / trials.mean}
        learned = max(1, round(facts.rows * (1 - share)))
        each["rows"] = learned if facts.neighbors is Neighbors.ADD_REMOVE else None  # then they are counted
        models = [clone(model).set_params(**candidate, **each) for candidate in candidates]
        _check_plans(models, facts, learned)
        lost = ApproximateDp(facts.epsilon, facts.delta)
        charge_fit(self, facts.guarantee, lost, public=public)
        self.guarantee_, self.loss_ = facts.guarantee, lost
        bits = resolve_bits(self.bits)
        found = _run_trials(
            models, trials, features, target, _split_rows(share, len(features), facts.neighbors, bits), bits
        )
        self.best_params_, self.best_estimator_ = candidates[found.candidate], found.model
        self.best_score_ = found.points / (found.most * float(facts.rows * share))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict by the best model.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array
            What the best model predicts for each row.
        """
        return np.asarray(self._best().predict(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Compute the scores of the best model.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
            The scores: above 0 for the second class of two, else one for each class.
        """
        return np.asarray(self._best().decision_function(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the probability of each class by the best model.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Probabilities in the order of `classes_`, one in all for each row.
        """
        return np.asarray(self._best().predict_proba(X))

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Score the best model on these rows, without noise.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.
        y : array of shape (n_rows,)
            The true target of each row.

        Returns
        -------
        float
            The accuracy or R^2, for whoever holds the rows: it is not private.
        """
        return float(self._best().score(X, y))

    @property
    def classes_(self) -> Array:
        """The classes of a classifier."""
        return np.asarray(self._best().classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.non_deterministic = inner.estimator_type, True
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    def _best(self) -> PrivateLinearModel:
        check_is_fitted(self)
        found: PrivateLinearModel = self.best_estimator_
        return found

    def _model(self) -> PrivateLinearModel:
        """The estimator with the epsilon and delta of the whole search."""
        if not isinstance(self.estimator, PrivateLinearModel):
            name = type(self.estimator).__name__
            if isinstance(self.estimator, PrivateEstimator):
                what = (
                    f"only linear models are tuned, and {name} is none: its rows have no scores of bounded points here"
                )
                fix = f"fit {name} with its defaults, which were chosen on made-up data, or tune LogisticRegression"
                raise ParameterError("estimator", what, fix=fix)
            what = f"is no private estimator: {name}"
            raise ParameterError("estimator", what, fix="use one of tacit.learn, such as LogisticRegression")
        found: PrivateLinearModel = clone(self.estimator).set_params(epsilon=self.epsilon, delta=self.delta, bits=None)
        return found

    def _candidates(self) -> list[dict[str, Any]]:
        """The public list of what is tried."""
        found = [dict(candidate) for candidate in ParameterGrid(self.param_grid)]
        for name in sorted({name for candidate in found for name in candidate} & _NOT_TUNABLE):
            what = f"{name} is not a choice: it says what is protected, or what is learned"
            raise ParameterError("param_grid", what, fix=f"leave {name} out")
        if not found:
            raise ParameterError("param_grid", "is empty", fix='{"C": [0.1, 1, 10]}, say')
        return found


@dataclass(frozen=True)
class _BestTrial:
    """The best trial so far."""

    points: int
    most: int
    candidate: int
    model: PrivateLinearModel


def _check_plans(models: Sequence[PrivateLinearModel], facts: DeclaredParameters, learned: int) -> None:
    """Plan each candidate, so that one that cannot be is an error before anything is spent.

    Under REPLACE a trial counts the rows that it learns from, which are drawn: from one row to all. What can be planned
    depends on them only by the method that `choose_method` takes, for few or for many.
    """
    counts = (learned,) if facts.neighbors is Neighbors.ADD_REMOVE else (1, facts.rows)
    for model in models:
        for count in counts:
            model.plan(facts.columns, count)


def _run_trials(
    models: Sequence[PrivateLinearModel], trials: TrialCount, features: Array, target: Array, held: Array, bits: Bits
) -> _BestTrial:
    """The first of the trials with the best score. Ones with the same score are alike in all that is proved."""
    learned = ~held
    best: _BestTrial | None = None
    for _ in range(trials.draw(bits)):
        candidate = draw_below(len(models), bits)
        model = clone(models[candidate])
        plan = model.plan(features.shape[1], int(learned.sum())).scale_columns(features[learned], bits)
        model.take(plan, plan.weights(features[learned], model._encode(target[learned]), bits))
        points, most = _score_rows(model, features[held], target[held])
        noisy = Laplace.calibrated(plan.guarantee.epsilon, most).release([points], bits)[0]
        if best is None or noisy > best.points:
            best = _BestTrial(noisy, most, candidate, model)
    assert best is not None
    return best


def _score_rows(model: PrivateLinearModel, features: Array, target: Array) -> tuple[int, int]:
    """The points of all rows together, and the most that one can have. Of no rows it is 0: no error tells of it.

    **Theorem.** A row that is added or removed changes the points by at most the most of one. Proof: the points of a
    row are a function of that row and the model, since its scores are (`row_sums.add_columns`), not of other rows.
    """
    if not len(target):
        return 0, model._most_points
    points, most = model._points(features, target)
    return int(points.sum()), most


def _split_rows(probability: Fraction, count: int, neighbors: Neighbors, bits: Bits) -> Array:
    """Return which rows are held out: each with this probability, independently.

    Under REPLACE, where the number of rows is public, one row at least is learned from, whatever is drawn.
    """
    heads: Array = draw_array_below(probability.denominator, count, bits) < probability.numerator
    if neighbors is Neighbors.REPLACE:
        heads[0] &= not heads.all()
    return heads
