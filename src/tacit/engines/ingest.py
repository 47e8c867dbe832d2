"""Reading a source once, into tables of our own. An epoch is such a copy: questions read nothing else.

**Theorem.** Whether a question over a copy fails does not depend on the source any more, and answers of one copy agree
with each other. Proof: the source is detached when the copy is whole, and nothing writes to a copy. Every value in it
was read by the expression of its declared type (`engines/declared.py`), so it is of that type or NULL.

What could not be read is counted for the owner: values that do not fit their declared type and became NULL, and rows
without a unit, which no question sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

from tacit.engines import readable
from tacit.engines.base import Progress, TableSchema
from tacit.engines.copy_tables import (
    OpenTables,
    check_unit_collisions,
    open_tables,
    write_plain_table,
    write_sorted_table,
)
from tacit.engines.declared import SQL_TYPES, DeclaredTable, declare_table
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.layout import CopyLayout
from tacit.engines.readings import Readings
from tacit.engines.scalars import quote_name, write_scalar
from tacit.engines.source_digest import digest_files, digest_frame
from tacit.engines.stored import Kind, Stored, frame_table, holds_table, list_files, tables_of
from tacit.engines.unchanged import Files
from tacit.engines.uniqueness import write_is_unique
from tacit.errors import DataError, ErrorCode
from tacit.query.nodes import Scalar
from tacit.query.types import TIME_TYPES, Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Layouts(Protocol):
    """How tables lie that are sorted by unit."""

    def find(self, table: str, *, is_ready: bool) -> CopyLayout | None:
        """How a table lies, with what questions compute ready or without; None where it has no unit."""


class NoLayouts:
    """No table is sorted by unit."""

    def find(self, table: str, *, is_ready: bool) -> CopyLayout | None:
        """None."""


_READY = 10_000  # rows from which it pays to hold ready what questions compute


@dataclass(frozen=True)
class ReadTable:
    """What was read of one table.

    `digest` is that of its source. `written` says how its unit and links were stored. `numbered` are its texts that lie
    as numbers, or None where it is not sorted by unit. For the owner: how many rows there are, how many have no unit,
    and how many values of each column do not fit its declared type. `unique` says of its links whether no two rows
    share a value; `is_ready`, that it holds what questions compute; `has_decimal_commas`, how its numbers were read.
    """

    digest: str
    written: Mapping[str, str]
    numbered: Sequence[str] | None
    rows: int
    without_unit: int
    misfits: Mapping[str, int]
    unique: Mapping[str, bool] = field(default_factory=dict)
    is_ready: bool = False
    has_decimal_commas: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def read_source(
    connection: DuckDBPyConnection,
    shapes: Sequence[TableSchema],
    source: Path | None,
    frames: Mapping[str, Any],
    layouts: Layouts,
    readings: Readings,
    progress: Progress,
) -> dict[str, ReadTable]:
    """Read the declared tables into the database `copy` that is attached; what was read of each.

    **Rule.** Every table with units is sorted by them where numba is installed, and none where it is not: which rows of
    a unit count is chosen in another way in either case, so it must not be the data that decides. What a copy holds
    ready may depend on the number of rows: it changes how long a question takes, and nothing else.
    """
    listed = [] if source is None else list_files(source)
    files = Files(listed)  # before anything is read of them
    found = _find_tables(connection, shapes, source, frames)
    declared = {shape.name: _check(connection, declare_table(connection, shape, found[shape.name])) for shape in shapes}
    staged = {name: _compute_view(connection, table, number) for number, (name, table) in enumerate(declared.items())}
    digests = _digest_sources(connection, staged.values())
    sources = {name: _read_values(table, readings.get(name, {})) for name, table in staged.items()}
    read = {}
    for name, table in staged.items():
        progress(name, 0.0)
        try:
            rows, without_unit, misfits = _count(connection, table)
            is_ready = rows >= _READY
            layout = layouts.find(name, is_ready=is_ready) if find_spec("numba") is not None else None
            numbered = None
            if layout is None:
                write_plain_table(connection, name, sources[name], progress)
            else:
                numbered = write_sorted_table(connection, table.shape, layout, sources, progress)
        except duckdb.Error as problem:
            columns = list(table.stored.values())
            raise readable.explain_unreadable(connection, name, table.table, columns, problem) from None
        read[name] = ReadTable(
            digests[name],
            table.written,
            numbered,
            rows,
            without_unit,
            misfits,
            is_ready=layout is not None and is_ready,
            has_decimal_commas=table.table.has_decimal_commas,
        )
    files.check(file for table in found.values() for file in table.files)
    if any(table.numbered is not None for table in read.values()):
        check_unit_collisions(connection, shapes)
    _forget_source(
        connection, declared.values(), may_be_staged=any(file.suffix not in {".parquet", ".wal"} for file in listed)
    )
    return _find_unique(connection, shapes, read, layouts)


def _find_unique(
    connection: DuckDBPyConnection, shapes: Sequence[TableSchema], read: Mapping[str, ReadTable], layouts: Layouts
) -> dict[str, ReadTable]:
    """The same, with which links of the copy are unique: that is asked whenever it is opened."""
    sources = open_read_tables(connection, shapes, read, layouts).sources
    return {
        shape.name: replace(
            read[shape.name], unique={c: has_unique(connection, sources[shape.name], c) for c in shape.links}
        )
        for shape in shapes
    }


def open_read_tables(
    connection: DuckDBPyConnection, shapes: Sequence[TableSchema], read: Mapping[str, ReadTable], layouts: Layouts
) -> OpenTables:
    """The tables of a copy that is attached, as they were read into it."""
    numbered = {name: table.numbered for name, table in read.items() if table.numbered is not None}
    known = {name: layouts.find(name, is_ready=read[name].is_ready) for name in numbered}
    return open_tables(connection, shapes, {name: found for name, found in known.items() if found}, numbered)


def has_unique(connection: DuckDBPyConnection, source: str, *columns: str) -> bool:
    """Whether no two rows of what stands after FROM have the same values in all these columns; NULL is no value."""
    row = connection.execute(write_is_unique([quote_name(column) for column in columns], source)).fetchone()
    assert row is not None
    return bool(row[0])


def _read_values(table: DeclaredTable, readings: Mapping[str, Scalar]) -> str:
    """What stands for a table after FROM: its declared columns, those with a reading as questions read them."""
    columns = ", ".join(
        f"{write_scalar(readings[column]) if column in readings else quote_name(column)} AS {quote_name(column)}"
        for column in table.reads
    )
    return f"(SELECT {columns} FROM {table.expression})" if readings else table.expression


def digest_source(shapes: Sequence[TableSchema], source: Path) -> dict[str, str]:
    """The digest of each table's source as it is now; nothing is read into a copy."""
    with connect_in_memory() as connection:
        found = _find_tables(connection, shapes, source, {})
        declared = [declare_table(connection, shape, found[shape.name]) for shape in shapes]
        staged = [_compute_view(connection, table, number) for number, table in enumerate(declared)]
        return _digest_sources(connection, staged)


