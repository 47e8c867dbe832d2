"""Joins that keep every row one unit's. The rules are in `plan/scope.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.constants import count_combinations, evaluate_constants, has_distinct_values
from tacit.plan.range_join import find_range
from tacit.plan.relation import Field, Relation, RowReference, condition
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    Case,
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
    find_location,
    walk,
)
from tacit.query.suggest import quote_scalar
from tacit.query.types import Type

_MOST_KEYS = 20  # of rows that two tables make together
_MOST_COMBINATIONS = 100_000  # of the rows of tables in the text


@dataclass(frozen=True)
class JoinPair:
    """An equality between two relations: on each side the field, if it is one, and the scalar."""

    ours: Field | None
    theirs: Field | None
    left: TypedScalar
    right: TypedScalar

    @property
    def is_of_units(self) -> bool:
        """Whether both sides are units."""
        return self.ours is not None and self.theirs is not None and self.ours.is_unit and self.theirs.is_unit

    @property
    def links(self) -> tuple[RowReference, RowReference] | None:
        """What both sides name, where equal values name the same row of a private table."""
        one = None if self.ours is None else self.ours.link
        other = None if self.theirs is None else self.theirs.link
        return None if one is None or other is None or not one.names_same_row(other) else (one, other)

    def as_stored(self) -> JoinPair:
        """The equality of what is stored, where both sides name a row: clamped, two keys could be equal."""
        if self.links is None:
            return self
        one, other = (ColumnReference(link.column) for link in self.links)
        return replace(self, left=replace(self.left, scalar=one), right=replace(self.right, scalar=other))


@dataclass(frozen=True)
class _Match:
    """How rows match: whose the joined rows are, and whether a row of each side finds at most one of the other."""

    kept: Relation
    pairs: list[JoinPair]
    left_once: bool
    right_once: bool


def join_relations(left: Relation, right: Relation, node: Join, new_names: Iterator[str]) -> Relation:
    """The join of two relations, or Refused where a row could become another unit's or too many."""
    if node.natural:
        node = replace(node, using=common_names(left, right, node))
    if node.outer:
        right = _fill_right_side(right, new_names)
    both = put_together(left, right, node)
    pairs, rest = _pairs(left, right, both, node)
    if node.is_cross and _has_constants(left, right):
        return _cross(left, right, both, node)
    if not pairs:
        ranged = find_range(left, right, both, rest)
        if ranged is None:
            raise _without_equality(left, right, node)
        pairs, rest = [JoinPair(None, None, ranged.left, ranged.right)], ranged.rest
    match = match_units(left, right, pairs, node)
    both = _keep_uniqueness(both, left, right, match)
    if node.outer:
        rows, fields, implied = _match_outer(left, right, both, match, rest, node)
    else:
        rows = EquiJoin(left.rows, right.rows, tuple((p.left.scalar, p.right.scalar) for p in match.pairs))
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
        raise _refuse(node, what, "say which of their rows match, or write fewer rows")
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
        pairs[0] = (Case(((_all_of(finding), pairs[0][0]),), Literal(None)), pairs[0][1])
    found = _filter_rows(right.rows, before) if before else right.rows
    rows: RelationalNode = EquiJoin(left.rows, found, tuple(pairs), outer=True)
    if after:
        kept: list[tuple[str, Scalar]] = [(name, ColumnReference(name)) for name in columns_of(left.rows)]
        kept += [
            (name, Case(((_all_of(after), ColumnReference(name)),), Literal(None))) for name in columns_of(right.rows)
        ]
        rows = Projection(rows, tuple(kept))
    fields = (*both.fields[: len(left.fields)], *map(maybe_null, both.fields[len(left.fields) :]))
    implied = (*both.implied[: len(left.implied)], *map(maybe_null, both.implied[len(left.implied) :]))
    return rows, fields, implied


def _filter_rows(rows: RelationalNode, where: list[Scalar]) -> RelationalNode:
    return Projection(rows, tuple((name, ColumnReference(name)) for name in columns_of(rows)), _all_of(where))


def _all_of(conditions: list[Scalar]) -> Scalar:
    return conditions[0] if len(conditions) == 1 else Call(Function.AND, tuple(conditions))


def common_names(left: Relation, right: Relation, node: Join) -> tuple[str, ...]:
    """The columns that a NATURAL JOIN matches: those of the same name, listed or not."""
    theirs = {f.name.lower() for f in _own_columns(right)}
    common = tuple(dict.fromkeys(f.name for f in _own_columns(left) if f.name.lower() in theirs))
    if not common:
        what = f"a NATURAL JOIN of {left.sources[0]} and {right.sources[0]}, which share no column,"
        raise _refuse(node, what, "say which columns match")
    return common


