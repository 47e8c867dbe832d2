"""The ledger in a PostgreSQL database, where several hosts serve.

The URL's fragment names the ledger where one database holds several: postgresql://host/office#clinic.

**Rule.** A ledger has a session of the server's own. Settings hold for a session, and that a holder runs is known by
its session: through a pooler that may be another client's, and go on when the holder is gone, so that a run over live
tables that never ended would not be found. A pooler hands out cancel keys of its own, and the server tells its process
number with them; where that is not the one by which the session knows itself, the ledger is not opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from tacit.errors import ErrorCode, LedgerError, ParameterError
from tacit.extras import missing_extra
from tacit.ledger import schema
from tacit.ledger.entries import GENESIS
from tacit.ledger.store import LedgerStore, Row, SqlTransaction

try:
    import psycopg
    from psycopg import errors
except ImportError as error:  # an extra
    raise missing_extra("postgres", "a ledger in PostgreSQL", "psycopg") from error

_TABLES = schema.create_statements(integer="BIGINT", blob="BYTEA", strict="")
_KEEP = "keep the database as it is and verify the ledger; an older copy would forget what was spent"
_CONSTRAINTS_QUERY = """
SELECT relname::text, indisunique::int::bigint FROM pg_index JOIN pg_class ON indexrelid = pg_class.oid
    WHERE relnamespace = to_regnamespace(quote_ident(?)) AND indisvalid
UNION ALL SELECT relname || ' ' || contype::text, count(*) FROM pg_constraint JOIN pg_class ON conrelid = pg_class.oid
    WHERE relnamespace = to_regnamespace(quote_ident(?)) AND contype IN ('c', 'f') AND convalidated GROUP BY 1
