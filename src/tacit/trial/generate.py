"""Made-up values for the columns of a policy: ordinary ones, and those where a single unit shows most.

Nothing but the policy is read. Ordinary values are what real ones are: mostly within their bounds and lists, and now
and then missing, not listed, infinite or far outside. A style is a way for one unit to stand out; it says what a
column holds in the rows of the unit's group of a number.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

from tacit.policy.model import Column
from tacit.query.timestamps import DAY, LAST, to_datetime, to_microseconds
from tacit.query.types import Type
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below

_FAR = 10**6  # how far beyond its bound an extreme number lies
_TEXTS = 8  # texts that occur where none are listed
_ODD = 12  # one value in so many is an odd one
_LARGEST = 2**63 - 1
_STEPS = 1000  # points of a float that has no grid
_DAYS = (datetime.date(2000, 1, 1).toordinal(), datetime.date(2030, 12, 31).toordinal())  # where none are declared

Style = Callable[[Column, int], Any]


def ordinary(column: Column, bits: Bits) -> Any:
    """A value as it may occur."""
    if draw_below(_ODD, bits) == 0:
        odd = _odd(column)
        return odd[draw_below(len(odd), bits)]
    if column.values is not None:
        return column.values[draw_below(len(column.values), bits)]
    match column.type:
        case Type.BOOL:
            return draw_below(2, bits) == 1
        case Type.TEXT:  # common ones and rare ones: the least of two draws
            return text(min(draw_below(_TEXTS, bits), draw_below(_TEXTS, bits)))
        case Type.DATE:
            first, last = _range(column)
            return datetime.date.fromordinal(first + draw_below(last - first + 1, bits))
        case Type.TIMESTAMP:
            first, last = _range(column)
            return to_datetime(first + draw_below(last - first + 1, bits))
        case Type.INT:
            first, last = _range(column)
            return first + draw_below(last - first + 1, bits)
    lower, upper = _ends(column)
    step = column.step or (upper - lower) / _STEPS or 1
    return float(lower + step * draw_below(int((upper - lower) / step) + 1, bits))


def text(number: int) -> str:
    """A text of a column that lists none; small numbers are the common ones."""
    return f"key {number}"


def high(column: Column, group: int) -> Any:
    """Beyond the upper bound, true, a key from the front of the list, or one that nobody else holds."""
    if column.values is not None and column.type is not Type.BOOL:
        return column.values[group % len(column.values)]
    return f"only {group}" if column.type is Type.TEXT else _beyond(column, 1)


def low(column: Column, group: int) -> Any:
    """Beyond the lower bound, false, a key from the end of the list, or one that nobody else holds."""
    if column.values is not None and column.type is not Type.BOOL:
        return column.values[-1 - group % len(column.values)]
    return f"alone {group}" if column.type is Type.TEXT else _beyond(column, -1)


def common(column: Column, group: int) -> Any:
    """At the upper bound, in a group that others are in too."""
    del group  # all rows are in one
    if column.values is not None and column.type is not Type.BOOL:
        return column.values[0]
    return {Type.TEXT: text(0), Type.BOOL: True}.get(column.type, _read_bound(column, 1))


def missing(column: Column, group: int) -> Any:
    """Nothing at all."""
    del column, group


def few(column: Column, group: int) -> Any:
    """Nothing at all, in a unit that has one row only."""
    del column, group


def even(column: Column, group: int) -> Any:
    """At one bound or at the other, by turns: a crowd of these has a gap in its middle."""
    if column.values is not None:
        return column.values[group % len(column.values)]
    return {Type.TEXT: text(group % _TEXTS), Type.BOOL: group % 2 == 0}.get(
        column.type, _read_bound(column, 1 if group % 2 else -1)
    )


def _odd(column: Column) -> list[Any]:
    """What a column may hold that is no ordinary value."""
    if column.type is Type.BOOL:
        return [None]
    if column.type is Type.TEXT:
        return [None, "", "not listed", 'it\'s "odd" é']
    ends = [None, _read_bound(column, 1), _read_bound(column, -1), _beyond(column, 1), _beyond(column, -1)]
    return ends if column.type is not Type.FLOAT else [*ends, math.nan, math.inf, -math.inf, -0.0]


def _ends(column: Column) -> tuple[Any, Any]:
    """The bounds, or some where none are declared."""
    if column.lower is None or column.upper is None:
        if column.type is Type.TIMESTAMP:
            first, last = (to_microseconds(datetime.date.fromordinal(day)) for day in _DAYS)
            return first, last
        return _DAYS if column.type is Type.DATE else (-5, 5)
    return column.lower, column.upper


def _range(column: Column) -> tuple[int, int]:
    lower, upper = _ends(column)
    return int(lower), int(upper)


def _read_bound(column: Column, side: int) -> Any:
    """The upper bound, or the lower one."""
    return _as(column, _ends(column)[side > 0])


def _beyond(column: Column, side: int) -> Any:
    """Far outside a bound, as far as the type goes; true or false of a bool."""
    if column.type is Type.BOOL:
        return side > 0
    far = {Type.DATE: 400, Type.TIMESTAMP: 400 * DAY}.get(column.type, _FAR)
    return _as(column, _ends(column)[side > 0] + side * far)


def _as(column: Column, number: Any) -> Any:
    """A number in the column's own type, where that can hold it."""
    if column.type is Type.DATE:
        return datetime.date.fromordinal(max(1, min(datetime.date.max.toordinal(), int(number))))
    if column.type is Type.TIMESTAMP:
        return to_datetime(max(0, min(LAST, int(number))))
    return max(-_LARGEST, min(_LARGEST, int(number))) if column.type is Type.INT else float(number)
