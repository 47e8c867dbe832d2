"""Keys from a public table that private rows are joined with: its rows are known, so they are listed, not selected.

    SELECT w.side, COUNT(*) FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.side

**Rule.** Let every key of a question have declared values, or be computed from columns of public tables that its rows
are joined with, and matched, or from columns that are equal to these in every row. Then its groups are among the
combinations of declared values and of the keys that rows of the public tables have, joined among themselves by the
equalities between them alone, where those parts of WHERE hold that are about them alone. Declared timestamps are left
out: they are too many.

*Proof.* A joined row holds one row of each public table, since it found one; these fulfil the equalities between public
tables and all parts of WHERE. So the key of the joined row is the key of that combination of public rows.

**Theorem.** The release is (epsilon, delta)-DP as that of declared keys is: see `plan/public_keys.py`. A key that no
private row has is a group of nothing, as a declared one is.

A list that is too long to be read is not taken: which keys occur is then selected as for any private key. Whether it is
too long is a function of the public tables (`Planner`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.answers.choosing_values import placeholders_of
from tacit.answers.stored import GroupKeys
from tacit.plan.connect import all_of
from tacit.plan.dependent_keys import combine, count_groups, list_dependent_keys
from tacit.plan.key_sources import KeySources, replace_parts
from tacit.plan.public_tables import PublicRead
from tacit.plan.split import MAX_GROUPS, Halves
from tacit.policy.model import Policy
from tacit.query.conditions import named_columns
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    Constants,
    EquiJoin,
    Literal,
    PerUnitAggregation,
    Projection,
    Query,
    RelationalNode,
    Scalar,
    column_names,
    find_location,
    scanned_tables,
)
from tacit.query.refusals import to_printable
from tacit.query.types import Type


@dataclass(frozen=True)
class _PublicParts:
    """The public tables that joined rows hold a row of, and what is said of these: keys, conditions and equalities."""

    keys: list[Scalar]
    conditions: list[Scalar]
    equalities: list[tuple[Scalar, Scalar]]
    tables: list[RelationalNode]


def list_joined_keys(query: Query, rows: RelationalNode, halves: Halves, policy: Policy) -> PublicRead | None:
    """The keys of a question that are read from public tables; None where one is neither in them nor declared."""
    times = [key for key, kind in zip(halves.keys, halves.key_types, strict=True) if kind is Type.TIMESTAMP]
    if not halves.keys or any(key.values is not None for key in times):
        return None
    scalars = [key.scalar for key in halves.keys]
    found = KeySources.of(rows, scalars, halves.where, lambda node: _is_public(node, policy))
    tables = [source.rows for source in found.sources if source.matched and _is_public(source.rows, policy)]
    if not tables:
        return None
    owners = {name: place for place, table in enumerate(tables) for name in column_names(table)}
    if policy.lists_dependent_keys:
        found.keys = [_in_public_columns(scalar, found.equalities, owners) for scalar in found.keys]
    parts = _PublicParts(found.keys, found.conditions, found.equalities, tables)
    groups = _connect(parts, owners)
    places = _find_read(halves, parts, owners, groups, policy)
    if not places:
        return None
    rest = [replace(key, values=None) if place in places else key for place, key in enumerate(halves.keys)]
    lists = list_dependent_keys(rest, rows, halves.where, policy)
    if count_groups(lists) > MAX_GROUPS:
        return None
    declared = [*parts.conditions]
    for place in places:
        values = halves.keys[place].values
        if values is not None:
            declared.append(Call(Function.IN, (parts.keys[place], *map(Literal, values))))
    parts = replace(parts, keys=[parts.keys[place] for place in places], conditions=declared)
    groups = _connect(parts, owners)
    wanted = dict.fromkeys(groups[owners[name]] for key in parts.keys for name in sorted(named_columns(key)))
    listed: RelationalNode | None = None
    for group in wanted:
        part = _read_group(parts, owners, [place for place, own in groups.items() if own == group])
        listed = part if listed is None else EquiJoin(listed, part, ())
    assert listed is not None
    ordered = _put_in_order(listed, halves, places, combine(lists, rest))
    return PublicRead.of(ordered, halves.key_types, MAX_GROUPS, policy, query)


def about_joined_keys(query: Query, halves: Halves) -> str:
    """What an answer says of keys that are listed from public tables, and that have no declared values."""
    keys = zip(query.keys, halves.keys, strict=True)
    places = (find_location(scalar) for scalar, key in keys if key.values is None)
    words = dict.fromkeys("the key" if at is None else to_printable(at.words) for at in places)
    return f"All values of {' and '.join(words)} in public tables are listed, whether or not a row has them."


def _is_public(rows: RelationalNode, policy: Policy) -> bool:
    tables = [policy.table(name) for name in scanned_tables(rows)]
    return all(table is not None and table.public for table in tables)


def _in_public_columns(scalar: Scalar, equalities: list[tuple[Scalar, Scalar]], owners: dict[str, int]) -> Scalar:
    """A scalar with the column of a public table for each part that is equal to it: c.region_id for r.region_id."""
    sides = [side for one, other in equalities for side in ((one, other), (other, one))]
    public = {one: other for one, other in sides if isinstance(other, ColumnReference) and other.name in owners}
    found = replace_parts(scalar, public.get)
    names = named_columns(found)
    return found if names and names <= owners.keys() else scalar


def _find_read(
    halves: Halves, parts: _PublicParts, owners: dict[str, int], groups: dict[int, int], policy: Policy
) -> list[int]:
    """The places of the keys that are read from public tables; none where a key is neither in them nor declared.

    A declared key is read too where another key is in the same tables, since not every combination of both occurs.
    """
    public: dict[int, int] = {}  # by their places, the tables that they are in
    for place, scalar in enumerate(parts.keys):
        names = named_columns(scalar)
        if names and names <= owners.keys() and not placeholders_of(scalar):
            public[place] = groups[owners[min(names)]]
        elif halves.keys[place].values is None:
            return []
    shared = {group for group in public.values() if list(public.values()).count(group) > 1}
    is_read = shared if policy.lists_dependent_keys else ()
    return [place for place, group in public.items() if halves.keys[place].values is None or group in is_read]


def _connect(parts: _PublicParts, owners: dict[str, int]) -> dict[int, int]:
    """For each public table the first of those that it goes with, by what is said of public columns alone."""
    groups = {place: place for place in range(len(parts.tables))}
    for pair in [*parts.equalities, *((each,) for each in (*parts.keys, *parts.conditions))]:
        names = [name for scalar in pair for name in named_columns(scalar)]
        if names and all(name in owners for name in names):
            joined = {groups[owners[name]] for name in names}
            groups = {place: min(joined) if found in joined else found for place, found in groups.items()}
    return groups


def _read_group(parts: _PublicParts, owners: dict[str, int], places: list[int]) -> RelationalNode:
    """The combinations of keys that the rows of public tables which are matched have: columns named after the keys."""
    here = {name for name, place in owners.items() if place in places}
    rows = parts.tables[places[0]]
    held = set(column_names(rows))
    waiting = places[1:]
    pairs = [pair for pair in parts.equalities if all(names and names <= here for names in map(named_columns, pair))]
    while waiting:
        found = next((place for place in waiting if _between(pairs, held, parts.tables[place])), waiting[0])
        waiting.remove(found)
        matched = _between(pairs, held, parts.tables[found])
        pairs = [pair for pair in pairs if pair not in matched and pair[::-1] not in matched]
        rows = EquiJoin(rows, parts.tables[found], tuple(matched))
        held |= set(column_names(parts.tables[found]))
    # An equality with a side over several tables is a condition on all of them.
    about: list[Scalar] = [Call(Function.EQUAL, pair) for pair in pairs]
    about += [part for part in parts.conditions if not placeholders_of(part)]
    where = [part for part in about if (names := named_columns(part)) and names <= here]
    keys = tuple(
        (f"k{place}", scalar) for place, scalar in enumerate(parts.keys) if not named_columns(scalar).isdisjoint(here)
    )
    named = tuple((name, ColumnReference(name)) for name, _ in keys)
    return PerUnitAggregation(Projection(rows, keys, all_of(where, None)), named, ())


def _between(pairs: list[tuple[Scalar, Scalar]], held: set[str], table: RelationalNode) -> list[tuple[Scalar, Scalar]]:
    """The equalities of a table with those that are joined already, theirs first."""
    own = set(column_names(table))
    found = [(one, other) for one, other in pairs if named_columns(one) <= held and named_columns(other) <= own]
    return found + [(other, one) for one, other in pairs if named_columns(other) <= held and named_columns(one) <= own]


def _put_in_order(
    listed: RelationalNode, halves: Halves, places: list[int], combinations: tuple[GroupKeys, ...]
) -> RelationalNode:
    """The keys in the order of the question, with each combination of those that are not read."""
    declared = [place for place in range(len(halves.keys)) if place not in places]
    if declared:
        columns = tuple((f"d{place}", halves.key_types[place]) for place in declared)
        listed = EquiJoin(listed, Constants(columns, combinations), ())
    names = [f"k{places.index(place)}" if place in places else f"d{place}" for place in range(len(halves.keys))]
    return Projection(listed, tuple((f"key{place}", ColumnReference(name)) for place, name in enumerate(names)))
