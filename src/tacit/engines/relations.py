"""The tables of a PostgreSQL database: the types they are stored in, and how each declared column is read."""

from __future__ import annotations

from typing import Any

import psycopg

from tacit.engines.base import TableSchema
from tacit.engines.dialect import POSTGRES
from tacit.engines.left_out import suggest_type
from tacit.engines.read_times import FIRST_DAY, LAST_DAY, keep_within_years, to_date
from tacit.engines.zones import UTC
from tacit.errors import DataError, ErrorCode
from tacit.query.timestamps import DAY, SECOND
from tacit.query.types import Type

Connection = psycopg.Connection[tuple[Any, ...]]

StoredColumns = dict[tuple[str, str], dict[str, str]]
"""(schema, table) -> {column: stored type}, in the order of the search path."""

_INTEGERS = {"smallint", "integer", "bigint"}
_INSTANT = "timestamp with time zone"
_MOMENTS = {"timestamp without time zone", _INSTANT}
# The types of PostgreSQL that each declared type may be stored in. Others are said at open.
_STORED = {
    Type.INT: _INTEGERS,
    Type.FLOAT: {"real", "double precision", "numeric", *_INTEGERS},
    Type.TEXT: {"text", "character varying", "character", "uuid", "enum"},
    Type.BOOL: {"boolean"},
    Type.DATE: {"date", *_MOMENTS},
    Type.TIMESTAMP: {"date", *_MOMENTS},
}
_PLAIN = {"text", "character varying", "enum"}  # unlike "character", whose trailing blanks do not count
# What else may say whose row it is, or match tables, as a text in which equal values are equal.
_COMPARABLE = {*_STORED[Type.TEXT], "numeric", "date", "boolean"}
_YEARS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
# A domain is what it is made of; a text in whose collation different texts may be equal is none of ours.
_COLUMNS = """
SELECT nspname::text, relname::text, attname::text,
    CASE WHEN typtype = 'e' THEN 'enum' ELSE format_type(COALESCE(NULLIF(typbasetype, 0), pg_type.oid), NULL) END
    || CASE WHEN collisdeterministic IS FALSE THEN ' of a nondeterministic collation' ELSE '' END
FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
    JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    JOIN pg_type ON atttypid = pg_type.oid LEFT JOIN pg_collation ON attcollation = pg_collation.oid
WHERE nspname = ANY(current_schemas(false)) AND relkind IN ('r', 'v', 'm', 'p', 'f')
ORDER BY array_position(current_schemas(false), nspname), relname, attnum
"""


def check_read_access(connection: Connection, shape: TableSchema, source: str) -> None:
    """That the declared columns can be read at all. No row is."""
    try:
        connection.execute(f"SELECT * FROM {source} LIMIT 0".encode())
    except psycopg.errors.InsufficientPrivilege as error:
        what = f"the role may not read all columns of {shape.name} that the policy names"
        raise DataError(ErrorCode.DATA, what, fix="GRANT SELECT on it to the role") from error
    except psycopg.Error as error:
        raise DataError(ErrorCode.DATA, f"{shape.name} cannot be read", fix="check the table or view") from error


def list_tables(connection: Connection) -> StoredColumns:
    """All tables and views along the search path."""
    found: StoredColumns = {}
    for schema, table, column, stored in connection.execute(_COLUMNS):
        found.setdefault((schema, table), {})[column] = stored
    return found


def find_table(shape: TableSchema, tables: StoredColumns, place: str) -> tuple[str, str]:
    """The first table of that name along the search path; one that differs in capitals only if there is no other."""
    exact = [table for table in tables if table[1] == shape.name]
    alike = [table for table in tables if table[1].lower() == shape.name.lower()]
    if not alike:
        names = ", ".join(sorted(table for _, table in tables))[:300] or "none"
        what = f"table {shape.name} was not found: the search path of {place} has {names}"
        raise DataError(ErrorCode.DATA, what, fix="check its name, and that the role may use its schema")
    return (exact or alike)[0]


def select_declared_columns(
    shape: TableSchema, table: tuple[str, str], stored: dict[str, str]
) -> tuple[str, dict[str, Type]]:
    """The declared columns, each read in its declared type, and the types of all that are read."""
    exact = {column.lower(): column for column in stored} | {column: column for column in stored}
    columns, kinds, zones = [], {}, dict(shape.zones)
    for column, kind in shape.columns:
        found = _find_column(shape, column, exact)
        if stored[found] not in _STORED[kind]:
            raise DataError(
                ErrorCode.DATA,
                f"{shape.name}.{column} is declared {kind} but stored as {stored[found]}",
                fix=suggest_type(declarable_type(stored[found]), stored[found]),
            )
        value = _cast_to_declared(POSTGRES.name(found), kind, stored[found], zones.get(column, UTC))
        columns.append(f"{value} AS {POSTGRES.name(column)}")
        kinds[column] = kind
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        if column not in kinds:
            found = _find_column(shape, column, exact)
            value, kinds[column] = _cast_join_column(shape, column, POSTGRES.name(found), stored[found])
            columns.append(f"{value} AS {POSTGRES.name(column)}")
    source = f"(SELECT {', '.join(columns)} FROM {'.'.join(map(POSTGRES.name, table))}) AS source"
    return source, kinds


