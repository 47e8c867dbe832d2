"""ORDER BY, LIMIT, OFFSET and FETCH FIRST."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tacit.query.from_parser import FromParser
from tacit.query.named_windows import resolve_windows
from tacit.query.nodes import ColumnReference, Literal, OrderItem, Query, SelectItem, Window, is_star
from tacit.query.operand_parser import read_primary
from tacit.query.refusals import refuse_unsupported
from tacit.query.select_list_parser import find_output
from tacit.query.window_parser import read_order_item

_MOST_ROWS = 10**9  # that LIMIT and OFFSET take


def read_tail(parser: FromParser, query: Query, windows: dict[str, Window]) -> Query:
    """ORDER BY, LIMIT and OFFSET, or FETCH FIRST."""
    order = _read_order(parser, query.outputs) if parser.accept("ORDER", "BY") else ()
    order = tuple(replace(item, scalar=resolve_windows(item.scalar, windows)) for item in order)
    limit, offset = query.limit, 0
    while parser.sees("LIMIT", "OFFSET", "FETCH"):
        if parser.sees("FETCH"):
            limit = _read_fetch(parser)
        elif parser.sees("OFFSET"):
            offset = read_whole_number(parser, "OFFSET")
        elif parser.after() == "ALL":
            parser.index += 2
        else:
            limit = read_whole_number(parser, "LIMIT")
            if parser.accept(","):  # LIMIT 5, 10: which to leave out comes first
                parser.index -= 1
                limit, offset = read_whole_number(parser, "LIMIT"), limit
    return replace(query, order=order, limit=limit, offset=offset)


def _read_fetch(parser: FromParser) -> int:
    """FETCH FIRST 10 ROWS ONLY."""
    parser.index += 1
    if not parser.accept("FIRST"):
        parser.expect("NEXT")
    if parser.sees("ROW", "ROWS"):
        number = 1
    else:
        parser.index -= 1
        number = read_whole_number(parser, "FETCH FIRST")
    if not parser.accept("ROWS"):
        parser.expect("ROW")
    parser.expect("ONLY")
    return number


def _read_order(parser: FromParser, outputs: tuple[SelectItem, ...]) -> tuple[OrderItem, ...]:
    """ORDER BY. A number means the column of that name in the answer. NULLs come last unless it says otherwise."""
    if parser.sees("ALL"):
        first = parser.index
        parser.index += 1
        descending = parser.accept("DESC")
        if any(is_star(output.scalar) for output in outputs):
            raise refuse_unsupported("ORDER BY ALL with *", "name the columns", parser.since(first))
        return tuple(OrderItem(ColumnReference(o.name), descending, nulls_first=False) for o in outputs)
    items = []
    while True:
        start = parser.index
        item = read_order_item(parser)
        scalar = parser.count_parts(item.scalar)
        if isinstance(scalar, Literal) and type(scalar.value) in {int, Fraction}:
            scalar = ColumnReference(find_output(parser, scalar.value, outputs, start).name, None, parser.since(start))
        items.append(replace(item, scalar=scalar))
        if not parser.accept(","):
            return tuple(items)


def read_whole_number(parser: FromParser, name: str) -> int:
    """The number of LIMIT or OFFSET."""
    start = parser.index
    parser.index += 1
    if parser.after() == "%":
        raise refuse_unsupported(f"{name} by percent", "write a whole number", parser.through(start, parser.index + 1))
    value = read_primary(parser) if name == "TOP" else parser.scalar()
    number = value.value if isinstance(value, Literal) else None
    if type(number) is not int or not 0 <= number < _MOST_ROWS:
        what = f"{name} of anything but a whole number below a billion"
        raise refuse_unsupported(what, "write a whole number", parser.since(start))
    if name == "OFFSET" and not parser.accept("ROWS"):
        parser.accept("ROW")
    return number
