"""Groups as small numbers: for each key a coder, and one number for all keys of a row together."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tacit.engines.arrow_arrays import to_numpy
from tacit.engines.scalars import write_guarded
from tacit.query.nodes import GroupKey
from tacit.query.types import Key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int32]

_WIDEST = 1 << 22  # numbers that may go unused
_EPOCH = datetime.date(1970, 1, 1).toordinal()


class KeyEncoder(Protocol):
    """Numbers the values of a key from 0; a negative number is a value that is no group's."""

    sql: str

    @property
    def values(self) -> Sequence[Key | None]:
        """The value of each number."""

    def encode(self, column: pa.Array) -> Codes:
        """The number of each row's value."""


def make_key_encoder(key: GroupKey) -> KeyEncoder:
    """The quickest way to number a key."""
    if key.values and all(type(value) in {int, datetime.date} for value in key.values):
        numbers = [_to_ordinal(value) for value in key.values]
        if max(numbers) - min(numbers) < _WIDEST:
            return _RangeKeyEncoder(key, numbers)
    if key.values and all(type(value) is bool for value in key.values):
        return NumberedKeyEncoder(key.values, f"CAST({write_guarded(key.scalar)} AS UTINYINT)", [False, True, None])
    return _DictionaryKeyEncoder(key)


class NumberedKeyEncoder:
    """A key that follows from small numbers: `there` is its value for each of them, the last one for NULL."""

    def __init__(self, values: Sequence[Key | None] | None, sql: str, there: Sequence[Key | None]) -> None:
        self.sql = sql
        self.values: Sequence[Key | None] = list(dict.fromkeys(there)) if values is None else values
        self._none = len(there) - 1
        known = {value: number for number, value in enumerate(self.values)}
        codes = [known.get(value, -1) for value in there]
        self._codes = np.array(codes, np.int32)
        # Where NULL is in no group, its number must be one that no group has.
        ends = codes[-1] == self._none or (codes[-1] < 0 and len(self.values) == self._none)
        self.is_offset = ends and codes[:-1] == list(range(self._none))

    def encode(self, column: pa.Array) -> Codes:
        """The number of each row's value."""
        codes: Codes = self._codes[self.offset(column)[0]]
        return codes

    def offset(self, column: pa.Array) -> tuple[NDArray[Any], int]:
        """The numbers as they are stored."""
        return to_numpy(column.fill_null(self._none) if column.null_count else column), 0


class _RangeKeyEncoder:
    """Integers or days between the least and the largest of a list, each less the least."""

    def __init__(self, key: GroupKey, numbers: list[int]) -> None:
        assert key.values is not None
        self.sql = write_guarded(key.scalar)
        self.values = key.values
        self._days = isinstance(key.values[0], datetime.date)
        self._low, self._high = min(numbers), max(numbers)
        codes = np.full(self._high - self._low + 2, -1, np.int32)  # the last one is for all others
        for code, number in enumerate(numbers):
            codes[number - self._low] = code
        self._codes = None if numbers == list(range(self._low, self._high + 1)) else codes

    def encode(self, column: pa.Array) -> Codes:
        numbers, low = self.offset(column)
        span = self._high - self._low
        codes = numbers.astype(np.int64) - low
        codes[(codes < 0) | (codes > span)] = -1
        return (codes if self._codes is None else self._codes[codes]).astype(np.int32)

    @property
    def is_offset(self) -> bool:
        """Whether every number between the least and the largest is a group of its own, in this order."""
        return self._codes is None

    def offset(self, column: pa.Array) -> tuple[NDArray[Any], int]:
        """The numbers as they are stored, and the least: less it, each is its code, or out of range."""
        low, high = self._low, self._high
        if self._days:
            column, low, high = column.cast(pa.int32()), low - _EPOCH, high - _EPOCH
        if column.null_count:
            column = column.cast(pa.int64()).fill_null(high + 1 if high < 2**63 - 1 else low - 1)
        return to_numpy(column), low


class _DictionaryKeyEncoder:
    """Any values, numbered as they are met."""

    def __init__(self, key: GroupKey) -> None:
        self.sql = write_guarded(key.scalar)
        self._open = key.values is None
        self.values: list[Key | None] = [] if key.values is None else list(key.values)
        self._known: dict[Any, int] = {value: code for code, value in enumerate(self.values)}

    def encode(self, column: pa.Array) -> Codes:
        met = column.dictionary_encode(null_encoding="encode")
        numbers = np.array([self._code(value) for value in met.dictionary.to_pylist()] or [-1], np.int32)
        codes: Codes = numbers[to_numpy(met.indices)]
        return codes

    def _code(self, value: Any) -> int:
        if value not in self._known and self._open:
            self._known[value] = len(self.values)
            self.values.append(value)
        return self._known.get(value, -1)


