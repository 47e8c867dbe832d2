"""Rows joined with the first keys of a question: JOIN (SELECT country AS c ... GROUP BY 1 LIMIT 3) ON country = c.

**Rule.** No two rows of a question with one key share it, and NULL is equal to nothing. So a join on equality with that
key keeps a row once, or not at all: it is WHERE country IN (SELECT country ...), if no other column of the question is
used. The keys are released first, and choose rows (`plan/released_values.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tacit.plan.connect import all_of
from tacit.plan.released_values import is_listed
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    DerivedTable,
    FromItem,
    InSubquery,
    Join,
    Query,
    Scalar,
    SelectItem,
    is_star,
    walk,
    walk_clauses,
)


def read_released_joins(query: Query, is_released: Callable[[FromItem], bool]) -> Query:
    """The query, with IN in WHERE for an inner join of rows with the first keys of a question."""
    source = query.source
    if not isinstance(source, Join) or source.outer or source.natural:
        return query
    for other, listed in ((source.left, source.right), (source.right, source.left)):
        found = _read_key(query, source, other, listed)
        if found is not None and is_released(listed) and not is_released(other):
            operand, keys = found
            among = InSubquery(operand, keys, source.at)
            where = all_of([*conjuncts(query.where), among], query.where)
            return replace(query, source=other, where=where)
    return query


def _read_key(query: Query, join: Join, other: FromItem, listed: FromItem) -> tuple[Scalar, Query] | None:
    """What is looked for, and the question for the keys alone; None where the join is anything else."""
    if not isinstance(listed, DerivedTable) or not isinstance(listed.query, Query):
        return None
    inner = listed.query
    if not is_listed(inner) or len(inner.keys) != 1 or inner.having is not None or inner.sets is not None:
        return None
    named = {output.name.lower(): output.scalar for output in inner.outputs}
    key = inner.keys[0]
    if isinstance(key, ColumnReference) and key.table is None and key.name.lower() in named:
        key = named[key.name.lower()]
    sides = _read_sides(join, listed.alias)
    if sides is None or named.get(sides[1].name.lower()) != key:
        return None
    operand, column = sides
    clauses = [*walk_clauses(query), operand]
    if any(_may_name(part, listed.alias, named) for clause in clauses for part in walk(clause)):
        return None
    order = tuple(
        replace(item, scalar=named.get(item.scalar.name.lower(), item.scalar))
        if isinstance(item.scalar, ColumnReference) and item.scalar.table is None
        else item
        for item in inner.order
    )
    return operand, replace(inner, outputs=(SelectItem(column.name, key),), keys=(key,), order=order)


def _read_sides(join: Join, alias: str) -> tuple[Scalar, ColumnReference] | None:
    """The sides of the one equality of a join, that of the question last."""
    parts = conjuncts(join.on)
    if join.using or len(parts) != 1 or not isinstance(parts[0], Call) or parts[0].function != Function.EQUAL:
        return None
    inside = join.left if isinstance(join.left, DerivedTable) and join.left.alias == alias else join.right
    assert isinstance(inside, DerivedTable)
    assert isinstance(inside.query, Query)
    names = {output.name.lower() for output in inside.query.outputs}
    for side, column in (parts[0].arguments, parts[0].arguments[::-1]):
        if not isinstance(column, ColumnReference) or column.name.lower() not in names:
            continue
        if column.table is None or column.table.lower() == alias.lower():
            return side, column
    return None


def _may_name(part: Scalar, alias: str, named: dict[str, Scalar]) -> bool:
    """Whether a part of the query is, or may be, a column of the question."""
    if not isinstance(part, ColumnReference):
        return False
    if part.table is not None:
        return part.table.lower() == alias.lower()
    return is_star(part) or part.name.lower() in named
