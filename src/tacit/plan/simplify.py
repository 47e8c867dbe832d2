"""One form for conditions that mean the same: `insured`, `insured = TRUE` and `insured IS TRUE` are one question.

**Theorem.** For every row, the simplified condition is true where the condition is, and nowhere else. Proof, by the
rules below, each of which holds in SQL's logic of true, false and NULL: a filter keeps a row where its condition is
true, so that NULL and false may be exchanged there; AND is true where all parts are, OR where one is; a comparison is
false where the opposite one is true, because both are NULL together. Doubles have no NaN here: a column that holds one
is read as NULL, and an opposite is taken of comparisons with constants of other types only.

What is kept of a unit and what it may add do not depend on the condition, so a plan is as private as before; but equal
questions have one key, and the second costs nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.canonical import canonical_text
from tacit.engines.evaluate import evaluate, truncate_date
from tacit.query.bound import LEAST_INT, MOST_INT
from tacit.query.canonical import NODES
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Clamp, ColumnReference, Literal, Quantize, Scalar, ToFloat, rebuild, walk
from tacit.query.timestamps import DAY, to_microseconds

_MIRRORED = {
    Function.EQUAL: Function.EQUAL,
    Function.UNEQUAL: Function.UNEQUAL,
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}
_OPPOSITES = {
    Function.EQUAL: Function.UNEQUAL,
    Function.UNEQUAL: Function.EQUAL,
    Function.LESS: Function.GREATER_EQUAL,
    Function.GREATER: Function.LESS_EQUAL,
    Function.LESS_EQUAL: Function.GREATER,
    Function.GREATER_EQUAL: Function.LESS,
}
_FIRST_DAY, _LAST_DAY = datetime.date(1, 1, 2), datetime.date(9999, 12, 30)
_TRUE, _FALSE = Literal(True), Literal(False)
_WILD = frozenset("%_\\")  # of LIKE
_EXACT = 2**53  # integers up to this are doubles


def simplify_filter(scalar: Scalar) -> Scalar | None:
    """The condition in the form that all have that mean the same; None where it is always true."""
    found = _true(scalar)
    return None if found == _TRUE else found


def order_operands(scalar: Scalar) -> Scalar:
    """A value with the operands of sums and products of two in one order, which changes no double."""

    def change(node: Scalar) -> Scalar | None:
        match node:
            case Call(Function.ADD | Function.MULTIPLY as function, (left, right)):
                return Call(function, tuple(sorted((order_operands(left), order_operands(right)), key=_text)))
            case Clamp(operand) | ToFloat(operand) | Quantize(operand):
                return replace(node, operand=order_operands(operand))
        return None

    return rebuild(scalar, change)


def _true(node: Scalar) -> Scalar:
    """A condition that is true where `node` is."""
    match node:
        case Call(Function.AND, parts):
            return _all(map(_true, parts))
        case Call(Function.OR, parts):
            return _any(map(_true, parts))
        case Call(Function.NOT, (inner,)):
            return _false(inner)
        case Case(((when, Literal(True)),), Literal(False)):  # IS TRUE
            return _true(when)
        case Call(function, (left, right)) if function in _MIRRORED:
            return _comparison(Function(function), left, right)
        case Call(Function.IN, (operand, *values)):
            return _member(operand, [value for value in values if value != Literal(None)])
        case Call(Function.LIKE, (operand, Literal(str(pattern)))) if not _WILD & set(pattern):
            return _comparison(Function.EQUAL, operand, Literal(pattern))
    return _fold(node)


def _false(node: Scalar) -> Scalar:
    """A condition that is true where `node` is false."""
    match node:
        case Call(Function.AND, parts):
            return _any(map(_false, parts))
        case Call(Function.OR, parts):
            return _all(map(_false, parts))
        case Call(Function.NOT, (inner,)):
            return _true(inner)
        case Call(Function.IS_NULL, (inner,)):
            return Call(Function.NOT, (Call(Function.IS_NULL, (inner,)),))
        case Call(function, (left, right)) if function in _OPPOSITES and (_is_discrete(left) or _is_discrete(right)):
            return _comparison(_OPPOSITES[Function(function)], left, right)
        case Call(Function.IN, (operand, *values)) if all(map(_is_discrete, values)):
            unlike = [_comparison(Function.UNEQUAL, operand, value) for value in values]
            return _all(unlike)
        case Literal(bool(value)):
            return Literal(not value)
        case Case(((when, Literal(True)),), Literal(False)) if (missing := _null_with(when)) is not None:  # IS NOT TRUE
            return _any([_false(when), _fold(Call(Function.IS_NULL, (missing,)))])
    return Call(Function.NOT, (node,))


def _null_with(condition: Scalar) -> Scalar | None:
    """What a condition is NULL with, and only with: the operand that is compared with a constant, or a truth itself."""
    match condition:
        case ColumnReference():
            return condition
        case Call(function, (operand, Literal(value))) if function in _MIRRORED and value is not None:
            return operand if _is_discrete(Literal(value)) else None
    return None


def _is_discrete(node: Scalar) -> bool:
    """Whether it is a constant that is no double."""
    return isinstance(node, Literal) and isinstance(node.value, bool | int | str | datetime.date)


def _fold(node: Scalar) -> Scalar:
    """What is made of constants alone, as a constant; anything else as it is."""
    match node:
        case ToFloat(Literal(int(value))) if abs(value) <= _EXACT:
            return Literal(Fraction(value))
    parts = list(walk(node))
    if isinstance(node, Literal) or not all(isinstance(part, Call | Literal) for part in parts):
        return node
    if any(isinstance(part, Literal) and isinstance(part.value, Fraction) for part in parts):
        return node  # engines may round otherwise
    value = evaluate(node, {})
    return node if isinstance(value, float) else Literal(value)


def _comparison(function: Function, left: Scalar, right: Scalar) -> Scalar:
    """A comparison with the constant on its right, integers and days by <= and >=, and truths by themselves."""
    left, right = _fold(left), _fold(right)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _fold(Call(function, (left, right)))
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED[function]
    if not isinstance(right, Literal):
        if canonical_text(right, NODES) < canonical_text(left, NODES):
            left, right, function = right, left, _MIRRORED[function]
        return Call(function, (left, right))
    value = right.value
    match left:  # LEFT(x, 2) = 'ab' is x LIKE 'ab%'
        case Call(Function.SUBSTRING, (text, Literal(1), Literal(int(length)))) if function is Function.EQUAL:
            if isinstance(value, str) and len(value) == length and not _WILD & set(value):
                return Call(Function.LIKE, (text, Literal(f"{value}%")))
    if isinstance(value, bool) and function in {Function.EQUAL, Function.UNEQUAL}:
        return _true(left) if value is (function is Function.EQUAL) else _false(left)
    if isinstance(value, int) and function in {Function.LESS, Function.GREATER}:
        if value == (LEAST_INT if function is Function.LESS else MOST_INT):
            return _FALSE  # no integer is beyond
        function, value = (
            (Function.LESS_EQUAL, value - 1) if function is Function.LESS else (Function.GREATER_EQUAL, value + 1)
        )
    if isinstance(value, int) and isinstance(left, Call) and left.function == Function.YEAR and 2 <= value <= 9998:
        return _with_year(function, left, value)
    if isinstance(value, datetime.date) and _FIRST_DAY <= value <= _LAST_DAY:
        return _with_day(function, left, value)
    return Call(function, (_without_clamp(left, value), Literal(value)))


def _without_clamp(operand: Scalar, value: object) -> Scalar:
    """An integer need not be clamped where it is compared with a constant strictly within its bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        return operand
    match operand:
        case Clamp(inner, Fraction() as lower, Fraction() as upper, True) if lower < value < upper:
            return inner
        case Call(Function.COALESCE, (Clamp(inner, Fraction() as lower, Fraction() as upper, True), Literal() as rest)):
            return Call(Function.COALESCE, (inner, rest)) if lower < value < upper else operand
    return operand


