"""DISTINCT ON: one row of each value, the first in the order of the query, by a window of row numbers."""

from __future__ import annotations

from dataclasses import replace

from tacit.query.from_parser import FromParser
from tacit.query.functions import Function
from tacit.query.nodes import Call, ColumnReference, Literal, OrderItem, Query, Window, is_star, rebuild


def read_distinct_on(parser: FromParser, start: int) -> Window:
    """DISTINCT ON (a, b): one row of each, the first in the order of the query. It means a number of rows."""
    parser.expect("(")
    partition = [parser.count_parts(parser.scalar())]
    while parser.accept(","):
        partition.append(parser.count_parts(parser.scalar()))
    parser.expect(")")
    return Window("row_number", (), None, tuple(partition), at=parser.since(start))


def build_first_of(once: Window) -> Call:
    """ROW_NUMBER() OVER (...) = 1."""
    return Call(Function.EQUAL, (once, Literal(1)), once.at)


def order_first_rows(query: Query, once: Window) -> Query:
    """The query whose DISTINCT ON takes the first rows in its order; a name of the select list is what it names."""
    named = {output.name.lower(): output.scalar for output in query.outputs if not is_star(output.scalar)}

    def read(item: OrderItem) -> OrderItem:
        scalar = item.scalar
        if isinstance(scalar, ColumnReference) and scalar.table is None:
            scalar = named.get(scalar.name.lower(), scalar)
        return replace(item, scalar=scalar)

    ordered = replace(once, order=tuple(map(read, query.order)))
    assert query.qualify is not None
    return replace(query, qualify=rebuild(query.qualify, lambda node: ordered if node is once else None))
