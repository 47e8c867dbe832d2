"""Operands as a function needs them: floats where integers meet floats, dates where texts meet dates."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.query.bound import LEAST_INT, MOST_INT, TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Clamp, Literal, Scalar, ToFloat, find_location
from tacit.query.refusals import to_printable
from tacit.query.timestamps import parse_iso_timestamp
from tacit.query.types import Type, parse_iso_date


def words_of(node: Scalar) -> str:
    """A part of the question as it is written there, or as much of it as fits a sentence."""
    at = find_location(node)
    return "this" if at is None else to_printable(at.words)


def kind_of(operand: TypedScalar) -> str:
    """The type of an operand, as a sentence has it."""
    match operand.type:
        case None:
            return "NULL"
        case Type.TEXT:
            return "text"
        case Type.INT:
            return "an int"
    return f"a {operand.type}"


def scalars_of(operands: Iterable[TypedScalar]) -> tuple[Scalar, ...]:
    """What they are computed by."""
    return tuple(o.scalar for o in operands)


def any_null(operands: Iterable[TypedScalar]) -> bool:
    """Whether one of them may be NULL."""
    return any(o.nullable for o in operands)


def is_constant(operand: TypedScalar) -> bool:
    """Whether this is a literal, and not zero as a double."""
    scalar = operand.scalar.operand if isinstance(operand.scalar, ToFloat) else operand.scalar
    return isinstance(scalar, Literal) and isinstance(scalar.value, int | Fraction) and float(scalar.value) != 0


def drop_clamp(operand: TypedScalar, operands: list[TypedScalar]) -> Scalar:
    """An integer that is compared with constants strictly within its bounds need not be clamped: clamping moves no
    value across any of them, and makes none equal to one. A NULL that is read as a bound stays one."""
    match operand.scalar:
        case Clamp(inner, lower, upper, True):
            plain: Scalar = inner
        case Call(Function.COALESCE, (Clamp(inner, lower, upper, True), Literal() as missing)):
            plain = Call(Function.COALESCE, (inner, missing))
        case _:
            return operand.scalar
    for other in operands:
        value = other.scalar.value if isinstance(other.scalar, Literal) else None
        inside = isinstance(value, int) and lower is not None and upper is not None and lower < value < upper
        if other is not operand and not inside:
            return operand.scalar
    return plain


def as_float(operand: TypedScalar) -> TypedScalar:
    """An integer as a float, within the same bounds; anything else as it is."""
    if operand.type is not Type.INT:
        return operand
    # The bounds of the machine are as good as none; as a float such an integer has no grid that is worth knowing.
    lower = None if operand.lower == LEAST_INT else operand.lower
    upper = None if operand.upper == MOST_INT else operand.upper
    step = None if operand.is_undeclared else operand.step
    return replace(operand, scalar=ToFloat(operand.scalar), type=Type.FLOAT, lower=lower, upper=upper, step=step)


def within_years(operand: TypedScalar, scalar: Scalar) -> tuple[Scalar, bool]:
    """What is computed from a date, and whether it may be NULL: it is outside of the years 1 to 9999.

    A date without bounds may lie where an engine has no value for it.
    """
    if operand.is_bounded or operand.unit is not None:
        return scalar, operand.nullable
    after = Call(Function.GREATER_EQUAL, (operand.scalar, Literal(datetime.date.min)))
    before = Call(Function.LESS_EQUAL, (operand.scalar, Literal(datetime.date.max)))
    return Case(((Call(Function.AND, (after, before)), scalar),), Literal(None)), True


def as_date(operand: TypedScalar, node: Scalar) -> TypedScalar:
    """A text that is written as a date, as that date; any other text is refused."""
    if operand.type is not Type.TEXT:
        return operand
    if not isinstance(operand.scalar, Literal):
        what, fix = "a date is compared with a date, got text", "compare it with a day, or with a column that is a date"
        raise Refused(ErrorCode.TYPE, what, at=find_location(node), fix=fix)
    text = str(operand.scalar.value)
    date = _read_date(text)
    if date is None:
        fix = "write a day that there is, with its year first, as in 2025-12-31"
        raise Refused(ErrorCode.TYPE, f"'{to_printable(text)}' is not a date", at=find_location(node), fix=fix)
    return constant_date(date, Literal(date))


def _read_date(text: str) -> datetime.date | None:
    """The date that a text says, also with the time of its midnight: 2025-12-31T00:00:00Z."""
    date = parse_iso_date(text)
    moment = None if date is not None else parse_iso_timestamp(text.removesuffix("Z"))
    return moment.date() if moment is not None and moment.time() == datetime.time() else date


def constant_date(day: datetime.date, scalar: Scalar) -> TypedScalar:
    """A constant date."""
    number = Fraction(day.toordinal())
    return TypedScalar(scalar, Type.DATE, number, number, Fraction(1), nullable=False)
