"""Groups of coded rows as numbers: those of the values of each key, and what a combination adds to its group's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tacit.query.nodes import GroupKey
from tacit.query.types import Key

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_GROUP = -(1 << 26)  # the numbers of groups are below 2^22: whatever is added to this stays below zero


class KeyNumbers:
    """Numbers the values of each key from 0: the listed ones, or those that are met in combinations."""

    def __init__(self, keys: Sequence[GroupKey]) -> None:
        self.values: list[list[Key | None]] = [list(key.values or ()) for key in keys]
        self._is_open = [key.values is None for key in keys]

    def number(self, position: int, values: pa.Array) -> NDArray[np.int32]:
        """The number of each value; -1 where it is no group's."""
        met = values.dictionary_encode(null_encoding="encode")
        there = met.dictionary.to_pylist()
        if self._is_open[position]:
            self.values[position] = list(dict.fromkeys(there))
        known = {value: number for number, value in enumerate(self.values[position])}
        numbers = np.array([known.get(value, -1) for value in there] or [-1], np.int32)
        found: NDArray[np.int32] = numbers[met.indices.to_numpy()]
        return found

    def stride(self, position: int) -> int:
        """By how much the number of a group grows with that of a key."""
        return prod(len(values) for values in self.values[position + 1 :])


def number_groups(
    is_in: NDArray[np.bool_], keys: Mapping[int, NDArray[np.int32]], known: KeyNumbers
) -> NDArray[np.int32]:
    """What each combination adds to the number of its rows' group."""
    numbers = np.zeros(len(is_in), np.int32)
    for position, codes in keys.items():
        is_in = is_in & (codes >= 0)
        numbers += codes * np.int32(known.stride(position))
    numbers[~is_in] = _NO_GROUP
    return numbers
