"""Functions of dates and timestamps by the names and in the argument orders that dialects have for them.

A unit is a text or a bare word: DATE_TRUNC('month', d), DATE_TRUNC(d, MONTH), DATEDIFF(day, a, b).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from tacit.errors import SourceLocation
from tacit.query.call_syntax import Build, CallSyntax, bare_word, check_count, constant_number, constant_text
from tacit.query.date_formats import (
    read_date_format,
    read_mysql_format,
    read_postgresql_format,
    read_snowflake_format,
    read_strftime_format,
    split_format,
)
from tacit.query.dialect_names import PARTS, PLAIN, UNITS
from tacit.query.dialects import QuestionDialect
from tacit.query.functions import DATE_UNITS, TIME_UNITS, Function
from tacit.query.intervals import MULTIPLES, add_interval, add_units, interval_parts, is_interval
from tacit.query.nodes import Call, Case, ColumnReference, Literal, Scalar
from tacit.query.refusals import CLOCK_FIX, refuse_unsupported, to_printable
from tacit.query.timestamps import PERIODS, parse_iso_timestamp
from tacit.query.types import parse_iso_date

_ALL_UNITS = DATE_UNITS + TIME_UNITS
_START = Literal("START")
_SUNDAY_WEEK = "week(sunday)"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Fields of formats that are digits, the parts that they show, and how many digits there are.
_DIGITS: dict[str, tuple[Function, int]] = {
    "year": (Function.YEAR, 4),
    "quarter": (Function.QUARTER, 1),
    **dict.fromkeys(("month1", "month2"), (Function.MONTH, 2)),
    **dict.fromkeys(("day1", "day2"), (Function.DAY, 2)),
    "isodow": (Function.WEEKDAY, 1),
    "week": (Function.WEEK, 2),
    "doy": (Function.DAY_OF_YEAR, 3),
    "hour": (Function.HOUR, 2),
    "minute": (Function.MINUTE, 2),
    "second": (Function.SECOND, 2),
}
_FRACTIONS = {"SS.US": 6, "SS.MS": 3, "%S.%F": 6}  # digits of a second by the end of a format
_READ = {"year": r"([0-9]{4})", **dict.fromkeys(("month2", "day2", "hour", "minute", "second"), r"([0-9]{2})")}


def _unit(scalar: Scalar, dialect: QuestionDialect = QuestionDialect.POSTGRES) -> str | None:
    """The unit that an argument names, by any of its names; week(sunday) for BigQuery's weeks."""
    word = constant_text(scalar) or ""
    if not word and len(bare := bare_word(scalar) or "") > 1:  # a column may have the name of one letter
        word = bare
    match scalar:
        case Call(Function.WEEK, (ColumnReference() as day,)) if bare_word(day) in _WEEKDAYS:
            return "week" if bare_word(day) == "monday" else f"week({bare_word(day)})"
    if dialect is QuestionDialect.BIGQUERY and word.lower() == "week":
        return _SUNDAY_WEEK
    return UNITS.get(word.lower())


def _take_unit(written: CallSyntax) -> tuple[str, tuple[Scalar, ...], bool]:
    """The unit, the other arguments, and whether the unit is the first. A text is one before a bare word is."""
    first, last = written.arguments[0], written.arguments[-1]
    name = written.name.upper()
    at_first, at_last = _unit(first, written.dialect), _unit(last, written.dialect)
    if at_first is not None and at_last is not None:
        texts = constant_text(first) is not None, constant_text(last) is not None
        if texts[0] == texts[1]:
            fix = "write the unit in single quotes; a column of that name stands in double quotes"
            raise refuse_unsupported(f"{name} with two words that are units", fix, written.at)
        at_first, at_last = (at_first, None) if texts[0] else (None, at_last)
    if at_first is not None:
        return at_first, written.arguments[1:], True
    if at_last is not None:
        return at_last, written.arguments[:-1], False
    given = constant_text(first) or constant_text(last)
    what = f"{name} to {to_printable(given)}" if given else f"{name} to a unit that is not a constant"
    fix = f"{'cut to' if 'TRUNC' in name else 'its units are'} {', '.join(_ALL_UNITS)}"
    raise refuse_unsupported(what, fix, written.at)