def count_clamped(shapes: Sequence[TableSchema], source: Path, readings: Readings) -> dict[str, dict[str, int]]:
    """For each table and each column that questions read in another way, how many values this changes; NULL is none."""
    found = {}
    with connect_in_memory() as connection:
        stored = _find_tables(connection, shapes, source, {})
        for shape in shapes:
            columns = readings.get(shape.name, {})
            if columns:
                declared = declare_table(connection, shape, stored[shape.name])
                pairs = [(quote_name(column), write_scalar(reading)) for column, reading in columns.items()]
                changed = [f"COUNT(*) FILTER ({c} IS NOT NULL AND {c} IS DISTINCT FROM ({read}))" for c, read in pairs]
                row = connection.execute(f"SELECT {', '.join(changed)} FROM {declared.expression}").fetchone()
                assert row is not None
                found[shape.name] = dict(zip(columns, row, strict=True))
    return found


def _find_tables(
    connection: DuckDBPyConnection, shapes: Sequence[TableSchema], source: Path | None, frames: Mapping[str, Any]
) -> dict[str, Stored]:
    """Each declared table, where it is stored."""
    known = {shape.name for shape in shapes}
    for table in frames:
        if table not in known:
            raise DataError(
                ErrorCode.DATA,
                f"data for {table} was handed over, but the policy has no such table",
                fix="check its name",
            )
    available = {} if source is None else tables_of(connection, source)
    named = {table.lower(): found for table, found in available.items() if not found.is_one_of_several}
    tables = {}
    for position, shape in enumerate(shapes):
        if shape.name in frames:
            tables[shape.name] = frame_table(connection, shape.name, frames[shape.name], position)
        elif shape.name.lower() in named:
            tables[shape.name] = named[shape.name.lower()]
        elif source is not None and len(shapes) == len(available) == 1 and source.is_file() and holds_table(source):
            tables[shape.name] = next(iter(available.values()))
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
    return tables


