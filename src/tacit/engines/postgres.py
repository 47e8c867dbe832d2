"""PostgreSQL, over the tables that a role may read.

Every question runs in one read-only transaction that sees one state of the tables. Only SQL that
`engines/sql_statements.py` generates is ever run; an analyst's text is not. A role that can only read is advised: then
nothing but the server's own rights stands between a question and a write.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from tacit.engines.bare_nulls import write_bare_nulls, write_bare_nulls_of_clipped, write_bare_nulls_of_rows
from tacit.engines.base import GroupedMeasures, NothingSent, TableSchema
from tacit.engines.deadline import seconds_left
from tacit.engines.dialect import POSTGRES, POSTGRES_17
from tacit.engines.left_out import LeftOut
from tacit.engines.limit_joins import limit_clipped_joins, limit_joins
from tacit.engines.profile_statements import run_profile
from tacit.engines.run_statements import run_aggregation
from tacit.engines.source_columns import SourceColumn
from tacit.engines.sql_statements import write_some_rows
from tacit.engines.underflow import FloatColumns, guard_clipped_products, guard_products
from tacit.engines.uniqueness import write_is_unique
from tacit.errors import DataError, ErrorCode, ParameterError
from tacit.extras import missing_extra
from tacit.privacy.contribution_profile import ContributionProfile
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import Aggregation, RelationalNode
from tacit.query.types import Type

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from tacit.engines.relations import (
        Connection,
        check_read_access,
        check_zones,
        declarable_type,
        find_table,
        list_tables,
        select_declared_columns,
        written_as,
    )
    from tacit.engines.views import check_computed
except ImportError as error:  # an extra
    raise missing_extra("postgres", "a PostgreSQL source", "psycopg") from error

_log = logging.getLogger("tacit")

_MIN_VERSION = 130000  # the version that has trim_scale
_UNICODE_CASE_VERSION = 170000  # the version that has the collation pg_c_utf8
_SETTINGS = {
    "default_transaction_read_only": "on",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "jit": "off",  # its time depends on what the planner expects of the rows
}
# A feature that the server lacks, a constant or a text that it cannot read, and one that is too long for it.
_REFUSALS = ("0A", "22", "42", "54")
_CHANGED = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)  # since it was opened: for the owner to see
_LIMIT = "SELECT set_config('statement_timeout', %s, true)"
_WRITABLE = "SELECT has_table_privilege(CAST(%s AS regclass), 'INSERT, UPDATE, DELETE, TRUNCATE')"


class PostgresEngine:
    """An engine over the tables of a policy. `dsn` is a URL or a connection string; tables are found along its search
    path. `timeout` is the most seconds that a statement may take, a public limit."""

    def __init__(self, shapes: Iterable[TableSchema], dsn: str, timeout: float = 600.0) -> None:
        self._dsn, self._timeout = dsn, timeout
        self._place = _describe_database(dsn)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._process = os.getpid()
        self._sources: dict[str, str] = {}
        self._kinds: dict[str, dict[str, Type]] = {}
        self._written: dict[str, dict[str, str]] = {}
        with _translate_errors(self._place):
            connection = self._connect()
        self._dialect = POSTGRES if connection.info.server_version < _UNICODE_CASE_VERSION else POSTGRES_17
        try:
            tables = list_tables(connection)
            for shape in shapes:
                table = find_table(shape, tables, self._place)
                self._sources[shape.name], self._kinds[shape.name] = select_declared_columns(
                    shape, table, tables[table]
                )
                self._written[shape.name] = written_as(shape, tables[table])
                check_zones(connection, shape)
                check_read_access(connection, shape, self._sources[shape.name])
                check_computed(connection, shape, table)
                self._advise(connection, table)
            connection.execute("SET search_path = pg_catalog")
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure, all over one state of the tables."""
        node = guard_products(write_bare_nulls(limit_joins(aggregation)), self._list_floats())
        with self._snapshot() as connection:
            run = _Statements(connection, self._timeout)
            return run_aggregation(node, self._sources, self._dialect, run, run.prepare)

    def profile(self, aggregation: ClippedAggregation) -> ContributionProfile:
        """How many units there are of each L1 norm, and what those of a norm add, by one statement."""
        bare = write_bare_nulls_of_clipped(limit_clipped_joins(aggregation))
        node = guard_clipped_products(bare, self._list_floats())
        with self._snapshot() as connection:
            return run_profile(node, self._sources, self._dialect, _Statements(connection, self._timeout))

    def _list_floats(self) -> dict[str, FloatColumns]:
        """The columns of each table that are floats."""
        return {
            table: frozenset(column for column, kind in kinds.items() if kind is Type.FLOAT)
            for table, kinds in self._kinds.items()
        }

    def read(self, rows: RelationalNode, most: int) -> list[tuple[Any, ...]]:
        """The rows of a node over public tables, at most so many of them, in no order."""
        statement = write_some_rows(write_bare_nulls_of_rows(rows), most, self._sources, self._dialect)
        with self._snapshot() as connection:
            return connection.execute(statement.encode()).fetchall()

    def is_unique(self, table: str, *columns: str) -> bool:
        """Whether no two rows have the same values in all these columns, as they are read; NULL is no value."""
        statement = write_is_unique([POSTGRES.name(column) for column in columns], self._sources[table])
        with self._snapshot() as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return bool(row[0])

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""
        return self._kinds[table][column]

    def written_as(self, table: str, column: str) -> str:
        """How the stored values of a unit or of a column that matches tables are written."""
        return self._written[table][column]

    def source_digests(self) -> dict[str, str]:
        """Nothing for any table: it is read whenever it is asked about."""
        return dict.fromkeys(self._sources, "")

    def close(self) -> None:
        """Let go of the data."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        """A connection that sees one state of the tables. One that fails is not used again."""
        if self._process != os.getpid():
            raise NothingSent("a connection does not survive a fork: open the curator in the process that asks")
        try:
            connection = self._begin()
        except Exception as error:
            raise NothingSent from error
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def _begin(self) -> Connection:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            try:
                connection.execute(begin)
            except psycopg.OperationalError:  # the server has restarted since
                connection.close()
            else:
                return connection
        connection = self._connect()
        connection.execute("SET search_path = pg_catalog")
        connection.execute(begin)
        return connection

    def _connect(self) -> Connection:
        return _connect_read_only(self._dsn, self._place, self._timeout)

    def _advise(self, connection: Connection, table: tuple[str, str]) -> None:
        """Tell the owner's log of a role that may write."""
        named = ".".join(map(POSTGRES.name, table))
        row = connection.execute(_WRITABLE, (named,)).fetchone()
        if row is not None and row[0]:
            _log.warning("the role of %s may write to %s: name one that can only read", self._place, named)


