"""DuckDB in process, over a copy of a database file, of Parquet or CSV files, or of data frames handed over.

The source is read once (`engines/ingest.py`), into memory or into a file. Only SQL that `engines/sql_statements.py`
generates is ever run; an analyst's text is not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.engines.base import GroupedMeasures, Progress, StoredTables, TableSchema
from tacit.engines.copied_tables import CopiedTables
from tacit.engines.copy_file import CopyFile, ReadTables, attach_made, attach_or_make
from tacit.engines.copy_tables import is_large, type_of
from tacit.engines.deadline import interrupted_at_limit, seconds_left
from tacit.engines.declared import stored_types, to_declared_type
from tacit.engines.dialect import DUCKDB
from tacit.engines.duckdb_connection import connect_in_memory, spill_privately
from tacit.engines.infer_csv import infer_csv_types
from tacit.engines.ingest import Layouts, NoLayouts, open_read_tables, read_source
from tacit.engines.layout import plan_copy_scan
from tacit.engines.left_out import LeftOut
from tacit.engines.limit_joins import limit_clipped_joins, limit_joins
from tacit.engines.profile_statements import run_profile
from tacit.engines.readings import Readings, use_readings, use_readings_of_clipped, use_readings_of_rows
from tacit.engines.run_statements import StatementRunner, run_aggregation
from tacit.engines.source_columns import SourceColumn, measure_columns
from tacit.engines.sql_statements import write_some_rows
from tacit.engines.stored import Kind, tables_of
from tacit.engines.unit_rows import OneRowPerUnit, write_one_row_per_unit
from tacit.errors import DataError, ErrorCode
from tacit.loops import has_compiler, load_compiler
from tacit.privacy.contribution_profile import ContributionProfile
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import Aggregation, RelationalNode
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tacit.engines.coded_columns import CodedTables

_PLAIN = 8  # questions of an engine before the compiler is loaded, which takes as long as some dozens of them
_FETCHED = 256  # rows that become Python's objects in one call


class DuckDBEngine:
    """An engine over a copy of the tables of a policy.

    `source` is a database file, a Parquet or CSV file, or a folder of these; `frames` are tables handed over. They are
    read when the engine opens, and never again: into `copy`, which is then there for others, or into memory. Without
    `makes_copy` the copy must be there already. `accept` is given the tables that were read into a copy before it is
    moved into place, and raises where it may not be. `layouts` says how a table lies that is sorted by unit, `readings`
    which columns lie as questions read them. `tables` is what was read of each, for the owner.
    """

    def __init__(
        self,
        shapes: Iterable[TableSchema],
        source: Path | None = None,
        frames: Mapping[str, Any] | None = None,
        *,
        layouts: Layouts | None = None,
        readings: Readings | None = None,
        copy: CopyFile | None = None,
        makes_copy: bool = True,
        accept: Callable[[StoredTables], None] = lambda tables: None,
        progress: Progress = lambda what, share: None,
    ) -> None:
        declared, known = list(shapes), layouts or NoLayouts()
        self._readings = readings or {}

        def read(into: DuckDBPyConnection) -> ReadTables:
            return read_source(into, declared, source, frames or {}, known, self._readings, progress)

        def read_accepted(into: DuckDBPyConnection) -> ReadTables:
            tables = read(into)
            accept(CopiedTables(into, tables, open_read_tables(into, declared, tables, known).sources))
            return tables

        self._connection = connect_in_memory()
        self._forget = spill_privately(self._connection, self)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._asked = 0
        self._coded: CodedTables | None = None
        try:
            if copy is None:
                self._connection.execute("ATTACH ':memory:' AS copy")
                self.tables = read(self._connection)
            elif makes_copy:
                self.tables = attach_or_make(self._connection, copy, read_accepted)
            else:
                self.tables = attach_made(self._connection, copy)
            self._copy = open_read_tables(self._connection, declared, self.tables, known)
            if not self._is_large:
                self._connection.execute("SET threads = 1")  # starting others for few rows takes longer
        except BaseException:
            self._connection.close()
            raise

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure, all over one state of the tables."""
        aggregation = limit_joins(use_readings(aggregation, self._readings))
        if not has_compiler():
            return self._compute_in_sql(aggregation)
        if self._choose_loops() and (looked_up := self._look_up(aggregation)) is not None:
            return looked_up
        if aggregation.unit is None or not self._copy.layouts:
            return self._compute_in_sql(aggregation)
        from tacit.engines.aggregate_copy import aggregate_rows, count_rows, read_sorted, read_straight

        found = plan_copy_scan(aggregation, self._copy.layouts)
        with self._snapshot() as cursor:
            if found is None:
                rows = read_sorted(aggregation, self._copy, partial(type_of, cursor))
            elif (counted := count_rows(cursor, aggregation, found)) is not None:
                return counted
            else:
                rows = read_straight(cursor, aggregation, found, self._copy)
            return aggregate_rows(cursor, aggregation, rows, is_large=self._is_large)

    def _choose_loops(self) -> bool:
        """Whether loops are compiled: where tables are large or questions many; how many rows one reads is private."""
        self._asked += 1
        is_worthwhile = self._is_large or self._asked > _PLAIN
        if is_worthwhile:
            load_compiler()
        return is_worthwhile

    @property
    def _is_large(self) -> bool:
        return any(is_large(table.rows) for table in self.tables.values())

    def _look_up(self, aggregation: Aggregation) -> GroupedMeasures | None:
        """The same from coded columns; None where there are too many values."""
        from tacit.engines.aggregate_codes import aggregate_codes
        from tacit.engines.coded_columns import CodedTables

        with self._cursor() as cursor:  # a copy does not change while it is open
            with self._lock:
                if self._coded is None:
                    self._coded = CodedTables(self._copy)
            return aggregate_codes(cursor, aggregation, self._coded)

    def _compute_in_sql(self, aggregation: Aggregation) -> GroupedMeasures:
        """The same by SQL alone."""
        with self._snapshot() as cursor:
            return run_aggregation(aggregation, self._copy.sources, DUCKDB, _run_within_limit(cursor))

    def profile(self, aggregation: ClippedAggregation) -> ContributionProfile:
        """How many units there are of each L1 norm, and what those of a norm add."""
        node = limit_clipped_joins(use_readings_of_clipped(aggregation, self._readings))
        with self._snapshot() as cursor:
            if self._copy.layouts and has_compiler():
                from tacit.engines.profile_copy import count_copied_rows, plan_profile_scan, profile_copy

                planned = plan_profile_scan(node, self._copy.layouts, partial(count_copied_rows, cursor))
                if planned is not None:
                    return profile_copy(cursor, planned, self._copy, is_large=self._is_large)
            return run_profile(node, self._copy.sources, DUCKDB, _run_within_limit(cursor))

    def read(self, rows: RelationalNode, most: int) -> list[tuple[Any, ...]]:
        """The rows of a node over public tables, at most so many of them, in no order."""
        with self._snapshot() as cursor:
            return _fetch_rows(cursor.execute(write_some_rows(rows, most, self._copy.sources)))

    def rows(self, node: OneRowPerUnit) -> Any:
        """One row of each unit, as an Arrow table; for learning, inside the curator."""
        with self._snapshot() as cursor:
            read = use_readings_of_rows(node, self._readings)
            return cursor.sql(write_one_row_per_unit(read, self._copy.sources, DUCKDB)).to_arrow_table()

    def is_unique(self, table: str, *columns: str) -> bool:
        """Whether no two rows have the same values in all these columns, as they are read; NULL is no value."""
        with self._snapshot() as cursor:
            return self._stored(cursor).is_unique(table, *columns)

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""
        with self._snapshot() as cursor:
            return self._stored(cursor).type_of(table, column)

    def written_as(self, table: str, column: str) -> str:
        """How the stored values of a unit or of a column that matches tables are written."""
        return self._stored(self._connection).written_as(table, column)

    def source_digests(self) -> dict[str, str]:
        """For each table the digest of the source that was read."""
        return self._stored(self._connection).source_digests()

    def _stored(self, connection: DuckDBPyConnection) -> CopiedTables:
        return CopiedTables(connection, self.tables, self._copy.sources)

    @contextmanager
    def _snapshot(self) -> Iterator[DuckDBPyConnection]:
        """A cursor whose statements see one state of the tables."""
        with self._cursor() as cursor:
            yield cursor.begin()

    @contextmanager
    def _cursor(self) -> Iterator[DuckDBPyConnection]:
        """A cursor of its own, for one thread. Its work is interrupted at the time limit."""
        if self._process != os.getpid():
            raise RuntimeError("DuckDB does not survive a fork: open the curator in the process that asks")
        with self._lock:
            cursor = self._connection.cursor()
        try:
            with interrupted_at_limit(cursor.interrupt):
                yield cursor
        finally:
            cursor.close()

    def close(self) -> None:
        """Let go of the data."""
        self._connection.close()
        self._forget()


