"""The estimators that a curator fits, by name: planned from public facts, and made of what is released."""

from __future__ import annotations

from typing import Any

from tacit.learn.boosted import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tacit.learn.forest import RandomForestClassifier, RandomForestRegressor
from tacit.learn.least_squares import ElasticNet, Lasso, LinearRegression
from tacit.learn.linear import LinearSVC, LogisticRegression, Ridge
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