def build_truncation(written: CallSyntax) -> Call:
    """DATE_TRUNC(unit, d): the unit becomes the first argument, in small letters."""
    check_count(written, 2, 2, "DATE_TRUNC('month', d)")
    unit, (value,), _ = _take_unit(written)
    if unit.startswith("week("):
        return Call(Function.WEEK_START, (Literal(unit[len("week(") : -1]), value), written.at)
    if unit not in _ALL_UNITS:
        raise refuse_unsupported(f"DATE_TRUNC to {unit}", f"cut to {', '.join(_ALL_UNITS)}", written.at)
    return Call(Function.DATE_TRUNC, (Literal(unit), value), written.at)


def _part(written: CallSyntax) -> Scalar:
    """DATE_PART('month', d) and EXTRACT(month FROM d)."""
    check_count(written, 2, 2, "DATE_PART('month', d)")
    named, value = written.arguments
    unit = _unit(named, written.dialect)
    part = (constant_text(named) or bare_word(named) or unit or "").lower()
    if unit == _SUNDAY_WEEK or (part == "week" and written.dialect is QuestionDialect.MYSQL):
        fix = "write WEEKOFYEAR(d)" if written.dialect is QuestionDialect.MYSQL else "write ISOWEEK"
        raise refuse_unsupported("EXTRACT(WEEK ...) of weeks from Sunday", f"{fix}, of weeks from Monday", written.at)
    if isinstance(value, Call) and value.function == Function.AGE:
        return _part_of_age(part, value, written)
    name = PARTS.get(part) or (unit if unit in PLAIN else None)
    if name == "date":
        return Call(Function.CAST, (value, Literal("date")), written.at)
    if name == "dayofweek":
        return _weekday(value, written, from_one=part == "dayofweek" and written.dialect is QuestionDialect.BIGQUERY)
    if name is None:
        what = f"the part {to_printable(part)} of a date" if part else "a part of a date that is not a constant"
        known = [*_ALL_UNITS, "isodow", "dow", "doy", "isoyear", "epoch"]
        raise refuse_unsupported(what, f"a date has {', '.join(known)}", written.at)
    if name in TIME_UNITS and isinstance(value, Call) and value.function == Function.SUBTRACT:
        value = replace(value, at=written.at)  # of timestamps it is an interval, and the whole is what is refused
    return Call(PLAIN[name][0], (value,), written.at)


def _part_of_age(part: str, age: Call, written: CallSyntax) -> Call:
    """The years of an age, or the months beyond whole years."""
    _, later, earlier = age.arguments
    if UNITS.get(part) == "year":
        return Call(Function.AGE, (Literal("year"), later, earlier), written.at)
    if UNITS.get(part) == "month":
        months = Call(Function.AGE, (Literal("month"), later, earlier), written.at)
        return Call(Function.MOD, (months, Literal(12)), written.at)
    fix = "an age has years and months; count days with date_diff"
    raise refuse_unsupported(f"the part {to_printable(part)} of AGE", fix, written.at)


def _age(written: CallSyntax) -> Call:
    """AGE(a, b), and AGE(b), which is up to today."""
    check_count(written, 1, 2, "AGE(a, b)")
    later, earlier = written.arguments if len(written.arguments) == 2 else (_today(written), *written.arguments)
    return Call(Function.AGE, (Literal("interval"), later, earlier), written.at)


def _today(written: CallSyntax) -> Literal:
    if written.today is None:
        raise refuse_unsupported(f"{written.name.upper()} up to the present day", CLOCK_FIX, written.at)
    return Literal(day_of_clock(written.today), written.at)


def day_of_clock(today: datetime.date) -> datetime.date:
    """The day of the declared present, which may have a time."""
    return today.date() if isinstance(today, datetime.datetime) else today