def _with_day(function: Function, left: Scalar, day: datetime.date) -> Scalar:
    """A date against a constant day. The date of a timestamp is compared as the timestamp.

    DATE_TRUNC(unit, d) = day means that d lies in the unit that begins with that day, and is never true of a day with
    which none begins.
    """
    one = datetime.timedelta(days=1)
    if function is Function.LESS:
        function, day = Function.LESS_EQUAL, day - one
    elif function is Function.GREATER:
        function, day = Function.GREATER_EQUAL, day + one
    match left:
        case Call(Function.DATE_OF, (moment,)):
            start = to_microseconds(day)
            after = start + DAY
            if function is Function.EQUAL:
                return _all([_at_least(moment, start), _at_most(moment, after - 1)])
            if function is Function.GREATER_EQUAL:
                return _at_least(moment, start)
            if function is Function.LESS_EQUAL:
                return _at_most(moment, after - 1)
        case Call(Function.DATE_TRUNC, (Literal(str(unit)), date)) if function is not Function.UNEQUAL:
            begins = truncate_date(unit, day)
            last = _last_day(unit, begins)
            if function is Function.EQUAL and begins != day:
                return Call(function, (left, Literal(day)))
            if last is not None and function is Function.EQUAL:
                return _within_days(date, day, last)
            if last is not None and function is Function.LESS_EQUAL:
                return _with_day(function, date, last)
            if function is Function.GREATER_EQUAL and begins == day:
                return _with_day(function, date, day)
    return Call(function, (left, Literal(day)))


def _with_year(function: Function, left: Call, year: int) -> Scalar:
    """YEAR(d) against a constant is d against the first and the last day of that year."""
    (date,) = left.arguments
    first, last = datetime.date(year, 1, 1), datetime.date(year, 12, 31)
    match function:
        case Function.EQUAL:
            return _within_days(date, first, last)
        case Function.GREATER_EQUAL:
            return _with_day(function, date, first)
        case Function.LESS_EQUAL:
            return _with_day(function, date, last)
    return Call(function, (left, Literal(year)))


