"""Casts, where the type of what is cast is known. An engine never sees one.

**Rule.** A cast to the type that a value has is that value. A condition as an integer is 1, 0 or NULL, as it is in
DuckDB. A timestamp as a date is the date it lies in, and a date as a timestamp is its midnight. Every other cast is
refused with what gives the same: so no value of a row can make a cast fail.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan.operands import kind_of, words_of
from tacit.plan.timestamps import as_timestamp, date_of
from tacit.query.bound import TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Literal
from tacit.query.types import NUMERIC_TYPES, TYPES_BY_NAME, Type


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
    assert operand.type is not None
    written = words_of(node.arguments[0])
    what = f"CAST of {written}, which is {kind_of(operand)}, to {str(kind).upper()} is not answered"
    raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=_instead(written, operand.type, wanted, rows=rows))


def _instead(written: str, given: Type, wanted: Type, *, rows: bool) -> str:
    """What to write for a value of one type as another."""
    match given, wanted:
        case Type.FLOAT, Type.INT:
            return f"write FLOOR({written} + 0.5)" if rows else f"write ROUND({written})"
        case Type.DATE | Type.TIMESTAMP, Type.INT:
            return f"write YEAR({written}), MONTH({written}) or DAY({written})"
        case Type.BOOL, Type.TEXT:
            return f"write CASE WHEN {written} THEN 'yes' ELSE 'no' END"
        case number, Type.BOOL if number in NUMERIC_TYPES:
            return f"write {written} <> 0"
        case number, Type.TEXT if number in NUMERIC_TYPES:
            return f"compare it as the number it is: {written} = 3"
        case Type.TIMESTAMP, Type.TEXT:
            return f"compare it as the timestamp it is: {written} >= TIMESTAMP '2025-12-31 10:00:00'"
        case Type.DATE, Type.TEXT:
            return f"compare it as the date it is: {written} = DATE '2025-12-31'"
        case Type.TEXT, _:
            example = "2025-12-31" if wanted is Type.DATE else "3"
            return f"compare it as the text it is: {written} = '{example}'; or ask the owner to declare it as {wanted}"
    return "leave the cast out: the types of columns are declared in the policy"
