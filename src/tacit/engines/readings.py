"""Columns that a copy holds as questions read them: clamped to their bounds, NaN as NULL.

A question reads a column with bounds by an expression, wherever it names it. A copy holds the value of that expression
in the place of the stored one, and the expression is left out of questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from tacit.engines.layout import substitute
from tacit.engines.unit_rows import OneRowPerUnit
from tacit.query.clipped_aggregation import ClippedAggregation, change_measures
from tacit.query.nodes import (
    Aggregation,
    ColumnReference,
    Constants,
    EquiJoin,
    ExactStatistic,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
)

Readings = Mapping[str, Mapping[str, Scalar]]
"""For each table, how a question reads each column that a copy holds so, in terms of the declared names.

**Rule.** A plan reads such a column in this way, or without it where it makes no difference: a clamp is left out of a
comparison with constants strictly within the bounds (`plan/operands.py`), and of a value that is put on a grid whose
ends are the bounds (`aggregates/argument.py`). So a plan computes the same from what the copy holds. Columns that match
tables or say whose row it is are not among them (`curator/copies.py`)."""

_Map = Callable[[Scalar], Scalar]
_Grouped = TypeVar("_Grouped", Aggregation, ClippedAggregation)


def use_readings(node: Aggregation, readings: Readings) -> Aggregation:
    """The same aggregation over a copy that holds what questions read."""
    change = _replace_readings(node.source, readings)
    measures = tuple(_change_measure(measure, change) for measure in node.measures)
    return replace(_change_groups(node, change), measures=measures)


def use_readings_of_clipped(node: ClippedAggregation, readings: Readings) -> ClippedAggregation:
    """The same where a clip bounds what a unit adds."""
    change = _replace_readings(node.source, readings)
    vectors = change_measures(node.vectors, lambda measure: _change_measure(measure, change))
    return replace(_change_groups(node, change), vectors=vectors)


def _change_groups(node: _Grouped, change: _Map) -> _Grouped:
    """The same with other rows, another condition and other keys."""
    return replace(
        node,
        source=_change_rows(node.source, change),
        where=None if node.where is None else change(node.where),
        keys=tuple(replace(key, scalar=change(key.scalar)) for key in node.keys),
    )


def use_readings_of_rows(node: OneRowPerUnit, readings: Readings) -> OneRowPerUnit:
    """The same rows from a copy that holds what questions read."""
    change = _replace_readings(node.source, readings)
    return replace(
        node,
        source=_change_rows(node.source, change),
        where=None if node.where is None else change(node.where),
        columns=tuple(map(change, node.columns)),
    )


def _replace_readings(node: RelationalNode, readings: Readings) -> _Map:
    """Puts the column in the place of its reading. Names differ between all tables of a question."""
    ready: dict[Scalar, Scalar] = {}
    for scan in _scans(node):
        named: dict[Scalar, Scalar] = {ColumnReference(there): ColumnReference(here) for there, here in scan.columns}
        for column, reading in readings.get(scan.table, {}).items():
            if ColumnReference(column) in named:
                ready[substitute(reading, named)] = named[ColumnReference(column)]
    return lambda scalar: substitute(scalar, ready)


def _scans(node: RelationalNode) -> list[Scan]:
    match node:
        case Scan():
            return [node]
        case Constants():
            return []
        case Projection(source) | PerUnitAggregation(source) | UnitWindow(source):
            return _scans(source)
        case EquiJoin(left, right):
            return _scans(left) + _scans(right)
        case RowUnion(parts):
            return [scan for part in parts for scan in _scans(part)]
    raise AssertionError(f"no scans in {node!r}")


def _change_rows(node: RelationalNode, change: _Map) -> RelationalNode:
    match node:
        case Scan() | Constants():
            return node
        case Projection(source, columns, where):
            changed = tuple((here, change(value)) for here, value in columns)
            return Projection(_change_rows(source, change), changed, None if where is None else change(where))
        case EquiJoin(left, right, on):
            matched = tuple((change(one), change(other)) for one, other in on)
            return replace(node, left=_change_rows(left, change), right=_change_rows(right, change), on=matched)
        case PerUnitAggregation(source, keys, measures):
            return PerUnitAggregation(
                _change_rows(source, change),
                tuple((here, change(value)) for here, value in keys),
                tuple((here, _change_measure(measure, change)) for here, measure in measures),
            )
        case UnitWindow(source):  # which names columns only
            return replace(node, source=_change_rows(source, change))
        case RowUnion(parts):
            return RowUnion(tuple(_change_rows(part, change) for part in parts))
    raise AssertionError(f"no rows of {node!r}")


def _change_measure(measure: ExactStatistic, change: _Map) -> ExactStatistic:
    return measure if measure.argument is None else replace(measure, argument=change(measure.argument))
