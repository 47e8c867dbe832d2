"""DuckDB in process, over a database file, Parquet, CSV, or data frames handed over.

The data is opened read-only. Only SQL that `engines/sql.py` generates is ever run; an analyst's text is not.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tacit.engines.base import Groups, Shape
from tacit.engines.collect import collect
from tacit.engines.deadline import interrupted_at_limit, seconds_left
from tacit.engines.dialect import DUCKDB
from tacit.engines.guess import guessed
from tacit.engines.layout import Layout, straight
from tacit.engines.rows import OneEach, statement
from tacit.engines.scalars import name, text
from tacit.errors import Code, DataError
from tacit.query.nodes import Aggregation
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tacit.engines.prepared import Copy, Progress

_DATABASES = {".duckdb", ".db", ".ddb"}
_TABLES = (".parquet", ".csv")
_CSV = 'memory.main."csv '  # how the tables begin that are read from CSV files

# The types of DuckDB that each declared type may be stored in. Others are said at open.
_STORED = {
    Type.INT: {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"},
    Type.FLOAT: {"FLOAT", "DOUBLE", "DECIMAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"},
    Type.TEXT: {"VARCHAR", "ENUM", "UUID"},
    Type.BOOL: {"BOOLEAN"},
    Type.DATE: {"DATE"},
}
_READ_AS = {Type.INT: "BIGINT", Type.FLOAT: "DOUBLE", Type.TEXT: "VARCHAR", Type.BOOL: "BOOLEAN", Type.DATE: "DATE"}
_WIDE = {"UBIGINT", "HUGEINT"}


class DuckDB:
    """An engine over the tables of a policy. `source` is a database file, a Parquet or CSV file, or a folder of these;
    `frames` are tables handed over, copied when the engine opens; `prepared` is where a copy of the tables with units
    lies, how its tables lie in it and its stamp."""

    def __init__(
        self,
        shapes: Iterable[Shape],
        source: Path | None = None,
        frames: Mapping[str, Any] | None = None,
        prepared: tuple[Path, Sequence[Layout], str] | None = None,
    ) -> None:
        self._connection = _connect()
        # What does not fit in memory goes to a folder that only this user can read, and that goes with the engine.
        spilled = tempfile.mkdtemp(prefix="tacit-")
        self._forget = weakref.finalize(self, _forget, spilled, os.getpid())
        self._connection.execute(f"SET temp_directory = {text(spilled)}")
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._shapes = list(shapes)
        self._copy: Copy | None = None
        try:
            self._sources = _attach(self._connection, self._shapes, source, dict(frames or {}))
            if prepared is not None:
                from tacit.engines.prepared import attach

                self._copy = attach(self._connection, self._shapes, *prepared)
                self._sources |= self._copy.sources
        except BaseException:
            self._connection.close()
            raise

    def prepare(self, path: Path, layouts: Sequence[Layout], stamp: str, progress: Progress) -> None:
        """Write a copy of the tables that have units, sorted by unit."""
        from tacit.engines.prepared import make

        make(self._connection, path, self._shapes, layouts, self._sources, stamp, progress)

    def run(self, aggregation: Aggregation) -> Groups:
        """For each group that has rows, its keys and the cell of each measure, all over one state of the tables."""
        found = None if self._copy is None else straight(aggregation, self._copy.layouts)
        if found is None or self._copy is None:
            return self._computed(aggregation)
        from tacit.engines import bounded

        with self._snapshot() as cursor:
            return bounded.run(cursor, aggregation, found, self._sources, self._copy.texts[found.table])

    def _computed(self, aggregation: Aggregation) -> Groups:
        """The same by SQL alone."""
        with self._snapshot() as cursor:

            def rows(statement: str) -> list[tuple[Any, ...]]:
                seconds_left()  # an interrupt between two statements stops neither
                return cursor.execute(statement).fetchall()

            return collect(aggregation, self._sources, DUCKDB, rows)

    def rows(self, node: OneEach) -> Any:
        """One row of each unit, as an Arrow table; for learning, inside the curator."""
        with self._snapshot() as cursor:
            return cursor.sql(statement(node, self._sources, DUCKDB)).to_arrow_table()

    def is_unique(self, table: str, column: str) -> bool:
        """Whether no two rows have the same value in a column, as it is read; NULL is no value."""
        found = name(column)
        with self._snapshot() as cursor:
            row = cursor.execute(
                f"SELECT COUNT({found}) = COUNT(DISTINCT {found}) FROM {self._sources[table]}"
            ).fetchone()
        assert row is not None
        return bool(row[0])

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""
        with self._snapshot() as cursor:
            found = _declarable(_stored_types(cursor, self._sources[table])[column])
        assert found is not None
        return found

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

    def close(self) -> None:
        """Let go of the data."""
        self._connection.close()
        self._forget()


def _forget(folder: str, process: int) -> None:
    """Remove a folder, unless this is a child of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def columns_of(source: Path) -> dict[str, list[tuple[str, Type | None]]]:
    """The tables of a source with the names and types of their columns; None where no declared type fits.

    Names and types only; of a CSV file, which has no types, they are guessed from its values.
    """
    with _connect() as connection:
        found: dict[str, list[tuple[str, Type | None]]] = {}
        for table, expression in _tables(connection, source).items():
            stored = _stored_types(connection, expression)
            if expression.startswith(_CSV):
                found[table] = list(zip(stored, guessed(connection, expression, list(stored)), strict=True))
            else:
                found[table] = [(column, _declarable(kind)) for column, kind in stored.items()]
        return found


