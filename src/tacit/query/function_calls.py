"""Functions by the names SQL has for them, made of the few that there are.

What a name stands for is written here once: NULLIF, IF and STARTS_WITH become CASE and LIKE, FILTER becomes a CASE
inside the aggregate. So the planner and the engines know fewer functions than an analyst does. Aggregates say
themselves how they are written: the parser is handed their syntax.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.functions import DATE_UNITS, MOST_POSITION, TIME_UNITS, Function
from tacit.query.nodes import Aggregate, Call, Case, Literal, Scalar
from tacit.query.refusals import MAX_ITEMS, refuse_too_large, refuse_unsupported, to_printable
from tacit.query.timestamps import PERIODS, parse_iso_timestamp
from tacit.query.types import parse_iso_date

MANY = MAX_ITEMS
_MOST_DIGITS = 15


@dataclass(frozen=True)
class CallSyntax:
    """A call as the text has it. `within` is the operand of WITHIN GROUP, and whether it is in descending order."""

    name: str
    arguments: tuple[Scalar, ...]
    at: SourceLocation
    star: bool = False
    distinct: bool = False
    within: tuple[Scalar, bool] | None = None
    where: Scalar | None = None


@dataclass(frozen=True)
class AggregateSyntax:
    """How an aggregate is written under one of its names; `usage` is an example, with {} for the name."""

    read: Callable[[CallSyntax], Aggregate]
    usage: str = "{}(x)"
    takes_distinct: bool = False
    takes_order: bool = False  # WITHIN GROUP (ORDER BY x)
    takes_list: bool = False  # an argument such as [0.25, 0.75], which is a call of LIST
    element: Callable[[Aggregate, int], Aggregate | None] | None = None  # of the list that it gives, counted from zero


Aggregates = Mapping[str, AggregateSyntax]  # by the name in small letters

# The function, the least and the largest number of arguments, and how it is written.
_PLAIN: dict[str, tuple[Function, int, int, str]] = {
    "abs": (Function.ABS, 1, 1, "ABS(x)"),
    "floor": (Function.FLOOR, 1, 1, "FLOOR(x)"),
    "ceil": (Function.CEIL, 1, 1, "CEIL(x)"),
    "ceiling": (Function.CEIL, 1, 1, "CEILING(x)"),
    "least": (Function.LEAST, 1, MANY, "LEAST(x, 100)"),
    "greatest": (Function.GREATEST, 1, MANY, "GREATEST(x, 0)"),
    "coalesce": (Function.COALESCE, 1, MANY, "COALESCE(x, 0)"),
    "ifnull": (Function.COALESCE, 2, 2, "IFNULL(x, 0)"),
    "nvl": (Function.COALESCE, 2, 2, "NVL(x, 0)"),
    "mod": (Function.MOD, 2, 2, "MOD(x, 10)"),
    "power": (Function.POWER, 2, 2, "POWER(x, 2)"),
    "pow": (Function.POWER, 2, 2, "POW(x, 2)"),
    "sqrt": (Function.SQRT, 1, 1, "SQRT(x)"),
    "ln": (Function.LN, 1, 1, "LN(x)"),
    "exp": (Function.EXP, 1, 1, "EXP(x)"),
    "sign": (Function.SIGN, 1, 1, "SIGN(x)"),
    "lower": (Function.LOWER, 1, 1, "LOWER(x)"),
    "lcase": (Function.LOWER, 1, 1, "LCASE(x)"),
    "upper": (Function.UPPER, 1, 1, "UPPER(x)"),
    "ucase": (Function.UPPER, 1, 1, "UCASE(x)"),
    "trim": (Function.TRIM, 1, 1, "TRIM(x), which takes spaces away"),
    "length": (Function.LENGTH, 1, 1, "LENGTH(x)"),
    "len": (Function.LENGTH, 1, 1, "LEN(x)"),
    "char_length": (Function.LENGTH, 1, 1, "CHAR_LENGTH(x)"),
    "character_length": (Function.LENGTH, 1, 1, "CHARACTER_LENGTH(x)"),
    "year": (Function.YEAR, 1, 1, "YEAR(d)"),
    "quarter": (Function.QUARTER, 1, 1, "QUARTER(d)"),
    "month": (Function.MONTH, 1, 1, "MONTH(d)"),
    "day": (Function.DAY, 1, 1, "DAY(d)"),
    "dayofmonth": (Function.DAY, 1, 1, "DAYOFMONTH(d)"),
    "isodow": (Function.WEEKDAY, 1, 1, "ISODOW(d)"),
    "week": (Function.WEEK, 1, 1, "WEEK(d)"),
    "weekofyear": (Function.WEEK, 1, 1, "WEEKOFYEAR(d)"),
    "hour": (Function.HOUR, 1, 1, "HOUR(t)"),
    "minute": (Function.MINUTE, 1, 1, "MINUTE(t)"),
    "second": (Function.SECOND, 1, 1, "SECOND(t)"),
}
_PARTS = {
    "year": Function.YEAR,
    "quarter": Function.QUARTER,
    "month": Function.MONTH,
    "day": Function.DAY,
    "isodow": Function.WEEKDAY,
    "week": Function.WEEK,
    "hour": Function.HOUR,
    "minute": Function.MINUTE,
    "second": Function.SECOND,
}
_SUNDAY_FIRST = "dow"  # the part that counts from Sunday = 0


def is_known_function(name: str, aggregates: Aggregates) -> bool:
    """Whether a function of this name, in small letters, is answered."""
    return name in _PLAIN or name in _SPECIAL or name in aggregates


def build_call(written: CallSyntax, aggregates: Aggregates) -> Scalar:
    """What a call means, or Refused."""
    if written.name in aggregates:
        return _aggregate(written, aggregates[written.name])
    if written.star or written.distinct or written.within is not None or written.where is not None:
        raise _only_aggregates(written)
    if len(written.arguments) > MAX_ITEMS:
        raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", written.at)
    if written.name in _PLAIN:
        function, least, most, usage = _PLAIN[written.name]
        _count(written, least, most, usage)
        return Call(function, written.arguments, written.at)
    return _SPECIAL[written.name](written)


def _only_aggregates(written: CallSyntax) -> Refused:
    if written.star:
        what, usage = "*", "COUNT(*)"
    elif written.distinct:
        what, usage = "DISTINCT", "COUNT(DISTINCT x)"
    elif written.within is not None:
        what, usage = "WITHIN GROUP", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)"
    else:
        what, usage = "FILTER", "COUNT(*) FILTER (WHERE age > 40)"
    return refuse_unsupported(f"{what} in {written.name.upper()}", f"only aggregates take {what}: {usage}", written.at)


def _count(written: CallSyntax, least: int, most: int, usage: str) -> None:
    if not least <= len(written.arguments) <= most:
        what = f"{written.name.upper()} with {count_arguments(len(written.arguments))}"
        raise refuse_unsupported(what, f"write {usage}", written.at)


def count_arguments(number: int) -> str:
    """How many arguments there are, in words."""
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"


def _aggregate(written: CallSyntax, syntax: AggregateSyntax) -> Aggregate:
    """An aggregate. FILTER (WHERE c) is a CASE around the argument: all of them leave NULLs out.

    So AGG(x) FILTER (WHERE c) is AGG(CASE WHEN c THEN x END), and COUNT(*) FILTER (WHERE c) counts a constant.
    """
    name = written.name.upper()
    if written.distinct and not syntax.takes_distinct:
        fix = "leave DISTINCT out; COUNT(DISTINCT x) counts the values"
        raise refuse_unsupported(f"{name}(DISTINCT ...)", fix, written.at)
    if written.within is not None and not syntax.takes_order:
        raise refuse_unsupported(f"WITHIN GROUP in {name}", f"write {syntax.usage.format(name)}", written.at)
    found = syntax.read(written)
    if written.where is None:
        return replace(found, at=written.at)
    chosen = Literal(1) if found.argument is None else found.argument
    return replace(found, argument=Case(((written.where, chosen),), Literal(None), written.at), at=written.at)


def single_operand(written: CallSyntax) -> Scalar:
    """The one argument of an aggregate; where it takes an order, it may stand in WITHIN GROUP."""
    name = written.name.upper()
    if written.within is not None and not written.arguments and not written.star:
        return written.within[0]
    if written.star or written.within is not None or len(written.arguments) != 1:
        distinct = "DISTINCT " if written.distinct else ""
        found = "*" if written.star else count_arguments(len(written.arguments))
        if written.within is not None:
            found += " and WITHIN GROUP"
        raise refuse_unsupported(f"{name} of {found}", f"give it one argument: {name}({distinct}x)", written.at)
    return written.arguments[0]


def refuse_arguments(written: CallSyntax, usage: str) -> Refused:
    """The refusal of an aggregate with other arguments than it takes."""
    found = "*" if written.star else count_arguments(len(written.arguments))
    return refuse_unsupported(f"{written.name.upper()} of {found}", f"write {usage}", written.at)


def _if(written: CallSyntax) -> Case:
    _count(written, 3, 3, f"{written.name.upper()}(age > 40, 1, 0)")
    condition, then, otherwise = written.arguments
    return Case(((condition, then),), otherwise, written.at)


def _nullif(written: CallSyntax) -> Case:
    """NULLIF(x, y) is x unless x = y; where y is NULL the comparison is not true, so x stays."""
    _count(written, 2, 2, "NULLIF(x, 0)")
    value, other = written.arguments
    return Case(((Call(Function.EQUAL, (value, other), written.at), Literal(None)),), value, written.at)


def _concat(written: CallSyntax) -> Call:
    """CONCAT reads NULL as the empty text, which || does not."""
    _count(written, 1, MANY, "CONCAT(x, y)")
    return Call(Function.CONCAT, tuple(_present(argument, written.at) for argument in written.arguments), written.at)


def _present(argument: Scalar, at: SourceLocation) -> Scalar:
    if isinstance(argument, Literal) and argument.value is not None:
        return argument
    return Call(Function.COALESCE, (argument, Literal("")), at)


def _substring(written: CallSyntax) -> Call:
    """SUBSTRING(x, start, length); without a length, to the end."""
    _count(written, 2, 3, "SUBSTRING(x, 1, 3)")
    rest = () if len(written.arguments) == 3 else (Literal(MOST_POSITION),)
    return Call(Function.SUBSTRING, (*written.arguments, *rest), written.at)


def _round(written: CallSyntax) -> Call:
    _count(written, 1, 2, "ROUND(AVG(x), 2)")
    for digits in written.arguments[1:]:
        value = digits.value if isinstance(digits, Literal) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_DIGITS:
            what = f"ROUND takes a constant number of digits, 0 to {_MOST_DIGITS}"
            raise Refused(ErrorCode.TYPE, what, at=written.at, fix="ROUND(AVG(x), 2)")
    return Call(Function.ROUND, written.arguments, written.at)


def _affix(before: str, after: str) -> Callable[[CallSyntax], Scalar]:
    """STARTS_WITH, ENDS_WITH and CONTAINS as LIKE, of a constant in which nothing is a wildcard."""

    def build(written: CallSyntax) -> Scalar:
        name = written.name.upper()
        _count(written, 2, 2, f"{name}(x, 'flu')")
        value, part = written.arguments
        text = part.value if isinstance(part, Literal) else None
        if not isinstance(text, str):
            raise refuse_unsupported(f"{name} with anything but a constant text", f"write {name}(x, 'flu')", written.at)
        if any(character in text for character in "%_\\"):
            raise refuse_unsupported(f"{name} with %, _ or \\", "use LIKE, where _ is any one character", written.at)
        return Call(Function.LIKE, (value, Literal(before + text + after, written.at)), written.at)

    return build


def build_like(value: Scalar, pattern: Scalar, at: SourceLocation, *, any_case: bool = False) -> Call:
    """x LIKE pattern; x ILIKE 'Flu%' is LOWER(x) LIKE 'flu%', for letters that all engines make small alike."""
    if not any_case:
        return Call(Function.LIKE, (value, pattern), at)
    text = pattern.value if isinstance(pattern, Literal) else None
    if not isinstance(text, str) or not text.isascii():
        what = "ILIKE with anything but a constant of letters from A to Z"
        raise refuse_unsupported(what, "write LOWER(x) LIKE 'flu%'", at)
    return Call(Function.LIKE, (Call(Function.LOWER, (value,), at), Literal(text.lower(), at)), at)


def _part(written: CallSyntax) -> Call:
    """DATE_PART('month', d) and EXTRACT(month FROM d)."""
    _count(written, 2, 2, "DATE_PART('month', d)")
    named, value = written.arguments
    part = str(named.value).lower() if isinstance(named, Literal) else ""
    if part == _SUNDAY_FIRST:
        return Call(Function.MOD, (Call(Function.WEEKDAY, (value,), written.at), Literal(7)), written.at)
    if part not in _PARTS:
        what = f"the part {to_printable(part)} of a date" if part else "a part of a date that is not a constant"
        raise refuse_unsupported(what, f"a date has {', '.join([*_PARTS, _SUNDAY_FIRST])}", written.at)
    return Call(_PARTS[part], (value,), written.at)


def _truncate(written: CallSyntax) -> Call:
    """DATE_TRUNC(unit, d): the unit stays the first argument, in small letters."""
    _count(written, 2, 2, "DATE_TRUNC('month', d)")
    named, value = written.arguments
    unit = str(named.value).lower() if isinstance(named, Literal) else ""
    if unit not in DATE_UNITS + TIME_UNITS:
        what = f"DATE_TRUNC to {to_printable(unit)}" if unit else "DATE_TRUNC to a unit that is not a constant"
        raise refuse_unsupported(what, f"cut to {', '.join(DATE_UNITS + TIME_UNITS)}", written.at)
    return Call(Function.DATE_TRUNC, (Literal(unit), value), written.at)


def _difference(written: CallSyntax) -> Call:
    """DATE_DIFF('day', from, to) is DAYS(to, from), the days from one date to the other.

    In hours, minutes or seconds it is how many of them begin between two timestamps, as engines count it.
    """
    _count(written, 3, 3, "DATE_DIFF('day', a, b)")
    named, earlier, later = written.arguments
    unit = str(named.value).lower() if isinstance(named, Literal) else ""
    if unit in TIME_UNITS:
        ends = (Call(Function.QUOTIENT, (end, Literal(PERIODS[unit])), written.at) for end in (later, earlier))
        return Call(Function.SUBTRACT, tuple(ends), written.at)
    if unit != "day":
        fix = "count days: FLOOR(DATE_DIFF('day', a, b) / 7) is whole weeks"
        raise refuse_unsupported("DATE_DIFF in anything but days, hours, minutes and seconds", fix, written.at)
    return Call(Function.DAYS, (later, earlier), written.at)


def build_date(scalar: Scalar, at: SourceLocation) -> Literal:
    """DATE '2025-12-31', of a constant."""
    text = scalar.value if isinstance(scalar, Literal) else None
    if not isinstance(text, str):
        raise refuse_unsupported("DATE of anything but a constant text", "write DATE '2025-12-31'", at)
    found: datetime.date | None = parse_iso_date(text)
    if found is None:
        raise refuse_unsupported(
            f"the date '{to_printable(text)}'", "write a day that there is, as DATE '2025-12-31'", at
        )
    return Literal(found, at)


def build_timestamp(scalar: Scalar, at: SourceLocation) -> Literal:
    """TIMESTAMP '2025-12-31 10:00', of a constant."""
    text = scalar.value if isinstance(scalar, Literal) else None
    usage = "write TIMESTAMP '2025-12-31 10:00:00'"
    if not isinstance(text, str):
        raise refuse_unsupported("TIMESTAMP of anything but a constant text", usage, at)
    found = parse_iso_timestamp(text)
    if found is None:
        fix = f"{usage}: the time in the column's zone, without an offset"
        raise refuse_unsupported(f"the timestamp '{to_printable(text)}'", fix, at)
    return Literal(found, at)


def _timestamp(written: CallSyntax) -> Literal:
    _count(written, 1, 1, "TIMESTAMP '2025-12-31 10:00:00'")
    return build_timestamp(written.arguments[0], written.at)


def _make_timestamp(written: CallSyntax) -> Literal:
    """MAKE_TIMESTAMP(2025, 12, 31, 10, 0, 0.5) of constants, as Ibis writes a timestamp."""
    usage = "TIMESTAMP '2025-12-31 10:00:00'"
    _count(written, 6, 6, usage)
    values = [part.value if isinstance(part, Literal) else None for part in written.arguments]
    numbers = [Fraction(value) for value in values if isinstance(value, int | Fraction) and not isinstance(value, bool)]
    moment = None
    if len(numbers) == 6 and all(number >= 0 and (number % 1 == 0 or number is numbers[5]) for number in numbers):
        year, month, day, hour, minute, second = map(int, numbers)
        rest = int(numbers[5] % 1 * 10**6)
        moment = parse_iso_timestamp(f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{rest:06}")
    if moment is None:
        raise refuse_unsupported("MAKE_TIMESTAMP of anything but a time of constants", f"write {usage}", written.at)
    return Literal(moment, written.at)


def _date(written: CallSyntax) -> Literal:
    _count(written, 1, 1, "DATE '2025-12-31'")
    return build_date(written.arguments[0], written.at)


_SPECIAL: dict[str, Callable[[CallSyntax], Scalar]] = {
    "if": _if,
    "iif": _if,
    "nullif": _nullif,
    "concat": _concat,
    "round": _round,
    "substring": _substring,
    "substr": _substring,
    "starts_with": _affix("", "%"),
    "prefix": _affix("", "%"),
    "ends_with": _affix("%", ""),
    "suffix": _affix("%", ""),
    "contains": _affix("%", "%"),
    "extract": _part,
    "date_part": _part,
    "datepart": _part,
    "date_trunc": _truncate,
    "datetrunc": _truncate,
    "date_diff": _difference,
    "datediff": _difference,
    "date": _date,
    "timestamp": _timestamp,
    "make_timestamp": _make_timestamp,
}
