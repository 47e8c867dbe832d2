"""A copy of an input for every call of an audited function: what one call writes into it, no other call reads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np

from tacit.errors import ParameterError

_FIXED = (Number, str, bytes, type(None), np.generic, date, time, timedelta, Decimal)


def copies(data: object) -> Callable[[], Any]:
    """A function that gives a fresh copy of the data, as it is now, at every call. What cannot change is not copied."""
    if _is_fixed(data):
        return lambda: data
    kept: Any = copy_deeply(data)
    flat = (type(kept) is list and all(map(_is_fixed, kept))) or (
        type(kept) is dict and all(map(_is_fixed, kept.values())) and all(map(_is_fixed, kept))
    )
    if flat or (type(kept) is np.ndarray and not kept.dtype.hasobject):
        found: Callable[[], Any] = kept.copy
        return found
    return lambda: copy_deeply(kept)


def check_inputs_differ(one: object, other: object) -> None:
    """Refuse two inputs that are the same: on these every mechanism is private, and an audit tests nothing."""
    if is_same_input(one, other):
        raise ParameterError(
            "other",
            "is the same input as one, so nothing would be tested",
            fix="give two neighbors that differ: one=[1, 0], other=[1, 1]",
        )


def is_same_input(one: Any, other: Any) -> bool:
    """Whether two inputs are of one type, equal, and written alike, as 1 and 1.0 are not.

    It is False where this cannot be told.
    """
    if type(one) is not type(other):
        return False
    try:
        if isinstance(one, np.ndarray):
            if one.dtype != other.dtype or one.shape != other.shape:
                return False
            return (
                is_same_input(one.tolist(), other.tolist()) if one.dtype.hasobject else one.tobytes() == other.tobytes()
            )
        if hasattr(one, "iloc"):
            return bool(one.equals(other)) and repr(one) == repr(other)
        return bool(one == other) and repr(one) == repr(other)
    except Exception:  # noqa: BLE001 - whatever a comparison of two objects raises, it does not say that they are alike
        return False


def _is_fixed(data: Any) -> bool:
    """Whether nobody can write into it."""
    if type(data) in {tuple, frozenset}:
        return all(map(_is_fixed, data))
    return isinstance(data, _FIXED) and not hasattr(data, "__dict__")


def copy_deeply(data: Any) -> Any:
    """Return a copy that shares nothing with the data that could be written into: no row, no cell of a frame."""
    try:
        return _copy_frame(data) if hasattr(data, "iloc") else copy.deepcopy(data)
    except Exception as problem:
        raise ParameterError(
            "data",
            f"a {type(data).__name__} cannot be copied, and each call is to have a copy of its own",
            fix="give numbers, arrays, lists, dicts or frames, or a class with a method __deepcopy__",
        ) from problem


def _copy_frame(frame: Any) -> Any:
    """Copy a frame or a series with the objects in its cells, which its own deep copy shares."""
    if frame.ndim == 1:
        return _copy_frame(frame.to_frame()).iloc[:, 0].rename(frame.name)
    copied = frame.copy(deep=True)
    for place, kind in enumerate(frame.dtypes):
        if getattr(kind, "hasobject", False):
            copied.isetitem(place, copy.deepcopy(frame.iloc[:, place].to_numpy(dtype=object)))
    return copied
