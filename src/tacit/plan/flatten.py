"""Questions around a question: SELECT ... FROM (SELECT ward, COUNT(*) AS n ...) WHERE n > 10 ORDER BY n LIMIT 5.

**Rule.** A query without aggregates and keys over one subquery that has aggregates only finishes what that releases:
its outputs are expressions of released values, and its WHERE is a HAVING. So it is one question, written as one.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.relation import no_column
from tacit.plan.row_numbers import push_row_numbers
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    DerivedTable,
    OrderItem,
    Query,
    Scalar,
    ScalarSubquery,
    SelectItem,
    Window,
    is_star,
    walk,
    walk_clauses,
)

_MOST_PARTS = 5_000  # of the expressions of a question that is written as one


def flatten_query(query: Query) -> Query:
    """The question as one query, if it is one around another; otherwise as it is."""
    query = push_row_numbers(query)
    if not isinstance(query.source, DerivedTable) or not isinstance(query.source.query, Query) or aggregates(query):
        return query
    inner = flatten_query(query.source.query)
    if not aggregates(inner) or query.having is not None or _is_more(query) or _is_more(inner):
        return query
    limited = inner.limit is not None or inner.offset
    if limited and (query.where is not None or query.order or query.limit is not None or query.offset):
        return query
    around = _Around(query, inner, query.source.alias)
    around.limit_size()
    return around.one()


def aggregates(query: Query) -> bool:
    """Whether a query groups its rows or aggregates them."""
    clauses = walk_clauses(replace(query, where=None))
    return bool(query.keys) or any(isinstance(node, Aggregate) for clause in clauses for node in walk(clause))


def _is_more(query: Query) -> bool:
    """Whether a query does what no question of one query can: `plan/compound.py` has these."""
    return (
        query.distinct
        or query.sets is not None
        or query.qualify is not None
        or any(isinstance(node, Window | ScalarSubquery) for clause in walk_clauses(query) for node in walk(clause))
    )


class _Around:
    """A query around another: every name stands for what the inner query calls so."""

    def __init__(self, query: Query, inner: Query, alias: str) -> None:
        self.query, self.inner, self.alias = query, inner, alias
        self.known = {output.name.lower(): output.scalar for output in inner.outputs}

    def limit_size(self) -> None:
        """Refuse what would have too many parts: a name that stands eight times is what it means, eight times."""
        sizes = {name: sum(1 for _ in walk(scalar)) for name, scalar in self.known.items()}
        parts = (part for clause in walk_clauses(replace(self.query, keys=())) for part in walk(clause))
        if sum(sizes.get(part.name.lower(), 1) for part in parts if isinstance(part, ColumnReference)) > _MOST_PARTS:
            what, fix = "an expression has too many parts", "ask several smaller questions"
            raise Refused(ErrorCode.TOO_LARGE, what, at=self.query.at, fix=fix)

    def one(self) -> Query:
        query, inner = self.query, self.inner
        outputs = tuple(found for output in query.outputs for found in self.outputs(output))
        named = {output.name.lower() for output in outputs}
        where = None if query.where is None else self.read(query.where)
        if where is not None and inner.having is not None:
            where = Call(Function.AND, (inner.having, where))
        order = tuple(
            item
            if isinstance(item.scalar, ColumnReference)
            and item.scalar.table is None
            and item.scalar.name.lower() in named
            else OrderItem(self.read(item.scalar), item.descending, item.nulls_first)
            for item in query.order
        )
        limited = query.limit is not None or bool(query.offset)
        return replace(
            inner,
            outputs=outputs,
            having=inner.having if where is None else where,
            order=order or inner.order,
            limit=query.limit if limited else inner.limit,
            offset=query.offset if limited else inner.offset,
            at=query.at,
        )

    def outputs(self, output: SelectItem) -> tuple[SelectItem, ...]:
        if isinstance(output.scalar, ColumnReference) and is_star(output.scalar):
            without = {name.lower() for name in output.scalar.without or ()}
            return tuple(each for each in self.inner.outputs if each.name.lower() not in without)
        return (SelectItem(output.name, self.read(output.scalar)),)

    def read(self, scalar: Scalar) -> Scalar:
        match scalar:
            case ColumnReference(name, table):
                found = self.known.get(name.lower())
                if found is None or (table is not None and table.lower() != self.alias.lower()):
                    raise no_column(self.alias, scalar, [output.name for output in self.inner.outputs])
                return found
            case Call(function, arguments):
                return Call(function, tuple(self.read(argument) for argument in arguments), scalar.at)
            case Case(branches, otherwise):
                parts = tuple((self.read(when), self.read(then)) for when, then in branches)
                return Case(parts, self.read(otherwise), scalar.at)
        return scalar