def _connect() -> DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # It takes NULLIF(x, 'a') IN ('a', 'b') for "x is not NULL" where all x are 'a' (DuckDB 2.0.0), and would make
        # plans, so the time they take, depend on the least and largest values of the data.
        "disabled_optimizers": "statistics_propagation",
    }
    return duckdb.connect(":memory:", config=config)


def _attach(
    connection: DuckDBPyConnection, shapes: list[Shape], source: Path | None, frames: dict[str, Any]
) -> dict[str, str]:
    """For each declared table, a table expression whose columns are the declared ones in the declared types."""
    known = {shape.name for shape in shapes}
    for table in frames:
        if table not in known:
            raise DataError(
                Code.DATA, f"data for {table} was handed over, but the policy has no such table", fix="check its name"
            )
    available = {} if source is None else _tables(connection, source)
    named = {table.lower(): expression for table, expression in available.items()}
    sources = {}
    for position, shape in enumerate(shapes):
        if shape.name in frames:
            expression = _copy(connection, shape.name, frames[shape.name], position)
        elif shape.name.lower() in named:
            expression = named[shape.name.lower()]
        elif (
            source is not None and len(shapes) == len(available) == 1 and source.is_file() and source.suffix in _TABLES
        ):
            expression = next(iter(available.values()))
        else:
            where = (
                "no source is declared"
                if source is None
                else f"{source.name} has {', '.join(sorted(available)) or 'none'}"
            )
            raise DataError(
                Code.DATA,
                f"table {shape.name} was not found: {where}",
                fix='name a source in [data], or open(policy, data={"name": frame})',
            )
        sources[shape.name] = _declared(connection, shape, expression)
    return sources


def _tables(connection: DuckDBPyConnection, source: Path) -> dict[str, str]:
    """The tables of a source by name, each as a table expression."""
    if not source.exists():
        raise DataError(Code.DATA, f"there is no {source}", fix="check source under [data] in the policy")
    if source.is_dir():
        files = [file for file in sorted(source.iterdir()) if file.suffix in _TABLES]
        folders = [folder for folder in sorted(source.iterdir()) if folder.is_dir() and any(folder.glob("*.parquet"))]
        found = {file.stem: _file(connection, file) for file in files}
        found |= {folder.name: f"read_parquet({text(str(folder / '*.parquet'))})" for folder in folders}
        return found
    if source.suffix in _TABLES:
        return {source.stem: _file(connection, source)}
    if source.suffix not in _DATABASES:
        raise DataError(
            Code.DATA,
            f"{source.name} is not a kind of file that can be read",
            fix="use a .duckdb database, a .parquet or .csv file, or a folder of these",
        )
    try:
        connection.execute(f"ATTACH {text(str(source))} AS source (READ_ONLY)")
    except duckdb.Error:
        raise DataError(
            Code.DATA, f"{source.name} is not a DuckDB database, or is locked by a writer", fix="close it there"
        ) from None
    rows = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' "
        "UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
    ).fetchall()
    return {table: f"source.{name(schema)}.{name(table)}" for schema, table in rows}


def _file(connection: DuckDBPyConnection, file: Path) -> str:
    if file.suffix == ".parquet":
        return f"read_parquet({text(str(file))})"
    return _csv(connection, file)


