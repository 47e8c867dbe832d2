"""Operators after their first operand: arithmetic, comparisons, IS, BETWEEN, IN and LIKE."""

from __future__ import annotations

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.call_syntax import CallSyntax
from tacit.query.dialects import QuestionDialect
from tacit.query.expression_cursor import SUBQUERIES, ExpressionCursor
from tacit.query.function_calls import build_call
from tacit.query.functions import Function
from tacit.query.intervals import INTERVAL_FIX, add_interval, is_interval, scale_interval
from tacit.query.nodes import Call, Case, InSubquery, Literal, Scalar
from tacit.query.number_calls import build_same, fold_decimals
from tacit.query.operators import INFIX, PATTERNS, RANGES, Precedence
from tacit.query.quantified_comparison import build_membership, read_quantified, sees_quantifier
from tacit.query.refusals import MAX_ITEMS, refuse_too_large, refuse_unsupported
from tacit.query.text_calls import build_like, build_match, build_similar

_XOR = frozenset({QuestionDialect.BIGQUERY, QuestionDialect.MYSQL})  # what ^ is there


def read_operation(parser: ExpressionCursor, left: Scalar, level: int, start: int) -> Scalar:
    """What an operator that binds so much makes of the operand before it and what follows."""
    key = parser.token.key
    if key in {"AND", "OR"}:
        return _read_chain(parser, left, level, start)
    if level == Precedence.IS:
        return _read_is(parser, left, start)
    if level == Precedence.RANGE:
        return _read_range(parser, left, start)
    parser.index += 1
    if key in PATTERNS:
        return _read_pattern(parser, left, key, start)
    if level == Precedence.COMPARISON and sees_quantifier(parser) and key in INFIX:
        return read_quantified(parser, left, key, start)
    right = parser.scalar(level + 1)
    at = parser.since(start)
    if key == "<=>":
        return build_same(left, right, at)
    if level in {Precedence.SUM, Precedence.PRODUCT} and (is_interval(left) or is_interval(right)):
        return _build_interval_arithmetic(key, left, right, at)
    if key == "||" and parser.dialect is QuestionDialect.MYSQL:
        raise refuse_unsupported("||, which is OR in MySQL,", "write CONCAT(a, b), or OR", at)
    if key == "^" and parser.dialect in _XOR:
        raise refuse_unsupported("^, which is of bits in this dialect,", "write POWER(a, b)", at)
    function = INFIX[key][1]
    if function is Function.DIVIDE and parser.dialect is QuestionDialect.POSTGRES:
        function = Function.RATIO
    return fold_decimals(Call(function, (left, right), at))


def _build_interval_arithmetic(key: str, left: Scalar, right: Scalar, at: SourceLocation) -> Scalar:
    """d + INTERVAL '7 days', d - INTERVAL '7 days', INTERVAL '7 days' + d, and n * INTERVAL '1 day'."""
    if key in {"+", "-"} and not is_interval(left):
        return add_interval(left, right, at, subtract=key == "-")
    if key == "+" and not is_interval(right):
        return add_interval(right, left, at)
    if key == "*" and is_interval(left) != is_interval(right):
        return scale_interval(*((left, right) if is_interval(left) else (right, left)), at)
    raise refuse_unsupported(f"an interval with {key} beside another", INTERVAL_FIX, at)


def _read_pattern(parser: ExpressionCursor, left: Scalar, key: str, start: int) -> Scalar:
    """x ~~ 'a%' is LIKE, x ~ '^a' a regular expression; a * is for any case, and a ! for NOT."""
    any_case = key.endswith("*") or (key.startswith("!") and parser.accept("*"))
    right = parser.scalar(Precedence.CONCAT + 1)
    at = parser.since(start)
    if key == "^@":
        return build_call(CallSyntax("starts_with", (left, right), at), parser.aggregates)
    build = build_like if "~~" in key else build_match
    found = build(left, right, at, any_case=any_case)
    return Call(Function.NOT, (found,), at) if key.startswith("!") else found


def _read_chain(parser: ExpressionCursor, left: Scalar, level: int, start: int) -> Scalar:
    """Conditions joined by one word are one call, with or without brackets: a OR (b OR c)."""
    function = Function.AND if level == Precedence.AND else Function.OR
    parts = [left]
    while parser.accept(function.upper()):
        parts.append(parser.scalar(level + 1))
    flat = [
        inner
        for part in parts
        for inner in (part.arguments if isinstance(part, Call) and part.function == function else (part,))
    ]
    return Call(function, tuple(flat), parser.since(start))


