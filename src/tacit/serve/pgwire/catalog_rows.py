"""The rows of a catalog query, kept as the bytes they came in and read when they are sent.

As Python's own values they would take ten times the memory, for as long as a client takes its time.

>>> rows = BatchedRows(1)
>>> rows.add(b'[[1], [2]]')
>>> rows.add(b'[["x"]]')
>>> len(rows), rows[1], list(rows[1:])
(3, (2,), [(2,), ('x',)])
"""

from __future__ import annotations

import datetime
import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, overload


class BatchedRows(Sequence[tuple[Any, ...]]):
    """Rows of so many columns, in batches of JSON. `size` is how many bytes they are."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._batches: list[bytes] = []
        self._starts: list[int] = []  # the number of the first row of each batch
        self._count = 0
        self.size = 0

    def add(self, batch: bytes) -> None:
        """Add a batch. ValueError, TypeError, KeyError, ArithmeticError or RecursionError where it is none."""
        rows = self._read(batch)
        self._starts.append(self._count)
        self._batches.append(batch)
        self._count += len(rows)
        self.size += len(batch)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Any, ...]]: ...

    def __getitem__(self, index: int | slice) -> tuple[Any, ...] | Sequence[tuple[Any, ...]]:
        places = range(self._count)[index]
        if isinstance(places, range):
            return _Part(self, places)
        return next(self.between(places, places + 1))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.between(0, self._count)

    def between(self, start: int, stop: int) -> Iterator[tuple[Any, ...]]:
        """The rows of a stretch, of which one batch at a time is read."""
        place = start
        while place < stop:
            batch = bisect_right(self._starts, place) - 1
            first = self._starts[batch]
            for row in self._read(self._batches[batch])[place - first : stop - first]:
                yield row
                place += 1

    def _read(self, batch: bytes) -> list[tuple[Any, ...]]:
        rows = [tuple(map(_value, row)) for row in json.loads(batch)]
        if not rows or any(len(row) != self._width for row in rows):
            raise ValueError("no rows of this width")
        return rows


class _Part(Sequence[tuple[Any, ...]]):
    """A stretch of such rows."""

    def __init__(self, whole: BatchedRows, places: range) -> None:
        self._whole = whole
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Any, ...]]: ...

    def __getitem__(self, index: int | slice) -> tuple[Any, ...] | Sequence[tuple[Any, ...]]:
        places = self._places[index]
        return _Part(self._whole, places) if isinstance(places, range) else self._whole[places]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if self._places.step == 1:
            return self._whole.between(self._places.start, self._places.stop)
        return (self._whole[place] for place in self._places)


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    return Decimal(plain["number"]) if "number" in plain else datetime.date.fromisoformat(plain["date"])
