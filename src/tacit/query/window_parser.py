"""Window functions, windows and their frames, and the items of ORDER BY."""

from __future__ import annotations

from dataclasses import replace

from tacit.query.argument_parser import read_arguments
from tacit.query.call_syntax import count_arguments
from tacit.query.expression_cursor import ExpressionCursor
from tacit.query.functions import WINDOW_FUNCTIONS, Function
from tacit.query.nodes import Aggregate, Call, Case, Literal, OrderItem, Scalar, Window
from tacit.query.refusals import refuse_unsupported

_MOST_FRAME = 9  # digits of a number of rows


def read_window_function(parser: ExpressionCursor, name: str, start: int, closing: int) -> Window:
    """RANK() OVER (...), LAG(n, 1) OVER (...)."""
    least, most = WINDOW_FUNCTIONS[name]
    parser.index += 2
    _, distinct, arguments = read_arguments(parser, name, start, closing)
    if distinct or not least <= len(arguments) <= most:
        fix = f"give it {count_arguments(least)}" if least == most else f"give it {least} to {most} arguments"
        raise refuse_unsupported(f"{name.upper()} with other arguments", fix, parser.since(start))
    if parser.accept("RESPECT"):
        parser.expect("NULLS")
    if parser.sees("IGNORE"):
        parser.refuse_unexpected("OVER")
    return read_over(parser, name, tuple(arguments), None, start)


def read_written_window(parser: ExpressionCursor, name: str, start: int) -> Scalar:
    """RATIO_TO_REPORT(x) is x / SUM(x), and CONDITIONAL_TRUE_EVENT(c) how often c was true, over the window."""
    parser.index += 2
    value = parser.scalar()
    parser.expect(")")
    if name == "ratio_to_report":
        total = read_over(parser, "", (), Aggregate("sum", value, at=parser.since(start)), start)
        return Call(Function.DIVIDE, (value, total), parser.since(start))
    event = Case(((value, Literal(1)),), Literal(0), parser.since(start))
    return read_over(parser, "", (), Aggregate("sum", event, at=parser.since(start)), start)


def read_over(
    parser: ExpressionCursor, name: str, arguments: tuple[Scalar, ...], aggregate: Aggregate | None, start: int
) -> Window:
    """The rest of a window function: OVER (...), or OVER and the name of a window."""
    parser.expect("OVER")
    window = read_window_definition(parser) if parser.sees("(") else Window("", (), None, name=parser.name("a window"))
    return replace(window, function=name, arguments=arguments, aggregate=aggregate, at=parser.since(start))


def read_window_definition(parser: ExpressionCursor) -> Window:
    """(PARTITION BY ward ORDER BY n DESC ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)."""
    parser.expect("(")
    partition: list[Scalar] = []
    order: list[OrderItem] = []
    if parser.accept("PARTITION", "BY"):
        partition.append(parser.scalar())
        while parser.accept(","):
            partition.append(parser.scalar())
    if parser.accept("ORDER", "BY"):
        order.append(read_order_item(parser))
        while parser.accept(","):
            order.append(read_order_item(parser))
    frame = _read_frame(parser) if parser.sees("ROWS", "RANGE", "GROUPS") else ""
    parser.expect(")")
    return Window("", (), None, tuple(partition), tuple(order), frame)


def read_order_item(parser: ExpressionCursor) -> OrderItem:
    """An item of ORDER BY: an expression, its direction, and where NULLs come; last unless it says otherwise."""
    scalar = parser.scalar()
    descending = parser.accept("DESC")
    if not descending:
        parser.accept("ASC")
    first = parser.accept("NULLS", "FIRST")
    if not first:
        parser.accept("NULLS", "LAST")
    return OrderItem(scalar, descending, first)


def _read_frame(parser: ExpressionCursor) -> str:
    """ROWS BETWEEN 6 PRECEDING AND CURRENT ROW, in one spelling."""
    unit = parser.token.key
    parser.index += 1
    if parser.accept("BETWEEN"):
        first = _read_frame_end(parser, unit)
        parser.expect("AND")
        return f"{unit} BETWEEN {first} AND {_read_frame_end(parser, unit)}"
    return f"{unit} BETWEEN {_read_frame_end(parser, unit)} AND CURRENT ROW"


def _read_frame_end(parser: ExpressionCursor, unit: str) -> str:
    start = parser.index
    if parser.accept("CURRENT", "ROW"):
        return "CURRENT ROW"
    if parser.accept("UNBOUNDED"):
        size = "UNBOUNDED"
    else:
        size = parser.token.text if parser.token.kind == "number" else ""
        parser.index += 1
        if not size.isdigit() or len(size) > _MOST_FRAME or unit == "RANGE":
            fix = "count rows in the frame"
            raise refuse_unsupported("a window's frame of anything but a number of rows", fix, parser.since(start))
    if parser.accept("PRECEDING"):
        return f"{size} PRECEDING"
    parser.expect("FOLLOWING")
    return f"{size} FOLLOWING"
