"""DuckDB in process, over a database file, Parquet, CSV, or data frames handed over.

The data is opened read-only. Only SQL that `engines/sql_statements.py` generates is ever run; an analyst's text is not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tacit.engines import readable
from tacit.engines.base import GroupedMeasures, TableSchema
from tacit.engines.deadline import interrupted_at_limit, seconds_left
from tacit.engines.dialect import DUCKDB
from tacit.engines.infer_csv import infer_csv_types
from tacit.engines.layout import CopyLayout, plan_copy_scan
from tacit.engines.readable import family, written_as
from tacit.engines.run_statements import run_aggregation
from tacit.engines.scalars import quote_name, quote_text
from tacit.engines.stored import TABLES, Kind, Stored, copied_frame, tables_of
from tacit.engines.unchanged import Files
from tacit.engines.unit_rows import OneRowPerUnit, write_one_row_per_unit
from tacit.errors import DataError, ErrorCode
from tacit.query.nodes import Aggregation
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tacit.engines.prepared import OpenCopy, Progress

# The types of DuckDB that each declared type may be stored in. Others are said at open.
_STORED = {
    Type.INT: {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"},
    Type.FLOAT: {"FLOAT", "DOUBLE", "DECIMAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"},
    Type.TEXT: {"VARCHAR", "ENUM", "UUID"},
    Type.BOOL: {"BOOLEAN"},
    Type.DATE: {"DATE"},
}
_SQL_TYPES = {Type.INT: "BIGINT", Type.FLOAT: "DOUBLE", Type.TEXT: "VARCHAR", Type.BOOL: "BOOLEAN", Type.DATE: "DATE"}
_WIDE = {"UBIGINT", "HUGEINT"}
_FETCHED = 256  # rows that become Python's objects in one call


class DuckDBEngine:
    """An engine over the tables of a policy. `source` is a database file, a Parquet or CSV file, or a folder of these;
    `frames` are tables handed over, copied when the engine opens; `prepared` is where a copy of the tables with units
    lies, how its tables lie in it and its stamp."""

    def __init__(
        self,
        shapes: Iterable[TableSchema],
        source: Path | None = None,
        frames: Mapping[str, Any] | None = None,
        prepared: tuple[Path, Sequence[CopyLayout], str] | None = None,
    ) -> None:
        self._connection = _connect_in_memory()
        # What does not fit in memory goes to a folder that only this user can read, and that goes with the engine.
        spilled = tempfile.mkdtemp(prefix="tacit-")
        self._forget = weakref.finalize(self, _remove_spill_folder, spilled, os.getpid())
        self._connection.execute(f"SET temp_directory = {quote_text(spilled)}")
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._shapes = list(shapes)
        self._copy: OpenCopy | None = None
        copied = set() if prepared is None else {layout.table for layout in prepared[1]}
        try:
            tables = _bind_tables(self._connection, self._shapes, source, dict(frames or {}), copied)
            self._sources = {table: found.source for table, found in tables.items()}
            self._written = {table: found.written for table, found in tables.items()}
            self._files = Files(file for table in tables if table not in copied for file in tables[table].files)
            if prepared is not None:
                from tacit.engines.prepared import open_copy

                self._copy = open_copy(self._connection, self._shapes, *prepared)
                self._sources |= self._copy.sources
        except BaseException:
            self._connection.close()
            raise

    def check_unchanged(self) -> None:
        """Raise where a file that questions read is not the one that was opened."""
        self._files.check()

    def prepare(self, path: Path, layouts: Sequence[CopyLayout], stamp: str, progress: Progress) -> None:
        """Write a copy of the tables that have units, sorted by unit."""
        from tacit.engines.prepared import write_copy

        write_copy(self._connection, path, self._shapes, layouts, self._sources, stamp, progress)

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure, all over one state of the tables."""
        found = None if self._copy is None else plan_copy_scan(aggregation, self._copy.layouts)
        if found is None or self._copy is None:
            return self._compute_in_sql(aggregation)
        from tacit.engines import aggregate_copy

        with self._snapshot() as cursor:
            return aggregate_copy.aggregate_copy(
                cursor, aggregation, found, self._sources, self._copy.texts[found.table]
            )

    def _compute_in_sql(self, aggregation: Aggregation) -> GroupedMeasures:
        """The same by SQL alone."""
        with self._snapshot() as cursor:

            def rows(statement: str) -> list[tuple[Any, ...]]:
                seconds_left()  # an interrupt between two statements stops neither
                return _fetch_rows(cursor.execute(statement))

            return run_aggregation(aggregation, self._sources, DUCKDB, rows)

    def rows(self, node: OneRowPerUnit) -> Any:
        """One row of each unit, as an Arrow table; for learning, inside the curator."""
        with self._snapshot() as cursor:
            return cursor.sql(write_one_row_per_unit(node, self._sources, DUCKDB)).to_arrow_table()

    def is_unique(self, table: str, column: str) -> bool:
        """Whether no two rows have the same value in a column, as it is read; NULL is no value."""
        found = quote_name(column)
        with self._snapshot() as cursor:
            row = cursor.execute(
                f"SELECT COUNT({found}) = COUNT(DISTINCT {found}) FROM {self._sources[table]}"
            ).fetchone()
        assert row is not None
        return bool(row[0])

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""
        with self._snapshot() as cursor:
            stored = _stored_types(cursor, self._sources[table])
        found = _declarable({each.lower(): kind for each, kind in stored.items()}[column.lower()])
        assert found is not None
        return found

    def written_as(self, table: str, column: str) -> str:
        """How the stored values of a unit or of a column that matches tables are written."""
        return {each.lower(): how for each, how in self._written[table].items()}[column.lower()]

    @contextmanager
    def _snapshot(self) -> Iterator[DuckDBPyConnection]:
        """A cursor that sees one state of the tables until it is closed. Its work is interrupted at the time limit."""
        if self._process != os.getpid():
            raise RuntimeError("DuckDB does not survive a fork: open the curator in the process that asks")
        with self._lock:
            cursor = self._connection.cursor()
        try:
            with interrupted_at_limit(cursor.interrupt):
                yield cursor.begin()
        finally:
            cursor.close()
        self._files.check()  # what was read meanwhile was checked at open

    def close(self) -> None:
        """Let go of the data."""
        self._connection.close()
        self._forget()


