"""The declared columns of stored tables, as DuckDB reads them.

**Rule.** A column is read in its declared type, value by value, by an expression that gives NULL where a value does not
fit. Which stored types a declared one may be read from does not depend on the rows; all others are the owner's error.
How times are read, `engines/read_times.py` says, and how texts of CSV files are, `engines/read_texts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from tacit.engines.base import TableSchema
from tacit.engines.left_out import suggest_type
from tacit.engines.read_texts import read_day, read_float, read_integer
from tacit.engines.read_times import FIRST_DAY, LAST_DAY, MOMENTS, read_date, read_timestamp
from tacit.engines.readable import family, written_as
from tacit.engines.scalars import quote_name
from tacit.engines.stored import Kind, Stored
from tacit.engines.zones import UTC
from tacit.errors import DataError, ErrorCode
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The types of DuckDB that each declared type may be stored in. Others are said at open.
_STORED = {
    Type.INT: {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"},
    Type.FLOAT: {"FLOAT", "DOUBLE", "DECIMAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"},
    Type.TEXT: {"VARCHAR", "ENUM", "UUID"},
    Type.BOOL: {"BOOLEAN"},
    Type.DATE: {"DATE", *MOMENTS},
    Type.TIMESTAMP: {"DATE", *MOMENTS},
}
SQL_TYPES = {
    Type.INT: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.BOOL: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "BIGINT",
}
_WIDE = {"UBIGINT", "HUGEINT"}
LONGEST_TEXT = 4_096  # bytes: what a question holds in memory at a time must not grow with what rows say


@dataclass(frozen=True)
class DeclaredTable:
    """A stored table with the expression that reads each of its declared columns, its unit and its links.

    `reads` are the expressions by the column's declared name, `stored` the names that the columns have where they are
    stored, and `types` the types that all columns have there, by these names. `written` says how the values of the unit
    and of links are written there (`readable.written_as`).
    """

    shape: TableSchema
    table: Stored
    reads: Mapping[str, str]
    stored: Mapping[str, str]
    written: Mapping[str, str]
    types: Mapping[str, str]

    @property
    def expression(self) -> str:
        """What stands for the table after FROM: the declared columns and no others."""
        listing = ", ".join(f"{read} AS {quote_name(column)}" for column, read in self.reads.items())
        return f"(SELECT {listing or '1'} FROM {self.table.expression})"


def declare_table(connection: DuckDBPyConnection, shape: TableSchema, found: Stored) -> DeclaredTable:
    """A stored table as the policy declares it, or DataError."""
    types = stored_types(connection, found.expression)
    exact = {column.lower(): column for column in types}
    is_csv = found.kind is Kind.CSV
    reads, stored, written = {}, {}, {}
    zones = dict(shape.zones)
    for column, kind in shape.columns:
        here = _find_column(shape, column, exact)
        if not is_csv and family(types[here]) not in _STORED[kind]:
            raise DataError(
                ErrorCode.DATA,
                f"{shape.name}.{column} is declared {kind} but stored as {types[here]}",
                fix=suggest_type(to_declared_type(types[here]), types[here]),
            )
        if is_csv:
            read = read_text(quote_name(here), kind, zones.get(column), found.has_decimal_commas)
        else:
            read = _read(quote_name(here), kind, family(types[here]), zones.get(column))
        reads[column], stored[column] = read, here
    known = dict(shape.columns)
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        here = _find_column(shape, column, exact)
        if column not in known:
            reads[column], stored[column] = f"TRY_CAST({quote_name(here)} AS {_undeclared_type(types[here])})", here
        if known.get(column) is Type.TIMESTAMP or (known.get(column) is Type.DATE and types[here] in MOMENTS):
            what = f"{shape.name}.{column} says whose row it is or matches tables, and is a time that is read in a zone"
            raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text, and declare it so")
        # What a CSV file holds is what it is read as, and a unit that is read as a float is one.
        is_read = column in known and (is_csv or known[column] is Type.FLOAT)
        written[column] = _storage_form(shape, column, SQL_TYPES[known[column]] if is_read else types[here])
    return DeclaredTable(shape, found, reads, stored, written, types)


def stored_types(connection: DuckDBPyConnection, expression: str) -> dict[str, str]:
    """The columns of a stored table with their types."""
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {expression}").fetchall()
    except duckdb.Error as problem:
        first = str(problem).splitlines()[0]
        raise DataError(ErrorCode.DATA, f"the data cannot be read: {first}", fix="check the file") from None
    return {row[0]: row[1] for row in described}


def to_declared_type(stored: str) -> Type | None:
    """The type to declare for a stored one; None where none fits."""
    if family(stored) in MOMENTS:
        return Type.TIMESTAMP
    order = (Type.INT, Type.FLOAT, Type.TEXT, Type.BOOL, Type.DATE)
    return next((kind for kind in order if family(stored) in _STORED[kind]), None)


def _storage_form(shape: TableSchema, column: str, stored: str) -> str:
    found = written_as(stored)
    if found is None:
        what = f"{shape.name}.{column} says whose row it is or matches tables, and is stored as {stored}"
        raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text")
    return found


def read_text(column: str, kind: Type, zone: str | None, has_decimal_commas: bool) -> str:
    """A column of a CSV file in its declared type."""
    match kind:
        case Type.INT:
            return read_integer(column, has_decimal_commas=has_decimal_commas)
        case Type.FLOAT:
            return read_float(column, has_decimal_commas=has_decimal_commas)
        case Type.DATE:
            found = read_date(column, "VARCHAR", zone or UTC)
            return found if zone is not None else f"COALESCE({found}, {_keep_within_years(read_day(column))})"
    return _read(column, kind, "VARCHAR", zone)


def _read(column: str, kind: Type, stored: str, zone: str | None) -> str:
    """A column in its declared type. Texts of more than `LONGEST_TEXT` bytes are NULL."""
    if kind is Type.TIMESTAMP:
        return read_timestamp(column, stored, zone or UTC)
    if kind is Type.DATE and stored in MOMENTS:
        return read_date(column, stored, zone or UTC)
    value = f"TRY_CAST({column} AS {SQL_TYPES[kind]})"
    if kind is Type.TEXT:
        return f"CASE WHEN strlen({value}) <= {LONGEST_TEXT} THEN {value} END"
    return _keep_within_years(value) if kind is Type.DATE else value


def _keep_within_years(date: str) -> str:
    """A date, or NULL outside the years 1 to 9999, which Python has not."""
    return f"CASE WHEN {date} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {date} END"


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
