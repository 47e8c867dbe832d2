"""Private learning: linear models, fitted in four ways behind one (epsilon, delta).

`LogisticRegression`, `LinearSVC` and `Ridge` have scikit-learn's shape, and so have the models of a few released sums:
`GaussianNB`, `KMeans`, `PCA` and `StandardScaler`; `AdditiveClassifier` learns a shape for each column. The unit is a
row: one row a person.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tacit.extras import missing_extra

if TYPE_CHECKING:
    from tacit.learn.additive import AdditiveClassifier as AdditiveClassifier
    from tacit.learn.clusters import KMeans as KMeans
    from tacit.learn.components import PCA as PCA
    from tacit.learn.linear import LinearSVC as LinearSVC
    from tacit.learn.linear import LogisticRegression as LogisticRegression
    from tacit.learn.linear import Ridge as Ridge
    from tacit.learn.naive_bayes import GaussianNB as GaussianNB
    from tacit.learn.scaling import StandardScaler as StandardScaler
    from tacit.learn.search import PrivateSearchCV as PrivateSearchCV

_HOMES = {
    "AdditiveClassifier": "additive",
    "GaussianNB": "naive_bayes",
    "KMeans": "clusters",
    "LinearSVC": "linear",
    "LogisticRegression": "linear",
    "PCA": "components",
    "PrivateSearchCV": "search",
    "Ridge": "linear",
    "StandardScaler": "scaling",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"learning has no {name!r}")
    if find_spec("sklearn") is None:
        raise missing_extra("learn", f"learn.{name}", "scikit-learn")
    return getattr(import_module(f"tacit.learn.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
