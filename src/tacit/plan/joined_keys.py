"""Keys from a public table that private rows are joined with: its rows are known, so they are listed, not selected.

    SELECT w.side, COUNT(*) FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.side

**Rule.** Let every key of a question have declared values, or be computed from columns of public tables that its rows
are joined with, and matched. Then its groups are among the combinations of declared values and of the keys that rows of
the public tables have, joined among themselves by the equalities between them alone, where those parts of WHERE hold
that are about them alone. Declared timestamps are left out: they are too many.

*Proof.* A joined row holds one row of each public table, since it found one; these fulfil the equalities between public
tables and all parts of WHERE. So the key of the joined row is the key of that combination of public rows.

**Theorem.** The release is (epsilon, delta)-DP as that of declared keys is: see `plan/public_keys.py`. A key that no
private row has is a group of nothing, as a declared one is.

A list that is too long to be read is not taken: which keys occur is then selected as for any private key. Whether it is
too long is a function of the public tables (`Planner`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

from tacit.answers.choosing_values import placeholders_of
from tacit.plan.connect import all_of
from tacit.plan.public_tables import PublicRead
from tacit.plan.split import MAX_GROUPS, Halves
from tacit.policy.model import Policy
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    Clamp,
    ColumnReference,
    Constants,
    EquiJoin,
    GroupKey,
    PerUnitAggregation,
    Projection,
    Quantize,
    Query,
    RelationalNode,
    Scalar,
    ToFloat,
    column_names,
    find_location,
    rebuild,
    scanned_tables,
    walk,
)
from tacit.query.refusals import to_printable
from tacit.query.types import Type


@dataclass
class _PublicParts:
    """The public tables that joined rows hold a row of, and what is said of these: keys, conditions and equalities."""

    keys: list[Scalar]
    conditions: list[Scalar]
    equalities: list[tuple[Scalar, Scalar]] = field(default_factory=list)
    tables: list[RelationalNode] = field(default_factory=list)


def list_joined_keys(query: Query, rows: RelationalNode, halves: Halves, policy: Policy) -> PublicRead | None:
    """The keys of a question that are read from public tables; None where one is neither in them nor declared."""
    private = [key for key in halves.keys if key.values is None]
    times = [key for key, kind in zip(halves.keys, halves.key_types, strict=True) if kind is Type.TIMESTAMP]
    if not private or any(key.values is not None for key in times):
        return None
    parts = _PublicParts([key.scalar for key in private], conjuncts(halves.where))
    _collect(rows, parts, policy)
    owners = {name: place for place, table in enumerate(parts.tables) for name in column_names(table)}
    if not all(names and names <= owners.keys() for names in map(_names, parts.keys)):
        return None
    combinations = 1
    for key in halves.keys:
        combinations *= 1 if key.values is None else len(key.values)
    if combinations > MAX_GROUPS:
        return None
    groups = _connect(parts, owners)
    wanted = dict.fromkeys(groups[owners[name]] for key in parts.keys for name in sorted(_names(key)))
    listed: RelationalNode | None = None
    for group in wanted:
        part = _read_group(parts, owners, [place for place, found in groups.items() if found == group])
        listed = part if listed is None else EquiJoin(listed, part, ())
    assert listed is not None
    return PublicRead.of(_put_in_order(listed, halves, private), halves.key_types, MAX_GROUPS, policy, query)


def about_joined_keys(query: Query, halves: Halves) -> str:
    """What an answer says of keys that are listed from public tables."""
    keys = zip(query.keys, halves.keys, strict=True)
    places = (find_location(scalar) for scalar, key in keys if key.values is None)
    words = dict.fromkeys("the key" if at is None else to_printable(at.words) for at in places)
    return f"All values of {' and '.join(words)} in public tables are listed, whether or not a row has them."


def _collect(rows: RelationalNode, parts: _PublicParts, policy: Policy) -> None:
    """Find the public tables below, in terms of whose columns the keys, the conditions and the equalities are put."""
    if _is_public(rows, policy):
        parts.tables.append(rows)
        return
    match rows:
        case Projection(source, columns, where):
            known = dict(columns)
            parts.keys = [_replace(scalar, known) for scalar in parts.keys]
            parts.conditions = [_replace(scalar, known) for scalar in parts.conditions] + conjuncts(where)
            parts.equalities = [(_replace(one, known), _replace(other, known)) for one, other in parts.equalities]
            _collect(source, parts, policy)
        case EquiJoin(left, right, on, outer):
            if not outer:
                parts.equalities += on
                _collect(right, parts, policy)
            _collect(left, parts, policy)


def _is_public(rows: RelationalNode, policy: Policy) -> bool:
    tables = [policy.table(name) for name in scanned_tables(rows)]
    return all(table is not None and table.public for table in tables)


def _replace(scalar: Scalar, known: dict[str, Scalar]) -> Scalar:
    """A scalar of plans, in which values are clamped and quantized, with other scalars for its columns."""

    def change(node: Scalar) -> Scalar | None:
        match node:
            case ColumnReference(name):
                return known.get(name)
            case Clamp(operand) | ToFloat(operand) | Quantize(operand):
                return replace(node, operand=rebuild(operand, change))
        return None

    return rebuild(scalar, change)


def _names(scalar: Scalar) -> frozenset[str]:
    return frozenset(node.name for node in walk(scalar) if isinstance(node, ColumnReference))


def _connect(parts: _PublicParts, owners: dict[str, int]) -> dict[int, int]:
    """For each public table the first of those that it goes with, by what is said of public columns alone."""
    groups = {place: place for place in range(len(parts.tables))}
    for pair in [*parts.equalities, *((each,) for each in (*parts.keys, *parts.conditions))]:
        names = [name for scalar in pair for name in _names(scalar)]
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
    pairs = [pair for pair in parts.equalities if all(names and names <= here for names in map(_names, pair))]
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
    where = [part for part in about if (names := _names(part)) and names <= here]
    keys = tuple(
        (f"k{place}", scalar) for place, scalar in enumerate(parts.keys) if not _names(scalar).isdisjoint(here)
    )
    named = tuple((name, ColumnReference(name)) for name, _ in keys)
    return PerUnitAggregation(Projection(rows, keys, all_of(where, None)), named, ())


def _between(pairs: list[tuple[Scalar, Scalar]], held: set[str], table: RelationalNode) -> list[tuple[Scalar, Scalar]]:
    """The equalities of a table with those that are joined already, theirs first."""
    own = set(column_names(table))
    found = [(one, other) for one, other in pairs if _names(one) <= held and _names(other) <= own]
    return found + [(other, one) for one, other in pairs if _names(other) <= held and _names(one) <= own]


def _put_in_order(listed: RelationalNode, halves: Halves, private: list[GroupKey]) -> RelationalNode:
    """The keys in the order of the question, with each combination of those that are declared."""
    declared = [place for place, key in enumerate(halves.keys) if key.values is not None]
    if declared:
        columns = tuple((f"d{place}", halves.key_types[place]) for place in declared)
        values = tuple(product(*(halves.keys[place].values or () for place in declared)))
        listed = EquiJoin(listed, Constants(columns, values), ())
    keys = enumerate(halves.keys)
    names = [f"k{private.index(key)}" if key.values is None else f"d{place}" for place, key in keys]
    return Projection(listed, tuple((f"key{place}", ColumnReference(name)) for place, name in enumerate(names)))