def _own_columns(relation: Relation) -> list[Field]:
    """The columns that rows have: a unit that is reached through another table is none."""
    fields = [f for f in relation.fields if not f.hidden and not f.is_internal]
    return fields + [f for f in relation.implied if not f.hidden and f.link is not None]


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
        case Constants(columns):
            yield from (name for name, _ in columns)
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
            raise _not_unique(right, [pair.theirs for pair in pairs], node)
        return _Match(left, _as_compound(left, right, pairs), True, False)
    if left.people is None:
        if node.outer:
            what = f"{'RIGHT' if node.swapped else 'LEFT'} JOIN that keeps rows of a public table which match nothing"
            fix, inner = "leave the rows without a unit out", _as_inner(node)
            raise _refuse(node, what, fix if inner is None else f"{fix}: {inner}", inner)
        if not right_once:
            raise _not_unique(left, [pair.ours for pair in pairs], node)
        return _Match(right, _as_compound(left, right, pairs), False, True)
    return _match_private(left, right, pairs, node)


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
        raise _refuse(node, what, "ask about each by itself, and compute with the answers")
    if left.people != right.people:
        what = "a join of private tables about different people"
        raise _refuse(node, what, "ask about each by itself; the owner may declare that the people are the same")
    on_unit = [pair for pair in pairs if pair.is_of_units]
    links = [pair.links for pair in pairs if pair.links is not None]
    if not on_unit and not links:
        what = "a join of private tables on anything but the unit of both"
        raise _refuse(node, what, *_unit_fix(left, right, node))
    named = any(pair.ours not in left.implied and pair.theirs not in right.implied for pair in on_unit)
    product = ContributionBounds(
        max(left.each.groups, right.each.groups),
        left.each.rows * right.each.rows,
        # Without a cap on all rows the product is no cap either: it is at least the larger k times that of the r.
        left.each.most * right.each.most,
    )
    left_once = bool(on_unit and right.single) or any(theirs.is_key for _, theirs in links)
    right_once = bool(on_unit and left.single) or any(ours.is_key for ours, _ in links)
    if named or not links:
        kept = replace(left, each=product, single=left.single and right.single)
        return _Match(kept, pairs, left_once, right_once)
    pairs = [pair.as_stored() for pair in pairs]
    if any(theirs.is_key for _, theirs in links):
        return _Match(left, pairs, True, right_once)
    if any(ours.is_key for ours, _ in links):
        each = either_bounds(left.each, right.each) if node.outer else right.each
        return _Match(replace(left, each=each, single=right.single and not node.outer), pairs, left_once, True)
    each = min((product, *_bounds_by_links(left, right, links, node)), key=lambda bounds: bounds.most)
    return _Match(replace(left, each=each, single=left.single and right.single), pairs, left_once, right_once)


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
    return each if times == 1 else ContributionBounds(each.groups, each.rows * times, each.most * times)


def either_bounds(one: ContributionBounds, other: ContributionBounds) -> ContributionBounds:
    """What is kept of a unit whose rows are of two kinds, as in a UNION ALL."""
    declared = one.total is not None or other.total is not None
    return ContributionBounds(
        max(one.groups, other.groups), one.rows + other.rows, one.most + other.most if declared else None
    )


def _as_inner(node: Join) -> str | None:
    """An outer join as the question has it, less the word that makes it one."""
    if node.at is None:
        return None
    return re.sub(r"\b(LEFT|RIGHT)\s+(OUTER\s+)?JOIN\b", "JOIN", node.at.written, count=1, flags=re.IGNORECASE)


def _unit_fix(left: Relation, right: Relation, node: Join) -> tuple[str, str | None]:
    match = suggest_match(left, right)
    if match is None:
        return "select the unit on both sides, and add it to the condition", None
    return f"add the unit to the condition: {match}", _add_match(node, match)


def _add_match(node: Join, match: str) -> str | None:
    """A join as the question has it, with one more equality, or with that alone where its columns are compared."""
    at, on = node.at, None if node.on is None else find_location(node.on)
    if at is None:
        return None
    if node.on is None and not node.using and not node.natural:
        return None
    if node.using:
        names = {side.rpartition(".")[2] for side in match.split(" = ")}
        return f"{at.written[:-1]}, {names.pop()})" if len(names) == 1 and at.written.endswith(")") else None
    if on is None or not at.start < on.start <= on.end <= at.end:
        return None
    assert node.on is not None
    compared = {quote_scalar(part) for part in walk(node.on) if isinstance(part, ColumnReference)}
    matched = set(match.split(" = "))
    if compared <= matched:
        return at.text[at.start : on.start] + match + at.text[on.end : at.end]
    for part in walk(node.on):
        if (
            isinstance(part, Call)
            and part.function != Function.EQUAL
            and matched == set(map(quote_scalar, part.arguments))
        ):
            return None  # as in a.id <> b.id, which it would contradict
    both = f"({on.written}) AND {match}"
    return at.text[at.start : on.start] + both + at.text[on.end : at.end]


