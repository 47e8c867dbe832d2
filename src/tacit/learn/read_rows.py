"""Reading rows and targets: what scikit-learn says of bad ones, as an error with a place and a fix."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_array, validate_data

from tacit.errors import ParameterError
from tacit.learn.losses import Array

Found = TypeVar("Found")

_NOT_ROWS = "pass a table of numbers, and one target for each row"
_FINITE = "np.nan_to_num(np.asarray(X, dtype=float))"
_KEPT = "X, y = X[kept], y[kept]"
# What scikit-learn's message has in it, and what helps. The first that fits is taken.
_FIXES_OF_ROWS = {
    "NaN": "missing=0, say: what NaN is read as; or drop these rows by a rule",
    "infinity": "np.nan_to_num(X): what is beyond the bounds is clipped to them",
    "too large to convert": "np.clip(X, -1e300, 1e300): what is beyond the bounds is clipped to them",
    "0 sample": "pass at least one row",
    "0 feature": "pass at least one column",
    "could not convert": "make marks of texts first, by OneHotEncoder",
    "got scalar": _NOT_ROWS,
    "Expected 2D array": "X.reshape(-1, 1), for a single column",
    "Complex data": "X.real",
    "Sparse data": "X.toarray()",
}
_FIXES_OF_NEW_ROWS = {
    "is expecting": "pass the columns of the fit",
    "feature names": "pass the columns of the fit, in the same order",
    **_FIXES_OF_ROWS,
    "NaN": f"{_FINITE}, which reads NaN as 0",
    "infinity": _FINITE,
}
_FIXES_OF_TARGETS = {
    "NaN": f"kept = np.isfinite(np.asarray(y, dtype=float)); {_KEPT}",
    "infinity": f"kept = np.isfinite(np.asarray(y, dtype=float)); {_KEPT}",
    "too large to convert": "np.clip(y, -1e300, 1e300)",
    "could not convert": "pass numbers; labels are learned by a classifier, such as LogisticRegression",
    "inconsistent numbers": "pass one target for each row",
    "1d array": "pass one target for each row: y[:, 0], say",
    "Complex data": "y.real",
    "Unknown label": "pass discrete labels, or use a regressor",
    "target y is None": "fit(X, y)",
}
_KEPT_LABELS = f"kept = np.array([isinstance(label, str) for label in y]); {_KEPT}"
_DATES, _DURATIONS = "M", "m"  # numpy's kinds of these
# After these scikit-learn's message quotes a value, or all of the rows.
_QUOTED = re.compile(
    r"(could not convert string to float|Complex data not supported|Expected 2D array, got [^\n:]*).*", re.DOTALL
)


class RowsTypeError(ParameterError, TypeError):
    """Rows or targets of a type that no estimator reads: a TypeError too, as scikit-learn's checks demand."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.name, self._reason, self.fix)


def _rebuild(name: str, what: str, fix: str) -> RowsTypeError:
    """Unpickle an error of types."""
    return RowsTypeError(name, what, fix=fix)


def read_fit_rows(estimator: Any, X: Any, y: Any) -> tuple[Array, Any]:
    """The rows and the targets as the estimator reads them; a ParameterError where scikit-learn would not take them.

    The message is scikit-learn's, less the values that it quotes. It is for whoever holds the rows. Dates are refused
    by their type, whatever their values: which numbers they are depends on units. The targets of a regressor are
    finite numbers.
    """
    _refuse_dates("X", X)
    if is_regressor(estimator):
        _refuse_dates("y", y)

    def read() -> tuple[Array, Any]:
        features, target = estimator._read(X, y)
        return features, _read_numbers(target) if is_regressor(estimator) else target

    found, error = _try(read)
    if error is None:
        return cast(tuple[Array, Any], found)
    of_rows = "target y is None" not in str(error) and not _are_rows(X, estimator._finite())
    raise _describe("X", X, error, _FIXES_OF_ROWS) if of_rows else _describe("y", y, error, _FIXES_OF_TARGETS)


def read_new_rows(estimator: Any, X: Any) -> Array:
    """Rows for a fitted estimator, read as those of its fit were; a ParameterError where they cannot be."""
    _refuse_dates("X", X)
    finite = estimator._finite()
    return read_rows(X, lambda: validate_data(estimator, X, reset=False, dtype=np.float64, ensure_all_finite=finite))


def read_transformed_rows(X: Any, columns: int) -> Array:
    """What `transform` returned, with so many columns; a ParameterError where it cannot be that."""
    _refuse_dates("X", X)
    rows: Array = read_rows(X, lambda: check_array(X, dtype=np.float64))
    if rows.shape[1] != columns:
        what = f"has {rows.shape[1]} columns, where transform returns {columns}"
        raise ParameterError("X", what, fix="pass what transform returned")
    return rows


def read_rows(X: Any, read: Callable[[], Found]) -> Found:
    """What is read of rows by a check of scikit-learn's, or its error as a ParameterError."""
    found, error = _try(read)
    if error is not None:
        raise _describe("X", X, error, _FIXES_OF_NEW_ROWS)
    return cast(Found, found)


