"""The estimators that a curator fits, by name: planned from public facts, and made of what is released."""

from __future__ import annotations

import sys
from typing import Any

from tacit.learn.boosted import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tacit.learn.forest import RandomForestClassifier, RandomForestRegressor
from tacit.learn.least_squares import ElasticNet, Lasso, LinearRegression
from tacit.learn.linear import LinearSVC, LogisticRegression
from tacit.learn.ridge import Ridge
from tacit.learn.tree import DecisionTreeClassifier, DecisionTreeRegressor

FITTED_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        LogisticRegression,
        LinearSVC,
        Ridge,
        LinearRegression,
        Lasso,
        ElasticNet,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
    )
}
NETWORKS = ("MLPClassifier", "MLPRegressor")
"""Those that need PyTorch."""


def list_kinds() -> dict[str, Any]:
    """Return all kinds that there can be an estimator of: those of networks where they were imported."""
    found = sys.modules.get("tacit.learn.torch.estimators")
    return FITTED_KINDS if found is None else {**FITTED_KINDS, **{name: getattr(found, name) for name in NETWORKS}}


def find_kind(name: str) -> Any:
    """Return a kind by its name; ModuleNotFoundError where it needs PyTorch, and that is not installed."""
    if name in NETWORKS:
        from tacit.learn.torch import estimators

        return getattr(estimators, name)
    return FITTED_KINDS[name]
