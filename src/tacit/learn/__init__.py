"""Private learning: linear models, fitted in four ways behind one (epsilon, delta).

`LogisticRegression`, `LinearSVC`, `Ridge`, `LinearRegression` and `Lasso` have scikit-learn's shape, and so have the
models of a few released sums: `GaussianNB`, `KMeans`, `PCA`, `StandardScaler` and `QuantileTransformer`;
`AdditiveClassifier` learns a shape for each column, and `HistGradientBoostingClassifier` boosts trees. `OneHotEncoder`
makes marks of declared categories. The unit is a row: one row a person.
"""

from importlib.util import find_spec
from typing import Any

from tacit.extras import missing_extra
from tacit.lazy import attach

_get, __dir__, __all__ = attach(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import an estimator when it is asked for, where scikit-learn is there."""
    if name in __all__ and find_spec("sklearn") is None:
        raise missing_extra("learn", f"learn.{name}", "scikit-learn")
    return _get(name)
