"""What a scalar means on one row, in plain Python.

>>> evaluate(Call(Function.MOD, (ColumnReference("age"), Literal(10))), {"age": 47})
7
"""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tacit.query.functions import DATE_PARTS, Function
from tacit.query.nodes import Call, Case, Clamp, ColumnReference, Literal, Quantize, Scalar, ToFloat
from tacit.query.timestamps import to_day

Row = Mapping[str, Any]


def evaluate(node: Scalar, row: Row) -> Any:
    """The value of a scalar on one row; None is NULL."""
    match node:
        case Literal(Fraction() as value):
            return float(value)
        case Literal(value):
            return value
        case ColumnReference(name):
            return row[name]
        case ToFloat(operand):
            value = evaluate(operand, row)
            return None if value is None else float(value)
        case Clamp(operand, lower, upper, whole):
            value = evaluate(operand, row)
            if value is None or (not whole and math.isnan(value)):
                return None
            if lower is None or upper is None:
                return value
            low, high = (int(lower), int(upper)) if whole else (float(lower), float(upper))
            return min(max(value, low), high)
        case Quantize(operand, step, lower, upper):
            value = evaluate(operand, row)
            if value is None or math.isnan(value):
                return None
            return math.floor(min(max(value * float(1 / step) + 0.5, lower), upper + 0.5))
        case Case(branches, otherwise):
            for when, then in branches:
                if evaluate(when, row) is True:
                    return evaluate(then, row)
            return evaluate(otherwise, row)
        case Call(function, arguments):
            return _call(Function(function), [evaluate(argument, row) for argument in arguments])
    raise AssertionError(f"no meaning for {node!r}")


def truncate_date(unit: str, day: datetime.date) -> datetime.date:
    """The first day of the year, quarter, month or week that a day lies in; a week starts on Monday.

    >>> truncate_date("quarter", datetime.date(2025, 6, 30)), truncate_date("week", datetime.date(2025, 6, 30))
    (datetime.date(2025, 4, 1), datetime.date(2025, 6, 30))
    """
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "month":
            return day.replace(day=1)
        case "week":  # the first day that there is, 0001-01-01, is a Monday
            return day - datetime.timedelta(days=day.weekday())
        case "day":
            return day
    raise AssertionError(f"no unit of dates: {unit}")


def extract_date_part(function: Function, day: datetime.date) -> int:
    """A part of a date, by its function; weekdays are counted from Monday = 1, weeks as ISO 8601 does."""
    match function:
        case Function.YEAR:
            return day.year
        case Function.QUARTER:
            return (day.month + 2) // 3
        case Function.MONTH:
            return day.month
        case Function.DAY:
            return day.day
        case Function.WEEKDAY:
            return day.isoweekday()
        case Function.WEEK:
            return day.isocalendar().week
        case Function.DAY_OF_YEAR:
            return day.timetuple().tm_yday
        case Function.ISO_YEAR:
            return day.isocalendar().year
    raise AssertionError(f"no part of dates: {function}")


def add_months(day: datetime.date, months: int) -> datetime.date | None:
    """The same day so many months later, or the last one of that month; None outside of the years 1 to 9999.

    >>> add_months(datetime.date(2024, 1, 31), 1), add_months(datetime.date(2024, 2, 29), -12)
    (datetime.date(2024, 2, 29), datetime.date(2023, 2, 28))
    """
    years, month = divmod(12 * day.year + day.month - 1 + months, 12)
    if not datetime.MINYEAR <= years <= datetime.MAXYEAR:
        return None
    return datetime.date(years, month + 1, min(day.day, calendar.monthrange(years, month + 1)[1]))


def pad(text: str, size: int, filler: str, *, left: bool) -> str:
    """A text of exactly so many characters: cut at its end, or filled up on one side.

    >>> pad("7", 3, "0", left=True), pad("abcd", 3, "0", left=True), pad("a", 4, "xy", left=False)
    ('007', 'abc', 'axyx')
    """
    missing = max(0, size - len(text))
    more = (filler * missing)[:missing]
    return more + text if left and more else (text + more)[:size]


def is_like(text: str, pattern: str) -> bool:
    """Whether a text is as a pattern says, where % stands for any characters and _ for any one.

    Where a character does not fit, the last % takes one more. Earlier ones need not: what follows them is found as
    early as can be already. So it takes at most len(text) * len(pattern) steps.

    >>> is_like("influenza", "%flu_n%"), is_like("influenza", "flu%")
    (True, False)
    """
    at = position = taken = 0
    last = -1
    while at < len(text):
        if position < len(pattern) and pattern[position] == "%":
            last, taken = position, at
            position += 1
        elif position < len(pattern) and pattern[position] in {"_", text[at]}:
            at += 1
            position += 1
        elif last >= 0:
            taken += 1
            at, position = taken, last + 1
        else:
            return False
    return set(pattern[position:]) <= {"%"}