def time_of_clock(today: datetime.date) -> datetime.datetime:
    """The declared present with its time, which is midnight unless it is declared."""
    return today if isinstance(today, datetime.datetime) else datetime.datetime.combine(today, datetime.time())


def _difference(written: CallSyntax) -> Scalar:
    """DATE_DIFF('day', from, to), DATE_DIFF(to, from, DAY) and DATEDIFF(to, from), in days.

    It is how many units begin between both. Days, hours, minutes and seconds are those of `DAYS` and `QUOTIENT`. In
    DuckDB's dialect weeks are whole: sevens of the days between both dates, toward zero, as in DuckDB since 1.1.
    """
    if written.dialect is QuestionDialect.MYSQL and written.name == "timestampdiff":
        return _whole_difference(written)
    if written.dialect is QuestionDialect.MYSQL and written.name == "timediff":
        fix = "count what is between: TIMESTAMPDIFF(SECOND, from, to)"
        raise refuse_unsupported("TIMEDIFF, which gives a time in MySQL,", fix, written.at)
    usage = "DATE_DIFF('day', a, b)"
    check_count(written, 2, 3, usage)
    if len(written.arguments) == 2:
        later, earlier = written.arguments
        return Call(Function.DAYS, (later, earlier), written.at)
    unit, (one, other), is_first = _take_unit(written)
    earlier, later = (one, other) if is_first else (other, one)
    if unit in TIME_UNITS:
        ends = (Call(Function.QUOTIENT, (end, Literal(PERIODS[unit])), written.at) for end in (later, earlier))
        return Call(Function.SUBTRACT, tuple(ends), written.at)
    if unit == "day":
        return Call(Function.DAYS, (later, earlier), written.at)
    if unit == "week" and written.dialect is QuestionDialect.DUCKDB:
        days = (_as_day(end, written.at) for end in (later, earlier))
        return Call(Function.ELAPSED, (Literal(unit), *days), written.at)
    if unit == _SUNDAY_WEEK:  # a Sunday is the Monday of the day before
        unit, ends = "week", (add_units(end, "day", Literal(1), written.at) for end in (later, earlier))
        later, earlier = ends
    if unit not in DATE_UNITS:
        raise refuse_unsupported(f"DATE_DIFF in {unit}", f"count {', '.join(_ALL_UNITS)}", written.at)
    return Call(Function.DATE_DIFF, (Literal(unit), later, earlier), written.at)


def _as_day(value: Scalar, at: SourceLocation) -> Scalar:
    """The date of a date, a timestamp or a text."""
    is_text = isinstance(value, Literal) and isinstance(value.value, str)
    return build_date(value, at) if is_text else Call(Function.CAST, (value, Literal("date")), at)


def _whole_difference(written: CallSyntax) -> Call:
    """TIMESTAMP_DIFF(to, from, HOUR), and MySQL's TIMESTAMPDIFF(HOUR, from, to): whole units of time."""
    usage = "TIMESTAMP_DIFF(a, b, HOUR)"
    check_count(written, 3, 3, usage)
    unit, (one, other), is_first = _take_unit(written)
    later, earlier = (other, one) if is_first else (one, other)
    return _count_periods(unit, later, earlier, written)


def _count_periods(unit: str, later: Scalar, earlier: Scalar, written: CallSyntax) -> Call:
    if unit in {"month", "year"} and written.dialect is QuestionDialect.MYSQL:
        return Call(Function.AGE, (Literal(unit), later, earlier), written.at)
    if unit not in PERIODS:
        fix = f"count {', '.join(PERIODS)}; date_diff counts the months that begin between both"
        raise refuse_unsupported(f"{written.name.upper()} in {unit}", fix, written.at)
    return Call(Function.ELAPSED, (Literal(unit), later, earlier), written.at)


