"""Timestamps in plans: every function of one, written with the functions of integers and dates.

A timestamp is an integer (`query/timestamps.py`), so its bounds are integers, and what is computed from it is bounded
as any other integer or date is. What is made here is total: QUOTIENT divides an integer that is not negative by a
positive constant, and DATE_OF takes an integer of the years 1 to 9999. A date as a timestamp is its midnight.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from tacit.engines.evaluate import truncate_date
from tacit.errors import ErrorCode, Refused
from tacit.plan.operands import within_years
from tacit.query.bound import LEAST_INT, MOST_INT, Listing, TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Call, Literal, Scalar, find_location
from tacit.query.refusals import to_printable
from tacit.query.timestamps import (
    DAY,
    HOUR,
    LAST,
    MINUTE,
    PERIODS,
    SECOND,
    parse_iso_timestamp,
    to_day,
    to_microseconds,
)
from tacit.query.types import Key, Type

_WITHIN_A_DAY = ("day", "hour", "minute", "second")
# The units on whose first moments all first moments of a unit lie.
FINER_UNITS = {
    "year": ("year", "quarter", "month", *_WITHIN_A_DAY),
    "quarter": ("quarter", "month", *_WITHIN_A_DAY),
    "month": ("month", *_WITHIN_A_DAY),
    "week": ("week", *_WITHIN_A_DAY),
    "day": _WITHIN_A_DAY,
    "hour": _WITHIN_A_DAY[1:],
    "minute": _WITHIN_A_DAY[2:],
    "second": _WITHIN_A_DAY[3:],
}
_LONGEST_DAYS = {"year": 366, "quarter": 92, "month": 31}
_PARTS = {Function.HOUR: (DAY, HOUR), Function.MINUTE: (HOUR, MINUTE), Function.SECOND: (MINUTE, SECOND)}


def constant_timestamp(moment: datetime.datetime | datetime.date) -> TypedScalar:
    """A constant timestamp."""
    number = to_microseconds(moment)
    return TypedScalar(Literal(number), Type.TIMESTAMP, Fraction(number), Fraction(number), Fraction(1), nullable=False)


def as_timestamp(operand: TypedScalar, node: Scalar) -> TypedScalar:
    """A date as its midnight, and a constant text that is written as a time as that; any other text is refused."""
    match operand.type, operand.scalar:
        case Type.TEXT, Literal(text):
            moment = parse_iso_timestamp(str(text))
            if moment is None:
                fix = "write a time that there is, as in 2025-12-31 10:00:00, without an offset"
                what = f"'{to_printable(str(text))}' is not a timestamp"
                raise Refused(ErrorCode.TYPE, what, at=find_location(node), fix=fix)
            return constant_timestamp(moment)
        case Type.TEXT, _:
            what, fix = "a timestamp is compared with a timestamp, got text", "compare it with a time"
            raise Refused(ErrorCode.TYPE, what, at=find_location(node), fix=fix)
        case Type.DATE, Literal(datetime.date() as day):
            return constant_timestamp(day)
        case Type.DATE, scalar:
            return _midnight(operand, scalar)
    return operand


def _midnight(operand: TypedScalar, scalar: Scalar) -> TypedScalar:
    """The microseconds of the days before a date."""
    days = Call(Function.DAYS, (scalar, Literal(datetime.date.min)))
    midnight, nullable = within_years(operand, Call(Function.MULTIPLY, (days, Literal(DAY))))
    lower, upper = (None if end is None else (end - 1) * DAY for end in (operand.lower, operand.upper))
    return replace(
        operand,
        scalar=midnight,
        type=Type.TIMESTAMP,
        lower=lower,
        upper=upper,
        step=Fraction(1),
        nullable=nullable,
        unit=operand.unit or "day",
        listing=_map_listing(operand, _midnight_of),
    )


def _midnight_of(day: Key) -> Key:
    assert isinstance(day, datetime.date)
    return to_microseconds(day)


def _date_at(moment: Key) -> Key:
    assert isinstance(moment, int)
    return to_day(moment)


def _map_listing(operand: TypedScalar, function: Callable[[Key], Key]) -> Listing | None:
    """All values of a function that never decreases, in order, where those of its operand are listed."""
    known = operand.listing

    def list_values(most: int) -> tuple[Key, ...] | None:
        values = None if known is None else known(most)
        return None if values is None else tuple(dict.fromkeys(map(function, values)))

    return None if known is None else list_values


def date_of(operand: TypedScalar) -> TypedScalar:
    """The date that a timestamp lies in. It never decreases, so its bounds are at the ends."""
    lower, upper = (
        None if end is None else Fraction(to_day(int(end)).toordinal()) for end in (operand.lower, operand.upper)
    )
    unit = operand.unit if operand.unit in _LONGEST_DAYS or operand.unit == "week" else None
    scalar = Call(Function.DATE_OF, (operand.scalar,))
    return replace(
        operand,
        scalar=scalar,
        type=Type.DATE,
        lower=lower,
        upper=upper,
        step=Fraction(1),
        unit=unit,
        listing=_map_listing(operand, _date_at),
    )


def quotient(operand: TypedScalar, period: int) -> TypedScalar:
    """How many whole periods there are before a timestamp; without declared bounds where it has none."""
    lower = LEAST_INT if operand.lower is None else Fraction(operand.lower // period)
    upper = MOST_INT if operand.upper is None else Fraction(operand.upper // period)
    scalar = Call(Function.QUOTIENT, (operand.scalar, Literal(period)))
    return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), operand.nullable)


def truncate(unit: str, operand: TypedScalar) -> TypedScalar:
    """The first moment of a unit of one length: a multiple of it. A week starts on Monday, as the year 1 did."""
    period = PERIODS[unit]
    scalar = Call(Function.MULTIPLY, (Call(Function.QUOTIENT, (operand.scalar, Literal(period))), Literal(period)))
    lower, upper = (None if end is None else start_of(unit, end) for end in (operand.lower, operand.upper))

    def start(moment: Key) -> Key:
        assert isinstance(moment, int)
        return moment // period * period

    known = _map_listing(operand, start)
    return replace(operand, scalar=scalar, lower=lower, upper=upper, step=Fraction(period), unit=unit, listing=known)


def time_part(function: Function, operand: TypedScalar) -> TypedScalar:
    """HOUR, MINUTE or SECOND: what is left of the next longer unit, in whole ones."""
    longer, unit = _PARTS[function]
    rest = Call(Function.MOD, (operand.scalar, Literal(longer)))
    lower, upper = Fraction(0), Fraction(longer // unit - 1)
    if operand.lower is not None and operand.upper is not None and operand.lower // longer == operand.upper // longer:
        lower, upper = (Fraction(int(end) % longer // unit) for end in (operand.lower, operand.upper))
    scalar = Call(Function.QUOTIENT, (rest, Literal(unit)))
    nullable = operand.nullable or operand.lower is None
    return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), nullable)


def start_of(unit: str, moment: Fraction) -> Fraction:
    """The first moment of the unit that a timestamp lies in."""
    if unit in PERIODS:
        return Fraction(int(moment) // PERIODS[unit] * PERIODS[unit])
    return Fraction(to_microseconds(truncate_date(unit, to_day(int(moment)))))


def list_starts(unit: str, first: int, last: int) -> Iterator[int]:
    """The first moments of a unit from `first` to `last`, in increasing order."""
    if unit in PERIODS:
        period = PERIODS[unit]
        yield from range(-(-first // period) * period, last + 1, period)
        return
    start = int(start_of(unit, Fraction(first)))
    while start <= last:
        if start >= first:
            yield start
        after = start + _LONGEST_DAYS[unit] * DAY  # in the next unit, and not beyond it
        if after > LAST:
            return
        start = int(start_of(unit, Fraction(after)))
