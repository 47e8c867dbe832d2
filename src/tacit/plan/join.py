"""Joins that keep every row one unit's. The rules are in `plan/scope.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from tacit.plan.constants import count_combinations, evaluate_constants, has_distinct_values
from tacit.plan.join_conditions import find_pairs_among
from tacit.plan.join_pairs import JoinPair
from tacit.plan.join_refusals import (
    quote_as_inner,
    refuse_join,
    refuse_not_unique,
    refuse_without_equality,
    suggest_units,
)
from tacit.plan.joined_columns import columns_of, common_names, fill_right_side, maybe_null, put_together
from tacit.plan.range_join import find_range
from tacit.plan.relation import ChosenBound, Field, Relation, RowReference, condition
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.conditions import conjunction
from tacit.query.nodes import (
    Case,
    ColumnReference,
    EquiJoin,
    Join,
    Literal,
    Projection,
    RelationalNode,
    Scalar,
    find_location,
    walk,
)

_MOST_KEYS = 20  # of rows that two tables make together
_MOST_COMBINATIONS = 100_000  # of the rows of tables in the text
_MOST_ROWS = 2**31 - 1  # of a unit: a join makes no more than a million of it (`engines/limit_joins.py`)


@dataclass(frozen=True)
class _Match:
    """How rows match: whose the joined rows are, and whether a row of each side finds at most one of the other.

    `units` are the columns of the unit where rows of both sides may find several (`engines/limit_joins.py`).
    """

    kept: Relation
    pairs: list[JoinPair]
    left_once: bool
    right_once: bool
    units: tuple[str, str] | None = None


def join_relations(left: Relation, right: Relation, node: Join, new_names: Iterator[str]) -> Relation:
    """The join of two relations, or Refused where a row could become another unit's or too many."""
    if node.natural:
        node = replace(node, using=common_names(left, right, node))
    if node.outer:
        right = fill_right_side(right, new_names)
    both = put_together(left, right, node)
    pairs, rest = find_pairs_among(left, right, both, node)
    if node.is_cross and _has_constants(left, right):
        return _cross(left, right, both, node)
    if not pairs:
        ranged = find_range(left, right, both, rest)
        if ranged is None:
            raise refuse_without_equality(left, right, node)
        pairs, rest = [JoinPair(None, None, ranged.left, ranged.right)], ranged.rest
    match = match_units(left, right, pairs, node)
    both = _keep_uniqueness(both, left, right, match)
    if node.outer:
        rows, fields, implied = _match_outer(left, right, both, match, rest, node)
    else:
        matched = tuple((p.left.scalar, p.right.scalar) for p in match.pairs)
        finds_left = match.right_once and not match.left_once
        rows = EquiJoin(left.rows, right.rows, matched, units=match.units, finds_left=finds_left)
        fields, implied = both.fields, both.implied
    if node.swapped:
        fields = (*fields[len(left.fields) :], *fields[: len(left.fields)])
    whole = replace(
        match.kept,
        rows=rows,
        fields=fields,
        sources=both.sources,
        implied=implied,
        keys=_joined_keys(left, right, match),
    )
    if not rest or node.outer:
        return whole
    where = [condition(whole.bind(part), "ON", find_location(part)) for part in rest]
    return replace(whole, rows=_filter_rows(rows, where))


def _has_constants(left: Relation, right: Relation) -> bool:
    """Whether both sides are public, and one of them is a small table in the text."""
    public = left.people is None and right.people is None
    return public and any(evaluate_constants(side.rows) is not None for side in (left, right))


def _cross(left: Relation, right: Relation, both: Relation, node: Join) -> Relation:
    """Every row of the one public relation with every row of the other: what is unique in each is so together."""
    if count_combinations(left.rows) * count_combinations(right.rows) > _MOST_COMBINATIONS:
        what = f"a CROSS JOIN of more than {_MOST_COMBINATIONS:,} rows of tables in the text"
        raise refuse_join(node, what, "say which of their rows match, or write fewer rows")
    keys = [[*side.keys, *(frozenset({f.raw}) for f in side.fields if f.unique)] for side in (left, right)]
    together = tuple(one | other for one in keys[0] for other in keys[1])[:_MOST_KEYS]
    fields = tuple(replace(f, unique=False) for f in both.fields)
    return replace(both, rows=EquiJoin(left.rows, right.rows, ()), fields=fields, keys=together)


def _keep_uniqueness(both: Relation, left: Relation, right: Relation, match: _Match) -> Relation:
    """The fields of both sides, and what is unique of them: that of a side whose rows find at most one of the other."""
    public = left.people is None and right.people is None
    kept_left = replace(both, fields=both.fields[: len(left.fields)], implied=both.implied[: len(left.implied)])
    kept_right = replace(both, fields=both.fields[len(left.fields) :], implied=both.implied[len(left.implied) :])
    # In rows of units nothing is asked to be unique; the left side's column is still matched as it lies.
    once_left, once_right = match.left_once or not public, public and match.right_once and not match.left_once
    ours = _keep_unique(kept_left, unique=once_left, times=None if match.left_once else right.each.most)
    theirs = _keep_unique(kept_right, unique=once_right, times=None if match.right_once else left.each.most)
    return replace(both, fields=(*ours[0], *theirs[0]), implied=(*ours[1], *theirs[1]))


