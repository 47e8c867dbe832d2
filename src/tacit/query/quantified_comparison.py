"""Comparisons with the items of an array: x = ANY (ARRAY[1, 2]), x <> ALL (ARRAY['a', 'b']).

**Rule.** x = ANY is IN, and x <> ALL is NOT IN: the same question in other words. Others are the comparisons with each
item, joined by OR for ANY and SOME, and by AND for ALL. Of no items ANY is false, and ALL is true.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import SourceLocation
from tacit.query.expression_cursor import SUBQUERIES, ExpressionCursor
from tacit.query.functions import Function
from tacit.query.nodes import Call, InSubquery, Literal, Scalar
from tacit.query.operators import INFIX
from tacit.query.refusals import MAX_ITEMS, refuse_too_large, refuse_unsupported

_QUANTIFIERS = ("ANY", "SOME", "ALL")
_LIST_FIX = "list the values behind in, with commas between"


def sees_quantifier(parser: ExpressionCursor) -> bool:
    """Whether ANY, SOME or ALL with a bracket comes next, behind a comparison."""
    return parser.sees(*_QUANTIFIERS) and parser.after() == "("


def read_quantified(parser: ExpressionCursor, left: Scalar, key: str, start: int) -> Scalar:
    """A comparison with any or all items of what is in the brackets."""
    function, every = INFIX[key][1], parser.token.key == "ALL"
    closing = parser.closing[parser.index + 1]
    parser.index += 1
    is_membership = function is (Function.UNEQUAL if every else Function.EQUAL)
    if parser.after() in SUBQUERIES - {"VALUES"}:
        if not is_membership:
            what = f"{key} {'ALL' if every else 'ANY'} of a subquery"
            raise refuse_unsupported(
                what, "compare with the least or the largest value of it", parser.through(start, closing)
            )
        found: Scalar = InSubquery(left, parser.subquery(), parser.since(start))
        return Call(Function.NOT, (found,), parser.since(start)) if every else found
    items = _read_items(parser, start, closing)
    at = parser.since(start)
    if not items:
        return Literal(every, at)
    if is_membership:
        found = build_membership(left, items, at)
        return Call(Function.NOT, (found,), at) if every else found
    compared = tuple(Call(function, (left, item), at) for item in items)
    return compared[0] if len(compared) == 1 else Call(Function.AND if every else Function.OR, compared, at)


def _read_items(parser: ExpressionCursor, start: int, closing: int) -> list[Scalar]:
    """The items of ARRAY[...], in the brackets of ANY and in more of them."""
    depth = 0
    while parser.accept("("):
        depth += 1
    if not parser.accept("ARRAY") or not parser.accept("["):
        raise refuse_unsupported("ANY or ALL of what is no list", _LIST_FIX, parser.through(start, closing))
    items: list[Scalar] = []
    if not parser.sees("]"):
        items.append(parser.scalar())
        while parser.accept(","):
            items.append(parser.scalar())
            if len(items) > MAX_ITEMS:
                fix = "compare with the ends of a range"
                raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", parser.since(start), fix)
    parser.expect("]")
    for _ in range(depth):
        parser.expect(")")
    return items


def build_membership(left: Scalar, items: Sequence[Scalar], at: SourceLocation) -> Scalar:
    """Build x IN (items): one test for all constants, and a comparison for each of the others."""
    constants = [item for item in items if isinstance(item, Literal)]
    if len(constants) == len(items):
        return Call(Function.IN, (left, *items), at)
    equal = [Call(Function.EQUAL, (left, item), at) for item in items if not isinstance(item, Literal)]
    listed = [Call(Function.IN, (left, *constants), at)] if constants else []
    return Call(Function.OR, (*listed, *equal), at) if len(listed + equal) > 1 else equal[0]
