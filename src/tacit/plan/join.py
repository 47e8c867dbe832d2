"""Joins that keep every row one unit's. The rules are in `plan/scope.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.relation import Field, Relation, condition
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    EquiJoin,
    Join,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
    find_location,
    walk,
)
from tacit.query.types import Type

_Pair = tuple[Field | None, Field | None, TypedScalar, TypedScalar]


def join_relations(left: Relation, right: Relation, node: Join, new_names: Iterator[str]) -> Relation:
    """The join of two relations, or Refused where a row could become another unit's or too many."""
    if node.outer:
        right = _fill_right_side(right, new_names)
    names = [*left.sources, *right.sources]
    if len({name.lower() for name in names}) < len(names):
        fix = "give each a name of its own: FROM visits AS a JOIN visits AS b ON ..."
        raise Refused(ErrorCode.AMBIGUOUS, "two tables of this question have the same name", at=node.at, fix=fix)
    # A row of the right side may be found by many of the left, so nothing of it stays unique.
    theirs = tuple(replace(f, unique=False) for f in _hide_using_columns(right, node.using))
    both = replace(left, fields=(*left.fields, *theirs), sources=tuple(names))
    pairs, rest = _pairs(left, right, both, node)
    if not pairs:
        fix = f"match a column of each: ON {left.sources[0]}.x = {right.sources[0]}.x, and more with AND"
        raise _refuse(node, "a join without an equality of columns", fix)
    rows: RelationalNode = EquiJoin(left.rows, right.rows, tuple((p[2].scalar, p[3].scalar) for p in pairs), node.outer)
    kept = _merge_units(left, right, pairs, node)
    fields = tuple(_maybe_null(f) if node.outer and f in both.fields[len(left.fields) :] else f for f in both.fields)
    whole = replace(kept, rows=rows, fields=fields, sources=tuple(names))
    if not rest:
        return whole
    if node.outer:
        raise _refuse(node, "LEFT JOIN with a condition other than an equality of columns", "filter with WHERE instead")
    where = [condition(whole.bind(part), "ON", find_location(part)) for part in rest]
    columns = tuple((name, ColumnReference(name)) for name in columns_of(rows))
    return replace(
        whole, rows=Projection(rows, columns, where[0] if len(where) == 1 else Call(Function.AND, tuple(where)))
    )


def _fill_right_side(right: Relation, new_names: Iterator[str]) -> Relation:
    """The right side of a LEFT JOIN, each field that is never NULL computed before rows are matched.

    Such a field holds a value in place of a missing one. Computed after the join, it would hold that value in the rows
    that match nothing, too, and these would be counted and added up.
    """
    columns: list[tuple[str, Scalar]] = [(name, ColumnReference(name)) for name in columns_of(right.rows)]
    fields = list(right.fields)
    for position, found in enumerate(right.fields):
        if not found.bound.nullable and not isinstance(found.bound.scalar, ColumnReference):
            name = next(new_names)
            columns.append((name, found.bound.scalar))
            fields[position] = replace(found, bound=replace(found.bound, scalar=ColumnReference(name)))
    if fields == list(right.fields):
        return right
    return replace(right, rows=Projection(right.rows, tuple(columns)), fields=tuple(fields))


