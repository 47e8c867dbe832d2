"""Scalars as SQL. Every bound expression is total: no row can make it raise, overflow or run long.

The forms are those that DuckDB, PostgreSQL and Spark share wherever there are some; `engines/dialect.py` has the
others. A guard against zeros and negative numbers names its operand once: with NULLIF, and with GREATEST, which skips
NULLs and lets NaN pass.
"""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

from tacit.engines.dialect import DUCKDB, FLUSH_TO_ZERO, Dialect
from tacit.query.functions import DATE_PARTS, IS_CONDITION, Function
from tacit.query.nodes import (
    Call,
    Case,
    Clamp,
    ColumnReference,
    Literal,
    Quantize,
    ReleasedKey,
    ReleasedValue,
    Scalar,
    ToFloat,
    walk,
)
from tacit.query.timestamps import DAY
from tacit.query.types import Type

_INFIX = {
    Function.ADD,
    Function.SUBTRACT,
    Function.MULTIPLY,
    Function.EQUAL,
    Function.UNEQUAL,
    Function.LESS,
    Function.LESS_EQUAL,
    Function.GREATER,
    Function.GREATER_EQUAL,
}
_PREFIX = {Function.NEGATE: "- ", Function.NOT: "NOT "}  # two signs without a space would begin a comment
_TRIMMED = {Function.TRIM: "BOTH", Function.LTRIM: "LEADING", Function.RTRIM: "TRAILING"}
_NEVER_RAISE = IS_CONDITION | {Function.COALESCE, Function.LEAST, Function.GREATEST}
_LARGEST_NEGATIVE = -5e-324  # the double next to zero


def quote_name(identifier: str) -> str:
    """A quoted identifier, as DuckDB has it."""
    return DUCKDB.name(identifier)


def quote_text(value: str) -> str:
    """A quoted string, as DuckDB has it."""
    return DUCKDB.text(value)


