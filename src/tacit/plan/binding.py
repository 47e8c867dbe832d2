"""What the rules of all functions share: where a scalar is bound, what types its operands have, and limits on its size.

The rules themselves are in `plan/bounds.py` and the modules of families that it names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from tacit.errors import ErrorCode, Refused, SourceLocation, substitute
from tacit.plan.mixed import mixed_types_error
from tacit.plan.operands import as_date, as_float
from tacit.plan.timestamps import as_timestamp, date_of
from tacit.query.bound import LEAST_INT, MOST_INT, TypedScalar
from tacit.query.intervals import is_interval
from tacit.query.nodes import Call, Literal, Scalar, find_location
from tacit.query.suggest import clamp_present, quote_scalar, substitute_everywhere
from tacit.query.types import NUMERIC_TYPES, TIME_TYPES, Type

MOST_PARTS = 10_000
LARGEST_FLOAT = Fraction(10) ** 200
_FINEST = 2**1100  # bounds are multiples of one over this, which is below every double
_FINEST_STEP = Fraction(1, 2**1000)  # one over it is a double


class Binding(Protocol):
    """What binds the operands of a call. Over `rows` bounds are asked for wherever a value is computed with."""

    rows: bool

    def bind(self, node: Scalar) -> TypedScalar:
        """A scalar with its type and bounds."""


def limit_work(result: TypedScalar, weights: list[int], node: Scalar) -> TypedScalar:
    """The result, with what it takes to compute; refused where that is too much."""
    weight = 1 + sum(weights)
    if weight > MOST_PARTS:
        what, fix = "an expression has too many parts", "ask several smaller questions"
        raise Refused(ErrorCode.TOO_LARGE, what, at=find_location(node), fix=fix)
    return replace(result, weight=weight)


def require_bounds(binding: Binding, operands: Iterable[TypedScalar], node: Scalar) -> None:
    """Over rows, refuse to compute with what has no declared bounds."""
    if binding.rows and not all(operand.is_bounded for operand in operands):
        what = "an operand has no declared bounds, so the result has none"
        fix = owner = "ask the owner for lower and upper"
        suggestion = None
        for part in node.arguments if isinstance(node, Call) else ():
            is_written = find_location(part) not in {None, find_location(node)}  # and not put there by the parser
            operand = binding.bind(part) if is_written and not is_interval(part) else None
            if operand is not None and not operand.is_bounded and operand.type in NUMERIC_TYPES:
                bounded = clamp_present(quote_scalar(part))
                suggestion = substitute_everywhere(find_location(node), find_location(part), bounded)
                fix = f"clamp it: {bounded}, or {owner}"
                break
        raise Refused(ErrorCode.UNBOUNDED, what, at=find_location(node), fix=fix, suggestion=suggestion)


def shorten_bounds(node: Call, result: TypedScalar) -> TypedScalar:
    """A number over rows, with bounds that stay short when they are computed with, rounded outward."""
    lower, upper, step = result.lower, result.upper, result.step
    _require_fit(result, node.at)
    if lower is not None and lower.denominator > _FINEST:
        lower = Fraction(math.floor(lower * _FINEST), _FINEST)
    if upper is not None and upper.denominator > _FINEST:
        upper = Fraction(math.ceil(upper * _FINEST), _FINEST)
    if step and (max(step.numerator, step.denominator) > _FINEST or step < _FINEST_STEP):
        step = None
    return replace(result, lower=lower, upper=upper, step=step)


def _require_fit(result: TypedScalar, at: SourceLocation | None) -> None:
    """Refuse what the machine's numbers could not hold."""
    low, high = (LEAST_INT, MOST_INT) if result.type is Type.INT else (-LARGEST_FLOAT, LARGEST_FLOAT)
    if result.lower is not None and result.upper is not None and not low < result.lower <= result.upper < high:
        raise refuse_large_result(at)


def unify_types(node: Scalar, operands: list[TypedScalar], force_float: bool = False) -> list[TypedScalar]:
    """The operands in one type: integers beside floats become floats, text beside dates becomes dates."""
    kinds = {o.type for o in operands if o.type is not None}
    if Type.FLOAT in kinds | ({Type.FLOAT} if force_float else set()) and kinds <= NUMERIC_TYPES:
        return [as_float(o) for o in operands]
    if Type.TIMESTAMP in kinds and kinds <= {*TIME_TYPES, Type.TEXT}:
        return [as_timestamp(o, node) for o in operands]
    if kinds == {Type.DATE, Type.TEXT}:
        return [as_date(o, node) for o in operands]
    if len(kinds) > 1:
        raise mixed_types_error(node, operands)
    return operands


def read_dates(binding: Binding, operands: list[TypedScalar], node: Scalar, what: str) -> list[TypedScalar]:
    """The operands as dates: a text that is a date is read as one, and a timestamp as its date."""
    read = [as_date(o, node) if isinstance(o.scalar, Literal) else o for o in operands]
    read = [date_of(o) if o.type is Type.TIMESTAMP else o for o in read]
    expect_types(binding, read, {Type.DATE}, node, what)
    return read


def read_timestamps(binding: Binding, operands: list[TypedScalar], node: Scalar, what: str) -> list[TypedScalar]:
    """The operands as timestamps: a constant text that is one is read as one."""
    read = [as_timestamp(o, node) if isinstance(o.scalar, Literal) and o.type is Type.TEXT else o for o in operands]
    for operand in read:
        if operand.type is Type.DATE:
            fix = "a date has no time of day: count days"
            raise Refused(ErrorCode.TYPE, f"{what}, got date", at=find_location(node), fix=fix)
    expect_types(binding, read, {Type.TIMESTAMP}, node, what)
    return read


def expect_types(
    binding: Binding, operands: Iterable[TypedScalar], kinds: set[Type] | frozenset[Type], node: Scalar, what: str
) -> None:
    """Refuse operands of other types than these; numbers among conditions with the comparison that is meant."""
    for operand in operands:
        if operand.type not in kinds:
            fix = "leave it out" if operand.type is None else "check the column's type in the schema"
            suggestion = _compare_with_zero(binding, node) if kinds == {Type.BOOL} else None
            fix = fix if suggestion is None else "compare it with zero: <> 0"
            what = f"{what}, got {operand.type or 'NULL'}"
            raise Refused(ErrorCode.TYPE, what, at=find_location(node), fix=fix, suggestion=suggestion)


def _compare_with_zero(binding: Binding, node: Scalar) -> str | None:
    """The question with the numbers among conditions compared with zero, as SQL that takes them does."""
    parts = node.arguments if isinstance(node, Call) else ()
    numbers = [part for part in parts if binding.bind(part).type in NUMERIC_TYPES]
    edits = [(find_location(part), f"({quote_scalar(part)} <> 0)") for part in numbers]
    return substitute(*edits) if edits else None


def refuse_large_result(at: SourceLocation | None) -> Refused:
    """A refusal of a number that the machine's could not hold."""
    what = "the result could be too large for the machine"
    return Refused(ErrorCode.OVERFLOW, what, at=at, fix="use smaller factors")
