"""INTERVAL '7 days', INTERVAL 7 DAY and the like: numbers of units, which are added to dates and timestamps.

An interval of constants is months, days and microseconds, as PostgreSQL keeps it: a year is 12 months and a week 7
days, but a day is no number of hours. They are added in this order, and a day that the month lacks becomes its last.

>>> read_interval_text("1 year 2 weeks")
(('month', 12), ('day', 14))
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from tacit.errors import SourceLocation
from tacit.query.call_syntax import constant_number
from tacit.query.dialect_names import UNITS
from tacit.query.functions import Function
from tacit.query.nodes import Call, Literal, Scalar
from tacit.query.refusals import refuse_unsupported, to_printable
from tacit.query.timestamps import PERIODS

INTERVAL_FIX = "write a number and a unit: '7 days', '1 month' or '12 hours'"
# Each unit in the one of months, days and microseconds that it is a multiple of.
MULTIPLES: dict[str, tuple[str, int]] = {
    "year": ("month", 12),
    "quarter": ("month", 3),
    "month": ("month", 1),
    "week": ("day", 7),
    "day": ("day", 1),
    "hour": ("microsecond", PERIODS["hour"]),
    "minute": ("microsecond", PERIODS["minute"]),
    "second": ("microsecond", PERIODS["second"]),
    "millisecond": ("microsecond", 1000),
    "microsecond": ("microsecond", 1),
}
_MOST = 10**17  # microseconds; more than there are from the year 1 to 9999 is never needed
_PART = re.compile(r"\s*([+-]?[0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)", re.ASCII)


def read_interval_text(text: str) -> tuple[tuple[str, int], ...] | None:
    """The months, days and microseconds that a text says; None where it is no interval."""
    found: list[tuple[str, Fraction]] = []
    position = 0
    while position < len(text.rstrip()):
        match = _PART.match(text, position)
        unit = None if match is None else UNITS.get(match[2].lower())
        if match is None or unit is None:
            return None
        found.append((unit, Fraction(match[1])))
        position = match.end()
    return _total(found)


def _total(parts: Iterable[tuple[str, int | Fraction]]) -> tuple[tuple[str, int], ...] | None:
    """The same in months, days and microseconds; None where one of these would not be whole, or is too large."""
    totals: dict[str, Fraction] = {}
    for unit, number in parts:
        base, factor = MULTIPLES[unit]
        totals[base] = totals.get(base, Fraction(0)) + number * factor
    if not totals or any(total % 1 or abs(total) > _MOST for total in totals.values()):
        return None
    return tuple((base, int(totals[base])) for base in ("month", "day", "microsecond") if base in totals)


def build_interval(number: Scalar | str, unit: str | None, at: SourceLocation) -> Call:
    """An interval of a number and a unit, or of a text that says both."""
    if isinstance(number, str):
        text = number if unit is None else f"{number} {unit}"
        totals = read_interval_text(text)
        if totals is None:
            raise refuse_unsupported(f"the interval '{to_printable(text)}'", INTERVAL_FIX, at)
        return _interval(totals, at)
    assert unit is not None
    constant = constant_number(number)
    if constant is None:
        return Call(Function.INTERVAL, (Literal(unit), number), at)
    totals = _total([(unit, constant)])
    if totals is None:
        raise refuse_unsupported(f"an interval of {float(constant):g} {unit}", INTERVAL_FIX, at)
    return _interval(totals, at)


def _interval(totals: tuple[tuple[str, int], ...], at: SourceLocation) -> Call:
    parts = [scalar for unit, number in totals for scalar in (Literal(unit), Literal(number))]
    return Call(Function.INTERVAL, tuple(parts), at)


def is_interval(scalar: Scalar) -> bool:
    """Whether this is an interval."""
    return isinstance(scalar, Call) and scalar.function == Function.INTERVAL


def interval_parts(interval: Scalar) -> list[tuple[str, Scalar]]:
    """Its units, each with its number."""
    assert isinstance(interval, Call)
    units, numbers = interval.arguments[::2], interval.arguments[1::2]
    return [(str(unit.value), n) for unit, n in zip(units, numbers, strict=True) if isinstance(unit, Literal)]


def scale_interval(interval: Scalar, factor: Scalar, at: SourceLocation) -> Call:
    """n * INTERVAL '1 day'."""
    parts: list[Scalar] = []
    for unit, number in interval_parts(interval):
        one, other = constant_number(number), constant_number(factor)
        product: Scalar = factor if one == 1 else Call(Function.MULTIPLY, (factor, number), at)
        if one is not None and other is not None and (one * other) % 1 == 0:
            product = Literal(int(one * other), at)
        parts += [Literal(unit), product]
    return Call(Function.INTERVAL, tuple(parts), at)


def add_interval(value: Scalar, interval: Scalar, at: SourceLocation, *, subtract: bool = False) -> Scalar:
    """value + INTERVAL: months first, then days, then hours and less."""
    for unit, number in interval_parts(interval):
        value = add_units(value, unit, number, at, subtract=subtract)
    return value


def add_units(value: Scalar, unit: str, number: Scalar, at: SourceLocation, *, subtract: bool = False) -> Call:
    """A date or timestamp and so many units."""
    constant = constant_number(number)
    if constant is not None:
        totals = _total([(unit, constant)])
        if totals is None:
            raise refuse_unsupported(f"an interval of {float(constant):g} {unit}", INTERVAL_FIX, at)
        ((unit, whole),) = totals
        number = Literal(-whole if subtract else whole)
    elif subtract:
        number = Call(Function.NEGATE, (number,), at)
    return Call(Function.DATE_ADD, (Literal(unit), number, value), at)
