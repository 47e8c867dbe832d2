"""The columns by which tables reach their unit through others: what they name, and which of them a question needs.

A key that is not listed is read only where a question names it in a place where it was refused before, so that every
question that was answered without them is still the same one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tacit.plan.relation import RowReference
from tacit.policy.model import Policy, Table, UnitForeignKey
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    Exists,
    FromItem,
    InSubquery,
    Join,
    Query,
    Scalar,
    ScalarSubquery,
    SemiJoin,
    TableReference,
    UnionAll,
    is_star,
    walk,
    walk_clauses,
)

WantedKeys = frozenset[tuple[str, str]]
"""The names of tables in a question, and keys of theirs that are not listed, in small letters."""

NO_KEYS: WantedKeys = frozenset()


def refer(policy: Policy, table: Table, column: str, here: str) -> RowReference | None:
    """What a column of a table names, if it is a foreign key or what one refers to; `here` is where it lies.

    A key that is itself a foreign key names the row that this refers to.
    """
    is_key = column.lower() in {key.lower() for key in referenced_keys(policy, table)}
    while isinstance(table.unit, UnitForeignKey) and table.unit.column.lower() == column.lower():
        way, parent = table.unit, policy.declared_table(table.unit.table)
        assert parent is not None
        table, column = parent, way.key
    found = column.lower() in {key.lower() for key in referenced_keys(policy, table)}
    return RowReference(table.name.lower(), column.lower(), here, is_key, 1 if is_key else None) if found else None


def referenced_keys(policy: Policy, table: Table) -> list[str]:
    """The columns of a table by which others reach it."""
    return list(policy.referenced_keys.get(table.name, ()))


def unlisted_keys(policy: Policy, table: Table) -> list[str]:
    """Those of them that are neither listed nor the unit nor the way to it, one for each name.

    Those are left out by which only hidden tables reach it, and so is a listed column that is hidden.
    """
    declared = policy.declared_table(table.name) or table
    own = declared.unit.column if isinstance(declared.unit, UnitForeignKey) else declared.unit or ""
    known = {own.lower(), *(column.name.lower() for column in declared.columns)}
    keys = {key.lower(): key for key in policy.nameable_keys.get(declared.name, ()) if key.lower() not in known}
    return list(keys.values())


def find_wanted_keys(query: Query, policy: Policy, *, is_inner: bool) -> WantedKeys:
    """The keys that are not listed and that a query matches rows by, or, if it is an inner one, passes on."""
    leaves = list(leaves_of(query.source))
    hidden = [
        (leaf.alias.lower(), key.lower())
        for leaf in leaves
        if isinstance(leaf, TableReference) and (table := policy.table(leaf.table)) is not None
        for key in unlisted_keys(policy, table)
    ]
    if not hidden:
        return NO_KEYS
    named, using = set[tuple[str | None, str]](), set[str]()
    for scalar in _matching(query, is_inner=is_inner):
        named |= {
            (None if node.table is None else node.table.lower(), node.name.lower())
            for node in walk(scalar)
            if isinstance(node, ColumnReference)
        }
    for join in joins_of(query.source):
        using |= {name.lower() for name in join.using}
        if join.natural:  # those that several tables hold
            using |= {key for _, key in hidden if sum(_holds(leaf, key, policy) for leaf in leaves) > 1}
        elif not _has_equality(join):
            using |= {key for _, key in hidden}
    # How many tables have a listed column of that name, which it means in the first place.
    listed = {key: sum(_lists(leaf, key, policy) for leaf in leaves) for _, key in hidden}
    return frozenset(
        (alias, key)
        for alias, key in hidden
        if (alias, key) in named or ((None, key) in named and not listed[key]) or (key in using and listed[key] <= 1)
    )


def all_keys(source: FromItem, policy: Policy) -> WantedKeys:
    """All keys of a source that are not listed."""
    leaves = [(leaf, policy.table(leaf.table)) for leaf in leaves_of(source) if isinstance(leaf, TableReference)]
    return frozenset(
        (leaf.alias.lower(), key.lower())
        for leaf, table in leaves
        if table is not None
        for key in unlisted_keys(policy, table)
    )


def leaves_of(source: FromItem) -> Iterator[TableReference | DerivedTable | ConstantTable]:
    """The tables and subqueries of a source, from left to right."""
    if isinstance(source, Join | SemiJoin):
        yield from leaves_of(source.left)
        yield from leaves_of(source.right)
    else:
        yield source


def joins_of(source: FromItem) -> Iterator[Join | SemiJoin]:
    """The joins of a source."""
    if isinstance(source, Join | SemiJoin):
        yield source
        yield from joins_of(source.left)
        yield from joins_of(source.right)


def _has_equality(join: Join | SemiJoin) -> bool:
    """Whether a join names columns to match. One that does not is refused, with those that there are."""
    on = () if join.on is None else walk(join.on)
    return bool(join.using) or any(isinstance(node, Call) and node.function == Function.EQUAL for node in on)


def _matching(query: Query, *, is_inner: bool) -> Iterator[Scalar]:
    """The scalars of a query that match its rows with others, or pass them on."""
    yield from (join.on for join in joins_of(query.source) if join.on is not None)
    if is_inner:
        yield from (output.scalar for output in query.outputs if isinstance(output.scalar, ColumnReference))
    for clause in walk_clauses(query):
        for node in walk(clause):
            if isinstance(node, InSubquery):
                yield from (node.operand, *node.others)
            if isinstance(node, InSubquery | Exists | ScalarSubquery):
                yield from _conditions(node.query)


def _conditions(query: Query | UnionAll) -> Iterator[Scalar]:
    parts = query.parts if isinstance(query, UnionAll) else (query,)
    yield from (part.where for part in parts if part.where is not None)


def _lists(leaf: TableReference | DerivedTable | ConstantTable, name: str, policy: Policy) -> bool:
    if isinstance(leaf, ConstantTable):
        return any(column.lower() == name for column in leaf.columns)
    if isinstance(leaf, TableReference):
        table = policy.table(leaf.table)
        return table is not None and table.column(name) is not None
    first = leaf.query.parts[0] if isinstance(leaf.query, UnionAll) else leaf.query
    return any(is_star(output.scalar) or output.name.lower() == name for output in first.outputs)


def _holds(leaf: TableReference | DerivedTable | ConstantTable, name: str, policy: Policy) -> bool:
    """Whether a table has a column of that name, listed or not, that is not hidden."""
    table = policy.table(leaf.table) if isinstance(leaf, TableReference) else None
    if table is None:
        return _lists(leaf, name, policy)
    declared = policy.declared_table(table.name)
    assert declared is not None
    if name in {key.lower() for key in unlisted_keys(policy, table)}:
        return True
    own = declared.unit.column if isinstance(declared.unit, UnitForeignKey) else ""
    return (own.lower() == name and declared.column(name) is None) or _lists(leaf, name, policy)