def _remove_spill_folder(folder: str, process: int) -> None:
    """Remove a folder, unless this is a child of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def read_columns(source: Path) -> dict[str, list[tuple[str, Type | None]]]:
    """The tables of a source with the names and types of their columns; None where no declared type fits.

    Names and types only; of a CSV file, which has no types, they are guessed from its values.
    """
    with _connect_in_memory() as connection:
        found: dict[str, list[tuple[str, Type | None]]] = {}
        for table, there in tables_of(connection, source).items():
            stored = _stored_types(connection, there.expression)
            if there.kind is Kind.CSV:
                found[table] = list(
                    zip(stored, infer_csv_types(connection, there.expression, list(stored)), strict=True)
                )
            else:
                found[table] = [(column, _declarable(kind)) for column, kind in stored.items()]
        return found


def _fetch_rows(cursor: DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Return all rows, fetched some at a time: other threads run in between."""
    rows: list[tuple[Any, ...]] = []
    while some := cursor.fetchmany(_FETCHED):
        rows += some
    return rows


def _connect_in_memory() -> DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # It takes NULLIF(x, 'a') IN ('a', 'b') for "x is not NULL" where all x are 'a' (DuckDB 2.0.0), and would make
        # plans, so the time they take, depend on the least and largest values of the data.
        "disabled_optimizers": "statistics_propagation",
    }
    return duckdb.connect(":memory:", config=config)


@dataclass(frozen=True)
class _Table:
    """A declared table: a table expression whose columns are the declared ones in the declared types, the files that it
    reads, and how the values of its unit and links are written."""

    source: str
    files: tuple[Path, ...]
    written: Mapping[str, str]


def _bind_tables(
    connection: DuckDBPyConnection,
    shapes: list[TableSchema],
    source: Path | None,
    frames: dict[str, Any],
    copied: set[str],
) -> dict[str, _Table]:
    """The declared tables, checked (`engines/readable.py`). Those of a prepared copy were read when it was made."""
    known = {shape.name for shape in shapes}
    for table in frames:
        if table not in known:
            raise DataError(
                ErrorCode.DATA,
                f"data for {table} was handed over, but the policy has no such table",
                fix="check its name",
            )
    available = {} if source is None else tables_of(connection, source)
    named = {table.lower(): found for table, found in available.items()}
    tables = {}
    for position, shape in enumerate(shapes):
        if shape.name in frames:
            found = copied_frame(connection, shape.name, frames[shape.name], position)
        elif shape.name.lower() in named:
            found = named[shape.name.lower()]
        elif source is not None and len(shapes) == len(available) == 1 and source.is_file() and source.suffix in TABLES:
            found = next(iter(available.values()))
        else:
            where = (
                "no source is declared"
                if source is None
                else f"{source.name} has {', '.join(sorted(available)) or 'none'}"
            )
            raise DataError(
                ErrorCode.DATA,
                f"table {shape.name} was not found: {where}",
                fix='name a source in [data], or open(policy, data={"name": frame})',
            )
        tables[shape.name] = _read_declared_columns(connection, shape, found, position, shape.name in copied)
    return tables


