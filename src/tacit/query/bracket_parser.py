"""What stands in brackets: an expression, a query of one value, or values that are compared one by one."""

from __future__ import annotations

from tacit.errors import ErrorCode, Refused
from tacit.query.expression_cursor import SUBQUERIES, ExpressionCursor
from tacit.query.functions import Function
from tacit.query.nodes import Call, ConstantTable, InSubquery, Query, Scalar, ScalarSubquery, UnionAll
from tacit.query.refusals import MAX_ITEMS, refuse_too_large, refuse_unsupported


def read_bracket(parser: ExpressionCursor, start: int) -> Scalar:
    """An expression or a query in brackets, or several values, which are compared."""
    closing = parser.closing[parser.index]
    if parser.after() in SUBQUERIES:
        parser.index += 1
        query = parser.query()
        parser.expect(")")
        return _find_only_value(query) or ScalarSubquery(query, parser.since(start))
    parser.index += 1
    found = parser.scalar()
    if parser.sees(","):
        return _read_row_comparison(parser, found, start, closing)
    parser.expect(")")
    return found


def _read_row_comparison(parser: ExpressionCursor, first: Scalar, start: int, closing: int) -> Scalar:
    """(a, b) = (1, 2), (a, b) <> (1, 2), (a, b) IN ((1, 2), (3, 4)) and (a, b) IN (SELECT ...): value by value."""
    left = [first, *_read_rest_of_row(parser)]
    negated = parser.accept("NOT") if parser.after() == "IN" else False
    if parser.sees("IN") and parser.after() == "(" and parser.after(2) in SUBQUERIES - {"VALUES"}:
        parser.index += 1
        query = parser.subquery()
        among = InSubquery(left[0], query, parser.since(start), tuple(left[1:]))
        return Call(Function.NOT, (among,), parser.since(start)) if negated else among
    if parser.sees("IN") and parser.after() == "(" and parser.after(2) not in SUBQUERIES:
        parser.index += 2
        rows = [_read_row(parser)]
        while parser.accept(","):
            rows.append(_read_row(parser))
        parser.expect(")")
    elif parser.sees("=", "<>", "!="):
        negated = not parser.accept("=")
        parser.index += negated
        rows = [_read_row(parser)]
    else:
        fix = "compare them one by one, without brackets"
        raise refuse_unsupported("a list of values in brackets", fix, parser.through(start, closing))
    at = parser.since(start)
    if any(len(row) != len(left) for row in rows):
        raise Refused(
            ErrorCode.TYPE, "the lists are of different lengths", at=at, fix="write as many values as columns"
        )
    equal = [
        Call(Function.AND, tuple(Call(Function.EQUAL, pair, at) for pair in zip(left, row, strict=True)), at)
        for row in rows
    ]
    found = equal[0] if len(equal) == 1 else Call(Function.OR, tuple(equal), at)
    return Call(Function.NOT, (found,), at) if negated else found


def _read_row(parser: ExpressionCursor) -> list[Scalar]:
    if not parser.sees("(") or parser.after() in SUBQUERIES:
        parser.refuse_unexpected("values in brackets")
    parser.index += 1
    return [parser.scalar(), *_read_rest_of_row(parser)]


def _read_rest_of_row(parser: ExpressionCursor) -> list[Scalar]:
    found = []
    while parser.accept(","):
        found.append(parser.scalar())
        if len(found) > MAX_ITEMS:
            raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", parser.here())
    parser.expect(")")
    return found


def _find_only_value(query: Query | UnionAll) -> Scalar | None:
    """The value of (SELECT x), which has no FROM and nothing else; None for any other query."""
    if not isinstance(query, Query) or not isinstance(query.source, ConstantTable) or query.source.columns:
        return None
    bare = Query(query.source, query.outputs, None, (), None, (), None, 0)
    return query.outputs[0].scalar if query == bare and len(query.outputs) == 1 else None
