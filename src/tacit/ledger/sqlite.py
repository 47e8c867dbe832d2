"""The ledger's SQLite file: opened safely, written durably."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from tacit.errors import ErrorCode, LedgerError
from tacit.ledger import schema
from tacit.ledger.entries import GENESIS
from tacit.ledger.files import FULL_DISK, make, tighten
from tacit.ledger.store import LedgerStore, Row, SqlTransaction

# Before 3.51.3, a checkpoint racing with a write that resets the log could lose committed pages.
# https://www.sqlite.org/wal.html#walresetbug
OLDEST_SQLITE = (3, 51, 3)

_DAMAGE_FIX = "keep the file as it is and verify it; an older copy would forget what was spent"
_ANOTHER = "name another file: a new one is made where there is none"
_FULL = "cannot grow: the disk is full"
_FULL_FIX = "free some space and ask again"
_RIGHTS_FIX = "give this user the right to write the file and its folder, and its disk too"
_CAUSES: tuple[tuple[type[apsw.Error], ErrorCode, str, str], ...] = (
    (apsw.NotADBError, ErrorCode.LEDGER, "is not a ledger", _ANOTHER),
    (apsw.CorruptError, ErrorCode.LEDGER_TAMPERED, "is damaged", _DAMAGE_FIX),
    (apsw.FullError, ErrorCode.LEDGER_FULL, _FULL, _FULL_FIX),
    (apsw.ReadOnlyError, ErrorCode.LEDGER_READ_ONLY, "cannot be written", _RIGHTS_FIX),
    (apsw.CantOpenError, ErrorCode.LEDGER, "cannot be opened", f"check that it is a file; {_RIGHTS_FIX}"),
    (apsw.ConstraintError, ErrorCode.LEDGER_TAMPERED, "does not accept this entry", _DAMAGE_FIX),
    (apsw.IOError, ErrorCode.LEDGER_DISK, "cannot be read or written", "check the disk, and that it is a local one"),
)


def _statements(version: int) -> list[str]:
    """All statements that make the tables and locks of a version."""
    return schema.create_statements(integer="INTEGER", blob="BLOB", strict=" STRICT", version=version) + [
        f"CREATE TRIGGER {lock.name} BEFORE {lock.event} ON {lock.table} WHEN {lock.condition}"
        f" BEGIN SELECT RAISE(ABORT, '{lock.name}'); END"
        for lock in schema.TRIGGERS
    ]


_STATEMENTS = _statements(schema.SCHEMA_VERSION)
_FORMER_STATEMENTS = _statements(schema.FORMER_VERSION)


def is_too_old(version: str) -> bool:
    """Whether a version of SQLite can lose committed pages."""
    return tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE


class SqliteStore(LedgerStore):
    """A file with a write-ahead log, synchronized to disk at every commit.

    `vfs` names the file system layer of SQLite to use, if not its own.
    """

    def __init__(self, path: Path, *, wait: float = 30.0, writable: bool = True, vfs: str | None = None) -> None:
        self.path = path
        self.name = str(path)
        self.wait = wait
        self._writable = writable
        self._vfs = vfs
        self._connection: apsw.Connection | None = None
        self._errno = 0  # the system's, of SQLite's last error
        self._identity: tuple[int, int] | None = None
        super().__init__()  # last: from here on a fork closes it

    def create(self, session: SqlTransaction) -> None:
        """Write the tables of a new ledger."""
        for statement in _STATEMENTS:
            session.run(statement)
        session.run("INSERT INTO head VALUES (1, 0, ?)", (GENESIS,))
        session.run(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        session.run(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")

    def is_blank(self, session: SqlTransaction) -> bool:
        """Whether there is no table yet."""
        return session.run("SELECT count(*) FROM sqlite_schema") == [(0,)] and self._marks(session) == (0, 0)

    def is_whole(self, session: SqlTransaction) -> bool:
        """Whether the tables and the locks are those written at the start."""
        found = session.run("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
        wanted = _FORMER_STATEMENTS if self._marks(session)[1] == schema.FORMER_VERSION else _STATEMENTS
        return sorted(str(sql) for (sql,) in found) == sorted(wanted)

    def upgrade(self, session: SqlTransaction) -> None:
        """Admit the kinds of entries that the former version had not: a condition, so that no page of rows changes.

        https://www.sqlite.org/lang_altertable.html#otheralter describes this way of changing one.
        """
        if self._marks(session)[1] != schema.FORMER_VERSION:
            return
        ((count,),) = session.run("PRAGMA schema_version")
        session.run("PRAGMA writable_schema = ON")
        for former, now in zip(_FORMER_STATEMENTS, _STATEMENTS, strict=True):
            if former != now:
                session.run("UPDATE sqlite_schema SET sql = ? WHERE sql = ?", (now, former))
        session.run(f"PRAGMA schema_version = {count + 1}")
        session.run("PRAGMA writable_schema = RESET")
        session.run(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")

    def damage(self, session: SqlTransaction) -> str:
        """What the database finds wrong with itself."""
        found = session.run("PRAGMA integrity_check(10)")
        return "" if found == [("ok",)] else "its pages or indexes contradict each other"

    def holder(self, session: SqlTransaction) -> str:
        """This process, by host, number and start."""
        return f"{socket.gethostname()} {os.getpid()} {_start_time(os.getpid())}"

    def is_alive(self, session: SqlTransaction, holder: str) -> bool:
        """Whether that process may still run; one of another host may."""
        host, _, process = holder.partition(" ")
        if host != socket.gethostname():
            return bool(holder)
        number, _, started = process.partition(" ")
        return number.isdecimal() and _is_running(int(number)) and started == _start_time(int(number))

    def is_known_alive(self, session: SqlTransaction, holder: str) -> bool:
        """Whether that process runs; of one of another host nothing is known.

        Where the system does not say when a process started, one that was given the same number is taken for it.
        """
        return holder.partition(" ")[0] == socket.gethostname() and self.is_alive(session, holder)

    @contextmanager
    def _transaction_of(self, writing: bool) -> Iterator[SqlTransaction]:
        with self._translate_errors():
            connection = self._connect()
            try:
                self._check_file()
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                yield _SqliteSession(connection)
                connection.execute("COMMIT")
                if writing:
                    self._check_file()  # what was written to a file that is gone does not count
            except apsw.Error:
                self._disconnect()  # which also rolls back; the next transaction starts afresh
                raise
            except BaseException:
                if self._connection is not None and connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._open()
            found = os.stat(self.path)
            self._identity = (found.st_dev, found.st_ino)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None  # where closing fails, it is closed all the same
        if connection is not None:
            self._errno = connection.system_errno
            connection.close(True)

    def _check_file(self) -> None:
        """The file that is open is still the one at the path."""
        try:
            found = os.stat(self.path)
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            self._disconnect()
            fix = "put it back as it was; a new one would forget what was spent"
            raise self.error("was removed or replaced", fix, ErrorCode.LEDGER_MISSING)

    def _open(self) -> apsw.Connection:
        if is_too_old(apsw.sqlite_lib_version()):
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise self.error(f"needs SQLite {needed}, and this is {apsw.sqlite_lib_version()}", "install a newer apsw")
        if not self.path.parent.is_dir():
            raise self.error("has no folder to lie in", f"make the folder {self.path.parent}")
        if not self._writable and not self.path.exists():
            raise self.error("does not exist", "check the path", ErrorCode.LEDGER_MISSING)
        if _size(Path(f"{self.path}-wal")) > 0 and _size(self.path) == 0:  # SQLite would delete the log
            fix = "put it back beside its log; if it is lost, move the log away and run: tacit ledger accept-loss"
            raise self.error("is empty or missing, and its log is there", fix, ErrorCode.LEDGER_MISSING)
        if self._identity is not None:
            self._check_file()  # a connection that was lost comes back to the same file only
        if self._writable and not self.path.exists():
            self._make_file()  # what SQLite lays beside it gets the rights that it has
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if self._writable else apsw.SQLITE_OPEN_READONLY
        connection = apsw.Connection(str(self.path), flags=flags, vfs=self._vfs)
        try:
            if self._writable and connection.readonly("main"):  # before SQLite lays files beside it
                raise self.error("cannot be written", _RIGHTS_FIX, ErrorCode.LEDGER_READ_ONLY)
            connection.set_busy_timeout(int(self.wait * 1000))
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # or statements are compiled anew for every value
            self._recognize(_SqliteSession(connection))
            connection.execute("PRAGMA foreign_keys = ON")
            if self._writable:
                tighten(self.path)
                self._make_durable(connection)
                for beside in ("-wal", "-shm", "-journal"):
                    tighten(Path(f"{self.path}{beside}"))
        except BaseException:
            self._errno = connection.system_errno
            connection.close(True)
            raise
        return connection

    def _make_file(self) -> None:
        """Make an empty file. Where there can be none, SQLite says better why, unless the disk is full."""
        try:
            make(self.path)
        except OSError as error:
            if error.errno in FULL_DISK:
                raise self.error(_FULL, _FULL_FIX, ErrorCode.LEDGER_FULL) from error

    def _recognize(self, session: SqlTransaction) -> None:
        """Leave a file alone that is something else."""
        if self.is_blank(session):
            if not self._writable:
                fix = "put it back as it was; where there was none, the first question makes it"
                raise self.error("is empty", fix, ErrorCode.LEDGER_MISSING)
            return
        application, version = self._marks(session)
        if application != schema.APPLICATION_ID:
            raise self.error("is not a ledger", _ANOTHER)
        if version not in (schema.FORMER_VERSION, schema.SCHEMA_VERSION):
            raise self.error(
                f"has version {version}; this Tacit reads {schema.SCHEMA_VERSION}", "use the Tacit that wrote it"
            )

    def _marks(self, session: SqlTransaction) -> tuple[int, int]:
        """The application and the schema version that the file's header names."""
        ((application,),) = session.run("PRAGMA application_id")
        ((version,),) = session.run("PRAGMA user_version")
        return int(application), int(version)

    def _make_durable(self, connection: apsw.Connection) -> None:
        """A commit returns once the operating system says that it is on disk."""
        if self._log_ahead(connection) != "wal":
            raise self.error("does not support a write-ahead log", "put it on a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS, where a plain sync does not reach the disk
        connection.execute("PRAGMA checkpoint_fullfsync = ON")

    def _log_ahead(self, connection: apsw.Connection) -> str:
        """Switch to the write-ahead log. SQLite does not wait for others who are switching too, so wait here."""
        deadline = time.monotonic() + self.wait
        while True:
            try:
                ((mode,),) = connection.execute("PRAGMA journal_mode = WAL").fetchall()
                return str(mode)
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """SQLite's errors in our words. Its own text is kept as the cause, out of what is shown.

        To SQLite a full disk is an error of input and output where it cannot make a file beside the ledger, or where it
        is a quota that is full; the system's number tells.
        """
        self._errno = 0
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as error:
            what = f"{self.path} was in use by another process for {self.wait:g} seconds"
            raise LedgerError(ErrorCode.LEDGER_BUSY, what, fix="try again when it is free") from error
        except apsw.Error as error:
            if isinstance(error, apsw.IOError | apsw.CantOpenError) and self._errno in FULL_DISK:
                raise self.error(_FULL, _FULL_FIX, ErrorCode.LEDGER_FULL) from error
            for kind, code, what, fix in _CAUSES:
                if isinstance(error, kind):
                    raise self.error(what, fix, code) from error
            raise self.error("cannot be used", _DAMAGE_FIX) from error


class _SqliteSession:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, tuple(values)).fetchall()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _read_process_status(process).startswith("Z")  # killed, and not yet buried


def _start_time(process: int) -> str:
    """When a process started, in the system's own count, so that a number used again is another name."""
    parts = _read_process_status(process).split()
    return parts[19] if len(parts) > 19 else ""


def _read_process_status(process: int) -> str:
    """What Linux says of a process after its name; nothing elsewhere."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2]
    except OSError:
        return ""
