"""Dates, timestamps and integers as texts, written with the functions that engines have, and the lists of such texts.

**Rule.** A number of two digits is the last two of itself and 100, a name of a month one branch of a CASE: so a text is
the same in every engine, whatever its country. The texts of a date with bounds are public: they are those of the days,
or of the first moments of the unit on which the format changes, between the bounds.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

from tacit.errors import ErrorCode, Refused
from tacit.plan.operands import within_years
from tacit.plan.ranges import domain
from tacit.plan.timestamps import FINER_UNITS, list_starts, start_of, time_part
from tacit.query.bound import TypedScalar
from tacit.query.date_formats import FIELDS, MONTHS, NAMES, compile_format, name_texts, split_format
from tacit.query.functions import MOST_POSITION, Function
from tacit.query.nodes import Call, Case, Literal, Scalar, find_location
from tacit.query.timestamps import PERIODS, to_datetime, to_microseconds
from tacit.query.types import Key, Type

_LENGTHS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_MOST_STEPS = 4_000  # moments that are looked at for a list
_WITHOUT_YEAR = 366 * 9  # days, in which every day of a year occurs: a leap year comes within eight
_DIGITS = {
    "year": (Function.YEAR, 4),
    "yy": (Function.YEAR, 2),
    "quarter": (Function.QUARTER, 0),
    "month2": (Function.MONTH, 2),
    "month1": (Function.MONTH, 0),
    "isoyear": (Function.ISO_YEAR, 4),
    "week": (Function.WEEK, 2),
    "week1": (Function.WEEK, 0),
    "day2": (Function.DAY, 2),
    "day1": (Function.DAY, 0),
    "doy": (Function.DAY_OF_YEAR, 3),
    "isodow": (Function.WEEKDAY, 0),
}
_TIMES = {"hour": (Function.HOUR, 2), "hour1": (Function.HOUR, 0), "minute": (Function.MINUTE, 2)} | {
    "second": (Function.SECOND, 2)
}
ISO_DATE = "{year}-{month2}-{day2}"
ISO_TIME = ISO_DATE + " {hour}:{minute}:{second}"


def count_copies(pattern: str) -> int:
    """How often a format names what it writes."""
    return sum(len(NAMES[field][0]) if field in NAMES else 2 for field, _ in split_format(pattern) if field) + 4


def to_char(pattern: str, operand: TypedScalar, date: TypedScalar) -> TypedScalar:
    """A date or timestamp as a format writes it. `date` is the operand as a date."""
    parts = [_write(field, operand, date) if field else Literal(text) for field, text in split_format(pattern)]
    written: Scalar = parts[0] if len(parts) == 1 else Call(Function.CONCAT, tuple(parts))
    scalar, nullable = within_years(date, written)
    bounded = operand.lower is not None and operand.upper is not None
    listing = (lambda most: _list_texts(pattern, operand, most)) if bounded else None
    return TypedScalar(scalar, Type.TEXT, nullable=nullable or operand.nullable, listing=listing)


def _write(field: str, operand: TypedScalar, date: TypedScalar) -> Scalar:
    if field in NAMES:
        texts = name_texts(field)
        part = Function.MONTH if NAMES[field][0] is MONTHS else Function.WEEKDAY
        number = Call(part, (date.scalar,))
        branches = tuple(
            (Call(Function.EQUAL, (number, Literal(n))), Literal(text)) for n, text in enumerate(texts, start=1)
        )
        return Case(branches, Literal(None))
    if field in _DIGITS:
        part, digits = _DIGITS[field]
        return _digits(Call(part, (date.scalar,)), digits)
    if field in {"dow0", "dow1"}:
        sunday: Scalar = Call(Function.MOD, (Call(Function.WEEKDAY, (date.scalar,)), Literal(7)))
        return _digits(sunday if field == "dow0" else Call(Function.ADD, (sunday, Literal(1))), 0)
    if operand.type is not Type.TIMESTAMP:  # a date is its midnight
        return Literal({"hour12": "12", "am": "AM", "hour1": "0"}.get(field, "00"))
    if field in _TIMES:
        part, digits = _TIMES[field]
        return _digits(time_part(part, operand).scalar, digits)
    hour = time_part(Function.HOUR, operand).scalar
    if field == "am":
        before = Call(Function.LESS, (hour, Literal(12)))
        after = Call(Function.GREATER_EQUAL, (hour, Literal(12)))
        return Case(((before, Literal("AM")), (after, Literal("PM"))), Literal(None))
    twelve = Call(
        Function.ADD, (Call(Function.MOD, (Call(Function.ADD, (hour, Literal(11))), Literal(12))), Literal(1))
    )
    return _digits(twelve, 2)


def _digits(number: Scalar, digits: int) -> Scalar:
    """A number as its last digits, with zeros before; as it is where `digits` is 0."""
    if digits == 0:
        return Call(Function.TO_TEXT, (number,))
    last: Scalar = Call(Function.MOD, (number, Literal(100))) if digits == 2 else number
    padded = Call(Function.TO_TEXT, (Call(Function.ADD, (last, Literal(10**digits))),))
    return Call(Function.SUBSTRING, (padded, Literal(2), Literal(MOST_POSITION)))


def _list_texts(pattern: str, operand: TypedScalar, most: int) -> tuple[Key, ...] | None:
    """All texts that a format makes of what is between bounds; None if they are more than `most`, or not sure."""
    fields = [field for field, _ in split_format(pattern) if field]
    unit = min((FIELDS[field] for field in fields), key=_LENGTHS.index)
    if unit == "week" and {FIELDS[field] for field in fields} != {"week"}:
        unit = "day"
    if operand.type is Type.DATE and unit in PERIODS and PERIODS[unit] < PERIODS["day"]:
        unit = "day"
    step = unit if operand.unit is None or operand.unit in FINER_UNITS.get(unit, ()) else operand.unit
    period = _repeats_after(fields, unit) if step == unit else None  # seven months need not begin on all weekdays
    found: dict[str, None] = {}
    write, count = compile_format(pattern), 0
    for count, moment in enumerate(islice(_moments(step, operand, is_start=step != unit), _MOST_STEPS), start=1):
        found[write(moment)] = None
        if len(found) > most:
            return None
        if period is not None and count >= period:
            return tuple(found)
    return tuple(found) if count < _MOST_STEPS else None


def _repeats_after(fields: list[str], unit: str) -> int | None:
    """So many units have all texts that there are, where no field is a year; None where that is not known."""
    changing = {FIELDS[field] for field in fields}
    if "year" in changing or "isoyear" in fields:
        return None
    weekdays = {
        field for field in fields if field in {"dow0", "dow1", "isodow"} or NAMES.get(field, (MONTHS,))[0] is not MONTHS
    }
    match unit:
        case "quarter":
            return 4
        case "month":
            return 12
        case "hour" if changing == {"hour"}:
            return 24
        case "hour" if changing == {"hour", "day"} and weekdays == {f for f in fields if FIELDS[f] == "day"}:
            return 7 * 24
        case "minute" if changing <= {"hour", "minute"}:
            return 24 * 60
        case "day" if weekdays == set(fields):
            return 7
        case "day" if not weekdays and "week" not in changing:
            return _WITHOUT_YEAR
        case "week":
            return 53 * 8
    return None


def _moments(unit: str, operand: TypedScalar, *, is_start: bool) -> Iterator[datetime.datetime]:
    """A moment of the operand in each unit between its bounds; of one that is always a start of it, only the starts."""
    assert operand.lower is not None
    assert operand.upper is not None
    lower, upper = int(operand.lower), int(operand.upper)
    if operand.type is Type.DATE:
        lower, upper = (to_microseconds(datetime.date.fromordinal(end)) for end in (lower, upper))
    starts = list_starts(unit, lower if is_start else int(start_of(unit, Fraction(lower))), upper)
    yield from (to_datetime(max(start, lower)) for start in starts)


def integer_text(operand: TypedScalar) -> TypedScalar:
    """An integer as its digits."""

    def list_texts(most: int) -> tuple[Key, ...] | None:
        numbers = domain(operand, most)
        return None if numbers is None else tuple(map(str, numbers))

    return TypedScalar(
        Call(Function.TO_TEXT, (operand.scalar,)), Type.TEXT, nullable=operand.nullable, listing=list_texts
    )


def refuse_format(node: Call, kind: str) -> Refused:
    """The refusal of a format of what is no date."""
    fix = "round a number, or cast a whole one to text"
    return Refused(ErrorCode.TYPE, f"TO_CHAR takes a date or a timestamp, got {kind}", at=find_location(node), fix=fix)
