"""Subqueries as values that choose rows: where a query over rows has one, and the query with placeholders for them.

**Rule.** Where rows are read, in WHERE, in a key, in an aggregate or in a subquery over rows, a subquery that is no
value of the row (`plan/row_values.py`) is a question of its own: a member that is released first. What is computed
from it and from constants alone is computed after its release, and stands in the query as a placeholder, whose value
is unknown to the plan. `answers/choosing_values.py` has the proof that this costs what the members cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from tacit.plan.connect import all_of
from tacit.plan.relation import Relation
from tacit.plan.row_values import is_row_value
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    DerivedTable,
    FromItem,
    InSubquery,
    Join,
    Literal,
    Placeholder,
    Query,
    Scalar,
    ScalarSubquery,
    SemiJoin,
    UnionAll,
    rebuild,
    walk,
)

Look = Callable[[FromItem], Relation]
_EQUALITIES = frozenset({Function.EQUAL, Function.UNEQUAL})
MOST_LISTED = 20  # values of a released list that choose rows


class Values(Protocol):
    """What makes members of subqueries, and placeholders for their values: `plan/compound.py`."""

    def look(self, source: FromItem) -> Relation:
        """What a source means, to look names up."""

    def give(self, scalar: Scalar, node: ScalarSubquery, *, is_equal: bool = False) -> Placeholder:
        """The placeholder of a scalar that is computed from one subquery and constants.

        `is_equal` says that a row's value must be equal to it, which is refused of a value that has noise.
        """

    def gives_released(self, query: Query) -> bool:
        """Whether a query over rows is a question of its own."""


def chooses_by_released(query: Query, look: Look, gives_released: Callable[[Query], bool]) -> bool:
    """Whether a released value chooses rows, in the query or in a subquery over rows in its FROM."""
    inner = [part for each in _queries(query.source) for part in _parts(each)]
    clauses = [*_over_rows(query), *(clause for part in inner for clause in _clauses(part))]
    found = (node for clause in clauses for node in walk(clause) if isinstance(node, ScalarSubquery))
    if any(not is_row_value(node, look) for node in found):
        return True
    lists = (part for each in (query, *inner) for part in conjuncts(each.where) if isinstance(part, InSubquery))
    return any(isinstance(p.query, Query) and is_listed(p.query) and gives_released(p.query) for p in lists)


def without_values(query: Query) -> Query:
    """The query without the conditions that hold subqueries as values: what it groups, and whose rows, is the same."""
    kept = [part for part in conjuncts(query.where) if not any(isinstance(n, ScalarSubquery) for n in walk(part))]
    return replace(query, where=all_of(kept, query.where))


def place_values(query: Query, values: Values) -> Query:
    """A query over rows, with placeholders for the released values that choose its rows."""

    def change(node: Scalar) -> Scalar | None:
        return _place(node, values)

    def inside(node: Scalar) -> Scalar | None:
        if not isinstance(node, Aggregate) or node.argument is None:
            return None
        others = tuple(rebuild(other, change) for other in node.others)
        return replace(node, argument=rebuild(node.argument, change), others=others)

    def clause(scalar: Scalar | None) -> Scalar | None:
        return None if scalar is None else rebuild(scalar, inside)

    parts = [_place_list(part, values) for part in conjuncts(query.where)]
    return replace(
        query,
        source=_place_in(query.source, values),
        where=all_of([rebuild(part, change) for part in parts], query.where),
        keys=tuple(rebuild(key, change) for key in query.keys),
        outputs=tuple(replace(output, scalar=rebuild(output.scalar, inside)) for output in query.outputs),
        having=clause(query.having),
        qualify=clause(query.qualify),
        order=tuple(replace(item, scalar=rebuild(item.scalar, inside)) for item in query.order),
    )


def _place(node: Scalar, values: Values) -> Scalar | None:
    """The placeholder of a scalar that is computed from one released value and constants; None for others."""
    found = _one_subquery(node)
    if found is not None and not is_row_value(found, values.look):
        return values.give(node, found)
    if not isinstance(node, Call) or node.function not in _EQUALITIES:
        return None
    sides: list[Scalar] = []
    for side in node.arguments:
        found = _one_subquery(side)
        if found is not None and not is_row_value(found, values.look):
            sides.append(values.give(side, found, is_equal=True))
        else:
            sides.append(rebuild(side, lambda part: _place(part, values)))
    return replace(node, arguments=tuple(sides))


def _place_list(part: Scalar, values: Values) -> Scalar:
    """A condition of WHERE. Where it looks for a value among the first of a released list, an equality with each.

    A list that has fewer rows has NULL for the others: equal to nothing, which in a condition of WHERE is not true.
    """
    if not isinstance(part, InSubquery) or not is_listed(part.query) or part.others:
        return part
    assert isinstance(part.query, Query)
    if not values.gives_released(part.query):
        return part
    assert part.query.limit is not None
    equal = []
    for place in range(part.query.limit):
        one = ScalarSubquery(replace(part.query, limit=1, offset=part.query.offset + place), part.at)
        listed = values.give(one, one, is_equal=True)
        equal.append(Call(Function.EQUAL, (part.operand, listed), part.at))
    return equal[0] if len(equal) == 1 else Call(Function.OR, tuple(equal), part.at)


def is_listed(query: Query | UnionAll) -> bool:
    """Whether a query gives the first few rows of its order."""
    return isinstance(query, Query) and query.limit is not None and 1 <= query.limit <= MOST_LISTED


def _place_in(source: FromItem, values: Values) -> FromItem:
    """A source, with placeholders in its subqueries."""
    match source:
        case Join(left, right) | SemiJoin(left, right):
            return replace(source, left=_place_in(left, values), right=_place_in(right, values))
        case DerivedTable(Query() as query):
            return replace(source, query=_place_in_rows(query, values))
        case DerivedTable(UnionAll(parts) as union):
            return replace(source, query=replace(union, parts=tuple(_place_in_rows(part, values) for part in parts)))
    return source


def _place_in_rows(query: Query, values: Values) -> Query:
    """A subquery over rows, with placeholders; its select list is of rows, too."""
    placed = place_values(query, values)
    outputs = (replace(o, scalar=rebuild(o.scalar, lambda part: _place(part, values))) for o in placed.outputs)
    return replace(placed, outputs=tuple(outputs))


def _one_subquery(scalar: Scalar) -> ScalarSubquery | None:
    """The subquery that a scalar is computed from, if it is one, and constants alone besides."""
    parts = list(walk(scalar))
    found = [part for part in parts if isinstance(part, ScalarSubquery)]
    plain = all(isinstance(part, ScalarSubquery | Call | Case | Literal) for part in parts)
    return found[0] if plain and len(found) == 1 else None


def _over_rows(query: Query) -> Iterator[Scalar]:
    """The scalars of a question that are of rows."""
    yield from query.keys
    if query.where is not None:
        yield query.where
    late = (*(output.scalar for output in query.outputs), query.having, query.qualify)
    for clause in (*late, *(item.scalar for item in query.order)):
        yield from (node for node in (() if clause is None else walk(clause)) if isinstance(node, Aggregate))


def _clauses(query: Query) -> Iterator[Scalar]:
    """The scalars of a subquery over rows."""
    yield from _over_rows(query)
    yield from (output.scalar for output in query.outputs)


def _queries(source: FromItem) -> Iterator[Query | UnionAll]:
    match source:
        case Join(left, right) | SemiJoin(left, right):
            yield from _queries(left)
            yield from _queries(right)
        case DerivedTable(query):
            yield query
            for part in _parts(query):
                yield from _queries(part.source)


def _parts(query: Query | UnionAll) -> tuple[Query, ...]:
    return query.parts if isinstance(query, UnionAll) else (query,)
