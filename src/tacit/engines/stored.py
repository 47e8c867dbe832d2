"""The tables of a source as DuckDB finds them: in a database file, Parquet or CSV files, or handed over as frames."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import duckdb

from tacit.engines.scalars import quote_name, quote_text
from tacit.errors import DataError, ErrorCode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES = {".parquet", ".csv"}
_DATABASES = {".duckdb", ".db", ".ddb"}
_SQLITE = b"SQLite format 3\0"  # the first bytes of its files
_DELIMITERS = (",", ";", "\t")  # of CSV files; the first where a header has none


class Kind(Enum):
    """How a table is stored, so far as it matters for reading it."""

    COLUMNS = "columns"  # in a file of DuckDB's own
    CSV = "csv"  # staged in memory, every column text
    PARQUET = "parquet"
    COMPUTED = "computed"  # a view, or a table with generated columns
    STAGED = "staged"  # the rows of such a view, computed once into memory
    FRAME = "frame"  # handed over as an object of Python


@dataclass(frozen=True)
class Stored:
    """A table: what stands for it after FROM, and the files or the frame that it is read from.

    `has_decimal_commas` says that a number may be written as 1.234,5: so in CSV files with semicolons.
    `is_one_of_several` says that other schemas of a database have a table of its name, which SQL would not tell apart.
    """

    expression: str
    kind: Kind
    files: tuple[Path, ...] = ()
    frame: Any = None
    has_decimal_commas: bool = False
    is_one_of_several: bool = False


def list_files(source: Path) -> list[Path]:
    """The files that the tables of a source may be read from."""
    with _explain_unopened(source):
        if not source.is_dir():
            return [source, _log(source)]
        return [*_own_files(source), *(file for files in _parts(source).values() for file in files)]


def holds_table(file: Path) -> bool:
    """Whether a file is a table by its name: not a database."""
    return file.suffix.lower() in _TABLES


def tables_of(connection: DuckDBPyConnection, source: Path) -> dict[str, Stored]:
    """The tables of a source by name, no two alike where case does not count. Which files they are read from is settled
    here."""
    with _explain_unopened(source):
        if not source.exists():
            raise DataError(ErrorCode.DATA, f"there is no {source}", fix="check source under [data] in the policy")
        if not (source.is_dir() or source.is_file()):
            raise DataError(ErrorCode.DATA, f"{source.name} is not a file", fix="name a file or a folder as the source")
        if source.is_dir():
            return _folder(connection, source)
        if holds_table(source):
            return {source.stem: _file(connection, source)}
        _check_database(source)
    return _database(connection, source)


@contextmanager
def _explain_unopened(source: Path) -> Iterator[None]:
    """A DataError where the operating system does not let a file of the source be opened."""
    try:
        yield
    except OSError as problem:
        what = f"{problem.filename or source} cannot be read: {problem.strerror}"
        raise DataError(ErrorCode.DATA, what, fix="check its name and that this user may read it") from None


def _folder(connection: DuckDBPyConnection, folder: Path) -> dict[str, Stored]:
    """The tables of a folder: files, and folders of files."""
    files = _own_files(folder)
    parts = {table: parts for table, parts in _parts(folder).items() if parts}
    first: dict[str, str] = {}
    for table, place in [*((file.stem, file.name) for file in files), *((table, f"{table}/") for table in parts)]:
        if (before := first.setdefault(table.lower(), place)) != place:
            what = f"{before} and {place} in {folder.name} have the same name, where case does not count"
            raise DataError(ErrorCode.DATA, what, fix="give one of them another name, or move it elsewhere")
    return {file.stem: _file(connection, file) for file in files} | {t: _parquet(found) for t, found in parts.items()}


def _check_database(file: Path) -> None:
    """Raise DataError for what is no database of DuckDB by its name or its first bytes."""
    with file.open("rb") as opened:
        if opened.read(len(_SQLITE)) == _SQLITE:
            fix = f'write its tables to files: sqlite3 -header -csv {file.name} "SELECT * FROM visits" > visits.csv'
            raise DataError(ErrorCode.DATA, f"{file.name} is a database of SQLite", fix=fix)
    if file.suffix.lower() not in _DATABASES:
        raise DataError(
            ErrorCode.DATA,
            f"{file.name} is not a kind of file that can be read",
            fix="use a .duckdb database, a .parquet or .csv file, or a folder of these",
        )


def _database(connection: DuckDBPyConnection, source: Path) -> dict[str, Stored]:
    """The tables and views of a database of DuckDB.

    One of the schema main has its own name, as it has in SQL there; so has any other whose name no other has. The rest
    are named with their schema, as in staging.visits, for the owner to see.
    """
    try:
        connection.execute(f"ATTACH {quote_text(str(source))} AS source (READ_ONLY)")
    except duckdb.Error:
        raise DataError(
            ErrorCode.DATA, f"{source.name} is not a DuckDB database, or is locked by a writer", fix="close it there"
        ) from None
    rows = connection.execute(
        "SELECT schema_name, table_name, EXISTS (FROM duckdb_columns() AS c WHERE c.is_generated "
        "AND c.database_name = 'source' AND c.table_oid = t.table_oid) "
        "FROM duckdb_tables() AS t WHERE database_name = 'source' "
        "UNION ALL SELECT schema_name, view_name, true FROM duckdb_views() "
        "WHERE database_name = 'source' AND NOT internal"
    ).fetchall()
    log = _log(source)
    stored_in = (source, log) if log.exists() else (source,)
    alike = Counter(table.lower() for _, table, _ in rows)
    found: dict[str, Stored] = {}
    for schema, table, computed in sorted(rows, key=lambda row: row[0] != "main"):
        kind, is_one = Kind.COMPUTED if computed else Kind.COLUMNS, schema == "main" or alike[table.lower()] == 1
        stored = Stored(
            f"source.{quote_name(schema)}.{quote_name(table)}", kind, stored_in, is_one_of_several=not is_one
        )
        found.setdefault(table if is_one else f"{schema}.{table}", stored)
    return found


def _own_files(folder: Path) -> list[Path]:
    """The files of a folder that are tables."""
    return [file for file in sorted(folder.iterdir()) if holds_table(file) and file.is_file()]


def _parts(folder: Path) -> dict[str, list[Path]]:
    """For each folder in a folder, the files of which a table consists. A link to a folder is one."""
    folders = [each for each in sorted(folder.iterdir()) if each.is_dir()]
    return {each.name: sorted(filter(_is_parquet, _list_folder(each))) for each in folders}


def _list_folder(folder: Path) -> list[Path]:
    """What a folder in a folder holds; one that this user may not enter is no table."""
    try:
        return list(folder.iterdir())
    except PermissionError:
        return []


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet" and file.is_file()


def _log(database: Path) -> Path:
    return database.with_name(f"{database.name}.wal")


def _file(connection: DuckDBPyConnection, file: Path) -> Stored:
    return _parquet([file]) if _is_parquet(file) else _csv(connection, file)


def _parquet(files: Sequence[Path]) -> Stored:
    names = ", ".join(map(quote_file, files))
    return Stored(f"read_parquet([{names}], hive_partitioning = false)", Kind.PARQUET, tuple(files))


def quote_file(file: Path) -> str:
    """The name of one file as DuckDB reads it: as a pattern, in which some characters stand for others."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        what = f"the name of {file.name!a} is not UTF-8"
        raise DataError(ErrorCode.DATA, what, fix="give the file another name") from None
    return quote_text("".join(f"[{letter}]" if letter in "[*?" else letter for letter in str(file)))


