"""Nodes as SQL. Every expression is total: no row can make it raise, overflow or run long."""

from __future__ import annotations

import datetime
from fractions import Fraction

from tacit.query.functions import Fn
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    Column,
    Domain,
    KeyOf,
    Literal,
    Measure,
    Quantize,
    Released,
    Scalar,
    ToFloat,
)

_INFIX = {Fn.ADD, Fn.SUBTRACT, Fn.MULTIPLY, Fn.EQUAL, Fn.UNEQUAL, Fn.LESS, Fn.LESS_EQUAL, Fn.GREATER, Fn.GREATER_EQUAL}
_PREFIX = {Fn.NEGATE: "-", Fn.NOT: "NOT "}


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
            return _call(Fn(function), [scalar(argument) for argument in arguments])
    raise AssertionError(f"no SQL for {node!r}")


def _call(function: Fn, arguments: list[str]) -> str:
    if function in _INFIX:
        return f"({arguments[0]} {function} {arguments[1]})"
    if function in _PREFIX:
        return f"({_PREFIX[function]}{arguments[0]})"
    if function in {Fn.AND, Fn.OR}:
        return "(" + f" {function.upper()} ".join(arguments) + ")"
    if function is Fn.DIVIDE:
        return f"({arguments[0]} / NULLIF({arguments[1]}, 0))"
    if function is Fn.ROUND and len(arguments) == 2:
        return f"round({arguments[0]}, CAST({arguments[1]} AS INTEGER))"
    if function is Fn.IS_NULL:
        return f"({arguments[0]} IS NULL)"
    if function is Fn.IN:
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return f"{function}({', '.join(arguments)})"


def _clamp(value: str, lower: Fraction | None, upper: Fraction | None, whole: bool) -> str:
    """LEAST and GREATEST would read NULL as a bound, so the cases are spelled out; NaN compares above everything."""
    cases = [] if whole else [f"WHEN isnan({value}) THEN NULL"]
    if lower is not None and upper is not None:
        low, high = (literal(int(lower)), literal(int(upper))) if whole else (literal(lower), literal(upper))
        cases += [f"WHEN {value} < {low} THEN {low}", f"WHEN {value} > {high} THEN {high}"]
    return f"CASE {' '.join(cases)} ELSE {value} END" if cases else value


def aggregation(node: Aggregation, source: str) -> str:
    """The whole aggregation over `source`, a table expression whose columns have the declared types."""
    keys = [f"k{i}" for i in range(len(node.keys))]
    arguments = list(dict.fromkeys(m.argument for m in node.measures if m.argument is not None))
    columns = [f"{name(domain.column)} AS {key}" for domain, key in zip(node.keys, keys, strict=True)]
    columns += [f"{scalar(argument)} AS a{i}" for i, argument in enumerate(arguments)]
    if node.unit is not None:
        columns.append(f"{name(node.unit)} AS unit")
    conditions = [_declared(domain) for domain in node.keys]
    if node.where is not None:
        conditions.append(scalar(node.where))
    if node.unit is not None:
        conditions.append(f"{name(node.unit)} IS NOT NULL")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = f"SELECT {', '.join(columns) or '1'} FROM {source}{where}"
    if node.unit is not None:
        rows = _bounded(node, rows, keys, len(arguments))
    results = [*keys, *(_measure(measure, arguments) for measure in node.measures)]
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(results)} FROM ({rows}){grouping}"


def _declared(domain: Domain) -> str:
    return f"{name(domain.column)} IN ({', '.join(literal(value) for value in domain.values)})"


def _measure(measure: Measure, arguments: list[Scalar]) -> str:
    if measure.argument is None:
        return "COUNT(*)"
    column = f"a{arguments.index(measure.argument)}"
    return f"COUNT({column})" if measure.function == "count" else f"COALESCE(SUM({column}), 0)"


def _bounded(node: Aggregation, rows: str, keys: list[str], arguments: int) -> str:
    """Of each unit, at most `keep.groups` groups and `keep.rows` rows in each.

    The choice is by a hash of the unit's own values, then by these values: rows that tie are equal in all that is used.
    """
    values = [f"a{i}" for i in range(arguments)]
    order = f" ORDER BY {', '.join([_hash(node.salt, values), *values])}" if values else ""
    ranks = [f"ROW_NUMBER() OVER (PARTITION BY {', '.join(['unit', *keys])}{order}) AS row_rank"]
    conditions = [f"row_rank <= {node.keep.rows}"]
    groups = 1
    for domain in node.keys:
        groups *= len(domain.values)
    if node.keep.groups < groups:
        by = ", ".join([_hash(node.salt, ["unit", *keys]), *keys])
        ranks.append(f"DENSE_RANK() OVER (PARTITION BY unit ORDER BY {by}) AS group_rank")
        conditions.append(f"group_rank <= {node.keep.groups}")
    return f"SELECT * FROM (SELECT *, {', '.join(ranks)} FROM ({rows})) WHERE {' AND '.join(conditions)}"


def _hash(salt: str, values: list[str]) -> str:
    parts = [text(salt), *(f"COALESCE(CAST({value} AS VARCHAR), '-')" for value in values)]
    return f"md5({' || chr(31) || '.join(parts)})"
