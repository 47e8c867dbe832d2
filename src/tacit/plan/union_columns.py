"""The columns of a union of rows: of one type, with all that is known of every part."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import TypedScalar
from tacit.plan.operands import as_float
from tacit.plan.relation import Field, Relation
from tacit.query.functions import Function
from tacit.query.integer_types import widest
from tacit.query.nodes import Call, Case, ColumnReference, Literal, LiteralValue, Projection, Scalar
from tacit.query.types import Key, Type

_ANY: dict[Type, LiteralValue] = {
    Type.INT: 0,
    Type.FLOAT: Fraction(0),
    Type.TEXT: "",
    Type.BOOL: False,
    Type.DATE: datetime.date(2000, 1, 1),
    Type.TIMESTAMP: 0,  # microseconds
}


def find_union_column(parts: list[Relation], position: int, at: SourceLocation | None) -> list[Field]:
    """The column at a position of each part, all of one type: NULL is of any, and integers are floats beside floats."""
    same = spell_others([part.fields[position] for part in parts])
    if all(field.is_unit for field in same) and not are_read_alike(same):
        units = [part.unit for part in parts if part.unit is not None]
        return [take_unit_as_it_lies(field, unit) for field, unit in zip(same, units, strict=True)]
    nulls = [_is_null(part, field) for part, field in zip(parts, same, strict=True)]
    kinds = {field.bound.type for field, is_null in zip(same, nulls, strict=True) if not is_null}
    if kinds == {Type.INT, Type.FLOAT}:
        kinds = {Type.FLOAT}
        same = [replace(field, bound=as_float(field.bound), values=None) for field in same]
    if len(kinds) > 1:
        what = f"column {same[0].name} has different types in the parts of UNION ALL"
        raise Refused(ErrorCode.TYPE, what, at=at, fix="select columns of the same type")
    kind = next(iter(kinds), None)
    if kind is None:
        _check_untyped(same, nulls, at)
        return same
    return [
        replace(field, bound=TypedScalar(_write_null(kind), kind)) if is_null else field
        for field, is_null in zip(same, nulls, strict=True)
    ]


def are_read_alike(units: list[Field]) -> bool:
    """Whether columns that are units are one function of them: declared alike.

    **Rule.** A column that is the unit is the same function of the unit in all rows of a relation, so that rows of one
    unit agree in it and a unit has one group of its own (`plan/fold.py`). Where tables declare other bounds or values,
    a unit beyond them would be read as several values, and such a column is taken as it lies.
    """
    return len({(f.bound.type, f.bound.lower, f.bound.upper, f.bound.step, f.values, f.other) for f in units}) == 1


def take_unit_as_it_lies(field: Field, unit: str) -> Field:
    """A column that is the unit, without what a table declares of it: a name alone, with no type."""
    return replace(field, bound=TypedScalar(ColumnReference(unit), None), values=None, other=None, raw="")


def _check_untyped(same: list[Field], nulls: list[bool], at: SourceLocation | None) -> None:
    """Refuse a column that is the unit in one part and something else that is not listed in another.

    **Rule.** A column without a type that is counted as the unit of its row (`is_matched_unit`) holds it in every part,
    or NULL. A key that is not listed has no type either, and a unit may have any number of them.
    """
    held = [field for field, is_null in zip(same, nulls, strict=True) if not is_null]
    if any(map(_holds_unit, held)) and not all(map(_holds_unit, held)):
        what = f"column {same[0].name} is whose row it is in one part of UNION ALL, and not in another"
        raise Refused(ErrorCode.TYPE, what, at=at, fix="select the unit in every part, or NULL")


def _holds_unit(field: Field) -> bool:
    return field.is_unit or field.is_matched_unit


def describe_union_column(called: str, name: str, same: list[Field]) -> Field:
    """A column of a union that is stored by a name: all that is known of every part. What is NULL keeps every bound."""
    known = [field for field in same if not _is_written_null(field.bound)] or same
    first = known[0].bound
    lowers, uppers = [field.bound.lower for field in known], [field.bound.upper for field in known]
    known_low, known_high = [v for v in lowers if v is not None], [v for v in uppers if v is not None]
    bounded = len(known_low) == len(lowers) and len(known_high) == len(uppers)
    steps = {field.bound.step for field in known}
    values, other = either_values(known)
    return Field(
        called,
        "",
        TypedScalar(
            ColumnReference(name),
            first.type,
            min(known_low) if bounded else None,
            max(known_high) if bounded else None,
            steps.pop() if len(steps) == 1 else None,
            any(field.bound.nullable for field in known) or len(known) < len(same),
            weight=max(field.bound.weight for field in same),
            texts=max(field.bound.texts for field in same),
            postgres_type=widest(field.bound.postgres_type for field in same),
        ),
        values,
        other,
        is_unit=all(field.is_unit for field in same),
        is_matched_unit=first.type is None and any(map(_holds_unit, same)),
        is_null=all(field.is_null for field in same),
    )


def spell_others(fields: list[Field]) -> list[Field]:
    """Columns that one column holds the values of. Where some read others otherwise, each says so of every row."""
    return fields if len({field.other for field in fields}) == 1 else list(map(_spell_other, fields))


def _spell_other(field: Field) -> Field:
    if field.other is None or field.values is None:
        return field
    listed = Call(Function.IN, (field.bound.scalar, *map(Literal, field.values)))
    scalar = Case(((listed, field.bound.scalar),), Literal(field.other))
    values = (*field.values, field.other)
    return replace(field, bound=replace(field.bound, scalar=scalar), values=values, other=None)


def either_values(fields: list[Field]) -> tuple[tuple[Key, ...] | None, Key | None]:
    """The values of a column that holds those of one of several, and the one that all others are read as.

    None where one of them has no list of values: a value of it would be in no group.
    """
    if any(field.values is None for field in fields):
        return None, None
    return tuple(dict.fromkeys(value for field in fields for value in field.values or ())), fields[0].other


def either_listing(one: TypedScalar, other: TypedScalar) -> Callable[[int], tuple[Key, ...] | None] | None:
    """All values of a column that holds those of one of two; None where one of them has only those of its bounds."""
    first, second = one.listing, other.listing
    if first is None or second is None:
        return None

    def list_values(most: int) -> tuple[Key, ...] | None:
        found = [listing(most) for listing in (first, second)]
        values = dict.fromkeys(value for some in found for value in some or ())
        return None if None in found or len(values) > most else tuple(values)

    return list_values


def _is_null(part: Relation, field: Field) -> bool:
    """Whether a column is NULL in every row, as it is written."""
    rows, scalar = part.rows, field.bound.scalar
    return (
        isinstance(rows, Projection)
        and isinstance(scalar, ColumnReference)
        and (scalar.name, Literal(None)) in rows.columns
    )


def _write_null(kind: Type) -> Scalar:
    """A NULL of a type: by itself it has none, and PostgreSQL would take it for a text."""
    return Case(((Literal(False), Literal(_ANY[kind])),), Literal(None))


def _is_written_null(bound: TypedScalar) -> bool:
    return bound.type is not None and bound.scalar == _write_null(bound.type)
