"""Rows joined with a question: with its one row, or with its first keys.

    SELECT ward, 1.0 * COUNT(*) / t.n FROM visits CROSS JOIN (SELECT COUNT(*) AS n FROM visits) AS t GROUP BY ward, t.n

**Rule.** A question without keys has one row, so a join with it is WHERE by its condition, and each of its columns is
one value: (SELECT COUNT(*) FROM visits). As a key it makes no groups, and its mean or extreme is itself.

    JOIN (SELECT country AS c ... GROUP BY 1 LIMIT 3) ON country = c

**Rule.** No two rows of a question with one key share it, and NULL is equal to nothing. So a join on equality with that
key keeps a row once, or not at all: it is WHERE country IN (SELECT country ...), if no other column of the question is
used. The keys are released first, and choose rows (`plan/released_values.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.connect import all_of
from tacit.plan.flatten import aggregates
from tacit.plan.released_values import is_listed
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    Exists,
    FromItem,
    InSubquery,
    Join,
    Literal,
    Query,
    Scalar,
    ScalarSubquery,
    SelectItem,
    SemiJoin,
    Window,
    is_star,
    rebuild,
    walk,
    walk_clauses,
)

_OF_ONE_VALUE = frozenset({"min", "max", "avg"})  # of equal values that value


def read_rows_of_one(
    query: Query,
    is_released: Callable[[FromItem], bool],
    column_names: Callable[[FromItem], frozenset[str]],
) -> Query:
    """The query and those in FROM, with values in place of the columns of questions of one row, and of constants.

    Refused where a name means a column of both sides. `column_names` tells those of a source, in small letters.
    """
    source = _read_inside(query.source, is_released, column_names)
    query = query if source == query.source else replace(query, source=source)
    if query.sets is not None:  # which tell keys by their places
        return query
    while (found := _find_one_row(query.source, is_released)) is not None:
        join, one = found
        rows = _replace_join(query.source, join, join.left if join.right is one else join.right)
        conditions = [*conjuncts(query.where), *(part for part in conjuncts(join.on) if part != Literal(True))]
        query = replace(query, source=rows, where=all_of(conditions, query.where))
        query = _read_values(query, one, column_names(rows))
    return query


def _read_inside(
    source: FromItem, is_released: Callable[[FromItem], bool], column_names: Callable[[FromItem], frozenset[str]]
) -> FromItem:
    match source:
        case Join(left, right) | SemiJoin(left, right):
            left, right = (_read_inside(side, is_released, column_names) for side in (left, right))
            return replace(source, left=left, right=right)
        case DerivedTable(Query() as query):
            return replace(source, query=read_rows_of_one(query, is_released, column_names))
    return source


def _find_one_row(source: FromItem, is_released: Callable[[FromItem], bool]) -> tuple[Join, DerivedTable] | None:
    """A join of rows with a question of one row, which keeps all rows or those that meet its condition."""
    if not isinstance(source, Join) or source.full:
        return None
    sides = [(source.right, source.left), (source.left, source.right)][: 1 if source.outer else 2]
    is_plain = not source.using and not source.natural and (not source.outer or source.on in {None, Literal(True)})
    for one, other in sides if is_plain else ():
        if not isinstance(one, DerivedTable) or not isinstance(one.query, Query) or is_released(other):
            continue
        if _is_constant(one.query) or (_has_one_row(one.query) and is_released(one)):
            return source, one
    found = _find_one_row(source.left, is_released)
    return found if found is not None or source.outer else _find_one_row(source.right, is_released)


def _has_one_row(query: Query) -> bool:
    """Whether a query has one row because it has aggregates and no keys."""
    return _is_whole(query) and bool(aggregates(query)) and not any(is_star(each.scalar) for each in query.outputs)


def _is_constant(query: Query) -> bool:
    """Whether a query is a row of constants: SELECT DATE '2025-01-01' AS start."""
    source = query.source
    is_row = isinstance(source, ConstantTable) and not source.series and len(source.rows) == 1
    parts = (part for output in query.outputs for part in walk(output.scalar))
    names = (ColumnReference, Aggregate, Window, ScalarSubquery, InSubquery, Exists)
    return is_row and _is_whole(query) and query.where is None and not any(isinstance(part, names) for part in parts)


def _is_whole(query: Query) -> bool:
    if query.keys or query.sets is not None or query.distinct:
        return False
    return query.having is None and query.limit is None and not query.offset and query.qualify is None


def _replace_join(source: FromItem, join: Join, by: FromItem) -> FromItem:
    if source is join:
        return by
    if not isinstance(source, Join):
        return source
    return replace(source, left=_replace_join(source.left, join, by), right=_replace_join(source.right, join, by))


def _read_values(query: Query, one: DerivedTable, others: frozenset[str]) -> Query:
    """The query, with the values of a question of one row in place of its columns; `others` are those beside it."""
    inner = one.query
    assert isinstance(inner, Query)
    named = {output.name.lower(): output for output in inner.outputs}
    is_constant = _is_constant(inner)
    shown = frozenset(output.name.lower() for output in query.outputs)  # what ORDER BY and HAVING mean first

    def read(scalar: Scalar, *, skip: frozenset[str] = frozenset()) -> Scalar:
        def change(node: Scalar) -> Scalar | None:
            if isinstance(node, Aggregate) and node.function in _OF_ONE_VALUE and node.argument is not None:
                value = change(node.argument)
                return value if isinstance(node.argument, ColumnReference) else None
            if not isinstance(node, ColumnReference) or not _may_name(node, one.alias, named) or is_star(node):
                return None
            if node.table is None and node.name.lower() in skip:
                return None
            if node.table is None and node.name.lower() in others:
                what, first = f"{node.name} is a column of several tables", f"{one.alias}.{node.name}"
                raise Refused(ErrorCode.AMBIGUOUS, what, at=node.at, fix=f"say which: {first}, or that of the rows")
            output = named.get(node.name.lower())
            if output is None or is_constant:
                return None if output is None else output.scalar
            return ScalarSubquery(replace(inner, outputs=(output,)), node.at)

        return rebuild(scalar, change)

    keys = tuple(key for key in map(read, query.keys) if any(isinstance(part, ColumnReference) for part in walk(key)))
    return replace(
        query,
        outputs=tuple(replace(output, scalar=read(output.scalar)) for output in query.outputs),
        where=None if query.where is None else read(query.where),
        keys=keys,
        having=None if query.having is None else read(query.having, skip=shown),
        order=tuple(replace(item, scalar=read(item.scalar, skip=shown)) for item in query.order),
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


def _may_name(part: Scalar, alias: str, named: Mapping[str, object]) -> bool:
    """Whether a part of the query is, or may be, a column of the question."""
    if not isinstance(part, ColumnReference):
        return False
    if part.table is not None:
        return part.table.lower() == alias.lower()
    return is_star(part) or part.name.lower() in named