class _Statements:
    """Runs the statements of a call, for as long as is left of the question's time.

    **Rule.** The server reads the texts of statements before the first of them is run. PREPARE reads no row, so where
    it is refused, the text is the cause, and no row is.
    """

    def __init__(self, connection: Connection, timeout: float) -> None:
        self._connection, self._timeout = connection, timeout
        self._prepared: dict[str, str] = {}
        self._numbers, self._has_run = count(1), False

    def prepare(self, statements: Iterable[str]) -> None:
        """Have the server read statements, of which none was run."""
        for statement in dict.fromkeys(statements):
            name = f"tacit_{next(self._numbers)}"
            self._limit_time()
            try:
                self._connection.execute(f"PREPARE {name} AS {statement}".encode())
            except psycopg.Error as error:
                is_refused = (error.sqlstate or "").startswith(_REFUSALS) and not isinstance(error, _CHANGED)
                if self._has_run or not is_refused:
                    raise
                raise NothingSent from error
            self._prepared[statement] = name

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        if statement not in self._prepared:
            self.prepare([statement])
        self._limit_time()
        self._has_run = True
        name = self._prepared.pop(statement)
        rows = self._connection.execute(f"EXECUTE {name}".encode()).fetchall()
        self._connection.execute(f"DEALLOCATE {name}".encode())
        return rows

    def _limit_time(self) -> None:
        left = seconds_left()
        if left is not None and left < self._timeout:  # for this transaction only
            self._connection.execute(_LIMIT, (f"{max(1, round(left * 1000))}ms",))


def read_columns(dsn: str) -> dict[str, list[SourceColumn]]:
    """The tables of a database with the names and types of their columns, and why where no declared type fits.

    Names and types only: no row is read.
    """
    place = _describe_database(dsn)
    with _translate_errors(place), _connect_read_only(dsn, place, timeout=60) as connection:
        found: dict[str, list[SourceColumn]] = {}
        for (_, table), columns in list_tables(connection).items():
            kinds = [SourceColumn(column, declarable_type(kind) or LeftOut(kind)) for column, kind in columns.items()]
            found.setdefault(table, kinds)
        return found


def _connect_read_only(dsn: str, place: str, timeout: float) -> Connection:
    """A connection that only reads, and that reads texts, dates and times alike wherever the server stands."""
    connection = psycopg.connect(
        dsn,
        autocommit=True,
        prepare_threshold=None,
        application_name="tacit",
        connect_timeout=30,
        keepalives_idle=60,
        keepalives_interval=10,
        keepalives_count=6,
    )
    try:
        for setting, value in {**_SETTINGS, "statement_timeout": f"{max(1, round(timeout * 1000))}ms"}.items():
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        _check_server(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def _describe_database(dsn: str) -> str:
    """The database in words, without the password."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:  # said without the text: what does not parse may be the password
        fix = "write postgresql://user@host/database, and a character such as / in a password as %2F"
        raise ParameterError("source", "it is not the URL of a PostgreSQL database", fix=fix) from None
    return f"{parts.get('dbname') or 'the database'} at {parts.get('host') or 'this host'}"


@contextmanager
def _translate_errors(place: str) -> Iterator[None]:
    """What keeps an owner from the database. Its own text is kept as the cause, out of what is shown."""
    try:
        yield
    except psycopg.Error as error:
        fix = "check the server, the URL and the role's rights"
        raise DataError(ErrorCode.DATA, f"{place} cannot be reached", fix=fix) from error


def _check_server(connection: Connection, place: str) -> None:
    if connection.info.server_version < _MIN_VERSION:
        raise DataError(ErrorCode.DATA, f"{place} is older than PostgreSQL 13", fix="use a newer server")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        fix = "dump it into a database made with ENCODING 'UTF8'"
        raise DataError(
            ErrorCode.DATA, f"{place} has the encoding {encoding}, so texts would not be what they are", fix=fix
        )