def _months_between(written: CallSyntax) -> Scalar:
    """MONTHS_BETWEEN(a, b): whole months, and 31sts for the days beyond; two last days are whole months apart."""
    check_count(written, 2, 2, "MONTHS_BETWEEN(a, b)")
    at = written.at
    a, b = (Call(Function.CAST, (operand, Literal("date")), at) for operand in written.arguments)
    months = Call(Function.DATE_DIFF, (Literal("month"), a, b), at)
    one, other = (Call(Function.DAY, (operand,), at) for operand in (a, b))
    last = [Call(Function.EQUAL, (operand, Call(Function.LAST_DAY, (operand,), at)), at) for operand in (a, b)]
    whole = Call(Function.OR, (Call(Function.EQUAL, (one, other), at), Call(Function.AND, tuple(last), at)), at)
    rest = Call(Function.DIVIDE, (Call(Function.SUBTRACT, (one, other), at), Literal(Fraction(31))), at)
    return Call(Function.ADD, (months, Case(((whole, Literal(Fraction(0))),), rest, at)), at)


def _add(written: CallSyntax) -> Scalar:
    """DATE_ADD(d, INTERVAL 7 DAY), DATEADD(day, 7, d) and DATE_ADD(d, 7); DATE_SUB takes away.

    DATE_SUB('day', a, b) is DuckDB's: whole units of time from a to b.
    """
    subtract = "sub" in written.name
    usage = f"{written.name.upper()}(d, INTERVAL 7 DAY)"
    check_count(written, 2, 3, usage)
    if len(written.arguments) == 2:
        value, number = written.arguments
        if is_interval(value):
            value, number = number, value
        if is_interval(number):
            return add_interval(value, number, written.at, subtract=subtract)
        return add_units(value, "day", number, written.at, subtract=subtract)
    unit, (number, value), _ = _take_unit(written)
    if subtract:
        return _count_periods(unit, value, number, written)
    if unit not in MULTIPLES:
        raise refuse_unsupported(
            f"{written.name.upper()} of {unit}", f"its units are {', '.join(MULTIPLES)}", written.at
        )
    return add_units(value, unit, number, written.at)


def _add_months(written: CallSyntax) -> Scalar:
    """ADD_MONTHS(d, 3) is d + INTERVAL '3 months'; in Snowflake the last day of a month becomes the last of another.

    The day after a last day is a first, which every month has.
    """
    check_count(written, 2, 2, "ADD_MONTHS(d, 3)")
    (day, months), at = written.arguments, written.at
    added = add_units(day, "month", months, at)
    if written.dialect is not QuestionDialect.SNOWFLAKE:
        return added
    first = add_units(day, "day", Literal(1), at)
    last = add_units(add_units(first, "month", months, at), "day", Literal(-1), at)
    is_last = Call(Function.EQUAL, (Call(Function.DAY, (first,), at), Literal(1)), at)
    return Case(((is_last, last),), added, at)


def _last_day(written: CallSyntax) -> Call:
    """LAST_DAY(d), and LAST_DAY(d, MONTH)."""
    check_count(written, 1, 2, "LAST_DAY(d)")
    value, *units = written.arguments
    if any(_unit(unit) != "month" for unit in units):
        raise refuse_unsupported("LAST_DAY of anything but a month", "leave the unit out", written.at)
    return Call(Function.LAST_DAY, (value,), written.at)


def _time_bucket(written: CallSyntax) -> Call:
    """TIME_BUCKET(INTERVAL '1 day', t), of one unit, is DATE_TRUNC."""
    check_count(written, 2, 2, "TIME_BUCKET(INTERVAL '1 day', t)")
    width, value = written.arguments
    parts = [(unit, constant_number(n)) for unit, n in interval_parts(width)] if is_interval(width) else []
    unit = next((name for name in _ALL_UNITS if parts == [MULTIPLES[name]]), None)
    if unit is None:
        fix = f"one of these is answered: {', '.join(_ALL_UNITS)}"
        raise refuse_unsupported("TIME_BUCKET of anything but one unit", fix, written.at)
    return Call(Function.DATE_TRUNC, (Literal(unit), value), written.at)


