"""Columns of a question as numbers to learn from, by what the policy declares of them.

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

from tacit.errors import ErrorCode, ParameterError, Refused, SourceLocation
from tacit.plan.relation import Field
from tacit.query.types import NUMERIC_TYPES, Key, Type

Array = NDArray[Any]
_MOST_CATEGORIES = 10_000
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


def bind_feature(field: Field, *, nulls: bool, at: SourceLocation | None) -> Feature:
    """A column of a question as a feature, or Refused. `nulls` says whether a NULL number has a declared reading."""
    bound = field.bound
    if field.is_unit:
        what = f"{field.name} is the unit of protection, and nothing to learn from"
        raise Refused(ErrorCode.RAW_COLUMN, what, at=at, fix="leave it out of the select list")
    if (
        bound.type in {*NUMERIC_TYPES, Type.DATE}
        and bound.is_bounded
        and bound.lower is not None
        and bound.upper is not None
    ):
        if bound.nullable and not nulls:
            fix = f"COALESCE({field.name}, 0), say, or declare what NULL is read as: missing=0"
            raise Refused(
                ErrorCode.TYPE, f"{field.name} may be NULL, and the estimator has no rule for it", at=at, fix=fix
            )
        return Feature(field.name, float(bound.lower), float(bound.upper))
    if bound.type is Type.TIMESTAMP:
        what = f"{field.name} is a timestamp, and an estimator learns from numbers"
        fix = f"make numbers of it: HOUR({field.name}), or DATE_DIFF('day', DATE '2025-01-01', {field.name})"
        raise Refused(ErrorCode.TYPE, what, at=at, fix=fix)
    if field.values is not None:
        extra = () if field.other is None or field.other in field.values else (field.other,)
        if len(field.values) > _MOST_CATEGORIES:
            raise Refused(ErrorCode.TOO_LARGE, f"{field.name} has too many keys to learn from", at=at, fix="group them")
        return Feature(field.name, 0.0, 1.0, (*field.values, *extra), field.other)
    raise Refused(
        ErrorCode.UNBOUNDED,
        f"{field.name} has neither bounds nor declared keys, so it cannot be a feature",
        at=at,
        fix="clamp it, or ask the owner for lower and upper, or values",
    )
