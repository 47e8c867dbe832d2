"""Whether a private answer without noise says what plain DuckDB says."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]


def plain(value: Any) -> Any:
    """A value as both sides have it: midnights are dates, whole numbers are numbers."""
    match value:
        case bool() | None | str():
            return value
        case int() | float() | Decimal():
            number = float(value)
            return None if math.isnan(number) else number
        case datetime.datetime() if value.time() == datetime.time():
            return value.date()
    return value


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two values are equal, numbers up to a share."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 0.011 + tolerance * max(abs(one), abs(other))
    return bool(one == other)


def difference(
    found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]], tolerance: float, keys: Sequence[int] = ()
) -> str:
    """What differs, in words; nothing where every row has its equal on the other side, in any order.

    Rows of public keys that no row of the data has may be on one side only: in all but the `keys`, which are columns by
    their positions, they have zeros or nothing.
    """

    def is_empty(row: Row) -> bool:
        return all(position in keys or value is None or value == 0 for position, value in enumerate(row))

    here = [tuple(map(plain, row)) for row in found]
    there = [tuple(map(plain, row)) for row in expected]
    missing = []
    for row in there:
        match = next((i for i, other in enumerate(here) if _same(row, other, tolerance)), None)
        if match is None:
            missing.append(row)
        else:
            here.pop(match)
    more = [row for row in here if not is_empty(row)]
    lacking = [row for row in missing if not is_empty(row)]
    if not more and not lacking:
        return ""
    return f"more: {more[:3]} of {len(more)}; missing: {lacking[:3]} of {len(lacking)}"


def _same(one: Row, other: Row, tolerance: float) -> bool:
    return len(one) == len(other) and all(close(a, b, tolerance) for a, b in zip(one, other, strict=True))
