"""The arguments of a call, with the words that some functions put between them."""

from __future__ import annotations

from tacit.errors import ErrorCode, Refused, substitute
from tacit.query.expression_cursor import ExpressionCursor
from tacit.query.functions import LIST
from tacit.query.nodes import Call, Literal, Scalar
from tacit.query.number_calls import TAKE_LISTS
from tacit.query.operators import Precedence


def read_arguments(parser: ExpressionCursor, name: str, start: int, closing: int) -> tuple[bool, bool, list[Scalar]]:
    """What stands between the brackets of a call: whether it is *, whether it has DISTINCT, and the arguments."""
    if name == "extract":
        return False, False, _read_extract(parser)
    if parser.accept("*"):
        parser.expect(")")
        return True, False, []
    distinct = parser.accept("DISTINCT")
    every = not distinct and parser.accept("ALL")
    first = Precedence.CONCAT if name == "position" else Precedence.OR  # POSITION('a' IN x)
    arguments = [] if parser.sees(")") and not distinct and not every else [_read_argument(parser, name, first)]
    if name in {"substring", "substr"} and parser.sees("FROM", "FOR"):
        arguments.append(parser.scalar() if parser.accept("FROM") else Literal(1))
        arguments += [parser.scalar()] if parser.accept("FOR") else []
    if name == "position" and parser.accept("IN"):
        arguments.append(parser.scalar())
    while parser.accept(","):
        arguments.append(_read_argument(parser, name))
    if parser.sees("ORDER"):
        what, at = "ORDER BY in an aggregate is not answered", parser.through(start, closing)
        fix, order = "leave it out: the order of rows decides nothing", parser.through(parser.index, closing)
        raise Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix, suggestion=substitute((order, ")")))
    parser.expect(")")
    return False, distinct, arguments


def _read_argument(parser: ExpressionCursor, name: str, least: int = Precedence.OR) -> Scalar:
    """An argument; of what takes a list also [0.25, 0.75] and ARRAY[0.25, 0.75]."""
    syntax, start = parser.aggregates.get(name), parser.index
    takes_list = name in TAKE_LISTS if syntax is None else syntax.takes_list
    if takes_list and parser.sees("ARRAY") and parser.after() == "[":
        parser.index += 1
    if not takes_list or not parser.accept("["):
        return parser.scalar(least)
    items = [parser.scalar()]
    while parser.accept(","):
        items.append(parser.scalar())
    parser.expect("]")
    return Call(LIST, tuple(items), parser.since(start))


def _read_extract(parser: ExpressionCursor) -> list[Scalar]:
    """EXTRACT(month FROM d), with the part as a word or a text."""
    part = parser.token
    if part.kind not in {"word", "text"}:
        parser.refuse_unexpected("a part of a date")
    parser.index += 1
    named = Literal(part.text, parser.since(parser.index - 1))
    if part.key == "WEEK" and parser.accept("(", "MONDAY", ")"):
        pass  # BigQuery's name of the weeks that start on Monday
    parser.expect("FROM")
    value = parser.scalar()
    parser.expect(")")
    return [named, value]
