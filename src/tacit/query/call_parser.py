"""Calls of functions and aggregates, with what may follow them: WITHIN GROUP, FILTER, an element and a window."""

from __future__ import annotations

from dataclasses import replace

from tacit.query.argument_parser import read_arguments
from tacit.query.call_syntax import CallSyntax
from tacit.query.cast_parser import build_cast, read_type
from tacit.query.dialects import DIALECT_NOTES
from tacit.query.expression_cursor import SUBQUERIES, ExpressionCursor
from tacit.query.function_calls import build_call, is_known_function
from tacit.query.functions import GROUPING, WINDOW_FUNCTIONS, WRITTEN_WINDOWS, Function
from tacit.query.nodes import Aggregate, Call, Exists, Scalar
from tacit.query.refusals import MAX_ITEMS, RESERVED, refuse_unknown_function, refuse_unsupported
from tacit.query.window_parser import read_over, read_window_function, read_written_window

_CASTING = frozenset({"cast", "try_cast", "safe_cast"})


def read_call(parser: ExpressionCursor, start: int) -> Scalar:
    """A function with its arguments, and for an aggregate WITHIN GROUP and FILTER."""
    name = parser.token.text.lower()
    closing = parser.closing[parser.index + 1]
    if name in WINDOW_FUNCTIONS and parser.tokens[closing + 1].key in {"OVER", "IGNORE", "RESPECT"}:
        return read_window_function(parser, name, start, closing)
    if name in WRITTEN_WINDOWS and parser.tokens[closing + 1].key == "OVER":
        return read_written_window(parser, name, start)
    if name in {"grouping", "grouping_id"}:
        return _read_grouping(parser, start)
    if name == "exists" and parser.after(2) in SUBQUERIES - {"VALUES"}:
        parser.index += 1
        query = parser.subquery()
        return Exists(query, parser.since(start))
    if name in {"exists", "any", "some", "all"}:
        fix = "write a query in the brackets" if name == "exists" else "compare with one value, or list the values"
        raise refuse_unsupported(name.upper(), fix, parser.through(start, closing))
    if parser.token.key in RESERVED - {"LEFT", "RIGHT"}:
        parser.refuse_unexpected("a value")
    if not is_known_function(name, parser.aggregates) and name not in _CASTING:
        raise refuse_unknown_function(name, parser.through(start, closing))
    parser.index += 2
    if name in _CASTING:
        operand = parser.scalar()
        parser.expect("AS")
        kind = read_type(parser)
        parser.expect(")")
        return build_cast(parser, operand, start, *kind)
    if name == "trim" and (parser.sees("BOTH", "LEADING", "TRAILING", "FROM") or parser.after() == "FROM"):
        return _read_trim(parser, start, closing)
    star, distinct, arguments = read_arguments(parser, name, start, closing)
    within = _read_within(parser) if parser.accept("WITHIN", "GROUP", "(", "ORDER", "BY") else None
    where = None
    if parser.accept("FILTER", "("):
        parser.accept("WHERE")
        where = parser.scalar()
        parser.expect(")")
    found = build_call(
        CallSyntax(
            name, tuple(arguments), parser.since(start), star, distinct, within, where, parser.today, parser.dialect
        ),
        parser.aggregates,
    )
    note = DIALECT_NOTES.get(name, {}).get(parser.dialect)
    if note is not None:
        parser.notes.append(note)
    if parser.sees("[") and isinstance(found, Aggregate):
        found = _read_element(parser, found, name, start)
    if not parser.sees("OVER"):
        return found
    if not isinstance(found, Aggregate):
        fix = "take an aggregate over the window"
        raise refuse_unsupported(f"{name.upper()} over a window", fix, parser.through(start, parser.index))
    return read_over(parser, "", (), found, start)


def _read_trim(parser: ExpressionCursor, start: int, closing: int) -> Scalar:
    """TRIM(LEADING FROM x), TRIM(BOTH ' ' FROM x): spaces only."""
    side = parser.token.key if parser.sees("BOTH", "LEADING", "TRAILING") else "BOTH"
    parser.index += parser.sees("BOTH", "LEADING", "TRAILING")
    if parser.token.kind == "text" and parser.token.text == " ":
        parser.index += 1
    if not parser.accept("FROM"):
        fix = "take another character away everywhere, with replace"
        raise refuse_unsupported(f"TRIM {side} of anything but spaces", fix, parser.through(start, closing))
    value = parser.scalar()
    parser.expect(")")
    function = {"LEADING": Function.LTRIM, "TRAILING": Function.RTRIM}.get(side, Function.TRIM)
    return Call(function, (value,), parser.since(start))


def _read_element(parser: ExpressionCursor, found: Aggregate, name: str, start: int) -> Aggregate:
    """An element of the list that an aggregate gives: [OFFSET(2)] counts from 0, [ORDINAL(3)] and [3] from 1."""
    element = parser.aggregates[name].element
    if element is None:
        parser.refuse_unexpected("an operator")
    parser.index += 1
    word = parser.token.key
    counted = word in {"OFFSET", "SAFE_OFFSET", "ORDINAL", "SAFE_ORDINAL"} and parser.after() == "("
    parser.index += 2 if counted else 0
    number = parser.token.text if parser.token.kind == "number" else ""
    parser.index += 1
    if counted:
        parser.expect(")")
    parser.expect("]")
    place = int(number) - (0 if counted and word.endswith("OFFSET") else 1) if number.isdigit() else -1
    chosen = element(found, place) if 0 <= place < MAX_ITEMS else None
    if chosen is None:
        fix = "name one that it has: of four parts the elements are 0 to 4"
        raise refuse_unsupported("an element that the list does not have", fix, parser.since(start))
    return replace(chosen, at=parser.since(start))


def _read_within(parser: ExpressionCursor) -> tuple[Scalar, bool]:
    """The rest of WITHIN GROUP (ORDER BY x DESC)."""
    operand = parser.scalar()
    descending = parser.accept("DESC")
    if not descending:
        parser.accept("ASC")
    if parser.sees(","):
        raise refuse_unsupported("WITHIN GROUP by several columns", "order by one column", parser.here())
    parser.expect(")")
    return operand, descending


def _read_grouping(parser: ExpressionCursor, start: int) -> Call:
    """GROUPING(a, b): which of these keys a row adds up over, as bits."""
    closing = parser.closing[parser.index + 1]
    parser.index += 2
    _, _, arguments = read_arguments(parser, "grouping", start, closing)
    if not arguments:
        raise refuse_unsupported("GROUPING of nothing", "name a key", parser.since(start))
    return Call(GROUPING, tuple(arguments), parser.since(start))
