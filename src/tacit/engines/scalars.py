"""Scalars as SQL. Every expression is total: no row can make it raise, overflow or run long.

The dialect is DuckDB's, in forms that PostgreSQL and Spark share wherever there are some. A guard against zeros and
negative numbers names its operand once: with NULLIF, and with GREATEST, which skips NULLs and lets NaN pass.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from tacit.query.functions import DATE_PARTS, Fn
from tacit.query.nodes import Call, Case, Clamp, Column, KeyOf, Literal, Quantize, Released, Scalar, ToFloat

_INFIX = {Fn.ADD, Fn.SUBTRACT, Fn.MULTIPLY, Fn.EQUAL, Fn.UNEQUAL, Fn.LESS, Fn.LESS_EQUAL, Fn.GREATER, Fn.GREATER_EQUAL}
_PREFIX = {Fn.NEGATE: "-", Fn.NOT: "NOT "}
_LARGEST_NEGATIVE = "CAST(-5e-324 AS DOUBLE)"  # the double next to zero
_ZERO = "CAST(0.0 AS DOUBLE)"


def name(identifier: str) -> str:
    """A quoted identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def text(value: str) -> str:
    """A quoted string."""
    return "'" + value.replace("'", "''") + "'"


def literal(value: object) -> str:
    """A constant. A fraction becomes the nearest double."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"CAST({value} AS BIGINT)"
        case Fraction():
            return f"CAST({float(value)!r} AS DOUBLE)"
        case str():
            return text(value)
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
    raise AssertionError(f"no literal: {value!r}")


def scalar(node: Scalar) -> str:
    """A scalar as SQL text."""
    match node:
        case Literal(value):
            return literal(value)
        case Column(column):
            return name(column)
        case Released(index):
            return f"v{index}"
        case KeyOf(index):
            return f"k{index}"
        case ToFloat(operand):
            return f"CAST({scalar(operand)} AS DOUBLE)"
        case Clamp(operand, lower, upper, whole):
            return _clamp(scalar(operand), lower, upper, whole)
        case Quantize(operand, step, lower, upper):
            grid = f"floor({scalar(operand)} * {literal(1 / step)} + 0.5)"
            return f"CAST({_clamp(grid, Fraction(lower), Fraction(upper), whole=False)} AS BIGINT)"
        case Case(branches, otherwise):
            parts = " ".join(f"WHEN {scalar(when)} THEN {scalar(then)}" for when, then in branches)
            return f"CASE {parts} ELSE {scalar(otherwise)} END"
        case Call(function, arguments):
            return _call(Fn(function), arguments)
    raise AssertionError(f"no SQL for {node!r}")


def _call(function: Fn, nodes: tuple[Scalar, ...]) -> str:
    if function is Fn.LIKE:
        return _like(scalar(nodes[0]), str(_constant(nodes[1])))
    if function is Fn.SUBSTRING:
        return f"substring({scalar(nodes[0])}, {_constant(nodes[1])}, {_constant(nodes[2])})"
    arguments = [scalar(node) for node in nodes]
    if function in _INFIX:
        return f"({arguments[0]} {function} {arguments[1]})"
    if function in _PREFIX:
        return f"({_PREFIX[function]}{arguments[0]})"
    if function in {Fn.AND, Fn.OR}:
        return "(" + f" {function.upper()} ".join(arguments) + ")"
    if function is Fn.CONCAT:
        return "(" + " || ".join(arguments) + ")"  # which passes NULL on
    if function in DATE_PARTS:
        return f"CAST(EXTRACT({function.upper()} FROM {arguments[0]}) AS BIGINT)"
    match function:
        case Fn.DIVIDE:
            return f"({arguments[0]} / NULLIF({arguments[1]}, 0))"
        case Fn.MOD:
            return f"mod({arguments[0]}, NULLIF({arguments[1]}, 0))"
        case Fn.SQRT:
            return f"sqrt(NULLIF(greatest({arguments[0]}, {_LARGEST_NEGATIVE}), {_LARGEST_NEGATIVE}))"
        case Fn.LN:
            return f"ln(NULLIF(greatest({arguments[0]}, {_ZERO}), {_ZERO}))"
        case Fn.SIGN | Fn.LENGTH:
            return f"CAST({function}({arguments[0]}) AS BIGINT)"
        case Fn.TRIM:
            return f"trim(BOTH ' ' FROM {arguments[0]})"
        case Fn.DATE_TRUNC:
            return f"CAST(date_trunc({arguments[0]}, {arguments[1]}) AS DATE)"
        case Fn.DAYS:
            return f"CAST(({arguments[0]} - {arguments[1]}) AS BIGINT)"
        case Fn.ROUND if len(arguments) == 2:
            return f"round({arguments[0]}, CAST({arguments[1]} AS INTEGER))"
        case Fn.IS_NULL:
            return f"({arguments[0]} IS NULL)"
        case Fn.IN:
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return f"{function}({', '.join(arguments)})"


def _constant(node: Scalar) -> object:
    assert isinstance(node, Literal)
    return node.value


def _like(value: str, pattern: str) -> str:
    """LIKE in time that grows with the length of the text alone.

    DuckDB before version 2 tries every place for every % of a pattern with _, so that k of them take n^k steps. Where
    there is more than one text to look for, such a pattern is a regular expression instead: RE2 never goes back.
    """
    sought = [part for part in pattern.split("%")[1:] if part]
    if "_" not in pattern or len(sought) <= 1:
        return f"({value} LIKE {text(pattern)})"
    expression = "".join({"%": ".*", "_": "."}.get(c, c if c.isalnum() else f"\\x{{{ord(c):x}}}") for c in pattern)
    return f"regexp_full_match({value}, {text(f'(?s){expression}')})"


def _clamp(value: str, lower: Fraction | None, upper: Fraction | None, whole: bool) -> str:
    """LEAST and GREATEST would read NULL as a bound, so the cases are spelled out; NaN compares above everything.

    The usual case comes first: it is quicker where nearly all values are within.
    """
    if lower is None or upper is None:
        return value if whole else f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END"
    if whole:
        low, high = literal(int(lower)), literal(int(upper))
        return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
    low, high = literal(lower), literal(upper)
    within, beyond = f"WHEN {value} BETWEEN {low} AND {high} THEN {value}", f"WHEN {value} > {high} THEN {high}"
    return f"CASE {within} WHEN isnan({value}) THEN NULL WHEN {value} < {low} THEN {low} {beyond} END"
