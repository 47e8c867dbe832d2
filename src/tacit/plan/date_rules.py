"""Types and bounds of functions of dates and timestamps. The rule that each keeps is in `plan/bounds.py`."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan import calendar
from tacit.plan.binding import Binding, expect_types, read_dates, read_timestamps, refuse_large_result, require_bounds
from tacit.plan.formats import refuse_format, to_char
from tacit.plan.operands import any_null, as_date, scalars_of, within_years
from tacit.plan.ranges import ALSO, day_of, least_of, most_of, part_range
from tacit.plan.timestamps import FINER_UNITS, as_timestamp, date_of, quotient, truncate
from tacit.query.bound import LEAST_INT, MOST_INT, TypedScalar
from tacit.query.dialect_names import UNITS
from tacit.query.functions import DATE_UNITS, TIME_UNITS, Function
from tacit.query.intervals import MULTIPLES
from tacit.query.nodes import Call, ColumnReference, Literal, Scalar, walk
from tacit.query.suggest import quote_scalar
from tacit.query.timestamps import LAST, PERIODS
from tacit.query.types import TIME_TYPES, Type

_PART = re.compile(r"(?:EXTRACT|DATE_?PART)\s*\(\s*'?(\w+)", re.IGNORECASE)
_MOST_MONTHS = 12 * 9_999
_MOST_SHIFT = 10**18  # microseconds or days
_MOST_MICROSECONDS = MOST_INT - LAST  # with which 64 bits hold every timestamp's sum


def bind_date_part(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """A part of a date: YEAR, QUARTER, MONTH, DAY, WEEK of ISO 8601, or WEEKDAY from Monday = 1.

    A date without bounds may be one that has no end, whose parts are NULL.
    """
    (operand,) = read_dates(binding, operands, node, f"{function.upper()} takes a date")
    lower, upper = part_range(function, operand)
    nullable = operand.nullable or not operand.is_bounded
    scalar: Scalar = Call(function, (operand.scalar,))
    if function in {Function.WEEK, Function.ISO_YEAR, Function.DAY_OF_YEAR}:
        scalar, _ = within_years(operand, scalar)
    return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), nullable)


def bind_date_trunc(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """The first day of the year, quarter, month or week; it increases, so its bounds are at the ends.

    That of a timestamp is a timestamp, and may be the first moment of an hour, minute or second too.

    A date without bounds may lie where an engine has no first day for it, so outside of the years 1 to 9999 the
    result is NULL.
    """
    unit = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
    if not isinstance(unit, str) or unit.lower() not in DATE_UNITS + TIME_UNITS:
        what = f"DATE_TRUNC takes one of {', '.join(DATE_UNITS + TIME_UNITS)}"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write one of these units")
    unit = unit.lower()
    if operands[1].type is Type.TIMESTAMP or unit in TIME_UNITS:
        (moment,) = read_timestamps(binding, operands[1:], node, f"DATE_TRUNC to {unit} takes a timestamp")
        if unit in FINER_UNITS.get(moment.unit or "", ()):
            return moment
        if unit in PERIODS:
            return truncate(unit, moment)
        return as_timestamp(bind_date_trunc(binding, node, [operands[0], date_of(moment)]), node)
    (operand,) = read_dates(binding, operands[1:], node, "DATE_TRUNC takes a date")
    if unit == "day" or unit in ALSO.get(operand.unit or "", ()):
        return operand
    lower = None if operand.lower is None else day_of(unit, operand.lower)
    upper = None if operand.upper is None else day_of(unit, operand.upper)
    scalar, nullable = within_years(operand, Call(Function.DATE_TRUNC, (Literal(unit), operand.scalar)))
    return TypedScalar(scalar, Type.DATE, lower, upper, Fraction(1), nullable, unit)


def bind_days(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """DAYS(a, b), or a - b, is the days from b to a; without declared bounds where one of the dates has none.

    DAYS of timestamps is that of their dates: how many midnights lie between. Their difference is no number.
    """
    if node.function == Function.SUBTRACT and any(o.type is Type.TIMESTAMP for o in operands):
        what = "a timestamp less another is an interval, which is no number"
        later, earlier = (quote_scalar(argument) for argument in node.arguments)
        unit = _unit_of_part(node)
        counted = f"DATE_DIFF('{unit}', {earlier}, {later})"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"count {unit}s: {counted}", instead=counted)
    takes = "DAYS takes dates" if node.function == Function.DAYS else "a date is subtracted from a date"
    left, right = read_dates(binding, operands, node, takes)
    lower = None if left.lower is None or right.upper is None else left.lower - right.upper
    upper = None if left.upper is None or right.lower is None else left.upper - right.lower
    low, high = LEAST_INT if lower is None else lower, MOST_INT if upper is None else upper
    nullable = any_null([left, right]) or not (left.is_bounded and right.is_bounded)
    return TypedScalar(Call(Function.DAYS, scalars_of([left, right])), Type.INT, low, high, Fraction(1), nullable)


def _unit_of_part(node: Call) -> str:
    """The unit of the part of which this is the difference, as in EXTRACT(MINUTE FROM a - b), and otherwise hours."""
    part = _PART.match("" if node.at is None else node.at.written)
    unit = None if part is None else UNITS.get(part[1].lower())
    return unit if unit in TIME_UNITS else "hour"


def bind_periods(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """How many hours, minutes or seconds there are before a timestamp: what DATE_DIFF subtracts."""
    operand = as_timestamp(operands[0], node)
    expect_types(binding, [operand], {Type.TIMESTAMP}, node, "DATE_DIFF in hours, minutes or seconds takes timestamps")
    period = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
    assert isinstance(period, int)  # of the parser
    return quotient(operand, period)


def bind_shifted_date(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """d + n and d - n: a date and so many days."""
    date, days = sorted(operands, key=lambda o: o.type is Type.INT)
    if function is Function.SUBTRACT:
        if operands[0] is days:
            what, less = "a date is not taken from a number", " - ".join(map(quote_scalar, node.arguments[::-1]))
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"write the date first: {less}", instead=less)
        days = _negate(binding, days)
    return _add_units(binding, node, "day", days, date)


def _negate(binding: Binding, number: TypedScalar) -> TypedScalar:
    """An integer with the other sign."""
    if isinstance(number.scalar, Literal) and isinstance(number.scalar.value, int):
        return binding.bind(Literal(-number.scalar.value))
    ends = [None if end is None else -end for end in (number.upper, number.lower)]
    scalar = Call(Function.NEGATE, (number.scalar,))
    return replace(number, scalar=scalar, lower=ends[0], upper=ends[1], listing=None)


def bind_date_arithmetic(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """DATE_ADD, and what lies between two dates or timestamps, in a unit that is the first operand."""
    unit = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
    assert isinstance(unit, str)  # of the parser
    if function is Function.DATE_ADD:
        return _add_units(binding, node, unit, operands[1], operands[2])
    if function is Function.ELAPSED:
        later, earlier = (as_timestamp(o, node) for o in operands[1:])
        expect_types(binding, [later, earlier], {Type.TIMESTAMP}, node, "whole hours or days lie between timestamps")
        return calendar.count_periods(unit, later, earlier)
    later, earlier = read_dates(binding, operands[1:], node, f"{function.upper()} takes dates")
    if function is Function.DATE_DIFF:
        return calendar.difference(unit, later, earlier)
    if any(o.type is Type.TIMESTAMP for o in operands[1:]):
        later, earlier = (as_timestamp(o, node) for o in operands[1:])
    if unit not in {"year", "month"}:
        what = "an age is an interval, which is no number"
        years = f"EXTRACT(YEAR FROM {quote_scalar(node)})"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"take its whole years: {years}", instead=years)
    return calendar.age(unit, later, earlier)


def _add_units(binding: Binding, node: Call, unit: str, number: TypedScalar, operand: TypedScalar) -> TypedScalar:
    """A date or timestamp and a number of units. A date with hours or less is a timestamp."""
    if number.type is Type.FLOAT:
        raise _refuse_fractions(node)
    expect_types(binding, [number], {Type.INT}, node, "the number of an interval is a whole number")
    require_bounds(binding, [number], node)
    base, factor = MULTIPLES[unit]
    if isinstance(operand.scalar, Literal) and operand.type is Type.TEXT:
        operand = as_timestamp(operand, node) if base == "microsecond" else as_date(operand, node)
    expect_types(binding, [operand], TIME_TYPES, node, "an interval is added to a date or a timestamp")
    constant = number.scalar.value if isinstance(number.scalar, Literal) else None
    if base == "month":
        if not isinstance(constant, int) or abs(constant * factor) > _MOST_MONTHS:
            what = "months are added as a constant, of at most 9,999 years"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the number of months")
        return calendar.shift_months(operand, constant * factor, node.at)
    size, is_date = max(abs(least_of(number)), abs(most_of(number))), base == "day" and operand.type is Type.DATE
    period = factor if base == "microsecond" else factor * PERIODS["day"]
    if binding.rows and (size * factor > _MOST_SHIFT or (not is_date and size * period > _MOST_MICROSECONDS)):
        raise refuse_large_result(node.at)
    if is_date:
        days = number
        if factor != 1:
            days = binding.bind(Literal(constant * factor)) if isinstance(constant, int) else _scale(number, factor)
        return calendar.add_days(operand, days, node.at)
    return calendar.add_microseconds(as_timestamp(operand, node), number, period, node.at)


def _refuse_fractions(node: Call) -> Refused:
    """What is said of a number of units that is a float, which BI tools write for bins of some minutes.

    The fix has the bins of as many seconds as the interval, as numbers.
    """
    parts = list(walk(node))
    column = next((part for part in parts if isinstance(part, ColumnReference)), None)
    periods = [part.value for part in parts if isinstance(part, Literal) and type(part.value) is int]
    seconds = max([period // PERIODS["second"] for period in periods if period >= PERIODS["second"]], default=300)
    what, fix = "the number of an interval is a whole number, got float", "write a whole number of units"
    if column is None:
        return Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
    bins = f"FLOOR(EXTRACT(EPOCH FROM {quote_scalar(column)}) / {seconds}) * {seconds}"
    return Refused(ErrorCode.TYPE, what, at=node.at, fix=f"bins of {seconds} seconds are {bins}", instead=bins)


def bind_difference_part(node: Call, part: Function, ends: list[TypedScalar]) -> TypedScalar:
    """EXTRACT(EPOCH FROM a - b) and EXTRACT(DAY FROM a - b) of timestamps."""
    later, earlier = (as_timestamp(end, node) for end in ends)
    if part is Function.EPOCH:
        return calendar.count_seconds(later, earlier)
    return calendar.count_periods("day", later, earlier)


def bind_calendar_part(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """EPOCH, YEARWEEK, LAST_DAY, and the first day of a week that starts on a given day."""
    if function is Function.EPOCH:
        (operand,) = [as_timestamp(o, node) if isinstance(o.scalar, Literal) else o for o in operands]
        expect_types(binding, [operand], TIME_TYPES, node, "EPOCH takes a date or a timestamp")
        return calendar.epoch(operand)
    (date,) = read_dates(binding, operands[-1:], node, f"{function.upper()} takes a date")
    if function is Function.YEAR_WEEK:
        return calendar.year_week(date)
    if function is Function.LAST_DAY:
        return calendar.last_day(date)
    weekday = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
    return calendar.week_start(str(weekday), date)


def bind_format(node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """TO_CHAR: a date or timestamp as a format of `query/date_formats.py` writes it."""
    pattern = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
    operand = operands[1]
    if operand.type is Type.TEXT and isinstance(operand.scalar, Literal):
        operand = as_timestamp(operand, node)
    if operand.type not in TIME_TYPES:
        raise refuse_format(node, str(operand.type or "NULL"))
    date = date_of(operand) if operand.type is Type.TIMESTAMP else operand
    return to_char(str(pattern), operand, date)


def _scale(number: TypedScalar, factor: int) -> TypedScalar:
    """An integer with bounds, so many times."""
    ends = [None if end is None else end * factor for end in (number.lower, number.upper)]
    scalar = Call(Function.MULTIPLY, (number.scalar, Literal(factor)))
    return replace(number, scalar=scalar, lower=ends[0], upper=ends[1], listing=None)
