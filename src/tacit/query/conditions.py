"""Conditions that must all hold: taken apart, put together, and the columns that they name."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.query.functions import Function
from tacit.query.nodes import Call, ColumnReference, Scalar, walk


def conjuncts(scalar: Scalar | None) -> list[Scalar]:
    """The conditions that must all hold."""
    if scalar is None:
        return []
    return list(scalar.arguments) if isinstance(scalar, Call) and scalar.function == Function.AND else [scalar]


def conjunction(conditions: Sequence[Scalar]) -> Scalar:
    """The condition that all of these hold, of which there is one at least."""
    return conditions[0] if len(conditions) == 1 else Call(Function.AND, tuple(conditions))


def named_columns(scalar: Scalar) -> frozenset[str]:
    """The columns that a scalar names."""
    return frozenset(node.name for node in walk(scalar) if isinstance(node, ColumnReference))
