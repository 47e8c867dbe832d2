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
    kept: Any = _deep(data)
    flat = (type(kept) is list and all(map(_is_fixed, kept))) or (
        type(kept) is dict and all(map(_is_fixed, kept.values())) and all(map(_is_fixed, kept))
    )
    if flat or (type(kept) is np.ndarray and not kept.dtype.hasobject):
        found: Callable[[], Any] = kept.copy
        return found
    return lambda: _deep(kept)


def _is_fixed(data: Any) -> bool:
    """Whether nobody can write into it."""
    if type(data) in {tuple, frozenset}:
        return all(map(_is_fixed, data))
    return isinstance(data, _FIXED) and not hasattr(data, "__dict__")


def _deep(data: Any) -> Any:
    try:
        return copy.deepcopy(data)
    except Exception as problem:
        raise ParameterError(
            "data",
            f"a {type(data).__name__} cannot be copied, and each call is to have a copy of its own",
            fix="give numbers, arrays, lists, dicts or frames, or a class with a method __deepcopy__",
        ) from problem