def _try(read: Callable[[], Found]) -> tuple[Found | None, Exception | None]:
    """What is read, or the error of scikit-learn or numpy: one of ours is raised outside of it, and quotes no value."""
    try:
        return read(), None
    except ParameterError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        return None, error


def _describe(name: str, values: Any, error: Exception, fixes: dict[str, str]) -> ParameterError:
    """An error of scikit-learn or numpy as one of ours."""
    message = _QUOTED.sub(r"\1", str(error))
    if message.startswith("Expected 2D array"):
        message += ". Reshape your data"  # scikit-learn's checks look for these words
    if isinstance(error, TypeError):
        _refuse_dates(name, values, looks_inside=True)
    fix = next((fix for part, fix in fixes.items() if part in message), _NOT_ROWS)
    if name == "y" and "NaN" in message and any(isinstance(label, str) for label in np.ravel(values)):
        fix = _KEPT_LABELS
    return (RowsTypeError if isinstance(error, TypeError) else ParameterError)(name, message, fix=fix)


def _are_rows(X: Any, finite: bool | str) -> bool:
    return _try(lambda: check_array(X, dtype=np.float64, ensure_all_finite=finite))[1] is None


def _read_numbers(target: Array) -> Array:
    """Targets as numbers, none of them missing; ValueError or TypeError, in scikit-learn's words."""
    found = target if target.dtype.kind in "biuf" else target.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError("Input y contains NaN or infinity.")
    return found


def _refuse_dates(name: str, values: Any, *, looks_inside: bool = False) -> None:
    """Raise an error for dates and durations, with the numbers that may stand for them.

    Columns are told by their types, and those of objects by their values; `looks_inside` looks at the values of all.
    """
    place, kind = _find_dates(name, values, looks_inside)
    if not kind:
        return
    held = "dates" if kind == _DATES else "durations"
    what = f"{'' if place == name else f'{place} '}holds {held}, and numbers are learned from"
    if kind == _DATES:
        days = f'(np.asarray({place}, "M8[s]") - np.datetime64("2025-01-01")) / np.timedelta64(1, "D")'
    else:
        days = f'np.asarray({place}, "m8[s]") / np.timedelta64(1, "D")'
    table = f"{name} = np.array({name}, object); " if place.startswith(f"{name}[:") else ""
    if place != name and not table and not hasattr(values, "iloc"):
        table = f"{name} = {name}.to_pandas(); "
    raise RowsTypeError(name, what, fix=f"{table}{place} = {days}")


def _find_dates(name: str, values: Any, looks_inside: bool) -> tuple[str, str]:
    """The first column of dates or durations as it is written in Python, and which of them it holds; or no kind."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        for place, column in enumerate(values.columns):
            if kind := _kind_of(values.iloc[:, place], looks_inside):
                return f"{name}[{json.dumps(column) if isinstance(column, str) else repr(column)}]", kind
        return name, ""
    if hasattr(values, "column_names") or hasattr(values, "columns"):
        return _find_arrow_dates(name, values)
    table = values if hasattr(getattr(values, "dtype", None), "kind") else _to_array(values)
    if (kind := _kind_of(table, looks_inside=False)) or not (looks_inside or table.dtype.kind == "O"):
        return name, kind
    table = np.asarray(table, dtype=object)
    if table.ndim == 2:
        kinds = (_kind_of(column, looks_inside=True) for column in table.T)
        return next(((f"{name}[:, {place}]", kind) for place, kind in enumerate(kinds) if kind), (name, ""))
    return name, _kind_of(table, looks_inside=True)


def _find_arrow_dates(name: str, values: Any) -> tuple[str, str]:
    """The same of a frame that is no pandas one, by the types that it has in Arrow."""
    import pyarrow as pa

    try:
        schema = pa.table(values).schema
    except (pa.ArrowException, TypeError, ValueError):
        return name, ""
    for field in schema:
        if pa.types.is_temporal(field.type):
            return f"{name}[{json.dumps(field.name)}]", _DURATIONS if pa.types.is_duration(field.type) else _DATES
    return name, ""


def _to_array(values: Any) -> Array:
    """Rows without a type of their own, such as lists and frames of other libraries, as numpy reads them."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):  # which the check of the rows says in its own words
        return np.empty(0)


def _kind_of(values: Any, looks_inside: bool) -> str:
    """Whether values are dates or durations, by numpy's letter; nothing where they are neither."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in {_DATES, _DURATIONS}:
        return str(kind)
    if not looks_inside or kind != "O":
        return ""
    inside: Iterable[Any] = np.ravel(np.asarray(values, dtype=object))
    for value in inside:
        if isinstance(value, datetime.date | np.datetime64):
            return _DATES
        if isinstance(value, datetime.timedelta | np.timedelta64):
            return _DURATIONS
    return ""
