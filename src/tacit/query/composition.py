"""UNION, INTERSECT and EXCEPT of queries, and a query around another."""

from __future__ import annotations

from tacit.errors import SourceLocation
from tacit.query.nodes import ColumnReference, DerivedTable, Query, SelectItem, UnionAll

SET_OPERATIONS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})


def wrap_query(query: Query | UnionAll, at: SourceLocation | None) -> Query:
    """SELECT the same columns FROM (query)."""
    first = query
    while isinstance(first, UnionAll):
        first = first.parts[0]
    outputs = tuple(SelectItem(output.name, ColumnReference(output.name)) for output in first.outputs)
    return Query(DerivedTable(query, "subquery", at), outputs, None, (), None, (), None, 0, at=at)


def compose_queries(
    left: Query | UnionAll, operation: str, right: Query | UnionAll, at: SourceLocation | None
) -> UnionAll:
    """Two queries put together; a chain of one operation that may be done in any order is one node."""

    def parts(side: Query | UnionAll) -> tuple[Query, ...]:
        if isinstance(side, Query):
            return (side,)
        same = side.operation == operation and operation.startswith("union")
        return side.parts if same else (wrap_query(side, side.at),)

    return UnionAll((*parts(left), *parts(right)), operation, at)
