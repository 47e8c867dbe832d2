"""FULL JOIN of private relations: the LEFT JOIN, and the rows of the right side that find nothing.

**Rule.** Both sides are matched on the unit, or along a foreign key, as in any join of private relations. Whether a row
of the right side finds one of the left is a column of it, made of rows of its own unit (`plan/semi_join.py`). So both
parts are functions of each unit's own rows, and so is their UNION ALL, with its caps: the larger number of groups and
the sum of the rows. Where both sides have one row for each unit and are matched on the unit alone, so has the whole.

With a public relation there would be rows that find nothing and are nobody's; which ones depends on all units together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.join import either_bounds, either_chosen, join_relations
from tacit.plan.join_conditions import find_pairs
from tacit.plan.join_pairs import JoinPair
from tacit.plan.joined_columns import common_names
from tacit.plan.relation import Field, Relation
from tacit.plan.semi_join import keep_unmatched
from tacit.plan.union_columns import are_read_alike, either_listing, either_values, spell_others, take_unit_as_it_lies
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.integer_types import widest
from tacit.query.nodes import (
    ColumnReference,
    Constants,
    EquiJoin,
    Join,
    Literal,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
)
from tacit.query.refusals import MAX_SOURCES, refuse_too_large

Sides = tuple[Relation, Relation]


def check_size(sides: Sides, node: Join) -> None:
    """Refuse a join of so many tables that, each of them being read twice, they would be too many."""
    if sum(_count_scans(side.rows) for side in sides) * 2 > MAX_SOURCES:
        word = "FULL JOIN" if node.full else "LEFT JOIN with a condition on both sides"
        what = f"{word} reads its tables twice, and these are more than {MAX_SOURCES // 2}"
        raise refuse_too_large(what, node.at, f"join fewer by {word}")


def _count_scans(rows: RelationalNode) -> int:
    match rows:
        case Scan() | Constants():
            return 1
        case Projection(source) | PerUnitAggregation(source) | UnitWindow(source):
            return _count_scans(source)
        case EquiJoin(left, right):
            return _count_scans(left) + _count_scans(right)
        case RowUnion(parts):
            return sum(map(_count_scans, parts))


def join_fully(sides: Sides, again: Sides, node: Join, names: Iterator[str]) -> Relation:
    """The FULL JOIN of two relations, which are there twice: `again` with columns of their own."""
    left, right = sides
    if left.people is None or right.people is None:
        what = "FULL JOIN with a public table, whose rows without a match would be nobody's, is not answered"
        side = "RIGHT" if left.people is None else "LEFT"
        kept = None if node.at is None else re.sub(r"\bFULL(\s+OUTER)?\b", side, node.at.written, count=1, flags=re.I)
        fix = "keep the rows of the private table" if kept is None else f"keep the rows of the private table: {kept}"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix, instead=kept)
    if node.natural:
        node = replace(node, using=common_names(left, right, node), natural=False)
    pairs, rest = find_pairs(again[1], again[0], node)
    if rest:
        what = "FULL JOIN with a condition other than an equality of columns is not answered"
        fix = "filter each side in a subquery first"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
    outer = join_relations(left, right, replace(node, full=False), names)
    alone = keep_unmatched(again[1], again[0], pairs, node.at, names)
    return _stack(outer, alone, left, right, pairs, node, names)


def _stack(
    outer: Relation,
    alone: Relation,
    left: Relation,
    right: Relation,
    pairs: list[JoinPair],
    node: Join,
    names: Iterator[str],
) -> Relation:
    """The rows of both parts, under the names of the first."""
    using = {name.lower() for name in node.using}
    theirs = {f.name.lower(): f for f in (*alone.implied, *alone.fields) if not f.hidden and not f.is_internal}
    fields: list[Field] = []
    columns: list[list[tuple[str, Scalar]]] = [[], []]
    others = iter([None] * len(left.fields) + [f for f in alone.fields if not f.is_internal])
    for found, other in zip(outer.fields, others, strict=True):
        is_merged = other is None and found.name.lower() in using
        if is_merged:  # by its name alone it is that of both sides
            ours, both = found, theirs[found.name.lower()]
            is_unit = ours.is_unit and both.is_unit
            if is_unit and not are_read_alike([ours, both]):
                assert outer.unit is not None
                assert alone.unit is not None
                ours, both = take_unit_as_it_lies(ours, outer.unit), take_unit_as_it_lies(both, alone.unit)
            elif not found.hidden and (ours.bound.type is None) is not (both.bound.type is None):
                ours, both = _take_link_as_stored(ours), _take_link_as_stored(both)
            ours, both = spell_others([ours, both])
            name = next(names)
            columns[0].append((name, ours.bound.scalar))
            columns[1].append((name, both.bound.scalar))
            merged = _cover(ours, both, name, is_unit=is_unit)
            listing = either_listing(ours.bound, both.bound)
            fields.append(replace(merged, source="", bound=replace(merged.bound, listing=listing)))
        name = next(names)
        columns[0].append((name, found.bound.scalar))
        columns[1].append((name, Literal(None) if other is None else other.bound.scalar))
        own = _cover(found, other, name, is_unit=found.is_unit and other is not None and other.is_unit)
        fields.append(replace(own, hidden=own.hidden or is_merged))
    unit = next(names)
    for part, some in zip((outer, alone), columns, strict=True):
        assert part.unit is not None
        some.append((unit, ColumnReference(part.unit)))
    rows = RowUnion(tuple(Projection(p.rows, tuple(c)) for p, c in zip((outer, alone), columns, strict=True)))
    single = left.single and right.single and all(pair.is_of_units for pair in pairs)
    each = ContributionBounds(1, 1) if single else either_bounds(outer.each, right.each)
    chosen = either_chosen([outer, right], sum)
    whole = replace(outer, rows=rows, fields=tuple(fields), unit=unit, each=each, single=single, chosen=chosen)
    return replace(whole, implied=(), keys=())


def _take_link_as_stored(field: Field) -> Field:
    """A column that names a row, which is listed on one side alone: it may be named, and not computed with."""
    assert field.link is not None  # so that both sides go together (`plan/join_pairs.py`)
    return replace(field, bound=TypedScalar(ColumnReference(field.link.column), None), values=None, other=None)


def _cover(found: Field, other: Field | None, name: str, *, is_unit: bool) -> Field:
    """A column that is that of the left side, of the right one, or NULL."""
    bound = replace(found.bound, scalar=ColumnReference(name), nullable=True)
    if other is not None and other.bound != found.bound:
        ends = (found.bound.lower, other.bound.lower), (found.bound.upper, other.bound.upper)
        lower, upper = (None if None in pair else pick(v for v in pair if v is not None)
                        for pair, pick in zip(ends, (min, max), strict=True))  # fmt: skip
        step = found.bound.step if found.bound.step == other.bound.step else None
        weight, texts = max(found.bound.weight, other.bound.weight), max(found.bound.texts, other.bound.texts)
        unit = found.bound.unit if found.bound.unit == other.bound.unit else None
        bound = replace(bound, lower=lower, upper=upper, step=step, unit=unit, weight=weight, texts=texts)
    if other is not None:
        kind = widest((found.bound.postgres_type, other.bound.postgres_type))
        bound = replace(bound, postgres_type=kind)
    values, rest = (found.values, found.other) if other is None else either_values([found, other])
    same_cap = other is None or other.cap == found.cap
    of_units = found.holds_unlisted_unit and (other is None or other.holds_unlisted_unit)
    return Field(
        found.name,
        found.source,
        bound,
        values,
        rest,
        is_unit=is_unit,
        hidden=found.hidden,
        cap=found.cap if same_cap else None,
        is_matched_unit=of_units and not is_unit,
        is_null=found.is_null and (other is None or other.is_null),
    )
