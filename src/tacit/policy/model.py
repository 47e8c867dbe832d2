"""The policy as frozen values. Everything in it is public: plans, privacy losses and refusals follow from it alone."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from tacit.privacy.unit import Neighbors
from tacit.query.dialects import QuestionDialect as QuestionDialect
from tacit.query.types import Key as Key
from tacit.query.types import Type as Type

ROW_UNIT = "row"
ENGINES = ("duckdb", "postgres", "spark")  # the first is the default
IN_MEMORY = "memory"
"""In place of a file, where the data is read into memory."""


def is_database_url(source: str) -> bool:
    """Whether a source is the URL of a PostgreSQL database."""
    return source.startswith(("postgresql://", "postgres://"))


@dataclass(frozen=True)
class Column:
    """A column that analysts may name.

    `lower` and `upper` bound a number, a date or a timestamp: a value outside is read as the nearest bound; those of a
    date are days as `date.toordinal` counts them, those of a timestamp microseconds (`query/timestamps.py`). `zone` is
    where the clock hangs whose times a timestamp or a date has; None is UTC. `step` is the grid of a float. `values`
    are the public keys of GROUP BY: every one appears in an answer, and a value outside belongs to no group, or to the
    key `other`. `unique` says of a public table's column that no two rows share a value. Where a number is not
    `nullable`, a missing one is read as `lower`: then COUNT(*) serves its average too, which leaves more of the epsilon
    to the sum.
    """

    name: str
    type: Type
    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    values: tuple[Key, ...] | None = None
    other: Key | None = None
    unique: bool = False
    nullable: bool = True
    zone: str | None = None


@dataclass(frozen=True)
class UnitForeignKey:
    """How a table reaches its unit: `column` names a row of `table` by its unique `key`, and the unit is that row's."""

    column: str
    table: str
    key: str

    def __str__(self) -> str:
        return f"that of {self.table} by {self.column} = {self.key}"


@dataclass(frozen=True)
class Table:
    """A table. `unit` is `row`, or the column that says whose row it is, or the way to the table that has it.

    The units of two tables are the same people where `people` is the same. A public table has no unit. Of one unit at
    most `max_groups` groups and `max_rows_per_group` rows in each count in an answer, and at most `max_rows` in all,
    which is None where it is not declared. `unique` are lists of columns of a public table that no two rows share.

    With `auto`, how much one unit may add (a clip) is chosen privately for each question, and is at most what
    `auto_up_to` rows add where that is declared. The caps above then hold for questions that cannot use a clip, and
    `has_caps` says whether there are any: declared, or implied by `auto_up_to`. Where there are none, `max_groups` is
    the number of private keys of a unit that are looked at when deciding which keys are shown, and
    `max_rows_per_group` is the most that a policy can declare.
    """

    name: str
    unit: str | UnitForeignKey | None
    columns: tuple[Column, ...]
    max_groups: int = 1
    max_rows_per_group: int = 1
    people: str = ""
    max_rows: int | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    auto: bool = False
    auto_up_to: int | None = None
    has_caps: bool = True

    @property
    def public(self) -> bool:
        """Whether its rows are nobody's."""
        return self.unit is None

    def column(self, name: str) -> Column | None:
        """The column of that name in any case, or None."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class PrivacyBudget:
    """A cap on what may be spent."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class DeclaredAnalyst:
    """Someone who may ask, up to a cap of their own: in all, or in each calendar month.

    `access` is what they may name, where that is not everything that the policy declares.
    """

    name: str
    budget: PrivacyBudget
    monthly: bool = False
    access: TableAccess | None = None


@dataclass(frozen=True)
class TableAccess:
    """What an analyst may name: for each table its columns, or None for all of them. Other tables are hidden.

    Names are as the policy spells them.
    """

    tables: tuple[tuple[str, tuple[str, ...] | None], ...]

    def columns_of(self, table: Table) -> tuple[Column, ...] | None:
        """The columns of a table that may be named; None where the table is hidden."""
        found = dict(self.tables)
        if table.name not in found:
            return None
        named = found[table.name]
        return table.columns if named is None else tuple(c for c in table.columns if c.name in named)

    def __str__(self) -> str:
        parts = (name if columns is None else f"{name} ({', '.join(columns)})" for name, columns in self.tables)
        return ", ".join(parts)


@dataclass(frozen=True)
class LedgerLocation:
    """Where spending is recorded: a file or a PostgreSQL database, the key that signs it, the witness outside it."""

    store: Path | str
    key: Path
    witness: Path


