"""The columns of a join: those of both sides, the common ones, and those that may become NULL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.join_refusals import refuse_join
from tacit.plan.relation import Field, Relation
from tacit.query.nodes import (
    ColumnReference,
    Constants,
    EquiJoin,
    Join,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
)


def common_names(left: Relation, right: Relation, node: Join) -> tuple[str, ...]:
    """The columns that a NATURAL JOIN matches: those of the same name, listed or not."""
    theirs = {f.name.lower() for f in _own_columns(right)}
    common = tuple(dict.fromkeys(f.name for f in _own_columns(left) if f.name.lower() in theirs))
    if not common:
        what = f"a NATURAL JOIN of {left.sources[0]} and {right.sources[0]}, which share no column,"
        raise refuse_join(node, what, "say which columns match")
    return common


def _own_columns(relation: Relation) -> list[Field]:
    """The columns that rows have: a unit that is reached through another table is none."""
    fields = [f for f in relation.fields if not f.hidden and not f.is_internal]
    return fields + [f for f in relation.implied if not f.hidden and f.link is not None]


def fill_right_side(right: Relation, new_names: Iterator[str]) -> Relation:
    """The right side of a LEFT JOIN, each field that is never NULL computed before rows are matched.

    Such a field holds a value in place of a missing one. Computed after the join, it would hold that value in the rows
    that match nothing, too, and these would be counted and added up.
    """
    columns: list[tuple[str, Scalar]] = [(name, ColumnReference(name)) for name in columns_of(right.rows)]
    fields = list(right.fields)
    for position, found in enumerate(right.fields):
        if not found.bound.nullable and not isinstance(found.bound.scalar, ColumnReference):
            name = next(new_names)
            columns.append((name, found.bound.scalar))
            fields[position] = replace(found, bound=replace(found.bound, scalar=ColumnReference(name)))
    if fields == list(right.fields):
        return right
    return replace(right, rows=Projection(right.rows, tuple(columns)), fields=tuple(fields))


def columns_of(rows: RelationalNode) -> Iterator[str]:
    """The names of the columns that rows have."""
    match rows:
        case Scan(_, columns):
            yield from (here for _, here in columns)
        case Constants(columns):
            yield from (name for name, _ in columns)
        case Projection(_, columns):
            yield from (name for name, _ in columns)
        case EquiJoin(left, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case PerUnitAggregation(_, keys, measures):
            yield from (name for name, _ in keys)
            yield from (name for name, _ in measures)
        case UnitWindow(source, columns=made):
            yield from columns_of(source)
            yield from (name for name, _ in made)
        case RowUnion(parts):
            yield from columns_of(parts[0])


def put_together(left: Relation, right: Relation, node: Join) -> Relation:
    """The names of both sides."""
    names = (*left.sources, *right.sources)
    if len({name.lower() for name in names}) < len(names):
        fix = "give each a name of its own"
        raise Refused(ErrorCode.AMBIGUOUS, "two tables of this question have the same name", at=node.at, fix=fix)
    fields = (*left.fields, *_hide_using_columns(right.fields, node.using))
    implied = (*left.implied, *_hide_using_columns(right.implied, node.using))
    return replace(left, fields=fields, sources=names, implied=implied)


def _hide_using_columns(fields: tuple[Field, ...], using: tuple[str, ...]) -> tuple[Field, ...]:
    """The right side's fields, those of USING by their qualified names only."""
    names = {name.lower() for name in using}
    return tuple(replace(f, hidden=True) if f.name.lower() in names else f for f in fields)


def maybe_null(found: Field) -> Field:
    """A field of the outer side: NULL where nothing matches. Its unit is the row's, or NULL."""
    matched = found.is_matched_unit or (found.is_unit and found.bound.type is None)
    return replace(found, bound=replace(found.bound, nullable=True), is_unit=False, is_matched_unit=matched)