class GroupEncoder:
    """The numbers of all keys of a row as one."""

    def __init__(self, coders: Sequence[KeyEncoder]) -> None:
        self._coders = coders
        sizes = [len(c.values) for c in coders]
        fixed = not any(isinstance(c, _DictionaryKeyEncoder) for c in coders)
        self._strides = [int(np.prod(sizes[i + 1 :], dtype=object)) for i in range(len(sizes))]
        whole = int(np.prod(sizes, dtype=object)) if sizes else 1
        self._dense = len(coders) <= 1 or (fixed and whole <= _WIDEST)
        self._whole = whole if fixed else 0
        self._met: dict[tuple[int, ...], int] = {}

    @property
    def is_fixed(self) -> bool:
        """Whether every group has its number before any row is seen."""
        return self._dense and self._whole > 0

    @property
    def size(self) -> int:
        """How many numbers there are by now."""
        if not self._dense:
            return len(self._met)
        return self._whole or (len(self._coders[0].values) if self._coders else 1)

    def encode(self, columns: Sequence[pa.Array], rows: int) -> tuple[NDArray[Any], int]:
        """Numbers, and what to take from each to get the code of its row's group; outside the codes is no group."""
        if not columns:
            return np.zeros(rows, np.int8), 0
        if len(columns) == 1:
            (only,) = self._coders
            if isinstance(only, _RangeKeyEncoder | NumberedKeyEncoder) and only.is_offset:
                return only.offset(columns[0])
            return only.encode(columns[0]), 0
        keys = [coder.encode(column) for coder, column in zip(self._coders, columns, strict=True)]
        if not self._dense:
            return self._number_keys(keys), 0
        number, none = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        for codes, stride in zip(keys, self._strides, strict=True):
            number += codes.astype(np.int64) * stride
            none |= codes < 0
        number[none] = -1
        return number, 0

    def _number_keys(self, keys: Sequence[Codes]) -> NDArray[np.int64]:
        """Combinations, numbered as they are met."""
        widths = [int(codes.max(initial=0)) + 2 for codes in keys]
        numbers = np.zeros(len(keys[0]), np.int64)
        for codes, width in zip(keys, widths, strict=True):
            if int(numbers.max(initial=0)) >= 2**62 // width:  # number those anew that there are
                met = pa.array(numbers).dictionary_encode()
                numbers = to_numpy(met.indices).astype(np.int64)
            numbers = numbers * width + codes + 1
        met = pa.array(numbers).dictionary_encode()
        indices = to_numpy(met.indices)
        first = np.empty(len(met.dictionary), np.int64)
        first[indices[::-1]] = np.arange(len(indices))[::-1]  # the last one written is the first row
        known = []
        for row in first.tolist():
            combination = tuple(int(codes[row]) for codes in keys)
            absent = min(combination) < 0
            known.append(-1 if absent else self._met.setdefault(combination, len(self._met)))
        codes_met: NDArray[np.int64] = np.array(known or [-1], np.int64)[indices]
        return codes_met

    def find_codes(self, groups: Sequence[tuple[Key | None, ...]]) -> list[int]:
        """The number of each of these groups, all of which have one before any row is seen."""
        assert self.is_fixed
        known = [{value: code for code, value in enumerate(coder.values)} for coder in self._coders]
        return [sum(s * of[v] for s, of, v in zip(self._strides, known, group, strict=True)) for group in groups]

    def keys(self, codes: NDArray[np.int64]) -> list[tuple[Key | None, ...]]:
        """The keys behind these numbers."""
        if len(self._coders) == 1:
            values = self._coders[0].values
            return [(values[code],) for code in codes.tolist()]
        if self._dense:
            split = [
                [code // s % max(1, len(c.values)) for s, c in zip(self._strides, self._coders, strict=True)]
                for code in codes.tolist()
            ]
        else:
            met = list(self._met)
            split = [list(met[code]) for code in codes.tolist()]
        return [tuple(c.values[part] for c, part in zip(self._coders, parts, strict=True)) for parts in split]


class ExcludedGroups:
    """Which numbers of an encoder are those of groups whose rows are left out."""

    def __init__(self, encoder: GroupEncoder, groups: Sequence[tuple[Key | None, ...]]) -> None:
        self._encoder, self._groups = encoder, frozenset(groups)
        self._is_out = np.zeros(0, np.bool_)
        if encoder.is_fixed:
            self._is_out = np.zeros(encoder.size, np.bool_)
            self._is_out[encoder.find_codes(list(self._groups))] = True

    def leave_out(self, code: NDArray[Any], first: int) -> NDArray[np.int64]:
        """The codes of rows' groups, counted from 0; -1 for rows that are in no group, or in one that is left out."""
        known, size = len(self._is_out), self._encoder.size
        if size > known:
            new = [group in self._groups for group in self._encoder.keys(np.arange(known, size))]
            self._is_out = np.concatenate([self._is_out, np.array(new, np.bool_)])
        codes = code.astype(np.int64) - first
        inside = (codes >= 0) & (codes < size)
        inside[inside] = ~self._is_out[codes[inside]]
        return np.where(inside, codes, np.int64(-1))


def _to_ordinal(value: Key) -> int:
    return value.toordinal() if isinstance(value, datetime.date) else int(value)
