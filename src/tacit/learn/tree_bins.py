"""The bins of columns that trees are grown on: made from declared bounds, and never from the rows.

>>> bins = ColumnBins.of([0.0, 0.0], [10.0, 2.0], most=5, categorical=[1])
>>> bins.read(np.array([[3.9, 2.0], [10.0, 0.0]])).tolist()
[[1, 2], [4, 0]]
>>> bins.edge(0, 1), bins.edge(1, 2)
(4.0, 2.0)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.learn.losses import Array
from tacit.learn.sums import on_grid

_MOST_BINS = 4096  # of a column
_MOST_CATEGORIES = 1000


@dataclass(frozen=True, eq=False)
class ColumnBins:
    """Which bin of its column a value is in: one of `counts` equal parts of the bounds, or a category.

    **Theorem.** The bins of a row are a function of that row and of what is declared. Each is a whole number from 0 to
    one less than its column's count, whatever the value is.

    A column of categories holds whole numbers between its bounds, each of which is a bin. Columns that cannot vary have
    one bin.
    """

    lower: Array
    upper: Array
    counts: tuple[int, ...]
    categorical: tuple[bool, ...]

    @classmethod
    def of(cls, lower: Any, upper: Any, most: Any, categorical: Iterable[Any] | None = None) -> ColumnBins:
        """At most `most` bins for each column; `categorical` has the places of columns of categories, or a mask."""
        low, high = (np.asarray(end, dtype=np.float64) for end in (lower, upper))
        number = to_integer("max_bins", most, least=2)
        if number > _MOST_BINS:
            raise ParameterError("max_bins", f"are more than {_MOST_BINS:,}", fix="max_bins=255, say")
        marks = _read_mask(categorical, len(low))
        counts = []
        for column, mark in enumerate(marks):
            if low[column] == high[column]:
                counts.append(1)
            elif mark:
                counts.append(_count_categories(column, float(low[column]), float(high[column])))
            else:
                counts.append(number)
        return cls(low, high, tuple(counts), marks)

    def read(self, features: Array) -> Array:
        """The bins of the rows, whose values are within the bounds."""
        found = np.zeros(features.shape, dtype=np.int64)
        for column, count in enumerate(self.counts):
            low, high, values = self.lower[column], self.upper[column], features[:, column]
            if self.categorical[column]:
                found[:, column] = np.maximum(on_grid(values - low, 1.0, count - 1), 0.0)
            elif count > 1:  # halves do not overflow
                share = np.clip((values / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0)
                found[:, column] = on_grid(share, float(count), count - 1)
        return found

    def edge(self, column: int, place: int) -> float:
        """The upper end of a bin of numbers, or a category's own number."""
        low, high, count = float(self.lower[column]), float(self.upper[column]), self.counts[column]
        if self.categorical[column]:
            return low + place
        share = (place + 1) / count
        return low * (1 - share) + high * share


def _read_mask(categorical: Iterable[Any] | None, columns: int) -> tuple[bool, ...]:
    """Which columns are of categories."""
    if categorical is None:
        return (False,) * columns
    fix = "categorical_features=[0, 3], the places of the columns, or one True or False a column"
    try:
        given = np.asarray(list(categorical))
    except TypeError:
        raise ParameterError("categorical_features", "is not a list", fix=fix) from None
    if not given.size:
        return (False,) * columns
    if given.dtype == bool and given.shape == (columns,):
        return tuple(given.tolist())
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= columns:
        raise ParameterError("categorical_features", f"do not fit {columns} columns", fix=fix)
    return tuple(column in set(given.tolist()) for column in range(columns))


def _count_categories(column: int, low: float, high: float) -> int:
    """How many whole numbers the bounds hold."""
    if not (low.is_integer() and high.is_integer()) or high - low >= _MOST_CATEGORIES:
        what = f"column {column} has bounds that are not whole numbers with at most {_MOST_CATEGORIES:,} between them"
        raise ParameterError("categorical_features", what, fix="code its k categories as 0 to k - 1, with these bounds")
    return int(high - low) + 1