def write_literal(value: object, dialect: Dialect = DUCKDB) -> str:
    """A constant. A fraction becomes the nearest double."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"CAST({value} AS BIGINT)"
        case Fraction():
            return dialect.real.format(repr(float(value)))
        case str():
            return dialect.collated.format(dialect.text(value))
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE '{value.isoformat()}'"
    raise AssertionError(f"no literal: {value!r}")


def write_guarded(node: Scalar, dialect: Dialect = DUCKDB) -> str:
    """A scalar of a row as SQL text that raises for no row where the engine can see to that: it is NULL then.

    **Rule.** Bound scalars do not raise (`plan/bounds.py`). If one did, whether a question fails would tell, at any
    epsilon, whether a row is there. Guarded, its value is a function of its own row all the same.
    """
    return guard(write_scalar(node, dialect), node, dialect)


def guard(text: str, node: Scalar, dialect: Dialect) -> str:
    """The text of a scalar, guarded if it may raise: what only compares and chooses does not."""
    return dialect.guarded.format(text) if any(map(_may_raise, walk(node))) else text


def _may_raise(node: Scalar) -> bool:
    match node:
        case Call(function):
            return function not in _NEVER_RAISE
        case Literal(value):
            return isinstance(value, int) and not -(2**63) <= value < 2**63
    return False


def write_scalar(node: Scalar, dialect: Dialect = DUCKDB) -> str:
    """A scalar as SQL text."""
    match node:
        case Literal(value):
            return write_literal(value, dialect)
        case ColumnReference(column):
            return dialect.name(column)
        case ReleasedValue(index):
            return f"v{index}"
        case ReleasedKey(index):
            return f"k{index}"
        case ToFloat(operand):
            return f"CAST({write_scalar(operand, dialect)} AS {dialect.types[Type.FLOAT]})"
        case Clamp(operand, lower, upper, whole):
            return _clamp(write_scalar(operand, dialect), lower, upper, whole, dialect)
        case Quantize():
            return f"CAST({write_quantized(node, dialect)} AS BIGINT)"
        case Case(branches, otherwise):
            parts = " ".join(
                f"WHEN {write_scalar(when, dialect)} THEN {write_scalar(then, dialect)}" for when, then in branches
            )
            return f"CASE {parts} ELSE {write_scalar(otherwise, dialect)} END"
        case Call(function, arguments):
            return _call(Function(function), arguments, dialect)
    raise AssertionError(f"no SQL for {node!r}")


def write_quantized(node: Quantize, dialect: Dialect = DUCKDB) -> str:
    """The whole number that Quantize means, before it is made an integer: NULL or from `lower` to `upper`.

    Where a product could raise, or FLOOR overflow, the operand is clamped first, to ends that are moved to `lower` and
    `upper` or beyond. **That changes nothing.** Multiplying by 1/step, adding 1/2 and FLOOR never decrease, in doubles
    too; so what lies beyond an end is moved to where the end is, or further, and is clamped to the same bound.
    """
    operand, inverse = write_scalar(node.operand, dialect), float(1 / node.step)
    if dialect.finite or dialect.wide:
        low, high = (_find_clamp_end(node, inverse, direction) for direction in (-1, 1))
        operand = _clamp(operand, low, high, whole=False, dialect=dialect)
    if dialect.finite and inverse < 1:
        operand = _flush_to_zero(operand, dialect)
    grid = f"floor({operand} * {write_literal(Fraction(inverse), dialect)} + 0.5)"
    if dialect.wide:
        return _clamp(grid, Fraction(node.lower), Fraction(node.upper), whole=True, dialect=dialect)
    return _clamp(grid, Fraction(node.lower), Fraction(node.upper), whole=False, dialect=dialect)


def _find_clamp_end(node: Quantize, inverse: float, direction: int) -> Fraction:
    """A double that Quantize moves to its lower (-1) or upper (1) bound or beyond, and not far."""
    bound, margin = node.lower if direction < 0 else node.upper, 1
    while True:
        end = float((bound + direction * margin) * node.step)
        if (math.floor(end * inverse + 0.5) - bound) * direction >= 0:
            return Fraction(end)
        margin *= 2


def _flush_to_zero(operand: str, dialect: Dialect) -> str:
    """The operand, or zero where it is next to it; see POSTGRES."""
    nothing = dialect.real.format(repr(FLUSH_TO_ZERO))
    return f"(({operand} + {nothing}) - {nothing})"


def _call(function: Function, nodes: tuple[Scalar, ...], dialect: Dialect) -> str:
    if function is Function.LIKE:
        return dialect.like(dialect, write_scalar(nodes[0], dialect), str(_literal_value(nodes[1])))
    if function in {Function.LPAD, Function.RPAD}:
        text, filler = (write_scalar(node, dialect) for node in nodes[:2])
        return f"{function}({text}, {_literal_value(nodes[2])}, {filler})"
    if function in {Function.RIGHT, Function.SPLIT_PART, Function.ADD_MONTHS}:  # whose last argument is a small integer
        others = [write_scalar(node, dialect) for node in nodes[:-1]]
        written = dialect.calls.get(function, f"{function}({', '.join(['{}'] * len(nodes))})")
        return written.format(*others, _literal_value(nodes[-1]))
    if function is Function.SUBSTRING:
        return f"substring({write_scalar(nodes[0], dialect)}, {_literal_value(nodes[1])}, {_literal_value(nodes[2])})"
    arguments = [write_scalar(node, dialect) for node in nodes]
    if function in dialect.calls:
        return dialect.calls[function].format(*arguments)
    if function in {Function.LEAST, Function.GREATEST} and len(arguments) == 1:
        return arguments[0]  # Spark wants two
    if function in _INFIX:
        return f"({arguments[0]} {function} {arguments[1]})"
    if function in _PREFIX:
        return f"({_PREFIX[function]}{arguments[0]})"
    if function in {Function.AND, Function.OR}:
        return "(" + f" {function.upper()} ".join(arguments) + ")"
    if function is Function.CONCAT:
        return "(" + " || ".join(arguments) + ")"  # which passes NULL on
    if function in DATE_PARTS:
        return f"CAST(EXTRACT({function.upper()} FROM {arguments[0]}) AS BIGINT)"
    match function:
        case Function.QUOTIENT:
            return dialect.quotient.format(*arguments)
        case Function.DATE_OF:  # the days of an integer of the years 1 to 9999, which fit any date
            days = dialect.quotient.format(arguments[0], write_literal(DAY))
            return dialect.after_first_day.format(f"CAST({days} AS INTEGER)")
        case Function.DIVIDE:
            return f"({arguments[0]} / NULLIF({arguments[1]}, 0))"
        case Function.MOD:
            return f"mod({arguments[0]}, NULLIF({arguments[1]}, 0))"
        case Function.SQRT:
            below = dialect.real.format(_LARGEST_NEGATIVE)
            return f"sqrt(NULLIF(greatest({arguments[0]}, {below}), {below}))"
        case Function.LN:
            zero = dialect.real.format(0.0)
            return f"ln(NULLIF(greatest({arguments[0]}, {zero}), {zero}))"
        case Function.LOG10:
            zero = dialect.real.format(0.0)
            return f"{dialect.log10}(NULLIF(greatest({arguments[0]}, {zero}), {zero}))"
        case Function.SIGN | Function.LENGTH:
            return f"CAST({function}({arguments[0]}) AS BIGINT)"
        case Function.TRIM | Function.LTRIM | Function.RTRIM:
            return f"trim({_TRIMMED[function]} ' ' FROM {arguments[0]})"
        case Function.POSITION:
            return f"CAST({dialect.position}({arguments[0]}, {arguments[1]}) AS BIGINT)"
        case Function.TO_TEXT:
            return dialect.collated.format(f"CAST({arguments[0]} AS {dialect.types[Type.TEXT]})")
        case Function.DATE_TRUNC:
            return f"CAST(date_trunc({arguments[0]}, {arguments[1]}) AS DATE)"
        case Function.DAYS:
            return f"CAST(({arguments[0]} - {arguments[1]}) AS BIGINT)"
        case Function.ROUND if len(arguments) == 2:
            return f"round({arguments[0]}, CAST({arguments[1]} AS INTEGER))"
        case Function.IS_NULL:
            return f"({arguments[0]} IS NULL)"
        case Function.IN:
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return f"{function}({', '.join(arguments)})"


def _literal_value(node: Scalar) -> object:
    assert isinstance(node, Literal)
    return node.value


def _clamp(value: str, lower: Fraction | None, upper: Fraction | None, whole: bool, dialect: Dialect) -> str:
    """LEAST and GREATEST would read NULL as a bound, so the cases are spelled out; NaN compares above everything.

    The usual case comes first: it is quicker where nearly all values are within.
    """
    is_nan = dialect.is_nan.format(value)
    if lower is None or upper is None:
        return value if whole else f"CASE WHEN {is_nan} THEN NULL ELSE {value} END"
    if whole:
        low, high = write_literal(int(lower)), write_literal(int(upper))
        return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
    low, high = write_literal(lower, dialect), write_literal(upper, dialect)
    within, beyond = f"WHEN {value} BETWEEN {low} AND {high} THEN {value}", f"WHEN {value} > {high} THEN {high}"
    return f"CASE {within} WHEN {is_nan} THEN NULL WHEN {value} < {low} THEN {low} {beyond} END"