UNION ALL SELECT rulename, -1 FROM pg_rules WHERE schemaname = ?
"""  # indexes, how many constraints, and rules, of which there are none
_HOLDER = "pid || ' ' || extract(epoch FROM backend_start)"  # the same text in every time zone
_CAUSES: tuple[tuple[type[psycopg.Error], ErrorCode, str, str], ...] = (
    (errors.DiskFull, ErrorCode.LEDGER_FULL, "cannot grow: the disk is full", "free some space and ask again"),
    (
        errors.ReadOnlySqlTransaction,
        ErrorCode.LEDGER_READ_ONLY,
        "cannot be written",
        "name the primary server, and let it accept writes",
    ),
    (errors.FeatureNotSupported, ErrorCode.LEDGER_READ_ONLY, "is on a standby", "name the primary server"),
    (
        errors.InsufficientPrivilege,
        ErrorCode.LEDGER_READ_ONLY,
        "cannot be written",
        "give this role the right to write",
    ),
    (errors.IoError, ErrorCode.LEDGER_DISK, "cannot be read or written", "check the server's disk"),
    (errors.DataCorrupted, ErrorCode.LEDGER_TAMPERED, "is damaged", _KEEP),
    (errors.IndexCorrupted, ErrorCode.LEDGER_TAMPERED, "is damaged", _KEEP),
    (errors.IntegrityError, ErrorCode.LEDGER_TAMPERED, "does not accept this entry", _KEEP),
    (errors.UndefinedColumn, ErrorCode.LEDGER_TAMPERED, "has lost a column", _KEEP),
    (errors.UndefinedTable, ErrorCode.LEDGER_MISSING, "has lost its tables", _KEEP),
    (psycopg.OperationalError, ErrorCode.LEDGER_UNREACHABLE, "cannot be reached", "check the server and the URL"),
)


class PostgresStore(LedgerStore):
    """A schema of a PostgreSQL database. Commits wait for the server's disk; writers wait for each other."""

    def __init__(self, url: str, *, wait: float = 30.0, writable: bool = True) -> None:
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = None
        if parts is None or "@" in parts.path:  # said without the URL: what does not parse may be the password
            fix = "write postgresql://user@host/database, and a character such as / in a password as %2F"
            raise ParameterError("store", "it is not a URL", fix=fix)
        if not re.fullmatch(r"[A-Za-z0-9_]{0,50}", parts.fragment):
            fix = "use letters, digits and _, at most 50: postgresql://host/office#clinic"
            raise ParameterError("store", "the name after # is none", fix=fix)
        self._url = url.partition("#")[0]
        self._schema = f"tacit_{parts.fragment}" if parts.fragment else "tacit"
        self.name = f"the ledger {self._schema} at {parts.hostname or 'this host'}{parts.path}"  # without the password
        self.wait = wait
        self._writable = writable
        self._connection: psycopg.Connection[Row] | None = None
        super().__init__()  # last: from here on a fork closes it

    def create(self, session: SqlTransaction) -> None:
        """Write the tables of a new ledger."""
        session.run(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
        for statement in _TABLES:
            session.run(statement)
        for lock in schema.TRIGGERS:
            session.run(
                f"CREATE FUNCTION {lock.name}() RETURNS trigger LANGUAGE plpgsql AS $lock${_trigger_body(lock)}$lock$"
            )
            for trigger in _trigger_statements(lock):
                session.run(trigger)
        session.run("INSERT INTO head VALUES (1, 0, ?)", (GENESIS,))
        self._mark_version(session)

    def is_blank(self, session: SqlTransaction) -> bool:
        """Whether there is no table yet."""
        return session.run("SELECT count(*) FROM pg_tables WHERE schemaname = ?", (self._schema,)) == [(0,)]

    def is_whole(self, session: SqlTransaction) -> bool:
        """Whether the tables and the locks are those written at the start."""
        columns = session.run(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ?", (self._schema,)
        )
        triggers = session.run(
            "SELECT replace(pg_get_triggerdef(pg_trigger.oid), quote_ident(?) || '.', ''), tgenabled, prosrc"
            " FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid JOIN pg_proc ON tgfoid = pg_proc.oid"
            " WHERE relnamespace = to_regnamespace(quote_ident(?)) AND NOT tgisinternal",
            (self._schema, self._schema),
        )
        rest = session.run(_CONSTRAINTS_QUERY, (self._schema,) * 3)
        locks = {
            (trigger, "O", _trigger_body(lock)) for lock in schema.TRIGGERS for trigger in _trigger_statements(lock)
        }
        return (
            set(columns) == _expected_columns()
            and set(map(_decode_row, triggers)) == locks
            and set(map(_decode_row, rest)) == _expected_constraints()
        )

    def upgrade(self, session: SqlTransaction) -> None:
        """Admit the kinds of entries that the former version had not."""
        if self._version(session) != str(schema.FORMER_VERSION):
            return
        session.run("ALTER TABLE entries DROP CONSTRAINT entries_kind_check")
        session.run(f"ALTER TABLE entries ADD CONSTRAINT entries_kind_check CHECK ({schema.kind_condition()})")
        self._mark_version(session)

    def damage(self, session: SqlTransaction) -> str:
        """What the database finds wrong with itself."""
        return ""  # the server checks its own pages as it reads them

    def holder(self, session: SqlTransaction) -> str:
        """This connection, by the server's name for it."""
        ((name,),) = session.run(f"SELECT {_HOLDER} FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        return str(name)

    def is_alive(self, session: SqlTransaction, holder: str) -> bool:
        """Whether that connection is still there, from whichever host."""
        found = session.run(f"SELECT 1 FROM pg_stat_activity WHERE {_HOLDER} = ?", (holder,))
        return bool(found)

    def is_known_alive(self, session: SqlTransaction, holder: str) -> bool:
        """Whether that connection is there: the server knows all of them."""
        return self.is_alive(session, holder)

    @contextmanager
    def _transaction_of(self, writing: bool) -> Iterator[SqlTransaction]:
        try:
            connection = self._connect()
            session = _PostgresSession(connection)
            try:
                self._begin(session, writing)
                yield session
                session.run("COMMIT")
            except psycopg.Error:
                self._disconnect()  # which also rolls back; the next transaction starts afresh
                raise
            except BaseException:
                with suppress(psycopg.Error):
                    session.run("ROLLBACK")
                raise
        except psycopg.Error as error:
            raise self._translate_error(error) from error

    def _begin(self, session: SqlTransaction, writing: bool) -> None:
        if not writing:
            session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        session.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        if self.is_blank(session):  # nobody else makes the tables meanwhile
            session.run("SELECT pg_advisory_xact_lock(hashtext(?))", (self._schema,))
        else:
            session.run("LOCK TABLE head IN EXCLUSIVE MODE")  # read committed: what follows sees all that came before

    def _connect(self) -> psycopg.Connection[Row]:
        if self._connection is None or self._connection.closed:
            self._connection = self._open()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=max(2, int(self.wait)),
            keepalives_idle=60,  # so that nothing in between drops a connection that waits for a long run
            keepalives_interval=10,
            keepalives_count=6,
        )
        try:
            session = _PostgresSession(connection)
            if session.run("SELECT pg_backend_pid()") != [(connection.info.backend_pid,)]:
                fix = "name the server itself: a ledger needs a session of its own"
                raise self.error("is reached through a connection pooler", fix)
            session.run("SELECT set_config('search_path', ?, false)", (f'"{self._schema}"',))
            session.run("SELECT set_config('lock_timeout', ?, false)", (f"{int(self.wait * 1000)}ms",))
            session.run("SET synchronous_commit = on")
            if session.run("SHOW fsync") != [("on",)]:
                raise self.error("is on a server that does not wait for its disk", "set fsync = on there")
            self._recognize(session)
        except BaseException:
            connection.close()
            raise
        return connection

    def _recognize(self, session: SqlTransaction) -> None:
        """Leave a schema alone that is something else."""
        if self.is_blank(session):
            if not self._writable:
                raise self.error("does not exist", "check the URL", ErrorCode.LEDGER_MISSING)
            return
        version = self._version(session)
        if version is None:
            raise self.error("is not a ledger", "name another one: postgresql://host/database#name")
        if version not in (str(schema.FORMER_VERSION), str(schema.SCHEMA_VERSION)):
            raise self.error(
                f"has version {version}; this Tacit reads {schema.SCHEMA_VERSION}", "use the Tacit that wrote it"
            )

    def _version(self, session: SqlTransaction) -> str | None:
        """The version that the schema's comment names; None where it is not a ledger's."""
        ((mark,),) = session.run("SELECT obj_description(to_regnamespace(?))", (f'"{self._schema}"',))
        return str(mark).removeprefix("tacit ledger ") if str(mark).startswith("tacit ledger ") else None

    def _mark_version(self, session: SqlTransaction) -> None:
        session.run(f"COMMENT ON SCHEMA \"{self._schema}\" IS 'tacit ledger {schema.SCHEMA_VERSION}'")

    def _translate_error(self, error: psycopg.Error) -> LedgerError:
        """PostgreSQL's errors in our words. Its own text is kept as the cause, out of what is shown."""
        if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled | errors.DeadlockDetected):
            what = f"{self.name} was in use by another process for {self.wait:g} seconds"
            return LedgerError(ErrorCode.LEDGER_BUSY, what, fix="try again when it is free")
        for kind, code, what, fix in _CAUSES:
            if isinstance(error, kind):
                return self.error(what, fix, code)
        return self.error("cannot be used", _KEEP)