def _connect_match(node: Join, match: str) -> tuple[str, str | None]:
    """How to match the rows of a comma or a CROSS JOIN, and the question that does."""
    at = node.at
    words = [] if at is None else at.text[: at.start].rsplit(maxsplit=2)
    if at is not None and words and words[-1].endswith(","):
        before = at.text[: at.start].rstrip().removesuffix(",")
    elif at is not None and [word.upper() for word in words[1:]] == ["CROSS", "JOIN"]:
        before = words[0]
    else:
        return f"say which of their rows match: {match}", None
    joined = f"JOIN {at.written} ON {match}"
    return f"say which of their rows match: {joined}", f"{before} {joined}{at.text[at.end :]}"


def suggest_match(left: Relation, right: Relation) -> str | None:
    """An equality by which rows may be matched, from what the policy declares: None where there is none.

    Along a foreign key, on the unit, or on a unique column of a public table and one of the same name.
    """
    ours, theirs = (tuple(f for f in (*r.fields, *r.implied) if not f.hidden) for r in (left, right))
    keys = [(one, other) for one in ours if _is_key(one) for other in theirs]
    keys += [(one, other) for other in theirs if _is_key(other) for one in ours if not _is_key(one)]
    private = left.people is not None and left.people == right.people
    public = left.people is None or right.people is None

    def rank(one: Field, other: Field) -> int | None:
        if private and JoinPair(one, other, one.bound, other.bound).links is not None:
            return 0
        if private and one.is_unit and other.is_unit:
            return 1
        alike = one.bound.type is other.bound.type and one.name.lower() == other.name.lower()
        return 2 if public and alike and (one.unique or other.unique) else None

    ranked = [(found, pair) for pair in keys if (found := rank(*pair)) is not None]
    if not ranked:
        return None
    best = min(ranked, key=lambda item: item[0])[1]
    return " = ".join(f"{quote(f.source)}.{quote(f.name)}" for f in best)


def _is_key(found: Field) -> bool:
    return found.is_unit or found.unique or found.link is not None


def quote(name: str) -> str:
    """A name as a question writes it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _without_equality(left: Relation, right: Relation, node: Join) -> Refused:
    one, other = left.sources[0], right.sources[0]
    match = suggest_match(left, right)
    if node.is_cross:
        what = f"{one} with {other} without an equality of their columns"
        if match is None:
            return _refuse(node, what, "say which of their rows match, by an equality of columns")
        fix, suggestion = _connect_match(node, match)
        return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=node.at, fix=fix, suggestion=suggestion)
    what = "a join without an equality of columns"
    if match is None:
        return _refuse(node, what, "match a column of each with =")
    return _refuse(node, what, f"match a column of each: {match}", _add_match(node, match))


def conjuncts(scalar: Scalar | None) -> list[Scalar]:
    """The conditions that must all hold."""
    if scalar is None:
        return []
    return list(scalar.arguments) if isinstance(scalar, Call) and scalar.function == Function.AND else [scalar]


def common_equalities(scalar: Scalar) -> list[Scalar]:
    """The equalities that every branch of an OR has: where it holds, so do they."""
    if not isinstance(scalar, Call) or scalar.function != Function.OR:
        return []
    first, *others = [conjuncts(branch) for branch in scalar.arguments]
    equal = (part for part in first if isinstance(part, Call) and part.function == Function.EQUAL)
    return [part for part in equal if all(part in branch for branch in others)]


def find_pairs(left: Relation, right: Relation, node: Join) -> tuple[list[JoinPair], list[Scalar]]:
    """The equalities of a join between two relations, and the conditions that are none."""
    return _pairs(left, right, put_together(left, right, node), node)


def put_together(left: Relation, right: Relation, node: Join) -> Relation:
    """The names of both sides."""
    names = (*left.sources, *right.sources)
    if len({name.lower() for name in names}) < len(names):
        fix = "give each a name of its own"
        raise Refused(ErrorCode.AMBIGUOUS, "two tables of this question have the same name", at=node.at, fix=fix)
    fields = (*left.fields, *_hide_using_columns(right.fields, node.using))
    implied = (*left.implied, *_hide_using_columns(right.implied, node.using))
    return replace(left, fields=fields, sources=names, implied=implied)


def _pairs(left: Relation, right: Relation, both: Relation, node: Join) -> tuple[list[JoinPair], list[Scalar]]:
    """The equalities between the two sides, and the conditions that are none."""
    pairs: list[JoinPair] = []
    rest: list[Scalar] = []
    for name in node.using:
        column = ColumnReference(name, at=node.at)
        pairs.append(make_pair(left, right, column, column))
    for part in conjuncts(node.on):
        sides = _sides(part, left, both)
        if sides is None:
            rest.append(part)
        else:
            pairs.append(make_pair(left, right, *sides))
    if not pairs:
        found = (_sides(part, left, both) for one in rest for part in common_equalities(one))
        pairs = [make_pair(left, right, *sides) for sides in found if sides is not None]
    return pairs, rest


def _sides(part: Scalar, left: Relation, both: Relation) -> tuple[Scalar, Scalar] | None:
    """The sides of an equality, the left relation's first, if each side is about one relation only."""
    if not isinstance(part, Call) or part.function != Function.EQUAL:
        return None
    ours = {id(f) for f in (*left.fields, *left.implied)}
    about = []
    for side in part.arguments:
        found = {id(both.field_of(n, links=True)) in ours for n in walk(side) if isinstance(n, ColumnReference)}
        about.append(found.pop() if len(found) == 1 else None)
    if about == [True, False]:
        return part.arguments[0], part.arguments[1]
    return (part.arguments[1], part.arguments[0]) if about == [False, True] else None


