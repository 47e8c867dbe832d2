"""Casts, where the type of what is cast is known. An engine never sees one.

**Rule.** A cast to the type that a value has is that value. A condition as an integer is 1, 0 or NULL, as it is in
DuckDB. A timestamp as a date is the date it lies in, and a date as a timestamp is its midnight. A float with bounds as
an integer is the nearest one, halves away from zero. Integers, conditions and dates as texts are their digits, true or
false, and YYYY-MM-DD; a timestamp has a text where it is cut to seconds or more. Every other cast is refused with what
gives the same: so no value of a row can make a cast fail.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan.formats import ISO_DATE, ISO_TIME, integer_text, to_char
from tacit.plan.operands import kind_of, words_of
from tacit.plan.rounding import as_integer, released_integer
from tacit.plan.timestamps import as_timestamp, date_of
from tacit.query.bound import TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Literal, Scalar
from tacit.query.suggest import clamp, clamp_present, quote_scalar
from tacit.query.types import NUMERIC_TYPES, TYPES_BY_NAME, Type

_MOST = 2**62  # beyond which a float is not made an integer


def cast(node: Call, operand: TypedScalar, *, rows: bool) -> TypedScalar:
    """The operand of a cast, bound, as the type that is asked for."""
    kind = node.arguments[1].value if isinstance(node.arguments[1], Literal) else None
    wanted = TYPES_BY_NAME[str(kind)]
    if operand.type in {wanted, None}:
        return operand
    if operand.type is Type.BOOL and wanted is Type.INT:
        opposite = Call(Function.NOT, (operand.scalar,))
        scalar = Case(((operand.scalar, Literal(1)), (opposite, Literal(0))), Literal(None))
        return TypedScalar(scalar, Type.INT, Fraction(0), Fraction(1), Fraction(1), operand.nullable)
    if operand.type is Type.TIMESTAMP and wanted is Type.DATE:
        return date_of(operand)
    if operand.type is Type.DATE and wanted is Type.TIMESTAMP:
        return as_timestamp(operand, node)
    if operand.type is Type.FLOAT and wanted is Type.INT:
        if not rows:
            return released_integer(Call(Function.ROUND, (operand.scalar,)))
        if operand.is_bounded and (operand.lower or 0) >= -_MOST and (operand.upper or 0) <= _MOST:
            return as_integer(operand)
    if wanted is Type.TEXT:
        text = as_text(operand)
        if text is not None:
            return text
    assert operand.type is not None
    what = f"CAST of {words_of(node.arguments[0])}, which is {kind_of(operand)}, to {str(kind).upper()} is not answered"
    fix, instead = _instead(node.arguments[0], operand, wanted)
    raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix, instead=instead)


def as_text(operand: TypedScalar) -> TypedScalar | None:
    """A value as the text that all engines write for it; None where they do not agree."""
    match operand.type:
        case Type.INT:
            return integer_text(operand)
        case Type.BOOL:
            opposite = Call(Function.NOT, (operand.scalar,))
            scalar = Case(((operand.scalar, Literal("true")), (opposite, Literal("false"))), Literal(None))
            return TypedScalar(
                scalar,
                Type.TEXT,
                nullable=operand.nullable,
                listing=lambda most: ("false", "true") if most > 1 else None,
            )
        case Type.DATE:
            return to_char(ISO_DATE, operand, operand)
        case Type.TIMESTAMP if operand.unit is not None:
            return to_char(ISO_TIME, operand, date_of(operand))
    return None


def _instead(scalar: Scalar, operand: TypedScalar, wanted: Type) -> tuple[str, str | None]:
    """What to do for a value of one type as another, and the SQL of it where there is some."""
    value = quote_scalar(scalar)
    match operand.type, wanted:
        case Type.FLOAT, Type.INT:
            inner = clamp_present(value) if operand.nullable else clamp(value)
            return f"clamp it: CAST({inner} AS INTEGER)", f"CAST({inner} AS INTEGER)"
        case Type.DATE | Type.TIMESTAMP, Type.INT:
            return f"take a part of it: YEAR({value})", f"YEAR({value})"
        case number, Type.BOOL if number in NUMERIC_TYPES:
            return f"compare it: {value} <> 0", f"({value} <> 0)"
        case Type.FLOAT, Type.TEXT:
            return "compare it as the number it is", None
        case Type.TIMESTAMP, Type.TEXT:
            instead = f"TO_CHAR({value}, 'YYYY-MM-DD HH24:MI:SS')"
            return f"write {instead}", instead
        case Type.TEXT, _:
            return f"compare it as the text it is, or ask the owner to declare it as {wanted}", None
    return "leave the cast out: the types of columns are declared in the policy", None
