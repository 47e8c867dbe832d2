"""Columns of a question as features, by what the policy declares of them."""

from __future__ import annotations

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.learn.feature_encoding import Feature
from tacit.plan.relation import Field
from tacit.query.types import NUMERIC_TYPES, Type

_MOST_CATEGORIES = 10_000


def bind_feature(field: Field, *, nulls: bool, at: SourceLocation | None) -> Feature:
    """A column of a question as a feature, or Refused. `nulls` says whether a NULL number has a declared reading."""
    bound = field.bound
    if field.is_unit:
        what = f"{field.name} is the unit of protection, and nothing to learn from"
        raise Refused(ErrorCode.RAW_COLUMN, what, at=at, fix="leave it out of the select list")
    if (
        bound.type in {*NUMERIC_TYPES, Type.DATE}
        and bound.is_bounded
        and bound.lower is not None
        and bound.upper is not None
    ):
        if bound.nullable and not nulls:
            fix = f"COALESCE({field.name}, 0), say, or declare what NULL is read as: missing=0"
            raise Refused(
                ErrorCode.TYPE, f"{field.name} may be NULL, and the estimator has no rule for it", at=at, fix=fix
            )
        return Feature(field.name, float(bound.lower), float(bound.upper))
    if bound.type is Type.TIMESTAMP:
        what = f"{field.name} is a timestamp, and an estimator learns from numbers"
        fix = f"make numbers of it: HOUR({field.name}), or DATE_DIFF('day', DATE '2025-01-01', {field.name})"
        raise Refused(ErrorCode.TYPE, what, at=at, fix=fix)
    if field.values is not None:
        extra = () if field.other is None or field.other in field.values else (field.other,)
        if len(field.values) > _MOST_CATEGORIES:
            raise Refused(ErrorCode.TOO_LARGE, f"{field.name} has too many keys to learn from", at=at, fix="group them")
        return Feature(field.name, 0.0, 1.0, (*field.values, *extra), field.other)
    raise Refused(
        ErrorCode.UNBOUNDED,
        f"{field.name} has neither bounds nor declared keys, so it cannot be a feature",
        at=at,
        fix="clamp it, or ask the owner for lower and upper, or values",
    )
