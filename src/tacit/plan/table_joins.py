"""Joins of released tables: which columns match, which are shown, and the most rows there can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tacit.answers.program import (
    Combine,
    Compute,
    Filter,
    Node,
    ProgramColumn,
)
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import bind
from tacit.plan.relation import condition
from tacit.plan.released_table import ReleasedTable, find_column, has_name
from tacit.query.functions import Function
from tacit.query.integer_types import widest
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Join,
    Scalar,
    ScalarSubquery,
    Window,
    find_location,
    walk,
)
from tacit.query.types import Type

_MOST_PAIRS = 1_000_000  # rows that a join of released tables may have, from public numbers


def join_tables(
    node: Join, left: ReleasedTable, right: ReleasedTable, where: list[Scalar], new: Iterator[str]
) -> ReleasedTable:
    """A join of released tables on equal columns, or of all rows of both."""
    names = tuple(c.name for c in left.columns if has_name(right, c.name)) if node.natural else node.using
    using = {name.lower() for name in names}
    others = tuple(replace(c, hidden=c.hidden or c.name.lower() in using) for c in right.columns)
    shown = (*others, *left.columns) if node.swapped else (*left.columns, *others)
    every = ReleasedTable(left.node, (*left.columns, *right.columns), 0)
    pairs: list[tuple[Scalar, Scalar]] = []
    rest: list[Scalar] = []
    for name in names:
        column = ColumnReference(name, at=node.at)
        pairs.append((find_column(column, left).scalar, find_column(column, right).scalar))
    parts: tuple[Scalar, ...] = ()
    if node.on is not None:
        is_and = isinstance(node.on, Call) and node.on.function == Function.AND
        parts = node.on.arguments if is_and and isinstance(node.on, Call) else (node.on,)
    ours = {column.column for column in left.columns}
    for part in parts:
        bound = bind(
            part, lambda leaf: find_column(leaf, every) if isinstance(leaf, ColumnReference) else None, rows=False
        )
        sides = _sides(bound.scalar, ours)
        if sides is not None:
            pairs.append(sides)
        else:
            rest.append(condition(bound, "ON", find_location(part)))
    if rest and node.outer:
        what = "an outer join of released tables on anything but equal columns is not answered"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="filter in the subqueries")
    if node.is_cross:
        pairs += _pairs_of_where(where, every, ours)
    kind = "full" if node.full else "left" if node.outer else "inner"
    both = ReleasedTable(left.node, shown, _pairs(left, right, pairs, node))
    joined: Node = Combine(left.node, right.node, tuple(pairs), kind)
    for part in rest:
        joined = Filter(joined, part)
    both = replace(both, node=joined)
    return _merge(both, right, using, new) if node.full and using else both


def _merge(both: ReleasedTable, right: ReleasedTable, using: set[str], new: Iterator[str]) -> ReleasedTable:
    """A FULL JOIN whose columns of USING are those of the side that has the row."""
    computed, columns = [], []
    for column in both.columns:
        scalar: Scalar = ColumnReference(column.column)
        of_postgres = column.postgres_type
        if column.name.lower() in using and not column.hidden:
            other = find_column(ColumnReference(column.name), right)
            scalar = Case(((Call(Function.IS_NULL, (scalar,)), other.scalar),), scalar)
            of_postgres = widest((of_postgres, other.postgres_type))
        name = next(new)
        computed.append(ProgramColumn(name, scalar, column.type or Type.INT))
        columns.append(replace(column, column=name, postgres_type=of_postgres))
    return replace(both, node=Compute(both.node, tuple(computed)), columns=tuple(columns))


def _pairs(left: ReleasedTable, right: ReleasedTable, on: list[tuple[Scalar, Scalar]], node: Join) -> int:
    """The most rows of a join. A row finds at most one where the columns that it is matched on are unique."""
    ours = {one.name for one, _ in on if isinstance(one, ColumnReference)}
    theirs = {other.name for _, other in on if isinstance(other, ColumnReference)}
    if any(key <= theirs for key in right.unique):
        return left.rows + (right.rows if node.full else 0)
    if any(key <= ours for key in left.unique):
        return right.rows + (left.rows if node.outer else 0)
    if left.rows * right.rows > _MOST_PAIRS:
        what = f"a join of released tables of up to {left.rows:,} and {right.rows:,} rows is not answered"
        raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="group by fewer or coarser keys")
    return left.rows * right.rows


def _pairs_of_where(where: list[Scalar], every: ReleasedTable, ours: set[str]) -> list[tuple[Scalar, Scalar]]:
    """The equalities of WHERE between two tables with a comma between them. They stay in WHERE, too."""
    found = []
    for part in where:
        if any(isinstance(node, ScalarSubquery | Window | Aggregate) for node in walk(part)):
            continue
        try:
            bound = bind(
                part, lambda leaf: find_column(leaf, every) if isinstance(leaf, ColumnReference) else None, rows=False
            )
        except Refused:
            continue  # it names columns of further tables, or is refused where WHERE is read
        sides = _sides(bound.scalar, ours)
        if sides is not None:
            found.append(sides)
    return found


def _sides(scalar: Scalar, ours: set[str]) -> tuple[Scalar, Scalar] | None:
    """The sides of an equality, the left table's first, if each side is about one table only."""
    if not isinstance(scalar, Call) or scalar.function != Function.EQUAL:
        return None
    about = []
    for side in scalar.arguments:
        found = {node.name in ours for node in walk(side) if isinstance(node, ColumnReference)}
        about.append(found.pop() if len(found) == 1 else None)
    if about == [True, False]:
        return scalar.arguments[0], scalar.arguments[1]
    return (scalar.arguments[1], scalar.arguments[0]) if about == [False, True] else None
