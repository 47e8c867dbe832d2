"""UNION, INTERSECT and EXCEPT of rows: each combination of values once.

**Rule.** The parts are put together as by UNION ALL, each row with the number of its part, and grouped by all columns,
NULL being a value, as in SQL. UNION keeps every group, INTERSECT those with a row of every part, and EXCEPT those with
a row of the first part and of no other. For private rows a column must be the unit in every part, or name a row of the
same private table in every part: then a group holds rows of one unit (`plan/fold.py`), so which groups a unit has is a
function of its own rows. Public rows may be grouped by anything.

A unit has at most as many groups as the first part has rows, except in a UNION, whose caps are those of a UNION ALL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.connect import all_of
from tacit.plan.fold import aggregate_per_unit
from tacit.plan.relation import INTERNAL, Field, Relation, RowReference
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Literal,
    Query,
    Scalar,
    SelectItem,
    TableReference,
    UnionAll,
)
from tacit.query.types import Type

OPERATIONS = frozenset({"union", "intersect", "except"})
_NUMBER = f"{INTERNAL}part"


def keep_once(union: UnionAll, parts: list[Relation], stack: Relation, number: str, names: Iterator[str]) -> Relation:
    """The rows that a set operation gives; `stack` are those of all parts, with the column `number` of their part."""
    last = Fraction(len(parts) - 1)
    part = TypedScalar(ColumnReference(number), Type.INT, Fraction(0), last, Fraction(1), nullable=False)
    known = stack.fields if union.operation == "union" else [_of_first(*both) for both in _beside(stack, parts[0])]
    fields = [
        replace(field, name=f"{INTERNAL}{place}", source="", link=_common_link(parts, place, field))
        for place, field in enumerate(known)
    ]
    if stack.people is not None and not any(field.is_unit or field.link is not None for field in fields):
        word = union.operation.upper()
        unit = "the unit" if stack.unit is None else stack.called
        what = f"{word} of rows whose columns do not say whose they are is not answered"
        fix = f"select {unit} in every part" + (", or keep all rows" if union.operation == "union" else "")
        raise Refused(ErrorCode.UNSUPPORTED, what, at=union.at, fix=fix)
    if any(field.bound.type is Type.FLOAT for field in stack.fields):
        what = f"{union.operation.upper()} of floats is not answered: engines may tell them apart otherwise"
        raise Refused(ErrorCode.TYPE, what, at=union.at, fix="select whole numbers, texts and dates")
    rows = replace(stack, fields=(*fields, Field(_NUMBER, "", part)), sources=())
    once = tuple(SelectItem(field.name, ColumnReference(field.name, None, union.at)) for field in fields)
    keys = tuple(item.scalar for item in once)
    having = all_of(list(_conditions(union)), None)
    found = aggregate_per_unit(
        Query(TableReference("", ""), once, None, keys, having, (), None, 0, at=union.at), rows, names
    )
    named = tuple(replace(f, name=former.name) for f, former in zip(found.fields, stack.fields, strict=True))
    bounded = found if found.single or union.operation == "union" else parts[0]
    return replace(found, fields=named, each=bounded.each, chosen=bounded.chosen)


def _beside(stack: Relation, first: Relation) -> Iterator[tuple[Field, Field]]:
    return zip(stack.fields, first.fields, strict=True)


def _of_first(field: Field, first: Field) -> Field:
    """A column whose values are all values of the first part: what is known of those is known of it.

    Units that are taken as they lie are not values as the first part reads them.
    """
    if field.is_unlisted:
        return field
    bound = replace(first.bound, scalar=field.bound.scalar, capped=None, is_per_unit=False)
    bound = replace(bound, postgres_type=field.bound.postgres_type)
    return replace(field, bound=bound, values=first.values, other=first.other, cap=first.cap)


def _common_link(parts: list[Relation], place: int, field: Field) -> RowReference | None:
    """What a column names, where it names a row of the same table in every part, as it is stored."""
    links = [part.fields[place].link_in("", part.fields[place].bound.scalar) for part in parts]
    first = links[0]
    if first is None or any(link is None or not link.names_same_row(first) for link in links):
        return None
    assert isinstance(field.bound.scalar, ColumnReference)
    return replace(first, column=field.bound.scalar.name, is_key=False, most=None)


def _conditions(union: UnionAll) -> Iterator[Scalar]:
    """What a group must have: rows of which parts, and of which none."""
    if union.operation == "intersect":
        yield from (_has_rows(Function.EQUAL, number) for number in range(len(union.parts)))
    elif union.operation == "except":
        yield _has_rows(Function.EQUAL, 0)
        yield Call(Function.NOT, (_has_rows(Function.GREATER, 0),))


def _has_rows(function: Function, number: int) -> Scalar:
    """Whether a group has a row whose part compares so with a number."""
    chosen = Case(((Call(function, (ColumnReference(_NUMBER), Literal(number))), Literal(1)),), Literal(None))
    return Call(Function.GREATER, (Aggregate("count", chosen), Literal(0)))
