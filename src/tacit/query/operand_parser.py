"""Operands: a constant, a column, CASE, a call or what stands in brackets, with a sign before it or a cast behind."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.bracket_parser import read_bracket
from tacit.query.call_parser import read_call
from tacit.query.cast_parser import build_cast, read_type
from tacit.query.constant_parser import read_clock, read_interval, read_number, starts_interval
from tacit.query.date_calls import build_date, build_timestamp
from tacit.query.dialect_names import CLOCK_DATES, CLOCK_TIMES
from tacit.query.expression_cursor import ExpressionCursor
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, ColumnReference, Literal, Scalar
from tacit.query.operators import Precedence
from tacit.query.refusals import FUNCTIONS_WITHOUT_PARENTHESES, refuse_unknown_function, refuse_unsupported

_CLOCK = CLOCK_DATES | CLOCK_TIMES
_MOST_PARTS = 4  # of a name: database, schema, table and column


def read_operand(parser: ExpressionCursor, least: int) -> Scalar:
    """An operand with what stands before it, NOT or a sign, and its casts behind."""
    start = parser.index
    if least <= Precedence.RANGE and parser.accept("NOT"):
        operand = parser.scalar(Precedence.NOT)
        return Call(Function.NOT, (operand,), parser.since(start))
    if parser.accept("+"):
        return parser.scalar(Precedence.SIGN)
    if parser.accept("-"):
        operand = parser.scalar(Precedence.SIGN)
        value = operand.value if isinstance(operand, Literal) else None
        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return Literal(-value, parser.since(start))
        return Call(Function.NEGATE, (operand,), parser.since(start))
    found = read_primary(parser)
    while parser.accept("::"):
        found = build_cast(parser, found, start, *read_type(parser))
    if parser.sees("["):
        parser.refuse_unexpected("an operator")
    return found


def read_primary(parser: ExpressionCursor) -> Scalar:
    """A value without operators: a constant, a column, a call or what stands in brackets."""
    token, start = parser.token, parser.index
    match token.kind, token.key:
        case "number", _:
            parser.index += 1
            return Literal(read_number(parser, token.text, start), parser.since(start))
        case "text", _:
            parser.index += 1
            return Literal(token.text, parser.since(start))
        case _, "TRUE" | "FALSE" | "NULL":
            parser.index += 1
            return Literal({"TRUE": True, "FALSE": False, "NULL": None}[token.key], parser.since(start))
        case _, "(":
            return read_bracket(parser, start)
        case _, "CASE":
            return _read_case(parser, start)
        case _, "DATE" if parser.tokens[parser.index + 1].kind == "text":
            parser.index += 1
            operand = read_primary(parser)
            return build_date(operand, parser.since(start))
        case _, "TIMESTAMP" | "DATETIME" if parser.tokens[parser.index + 1].kind == "text":
            parser.index += 1
            operand = read_primary(parser)
            return build_timestamp(operand, parser.since(start))
        case _, "TIMESTAMPTZ" | "TIME" if parser.tokens[parser.index + 1].kind == "text":
            at = parser.through(start, start + 1)
            instead = f"TIMESTAMP {at.written[len(token.text) :].strip()}" if token.key == "TIMESTAMPTZ" else None
            fix = "compare the hour and the minute" if instead is None else f"write it in the column's zone: {instead}"
            raise refuse_unsupported(token.key, fix, at, instead)
        case _, "INTERVAL" if starts_interval(parser):
            return read_interval(parser, start)
    name = token.text.lower()
    alone = name in FUNCTIONS_WITHOUT_PARENTHESES and parser.after() != "."
    if token.kind == "word" and name in _CLOCK and (parser.after() == "(" or alone):
        return read_clock(parser, start)
    if token.kind == "word" and parser.after() == "(":
        return read_call(parser, start)
    if token.kind == "word" and name in FUNCTIONS_WITHOUT_PARENTHESES and parser.after() != ".":
        raise refuse_unknown_function(token.text, parser.here())
    if token.key == "*":
        _refuse_star(parser.here())
    return _read_column(parser, start)


def _refuse_star(at: SourceLocation) -> NoReturn:
    raise Refused(
        ErrorCode.SYNTAX,
        "* stands for rows, not for a value",
        at=at,
        fix="name a column",
    )


def _read_column(parser: ExpressionCursor, start: int) -> ColumnReference:
    """A column, with its table and the schemas of that before it, of which the policy has one: it needs no name."""
    names = [parser.name("a value")]
    while parser.sees("."):
        if parser.after() == "*":
            _refuse_star(parser.through(start, parser.index + 1))
        parser.index += 1
        names.append(parser.name("a column"))
    if parser.sees("("):
        at, call = (
            parser.through(start, parser.closing[parser.index]),
            parser.through(parser.index, parser.closing[parser.index]),
        )
        instead = f"{names[-1]}{call.written}" if names[-1].isidentifier() else None
        fix = "write its name alone" if instead is None else f"write its name alone: {instead}"
        raise refuse_unsupported("a function of a schema or in quotes", fix, at, instead)
    if len(names) > _MOST_PARTS:
        fix = "write the column, or table.column"
        raise refuse_unsupported(f"a name of more than {_MOST_PARTS} parts", fix, parser.since(start))
    name, table = names[-1], names[-2] if len(names) > 1 else None
    parser.after_column = parser.index
    return ColumnReference(name, table, parser.since(start))


def _read_case(parser: ExpressionCursor, start: int) -> Case:
    """CASE WHEN c THEN x END; CASE s WHEN v THEN x END compares s with each v."""
    parser.index += 1
    subject = None if parser.sees("WHEN") else parser.scalar()
    branches = []
    first = parser.index
    while parser.accept("WHEN"):
        condition = parser.scalar()
        if subject is not None:
            condition = Call(Function.EQUAL, (subject, condition), parser.since(first))
        parser.expect("THEN")
        branches.append((condition, parser.scalar()))
        first = parser.index
    if not branches:
        parser.refuse_unexpected("WHEN")
    otherwise = parser.scalar() if parser.accept("ELSE") else Literal(None)
    parser.expect("END")
    return Case(tuple(branches), otherwise, parser.since(start))
