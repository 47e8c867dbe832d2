"""What must hold of stored data before it is read. What does not hold is the owner's error, with its place.

**Rule.** No row may decide whether a question fails, or whose rows are counted together. Questions read a copy, into
which every value of the declared columns was read once (`engines/ingest.py`): what cannot be read is found then, and
texts are equal only where they are the same:

- no text column has a collation, under which one row with 'FLU' would make 'flu' another group;
- all files of a table store a column in the same type, so that no file is converted while it is read;
- one unit is stored in one way in all tables: 7, '7', 7.0 and '7.0' are one number and four units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tacit.engines.scalars import quote_name
from tacit.engines.stored import Kind, Stored, quote_file
from tacit.errors import DataError, ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"}
# What else may say whose row it is: equal values have the same text, and different ones have not.
_WRITTEN_ALIKE = {"UUID", "DATE", "BOOLEAN", "BLOB", "TIME", "UHUGEINT"}
_WRITTEN_ALIKE |= {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_PROBE = "memory.main.probe"
_BINARY = {"C", "POSIX", "BINARY"}
_COLLATED = re.compile(r"c([0-9]+) VARCHAR COLLATE ([^,)]+)")


def family(stored: str) -> str:
    """A stored type without its sizes."""
    return stored.split("(", maxsplit=1)[0].strip()


def written_as(stored: str) -> str | None:
    """How the values of a stored type are written; units are matched between columns of one way only.

    None where equal values may be written in different ways, or different ones alike: such a column is no unit.
    """
    if family(stored) in _INTEGERS:
        return "integer"
    if family(stored) in {"VARCHAR", "ENUM"}:
        return "text"
    if family(stored) == "DECIMAL":
        return f"decimal with scale {stored.rstrip(')').rpartition(',')[2].strip()}"
    return stored if stored in _WRITTEN_ALIKE else None


def check_collations(
    connection: DuckDBPyConnection, table: str, found: Stored, columns: Iterable[str], stored: Mapping[str, str]
) -> None:
    """No text column has a collation. DuckDB tells it of a table's definition only, so one without rows is made."""
    texts = [column for column in columns if family(stored[column]) == "VARCHAR"]
    if not texts or found.kind in {Kind.CSV, Kind.PARQUET, Kind.FRAME}:
        return
    listing = ", ".join(f"{quote_name(column)} AS c{number}" for number, column in enumerate(texts))
    try:
        connection.execute(f"CREATE TABLE {_PROBE} AS SELECT {listing} FROM {found.expression} LIMIT 0")
        row = connection.execute(
            "SELECT sql FROM duckdb_tables() WHERE database_name = 'memory' AND table_name = 'probe'"
        ).fetchone()
        connection.execute(f"DROP TABLE {_PROBE}")
    except duckdb.Error as problem:
        raise _unreadable(table, problem) from None
    assert row is not None
    for number, collation in _COLLATED.findall(row[0]):
        if collation.upper() in _BINARY:
            continue
        column = texts[int(number)]
        what = f"{table}.{column} has the collation {collation}, under which different texts may be equal"
        fix = f"ALTER TABLE {quote_name(table)} ALTER COLUMN {quote_name(column)} SET DATA TYPE VARCHAR"
        if found.kind is Kind.COMPUTED:
            fix = f"select {quote_name(column)} COLLATE C AS {quote_name(column)} in the view"
        raise DataError(ErrorCode.DATA, what, fix=fix)