def _to_number(written: CallSyntax) -> Scalar:
    """TO_NUMBER(TO_CHAR(d, 'YYYY')), of digits of a date."""
    check_count(written, 1, 1, f"{written.name.upper()}(TO_CHAR(d, 'YYYY'))")
    (value,) = written.arguments
    found = read_digits(value) if isinstance(value, Call) and value.function == Function.TO_CHAR else None
    if found is None:
        fix = "ask the owner to declare the column as a number"
        raise refuse_unsupported(f"{written.name.upper()} of anything but digits of a date", fix, written.at)
    return found


def _time_slice(written: CallSyntax) -> Call:
    """TIME_SLICE(t, 1, 'WEEK'), of one unit, is DATE_TRUNC."""
    usage = "TIME_SLICE(t, 1, 'WEEK')"
    check_count(written, 3, 4, usage)
    value, number, unit = written.arguments[:3]
    if constant_number(number) != 1 or _unit(unit) not in _ALL_UNITS or written.arguments[3:] not in ((), (_START,)):
        fix = f"write {usage}, of one of these: {', '.join(_ALL_UNITS)}"
        raise refuse_unsupported("TIME_SLICE of anything but one unit", fix, written.at)
    return Call(Function.DATE_TRUNC, (Literal(_unit(unit)), value), written.at)


def _dayofweek(written: CallSyntax) -> Call:
    check_count(written, 1, 1, "DAYOFWEEK(d)")
    from_one = written.dialect in {QuestionDialect.BIGQUERY, QuestionDialect.MYSQL}
    return _weekday(written.arguments[0], written, from_one=from_one)


def _weekday(value: Scalar, written: CallSyntax, *, from_one: bool) -> Call:
    """The weekday from Sunday = 0, as DOW is in PostgreSQL, or from 1."""
    found = Call(Function.MOD, (Call(Function.WEEKDAY, (value,), written.at), Literal(7)), written.at)
    return Call(Function.ADD, (found, Literal(1)), written.at) if from_one else found


def _name_of(pattern: str, short: str) -> Build:
    """The name of a weekday or a month, which Snowflake cuts to three letters."""

    def build(written: CallSyntax) -> Call:
        check_count(written, 1, 1, f"{written.name.upper()}(d)")
        form = short if written.dialect is QuestionDialect.SNOWFLAKE else pattern
        return Call(Function.TO_CHAR, (Literal(form), *written.arguments), written.at)

    return build


def _format(written: CallSyntax) -> Call:
    """TO_CHAR(d, 'YYYY-MM'), STRFTIME(d, '%Y-%m'), FORMAT_DATE('%Y-%m', d) and DATE_FORMAT(d, 'yyyy-MM')."""
    name = written.name.upper()
    usage = {"to_char": "TO_CHAR(d, 'YYYY-MM')", "to_varchar": "TO_VARCHAR(d, 'YYYY-MM')"}.get(
        written.name, f"{name}('%Y-%m', d)" if name.startswith("FORMAT") else f"{name}(d, '%Y-%m')"
    )
    if name.startswith("TO_") and len(written.arguments) == 1:
        return Call(Function.CAST, (*written.arguments, Literal("text")), written.at)
    check_count(written, 2, 2, usage)
    value, text = written.arguments
    if constant_text(text) is None:
        value, text = text, value
    found = constant_text(text)
    if found is None:
        raise refuse_unsupported(f"{name} with a format that is not a constant", "write the format", written.at)
    pattern = _format_reader(written)(found)
    if pattern is None or not any(field for field, _ in split_format(pattern)):
        fix = "name the parts of a date, and signs between them"
        if name.startswith("TO_") and re.search("[ap]m", found):
            fix = "write AM and PM in capital letters"
        raise refuse_unsupported(f"the format '{to_printable(found)}'", fix, written.at)
    return Call(Function.TO_CHAR, (Literal(pattern), value), written.at)