def _read_is(parser: ExpressionCursor, left: Scalar, start: int) -> Scalar:
    """IS NULL, and IS TRUE or IS FALSE, which are never NULL: CASE WHEN x THEN TRUE ELSE FALSE END."""
    word = parser.token.key
    parser.index += 1
    negated = word == "NOTNULL" or (word == "IS" and parser.accept("NOT"))
    if word != "IS" or parser.accept("NULL") or parser.accept("UNKNOWN"):
        found: Scalar = Call(Function.IS_NULL, (left,), parser.since(start))
    elif parser.sees("TRUE", "FALSE"):
        wanted = parser.token.key == "TRUE"
        parser.index += 1
        at = parser.since(start)
        condition = left if wanted else Call(Function.NOT, (left,), at)
        found = Case(((condition, Literal(True, at)),), Literal(False, at), at)
    elif parser.accept("DISTINCT", "FROM"):
        found = build_same(left, parser.scalar(Precedence.IS + 1), parser.since(start))
        negated = not negated
    else:
        parser.refuse_unexpected("NULL, TRUE or FALSE")
    return Call(Function.NOT, (found,), parser.since(start)) if negated else found


def _read_range(parser: ExpressionCursor, left: Scalar, start: int) -> Scalar:
    negated = parser.accept("NOT")
    word = parser.token.key
    if word not in RANGES:
        parser.refuse_unexpected("LIKE")
    parser.index += 1
    if word == "IN":
        found: Scalar = _read_membership(parser, left, start)
    elif word == "BETWEEN":
        found = _read_between(parser, left, start)
    elif word == "SIMILAR":
        parser.expect("TO")
        pattern = parser.scalar(Precedence.CONCAT)
        found = build_similar(left, pattern, parser.since(start), parser.dialect)
    elif parser.sees("ANY", "ALL", "SOME") and parser.after() == "(":
        found = _read_like_several(parser, left, start, any_case=word == "ILIKE")
    else:
        pattern = parser.scalar(Precedence.CONCAT)
        escape = _read_escape(parser)
        found = build_like(left, pattern, parser.since(start), any_case=word == "ILIKE", escape=escape)
    return Call(Function.NOT, (found,), parser.since(start)) if negated else found


def _read_between(parser: ExpressionCursor, left: Scalar, start: int) -> Scalar:
    """x BETWEEN a AND b; SYMMETRIC takes the ends in either order."""
    symmetric = parser.accept("SYMMETRIC")
    if not symmetric:
        parser.accept("ASYMMETRIC")
    low = parser.scalar(Precedence.CONCAT)
    parser.expect("AND")
    high = parser.scalar(Precedence.CONCAT)
    at = parser.since(start)

    def within(least: Scalar, most: Scalar) -> Call:
        ends = Call(Function.GREATER_EQUAL, (left, least), at), Call(Function.LESS_EQUAL, (left, most), at)
        return Call(Function.AND, ends, at)

    return Call(Function.OR, (within(low, high), within(high, low)), at) if symmetric else within(low, high)


def _read_escape(parser: ExpressionCursor) -> str:
    """The character of ESCAPE after a pattern, or none."""
    if not parser.accept("ESCAPE"):
        return ""
    if parser.token.kind != "text" or len(parser.token.text) != 1:
        raise refuse_unsupported("ESCAPE of anything but one character", "write one character", parser.here())
    parser.index += 1
    return parser.tokens[parser.index - 1].text


def _read_like_several(parser: ExpressionCursor, left: Scalar, start: int, *, any_case: bool) -> Scalar:
    """x LIKE ANY ('a%', 'b%') is one of them, and x LIKE ALL (...) all of them."""
    function = Function.AND if parser.token.key == "ALL" else Function.OR
    closing = parser.closing[parser.index + 1]
    if parser.tokens[parser.index + 2].key in SUBQUERIES:
        raise refuse_unsupported("LIKE with a subquery", "list the patterns", parser.through(start, closing))
    parser.index += 2
    patterns = [parser.scalar()]
    while parser.accept(","):
        patterns.append(parser.scalar())
    parser.expect(")")
    escape, at = _read_escape(parser), parser.since(start)
    found = tuple(build_like(left, pattern, at, any_case=any_case, escape=escape) for pattern in patterns)
    return found[0] if len(found) == 1 else Call(function, found, at)


def _read_membership(parser: ExpressionCursor, left: Scalar, start: int) -> Scalar:
    values = "list the values, with commas between"
    if not parser.sees("("):
        parser.refuse_unexpected("a list of values in brackets")
    closing = parser.closing[parser.index]
    if parser.after() in SUBQUERIES - {"VALUES"}:
        query = parser.subquery()
        return InSubquery(left, query, parser.since(start))
    if parser.after() == "VALUES":
        raise refuse_unsupported("IN with VALUES", values, parser.through(start, closing))
    parser.index += 1
    if parser.sees(")"):
        raise Refused(ErrorCode.SYNTAX, "IN lists no values", at=parser.through(start, closing), fix=values)
    items = [parser.scalar()]
    while parser.accept(",") and not parser.sees(")"):
        items.append(parser.scalar())
        if len(items) > MAX_ITEMS:
            fix = "compare with the ends of a range"
            raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", parser.since(start), fix)
    parser.expect(")")
    return build_membership(left, items, parser.since(start))