def columns_of(rows: RelationalNode) -> Iterator[str]:
    """The names of the columns that rows have."""
    match rows:
        case Scan(_, columns):
            yield from (here for _, here in columns)
        case Projection(_, columns):
            yield from (name for name, _ in columns)
        case EquiJoin(left, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case PerUnitAggregation(_, keys, measures):
            yield from (name for name, _ in keys)
            yield from (name for name, _ in measures)
        case UnitWindow(source, columns=made):
            yield from columns_of(source)
            yield from (name for name, _ in made)
        case RowUnion(parts):
            yield from columns_of(parts[0])


def _merge_units(left: Relation, right: Relation, pairs: list[_Pair], node: Join) -> Relation:
    """Whose rows the joined ones are, and how many may be kept of a unit."""
    if right.people is None:
        if not any(theirs is not None and theirs.unique for _, theirs, _, _ in pairs):
            found = left.people is None and any(ours is not None and ours.unique for ours, _, _, _ in pairs)
            swapped = f"swap the tables: FROM {right.sources[0]} JOIN {left.sources[0]}"
            fix = swapped if found and not node.outer else None
            raise _not_unique(right, [theirs for _, theirs, _, _ in pairs], node, fix)
        return left
    if left.people is None:
        if node.outer:
            what = "LEFT JOIN from a public table to a private one"
            raise _refuse(node, what, "join from the private table, or write JOIN: rows without a unit are left out")
        if not any(ours is not None and ours.unique for ours, _, _, _ in pairs):
            raise _not_unique(left, [ours for ours, _, _, _ in pairs], node)
        return right
    on_unit = any(
        ours is not None and theirs is not None and ours.is_unit and theirs.is_unit for ours, theirs, _, _ in pairs
    )
    if left.unit is None or right.unit is None:
        what = "a join of private tables of which one has rows as its units"
        raise _refuse(node, what, "ask about each by itself, and compute with the answers")
    if left.people != right.people:
        what = "a join of private tables about different people"
        raise _refuse(node, what, "ask about each by itself; the owner may declare that the people are the same")
    if not on_unit:
        what = "a join of private tables on anything but the unit of both"
        named = [next((f"{f.source}.{f.name}" for f in side.fields if f.is_unit), None) for side in (left, right)]
        fix = "select the unit on both sides, and add it to the condition"
        if None not in named:
            fix = f"add the unit to the condition: ON {named[0]} = {named[1]}"
        raise _refuse(node, what, fix)
    # Without a cap on all rows the product is no cap either: it is at least the larger k times the product of the r.
    total = left.each.most * right.each.most
    each = ContributionBounds(max(left.each.groups, right.each.groups), left.each.rows * right.each.rows, total)
    return replace(left, each=each, single=left.single and right.single)


def _pairs(left: Relation, right: Relation, both: Relation, node: Join) -> tuple[list[_Pair], list[Scalar]]:
    """The equalities between the two sides, and the conditions that are none."""
    pairs: list[_Pair] = []
    rest: list[Scalar] = []
    for name in node.using:
        column = ColumnReference(name, at=node.at)
        pairs.append(_pair(left, right, column, column))
    parts: tuple[Scalar, ...] = ()
    if node.on is not None:
        parts = node.on.arguments if isinstance(node.on, Call) and node.on.function == Function.AND else (node.on,)
    for part in parts:
        sides = _sides(part, left, both)
        if sides is None:
            rest.append(part)
        else:
            pairs.append(_pair(left, right, *sides))
    return pairs, rest


def _sides(part: Scalar, left: Relation, both: Relation) -> tuple[Scalar, Scalar] | None:
    """The sides of an equality, the left relation's first, if each side is about one relation only."""
    if not isinstance(part, Call) or part.function != Function.EQUAL:
        return None
    ours = {id(f) for f in left.fields}
    about = []
    for side in part.arguments:
        found = {id(both.field_of(n)) in ours for n in walk(side) if isinstance(n, ColumnReference)}
        about.append(found.pop() if len(found) == 1 else None)
    if about == [True, False]:
        return part.arguments[0], part.arguments[1]
    return (part.arguments[1], part.arguments[0]) if about == [False, True] else None


def _pair(left: Relation, right: Relation, ours: Scalar, theirs: Scalar) -> _Pair:
    one, first = _side(left, ours)
    two, second = _side(right, theirs)
    if first.type is not second.type and None not in (first.type, second.type):
        what = f"{first.type} and {second.type} do not go together"
        raise Refused(ErrorCode.TYPE, what, at=getattr(ours, "at", None), fix="join columns of one type")
    if first.type is Type.FLOAT:
        what = "a join on floats is not answered"
        raise Refused(
            ErrorCode.UNSUPPORTED, what, at=getattr(ours, "at", None), fix="join on int, text or date columns"
        )
    return one, two, first, second


def _side(relation: Relation, scalar: Scalar) -> tuple[Field | None, TypedScalar]:
    """One side of an equality. A unit, and what is unique, is taken as it lies: clamped, two of them could be equal."""
    scalar = relation.bare(scalar)
    found = relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
    if found is not None and found.is_unit and relation.unit is not None:
        return found, replace(found.bound, scalar=ColumnReference(relation.unit))
    if found is not None and found.unique:
        return found, replace(found.bound, scalar=ColumnReference(found.raw))
    return found, relation.bind(scalar)


def _hide_using_columns(right: Relation, using: tuple[str, ...]) -> tuple[Field, ...]:
    """The right side's fields, those of USING by their qualified names only."""
    names = {name.lower() for name in using}
    return tuple(replace(f, hidden=True) if f.name.lower() in names else f for f in right.fields)


def _maybe_null(found: Field) -> Field:
    """A field of the outer side: NULL where nothing matches. Its unit is the row's, or NULL."""
    matched = found.is_matched_unit or (found.is_unit and found.bound.type is None)
    return replace(found, bound=replace(found.bound, nullable=True), is_unit=False, is_matched_unit=matched)


def _not_unique(public: Relation, on: list[Field | None], node: Join, fix: str | None = None) -> Refused:
    """Which column of the public side it is that rows may share, and the one that they do not."""
    named = next((f"{f.source}.{f.name}" for f in on if f is not None), f"an expression of {public.sources[0]}")
    unique = next((f"{f.source}.{f.name}" for f in public.fields if f.unique), None)
    if unique is not None:
        fix = fix or f"join on {unique}"
    elif isinstance(public.rows, Scan):
        fix = fix or f"ask the owner to declare a unique column of {public.rows.table}"
    return _refuse(
        node,
        f"a join on {named}, which several rows may share,",
        fix or "join the public table itself, on a column that is unique there",
    )


def _refuse(node: Join, what: str, fix: str) -> Refused:
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=node.at, fix=fix)
