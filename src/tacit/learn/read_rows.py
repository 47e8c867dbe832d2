"""Reading the rows of a fit: what scikit-learn says of bad ones, as an error with a place and a fix."""

from __future__ import annotations

import re
from typing import Any

from tacit.errors import ParameterError
from tacit.learn.losses import Array

# What scikit-learn's message has in it, and what helps. The first that fits is taken.
_FIXES = {
    "NaN": "missing=0, say: what NaN is read as; or drop these rows by a rule",
    "infinity": "np.nan_to_num(X): what is beyond the bounds is clipped to them",
    "0 sample": "pass at least one row",
    "0 feature": "pass at least one column",
    "could not convert": "make marks of texts first, by OneHotEncoder",
    "Expected 2D array": "X.reshape(-1, 1), for a single column",
    "Complex data": "X.real",
    "inconsistent numbers": "pass one target for each row",
    "Unknown label": "pass discrete labels, or use a regressor",
    "target y is None": "fit(X, y)",
}
_OTHERWISE = "pass a table of numbers, and one target for each row"
_OF_TARGETS = ("Input y ", "Unknown label", "target y is None", "y should be", "inconsistent numbers")
# After these scikit-learn's message quotes a value, or all of the rows.
_QUOTED = re.compile(
    r"(could not convert string to float|Complex data not supported|Expected 2D array, got [^\n:]*).*", re.DOTALL
)


def read_fit_rows(estimator: Any, X: Any, y: Any) -> tuple[Array, Any]:
    """The rows and the targets as the estimator reads them; a ParameterError where scikit-learn would not take them.

    The message is scikit-learn's, less the values that it quotes. It is for whoever holds the rows.
    """
    try:
        found: tuple[Array, Any] = estimator._read(X, y)
    except ParameterError:
        raise
    except ValueError as error:
        message = _QUOTED.sub(r"\1", str(error))
    else:
        return found
    name = "y" if any(part in message for part in _OF_TARGETS) else "X"
    raise ParameterError(name, message, fix=next((fix for part, fix in _FIXES.items() if part in message), _OTHERWISE))