@dataclass(frozen=True)
class Policy:
    """The whole of it. `source` and `books` are None where data frames or a ledger are handed over at open.

    `source` is a file or folder for duckdb, a database's URL for postgres, a schema of the catalog for spark.
    `copy` is where duckdb reads it to: a file, or memory (`IN_MEMORY`); where it is None, its size decides. `today` is
    the date, or the time, that CURRENT_DATE and NOW() stand for; a question that names it holds it as a constant, so it
    is no part of the digest. Nor is `dialect`, which says how questions are read.

    `tables` are those that a question may name, with the columns that it may name. Where an analyst may not name all,
    `asked_by` has them as this analyst sees them, and `all_tables` as they are declared, in `declared_tables`.
    """

    source: Path | str | None
    epoch: int
    books: LedgerLocation | None
    neighbors: Neighbors
    budget: PrivacyBudget
    delta_per_question: Fraction
    tables: tuple[Table, ...]
    analysts: tuple[DeclaredAnalyst, ...]
    engine: str = ENGINES[0]
    copy: Path | str | None = None
    has_delta: bool = True  # for whoever asks
    lists_joined_keys: bool = True  # of public tables; not where these are too long
    lists_dependent_keys: bool = True  # in the combinations that occur; not in earlier versions
    weighs_keys: bool = True  # private ones, where a clip is chosen; not in earlier versions
    clips_l2: bool = True  # with Gaussian noise, where a clip is chosen; not in earlier versions
    has_fine_grids: bool = True  # for floats that have none, or one that is too fine; not in earlier versions
    today: datetime.date | None = None
    dialect: QuestionDialect = QuestionDialect.POSTGRES
    access: TableAccess | None = None  # what may be named, where `tables` are as one analyst sees them
    declared_tables: tuple[Table, ...] | None = None  # then all of them

    def table(self, name: str) -> Table | None:
        """The table of that name in any case, or None where there is none that may be named."""
        return next((t for t in self.tables if t.name.lower() == name.lower()), None)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """All tables as they are declared, hidden ones too."""
        return self.tables if self.declared_tables is None else self.declared_tables

    def declared_table(self, name: str) -> Table | None:
        """The table of that name in any case as it is declared, hidden or not; None where there is none."""
        return next((t for t in self.all_tables if t.name.lower() == name.lower()), None)

    def analyst(self, name: str) -> DeclaredAnalyst | None:
        """The analyst of exactly that name, or None."""
        return next((a for a in self.analysts if a.name == name), None)

    @property
    def live_tables(self) -> frozenset[str]:
        """The private tables that the policy's engine reads whenever they are asked about, and not from a copy."""
        live = self.engine != ENGINES[0]
        return frozenset(table.name for table in self.all_tables if live and not table.public)

    @property
    def has_ascii_case(self) -> bool:
        """Whether LOWER and UPPER may change the letters A to Z alone, as they do in PostgreSQL before version 17."""
        return self.engine == "postgres"

    def asked_by(self, name: str) -> Policy:
        """The policy for the questions of one analyst: what they may name, and no delta where their budget has none.

        **Rule.** What the analyst may not name is left out of `tables`, and nothing else is: `digest`, the relation,
        caps and the way to each unit are those of the whole policy, through hidden tables too. So a question that names
        nothing hidden has the same plan, key, privacy loss and answer for every analyst whose budget has a delta, and
        one that does is refused as if what it names were not declared.

        **Theorem.** Restrictions never weaken privacy. Proof: an analyst who is restricted is answered a subset of the
        questions that they could ask without it, each at the same loss and charged to the same ledger; the policy's
        promise holds for every choice of questions (`curator/ask.py`).

        A restriction is no promise of its own: analysts may tell each other what they were answered, all of them draw
        on the overall budget, and what is left of that tells that others ask. The unit's name is always told, with the
        caps of the tables that may be named.
        """
        analyst = self.analyst(name)
        if analyst is None:
            return self
        view = self if analyst.access is None else self.restrict(analyst.access)
        return view if analyst.budget.delta > 0 else view._without_delta

    @cached_property
    def _without_delta(self) -> Policy:
        return replace(self, has_delta=False)

    @cached_property
    def _views(self) -> dict[TableAccess, Policy]:
        return {}

    def restrict(self, access: TableAccess) -> Policy:
        """The policy in which only this may be named, as `asked_by` has it; made once."""
        if access not in self._views:
            pairs = ((table, access.columns_of(table)) for table in self.tables)
            shown = {table.name: columns for table, columns in pairs if columns is not None}
            tables = tuple(self._show_table(table, shown) for table in self.tables if table.name in shown)
            self._views[access] = replace(self, tables=tables, access=access, declared_tables=self.all_tables)
        return self._views[access]

    def _show_table(self, table: Table, shown: Mapping[str, tuple[Column, ...]]) -> Table:
        """A table as an analyst sees it who may name what is shown: with no name in it of what is hidden.

        Where the way to its unit runs through something hidden, only the unit's name is told; rows can still be joined
        on the column that leads there. People who are called after a hidden table are called after the first table of
        theirs that is shown.
        """
        columns, unit, people = shown[table.name], table.unit, table.people
        hidden = {c.name.lower() for c in table.columns} - {c.name.lower() for c in columns}
        if isinstance(unit, UnitForeignKey):
            above = self.declared_table(unit.table)
            assert above is not None
            there = {c.name.lower() for c in above.columns} - {c.name.lower() for c in shown.get(above.name, ())}
            if above.name not in shown or unit.key.lower() in there or unit.column.lower() in hidden:
                unit = self.unit_name(table)
        is_table = people.lower() in {t.name.lower() for t in self.all_tables}
        if is_table and people.lower() not in {name.lower() for name in shown}:
            people = next(t.name for t in self.all_tables if t.people == people and t.name in shown)
        unique = tuple(key for key in table.unique if not hidden & {name.lower() for name in key})
        return replace(table, columns=columns, unit=unit, people=people, unique=unique)

    def unit_name(self, table: Table) -> str:
        """The name of the unit of a table: its column, or that of the last table on the way that has one of its own.

        Where that is reached by its very unit, it is what the table before calls it: customer_id for customers.id.
        """
        while isinstance(table.unit, UnitForeignKey):
            way, parent = table.unit, self.declared_table(table.unit.table)
            assert parent is not None
            if isinstance(parent.unit, str) and parent.unit.lower() == way.key.lower():
                return way.column
            table = parent
        return table.unit or ""

    @cached_property
    def referenced_keys(self) -> dict[str, tuple[str, ...]]:
        """For each table the columns by which others reach it."""
        return _collect_keys(self.all_tables)

    @cached_property
    def nameable_keys(self) -> dict[str, tuple[str, ...]]:
        """For each table the columns by which others reach it that are not hidden."""
        shown = {table.name for table in self.tables}
        return _collect_keys(table for table in self.all_tables if table.name in shown)

    @cached_property
    def without_joined_keys(self) -> Policy:
        """The policy for questions whose keys are not listed from joined public tables, because these are too long."""
        return replace(self, lists_joined_keys=False)

    @cached_property
    def without_dependent_keys(self) -> Policy:
        """The policy for questions as earlier versions planned them, which listed all combinations of declared keys."""
        return replace(self, lists_dependent_keys=False)

    @cached_property
    def without_key_weights(self) -> Policy:
        """The policy for questions as earlier versions planned them, which selected no keys by weight."""
        return replace(self, weighs_keys=False, clips_l2=False)

    @cached_property
    def without_l2_clips(self) -> Policy:
        """The policy for questions whose chosen clips bound the L1 norm, with Laplace noise: as in earlier versions."""
        return replace(self, clips_l2=False)

    @cached_property
    def without_fine_grids(self) -> Policy:
        """The policy for questions as earlier versions planned them, which rounded floats to a coarser grid."""
        return replace(self, has_fine_grids=False)

    @property
    def question_delta(self) -> Fraction:
        """The most delta that a question may use."""
        return self.delta_per_question if self.has_delta else Fraction(0)

    @cached_property
    def digest(self) -> str:
        """A hash of all that a question's meaning depends on: the relation, the delta, the epoch and the tables.

        Where the data and the ledger lie, and who may ask for how much, do not change what an answer means.
        """
        meaning = [
            str(self.neighbors),
            str(self.delta_per_question),
            self.epoch,
            [_meaning(t) for t in self.all_tables],
        ]
        text = json.dumps(meaning, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _collect_keys(tables: Iterable[Table]) -> dict[str, tuple[str, ...]]:
    """For each table the columns by which these tables reach it."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        if isinstance(table.unit, UnitForeignKey):
            found.setdefault(table.unit.table, {})[table.unit.key] = None
    return {name: tuple(keys) for name, keys in found.items()}


def _meaning(table: Table) -> list[object]:
    columns = [
        [
            c.name,
            c.type,
            _text(c.lower),
            _text(c.upper),
            _text(c.step),
            _keys(c.values),
            _keys((c.other,)),
            c.unique,
            c.nullable,
            *([] if c.zone is None else [["zone", c.zone]]),
        ]
        for c in table.columns
    ]
    unit = (
        [table.unit.column, table.unit.table, table.unit.key] if isinstance(table.unit, UnitForeignKey) else table.unit
    )
    # What is not declared is not written: digests of before stay what they are.
    total = [] if table.max_rows is None else [table.max_rows]
    keys = [] if not table.unique else [["unique", *map(list, table.unique)]]
    auto = [["auto", table.auto_up_to, table.has_caps]] if table.auto else []
    return [table.name, unit, table.people, table.max_groups, table.max_rows_per_group, columns, *total, *keys, *auto]


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _keys(values: tuple[Key | None, ...] | None) -> list[list[str]] | None:
    """The keys, each with its type, so that 1, true and '1' stay apart."""
    return None if values is None else [[type(value).__name__, str(value)] for value in values]
