"""What tests of `tacit.learn` share: a method calibrated to a task, and which of scikit-learn's checks cannot hold."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from tacit.learn.method import LearningTask

_WEIGHTS = "it has weights other than 0 and 1, which are refused"
_LABELS = "it has labels that are not among the declared classes, which is an error; classes are never read from data"
# Checks of weights, beside those that each test lists for its own estimator.
WEIGHTED = {
    "check_sample_weights_list": _WEIGHTS,
    "check_sample_weights_not_overwritten": _WEIGHTS,
    "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
}
WEIGHTED_TWO_CLASSES = WEIGHTED | {
    "check_sample_weights_pandas_series": _LABELS,
    "check_sample_weights_not_an_array": _LABELS,
    "check_sample_weights_shape": _LABELS,
}
_FACTS = {field.name for field in fields(LearningTask)}


def calibrate(kind: Any, epsilon: Fraction, delta: Fraction, **settings: Any) -> Any:
    """Return the method for these facts; settings that are no facts are the method's own."""
    facts = {name: value for name, value in settings.items() if name in _FACTS}
    tuning = {name: value for name, value in settings.items() if name not in _FACTS}
    return kind.calibrate(LearningTask(epsilon, delta, **facts), **tuning)