def check_parts(connection: DuckDBPyConnection, table: str, files: Sequence[Path], columns: Iterable[str]) -> None:
    """All files of a table store each of these columns in the same type."""
    wanted = list(columns)
    first: dict[str, str] = {}
    for file in files if len(files) > 1 else ():
        try:
            described = connection.execute(
                f"DESCRIBE FROM read_parquet({quote_file(file)}, hive_partitioning = false)"
            ).fetchall()
        except duckdb.Error as problem:
            raise _unreadable(file.name, problem) from None
        here = {row[0].lower(): row[1] for row in described}
        for column in wanted:
            kind = here.get(column.lower())
            if kind is None:
                what = f"{file.name} of {table} has no column {column}, and {files[0].name} has it"
                raise DataError(ErrorCode.DATA, what, fix="write it into all files of the folder")
            if first.setdefault(column, kind) != kind:
                what = f"{table}.{column} is stored as {first[column]} in {files[0].name} and as {kind} in {file.name}"
                raise DataError(ErrorCode.DATA, what, fix=f"write all files of the folder with {column} in one type")


def check_frame(table: str, frame: pa.Table, columns: Iterable[str]) -> None:
    """These columns of a data frame hold what their types say."""
    for column in columns:
        if [name.lower() for name in frame.column_names].count(column.lower()) != 1:
            what = f"data for {table} has several columns named {column}"
            raise DataError(ErrorCode.DATA, what, fix="give each column a name of its own")
        row = _find_invalid(frame[column])
        if row is not None:
            what = f"{table}.{column} holds a text that is not UTF-8, in row {row + 1}"
            raise DataError(ErrorCode.DATA, what, fix="decode the texts before they are handed over")


def explain_unreadable(
    connection: DuckDBPyConnection, table: str, found: Stored, columns: Iterable[str], problem: duckdb.Error
) -> DataError:
    """The error of a table that cannot be read: in which file, which column and which row, where that can be found."""
    if found.kind is Kind.COMPUTED:
        what = f"the view {table} cannot be computed: {_first(problem)}"
        stored = f"CREATE TABLE ... AS FROM {quote_name(table)}"
        fix = f"mend what it selects, such as TRY_CAST for CAST, or store it: {stored}"
        return DataError(ErrorCode.DATA, what, fix=fix)
    if found.kind is Kind.PARQUET:
        for file in found.files:
            for column in columns:
                row = _find_invalid_text(file, column)
                if row is not None:
                    what = f"{table}.{column} holds a text that is not UTF-8, in row {row + 1} of {file.name}"
                    return DataError(ErrorCode.DATA, what, fix="write the file again with texts in UTF-8")
    broken = next((column for column in columns if not _can_be_read(connection, found, column)), None)
    return _unreadable(table if broken is None else f"{table}.{broken}", problem)


def _can_be_read(connection: DuckDBPyConnection, found: Stored, column: str) -> bool:
    try:
        connection.execute(f"SELECT bit_xor(hash({quote_name(column)})) FROM {found.expression}").fetchall()
    except duckdb.Error:
        return False
    return True


def _find_invalid_text(file: Path, column: str) -> int | None:
    """The first row of a Parquet file whose text in a column is not UTF-8."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    before = 0
    try:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(columns=[column]):
                row = _find_invalid(pa.chunked_array([batch.column(0)]))
                if row is not None:
                    return before + row
                before += batch.num_rows
    except (OSError, pa.ArrowException):  # what else is wrong with the file is said by whoever read it first
        return None
    return None


def _find_invalid(column: pa.ChunkedArray) -> int | None:
    """The first row of a column that does not hold what its type says."""
    if _is_valid(column):
        return None
    first, last = 0, len(column)
    while last - first > 1:
        middle = (first + last) // 2
        if _is_valid(column.slice(first, middle - first)):
            first = middle
        else:
            last = middle
    return first


def _is_valid(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    try:
        for chunk in column.chunks:
            chunk.validate(full=True)
            if pa.types.is_dictionary(chunk.type):
                chunk.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _unreadable(where: str, problem: duckdb.Error) -> DataError:
    return DataError(ErrorCode.DATA, f"{where} cannot be read: {_first(problem)}", fix="write the file again")


def _first(problem: duckdb.Error) -> str:
    return str(problem).splitlines()[0][:200]