def _cast_to_declared(column: str, kind: Type, stored: str, zone: str) -> str:
    """A column in its declared type. Dates outside the years 1 to 9999, which Python has not, are NULL."""
    match kind:
        case Type.TIMESTAMP:
            return _read_timestamp(column, stored, zone)
        case Type.DATE if stored in _MOMENTS:
            return to_date(_read_timestamp(column, stored, zone), POSTGRES)
        case Type.TEXT:
            return f'CAST({column} AS TEXT) COLLATE "C"'
        case Type.DATE:
            return f"CASE WHEN {column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {column} END"
        case Type.FLOAT if stored == "numeric":
            # A numeric may be NaN, infinite, or have more digits before or after the point than a double reaches.
            far = f"WHEN {column} > 1e300 THEN CAST('Infinity' AS DOUBLE PRECISION)"
            far += f" WHEN {column} < -1e300 THEN CAST('-Infinity' AS DOUBLE PRECISION)"
            near = f"WHEN abs({column}) < 1e-300 THEN 0 ELSE CAST({column} AS DOUBLE PRECISION)"
            return f"CASE WHEN {column} = 'NaN' THEN NULL {far} {near} END"
    return f"CAST({column} AS {POSTGRES.types[kind]})"


def _read_timestamp(column: str, stored: str, zone: str) -> str:
    """A stored time as a timestamp, by the rule of `engines/read_times.py`; the server's own database has the zones."""
    if stored == "date":
        days = f"CAST({column} - {FIRST_DAY} AS BIGINT)"
        return f"CASE WHEN {column} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {days} * {DAY} END"
    clock = f"({column} AT TIME ZONE {POSTGRES.text(zone)})" if stored == _INSTANT else column
    days, time = f"CAST(CAST({clock} AS DATE) - {FIRST_DAY} AS BIGINT)", f"EXTRACT(EPOCH FROM CAST({clock} AS TIME))"
    value = f"{days} * {DAY} + CAST({time} * {SECOND} AS BIGINT)"
    first, last = (f"TIMESTAMPTZ '{end}+00'" if stored == _INSTANT else f"TIMESTAMP '{end}'" for end in _YEARS)
    value = keep_within_years(value) if stored == _INSTANT else value
    return f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {value} END"


def check_zones(connection: Connection, shape: TableSchema) -> None:
    """The server has the zones that are declared."""
    for column, zone in shape.zones:
        try:
            connection.execute("SELECT CAST(%s AS timestamptz) AT TIME ZONE %s", ("2025-01-01 00:00:00+00", zone))
        except psycopg.errors.InvalidParameterValue as error:
            what = f"{shape.name}.{column} is declared in {zone}, which the server does not know"
            raise DataError(ErrorCode.DATA, what, fix="name a zone of SELECT name FROM pg_timezone_names") from error


def _cast_join_column(shape: TableSchema, column: str, found: str, stored: str) -> tuple[str, Type]:
    """A column by which tables are matched and which no type is declared for: integers stay so, all else is text.

    Values that PostgreSQL holds for equal must be equal texts: two names of one person would be two people.
    """
    if stored in _INTEGERS:
        return f"CAST({found} AS BIGINT)", Type.INT
    if stored not in _COMPARABLE:
        what = f"{shape.name}.{column} says whose row it is or matches tables, and is stored as {stored}"
        raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text")
    value = f"trim_scale({found})" if stored == "numeric" else found
    return f'CAST({value} AS TEXT) COLLATE "C"', Type.TEXT


def written_as(shape: TableSchema, stored: dict[str, str]) -> dict[str, str]:
    """How the unit and what matches tables is written: columns that are written alike hold one value as one."""
    exact = {column.lower(): column for column in stored} | {column: column for column in stored}
    kinds, written = dict(shape.columns), {}
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        found = stored[_find_column(shape, column, exact)]
        if kinds.get(column) is Type.FLOAT:
            what = f"{shape.name}.{column} says whose row it is or matches tables, and is declared float"
            raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text, and declare it so")
        if kinds.get(column) is Type.TIMESTAMP or (kinds.get(column) is Type.DATE and found in _MOMENTS):
            what = f"{shape.name}.{column} says whose row it is or matches tables, and is a time that is read in a zone"
            raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text, and declare it so")
        written[column] = "integer" if found in _INTEGERS else "text" if found in _PLAIN else found
    return written


def _find_column(shape: TableSchema, column: str, exact: dict[str, str]) -> str:
    found = exact.get(column) or exact.get(column.lower())
    if found is None:
        names = ", ".join(dict.fromkeys(exact.values()))
        raise DataError(ErrorCode.DATA, f"{shape.name} has no column {column}", fix=f"the data has {names[:300]}")
    return found


def declarable_type(stored: str) -> Type | None:
    """The type to declare for a stored one."""
    if stored in _MOMENTS:
        return Type.TIMESTAMP
    order = (Type.INT, Type.FLOAT, Type.TEXT, Type.BOOL, Type.DATE)
    return next((kind for kind in order if stored in _STORED[kind]), None)