def _name_columns(file: Path, header: Sequence[str]) -> list[str]:
    """The names of a header's columns, or DataError where two are alike.

    The error has numbers in place of names: where a quote of the header is never closed, a name holds rows.
    """
    named = [column or f"column {number}" for number, column in enumerate(header, 1)]  # an index of pandas has no name
    first: dict[str, int] = {}
    for number, column in enumerate(named, 1):
        if (before := first.setdefault(column.lower(), number)) != number:
            raise DataError(
                ErrorCode.DATA,
                f"columns {before} and {number} of {file.name} have the same name, where case does not count",
                fix=f"give one of them another name in the first line of {file.name}",
            )
    return named


def _csv(connection: DuckDBPyConnection, file: Path) -> Stored:
    """A CSV file with a header, every column text: types are declared, never guessed from the rows.

    What separates columns is read from the header, so that no row has a say in how others are read.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            delimiter = find_delimiter(lines.readline())
            lines.seek(0)
            reader = csv.reader(lines, delimiter=delimiter)
            header = next(reader, None)
            ending = "" if reader.line_num < 2 else _find_ending(lines, reader.line_num)
    except (UnicodeDecodeError, csv.Error):
        raise DataError(ErrorCode.DATA, f"{file.name} is not UTF-8 text", fix="save it as UTF-8") from None
    if not header:
        raise DataError(
            ErrorCode.DATA, f"{file.name} has no header", fix="put the names of the columns into its first line"
        )
    named = _name_columns(file, header)
    columns = ", ".join(f"{quote_text(column)}: 'VARCHAR'" for column in named)
    table = f"memory.main.{quote_name(f'csv {file.name}')}"
    statement = (
        f"CREATE TABLE {table} AS SELECT * FROM read_csv({quote_file(file)}, auto_detect = false, "
        f"hive_partitioning = false, header = true, delim = {quote_text(delimiter)}, quote = '\"', "
        f"escape = '\"', nullstr = '', {ending}columns = {{{columns}}})"
    )
    try:
        connection.execute(statement)
    except duckdb.Error as problem:
        first = str(problem).splitlines()[0]
        raise DataError(
            ErrorCode.DATA,
            f"{file.name} cannot be read: {first}",
            fix="separate columns as in the header, by commas, semicolons or tabs; use double quotes and UTF-8",
        ) from None
    return Stored(table, Kind.CSV, (file,), has_decimal_commas=delimiter == ";")


def _find_ending(lines: TextIO, count: int) -> str:
    """How the line ends that closes a header of so many lines, as an option of DuckDB's reader.

    By itself that takes the first line break of a file for the one of its rows, also where it stands in a name.
    """
    lines.seek(0)
    last = next(islice(lines, count - 1, None), "")
    ending = {"\r\n": "\\r\\n", "\n": "\\n", "\r": "\\r"}.get(last[len(last.rstrip("\r\n")) :])
    return "" if ending is None else f"new_line = {quote_text(ending)}, "


def find_delimiter(header: str) -> str:
    r"""What separates the columns of a CSV file: the one of comma, semicolon and tab that makes the most of its header.

    >>> [find_delimiter(header) for header in ("name;since", "name,'a;b',age", "name\tsince", "name")]
    [';', ',', '\t', ',']
    """
    return max(_DELIMITERS, key=lambda each: len(next(csv.reader([header], delimiter=each), [])))


def frame_table(connection: DuckDBPyConnection, table: str, frame: object, position: int) -> Stored:
    """A data frame that is handed over, to be read from where it is."""
    import pyarrow

    try:
        arrow = pyarrow.table(frame)
    except (TypeError, ValueError, OverflowError, pyarrow.ArrowException) as problem:
        first = (str(problem).splitlines() or [""])[0][:120]
        fix = "hand over a pandas, polars or Arrow table"
        if hasattr(type(frame), "collect"):
            fix = "hand over its rows: a lazy frame has them after collect()"
        elif hasattr(frame, "columns"):
            fix = "give each column a name of its own and values of one type, or leave out those that are not declared"
        raise DataError(ErrorCode.DATA, f"data for {table} is not a table: {first}", fix=fix) from None
    try:
        connection.register(f"frame_{position}", arrow)
    except duckdb.Error as problem:
        what = f"data for {table} cannot be read: {str(problem).splitlines()[0]}"
        raise DataError(ErrorCode.DATA, what, fix="convert it") from None
    return Stored(f"frame_{position}", Kind.FRAME, frame=arrow)