def read_columns(source: Path) -> dict[str, list[SourceColumn]]:
    """The tables of a source with their columns: the types to declare, and how often values repeat.

    The types of a CSV file, which has none, are guessed from its values.
    """
    with connect_in_memory() as connection:
        tables = {name: each for name, each in tables_of(connection, source).items() if not each.is_one_of_several}
        if not tables:
            what = f"{source.name} holds no table that can be read"
            raise DataError(ErrorCode.DATA, what, fix="put .csv or .parquet files into it, or name another source")
        found: dict[str, list[SourceColumn]] = {}
        for table, there in tables.items():
            stored = stored_types(connection, there.expression)
            kinds: list[Type | LeftOut]
            if there.kind is Kind.CSV:
                kinds = [*infer_csv_types(connection, there.expression, list(stored), there.has_decimal_commas)]
            else:
                kinds = [to_declared_type(kind) or LeftOut(kind) for kind in stored.values()]
            columns = list(zip(stored, kinds, strict=True))
            found[table] = measure_columns(connection, there.expression, columns)
        return found


def _run_within_limit(cursor: DuckDBPyConnection) -> StatementRunner:
    """Runs statements of a question until its time is over."""

    def rows(statement: str) -> list[tuple[Any, ...]]:
        seconds_left()  # an interrupt between two statements stops neither
        return _fetch_rows(cursor.execute(statement))

    return rows


def _fetch_rows(cursor: DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Return all rows, fetched some at a time: other threads run in between."""
    rows: list[tuple[Any, ...]] = []
    while some := cursor.fetchmany(_FETCHED):
        rows += some
    return rows