def make_pair(left: Relation, right: Relation, ours: Scalar, theirs: Scalar) -> JoinPair:
    """An equality between two relations, or Refused where its sides cannot be compared."""
    one, first = _side(left, ours)
    two, second = _side(right, theirs)
    pair = JoinPair(one, two, first, second)
    for relation, found, scalar in ((left, one, ours), (right, two, theirs)):
        if found is not None and found.is_unlisted_link and pair.links is None:
            assert isinstance(scalar, ColumnReference)
            raise relation.no_column(scalar)
    if first.type is not second.type and None not in (first.type, second.type):
        what = f"{first.type} and {second.type} do not go together"
        raise Refused(ErrorCode.TYPE, what, at=getattr(ours, "at", None), fix="join columns of one type")
    if first.type is Type.FLOAT:
        what = "a join on floats is not answered"
        raise Refused(
            ErrorCode.UNSUPPORTED, what, at=getattr(ours, "at", None), fix="join on int, text or date columns"
        )
    return pair


def _side(relation: Relation, scalar: Scalar) -> tuple[Field | None, TypedScalar]:
    """One side of an equality. A unit, and what is unique, is taken as it lies: clamped, two of them could be equal."""
    scalar = relation.bare(scalar)
    found = relation.field_of(scalar, links=True) if isinstance(scalar, ColumnReference) else None
    if found is not None and found.is_unit and relation.unit is not None:
        return found, replace(found.bound, scalar=ColumnReference(relation.unit))
    if found is not None and found.is_unlisted_link:
        return found, found.bound
    if found is not None and found.unique:
        return found, replace(found.bound, scalar=ColumnReference(found.raw))
    return found, relation.bind(scalar)


def _hide_using_columns(fields: tuple[Field, ...], using: tuple[str, ...]) -> tuple[Field, ...]:
    """The right side's fields, those of USING by their qualified names only."""
    names = {name.lower() for name in using}
    return tuple(replace(f, hidden=True) if f.name.lower() in names else f for f in fields)


def maybe_null(found: Field) -> Field:
    """A field of the outer side: NULL where nothing matches. Its unit is the row's, or NULL."""
    matched = found.is_matched_unit or (found.is_unit and found.bound.type is None)
    return replace(found, bound=replace(found.bound, nullable=True), is_unit=False, is_matched_unit=matched)


def _not_unique(public: Relation, on: list[Field | None], node: Join) -> Refused:
    """Which column of the public side it is that rows may share, and the one that they do not."""
    named = next((f"{f.source}.{f.name}" for f in on if f is not None), f"an expression of {public.sources[0]}")
    unique = next((f"{f.source}.{f.name}" for f in public.fields if f.unique), None)
    fix = "join the public table itself, on a column that is unique there"
    if unique is not None:
        fix = f"join on {unique}"
    elif isinstance(public.rows, Scan):
        fix = f"ask the owner to declare a unique column of {public.rows.table}"
    return _refuse(
        node,
        f"a join on {named}, which several rows may share,",
        fix,
    )


def _refuse(node: Join, what: str, fix: str, instead: str | None = None) -> Refused:
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=node.at, fix=fix, instead=instead)
