"""Databases from a policy alone, in pairs that differ in one unit.

No real row is read, so what is learned of these tables is nobody's. The same policy, size and seed give the same
tables. The unit that two neighbors differ in has more rows, in more groups, than the policy lets count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tacit.errors import ParameterError
from tacit.policy.model import ROW_UNIT, Column, Policy, Table, UnitForeignKey
from tacit.privacy.unit import Neighbors
from tacit.query.types import Type
from tacit.sampling.bits import ReplayBits
from tacit.sampling.uniform import draw_below
from tacit.trial import generate
from tacit.trial.generate import Style
from tacit.trial.links import (
    column_types,
    declared_name,
    free_columns,
    is_keyed_by_unit,
    key_value,
    order_by_reference,
    referenced_keys,
)

ARROW_TYPES = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.TEXT: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}
_MOST_ROWS = 600  # of one unit in one table
_MOST_GROUPS = 20  # of one unit
_MOST_UNITS = 100_000
_NOBODY = 20  # in a mixed crowd, one unit in so many has a row beside it that is nobody's
_PUBLIC = 20  # rows of a public table
_KEYS = 1000  # numbers of keys that belong to one unit; above _MOST_ROWS

_CROWDS: dict[str, Style | None] = {"mixed": None, "even": generate.even, "alike": generate.common}

Row = dict[str, Any]
Rows = dict[str, list[Row]]


@dataclass(frozen=True, eq=False)
class SyntheticDatabase:
    """The tables of a policy, as Arrow tables by name. Two databases are the same only where they are one object."""

    tables: Mapping[str, pa.Table]
    says: str = ""

    def __deepcopy__(self, memo: object) -> SyntheticDatabase:
        """Itself: nobody can write into an Arrow table."""
        return self


@dataclass(frozen=True)
class NeighboringDatabases:
    """Two databases that differ in one unit, as the policy's relation has it."""

    says: str
    one: SyntheticDatabase
    other: SyntheticDatabase


def generate_neighbors(
    policy: Policy, units: int = 100, seed: int = 0, crowds: tuple[str, ...] = ("mixed", "even")
) -> tuple[NeighboringDatabases, ...]:
    """Neighbors: for each kind of people and each crowd, every way in which one unit may stand out of it.

    A mixed crowd has all that occurs, an even one lies at the bounds by turns, and in one of units that are alike each
    has one row, in one group.
    """
    if not 1 <= units <= _MOST_UNITS:
        raise ParameterError("units", f"{units} is no size to generate", fix=f"choose from 1 to {_MOST_UNITS}")
    ways = tuple(_unit_changes(policy.neighbors))
    found = []
    kinds = tuple(dict.fromkeys(table.people for table in policy.tables if not table.public))
    for crowd in crowds:
        base = _population(policy, units, seed, _CROWDS[crowd])
        without = _database(policy, base, f"{units} units, {crowd}")
        for people in kinds:
            made = dict.fromkeys(style for _, here, there in ways for style in (here, there))
            with_one: dict[Style | None, SyntheticDatabase] = {None: without}
            for place, lone in enumerate(each for each in made if each is not None):
                sizes = _sizes(policy, people)
                if lone is generate.few:
                    sizes = dict.fromkeys(sizes, (1, 1))
                rows = _unit_rows(policy, people, units + 1 + place, sizes, lone)
                both = {name: base[name] + rows.get(name, []) for name in base}
                with_one[lone] = _database(policy, both, f"{without.says}, and one {lone.__name__}")
            whose = f" of {people}" if len(kinds) > 1 else ""
            found += [
                NeighboringDatabases(f"{says}, among {crowd} rows{whose}", with_one[here], with_one[there])
                for says, here, there in ways
            ]
    return tuple(found)


def _unit_changes(neighbors: Neighbors) -> Iterator[tuple[str, Style | None, Style | None]]:
    """What one unit is in the first database and in the second."""
    high, low, common, missing, few = generate.high, generate.low, generate.common, generate.missing, generate.few
    if neighbors is Neighbors.ADD_REMOVE:
        for style in (high, low, common, missing):
            yield f"one unit more, {style.__name__}", None, style
    else:
        for here, there in ((high, low), (common, high), (common, low), (high, missing), (low, missing), (high, few)):
            yield f"one unit replaced, {here.__name__} by {there.__name__}", here, there


