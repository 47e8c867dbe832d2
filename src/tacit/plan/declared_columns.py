"""Columns as the policy declares them: clamped to their bounds, with NaN read as NULL."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction

from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar
from tacit.policy.model import Column as Declared
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Clamp, Literal, Scalar
from tacit.query.types import NUMERIC_TYPES, Type


def read_as_declared(column: Declared, plain: Scalar) -> TypedScalar:
    """A column as declared: clamped to its bounds, NaN read as NULL, and a NULL that must not be as `lower`."""
    bound = clamp_column(column, plain)
    if column.nullable or bound.lower is None or bound.type not in NUMERIC_TYPES:
        return bound
    missing = Literal(int(bound.lower) if bound.type is Type.INT else bound.lower)
    return replace(bound, scalar=Call(Function.COALESCE, (bound.scalar, missing)), nullable=False)


def clamp_column(column: Declared, plain: Scalar) -> TypedScalar:
    """A column clamped to its bounds, NaN read as NULL. Where it has neither it is read as it is."""
    match column.type:
        case Type.INT if column.lower is None:
            return TypedScalar(plain, Type.INT, LEAST_INT, MOST_INT, Fraction(1))
        case Type.INT:
            clamped: Scalar = Clamp(plain, column.lower, column.upper, whole=True)
            return TypedScalar(clamped, Type.INT, column.lower, column.upper, Fraction(1))
        case Type.FLOAT:
            clamped = Clamp(plain, column.lower, column.upper, whole=False)
            return TypedScalar(clamped, Type.FLOAT, column.lower, column.upper, column.step)
        case Type.TIMESTAMP if column.lower is not None:  # an integer
            clamped = Clamp(plain, column.lower, column.upper, whole=True)
            return TypedScalar(clamped, Type.TIMESTAMP, column.lower, column.upper, Fraction(1))
        case Type.DATE if column.lower is not None and column.upper is not None:
            first, last = (Literal(datetime.date.fromordinal(int(day))) for day in (column.lower, column.upper))
            early, late = Call(Function.LESS, (plain, first)), Call(Function.GREATER, (plain, last))
            clamped = Case(((early, first), (late, last)), plain)
            return TypedScalar(clamped, Type.DATE, column.lower, column.upper, Fraction(1))
    return TypedScalar(plain, column.type)