def _csv(connection: DuckDBPyConnection, file: Path) -> str:
    """A CSV file with a header, every column text: types are declared, never guessed from the rows."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            header = next(csv.reader(lines), None)
    except (UnicodeDecodeError, csv.Error):
        raise DataError(Code.DATA, f"{file.name} is not UTF-8 text", fix="save it as UTF-8") from None
    if not header:
        raise DataError(Code.DATA, f"{file.name} has no header", fix="put the names of the columns into its first line")
    columns = ", ".join(f"{text(column)}: 'VARCHAR'" for column in header)
    table = f"memory.main.{name(f'csv {file.name}')}"
    statement = (
        f"CREATE TABLE {table} AS SELECT * FROM read_csv({text(str(file))}, auto_detect = false, "
        f"header = true, delim = ',', quote = '\"', escape = '\"', nullstr = '', columns = {{{columns}}})"
    )
    try:
        connection.execute(statement)
    except duckdb.Error as problem:
        first = str(problem).splitlines()[0]
        raise DataError(
            Code.DATA, f"{file.name} cannot be read: {first}", fix="mend the file: commas, double quotes, UTF-8"
        ) from None
    return table


def _copy(connection: DuckDBPyConnection, table: str, frame: Any, position: int) -> str:
    """A data frame as a table of our own, so that a frame changed later does not change the data."""
    import pyarrow

    try:
        arrow = pyarrow.table(frame)
    except (TypeError, ValueError, pyarrow.ArrowException) as problem:
        first = (str(problem).splitlines() or [""])[0][:120]
        raise DataError(
            Code.DATA, f"data for {table} is not a table: {first}", fix="hand over a pandas, polars or Arrow table"
        ) from None
    try:
        connection.register("handed_over", arrow)
        connection.execute(f"CREATE TABLE memory.main.frame_{position} AS SELECT * FROM handed_over")
        connection.unregister("handed_over")
    except duckdb.Error as problem:
        raise DataError(
            Code.DATA, f"data for {table} cannot be read: {str(problem).splitlines()[0]}", fix="convert it"
        ) from None
    return f"memory.main.frame_{position}"


def _stored_types(connection: DuckDBPyConnection, expression: str) -> dict[str, str]:
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {expression}").fetchall()
    except duckdb.Error as problem:
        first = str(problem).splitlines()[0]
        raise DataError(Code.DATA, f"the data cannot be read: {first}", fix="check the file") from None
    return {row[0]: row[1] for row in described}


def _declared(connection: DuckDBPyConnection, shape: Shape, expression: str) -> str:
    """The declared columns, each read in its declared type. A value that does not fit its type is read as NULL."""
    stored = _stored_types(connection, expression)
    exact = {column.lower(): column for column in stored}
    is_csv = expression.startswith(_CSV)
    columns = []
    for column, kind in shape.columns:
        found = _found(shape, column, exact)
        if not is_csv and _family(stored[found]) not in _STORED[kind]:
            raise DataError(
                Code.DATA,
                f"{shape.name}.{column} is declared {kind} but stored as {stored[found]}",
                fix=f"declare it as {_declarable(stored[found]) or 'another type'}, or convert the data",
            )
        columns.append(f"{_read(name(found), kind)} AS {name(column)}")
    known = {column for column, _ in shape.columns}
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        if column not in known:
            found = _found(shape, column, exact)
            columns.append(f"TRY_CAST({name(found)} AS {_undeclared(stored[found])}) AS {name(column)}")
    return f"(SELECT {', '.join(columns)} FROM {expression})"


def _read(column: str, kind: Type) -> str:
    """A column in its declared type. Dates outside the years 1 to 9999, which Python has not, are NULL too."""
    value = f"TRY_CAST({column} AS {_READ_AS[kind]})"
    if kind is not Type.DATE:
        return value
    return f"CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value} END"


def _undeclared(stored: str) -> str:
    """The type of a column by which tables are matched and which none is declared for.

    Integers stay integers of any size, and all else becomes text, so that two such columns compare or differ in type
    from the start: no value can make a comparison fail.
    """
    if _family(stored) not in _STORED[Type.INT]:
        return "VARCHAR"
    return "HUGEINT" if _family(stored) in _WIDE else "BIGINT"


def _found(shape: Shape, column: str, exact: dict[str, str]) -> str:
    if column.lower() not in exact:
        names = ", ".join(exact.values())
        raise DataError(Code.DATA, f"{shape.name} has no column {column}", fix=f"the data has {names[:300]}")
    return exact[column.lower()]


def _family(stored: str) -> str:
    return stored.split("(", maxsplit=1)[0].strip()


def _declarable(stored: str) -> Type | None:
    """The type to declare for a stored one."""
    order = (Type.INT, Type.FLOAT, Type.TEXT, Type.BOOL, Type.DATE)
    return next((kind for kind in order if _family(stored) in _STORED[kind]), None)
