"""What a window of one unit's rows means, in plain Python: rows in a list, looked at one after the other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tacit.engines.evaluate import Row
from tacit.query.nodes import UnitWindow, WindowStatistic, column_names

_LEAST, _MOST = -(2**63), 2**63 - 1


def add_windows(node: UnitWindow, rows: list[Row]) -> list[Row]:
    """Each row with what its windows give, partition by partition."""
    partitions: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        partitions[tuple(row[name] for name in node.partition)].append(row)
    found: list[Row] = []
    for own in partitions.values():
        made: list[dict[str, Any]] = [dict(row) for row in own]
        for name, statistic in node.columns:
            places = _sort(node, statistic, own)
            ordered = [own[place] for place in places]
            keys = [tuple(_key(row[column]) for column, _, _ in node.order) for row in ordered]
            for at, place in enumerate(places):
                made[place][name] = _value(statistic, ordered, keys, at)
        found += made
    return found


def _key(value: Any) -> tuple[bool, bool, Any]:
    """What makes values equal and sorts them: NaN is above all numbers and equal to itself."""
    nan = isinstance(value, float) and math.isnan(value)
    return value is None, nan, 0 if value is None or nan else value


def _sort(node: UnitWindow, statistic: WindowStatistic, rows: list[Row]) -> list[int]:
    """The places of the rows, in order. The last column is sorted by first: a sort keeps the order of what is equal."""
    order = list(node.order)
    if statistic.breaks_ties:
        order += [(name, False, False) for name in column_names(node.source)]
    places = list(range(len(rows)))
    for name, descending, nulls_first in reversed(order):
        present = [place for place in places if rows[place][name] is not None]
        missing = [place for place in places if rows[place][name] is None]
        present.sort(key=lambda place: _key(rows[place][name]), reverse=descending)
        places = missing + present if nulls_first else present + missing
    return places


def _value(statistic: WindowStatistic, rows: list[Row], keys: list[Any], at: int) -> Any:
    number, argument = statistic.number or 0, statistic.argument
    match statistic.function:
        case "row_number":
            return at + 1
        case "rank":
            return keys.index(keys[at]) + 1
        case "dense_rank":
            return len(set(keys[: at + 1]))
        case "ntile":
            return _ntile(at, len(rows), number)
        case "lag" | "lead":
            other = at - number if statistic.function == "lag" else at + number
            if 0 <= other < len(rows):
                return rows[other][argument or ""]
            return None if statistic.otherwise is None else rows[at][statistic.otherwise]
    frame = [rows[place] for place in _frame(statistic, keys, at)]
    values = [1 if argument is None else row[argument] for row in frame]
    match statistic.function:
        case "first_value":
            return values[0] if values else None
        case "last_value":
            return values[-1] if values else None
        case "nth_value":
            return values[number - 1] if number <= len(values) else None
    return _aggregate(statistic.function, [value for value in values if value is not None])


def _ntile(at: int, size: int, parts: int) -> int:
    """The part of a row: the first parts have one row more than the others where the rows do not come out even."""
    small, more = divmod(size, parts)
    if at < more * (small + 1):
        return at // (small + 1) + 1
    return more + (at - more * (small + 1)) // small + 1


def _frame(statistic: WindowStatistic, keys: list[Any], at: int) -> Iterable[int]:
    """The places of the rows that a row's frame holds."""
    first = 0 if statistic.start is None else at + statistic.start
    last = len(keys) - 1 if statistic.end is None else at + statistic.end
    if statistic.peers:
        equal = [place for place, key in enumerate(keys) if key == keys[at]]
        first = 0 if statistic.start is None else equal[0]
        last = len(keys) - 1 if statistic.end is None else equal[-1]
    return range(max(first, 0), min(last, len(keys) - 1) + 1)


def _aggregate(function: str, values: list[Any]) -> Any:
    """An aggregate of values that are not NULL: NULL where there are none, a sum at most 64 bits wide."""
    match function:
        case "count":
            return len(values)
        case _ if not values:
            return None
        case "sum":
            return min(max(sum(values), _LEAST), _MOST)
        case "min":
            return min(values, key=_key)
        case "max":
            return max(values, key=_key)
    raise AssertionError(f"no window: {function}")
