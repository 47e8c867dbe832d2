"""Private tuning: the best of several private fits, with one guarantee for all of it.

**Theorem.** The best model, its parameters and its noisy score are together `guarantee_`-DP. Proof. A coin that no row
decides puts each row into the part that is learned from or into the part that is held out. A trial draws a candidate,
fits it on the first part and scores it on the second, with Laplace noise. A row that is added, removed or replaced is
in one part: the fit is (e, d)-DP for it, or the score is e-DP; so a trial is (e, d)-DP. `learn/trials.py` says what the
best of K trials costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.arithmetic import to_rational_between
from tacit.errors import ParameterError
from tacit.learn.base import PrivateLinearModel, check_fit_call, clear_fitted_attributes, resolve_bits
from tacit.learn.losses import Array
from tacit.learn.trials import TrialCount
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import ApproximateDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below, draw_below

_NOT_TUNABLE = {"epsilon", "delta", "rows", "neighbors", "bits", "classes", "target_bounds", "missing"}


def _has(name: str) -> Any:
    return lambda search: hasattr(search.estimator, name)


class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Tries candidates of `param_grid` on `estimator` a random number of times, `trials` on average; keeps the best.

    `epsilon` and `delta` (1/rows^2 where None) are the price of the whole search; the estimator's own are not used. The
    candidates are public. `law` is how the number of trials is drawn: "logarithmic", where a trial gets epsilon/2, or
    "geometric", where it gets epsilon/3 and one trial only is rarer. `held_out` is the part of rows that models are
    scored on. How many trials there were is not said, since the guarantee does not cover it; nor how long they took.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: Any = None,
        delta: Any = None,
        trials: Any = 10,
        law: Any = "logarithmic",
        held_out: Any = 0.2,
        bits: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.trials = trials
        self.law = law
        self.held_out = held_out
        self.bits = bits

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Search, and keep the best model. Costs `guarantee_`."""
        check_fit_call(refused)
        clear_fitted_attributes(self)
        model, candidates = self._model(), self._candidates()
        trials = TrialCount.about(self.trials, self.law)
        share = to_rational_between("held_out", self.held_out, Fraction(1, 100), Fraction(99, 100))
        features, target = model._read(X, y)
        facts = model.facts(features.shape[1], len(features))
        self.guarantee_, self.loss_ = facts.guarantee, ApproximateDp(facts.epsilon, facts.delta)
        each: dict[str, Any] = {"epsilon": facts.epsilon / trials.factor, "delta": facts.delta / trials.mean}
        learned = max(1, round(facts.rows * (1 - share)))
        each["rows"] = learned if facts.neighbors is Neighbors.ADD_REMOVE else None  # then they are counted
        models = [clone(model).set_params(**candidate, **each) for candidate in candidates]
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

    def predict(self, X: Any) -> Array:  # noqa: N803
        """What the best model predicts."""
        return np.asarray(self._best().predict(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """The scores of the best model."""
        return np.asarray(self._best().decision_function(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probabilities of the best model."""
        return np.asarray(self._best().predict_proba(X))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The score of the best model on these rows, without noise."""
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
        """The estimator at the price of the whole search."""
        if not isinstance(self.estimator, PrivateLinearModel):
            what = f"is no private estimator: {type(self.estimator).__name__}"
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


def _run_trials(
    models: Sequence[PrivateLinearModel], trials: TrialCount, features: Array, target: Array, held: Array, bits: Bits
) -> _BestTrial:
    """The first of the trials with the best score. Ones with the same score are alike in all that is proved."""
    learned = ~held
    best: _BestTrial | None = None
    for _ in range(trials.draw(bits)):
        candidate = draw_below(len(models), bits)
        model = clone(models[candidate])
        plan = model.plan(features.shape[1], int(learned.sum()))
        model.take(plan, plan.weights(features[learned], model._encode(target[learned]), bits))
        points, most = _score_rows(model, features[held], target[held])
        noisy = Laplace.calibrated(plan.facts.epsilon, most).release([points], bits)[0]
        if best is None or noisy > best.points:
            best = _BestTrial(noisy, most, candidate, model)
    assert best is not None
    return best


def _score_rows(model: PrivateLinearModel, features: Array, target: Array) -> tuple[int, int]:
    """The points of all rows together, and the most that one can have. Of no rows it is 0: no error tells of it."""
    if not len(target):
        return 0, model._most_points
    points, most = model._points(features, target)
    return int(points.sum()), most


def _split_rows(chance: Fraction, count: int, neighbors: Neighbors, bits: Bits) -> Array:
    """Heads with this probability for each row, on its own.

    Under REPLACE, where the number of rows is public, one row at least is learned from, whatever the coins say.
    """
    heads: Array = draw_array_below(chance.denominator, count, bits) < chance.numerator
    if neighbors is Neighbors.REPLACE:
        heads[0] &= not heads.all()
    return heads
