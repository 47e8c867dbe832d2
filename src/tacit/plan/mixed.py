"""Values of types that do not go together: which is which, and how a constant of the other type is written."""

from __future__ import annotations

from fractions import Fraction

from tacit.errors import ErrorCode, Refused, substitute
from tacit.plan.operands import kind_of, words_of
from tacit.query.bound import TypedScalar
from tacit.query.nodes import Call, Case, Literal, Scalar, find_location
from tacit.query.suggest import quote_scalar
from tacit.query.types import NUMERIC_TYPES, TIME_TYPES, Type

_TRUTHS = dict.fromkeys(("true", "t", "yes", "1"), "TRUE") | dict.fromkeys(("false", "f", "no", "0"), "FALSE")


def mixed_types_error(node: Scalar, operands: list[TypedScalar]) -> Refused:
    """A refusal of operands of several types, as a comparison, a list or CASE has them."""
    parts: tuple[Scalar, ...] = ()
    if isinstance(node, Call):
        parts = node.arguments
    elif isinstance(node, Case):
        parts = (*(then for _, then in node.branches), node.otherwise)
    known = [(part, operand) for part, operand in zip(parts, operands, strict=True) if operand.type is not None]
    one, first = known[0]
    other, second = next(pair for pair in known if not _go_together(pair[1].type, first.type))
    what = f"{words_of(one)} is {kind_of(first)} and {words_of(other)} is {kind_of(second)}, which do not go together"
    found = _constant(other, first.type, one) or _constant(one, second.type, other)
    fix, part, sql = found or ("use values of one type", one, None)
    suggestion = None if sql is None else substitute((find_location(part), sql))
    return Refused(ErrorCode.TYPE, what, at=find_location(node), fix=fix, suggestion=suggestion)


def _go_together(one: Type | None, other: Type | None) -> bool:
    together = {one, other}
    return (
        one == other
        or together <= NUMERIC_TYPES
        or together <= TIME_TYPES
        or (bool(together & TIME_TYPES) and Type.TEXT in together)
    )


def _constant(scalar: Scalar, wanted: Type | None, beside: Scalar) -> tuple[str, Scalar, str | None] | None:
    """How to write a constant as one of the type of what it stands beside: in words, and the SQL of which part.

    None for what is no constant.
    """
    if not isinstance(scalar, Literal):
        return None
    value, written = scalar.value, words_of(scalar)
    number = isinstance(value, int | Fraction) and not isinstance(value, bool)
    match wanted:
        case Type.TEXT if number:
            return f"write '{written}', in single quotes", scalar, f"'{written}'"
        case Type.INT | Type.FLOAT if isinstance(value, str) and _is_number(value):
            return f"write {value.strip()}, without quotes", scalar, value.strip()
        case Type.INT | Type.FLOAT if isinstance(value, str) and not isinstance(beside, Literal):
            return f"write a number in place of {written}", scalar, None
        case Type.BOOL:
            truth = _TRUTHS.get(str(value).lower())
            fix = "compare with true or false" if truth is None else f"write {truth} in place of {written}"
            return fix, scalar, truth
        case Type.DATE | Type.TIMESTAMP if number:
            year = f"YEAR({quote_scalar(beside)})"
            return f"compare the year: {year}", beside, year
    return None


def _is_number(text: str) -> bool:
    """Whether a text is a number as SQL writes one."""
    return text.strip().lstrip("-").replace(".", "", 1).isdecimal() and text.isascii()
