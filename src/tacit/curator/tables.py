"""The tables of a policy as an engine reads them, and what must hold of the columns that match their rows."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.engines.base import Engine, StoredTables, TableSchema
from tacit.errors import DataError, ErrorCode
from tacit.policy.model import ROW_UNIT, Policy, UnitForeignKey


def table_schemas(policy: Policy) -> list[TableSchema]:
    """What an engine is told of the tables."""
    links: dict[str, list[str]] = {table.name: [] for table in policy.tables}
    for table in policy.tables:
        if isinstance(table.unit, UnitForeignKey):
            links[table.name].append(table.unit.column)
            links[table.unit.table].append(table.unit.key)
    return [
        TableSchema(
            table.name,
            tuple((c.name, c.type) for c in table.columns),
            table.unit if isinstance(table.unit, str) and table.unit != ROW_UNIT else None,
            tuple(links[table.name]),
            tuple((c.name, c.zone) for c in table.columns if c.zone is not None),
        )
        for table in policy.tables
    ]


def find_live_tables(policy: Policy, engine: Engine) -> frozenset[str]:
    """The private tables that questions read where they are, so that no check excludes that a row makes one fail.

    A copy is known by the digest of what it was made of. An engine that knows of none is taken to read live.
    """
    digests: Mapping[str, str] = getattr(engine, "source_digests", dict)()
    return frozenset(table.name for table in policy.tables if not table.public and not digests.get(table.name))


def check_join_columns(policy: Policy, stored: StoredTables) -> None:
    """What the policy says is unique must be: otherwise one row could become many, or reach two units.

    What is matched must be of one type: otherwise whether a question fails could depend on a row. And it must be stored
    alike: a unit that is 7 in one table and 7.0 in another would be two units, each with a contribution of its own.
    """
    units: dict[str, tuple[str, str]] = {}
    for table in policy.tables:
        pairs = []
        if isinstance(table.unit, UnitForeignKey):
            pairs.append(((table.name, table.unit.column), (table.unit.table, table.unit.key)))
        elif table.unit is not None and table.unit != ROW_UNIT:
            here = (table.name, table.unit)
            if (first := units.setdefault(table.people, here)) != here:
                pairs.append((here, first))
        for one, other in pairs:
            if stored.type_of(*one) is not stored.type_of(*other):
                what = f"{'.'.join(one)} and {'.'.join(other)} are matched, and are of different types"
                raise DataError(ErrorCode.DATA, what, fix="store both as integers, or both as text")
            ours, theirs = stored.written_as(*one), stored.written_as(*other)
            if ours != theirs:
                what = f"{'.'.join(one)} is stored as {ours} and {'.'.join(other)} as {theirs}: one unit would be two"
                raise DataError(ErrorCode.DATA, what, fix="store both in the same type, integers or texts")
        keys: list[tuple[str, tuple[str, ...]]] = [(table.name, (c.name,)) for c in table.columns if c.unique]
        keys += [(table.name, key) for key in table.unique]
        if isinstance(table.unit, UnitForeignKey):
            keys.append((table.unit.table, (table.unit.key,)))
        for name, columns in keys:
            if not stored.is_unique(name, *columns):
                shared = "a value" if len(columns) == 1 else "their values"
                what = f"{name}.{', '.join(columns)} is declared unique, and two rows share {shared}"
                raise DataError(ErrorCode.DATA, what, fix="fix the data, or name another column")
