"""The first rows of a source, in memory, looked at for its owner.

**Rule.** What this gives is exact, of the data, and for the owner alone: no analyst sees it, and none of it is written
to a policy that the owner has not confirmed value by value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.engines.base import TableSchema
from tacit.engines.declared import declare_table
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.scalars import quote_name, quote_text
from tacit.engines.source_columns import SourceColumn
from tacit.engines.stored import tables_of
from tacit.query.timestamps import UNIX_EPOCH
from tacit.query.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 200_000  # of a table that are looked at: a page that shows them is to answer within a second
_BINS = 24
_VALUES = 40  # of a text, most frequent first
_MIDDLE = (0.01, 0.99)  # quantiles between which a histogram is drawn; what is beyond is in its outermost bars
_ORDERED = {Type.INT: "{}", Type.FLOAT: "{}", Type.DATE: "date_diff('day', DATE '1970-01-01', {})"}
_ORDERED[Type.TIMESTAMP] = "epoch({})"


@dataclass(frozen=True)
class ColumnFacts:
    """A column as it is: how many rows there are and how many hold a value, how many values differ, and how they lie.

    `bars` are the counts of a histogram from `low` to `high`, of numbers and times as seconds or days; `values` the
    most frequent texts, each with its number of rows.
    """

    rows: int
    present: int
    distinct: int
    low: float | None = None
    high: float | None = None
    bars: tuple[int, ...] = ()
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class RowsPerPerson:
    """How many people a column tells apart, rows that have none, and how many rows people have."""

    people: int
    without: int
    median: int
    high: int  # that 19 of 20 have at most
    most: int


class KeyStep(NamedTuple):
    """A foreign key: a column of one table, and the key of another that it leads to."""

    column: str
    table: str
    key: str


class SourceRows:
    """The first `MOST_ROWS` rows of each table of a file or folder, read in the types that a policy would declare.

    The rows never change, so what is said about a column or about people is worked out once.
    """

    def __init__(self, source: Path, tables: Mapping[str, Sequence[SourceColumn]]) -> None:
        self._lock = RLock()
        self._known: dict[str, list[tuple[Any, ...]]] = {}  # by statement; of each a few rows
        self._names: dict[str, str] = {}
        self._kinds: dict[str, dict[str, Type]] = {}
        self.rows: dict[str, int] = {}
        self._connection = connect_in_memory()
        stored = tables_of(self._connection, source)
        for number, (table, columns) in enumerate(tables.items()):
            kinds = {each.name: each.kind for each in columns if isinstance(each.kind, Type)}
            declared = declare_table(self._connection, TableSchema(table, tuple(kinds.items()), None), stored[table])
            listing = ", ".join(
                f"make_timestamp({quote_name(name)} - {UNIX_EPOCH}) AS {quote_name(name)}"
                if kind is Type.TIMESTAMP
                else quote_name(name)
                for name, kind in kinds.items()
            )
            name = quote_name(f"rows {number}")
            self._connection.execute(
                f"CREATE TABLE memory.main.{name} AS SELECT {listing or '1 AS nothing'} "
                f"FROM {declared.expression} LIMIT {MOST_ROWS}"
            )
            self._names[table], self._kinds[table] = f"memory.main.{name}", kinds
            self.rows[table] = self._count(table, "*")

    def close(self) -> None:
        """Forget the rows."""
        with self._lock:
            self._connection.close()

    def load_frames(self, tables: Sequence[str]) -> dict[str, pa.Table]:
        """The rows of some tables, as Arrow has them."""
        with self._lock:
            return {table: self._connection.table(self._names[table]).to_arrow_table() for table in tables}

    def describe_column(self, table: str, column: str) -> ColumnFacts:
        """How the values of a column lie."""
        kind, name = self._kinds[table][column], quote_name(column)
        rows, present, distinct = self._one(
            f"SELECT COUNT(*), COUNT({name}), COUNT(DISTINCT {name}) FROM {self._names[table]}"
        )
        if kind in _ORDERED:
            low, high, bars = self._draw_histogram(table, _ORDERED[kind].format(name))
            return ColumnFacts(rows, present, distinct, low, high, bars)
        found = self._all(
            f"SELECT CAST({name} AS VARCHAR), COUNT(*) FROM {self._names[table]} WHERE {name} IS NOT NULL "
            f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_VALUES}"
        )
        return ColumnFacts(rows, present, distinct, values=tuple((value, count) for value, count in found))

    def count_outside(self, table: str, column: str, bounds: tuple[str, str]) -> int:
        """How many values of a number or a day lie outside of bounds."""
        kind, name = self._kinds[table][column], quote_name(column)
        lower, upper = (f"DATE {quote_text(each)}" if kind is Type.DATE else f"({each})" for each in bounds)
        return self._count(table, f"CASE WHEN {name} < {lower} OR {name} > {upper} THEN 1 END")

    def count_other(self, table: str, column: str, keys: Sequence[str]) -> int:
        """How many values of a text are none of these keys."""
        listed = ", ".join(map(quote_text, keys))
        return self._count(table, f"CASE WHEN {quote_name(column)} NOT IN ({listed}) THEN 1 END")

    def count_people(
        self, table: str, column: str, person: str | None, steps: Sequence[KeyStep] = ()
    ) -> dict[str, int]:
        """How many people hold each of the most frequent values of a text; where `person` is None, each row is one.

        `person` is a column of the table itself, or of the one that foreign keys lead to. A row that leads to nobody,
        or to several, is nobody's. Where the column is not there people cannot be counted, and nothing is returned: a
        number of rows is never given for a number of people.
        """
        name, kinds = quote_name(column), self._kinds
        value = f"CAST(held.{name} AS VARCHAR)"
        if person is None:
            counted, joined = "*", ""
        else:
            last, found, joined = table, "held", ""
            for number, step in enumerate(steps):
                if step.column not in kinds[last] or step.key not in kinds.get(step.table, {}):
                    return {}
                key, is_last = quote_name(step.key), number == len(steps) - 1
                onward = person if is_last else steps[number + 1].column
                if onward not in kinds[step.table]:
                    return {}
                one = (
                    f"SELECT {key}, MIN({quote_name(onward)}) FROM {self._names[step.table]} "
                    f"GROUP BY {key} HAVING COUNT(DISTINCT {quote_name(onward)}) = 1"
                )
                start = quote_name(step.column) if number == 0 else "onward"
                joined += f" LEFT JOIN ({one}) AS step{number}(key, onward) ON step{number}.key = {found}.{start}"
                last, found = step.table, f"step{number}"
            if person not in kinds[last]:
                return {}
            counted = f"DISTINCT {found}.{'onward' if steps else quote_name(person)}"
        listed = self._all(
            f"SELECT {value}, COUNT({counted}) FROM {self._names[table]} AS held{joined} "
            f"WHERE held.{name} IS NOT NULL GROUP BY 1 ORDER BY COUNT(*) DESC, 1 LIMIT {_VALUES}"
        )
        return dict(listed)

    def measure_groups(
        self, table: str, column: str, averaged: Sequence[str] = ()
    ) -> dict[str, tuple[int | float | None, ...]]:
        """The exact number of rows, and means, by the value of a column; under "" where there is none."""
        measures = ", ".join(["COUNT(*)", *(f"AVG({quote_name(name)})" for name in averaged)])
        if not column:
            return {"": self._one(f"SELECT {measures} FROM {self._names[table]}")}
        key = f"CAST({quote_name(column)} AS VARCHAR)"
        with self._lock:
            found = self._connection.execute(
                f"SELECT {key}, {measures} FROM {self._names[table]} GROUP BY 1 LIMIT {MOST_ROWS}"
            ).fetchall()
        return {str(value): tuple(rest) for value, *rest in found if value is not None}

    def describe_people(self, table: str, person: str) -> RowsPerPerson:
        """How many rows people have in a table that has their column."""
        name = quote_name(person)
        each = f"SELECT COUNT(*) FROM {self._names[table]} WHERE {name} IS NOT NULL GROUP BY {name}"
        people, median, high, most = self._one(
            f"SELECT COUNT(*), quantile_disc(n, 0.5), quantile_disc(n, 0.95), MAX(n) FROM ({each}) AS people(n)"
        )
        without = self.rows[table] - self._count(table, name)
        return RowsPerPerson(people, without, median or 0, high or 0, most or 0)

    def _draw_histogram(self, table: str, value: str) -> tuple[float | None, float | None, tuple[int, ...]]:
        number = f"CASE WHEN isfinite(CAST({value} AS DOUBLE)) THEN CAST({value} AS DOUBLE) END"
        first, last = _MIDDLE
        low, high = self._one(
            f"SELECT quantile_disc({number}, {first}), quantile_disc({number}, {last}) FROM {self._names[table]}"
        )
        if low is None or high is None or low == high:
            return low, high, ()
        # clamped first and halved where the width is no float, so that nothing overflows
        scale = 1.0 if math.isfinite(high - low) else 0.5
        clamped = f"({scale!r} * greatest({low!r}::DOUBLE, least({high!r}::DOUBLE, {number})))"
        share = f"({clamped} - ({scale * low!r})::DOUBLE) / ({scale * high - scale * low!r})::DOUBLE"
        place = f"least({_BINS - 1}, CAST(floor({_BINS} * ({share})) AS BIGINT))"
        found = dict(
            self._all(f"SELECT {place}, COUNT(*) FROM {self._names[table]} WHERE {number} IS NOT NULL GROUP BY 1")
        )
        return low, high, tuple(found.get(bin, 0) for bin in range(_BINS))

    def _count(self, table: str, what: str) -> int:
        return int(self._one(f"SELECT COUNT({what}) FROM {self._names[table]}")[0])

    def _one(self, statement: str) -> tuple[Any, ...]:
        return self._all(statement)[0]

    def _all(self, statement: str) -> list[tuple[Any, ...]]:
        with self._lock:
            if statement not in self._known:
                self._known[statement] = self._connection.execute(statement).fetchall()
            return self._known[statement]
