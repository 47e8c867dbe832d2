"""Whose each row is: ids as numbers.

>>> number_units(["ann", "bob", "ann"]).tolist()
[0, 1, 0]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError

_SORTED = "biufmMSU"  # the kinds of arrays that have an order which agrees with equality, once nothing is missing
_IDS = (str, int, bytes, float, Decimal, UUID, date)  # dates with a time, and pandas' timestamps, are dates
_CONVERTED = (np.bool_, np.integer, np.float64, np.str_, np.bytes_)  # scalars that are a Python value without rounding
_NEVER_MISSING = {str, int, bytes, UUID}
_MISSING = "drop the rows without an id, or give each of them an id of its own"
_CONVERT = "convert the ids to one type that tells persons apart: [str(each) for each in ids]"
_EXACT = 2.0**53  # from here on a 64-bit float may stand for several integers


def number_units(units: object, name: str = "units") -> npt.NDArray[np.int64]:
    """Return a number from 0 for each row, by the id of the unit that it belongs to.

    **Theorem.** Two rows have the same number if and only if their ids are equal as Python values, and then these have
    the same type. **Proof.** Arrays of numbers, dates and fixed-width text are sorted, in an order that is total where
    nothing is missing, so equal ids are adjacent. Other ids are keys of a dict as they are, without a conversion that
    may round or shorten them, and all have one type, whose values equal themselves. A column of a frame is taken as the
    array that it gives, whose values are others only where some are missing, as NaN beside rounded integers.

    What does not say whose a row is, is refused: an id that is missing, since rows without one may be of one person or
    of many; ids of several types, since 1, 1.0 and "1" may be one person or three; and floats of 2^53 and more, which
    integers that differ may have been rounded to.
    """
    if np.ma.is_masked(units):
        raise _refuse_missing(name)
    if isinstance(units, str | bytes) or not isinstance(units, Iterable):
        raise ParameterError(name, f"is a single {type(units).__name__}", fix="give one id for each row")
    values = np.asarray(units) if hasattr(units, "__array__") else list(units)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ParameterError(name, f"has shape {values.shape}", fix="give one id for each row")
        if values.dtype.kind in _SORTED:
            _check_array(values, name)
            return np.unique(values, return_inverse=True)[1].astype(np.int64)
        values = values.tolist()
    if any(issubclass(kind, _CONVERTED) for kind in set(map(type, values))):
        values = [each.item() if isinstance(each, _CONVERTED) else each for each in values]
    _check_values(values, name)
    numbers = dict.fromkeys(values)
    numbers = dict(zip(numbers, range(len(numbers)), strict=True))
    return np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))


def _check_array(values: npt.NDArray[Any], name: str) -> None:
    """Refuse an array of numbers or dates with one that is missing or rounded."""
    if values.dtype.kind in "mM" and np.isnat(values).any():
        raise _refuse_missing(name)
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise _refuse_missing(name)
        if (np.abs(values) >= 2.0 ** (np.finfo(values.dtype).nmant + 1)).any():
            raise _refuse_rounded(name)


def _check_values(values: Collection[Any], name: str) -> None:
    """Refuse Python values that are missing, rounded, of several types, or of a type that may not have equality."""
    kinds = set(map(type, values))
    if not kinds <= _NEVER_MISSING and any(map(_is_missing, values)):
        raise _refuse_missing(name)
    if len(kinds) > 1:
        named = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ParameterError(name, f"has ids of several types: {named}", fix=_CONVERT)
    for kind in kinds:
        if issubclass(kind, tuple):
            for column in _transpose(values, name):
                _check_values(column, name)
        elif not issubclass(kind, _IDS):
            raise ParameterError(name, f"has ids of the type {kind.__name__}", fix=_CONVERT)
        elif issubclass(kind, float) and any(abs(each) >= _EXACT for each in values):
            raise _refuse_rounded(name)


def _transpose(values: Collection[tuple[Any, ...]], name: str) -> list[tuple[Any, ...]]:
    """The columns of ids that are tuples of one length."""
    if len({len(each) for each in values}) > 1:
        raise ParameterError(name, "has tuples of several lengths as ids", fix="give tuples of one length")
    return list(zip(*values, strict=True))


def _is_missing(value: Any) -> bool:
    """Whether it is None, pandas' NA, NaN or NaT."""
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | date | np.generic):
        return bool(value != value)  # noqa: PLR0124 - NaN and NaT alone differ from themselves
    return value is None or type(value).__name__ == "NAType"


def _refuse_missing(name: str) -> ParameterError:
    return ParameterError(name, "has rows whose id is missing (None, NaN or NaT)", fix=_MISSING)


def _refuse_rounded(name: str) -> ParameterError:
    what = "has floats so large that different integers are one of them"
    return ParameterError(name, what, fix="read the ids as integers or as text")
