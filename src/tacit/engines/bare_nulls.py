"""Columns that are always NULL, for an engine that takes them for texts.

PostgreSQL gives a NULL the type of what stands beside it. A column of a subquery, and a CASE or COALESCE of NULLs
alone, is a text instead, and the statement is refused where a number stands beside it, whatever the rows are.

**Rule.** What is written so that it is NULL in every row is written as NULL where anything is computed from it. **That
changes no value**: an operand is replaced by one that is equal in every row.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.query.clipped_aggregation import ClippedAggregation, change_measures
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    Constants,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    ToFloat,
    UnitWindow,
    column_names,
)

NullColumns = frozenset[str]

_NULL = Literal(None)
_CHOICES = frozenset({Function.COALESCE, Function.LEAST, Function.GREATEST})
_COUNTS = frozenset({"count", "row_number", "rank", "dense_rank", "ntile"})  # windows that are never NULL


def write_bare_nulls(node: Aggregation) -> Aggregation:
    """The aggregation with NULL in place of each operand that is always NULL."""
    source, nulls = _rows(node.source)
    return replace(
        node,
        source=source,
        where=None if node.where is None else _scalar(node.where, nulls),
        keys=_keys(node.keys, nulls),
        measures=tuple(_measure(measure, nulls) for measure in node.measures),
    )


def write_bare_nulls_of_clipped(node: ClippedAggregation) -> ClippedAggregation:
    """The same where a clip bounds what a unit adds."""
    source, nulls = _rows(node.source)
    return replace(
        node,
        source=source,
        where=None if node.where is None else _scalar(node.where, nulls),
        keys=_keys(node.keys, nulls),
        vectors=change_measures(node.vectors, lambda measure: _measure(measure, nulls)),
    )


def write_bare_nulls_of_rows(node: RelationalNode) -> RelationalNode:
    """The same rows, with NULL in place of each operand that is always NULL."""
    return _rows(node)[0]


def _rows(node: RelationalNode) -> tuple[RelationalNode, NullColumns]:
    """The rows, and which of their columns are NULL in all of them and have no type."""
    match node:
        case Scan() | Constants():
            return node, frozenset()
        case Projection(source, columns, where):
            inner, nulls = _rows(source)
            condition = None if where is None else _scalar(where, nulls)
            named = tuple((name, _scalar(value, nulls)) for name, value in columns)
            return Projection(inner, named, condition), frozenset(name for name, value in named if value == _NULL)
        case EquiJoin(left, right, on):
            (one, ours), (other, theirs) = _rows(left), _rows(right)
            pairs = tuple((_scalar(a, ours), _scalar(b, theirs)) for a, b in on)
            return replace(node, left=one, right=other, on=pairs), ours | theirs
        case PerUnitAggregation(source, keys, measures):
            inner, nulls = _rows(source)
            named = tuple((name, _scalar(value, nulls)) for name, value in keys)
            inside = tuple((name, _measure(measure, nulls)) for name, measure in measures)
            return PerUnitAggregation(inner, named, inside), frozenset(n for n, value in named if value == _NULL)
        case UnitWindow():
            return _windows(node)
        case RowUnion(parts):
            # The type of a column is that of the first two parts, and NULL has the type of the other one.
            found = sorted(map(_rows, parts), key=lambda part: len(part[1]))
            return RowUnion(tuple(part for part, _ in found)), frozenset.intersection(*(nulls for _, nulls in found))
    raise AssertionError(f"no rows: {node!r}")


def _windows(node: UnitWindow) -> tuple[RelationalNode, NullColumns]:
    """Windows name columns: beside one with a type, a NULL is a column of that type."""
    source, nulls = _rows(node.source)
    typed: dict[str, Scalar] = {}
    made, empty = [], set(nulls)
    for name, window in node.columns:
        sides = [side for side in (window.argument, window.otherwise) if side is not None]
        known = next((ColumnReference(side) for side in sides if side not in nulls), None)
        if known is None and sides and window.function not in _COUNTS:
            empty.add(name)
        named = {side: side for side in sides}
        if known is not None:
            for side in nulls.intersection(sides):
                named[side] = f"{side} as {known.name}"
                typed[named[side]] = Case(((Literal(False), known),), _NULL)
        argument, otherwise = (side and named[side] for side in (window.argument, window.otherwise))
        made.append((name, replace(window, argument=argument, otherwise=otherwise)))
    if typed:
        passed = tuple((name, _scalar(ColumnReference(name), nulls)) for name in column_names(source))
        source = Projection(source, (*passed, *typed.items()))
    return replace(node, source=source, columns=tuple(made)), frozenset(empty)


def _keys(keys: tuple[GroupKey, ...], nulls: NullColumns) -> tuple[GroupKey, ...]:
    return tuple(replace(key, scalar=_scalar(key.scalar, nulls)) for key in keys)


def _measure(measure: ExactStatistic, nulls: NullColumns) -> ExactStatistic:
    return measure if measure.argument is None else replace(measure, argument=_scalar(measure.argument, nulls))


def _scalar(node: Scalar, nulls: NullColumns) -> Scalar:
    match node:
        case ColumnReference(name):
            return _NULL if name in nulls else node
        case Case(branches, otherwise):
            parts = tuple((_scalar(when, nulls), _scalar(then, nulls)) for when, then in branches)
            last = _scalar(otherwise, nulls)
            return _NULL if {last, *(then for _, then in parts)} == {_NULL} else Case(parts, last)
        case Call(function, arguments):
            operands = tuple(_scalar(argument, nulls) for argument in arguments)
            return _NULL if function in _CHOICES and set(operands) == {_NULL} else Call(function, operands)
        case Clamp(operand) | ToFloat(operand) | Quantize(operand):
            return replace(node, operand=_scalar(operand, nulls))
    return node
