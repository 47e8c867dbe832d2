"""LEFT JOIN whose ON has a condition on both sides, where a row may find several.

**Rule.** The rows are those of the inner join, and those of the left side that find nothing, with NULL in the right
side's columns. Whether a row finds nothing is a column of it, made of rows of its own unit or of public tables, as
in an ANTI JOIN (`plan/filtering_join.py`). So both parts are functions of each unit's own rows, and so is their UNION
ALL. A row of the left side gives as many rows as in the LEFT JOIN without the condition, or fewer, but one at least: so
the caps of that hold. The left side is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.join import join_relations, match_units
from tacit.plan.join_conditions import find_pairs
from tacit.plan.joined_columns import maybe_null, put_together
from tacit.plan.relation import Field, Relation
from tacit.query.nodes import ColumnReference, Join, Literal, Projection, RowUnion, Scalar, walk


def finds_several(left: Relation, right: Relation, node: Join) -> bool:
    """Whether a LEFT JOIN has a condition on both sides, and a row of it may find several."""
    if not node.outer or node.full or node.on is None:
        return False
    pairs, rest = find_pairs(left, right, node)
    if not pairs or not rest:
        return False
    both = put_together(left, right, node)
    ours = {id(found) for found in (*left.fields, *left.implied)}
    for part in rest:
        columns = (scalar for scalar in walk(part) if isinstance(scalar, ColumnReference))
        if len({id(both.field_of(column)) in ours for column in columns}) > 1:
            return not match_units(left, right, pairs, node).left_once
    return False


def about_several(refusal: Refused, right: Relation, node: Join) -> Refused:
    """A refusal to tell which rows find nothing, in the words of the join."""
    if refusal.code is not ErrorCode.UNSUPPORTED:
        return refusal
    what = "LEFT JOIN with such a condition on both sides, where a row may find several, is not answered"
    fix = f"compare one column of each side other than by =, or join one row of {right.sources[0]} for each unit"
    return Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)


def join_left(left: Relation, right: Relation, alone: Relation, node: Join, names: Iterator[str]) -> Relation:
    """The LEFT JOIN of two relations; `alone` are the rows of the left one that find nothing."""
    matched = join_relations(left, right, replace(node, outer=False, swapped=False), names)
    pairs, _ = find_pairs(left, right, node)
    kept = match_units(left, right, pairs, node).kept
    others: list[Field | None] = [found for found in alone.fields if not found.is_internal]
    others += [None] * len(right.fields)
    fields: list[Field] = []
    columns: list[list[tuple[str, Scalar]]] = [[], []]
    for found, other in zip(matched.fields, others, strict=True):
        name = next(names)
        columns[0].append((name, found.bound.scalar))
        columns[1].append((name, Literal(None) if other is None else other.bound.scalar))
        here = found if other is not None else maybe_null(found)
        bound = replace(here.bound, scalar=ColumnReference(name), capped=None, is_per_unit=False)
        fields.append(replace(here, bound=bound, unique=False, raw="", link=None))
    unit = None if matched.unit is None else next(names)
    for part, some in zip((matched, alone), columns, strict=True):
        if unit is not None and part.unit is not None:
            some.append((unit, ColumnReference(part.unit)))
    if node.swapped:
        fields = [*fields[len(left.fields) :], *fields[: len(left.fields)]]
    return replace(
        matched,
        rows=RowUnion(tuple(Projection(p.rows, tuple(c)) for p, c in zip((matched, alone), columns, strict=True))),
        fields=tuple(fields),
        unit=unit,
        each=kept.each,
        chosen=kept.chosen,
        single=kept.single,
        implied=_imply_unit(left, unit),
        keys=(),
    )


def _imply_unit(left: Relation, unit: str | None) -> tuple[Field, ...]:
    """The unit that the left side reaches through another table, which every row still has."""
    if unit is None:
        return ()
    bound = TypedScalar(ColumnReference(unit), None)
    return tuple(replace(found, bound=bound, link=None) for found in left.implied if found.is_unit)
