"""Types and bounds of comparisons, and of LEAST, GREATEST and COALESCE. The rule is in `plan/bounds.py`."""

from __future__ import annotations

import re
from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.binding import Binding, expect_types, unify_types
from tacit.plan.operands import any_null, drop_clamp, scalars_of
from tacit.plan.ranges import one_of
from tacit.query.bound import TypedScalar
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import Call, Literal, Scalar, find_location
from tacit.query.suggest import quote_scalar
from tacit.query.types import ORDERED_TYPES, Type

_SIGN = "(?:==?|<>|!=)"
_WITH_NULL = re.compile(rf"x{_SIGN}null|null{_SIGN}x", re.IGNORECASE)  # without spaces and brackets


def bind_comparison(node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """A comparison or IN, of operands in one type. Texts and conditions have no order."""
    operands = unify_types(node, _as_truths(operands))
    kind = operands[0].type
    if any(o.type is None for o in operands):
        raise _refuse_null(node, function, operands)
    if function in COMPARISONS - {Function.EQUAL, Function.UNEQUAL} and kind in {Type.TEXT, Type.BOOL}:
        raise Refused(
            ErrorCode.TYPE,
            f"{kind} has no order that all engines share",
            at=node.at,
            fix="compare with = or <>, or with a list of values",
        )
    scalars = tuple(drop_clamp(operand, operands) for operand in operands)
    return TypedScalar(Call(function, scalars), Type.BOOL, nullable=any_null(operands))


def bind_choice(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """LEAST, GREATEST and COALESCE skip NULLs, so an operand that may be NULL bounds nothing from its own side."""
    operands = unify_types(node, operands)
    if function is not Function.COALESCE:
        expect_types(binding, operands, ORDERED_TYPES, node, f"{function.upper()} compares numbers and dates")
    sure = [o for o in operands if not o.nullable]
    result = one_of(Call(function, scalars_of(operands)), operands, nullable=not sure)
    if function is Function.LEAST:
        caps = [v for v in (result.upper, *(o.upper for o in sure)) if v is not None]
        return replace(result, upper=min(caps, default=None))
    if function is Function.GREATEST:
        floors = [v for v in (result.lower, *(o.lower for o in sure)) if v is not None]
        return replace(result, lower=max(floors, default=None))
    return result


def _refuse_null(node: Call, function: Function, operands: list[TypedScalar]) -> Refused:
    """A refusal of x = NULL, which is never true: x IS NULL is meant."""
    what = "a comparison with NULL is never true"
    known = [part for part, operand in zip(node.arguments, operands, strict=False) if operand.type is not None]
    is_equality = function in {Function.EQUAL, Function.UNEQUAL} and len(known) == 1
    if not is_equality or not _is_written_with_sign(node, known[0]):
        return Refused(ErrorCode.TYPE, what, at=node.at, fix="leave it out, and ask which values are missing")
    instead = f"{quote_scalar(known[0])} IS {'NOT ' if function is Function.UNEQUAL else ''}NULL"
    return Refused(ErrorCode.TYPE, what, at=node.at, fix=f"write {instead}", instead=instead)


def _is_written_with_sign(node: Call, operand: Scalar) -> bool:
    """Whether a comparison of an operand with NULL is written so, and not made of CASE x WHEN NULL or of rows."""
    whole, part = node.at, find_location(operand)
    if whole is None or part is None or not whole.start <= part.start <= part.end <= whole.end:
        return False
    rest = f"{whole.text[whole.start : part.start]}x{whole.text[part.end : whole.end]}"
    return _WITH_NULL.fullmatch(re.sub(r"[()\s]", "", rest)) is not None


def _as_truths(operands: list[TypedScalar]) -> list[TypedScalar]:
    """The operands, where one is a condition and the others the constants 1 and 0, with TRUE and FALSE for these."""
    truths = {o.scalar.value: o for o in operands if isinstance(o.scalar, Literal) and o.type is Type.INT}
    if {o.type for o in operands} != {Type.BOOL, Type.INT} or not truths.keys() <= {0, 1}:
        return operands
    if any(o.type is Type.INT and not isinstance(o.scalar, Literal) for o in operands):
        return operands
    return [
        TypedScalar(Literal(bool(o.scalar.value)), Type.BOOL, nullable=False)
        if o.type is Type.INT and isinstance(o.scalar, Literal)
        else o
        for o in operands
    ]