def _stored_types(connection: DuckDBPyConnection, expression: str) -> dict[str, str]:
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {expression}").fetchall()
    except duckdb.Error as problem:
        first = str(problem).splitlines()[0]
        raise DataError(ErrorCode.DATA, f"the data cannot be read: {first}", fix="check the file") from None
    return {row[0]: row[1] for row in described}


def _read_declared_columns(
    connection: DuckDBPyConnection, shape: TableSchema, there: Stored, position: int, is_copied: bool
) -> _Table:
    """The declared columns, each read in its declared type. A value that does not fit its type is read as NULL."""
    stored = _stored_types(connection, there.expression)
    exact = {column.lower(): column for column in stored}
    is_csv = there.kind is Kind.CSV
    columns, used = [], []
    for column, kind in shape.columns:
        found = _find_column(shape, column, exact)
        if not is_csv and family(stored[found]) not in _STORED[kind]:
            raise DataError(
                ErrorCode.DATA,
                f"{shape.name}.{column} is declared {kind} but stored as {stored[found]}",
                fix=f"declare it as {_declarable(stored[found]) or 'another type'}, or convert the data",
            )
        columns.append(f"{_read(quote_name(found), kind)} AS {quote_name(column)}")
        used.append(found)
    known, written = dict(shape.columns), {}
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        found = _find_column(shape, column, exact)
        if column not in known:
            columns.append(
                f"TRY_CAST({quote_name(found)} AS {_undeclared_type(stored[found])}) AS {quote_name(column)}"
            )
            used.append(found)
        # What a CSV file holds is what it is read as, and a unit that is read as a float is one.
        is_read = column in known and (is_csv or known[column] is Type.FLOAT)
        written[column] = _storage_form(shape, column, _SQL_TYPES[known[column]] if is_read else stored[found])
    readable.check_collations(connection, shape.name, there, used, stored)
    readable.check_parts(connection, shape.name, there.files, used)
    if not is_copied and there.kind is Kind.COMPUTED:
        there = readable.materialize_view(connection, shape.name, there, used, position)
    elif not is_copied and there.kind is Kind.PARQUET:
        readable.read_through(connection, shape.name, there, used)
    return _Table(f"(SELECT {', '.join(columns)} FROM {there.expression})", there.files, written)


def _storage_form(shape: TableSchema, column: str, stored: str) -> str:
    found = written_as(stored)
    if found is None:
        what = f"{shape.name}.{column} says whose row it is or matches tables, and is stored as {stored}"
        raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text")
    return found


def _read(column: str, kind: Type) -> str:
    """A column in its declared type. Dates outside the years 1 to 9999, which Python has not, are NULL too."""
    value = f"TRY_CAST({column} AS {_SQL_TYPES[kind]})"
    if kind is not Type.DATE:
        return value
    return f"CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value} END"


def _undeclared_type(stored: str) -> str:
    """The type of a column by which tables are matched and which none is declared for.

    Integers stay integers of any size, and all else becomes text, so that two such columns compare or differ in type
    from the start: no value can make a comparison fail.
    """
    if family(stored) not in _STORED[Type.INT]:
        return "VARCHAR"
    return "HUGEINT" if family(stored) in _WIDE else "BIGINT"


def _find_column(shape: TableSchema, column: str, exact: dict[str, str]) -> str:
    if column.lower() not in exact:
        names = ", ".join(exact.values())
        raise DataError(ErrorCode.DATA, f"{shape.name} has no column {column}", fix=f"the data has {names[:300]}")
    return exact[column.lower()]


def _declarable(stored: str) -> Type | None:
    """The type to declare for a stored one."""
    order = (Type.INT, Type.FLOAT, Type.TEXT, Type.BOOL, Type.DATE)
    return next((kind for kind in order if family(stored) in _STORED[kind]), None)
