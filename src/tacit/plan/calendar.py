"""Arithmetic of dates and timestamps in plans, written with the functions of integers and dates that engines have.

**Rule.** What is computed lies in the years 1 to 9999 or is NULL. Days and microseconds are added as integers, and a
sum that could lie outside is kept from the engine by CASE. `ADD_MONTHS` never decreases with its date: a later month
stays later, and within one month a day that is cut to the last is not cut below an earlier one. So its bounds are at
the ends, as are those of the number of a week, month, quarter or year, which never decreases either, and of an age,
which never decreases with its later date nor increases with its earlier one.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from tacit.engines.evaluate import add_months, evaluate
from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.operands import constant_date, within_years
from tacit.plan.ranges import domain
from tacit.plan.timestamps import as_timestamp, constant_timestamp, date_of
from tacit.query.bound import LEAST_INT, MOST_INT, TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Literal, Scalar, ToFloat, children
from tacit.query.timestamps import DAY, LAST, PERIODS, SECOND, UNIX_EPOCH, to_datetime
from tacit.query.types import Key, Type

FIRST_DAY, LAST_DAY = datetime.date.min, datetime.date.max
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNIX_DAY = datetime.date(1970, 1, 1)
_OUTSIDE = "this date lies outside of the years 1 to 9999"


def add_days(date: TypedScalar, days: TypedScalar, at: SourceLocation | None) -> TypedScalar:
    """A date and so many days, NULL outside of the years 1 to 9999."""
    constant = constant_value(date)
    if isinstance(constant, datetime.date) and isinstance(days.scalar, Literal) and isinstance(days.scalar.value, int):
        number = constant.toordinal() + days.scalar.value
        if not FIRST_DAY.toordinal() <= number <= LAST_DAY.toordinal():
            raise Refused(ErrorCode.OVERFLOW, _OUTSIDE, at=at, fix="add or take away less")
        day = datetime.date.fromordinal(number)
        return constant_date(day, Literal(day))
    before = Call(Function.ADD, (Call(Function.DAYS, (date.scalar, Literal(FIRST_DAY))), days.scalar))
    shifted: Scalar = Call(Function.DATE_OF, (Call(Function.MULTIPLY, (before, Literal(DAY))),))
    lower, upper = _sum(date, days)
    sure = _lies_within(lower, upper, 1, LAST_DAY.toordinal())
    if not sure:
        shifted = _keep_within(before, shifted, LAST_DAY.toordinal() - 1)
    shifted, nullable = within_years(date, shifted)
    step = days.scalar.value if isinstance(days.scalar, Literal) else None
    unit = "week" if date.unit == "week" and isinstance(step, int) and step % 7 == 0 else None
    lower, upper = _clip(lower, upper, 1, LAST_DAY.toordinal())

    def list_days(most: int) -> tuple[Key, ...] | None:
        starts = domain(date, most)
        delta = datetime.timedelta(days=step if isinstance(step, int) else 0)
        return None if starts is None else tuple(day + delta for day in starts if isinstance(day, datetime.date))

    # the first days of units, moved, are fewer than all days between the bounds
    known = list_days if sure and date.unit is not None and isinstance(step, int) else None
    nullable = nullable or days.nullable or not sure
    return TypedScalar(shifted, Type.DATE, lower, upper, Fraction(1), nullable, unit, listing=known)


def add_microseconds(moment: TypedScalar, number: TypedScalar, period: int, at: SourceLocation | None) -> TypedScalar:
    """A timestamp and so many periods, NULL outside of the years 1 to 9999."""
    constant, count = constant_value(moment), number.scalar.value if isinstance(number.scalar, Literal) else None
    if isinstance(constant, int) and isinstance(count, int):
        shifted = constant + count * period
        if not 0 <= shifted <= LAST:
            raise Refused(ErrorCode.OVERFLOW, _OUTSIDE, at=at, fix="add or take away less")
        return constant_timestamp(to_datetime(shifted))
    added: Scalar = Call(Function.MULTIPLY, (number.scalar, Literal(period)))
    if isinstance(count, int):
        added = Literal(count * period)
    total: Scalar = Call(Function.ADD, (moment.scalar, added))
    scaled = replace(number, lower=_times(number.lower, period), upper=_times(number.upper, period))
    lower, upper = _sum(moment, scaled)
    sure = _lies_within(lower, upper, 0, LAST)
    if not sure:
        total = _keep_within(total, total, LAST)
    lower, upper = _clip(lower, upper, 0, LAST)
    unit = moment.unit if isinstance(count, int) and moment.unit in PERIODS else None
    unit = unit if unit is not None and isinstance(count, int) and count * period % PERIODS[unit] == 0 else None
    nullable = moment.nullable or number.nullable or not sure
    return TypedScalar(total, Type.TIMESTAMP, lower, upper, Fraction(1), nullable, unit)


def shift_months(operand: TypedScalar, months: int, at: SourceLocation | None) -> TypedScalar:
    """A date or timestamp so many months later; a day that the month lacks becomes its last."""
    if operand.type is Type.TIMESTAMP:
        return _shift_moment(operand, months, at)
    constant = constant_value(operand)
    if isinstance(constant, datetime.date):
        day = add_months(constant, months)
        if day is None:
            raise Refused(ErrorCode.OVERFLOW, _OUTSIDE, at=at, fix="add or take away less")
        return constant_date(day, Literal(day))
    scalar: Scalar = Call(Function.ADD_MONTHS, (operand.scalar, Literal(months)))
    first, last = _months_range(months)
    if not _lies_within(operand.lower, operand.upper, first.toordinal(), last.toordinal()):
        early = Call(Function.GREATER_EQUAL, (operand.scalar, Literal(first)))
        late = Call(Function.LESS_EQUAL, (operand.scalar, Literal(last)))
        scalar, nullable = Case(((Call(Function.AND, (early, late)), scalar),), Literal(None)), True
    else:
        nullable = operand.nullable
    lower, upper = (_map_day(end, lambda day: add_months(day, months)) for end in (operand.lower, operand.upper))
    if operand.lower is not None and lower is None:
        lower = Fraction(1)
    if operand.upper is not None and upper is None:
        upper = Fraction(LAST_DAY.toordinal())
    lengths = {"month": 1, "quarter": 3, "year": 12}
    aligned = operand.unit in lengths and months % lengths[operand.unit] == 0
    unit = operand.unit if aligned else "month" if operand.unit in lengths else None
    return TypedScalar(scalar, Type.DATE, lower, upper, Fraction(1), nullable, unit)


def _months_range(months: int) -> tuple[datetime.date, datetime.date]:
    """The first and the last date to which so many months can be added within the years 1 to 9999.

    Where there is none, the first is after the last.
    """
    end = add_months(FIRST_DAY if months < 0 else LAST_DAY, -months)
    if end is None:
        return LAST_DAY, FIRST_DAY
    return (end, LAST_DAY) if months < 0 else (FIRST_DAY, end_of_month(end))


def end_of_month(day: datetime.date) -> datetime.date:
    """The last day of the month that a day lies in."""
    following = add_months(day.replace(day=1), 1)
    return LAST_DAY if following is None else following - datetime.timedelta(days=1)


def _shift_moment(operand: TypedScalar, months: int, at: SourceLocation | None) -> TypedScalar:
    """A timestamp: its date is shifted, and the time of day stays. Its bounds are those of whole days.

    Two moments may change places, as the evening of the 30th and the morning of the 31st do where both become the 28th,
    so only the day is bounded by the ends.
    """
    constant = constant_value(operand)
    if isinstance(constant, int):
        moment = to_datetime(constant)
        day = add_months(moment.date(), months)
        if day is None:
            raise Refused(ErrorCode.OVERFLOW, _OUTSIDE, at=at, fix="add or take away less")
        return constant_timestamp(datetime.datetime.combine(day, moment.time()))
    midnight = as_timestamp(shift_months(date_of(operand), months, at), operand.scalar)
    if operand.unit is not None and operand.unit not in {"week", "hour", "minute", "second"}:
        return midnight
    time = Call(Function.MOD, (operand.scalar, Literal(DAY)))
    scalar = Call(Function.ADD, (midnight.scalar, time))
    upper = None if midnight.upper is None else midnight.upper + DAY - 1
    unit = operand.unit if operand.unit in {"hour", "minute", "second"} else None
    nullable = midnight.nullable or operand.nullable
    return replace(midnight, scalar=scalar, upper=upper, unit=unit, nullable=nullable, listing=None)


def last_day(operand: TypedScalar) -> TypedScalar:
    """The last day of the month: the day before the first of the next one, and that of the last month there is."""
    first = Call(Function.DATE_TRUNC, (Literal("month"), operand.scalar))
    following = Call(Function.ADD_MONTHS, (first, Literal(1)))
    days = Call(Function.SUBTRACT, (Call(Function.DAYS, (following, Literal(FIRST_DAY))), Literal(1)))
    scalar: Scalar = Call(Function.DATE_OF, (Call(Function.MULTIPLY, (days, Literal(DAY))),))
    if operand.upper is None or operand.upper >= LAST_DAY.replace(day=1).toordinal():
        final = Call(Function.GREATER_EQUAL, (operand.scalar, Literal(LAST_DAY.replace(day=1))))
        scalar = Case(((final, Literal(LAST_DAY)),), scalar)
    scalar, nullable = within_years(operand, scalar)
    lower, upper = (_map_day(end, end_of_month) for end in (operand.lower, operand.upper))

    def list_days(most: int) -> tuple[Key, ...] | None:
        days = _list_units("month", lower, upper, most)
        return None if days is None else tuple(end_of_month(day) for day in days)

    known = None if lower is None or upper is None else list_days
    return TypedScalar(scalar, Type.DATE, lower, upper, Fraction(1), nullable, listing=known)


def week_start(weekday: str, operand: TypedScalar) -> TypedScalar:
    """The first day of the week that a date lies in, where weeks start on that day; NULL before the year 1."""
    start = _WEEKDAYS.index(weekday)  # days after Monday, as which the year 1 began
    days = Call(Function.DAYS, (operand.scalar, Literal(FIRST_DAY)))
    since = Call(Function.ADD, (days, Literal(7 - start)))
    weeks = Call(Function.MULTIPLY, (Call(Function.QUOTIENT, (since, Literal(7))), Literal(7)))
    first = Call(Function.SUBTRACT, (weeks, Literal(7 - start)))
    scalar: Scalar = Call(Function.DATE_OF, (Call(Function.MULTIPLY, (first, Literal(DAY))),))
    sure = operand.lower is not None and operand.lower >= 8
    if not sure:
        scalar = Case(((Call(Function.GREATER_EQUAL, (first, Literal(0))), scalar),), Literal(None))
    scalar, nullable = within_years(operand, scalar)

    def begin(end: Fraction) -> Fraction:
        return max(Fraction((int(end) - 1 + 7 - start) // 7 * 7 - (7 - start) + 1), Fraction(1))

    lower, upper = (None if end is None else begin(end) for end in (operand.lower, operand.upper))

    def list_days(most: int) -> tuple[Key, ...] | None:
        assert lower is not None
        assert upper is not None
        count = int(upper - lower) // 7 + 1
        if count > most:
            return None
        found = range(int(upper) - 7 * (count - 1), int(upper) + 1, 7)
        return tuple(datetime.date.fromordinal(day) for day in found)

    known = None if lower is None or upper is None else list_days
    return TypedScalar(scalar, Type.DATE, lower, upper, Fraction(1), nullable or not sure, listing=known)


def difference(unit: str, later: TypedScalar, earlier: TypedScalar) -> TypedScalar:
    """How many weeks, months, quarters or years begin between two dates."""
    return _difference(period_number(unit, later), period_number(unit, earlier))


def _difference(later: TypedScalar, earlier: TypedScalar) -> TypedScalar:
    bounded = later.is_bounded and earlier.is_bounded
    lower = later.lower - earlier.upper if bounded and later.lower is not None and earlier.upper is not None else None
    upper = later.upper - earlier.lower if bounded and later.upper is not None and earlier.lower is not None else None
    scalar = Call(Function.SUBTRACT, (later.scalar, earlier.scalar))
    return _whole(scalar, lower, upper, later.nullable or earlier.nullable)


def period_number(unit: str, operand: TypedScalar) -> TypedScalar:
    """The number of the week, month, quarter or year that a date lies in, counted from some fixed one."""
    date = operand.scalar
    year = Call(Function.YEAR, (date,))
    match unit:
        case "week":
            scalar: Scalar = Call(Function.QUOTIENT, (Call(Function.DAYS, (date, Literal(FIRST_DAY))), Literal(7)))
        case "month" | "quarter":
            part, count = (Function.MONTH, 12) if unit == "month" else (Function.QUARTER, 4)
            scalar = Call(Function.ADD, (Call(Function.MULTIPLY, (year, Literal(count))), Call(part, (date,))))
        case _:
            scalar = year
    scalar, nullable = within_years(operand, scalar)
    numbers = [
        None if end is None else Fraction(_number_of(unit, to_date(end))) for end in (operand.lower, operand.upper)
    ]
    return _whole(scalar, numbers[0], numbers[1], nullable)


def _number_of(unit: str, day: datetime.date) -> int:
    match unit:
        case "week":
            return (day.toordinal() - 1) // 7
        case "month":
            return 12 * day.year + day.month
        case "quarter":
            return 4 * day.year + (day.month + 2) // 3
    return day.year


def count_periods(unit: str, later: TypedScalar, earlier: TypedScalar) -> TypedScalar:
    """Whole periods from one timestamp to another, rounded toward zero. Both lie in 0 to LAST, so nothing overflows."""
    period = PERIODS[unit]
    between = _between(later, earlier)
    whole: Scalar = Call(Function.QUOTIENT, (between.scalar, Literal(period)))
    if between.lower is None or between.lower < 0:
        back = Call(Function.QUOTIENT, (Call(Function.NEGATE, (between.scalar,)), Literal(period)))
        before = Call(Function.LESS, (between.scalar, Literal(0)))
        whole = Case(((before, Call(Function.NEGATE, (back,))),), whole)
    ends = [None if end is None else toward_zero(end / period) for end in (between.lower, between.upper)]
    return _whole(whole, ends[0], ends[1], between.nullable)


def count_seconds(later: TypedScalar, earlier: TypedScalar) -> TypedScalar:
    """Seconds from one timestamp to another, with their fractions."""
    return _in_seconds(_between(later, earlier))


def _between(later: TypedScalar, earlier: TypedScalar) -> TypedScalar:
    """The microseconds between, whose bounds are None where one of both has none."""
    scalar = Call(Function.SUBTRACT, (later.scalar, earlier.scalar))
    lower = None if later.lower is None or earlier.upper is None else later.lower - earlier.upper
    upper = None if later.upper is None or earlier.lower is None else later.upper - earlier.lower
    return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), later.nullable or earlier.nullable)


def _in_seconds(microseconds: TypedScalar) -> TypedScalar:
    scalar = Call(Function.DIVIDE, (ToFloat(microseconds.scalar), Literal(Fraction(SECOND))))
    lower, upper = (None if end is None else end / SECOND for end in (microseconds.lower, microseconds.upper))
    return TypedScalar(scalar, Type.FLOAT, lower, upper, Fraction(1, SECOND), microseconds.nullable)


def epoch(operand: TypedScalar) -> TypedScalar:
    """Seconds since 1970-01-01 00:00: of a timestamp a float, with its fractions; of a date a whole number."""
    if operand.type is Type.TIMESTAMP:
        start = constant_timestamp(_UNIX_DAY)
        assert start.lower == UNIX_EPOCH
        return _in_seconds(_between(operand, start))
    days = Call(Function.DAYS, (operand.scalar, Literal(_UNIX_DAY)))
    scalar, nullable = within_years(operand, Call(Function.MULTIPLY, (days, Literal(DAY // SECOND))))
    first = _UNIX_DAY.toordinal()
    ends = [None if end is None else (end - first) * (DAY // SECOND) for end in (operand.lower, operand.upper)]
    return replace(_whole(scalar, ends[0], ends[1], nullable), step=Fraction(DAY // SECOND))


def age(unit: str, later: TypedScalar, earlier: TypedScalar) -> TypedScalar:
    """Whole months or years from one date to another, as PostgreSQL's AGE counts: the day of the month is reached.

    Let k be 32 times the months between, and the days between within a month, which are -30 to 30. For dates in order
    the months that are complete are those between, less one where the days are negative: the whole part of k / 32. In
    the other order k has the other sign, and so has the age. Of timestamps k is in microseconds, with the time of day.
    """
    between = Call(Function.SUBTRACT, (_count_by_32(later), _count_by_32(earlier)))
    whole = Literal((32 * 12 if unit == "year" else 32) * (DAY if later.type is Type.TIMESTAMP else 1))
    if later.lower is not None and earlier.upper is not None and later.lower >= earlier.upper:
        complete: Scalar = Call(Function.QUOTIENT, (between, whole))
    else:
        size = Call(Function.QUOTIENT, (Call(Function.ABS, (between,)), whole))
        complete = Call(Function.MULTIPLY, (Call(Function.SIGN, (between,)), size))
    dates = [date_of(end) if end.type is Type.TIMESTAMP else end for end in (later, earlier)]
    inner, one = within_years(dates[0], complete)
    scalar, other = within_years(dates[1], inner)
    read = _to_moment if later.type is Type.TIMESTAMP else to_date

    def count(one: Fraction | None, other: Fraction | None) -> Fraction | None:
        return None if one is None or other is None else Fraction(_age(unit, read(one), read(other)))

    return _whole(scalar, count(later.lower, earlier.upper), count(later.upper, earlier.lower), one or other)


def _count_by_32(date: TypedScalar) -> Scalar:
    """The number of a date where all months have 32 days; of a timestamp its microseconds."""
    if date.type is Type.TIMESTAMP:
        days = Call(Function.MULTIPLY, (_count_by_32(date_of(date)), Literal(DAY)))
        return Call(Function.ADD, (days, Call(Function.MOD, (date.scalar, Literal(DAY)))))
    constant = constant_value(date)
    if isinstance(constant, datetime.date):
        return Literal((12 * constant.year + constant.month) * 32 + constant.day)
    year, month, day = (Call(part, (date.scalar,)) for part in (Function.YEAR, Function.MONTH, Function.DAY))
    months = Call(Function.ADD, (Call(Function.MULTIPLY, (year, Literal(12))), month))
    return Call(Function.ADD, (Call(Function.MULTIPLY, (months, Literal(32))), day))


def _to_moment(number: Fraction) -> datetime.date:
    return to_datetime(int(number))


def _age(unit: str, later: datetime.date, earlier: datetime.date) -> int:
    if later < earlier:
        return -_age(unit, earlier, later)
    months = 12 * (later.year - earlier.year) + later.month - earlier.month
    months -= later.replace(year=2000, month=1) < earlier.replace(year=2000, month=1)
    return months // 12 if unit == "year" else months


def year_week(operand: TypedScalar) -> TypedScalar:
    """The year and week of ISO 8601 in one number, as 202501."""
    year, week = (Call(part, (operand.scalar,)) for part in (Function.ISO_YEAR, Function.WEEK))
    scalar, nullable = within_years(operand, Call(Function.ADD, (Call(Function.MULTIPLY, (year, Literal(100))), week)))
    ends = [None if end is None else Fraction(_year_week(to_date(end))) for end in (operand.lower, operand.upper)]

    def list_weeks(most: int) -> tuple[Key, ...] | None:
        days = _list_units("week", operand.lower, operand.upper, most)
        return None if days is None else tuple(_year_week(day) for day in days)

    known = None if operand.lower is None or operand.upper is None else list_weeks
    return replace(_whole(scalar, ends[0], ends[1], nullable), listing=known)


def _year_week(day: datetime.date) -> int:
    year, week, _ = day.isocalendar()
    return 100 * year + week


def _list_units(
    unit: str, lower: Fraction | None, upper: Fraction | None, most: int
) -> tuple[datetime.date, ...] | None:
    """A day of each week or month between two days; None if there are more than `most`."""
    assert lower is not None
    assert upper is not None
    found = tuple(islice(_each(unit, to_date(lower), to_date(upper)), most + 1))
    return found if len(found) <= most else None


def _each(unit: str, first: datetime.date, last: datetime.date) -> Iterator[datetime.date]:
    day: datetime.date | None = first
    while day is not None and day <= last:
        yield day
        if unit == "month":
            day = add_months(day.replace(day=1), 1)
        else:
            number = day.toordinal() + 7 - day.weekday()
            day = datetime.date.fromordinal(number) if number <= LAST_DAY.toordinal() else None


def to_date(number: Fraction) -> datetime.date:
    """The date of a bound."""
    return datetime.date.fromordinal(int(number))


def toward_zero(number: Fraction) -> Fraction:
    """A number without its fraction."""
    return Fraction(int(number))


def constant_value(operand: TypedScalar) -> object:
    """The value of what is computed from constants alone, or None."""
    scalar = operand.scalar
    if isinstance(scalar, Literal):
        return scalar.value
    return evaluate(scalar, {}) if isinstance(scalar, Call) and _is_closed(scalar) else None


def _is_closed(scalar: Scalar) -> bool:
    """Whether nothing but constants and functions is inside."""
    return isinstance(scalar, Literal) or (
        isinstance(scalar, Call | Case) and all(_is_closed(child) for child in children(scalar))
    )


def _whole(scalar: Scalar, lower: Fraction | None, upper: Fraction | None, nullable: bool) -> TypedScalar:
    """An integer; without declared bounds where one is not known."""
    if lower is None or upper is None:
        lower, upper, nullable = LEAST_INT, MOST_INT, True
    return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), nullable)


def _map_day(end: Fraction | None, function: Callable[[datetime.date], datetime.date | None]) -> Fraction | None:
    day = None if end is None else function(to_date(end))
    return None if day is None else Fraction(day.toordinal())


def _sum(one: TypedScalar, other: TypedScalar) -> tuple[Fraction | None, Fraction | None]:
    lower = None if one.lower is None or other.lower is None else one.lower + other.lower
    upper = None if one.upper is None or other.upper is None else one.upper + other.upper
    return lower, upper


def _times(end: Fraction | None, factor: int) -> Fraction | None:
    return None if end is None else end * factor


def _lies_within(lower: Fraction | None, upper: Fraction | None, least: int, most: int) -> bool:
    return lower is not None and upper is not None and least <= lower and upper <= most


def _clip(
    lower: Fraction | None, upper: Fraction | None, least: int, most: int
) -> tuple[Fraction | None, Fraction | None]:
    """Bounds of what is NULL outside of the least and the most."""
    if lower is None or upper is None:
        return None, None
    return min(max(lower, Fraction(least)), Fraction(most)), max(min(upper, Fraction(most)), Fraction(least))


def _keep_within(number: Scalar, value: Scalar, most: int) -> Case:
    """The value where a number is from 0 to the most, and NULL otherwise."""
    low = Call(Function.GREATER_EQUAL, (number, Literal(0)))
    high = Call(Function.LESS_EQUAL, (number, Literal(most)))
    return Case(((Call(Function.AND, (low, high)), value),), Literal(None))
