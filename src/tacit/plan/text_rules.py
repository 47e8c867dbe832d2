"""Types of functions of texts, and how many texts of its row a value is made of. The rule is in `plan/bounds.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tacit.engines.evaluate import pad
from tacit.errors import ErrorCode, Refused
from tacit.plan.binding import Binding, expect_types
from tacit.plan.casts import as_text
from tacit.plan.operands import any_null, scalars_of
from tacit.query.bound import MOST_INT, TypedScalar
from tacit.query.functions import MOST_LITERAL, MOST_PATTERN, MOST_POSITION, MOST_TEXTS, Function
from tacit.query.nodes import Call, Literal
from tacit.query.suggest import quote_scalar
from tacit.query.types import Key, Type


def bind_text(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """A text made of texts. NULL where one of them is."""
    texts = operands[:1] if function in {Function.SUBSTRING, Function.RIGHT} else operands
    expect_types(binding, texts, {Type.TEXT}, node, f"{function.upper()} takes texts")
    for other in operands[len(texts) :]:
        value = other.scalar.value if isinstance(other.scalar, Literal) else None
        if type(value) is not int or not 1 <= value <= MOST_POSITION:
            what = "SUBSTRING takes a constant start and length, from 1"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the numbers")
    parts = sum(o.texts for o in texts)
    _limit_texts(parts, node)
    listing = _list_together(operands) if function is Function.CONCAT else None
    scalar = Call(function, scalars_of(operands))
    return TypedScalar(scalar, Type.TEXT, nullable=any_null(texts), texts=parts, listing=listing)


def bind_replacement(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """REPLACE(x, 'a', 'b') and SPLIT_PART(x, ',', 2), with constants, of which the sought one is not empty.

    A text grows at most by as many times as what is put in is longer than what is taken out, which counts as so
    many texts.
    """
    texts = operands[: 2 if function is Function.SPLIT_PART else 3]
    expect_types(binding, texts, {Type.TEXT}, node, f"{function.upper()} takes texts")
    values = [o.scalar.value if isinstance(o.scalar, Literal) else None for o in operands[1:]]
    sought, other = values
    place = function is Function.SPLIT_PART and type(other) is int and 1 <= other <= MOST_POSITION
    if not isinstance(sought, str) or not sought or not (place or isinstance(other, str)):
        what = f"{function.upper()} takes constants, and what is sought is not empty"
        nothing = quote_scalar(node.arguments[0]) if function is Function.REPLACE and sought == "" else None
        fix = "write the constants" if nothing is None else f"leave it out: {nothing}"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix, instead=nothing)
    parts = operands[0].texts
    if isinstance(other, str) and function is Function.REPLACE:
        parts *= max(1, math.ceil(len(other) / len(sought)))
    _limit_texts(parts, node)
    scalar = Call(function, scalars_of(operands))
    return TypedScalar(scalar, Type.TEXT, nullable=operands[0].nullable, texts=parts)


def bind_padding(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """LPAD(x, 5, '0') and RPAD: a text of exactly so many characters, filled up with a constant or cut."""
    name = function.upper()
    text = as_text(operands[0]) if operands[0].type is Type.INT else operands[0]
    values = [o.scalar.value if isinstance(o.scalar, Literal) else None for o in operands[1:]]
    size, filler = values
    if type(size) is not int or not 1 <= size <= MOST_LITERAL or not isinstance(filler, str) or not filler:
        what = f"{name} takes a constant length from 1 to {MOST_LITERAL}, and a constant that is not empty"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the length and the text")
    assert text is not None
    expect_types(binding, [text], {Type.TEXT}, node, f"{name} takes a text")
    inner = text.listing

    def list_texts(most: int) -> tuple[Key, ...] | None:
        assert inner is not None
        found = inner(most)
        if found is None:
            return None
        return tuple(dict.fromkeys(pad(str(one), size, filler, left=function is Function.LPAD) for one in found))

    scalar = Call(function, (text.scalar, operands[2].scalar, Literal(size)))
    known = None if inner is None else list_texts
    return TypedScalar(scalar, Type.TEXT, nullable=text.nullable, texts=text.texts, listing=known)


def _limit_texts(parts: int, node: Call) -> None:
    """Refuse a text that is put together from too many."""
    if parts > MOST_TEXTS:
        what = f"a text is put together from {parts} texts; {MOST_TEXTS} is the most"
        raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="put fewer together")


def bind_length(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """The number of characters, or the place of a constant text among them, from 0.

    That it ends somewhere is no bound to add noise by: none is declared.
    """
    expect_types(binding, operands, {Type.TEXT}, node, f"{function.upper()} takes a text")
    for sought in operands[1:]:
        if not isinstance(sought.scalar, Literal) or not sought.scalar.value:
            what = "the text that is sought is a constant, and not empty"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the text")
    scalar = Call(function, scalars_of(operands))
    return TypedScalar(scalar, Type.INT, Fraction(0), MOST_INT, Fraction(1), operands[0].nullable)


def bind_like(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """Whether a text is as a constant pattern says, in which % and _ stand for others. There is no escape."""
    expect_types(binding, operands, {Type.TEXT}, node, "LIKE takes texts")
    pattern = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
    if not isinstance(pattern, str) or "\\" in pattern:
        what = "LIKE takes a constant pattern without a backslash"
        fix = "write the pattern: % stands for any text, _ for one character"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
    if len(pattern) > MOST_PATTERN:
        what = f"a pattern has at most {MOST_PATTERN} characters"
        raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="write a shorter one")
    return TypedScalar(Call(Function.LIKE, scalars_of(operands)), Type.BOOL, nullable=operands[0].nullable)


def list_with_empty(text: TypedScalar) -> Callable[[int], tuple[Key, ...] | None] | None:
    """How to list a text with a list, and the empty one that stands for NULL."""
    inner = text.listing
    if inner is None:
        return None

    def list_texts(most: int) -> tuple[Key, ...] | None:
        found = inner(most - 1)
        return None if found is None else (*found, "")

    return list_texts


def _list_together(operands: list[TypedScalar]) -> Callable[[int], tuple[Key, ...] | None] | None:
    """How to list texts that are put together of constants and of texts with lists; None where one has none."""
    constants = [o.scalar.value if isinstance(o.scalar, Literal) else None for o in operands]
    if not any(o.listing for o in operands) or any(
        o.listing is None and not isinstance(value, str) for o, value in zip(operands, constants, strict=True)
    ):
        return None

    def list_texts(most: int) -> tuple[Key, ...] | None:
        found = [""]
        for operand, constant in zip(operands, constants, strict=True):
            parts = (constant,) if operand.listing is None else operand.listing(most)
            if parts is None or len(found) * len(parts) > most:
                return None
            found = [f"{before}{part}" for before in found for part in parts]
        return tuple(dict.fromkeys(found))

    return list_texts