def _format_reader(written: CallSyntax) -> Callable[[str], str | None]:
    """How a function reads a format, by its name and the dialect."""
    if written.name == "date_format":
        return read_mysql_format if written.dialect is QuestionDialect.MYSQL else read_date_format
    if not written.name.startswith("to_"):
        return read_strftime_format
    return read_snowflake_format if written.dialect is QuestionDialect.SNOWFLAKE else read_postgresql_format


def read_digits(formatted: Call) -> Scalar | None:
    """The number that TO_CHAR(d, 'YYYYMM') says, made of its parts; None where the format is more than digits."""
    pattern, value = formatted.arguments
    parts = split_format(str(pattern.value)) if isinstance(pattern, Literal) else []
    if not parts or any(field not in _DIGITS for field, _ in parts):
        return None
    total: Scalar | None = None
    size = 1
    for field, _ in reversed(parts):
        function, digits = _DIGITS[str(field)]
        part: Scalar = Call(function, (value,), formatted.at)
        part = part if size == 1 else Call(Function.MULTIPLY, (part, Literal(size)), formatted.at)
        total = part if total is None else Call(Function.ADD, (part, total), formatted.at)
        size *= 10**digits
    return total


def build_date(scalar: Scalar, at: SourceLocation) -> Literal:
    """DATE '2025-12-31', of a constant."""
    text = scalar.value if isinstance(scalar, Literal) else None
    if not isinstance(text, str):
        raise refuse_unsupported("DATE of anything but a constant text", "write the day itself", at)
    found: datetime.date | None = parse_iso_date(text)
    if found is None:
        day = f"DATE '{text[:10]}'" if parse_iso_date(text[:10]) is not None else None  # less a time
        fix = "write a day that there is, as in 2025-12-31" if day is None else f"write the day alone: {day}"
        raise refuse_unsupported(f"the date '{to_printable(text)}'", fix, at, day)
    return Literal(found, at)


def build_timestamp(scalar: Scalar, at: SourceLocation) -> Literal:
    """TIMESTAMP '2025-12-31 10:00', of a constant."""
    text = scalar.value if isinstance(scalar, Literal) else None
    if not isinstance(text, str):
        raise refuse_unsupported("TIMESTAMP of anything but a constant text", "write the time itself", at)
    found = parse_iso_timestamp(text)
    if found is None:
        fix = "write a time that there is, as in 2025-12-31 10:00:00, in the column's zone and without an offset"
        raise refuse_unsupported(f"the timestamp '{to_printable(text)}'", fix, at)
    return Literal(found, at)


def _date(written: CallSyntax) -> Scalar:
    """DATE('2025-12-31'), DATE(t), and DATE(2025, 12, 31)."""
    if len(written.arguments) == 3:
        return _make_date(written)
    check_count(written, 1, 1)
    (value,) = written.arguments
    if isinstance(value, Literal):
        return build_date(value, written.at)
    return Call(Function.CAST, (value, Literal("date")), written.at)


def _timestamp(written: CallSyntax) -> Scalar:
    check_count(written, 1, 1)
    (value,) = written.arguments
    if isinstance(value, Literal):
        return build_timestamp(value, written.at)
    return Call(Function.CAST, (value, Literal("timestamp")), written.at)


def _make_date(written: CallSyntax) -> Literal:
    """MAKE_DATE(2025, 12, 31) of constants."""
    check_count(written, 3, 3)
    numbers = [constant_number(part) for part in written.arguments]
    found = None
    if all(isinstance(number, int) and 0 < number <= 9999 for number in numbers):
        year, month, day = numbers
        found = parse_iso_date(f"{year:04}-{month:02}-{day:02}")
    if found is None:
        what = f"{written.name.upper()} of anything but a day of constants"
        raise refuse_unsupported(what, "write the day itself", written.at)
    return Literal(found, written.at)