def _keep_unique(side: Relation, *, unique: bool, times: int | None) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The columns of one side. A row of it finds `times` rows by the caps of the other, or one at most."""

    def keep(found: Field) -> Field:
        link = found.link
        if link is not None and times is not None:
            link = replace(link, is_key=False, most=None if link.most is None else link.most * times)
        if link is found.link and (unique or not found.unique):
            return found
        return replace(found, unique=found.unique and unique, link=link)

    return tuple(map(keep, side.fields)), tuple(map(keep, side.implied))


def _joined_keys(left: Relation, right: Relation, match: _Match) -> tuple[frozenset[str], ...]:
    if match.left_once:
        return left.keys
    return right.keys if match.right_once else ()


def _match_outer(
    left: Relation, right: Relation, both: Relation, match: _Match, rest: list[Scalar], node: Join
) -> tuple[RelationalNode, tuple[Field, ...], tuple[Field, ...]]:
    """The rows of a LEFT JOIN, whose ON may have more conditions than equalities.

    A condition on the right side alone keeps rows of it from being found, so it filters them before the join. One on
    the left side alone keeps a row from finding any: its key is NULL where the condition does not hold. One on both is
    looked at after the join, where each row finds at most one: where it does not hold, the row has found nothing.
    """
    ours = {id(f) for f in both.fields[: len(left.fields)]} | {id(f) for f in both.implied[: len(left.implied)]}
    before: list[Scalar] = []
    finding: list[Scalar] = []
    after: list[Scalar] = []
    for part in rest:
        about = {id(both.field_of(n)) in ours for n in walk(part) if isinstance(n, ColumnReference)}
        place = after if len(about) > 1 else before if about == {False} else finding
        place.append(condition(both.bind(part), "ON", find_location(part)))
    assert match.left_once or not after  # where a row may find several: `plan/left_join.py`
    pairs = [(pair.left.scalar, pair.right.scalar) for pair in match.pairs]
    if finding:
        pairs[0] = (Case(((conjunction(finding), pairs[0][0]),), Literal(None)), pairs[0][1])
    found = _filter_rows(right.rows, before) if before else right.rows
    rows: RelationalNode = EquiJoin(left.rows, found, tuple(pairs), outer=True, units=match.units)
    if after:
        kept: list[tuple[str, Scalar]] = [(name, ColumnReference(name)) for name in columns_of(left.rows)]
        kept += [
            (name, Case(((conjunction(after), ColumnReference(name)),), Literal(None)))
            for name in columns_of(right.rows)
        ]
        rows = Projection(rows, tuple(kept))
    fields = (*both.fields[: len(left.fields)], *map(maybe_null, both.fields[len(left.fields) :]))
    implied = (*both.implied[: len(left.implied)], *map(maybe_null, both.implied[len(left.implied) :]))
    return rows, fields, implied


def _filter_rows(rows: RelationalNode, where: list[Scalar]) -> RelationalNode:
    return Projection(rows, tuple((name, ColumnReference(name)) for name in columns_of(rows)), conjunction(where))


def match_units(left: Relation, right: Relation, pairs: list[JoinPair], node: Join) -> _Match:
    """Whose rows the joined ones are, and how many may be kept of a unit."""
    left_once = is_unique(right, [pair.theirs for pair in pairs])
    left_once = left_once or has_distinct_values(right, [pair.right.scalar for pair in pairs])
    right_once = is_unique(left, [pair.ours for pair in pairs])
    right_once = right_once or has_distinct_values(left, [pair.left.scalar for pair in pairs])
    if left.people is None and right.people is None:
        # Rows that find nothing have NULL there, which is no value; but of old questions the key stays what it is.
        once = right_once and (node.kept or not node.outer)
        return _Match(left, _as_compound(left, right, pairs), left_once, once)
    if right.people is None:
        if not left_once:
            raise refuse_not_unique(right, [pair.theirs for pair in pairs], node)
        return _Match(left, _as_compound(left, right, pairs), True, False)
    if left.people is None:
        if node.outer:
            what = f"{'RIGHT' if node.swapped else 'LEFT'} JOIN that keeps rows of a public table which match nothing"
            fix, inner = "leave the rows without a unit out", quote_as_inner(node)
            raise refuse_join(node, what, fix if inner is None else f"{fix}: {inner}", inner)
        if not right_once:
            raise refuse_not_unique(left, [pair.ours for pair in pairs], node)
        return _Match(right, _as_compound(left, right, pairs), False, True)
    match = _match_private(left, right, pairs, node)
    return replace(match, kept=replace(match.kept, chosen=_joined_bound(left, right, match, node)))


def is_unique(relation: Relation, fields: list[Field | None]) -> bool:
    """Whether no two rows share the values of these fields, as they lie."""
    if any(f is not None and f.unique for f in fields):
        return True
    columns = {f.raw for f in fields if f is not None}
    return any(key <= columns for key in relation.keys)


def _as_compound(left: Relation, right: Relation, pairs: list[JoinPair]) -> list[JoinPair]:
    """The equalities; the columns of a key of several, which makes the match unique, are taken as they lie."""
    for side, is_right in ((right, True), (left, False)):
        fields = [pair.theirs if is_right else pair.ours for pair in pairs]
        if side.people is not None or not is_unique(side, fields):
            continue
        if any(f is not None and f.unique for f in fields):
            return pairs
        key = next(key for key in side.keys if key <= {f.raw for f in fields if f is not None})
        return [_take_as_it_lies(pair, is_right) if f is not None and f.raw in key else pair
                for pair, f in zip(pairs, fields, strict=True)]  # fmt: skip
    return pairs


def _take_as_it_lies(pair: JoinPair, is_right: bool) -> JoinPair:
    found, side = (pair.theirs, pair.right) if is_right else (pair.ours, pair.left)
    assert found is not None
    raw = replace(side, scalar=ColumnReference(found.raw))
    return replace(pair, right=raw) if is_right else replace(pair, left=raw)


def _match_private(left: Relation, right: Relation, pairs: list[JoinPair], node: Join) -> _Match:
    """Private rows with private ones, on the unit of both or along a foreign key. `plan/scope.py` has the proof."""
    if left.unit is None or right.unit is None:
        what = "a join of private tables of which one has rows as its units"
        raise refuse_join(node, what, "ask about each by itself, and compute with the answers")
    if left.people != right.people:
        what = "a join of private tables about different people"
        raise refuse_join(node, what, "ask about each by itself; the owner may declare that the people are the same")
    on_unit = [pair for pair in pairs if pair.is_of_units]
    links = [pair.links for pair in pairs if pair.links is not None]
    if not on_unit and not links:
        what = "a join of private tables on anything but the unit of both"
        raise refuse_join(node, what, *suggest_units(left, right, node))
    named = any(pair.ours not in left.implied and pair.theirs not in right.implied for pair in on_unit)
    product = ContributionBounds(
        max(left.each.groups, right.each.groups),
        min(left.each.rows * right.each.rows, _MOST_ROWS),
        # Without a cap on all rows the product is no cap either: it is at least the larger k times that of the r.
        min(left.each.most * right.each.most, _MOST_ROWS),
    )
    left_once = bool(on_unit and right.single) or any(theirs.is_key for _, theirs in links)
    right_once = bool(on_unit and left.single) or any(ours.is_key for ours, _ in links)
    units = None if left_once or right_once else (left.unit, right.unit)
    pairs = [pair.as_stored() for pair in pairs]
    if named or not links:
        kept = replace(left, each=product, single=left.single and right.single)
        return _Match(kept, pairs, left_once, right_once, units)
    if any(theirs.is_key for _, theirs in links):
        return _Match(left, pairs, True, right_once)
    if any(ours.is_key for ours, _ in links):
        each = either_bounds(left.each, right.each) if node.outer else right.each
        return _Match(replace(left, each=each, single=right.single and not node.outer), pairs, left_once, True)
    each = min((product, *_bounds_by_links(left, right, links, node)), key=lambda bounds: bounds.most)
    kept = replace(left, each=each, single=left.single and right.single)
    return _Match(kept, pairs, left_once, right_once, units)


def _joined_bound(left: Relation, right: Relation, match: _Match, node: Join) -> ChosenBound | None:
    """Whether a clip is chosen for the joined rows: as for the side that they are at most as many as, or for both."""
    if match.left_once:
        return left.chosen
    if match.right_once:
        return either_chosen([left, right], sum) if node.outer else right.chosen
    return either_chosen([left, right], prod)


def either_chosen(sides: list[Relation], combine: Callable[[list[int]], int]) -> ChosenBound | None:
    """That a clip is chosen for rows of several relations, where it is for one of them."""
    if all(side.chosen is None for side in sides):
        return None
    known = [side.most_rows for side in sides if side.most_rows is not None]
    return ChosenBound(combine(known) if len(known) == len(sides) else None, all(side.has_caps for side in sides))


def _bounds_by_links(
    left: Relation, right: Relation, links: list[tuple[RowReference, RowReference]], node: Join
) -> Iterator[ContributionBounds]:
    """What is kept of a unit where a row finds, or is found by, so many others as the caps let share a key."""
    for ours, theirs in links:
        if theirs.most is not None:
            yield _multiply(left.each, theirs.most)
        if ours.most is not None:
            found = _multiply(right.each, ours.most)
            yield either_bounds(left.each, found) if node.outer else found


def _multiply(each: ContributionBounds, times: int) -> ContributionBounds:
    if times == 1:
        return each
    return ContributionBounds(each.groups, min(each.rows * times, _MOST_ROWS), min(each.most * times, _MOST_ROWS))


def either_bounds(one: ContributionBounds, other: ContributionBounds) -> ContributionBounds:
    """What is kept of a unit whose rows are of two kinds, as in a UNION ALL."""
    declared = one.total is not None or other.total is not None
    return ContributionBounds(
        max(one.groups, other.groups), one.rows + other.rows, one.most + other.most if declared else None
    )