def _check(connection: DuckDBPyConnection, declared: DeclaredTable) -> DeclaredTable:
    """The same table, of which holds what must (`engines/readable.py`)."""
    name, table, columns = declared.shape.name, declared.table, list(declared.stored.values())
    readable.check_collations(connection, name, table, columns, declared.types)
    if table.kind is Kind.PARQUET:
        readable.check_parts(connection, name, table.files, columns)
    if table.frame is not None:
        readable.check_frame(name, table.frame, columns)
    return declared


def _digest_sources(connection: DuckDBPyConnection, staged: Iterable[DeclaredTable]) -> dict[str, str]:
    """The digest of each table: of its files, or of its rows where they are handed over or computed by a view, which
    may read other files or draw random numbers."""
    known: dict[tuple[Path, ...], str] = {}
    found = {}
    for table in staged:
        columns = sorted(set(table.stored.values()))
        if table.table.frame is not None:
            found[table.shape.name] = digest_frame(table.table.frame.select(columns))
        elif table.table.kind is Kind.STAGED:
            listing = ", ".join(map(quote_name, columns)) or "1 AS one"
            rows = connection.sql(f"SELECT {listing} FROM {table.table.expression}").to_arrow_table()
            found[table.shape.name] = digest_frame(rows)
        else:
            if table.table.files not in known:
                known[table.table.files] = digest_files(table.table.files)
            found[table.shape.name] = known[table.table.files]
    return found


def _compute_view(connection: DuckDBPyConnection, declared: DeclaredTable, position: int) -> DeclaredTable:
    """A view, computed once into memory: in which order its filters and casts would be computed is not known."""
    if declared.table.kind is not Kind.COMPUTED:
        return declared
    listing = ", ".join(quote_name(column) for column in dict.fromkeys(declared.stored.values()))
    into = f"memory.main.view_{position}"
    try:
        connection.execute(f"CREATE TABLE {into} AS SELECT {listing or '1 AS one'} FROM {declared.table.expression}")
    except duckdb.Error as problem:
        columns = list(declared.stored.values())
        raise readable.explain_unreadable(connection, declared.shape.name, declared.table, columns, problem) from None
    return replace(declared, table=Stored(into, Kind.STAGED, declared.table.files))


def _count(connection: DuckDBPyConnection, declared: DeclaredTable) -> tuple[int, int, dict[str, int]]:
    """How many rows a table has, how many without a unit, and the values that do not fit their declared type."""
    unit = declared.shape.unit
    doubtful = [
        column
        for column, kind in declared.shape.columns
        if kind in TIME_TYPES or kind is Type.TEXT or declared.types[declared.stored[column]] != SQL_TYPES[kind]
    ]
    counts = ["COUNT(*)", "0" if unit is None else f"COUNT(*) - COUNT({declared.reads[unit]})"]
    counts += [f"COUNT({quote_name(declared.stored[c])}) - COUNT({declared.reads[c]})" for c in doubtful]
    row = connection.execute(f"SELECT {', '.join(counts)} FROM {declared.table.expression}").fetchone()
    assert row is not None
    return row[0], row[1], {column: lost for column, lost in zip(doubtful, row[2:], strict=True) if lost}


def _forget_source(connection: DuckDBPyConnection, declared: Iterable[DeclaredTable], *, may_be_staged: bool) -> None:
    """Detach the source and drop what was staged: from now on there is the copy.

    Of frames and Parquet files nothing is staged: listing the tables of a new database takes as long as reading it.
    """
    connection.execute("DETACH DATABASE IF EXISTS source")
    for table in declared:
        if table.table.kind is Kind.FRAME:
            connection.unregister(table.table.expression)
    if not may_be_staged:
        return
    staged = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'memory'").fetchall()
    for (name,) in staged:
        connection.execute(f"DROP TABLE memory.main.{quote_name(name)}")