def _within_days(date: Scalar, first: datetime.date, last: datetime.date) -> Scalar:
    return _all([_with_day(Function.GREATER_EQUAL, date, first), _with_day(Function.LESS_EQUAL, date, last)])


def _last_day(unit: str, first: datetime.date) -> datetime.date | None:
    """The last day of a year, quarter, month, week or day, by its first; None at the end of time."""
    longest = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[unit]
    if first > datetime.date(9998, 1, 1):
        return None
    after = truncate_date(unit, first + datetime.timedelta(days=longest))
    return after - datetime.timedelta(days=1)


def _at_least(operand: Scalar, value: int) -> Scalar:
    return Call(Function.GREATER_EQUAL, (_without_clamp(operand, value), Literal(value)))


def _at_most(operand: Scalar, value: int) -> Scalar:
    return Call(Function.LESS_EQUAL, (_without_clamp(operand, value), Literal(value)))


def _member(operand: Scalar, values: Iterable[Scalar]) -> Scalar:
    """Membership in a list of constants; NULL in it makes nothing true."""
    constants = list(dict.fromkeys(values))
    if not constants:
        return _FALSE
    if len(constants) == 1:
        return _comparison(Function.EQUAL, operand, constants[0])
    return Call(Function.IN, (operand, *sorted(constants, key=_text)))


def _all(parts: Iterable[Scalar]) -> Scalar:
    """The conjunction of simplified conditions: flat, each once, in order, with the narrower of two bounds."""
    flat = _flat(Function.AND, parts)
    if _FALSE in flat:
        return _FALSE
    flat = [part for part in flat if part != _TRUE]
    flat = _narrower(flat)
    sure = {operand for part in flat for operand in _never_null(part)}
    flat = [part for part in flat if not (_present(part) in sure and _present(part) is not None)]
    return _join(Function.AND, flat, _TRUE)


def _any(parts: Iterable[Scalar]) -> Scalar:
    """The disjunction of simplified conditions: flat, each once, in order, equalities of one operand as a list."""
    flat = _flat(Function.OR, parts)
    if _TRUE in flat:
        return _TRUE
    listed: dict[Scalar, list[Scalar]] = {}
    rest = []
    for part in flat:
        match part:
            case Literal(False):
                continue
            case Call(Function.EQUAL, (operand, Literal() as value)):
                listed.setdefault(operand, []).append(value)
            case Call(Function.IN, (operand, *values)):
                listed.setdefault(operand, []).extend(values)
            case _:
                rest.append(part)
    return _join(Function.OR, [*rest, *(_member(operand, values) for operand, values in listed.items())], _FALSE)


def _flat(function: Function, parts: Iterable[Scalar]) -> list[Scalar]:
    found: list[Scalar] = []
    for part in parts:
        found += part.arguments if isinstance(part, Call) and part.function == function else (part,)
    return found


def _join(function: Function, parts: Iterable[Scalar], nothing: Scalar) -> Scalar:
    unlike = sorted(set(parts), key=_text)
    if not unlike:
        return nothing
    return unlike[0] if len(unlike) == 1 else Call(function, tuple(unlike))


def _narrower(parts: list[Scalar]) -> list[Scalar]:
    """The parts, with one lower and one upper bound for each operand that is compared with integers or days."""
    ends: dict[tuple[Scalar, str], Scalar] = {}
    rest: list[Scalar] = []
    for part in parts:
        match part:
            case Call(Function.GREATER_EQUAL | Function.LESS_EQUAL as function, (operand, Literal(value))) if (
                isinstance(value, int | datetime.date) and not isinstance(value, bool)
            ):
                known = ends.get((operand, function))
                old = known.arguments[1] if isinstance(known, Call) else None
                if isinstance(old, Literal):
                    pair: Any = [old.value, value]  # of one type: both are compared with the same operand
                    value = max(pair) if function == Function.GREATER_EQUAL else min(pair)
                ends[operand, function] = Call(function, (operand, Literal(value)))
            case _:
                rest.append(part)
    return [*rest, *ends.values()]


def _never_null(part: Scalar) -> list[Scalar]:
    """What cannot be NULL where a comparison is true."""
    match part:
        case Call(function, (left, right)) if function in _MIRRORED:
            return [_column(side) for side in (left, right)]
        case Call(Function.IN | Function.LIKE, (operand, *_)):
            return [_column(operand)]
    return []


def _column(operand: Scalar) -> Scalar:
    """A column that is clamped is NULL where the column is."""
    return operand.operand if isinstance(operand, Clamp) and operand.whole else operand


def _present(part: Scalar) -> Scalar | None:
    """The operand of IS NOT NULL."""
    match part:
        case Call(Function.NOT, (Call(Function.IS_NULL, (operand,)),)):
            return _column(operand)
    return None


def _text(node: Scalar) -> str:
    return canonical_text(node, NODES)
