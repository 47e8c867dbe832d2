"""Adding noise to integers: one value, a list, or an array at the speed of the sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_integer, to_integers
from tacit.errors import ParameterError

Integers = npt.NDArray[np.int64]
IntegerArray = npt.NDArray[np.integer[Any]]
_FEW = 16  # below this, a loop is quicker than numpy
_LARGEST = 2**62  # of a value in an array; with noise below 2^61 the sum fits 64 bits


def add_noise(
    values: int | Sequence[int] | IntegerArray,
    one: Callable[[], int],
    many: Callable[[int], Integers] | None,
    wide: Callable[[int], list[int]],
) -> int | list[int] | npt.NDArray[Any]:
    """Return each value with a draw of its own: an int for an int, an array for an array, and else a list.

    `one` draws once and `many` so often, below 2^61; it is None where the noise may not fit, and `wide` draws then.
    Ints and lists are exact however large they are. Values of an array are clamped to [-2^62, 2^62] before noise is
    added, which brings no two inputs further apart; where `many` is None the array is one of Python's integers. So the
    kind of the result never depends on a value.
    """
    if isinstance(values, np.ndarray) and values.ndim:
        if not np.issubdtype(values.dtype, np.integer):
            what = f"needs integers, got an array of {values.dtype}"
            raise ParameterError("values", what, fix="give integers, in grid units: np.rint(x / step).astype(np.int64)")
        if many is None:
            sums = map(add, values.ravel().tolist(), wide(values.size))
            return np.array(list(sums), dtype=object).reshape(values.shape)
        noisy = many(values.size).reshape(values.shape)
        noisy += _clamp(values)
        return noisy
    if hasattr(values, "__index__"):
        return to_integer("values", values) + one()
    known = to_integers("values", values)
    if many is None:
        return list(map(add, known, wide(len(known))))
    if len(known) <= _FEW:
        return [value + one() for value in known]
    return list(map(add, known, many(len(known)).tolist()))


def _clamp(values: IntegerArray) -> Integers:
    """Return the values as 64-bit integers of at most 2^62 in size."""
    if values.dtype.itemsize < np.dtype(np.int64).itemsize:
        return values.astype(np.int64)
    least = -_LARGEST if values.dtype.kind == "i" else 0
    clamped: Integers = np.clip(values, least, _LARGEST).astype(np.int64, copy=False)
    return clamped