class _PostgresSession:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        text = statement.replace("?", "%s") if values else statement
        cursor = self._connection.execute(text.encode(), tuple(values) or None)
        return cursor.fetchall() if cursor.description else []


def _trigger_body(lock: schema.Trigger) -> str:
    if lock.condition == "1 = 1":
        return f" BEGIN RAISE EXCEPTION '{lock.name}' USING ERRCODE = 'integrity_constraint_violation'; END "
    return (
        f" BEGIN IF {lock.condition} THEN RAISE EXCEPTION '{lock.name}'"
        " USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END "
    )


def _trigger_statements(lock: schema.Trigger) -> list[str]:
    """The triggers of a lock. TRUNCATE deletes too, and no trigger on rows sees it."""
    found = [f"CREATE TRIGGER {lock.name} BEFORE {lock.event} ON {lock.table} FOR EACH ROW"]
    if lock.event == "DELETE":
        found.append(f"CREATE TRIGGER {lock.name}_whole BEFORE TRUNCATE ON {lock.table} FOR EACH STATEMENT")
    return [f"{trigger} EXECUTE FUNCTION {lock.name}()" for trigger in found]


def _expected_columns() -> set[Row]:
    """The names of all columns, read off the statements that make them."""
    found = set()
    for statement in _TABLES:
        first, *lines = statement.splitlines()
        if first.startswith("CREATE TABLE "):
            table = first.split()[2]
            found |= {(table, line.split()[0]) for line in lines if line.startswith("    ")}
    return found


def _expected_constraints() -> set[Row]:
    """What `_CONSTRAINTS_QUERY` finds, read off the same statements."""
    found: set[Row] = set()
    for statement in _TABLES:
        name = statement.removeprefix("CREATE ").removeprefix("UNIQUE ").split()[1]
        if "INDEX" in statement:
            found.add((name, int("UNIQUE" in statement)))
        else:
            counts = {
                f"{name}_pkey": 1,
                f"{name} c": statement.count("CHECK ("),
                f"{name} f": statement.count("REFERENCES"),
            }
            found |= {(what, count) for what, count in counts.items() if count}
    return found


def _decode_row(row: Row) -> Row:
    return tuple(value.decode() if isinstance(value, bytes) else value for value in row)