def _call(function: Function, values: list[Any]) -> Any:
    """Three-valued logic first, then functions that skip NULLs, then those that pass them on."""
    match function:
        case Function.AND:
            return False if False in values else None if None in values else True
        case Function.OR:
            return True if True in values else None if None in values else False
        case Function.IS_NULL:
            return values[0] is None
        case Function.LEAST | Function.GREATEST | Function.COALESCE:
            present = [value for value in values if value is not None]
            if not present or function is Function.COALESCE:
                return present[0] if present else None
            return min(present, key=_sort_key) if function is Function.LEAST else max(present, key=_sort_key)
    if None in values:
        return None
    if function is Function.IN:
        return _sort_key(values[0]) in map(_sort_key, values[1:])
    if function in DATE_PARTS:
        return extract_date_part(function, values[0])
    if function is Function.CONCAT:
        return "".join(values)
    return _FUNCTIONS[function](*values)


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Where a value stands among others of its type: engines place NaN above all numbers, and equal to itself."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def _round_float(rounding: Callable[[float], int], value: Any) -> Any:
    """FLOOR and CEIL: a float stays a float."""
    if not isinstance(value, float):
        return value
    return float(rounding(value)) if math.isfinite(value) else value


def _remainder(left: Any, right: Any) -> Any:
    """What is left of whole numbers divided, with the sign of the first."""
    if right == 0:
        return None
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 else math.inf


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


_FUNCTIONS: dict[Function, Callable[..., Any]] = {
    Function.NOT: lambda x: not x,
    Function.NEGATE: lambda x: -x,
    Function.ABS: abs,
    Function.FLOOR: lambda x: _round_float(math.floor, x),
    Function.CEIL: lambda x: _round_float(math.ceil, x),
    Function.ADD: lambda x, y: x + y,
    Function.SUBTRACT: lambda x, y: x - y,
    Function.MULTIPLY: lambda x, y: x * y,
    Function.DIVIDE: lambda x, y: None if y == 0 else x / y,
    Function.EQUAL: lambda x, y: _sort_key(x) == _sort_key(y),
    Function.UNEQUAL: lambda x, y: _sort_key(x) != _sort_key(y),
    Function.LESS: lambda x, y: _sort_key(x) < _sort_key(y),
    Function.LESS_EQUAL: lambda x, y: _sort_key(x) <= _sort_key(y),
    Function.GREATER: lambda x, y: _sort_key(x) > _sort_key(y),
    Function.GREATER_EQUAL: lambda x, y: _sort_key(x) >= _sort_key(y),
    Function.MOD: _remainder,
    Function.POWER: _power,
    Function.SQRT: lambda x: None if x < 0 else math.sqrt(x),
    Function.LN: lambda x: None if x <= 0 else math.log(x),
    Function.EXP: _exponential,
    Function.SIGN: lambda x: (x > 0) - (x < 0),
    Function.LOWER: str.lower,
    Function.UPPER: str.upper,
    Function.TRIM: lambda x: x.strip(" "),
    Function.LENGTH: len,
    Function.SUBSTRING: lambda x, start, length: x[start - 1 : start - 1 + length],
    Function.LIKE: is_like,
    Function.DATE_TRUNC: truncate_date,
    Function.QUOTIENT: lambda x, y: x // y,
    Function.DATE_OF: to_day,
    Function.DAYS: lambda x, y: x.toordinal() - y.toordinal(),
    Function.LOG10: lambda x: None if x <= 0 else math.log10(x),
    Function.LTRIM: lambda x: x.lstrip(" "),
    Function.RTRIM: lambda x: x.rstrip(" "),
    Function.RIGHT: lambda x, count: x[-count:],
    Function.REPLACE: lambda x, old, new: x.replace(old, new),
    Function.SPLIT_PART: lambda x, sign, place: (x.split(sign)[place - 1 : place] or [""])[0],
    Function.LPAD: lambda x, filler, size: pad(x, size, filler, left=True),
    Function.RPAD: lambda x, filler, size: pad(x, size, filler, left=False),
    Function.POSITION: lambda x, sought: x.find(sought) + 1,
    Function.TO_TEXT: str,
    Function.ADD_MONTHS: add_months,
}
