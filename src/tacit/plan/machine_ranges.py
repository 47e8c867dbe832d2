"""The values that a lowered scalar may take in the machine's numbers, whatever its row holds.

**Theorem.** Let every column hold NULL or a value of its range. Then an engine that computes the scalar raises for no
row, and what it gives is NULL, NaN or a value of the range that is found here; otherwise `UnsafeScalar` is raised.

*Proof*, by induction over the scalar. Integers are those of 64 bits: each sum, difference, product and sign is taken of
the ends, exactly, and lies in 64 bits or is refused, as a constant is that they do not hold. Doubles are rounded to
nearest, so no operator that never decreases in an operand does in doubles, and the ends are computed with the same
operators as the values; where an engine computes otherwise, or a function is not rounded correctly, the ends are moved
outward. A Quantize is an integer between its ends as doubles have them. Days are added by DATE_OF alone, which takes a
moment of the years 1 to 9999, and what engines compute through their own timestamps takes dates of these years. Of
CASE a result is computed for rows alone where its condition is true and those before it are not, so what these compare
with constants is bounded by them there; and where nothing is left, no row has the result.

This shares no rule with `plan/bounds.py`, and believes no bound that is stated there: a column is what its type holds,
unless the scalar itself clamps it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from tacit.engines.evaluate import add_months, extract_date_part, truncate_date
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import (
    Call,
    Case,
    Clamp,
    ColumnReference,
    Literal,
    LiteralValue,
    Placeholder,
    Quantize,
    Scalar,
    ToFloat,
    walk,
)
from tacit.query.timestamps import DAY, LAST
from tacit.query.types import Type

_LEAST, _MOST = -(2**63), 2**63 - 1
_SMALL = 2**31 - 1  # the most that text functions take as a number
_LAST_DAY = datetime.date.max.toordinal()
_FLUSHED = 2.0**-240  # what PostgreSQL may read as zero where it divides
_CURVE_ERROR = 1e-12  # of LN, EXP and POWER, in relation to the result or to 1


class ValueKind(Enum):
    """The types of what an engine computes. A timestamp is an integer."""

    INT = "int"
    FLOAT = "float"
    DATE = "date"
    TEXT = "text"
    BOOL = "bool"
    NULL = "null"
    OPAQUE = "opaque"  # which may be compared and passed on, and no more


class Range(NamedTuple):
    """The values that are not NULL: numbers from `lower` to `upper`, dates by `date.toordinal`.

    A float may be NaN besides. `is_sure` says that it is never NULL, and never NaN.
    """

    kind: ValueKind
    lower: float = 0  # of INT and DATE an integer
    upper: float = 0
    is_sure: bool = False


class UnsafeScalar(Exception):
    """A part of a scalar for which a row might fail."""

    def __init__(self, node: Scalar, what: str = "the result could be too large for the machine") -> None:
        super().__init__(what)
        self.node = node
        self.what = what


OPAQUE = Range(ValueKind.OPAQUE)
ANY_INTEGER = Range(ValueKind.INT, _LEAST, _MOST)
_NULL = Range(ValueKind.NULL)
_TRUE = Literal(True)
_ANY_FLOAT = Range(ValueKind.FLOAT, -math.inf, math.inf)
_ANY_DATE = Range(ValueKind.DATE, -(2**32), 2**32)  # of 32 bits, some days before or after the year 1
_TEXT, _BOOL = Range(ValueKind.TEXT), Range(ValueKind.BOOL)
_BY_TYPE = {
    Type.INT: ANY_INTEGER,
    Type.FLOAT: _ANY_FLOAT,
    Type.TEXT: _TEXT,
    Type.BOOL: _BOOL,
    Type.DATE: _ANY_DATE,
    Type.TIMESTAMP: Range(ValueKind.INT, 0, LAST),
}

Facts = dict[Scalar, Range]


def range_of_type(kind: Type | None) -> Range:
    """What a column of a type holds, as every engine reads it; of one without a type nothing is known."""
    return OPAQUE if kind is None else _BY_TYPE[kind]


def hull(ranges: list[Range], *, is_sure: bool | None = None) -> Range:
    """The least range that holds several."""
    sure = all(each.is_sure for each in ranges) if is_sure is None else is_sure
    known = [each for each in ranges if each.kind is not ValueKind.NULL]
    if not known:
        return _NULL
    first = known[0]
    lower, upper = first.lower, first.upper
    kind = first.kind
    for each in known[1:]:
        if each.kind is not kind:
            numbers = {kind, each.kind} == {ValueKind.INT, ValueKind.FLOAT}
            kind = ValueKind.FLOAT if numbers else ValueKind.OPAQUE
        lower, upper = min(lower, each.lower), max(upper, each.upper)
    if kind is ValueKind.FLOAT:
        lower, upper = float(lower), float(upper)
    return OPAQUE if kind is ValueKind.OPAQUE else Range(kind, lower, upper, sure)


class Ranges:
    """The ranges of scalars over rows whose columns have ranges. `facts` are what is known of scalars besides."""

    def __init__(self, columns: Mapping[str, Range], facts: Facts | None = None) -> None:
        self.columns = columns
        self._facts: Facts = facts or {}
        self._found: dict[int, tuple[Scalar, Range]] = {}  # with the node itself, so that its id stays its own

    def find(self, node: Scalar) -> Range:
        """The range of a scalar, or UnsafeScalar."""
        known = self._found.get(id(node))
        if known is not None:
            return known[1]
        found = self._facts.get(node) if self._facts else None
        if found is None:
            found = self._find(node)
        self._found[id(node)] = (node, found)
        return found

    def _find(self, node: Scalar) -> Range:
        if isinstance(node, ColumnReference):
            return self.columns.get(node.name, OPAQUE)
        if isinstance(node, Literal):
            return _constant(node, node.value)
        if isinstance(node, Call):
            ranges = [self.find(argument) for argument in node.arguments]
            rule = _RULES.get(node.function)
            if rule is None:
                raise UnsafeScalar(node, f"{node.function.upper()} has no range")
            return rule(node, ranges)
        match node:
            case Case():
                return self._case(node)
            case Clamp(operand):
                return _clamp(node, self.find(operand))
            case ToFloat(operand):
                found = self.find(operand)
                found = ANY_INTEGER if found.kind is ValueKind.OPAQUE else found
                return _as_float(node, found)
            case Quantize(operand):
                return _quantize(node, self.find(operand))
            case Placeholder(_, kind):
                return range_of_type(kind)
        raise UnsafeScalar(node, "this has no range")

    def _case(self, node: Case) -> Range:
        here: Ranges | None = self
        results = []
        for when, then in (*node.branches, (_TRUE, node.otherwise)):
            if here is None:
                _check_constants(when)
                _check_constants(then)
                continue
            here.find(when)
            within = here._assume(when, is_true=True)
            if within is None:
                _check_constants(then)
            else:
                results.append(within.find(then))
            here = here._assume(when, is_true=False)
        return hull(results)

    def _assume(self, condition: Scalar, *, is_true: bool) -> Ranges | None:
        """The ranges over rows where a condition is true, or is not; None where there is no such row."""
        facts: Facts = {}
        for subject, function, constant in _facts_of(condition, is_true):
            before = facts.get(subject) or self.find(subject)
            found = _restrict(before, function, constant)
            if found is None and (is_true or before.is_sure):
                return None
            if found is None:
                found = _NULL  # all that is left
            elif is_true and found.kind in {ValueKind.INT, ValueKind.DATE}:
                found = found._replace(is_sure=True)
            facts[subject] = found
        return Ranges(self.columns, {**self._facts, **facts}) if facts else self


_OPPOSITE = {
    Function.LESS: Function.GREATER_EQUAL,
    Function.LESS_EQUAL: Function.GREATER,
    Function.GREATER: Function.LESS_EQUAL,
    Function.GREATER_EQUAL: Function.LESS,
    Function.UNEQUAL: Function.EQUAL,
}
_MIRRORED = {
    Function.LESS: Function.GREATER,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER: Function.LESS,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
    Function.EQUAL: Function.EQUAL,
}


def _facts_of(condition: Scalar, is_true: bool) -> Iterator[tuple[Scalar, Function, LiteralValue]]:
    """Comparisons with constants that hold, or have a NULL, where a condition is true; or where it is not."""
    match condition:
        case Call(Function.AND, parts) if is_true:
            for part in parts:
                yield from _facts_of(part, is_true)
        case Call(Function.OR, parts) if not is_true:
            for part in parts:
                yield from _facts_of(part, is_true)
        case Call(Function.NOT, (part,)) if is_true:
            yield from _facts_of(part, False)
        case Call(function, (subject, Literal(value))) if function in COMPARISONS:
            found = function if is_true else _OPPOSITE.get(Function(function))
            if found in _MIRRORED and value is not None:
                yield subject, Function(found), value
        case Call(function, (Literal(value), subject)) if function in _MIRRORED:
            found = _MIRRORED[Function(function)] if is_true else _OPPOSITE.get(_MIRRORED[Function(function)])
            if found in _MIRRORED and value is not None:
                yield subject, Function(found), value


def _restrict(before: Range, function: Function, constant: LiteralValue) -> Range | None:
    """The part of a range where a comparison with a constant holds; None where there is none, and no NaN either."""
    value: float
    if before.kind is ValueKind.DATE and isinstance(constant, datetime.date):
        value = constant.toordinal()
    elif before.kind is ValueKind.INT and isinstance(constant, int):
        value = constant
    elif before.kind is ValueKind.FLOAT and isinstance(constant, int | Fraction):
        value = float(constant)
    else:
        return before
    beyond = 0 if before.kind is ValueKind.FLOAT else 1
    lower, upper = before.lower, before.upper
    match function:
        case Function.LESS:
            upper = min(upper, value - beyond)
        case Function.LESS_EQUAL:
            upper = min(upper, value)
        case Function.GREATER:
            lower = max(lower, value + beyond)
        case Function.GREATER_EQUAL:
            lower = max(lower, value)
        case Function.EQUAL:
            lower, upper = max(lower, value), min(upper, value)
    if lower > upper:
        return before if before.kind is ValueKind.FLOAT else None
    return before._replace(lower=lower, upper=upper)


def _check_constants(scalar: Scalar) -> None:
    """Refuse constants that the machine does not hold where they are written for no row, too."""
    for part in walk(scalar):
        if isinstance(part, Literal):
            _constant(part, part.value)


def _constant(node: Scalar, value: LiteralValue) -> Range:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return Range(ValueKind.BOOL, is_sure=True)
    if isinstance(value, int):
        return _integer(node, value, value, is_sure=True)
    if isinstance(value, Fraction):
        number = _double(node, value)
        return Range(ValueKind.FLOAT, number, number, is_sure=True)
    if isinstance(value, str):
        return Range(ValueKind.TEXT, is_sure=True)
    if isinstance(value, datetime.datetime):
        raise UnsafeScalar(node, "a moment is no constant of engines")
    return Range(ValueKind.DATE, value.toordinal(), value.toordinal(), is_sure=True)


def _integer(node: Scalar, lower: float, upper: float, is_sure: bool = False) -> Range:
    """A range of integers, which 64 bits must hold."""
    if not _LEAST <= lower <= upper <= _MOST:
        raise UnsafeScalar(node)
    return Range(ValueKind.INT, lower, upper, is_sure)


def _double(node: Scalar, value: Fraction | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise UnsafeScalar(node) from None


def _float(lower: float, upper: float, is_sure: bool = False) -> Range:
    """A range of doubles; all of them, and NaN, where an end is unknown or infinite."""
    if math.isnan(lower) or math.isnan(upper):
        return _ANY_FLOAT
    return Range(ValueKind.FLOAT, lower, upper, is_sure and math.isfinite(lower) and math.isfinite(upper))


def _as_float(node: Scalar, found: Range) -> Range:
    if found.kind is ValueKind.INT:
        return Range(ValueKind.FLOAT, float(found.lower), float(found.upper), found.is_sure)
    if found.kind in {ValueKind.FLOAT, ValueKind.NULL}:
        return found
    raise UnsafeScalar(node, "only numbers are computed with")


def _clamp(node: Clamp, found: Range) -> Range:
    if found.kind is ValueKind.NULL:
        return _NULL
    if not node.whole:
        found = _ANY_FLOAT if found.kind is ValueKind.OPAQUE else _as_float(node, found)
        if node.lower is None or node.upper is None:
            return found._replace(is_sure=False)  # NaN is NULL
        low, high = _double(node, node.lower), _double(node, node.upper)
        return Range(ValueKind.FLOAT, min(max(found.lower, low), high), max(min(found.upper, high), low))
    found = ANY_INTEGER if found.kind is ValueKind.OPAQUE else found
    if found.kind is not ValueKind.INT:
        raise UnsafeScalar(node, "only integers are clamped to whole numbers")
    if node.lower is None or node.upper is None:
        return found
    ends = _integer(node, int(node.lower), int(node.upper))
    lower, upper = max(found.lower, ends.lower), min(found.upper, ends.upper)
    return Range(ValueKind.INT, min(lower, ends.upper), max(upper, ends.lower), found.is_sure)


def _quantize(node: Quantize, found: Range) -> Range:
    """The ends are clamped as doubles, which may be a little beyond the integers that are meant."""
    if found.kind is ValueKind.NULL:
        return _NULL
    operand = _ANY_FLOAT if found.kind is ValueKind.OPAQUE else _as_float(node, found)
    if not node.step:
        raise UnsafeScalar(node)
    inverse = _double(node, 1 / node.step)
    least, most = _double(node, node.lower), _double(node, node.upper)
    if not least <= most:
        raise UnsafeScalar(node)
    lower, upper = (_to_grid(end, inverse, least, most) for end in (operand.lower, operand.upper))
    lower = min(lower, node.lower) if lower <= max(least, node.lower) else lower
    upper = max(upper, node.upper) if upper >= min(most, node.upper) else upper
    return _integer(node, lower, upper)


def _to_grid(end: float, inverse: float, least: float, most: float) -> int:
    moved = end * inverse + 0.5
    moved = 0.0 if math.isnan(moved) else moved  # of an infinity and zero
    return int(min(max(math.floor(moved) if math.isfinite(moved) else moved, least), most))


def _add(node: Call, ranges: list[Range]) -> Range:
    one, other = ranges
    return _combine(node, one, other, lambda x, y: x + y)


def _subtract(node: Call, ranges: list[Range]) -> Range:
    one, other = ranges
    return _combine(node, one, other._replace(lower=-other.upper, upper=-other.lower), lambda x, y: x + y)


def _multiply(node: Call, ranges: list[Range]) -> Range:
    one, other = ranges
    return _combine(node, one, other, lambda x, y: x * y, corners=True)


def _combine(
    node: Call, one: Range, other: Range, operator: Callable[[float, float], float], corners: bool = False
) -> Range:
    """Numbers added or multiplied: of both kinds as doubles."""
    if ValueKind.NULL in {one.kind, other.kind}:
        return _NULL
    sure = one.is_sure and other.is_sure
    whole = one.kind is ValueKind.INT and other.kind is ValueKind.INT
    if not whole:
        one, other = _as_float(node, one), _as_float(node, other)
    ends = [operator(one.lower, other.lower), operator(one.upper, other.upper)]
    if corners:
        ends += [operator(one.lower, other.upper), operator(one.upper, other.lower)]
    if whole:
        return _integer(node, min(ends), max(ends), sure)
    return _ANY_FLOAT if any(map(math.isnan, ends)) else _float(min(ends), max(ends), sure)


def _negate(node: Call, ranges: list[Range]) -> Range:
    (one,) = ranges
    if one.kind is ValueKind.INT:
        return _integer(node, -one.upper, -one.lower, one.is_sure)
    found = _as_float(node, one)
    return found._replace(lower=-found.upper, upper=-found.lower)


def _absolute(node: Call, ranges: list[Range]) -> Range:
    (one,) = ranges
    found = one if one.kind is ValueKind.INT else _as_float(node, one)
    if found.kind is ValueKind.NULL:
        return _NULL
    most = max(abs(found.lower), abs(found.upper))
    least = 0 if found.lower <= 0 <= found.upper else min(abs(found.lower), abs(found.upper))
    if found.kind is ValueKind.INT:
        return _integer(node, least, most, found.is_sure)
    return _float(least, most, found.is_sure)


def _divide(node: Call, ranges: list[Range]) -> Range:
    if any(each.kind is ValueKind.NULL for each in ranges):
        return _NULL
    one, other = (_as_float(node, each) for each in ranges)
    if other.lower <= 0 <= other.upper:
        return _ANY_FLOAT
    ends = [x / y for x in (one.lower, one.upper) for y in (other.lower, other.upper)]
    if any(map(math.isnan, ends)):
        return _ANY_FLOAT
    lower, upper = min(ends), max(ends)
    return Range(ValueKind.FLOAT, 0.0 if 0 < lower < _FLUSHED else lower, 0.0 if 0 < -upper < _FLUSHED else upper)


def _round_whole(node: Call, ranges: list[Range]) -> Range:
    found = _as_float(node, ranges[0])
    rounding = math.floor if node.function == Function.FLOOR else math.ceil
    ends = [float(rounding(end)) if math.isfinite(end) else end for end in (found.lower, found.upper)]
    return found._replace(lower=ends[0], upper=ends[1])


def _power(node: Call, ranges: list[Range]) -> Range:
    if any(each.kind is ValueKind.NULL for each in ranges):
        return _NULL
    base, exponent = (_as_float(node, each) for each in ranges)
    if exponent.lower != exponent.upper or exponent.lower < 0:
        return _ANY_FLOAT
    ends = [_pow(base.lower, exponent.lower), _pow(base.upper, exponent.lower)]
    if base.lower <= 0 <= base.upper or min(map(abs, ends)) < _FLUSHED:
        ends.append(0.0)
    return _float(_outward(min(ends), -1), _outward(max(ends), 1), base.is_sure)


def _pow(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 else math.inf


def _exponential(node: Call, ranges: list[Range]) -> Range:
    found = _as_float(node, ranges[0])
    if found.kind is ValueKind.NULL:
        return _NULL
    ends = [math.inf if end > 709 else math.exp(end) for end in (found.lower, found.upper)]
    return _float(max(0.0, _outward(ends[0], -1)), _outward(ends[1], 1), found.is_sure)


def _curve(curve: Callable[[float], float], least: float) -> Callable[[Call, list[Range]], Range]:
    """SQRT and logarithms, which are NULL where they have no value."""

    def find(node: Call, ranges: list[Range]) -> Range:
        found = _as_float(node, ranges[0])
        if found.kind is ValueKind.NULL or found.upper < 0:
            return _NULL
        ends = [least if end <= 0 else end if math.isinf(end) else curve(end) for end in (found.lower, found.upper)]
        return _float(_outward(ends[0], -1), _outward(ends[1], 1))

    return find


def _outward(end: float, direction: int) -> float:
    return end + direction * _CURVE_ERROR * max(1.0, abs(end))


def _modulo(node: Call, ranges: list[Range]) -> Range:
    """What is left of an integer has its sign, and is less than the divisor in size. Dividing by -1 may overflow."""
    one, other = ranges
    if ValueKind.NULL in {one.kind, other.kind}:
        return _NULL
    if one.kind is not ValueKind.INT or other.kind is not ValueKind.INT or (one.lower == _LEAST and other.lower <= -1):
        raise UnsafeScalar(node)
    most = max(abs(other.lower), abs(other.upper), 1) - 1
    return Range(ValueKind.INT, -min(max(-one.lower, 0), most), min(max(one.upper, 0), most))


def _quotient(node: Call, ranges: list[Range]) -> Range:
    """By a divisor of at least 1, rounded down or toward zero."""
    one, other = ranges
    if ValueKind.NULL in {one.kind, other.kind}:
        return _NULL
    if one.kind is not ValueKind.INT or other.kind is not ValueKind.INT or other.lower < 1:
        raise UnsafeScalar(node)
    lower = one.lower // (other.lower if one.lower < 0 else other.upper)
    upper = -(-one.upper // other.upper) if one.upper < 0 else one.upper // other.lower
    return Range(ValueKind.INT, lower, upper, one.is_sure and other.is_sure)


def _sign(node: Call, ranges: list[Range]) -> Range:
    (one,) = ranges
    if one.kind is ValueKind.INT:
        ends = [(end > 0) - (end < 0) for end in (one.lower, one.upper)]
        return Range(ValueKind.INT, ends[0], ends[1], one.is_sure)
    return Range(ValueKind.INT, -1, 1, _as_float(node, one).is_sure)


def _choose(node: Call, ranges: list[Range]) -> Range:
    """LEAST, GREATEST and COALESCE skip NULLs, so an operand bounds from its own side where it is never NULL.

    NaN is the largest of floats, and a Clamp gives none.
    """
    sure = [each for each in ranges if each.is_sure]
    found = hull(ranges, is_sure=bool(sure))
    if found.kind not in {ValueKind.INT, ValueKind.DATE, ValueKind.FLOAT}:
        return found
    if node.function == Function.LEAST:
        return found._replace(upper=min([found.upper, *(each.upper for each in sure)]))
    if found.kind is ValueKind.FLOAT and sure:
        known = all(each.is_sure or isinstance(part, Clamp) for part, each in zip(node.arguments, ranges, strict=True))
        found = found._replace(is_sure=known)
    if node.function == Function.GREATEST:
        return found._replace(lower=max([found.lower, *(each.lower for each in sure)]))
    return found


def _is_condition(node: Call, ranges: list[Range]) -> Range:
    return _BOOL


def _is_text(node: Call, ranges: list[Range]) -> Range:
    """A text of texts; numbers among them are places and sizes."""
    if any(each.kind is ValueKind.INT and not -_SMALL <= each.lower <= each.upper <= _SMALL for each in ranges):
        raise UnsafeScalar(node)
    return _TEXT


def _is_size(node: Call, ranges: list[Range]) -> Range:
    return Range(ValueKind.INT, 0, 2**32)


def _write_integer(node: Call, ranges: list[Range]) -> Range:
    return _TEXT


def _require_date(node: Call, found: Range, *, of_years: bool) -> bool:
    """Whether a date is known to be of the years 1 to 9999; where these are asked for, no other is safe."""
    if found.kind is not ValueKind.DATE:
        raise UnsafeScalar(node, "only dates are computed with")
    known = 1 <= found.lower <= found.upper <= _LAST_DAY
    if of_years and not known:
        raise UnsafeScalar(node, "a date could lie outside of the years 1 to 9999")
    return known


def _day(number: float) -> datetime.date:
    return datetime.date.fromordinal(int(number))


def _year(node: Call, ranges: list[Range]) -> Range:
    (one,) = ranges
    if one.kind is ValueKind.NULL:
        return _NULL
    if not _require_date(node, one, of_years=node.function == Function.ISO_YEAR):
        return Range(ValueKind.INT, -6_000_000, 6_000_000)
    if node.function == Function.ISO_YEAR:
        return Range(ValueKind.INT, _day(one.lower).isocalendar().year, _day(one.upper).isocalendar().year, one.is_sure)
    return Range(ValueKind.INT, _day(one.lower).year, _day(one.upper).year, one.is_sure)


# What holds a part of a date, within which it never decreases, and the largest there is.
_PARTS = {
    Function.QUARTER: ("year", 4),
    Function.MONTH: ("year", 12),
    Function.DAY: ("month", 31),
    Function.WEEKDAY: ("week", 7),
    Function.WEEK: ("week", 53),
    Function.DAY_OF_YEAR: ("year", 366),
}


def _part(node: Call, ranges: list[Range]) -> Range:
    (one,) = ranges
    if one.kind is ValueKind.NULL:
        return _NULL
    known = _require_date(node, one, of_years=node.function in {Function.WEEK, Function.DAY_OF_YEAR})
    function = Function(node.function)
    holder, most = _PARTS[function]
    if known and one.upper - one.lower < most:
        first, last = _day(one.lower), _day(one.upper)
        if truncate_date(holder, first) == truncate_date(holder, last):
            return Range(
                ValueKind.INT, extract_date_part(function, first), extract_date_part(function, last), one.is_sure
            )
    return Range(ValueKind.INT, 1, most, one.is_sure and known)


def _days(node: Call, ranges: list[Range]) -> Range:
    one, other = ranges
    if ValueKind.NULL in {one.kind, other.kind}:
        return _NULL
    known = [_require_date(node, each, of_years=False) for each in ranges]
    sure = all(known) and one.is_sure and other.is_sure
    return Range(ValueKind.INT, one.lower - other.upper, one.upper - other.lower, sure)


def _date_trunc(node: Call, ranges: list[Range]) -> Range:
    unit, date = node.arguments[0], ranges[1]
    if date.kind is ValueKind.NULL:
        return _NULL
    _require_date(node, date, of_years=True)
    assert isinstance(unit, Literal)
    ends = [truncate_date(str(unit.value), _day(end)).toordinal() for end in (date.lower, date.upper)]
    return date._replace(lower=ends[0], upper=ends[1])


def _add_months(node: Call, ranges: list[Range]) -> Range:
    date, months = ranges[0], node.arguments[1]
    if date.kind is ValueKind.NULL:
        return _NULL
    _require_date(node, date, of_years=True)
    assert isinstance(months, Literal)
    assert isinstance(months.value, int)
    lower, upper = (add_months(_day(end), months.value) for end in (date.lower, date.upper))
    if lower is None or upper is None:
        raise UnsafeScalar(node, "a date could lie outside of the years 1 to 9999")
    return date._replace(lower=lower.toordinal(), upper=upper.toordinal())


def _date_of(node: Call, ranges: list[Range]) -> Range:
    (moment,) = ranges
    if moment.kind is ValueKind.NULL:
        return _NULL
    if moment.kind is not ValueKind.INT or not 0 <= moment.lower <= moment.upper <= LAST:
        raise UnsafeScalar(node, "a date could lie outside of the years 1 to 9999")
    return Range(ValueKind.DATE, moment.lower // DAY + 1, moment.upper // DAY + 1, moment.is_sure)


_RULES: dict[str, Callable[[Call, list[Range]], Range]] = {
    Function.ADD: _add,
    Function.SUBTRACT: _subtract,
    Function.MULTIPLY: _multiply,
    Function.DIVIDE: _divide,
    Function.NEGATE: _negate,
    Function.ABS: _absolute,
    Function.FLOOR: _round_whole,
    Function.CEIL: _round_whole,
    Function.MOD: _modulo,
    Function.QUOTIENT: _quotient,
    Function.SIGN: _sign,
    Function.POWER: _power,
    Function.EXP: _exponential,
    Function.SQRT: _curve(math.sqrt, 0.0),
    Function.LN: _curve(math.log, -math.inf),
    Function.LOG10: _curve(math.log10, -math.inf),
    Function.YEAR: _year,
    Function.ISO_YEAR: _year,
    Function.DAYS: _days,
    Function.DATE_TRUNC: _date_trunc,
    Function.ADD_MONTHS: _add_months,
    Function.DATE_OF: _date_of,
    Function.TO_TEXT: _write_integer,
    Function.LENGTH: _is_size,
    Function.POSITION: _is_size,
    **dict.fromkeys(_PARTS, _part),
    **dict.fromkeys((Function.LEAST, Function.GREATEST, Function.COALESCE), _choose),
    **dict.fromkeys(
        (
            Function.EQUAL,
            Function.UNEQUAL,
            Function.LESS,
            Function.LESS_EQUAL,
            Function.GREATER,
            Function.GREATER_EQUAL,
            Function.IN,
            Function.IS_NULL,
            Function.AND,
            Function.OR,
            Function.NOT,
            Function.LIKE,
        ),
        _is_condition,
    ),
    **dict.fromkeys(
        (
            Function.LOWER,
            Function.UPPER,
            Function.TRIM,
            Function.LTRIM,
            Function.RTRIM,
            Function.RIGHT,
            Function.REPLACE,
            Function.SPLIT_PART,
            Function.LPAD,
            Function.RPAD,
            Function.SUBSTRING,
            Function.CONCAT,
        ),
        _is_text,
    ),
}