def _population(policy: Policy, units: int, seed: int, style: Style | None) -> Rows:
    """The rows that both neighbors have: public ones, those of many units, and some that are nobody's."""
    bits = ReplayBits(f"tacit generates {seed}".encode())
    rows: Rows = {table.name: _public(policy, table) if table.public else [] for table in policy.tables}
    for people in dict.fromkeys(table.people for table in policy.tables if not table.public):
        for number in range(1, units + 1):
            most = 1 if style is generate.common else 3
            sizes = {t.name: 1 + draw_below(most, bits) for t in policy.tables if t.people == people and not t.public}
            made = _unit_rows(
                policy, people, number, {name: (1, size) for name, size in sizes.items()}, style, turn=number
            )
            for name, some in made.items():
                table = policy.table(name)
                assert table is not None
                for row in some:
                    if style is None:
                        row.update({c.name: generate.ordinary(c, bits) for c in free_columns(policy, table)})
                if style is None and some and table.unit != ROW_UNIT and draw_below(_NOBODY, bits) == 0:
                    some.append(dict.fromkeys(column_types(policy, table)))
                rows[name] += some
    return rows


def _sizes(policy: Policy, people: str) -> dict[str, tuple[int, int]]:
    """For each table of these people, in how many groups one unit stands out and with how many rows in each."""
    sizes = {}
    for table in policy.tables:
        if table.people == people and not table.public:
            groups = min(table.max_groups + 1, _MOST_GROUPS)
            sizes[table.name] = (groups, min(table.max_rows_per_group + 1, _MOST_ROWS // groups))
    return sizes


def _unit_rows(
    policy: Policy, people: str, number: int, sizes: dict[str, tuple[int, int]], style: Style | None, turn: int = 0
) -> Rows:
    """The rows of one unit in all tables of its people; each in its table's groups, one group after the other."""
    made: Rows = {}
    for table in order_by_reference(policy, people):
        groups, each = (1, 1) if table.unit == ROW_UNIT or is_keyed_by_unit(policy, table) else sizes[table.name]
        rows = []
        for index in range(groups * each):
            place = turn + index // each
            row = {c.name: None if style is None else style(c, place) for c in table.columns}
            if isinstance(table.unit, UnitForeignKey):
                owners = made[table.unit.table]
                key = declared_name(policy, table.unit.table, table.unit.key)
                row[declared_name(policy, table.name, table.unit.column)] = owners[index % len(owners)][key]
            elif table.unit != ROW_UNIT:
                assert isinstance(table.unit, str)
                row[declared_name(policy, table.name, table.unit)] = key_value(policy, table.name, table.unit, number)
            for key in referenced_keys(policy, table):
                if key.lower() != str(table.unit).lower():
                    row[key] = key_value(policy, table.name, key, _KEYS * number + index)
            rows.append(row)
        made[table.name] = rows
    return made


def _public(policy: Policy, table: Table) -> list[Row]:
    """The rows of a public table: unique columns hold what private columns of the same name list."""
    domains = {c.name: _domain(policy, c) for c in table.columns}
    count = min([_PUBLIC, *(len(domains[c.name]) for c in table.columns if c.unique)])
    return [{name: domain[index % len(domain)] for name, domain in domains.items()} for index in range(count)]


def _domain(policy: Policy, column: Column) -> list[Any]:
    """Distinct values that a column of a public table may hold."""
    alike = [c for t in policy.tables if not t.public for c in t.columns if c.name.lower() == column.name.lower()]
    for known in [column, *alike]:
        if known.values is not None and known.type is column.type:
            return list(known.values)
    bits = ReplayBits(column.name.encode())
    drawn = [generate.common(column, 0), *(generate.ordinary(column, bits) for _ in range(20 * _PUBLIC))]
    return list(dict.fromkeys(value for value in drawn if value is not None and value == value))  # noqa: PLR0124 - NaN


def empty_tables(policy: Policy) -> dict[str, pa.Table]:
    """The tables with no rows but public ones."""
    rows = {table.name: _public(policy, table) if table.public else [] for table in policy.tables}
    return dict(_database(policy, rows, "").tables)


def _database(policy: Policy, rows: Rows, says: str) -> SyntheticDatabase:
    tables = {}
    for table in policy.tables:
        kinds = column_types(policy, table)
        columns = {
            name: pa.array([row[name] for row in rows[table.name]], ARROW_TYPES[kind]) for name, kind in kinds.items()
        }
        tables[table.name] = pa.table(columns)
    return SyntheticDatabase(tables, says)
