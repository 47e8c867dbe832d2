"""Columns as numbers to learn from, by what is declared of them.

>>> ward = Feature("ward", 0.0, 1.0, ("A", "B"))
>>> ward.names
('ward=A', 'ward=B')
>>> FeatureEncoding((Feature("age", 0.0, 110.0), ward)).table({"age": [30, None], "ward": ["B", None]}).tolist()
[[30.0, 0.0, 1.0], [nan, 0.0, 0.0]]
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ParameterError
from tacit.query.types import Key

Array = NDArray[Any]
_EPOCH = datetime.date(1970, 1, 1).toordinal()  # where Arrow's days begin


@dataclass(frozen=True)
class Feature:
    """A number between declared bounds; or a category, which is an indicator for each of its declared keys.

    A date is the number of its day. Of a category that is NULL or none of its keys, all indicators are 0, unless there
    is a key `other` for the latter.
    """

    name: str
    lower: float
    upper: float
    values: tuple[Key, ...] | None = None
    other: Key | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What its numbers are called."""
        return (self.name,) if self.values is None else tuple(f"{self.name}={value}" for value in self.values)

    def to_dict(self) -> dict[str, Any]:
        """Return the feature as plain values; days as ISO text."""
        values = None if self.values is None else [_to_plain(value) for value in self.values]
        ends = {"lower": self.lower, "upper": self.upper}
        return {"name": self.name, **ends, "values": values, "other": _to_plain(self.other), "days": self._has_days}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Feature:
        """Return the feature that `to_dict` wrote."""

        def key(value: Any) -> Any:
            return datetime.date.fromisoformat(value) if found["days"] and value is not None else value

        values = None if found["values"] is None else tuple(key(value) for value in found["values"])
        return cls(str(found["name"]), float(found["lower"]), float(found["upper"]), values, key(found["other"]))

    @property
    def _has_days(self) -> bool:
        return self.values is not None and any(isinstance(value, datetime.date) for value in self.values)

    def numbers(self, column: Any) -> Array:
        """A column, of Arrow or a list, as a table of numbers; a number that is NULL is NaN."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
        if self.values is None:
            days = pa.types.is_date(found.type)
            numbers = found.cast(pa.date32()).cast(pa.int32()) if days else found
            # An unsafe cast rounds integers beyond 2^53; a safe one would fail, and tell that there are some.
            plain = np.asarray(numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
            return (plain + _EPOCH if days else plain).reshape(-1, 1)
        keys = pa.array(self.values)
        known = found.cast(keys.type)
        places = pc.fill_null(pc.index_in(known, value_set=keys), -1)
        if self.other is not None:
            rest = pc.and_(pc.is_valid(known), pc.equal(places, -1))
            places = pc.if_else(rest, self.values.index(self.other), places)
        return np.asarray(places.to_numpy(zero_copy_only=False)[:, None] == np.arange(len(keys)), dtype=np.float64)


@dataclass(frozen=True)
class FeatureEncoding:
    """The features of a question, in its order."""

    all: tuple[Feature, ...]

    @property
    def names(self) -> list[str]:
        """What the columns of the table are called."""
        return [name for feature in self.all for name in feature.names]

    @property
    def bounds(self) -> tuple[list[float], list[float]]:
        """The declared ends of each column of the table."""
        pairs = [(feature.lower, feature.upper) for feature in self.all for _ in feature.names]
        return [low for low, _ in pairs], [high for _, high in pairs]

    @property
    def norm(self) -> float:
        """The longest a row can be once each column is scaled to [-1, 1]: a number or a category adds at most 1."""
        return math.sqrt(len(self.all))

    def table(self, columns: Mapping[str, Any]) -> Array:
        """Columns by name as numbers; also for rows of the analyst's own, to predict with."""
        for feature in self.all:
            if feature.name not in columns:
                names = ", ".join(known.name for known in self.all)
                raise ParameterError("columns", f"there is no {feature.name}", fix=f"give {names}")
        return np.hstack([feature.numbers(columns[feature.name]) for feature in self.all])


def _to_plain(value: Key | None) -> str | int | None:
    return value.isoformat() if isinstance(value, datetime.date) else value
