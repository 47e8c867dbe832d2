"""Bounds that the policy's caps give to what is computed from one unit's rows.

**Rule.** A count, a sum or a row number of one unit's rows has no bounds of its own. Where the question needs some, and
would be refused without, the value is clamped to what it could be if the unit had no more rows than the policy keeps of
one. The clamp is written where the value is used, so it holds for every row that an engine computes, and a question
that is answered without it is the same question as before. It looks at one value of one unit, so it keeps whose row it
is. The answer says that it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import LEAST_INT, MOST_INT, Leaf, TypedScalar, bind
from tacit.query.nodes import Clamp, Scalar, walk
from tacit.query.types import NUMERIC_TYPES, Type


@dataclass(frozen=True)
class Cap:
    """Bounds from the policy's caps, and what an answer says where a value is clamped to them.

    Where the policy declares no caps, there are none.
    """

    lower: Fraction
    upper: Fraction
    note: str
    is_declared: bool = True

    def add_to(self, bound: TypedScalar) -> TypedScalar:
        """The same scalar, with its clamped form where it has no bounds of its own."""
        whole = bound.type is Type.INT
        if (
            not self.is_declared
            or bound.is_bounded
            or (whole and not (self.lower > LEAST_INT and self.upper < MOST_INT))
        ):
            return bound
        clamped = Clamp(bound.scalar, self.lower, self.upper, whole, self.note)
        return replace(
            bound, capped=replace(bound, scalar=clamped, lower=self.lower, upper=self.upper, weight=bound.weight + 1)
        )


def cap_of(bound: TypedScalar) -> Cap | None:
    """The cap of a column that holds a scalar's values."""
    capped = bound.capped
    if capped is None or capped.lower is None or capped.upper is None:
        return None
    notes = dict.fromkeys(node.note for node in walk(capped.scalar) if isinstance(node, Clamp) and node.note)
    return Cap(capped.lower, capped.upper, " ".join(notes))


def pass_cap(bound: TypedScalar, column: Scalar) -> TypedScalar:
    """What is known of a column that holds values of a scalar, or NULL."""
    here = replace(bound, scalar=column, nullable=True, weight=1, capped=None, is_per_unit=False)
    cap = cap_of(bound)
    return here if cap is None else cap.add_to(here)


def bind_within_caps(scalar: Scalar, leaf: Leaf) -> TypedScalar:
    """A scalar over rows; with capped operands where it has no bounds otherwise."""
    seen: list[TypedScalar] = []
    plain = _noting(leaf, seen)
    try:
        bound = bind(scalar, plain, rows=True)
    except Refused as refusal:
        if refusal.code is not ErrorCode.UNBOUNDED or not seen:
            raise
        try:
            return replace(bind(scalar, _clamping(leaf), rows=True), capped=None)
        except Refused:
            raise refusal from None
    if not seen or bound.is_bounded or bound.type not in NUMERIC_TYPES:
        return replace(bound, capped=None) if bound.capped is not None else bound
    try:
        capped = replace(bind(scalar, _clamping(leaf), rows=True), capped=None)
    except Refused:
        return replace(bound, capped=None)
    return replace(bound, capped=capped if capped.is_bounded else None)


def _noting(leaf: Leaf, seen: list[TypedScalar]) -> Callable[[Scalar], TypedScalar | None]:
    def plain(node: Scalar) -> TypedScalar | None:
        found = leaf(node)
        if found is not None and found.capped is not None:
            seen.append(found)
        return found

    return plain


def _clamping(leaf: Leaf) -> Callable[[Scalar], TypedScalar | None]:
    def clamp(node: Scalar) -> TypedScalar | None:
        found = leaf(node)
        return found if found is None or found.capped is None else found.capped

    return clamp