def _make_timestamp(written: CallSyntax) -> Literal:
    """MAKE_TIMESTAMP(2025, 12, 31, 10, 0, 0.5) of constants, as Ibis writes a timestamp."""
    check_count(written, 6, 6)
    numbers = [Fraction(value) for part in written.arguments if (value := constant_number(part)) is not None]
    moment = None
    if len(numbers) == 6 and all(number >= 0 and (number % 1 == 0 or number is numbers[5]) for number in numbers):
        year, month, day, hour, minute, second = map(int, numbers)
        rest = int(numbers[5] % 1 * 10**6)
        moment = parse_iso_timestamp(f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{rest:06}")
    if moment is None:
        what = "MAKE_TIMESTAMP of anything but a time of constants"
        raise refuse_unsupported(what, "write the time itself", written.at)
    return Literal(moment, written.at)


def _to_date(written: CallSyntax) -> Scalar:
    """TO_DATE('2025-12-31'), also with a format; of a timestamp, its date."""
    return _read_time(written, "date")


def _to_timestamp(written: CallSyntax) -> Scalar:
    return _read_time(written, "timestamp")


def _read_time(written: CallSyntax, kind: str) -> Scalar:
    check_count(written, 1, 2)
    value, *formats = written.arguments[::-1] if written.name.startswith("parse") else written.arguments
    text = constant_text(value)
    if text is None and not formats:
        return Call(Function.CAST, (value, Literal(kind)), written.at)
    if text is None:
        fix = "compare it as the text it is, or ask the owner to declare the column as date or timestamp"
        raise refuse_unsupported(f"{written.name.upper()} of anything but a constant", fix, written.at)
    if formats:
        text = _read_by_format(text, constant_text(formats[0]) or "", written.dialect)
        if text is None:
            what = f"{written.name.upper()} with this format"
            raise refuse_unsupported(what, "write the day itself, with its year first", written.at)
    constant = Literal(text[:10] if kind == "date" else text, written.at)
    return build_date(constant, written.at) if kind == "date" else build_timestamp(constant, written.at)


def _read_by_format(text: str, form: str, dialect: QuestionDialect) -> str | None:
    """A text that a format reads, as ISO 8601 has it; None where it does not fit.

    Parts of a second are read at the end only, with all of their digits: SS.US, %S.%f.
    """
    digits = next((digits for end, digits in _FRACTIONS.items() if form.upper().endswith(end)), 0)
    fraction = re.search(rf"\.[0-9]{{{digits}}}\Z", text, re.ASCII) if digits else None
    if fraction is not None:
        whole = _read_by_format(text[: fraction.start()], form[: form.rindex(".")], dialect)
        return None if whole is None else whole + fraction[0]
    read = read_snowflake_format if dialect is QuestionDialect.SNOWFLAKE else read_postgresql_format
    pattern = read_strftime_format(form) if "%" in form else read(form)
    parts = [] if pattern is None else split_format(pattern)
    fields = [field for field, _ in parts if field]
    if not {"year", "month2", "day2"} <= set(fields) <= _READ.keys() or len(fields) != len(set(fields)):
        return None
    found = re.fullmatch("".join(_READ[field] if field else re.escape(sign) for field, sign in parts), text, re.ASCII)
    if found is None:
        return None
    values = dict.fromkeys(_READ, "00") | dict(zip(fields, found.groups(), strict=True))
    return "{year}-{month2}-{day2} {hour}:{minute}:{second}".format(**values)


BUILDERS: dict[str, Build] = {
    "extract": _part,
    "date_part": _part,
    "date_trunc": build_truncation,
    "date_diff": _difference,
    "timestamp_diff": _whole_difference,
    "months_between": _months_between,
    "age": _age,
    "date_add": _add,
    "date_sub": _add,
    "add_months": _add_months,
    "last_day": _last_day,
    "time_bucket": _time_bucket,
    "time_slice": _time_slice,
    "to_number": _to_number,
    "dayofweek": _dayofweek,
    "dayname": _name_of("{Day}", "{Dy}"),
    "monthname": _name_of("{Month}", "{Mon}"),
    "to_char": _format,
    "strftime": _format,
    "format_date": _format,
    "date_format": _format,
    "date": _date,
    "timestamp": _timestamp,
    "datetime": _timestamp,
    "make_date": _make_date,
    "make_timestamp": _make_timestamp,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
}
