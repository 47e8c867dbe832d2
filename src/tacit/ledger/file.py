"""The ledger's SQLite file: opened safely, written durably, never carried across a fork."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

import apsw

from tacit.errors import Code, LedgerError
from tacit.ledger import schema

# Before 3.51.3, a checkpoint racing with a write that resets the log could lose committed pages.
# https://www.sqlite.org/wal.html#walresetbug
OLDEST_SQLITE = (3, 51, 3)

_KEEP = "keep the file as it is and verify it; an older copy would forget what was spent"
_CAUSES: tuple[tuple[type[apsw.Error], str, str], ...] = (
    (apsw.NotADBError, "is not a ledger", "name another file: a new one is made where there is none"),
    (apsw.CorruptError, "is damaged", _KEEP),
    (apsw.FullError, "cannot grow: the disk is full", "free some space and ask again"),
    (apsw.ReadOnlyError, "cannot be written", "give this user the right to write the file and its folder"),
    (apsw.CantOpenError, "cannot be opened", "check that it is a file, and this user's rights to it and to its folder"),
    (apsw.ConstraintError, "does not accept this entry", _KEEP),
    (apsw.IOError, "cannot be read or written", "check the disk, and that it is a local one"),
)


def is_too_old(version: str) -> bool:
    """Whether a version of SQLite can lose committed pages."""
    return tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE


class File:
    """One SQLite file behind one connection, which threads share in turn.

    A connection is closed before a fork, and parent and child each open their own when they next need it. Opening
    another in the child is not enough: SQLite keeps a process's locks in memory that the child inherits, so that the
    child believes it holds locks it does not hold, and its commits are lost when the parent closes the file.
    """

    def __init__(self, path: Path, *, wait: float, writable: bool) -> None:
        self.path = path
        self._wait = wait
        self._writable = writable
        self._connection: apsw.Connection | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        with _forking:
            _files.add(self)

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """A durable transaction: on a normal exit all of it is on disk, on an exception none of it is.

        Transactions of all threads and processes happen one after the other.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """One moment of the file: what others write meanwhile is not seen."""
        with self._transaction("BEGIN") as connection:
            yield connection

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        if self._process == os.getpid():
            with self._lock:
                self._closed = True
                self._disconnect()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[apsw.Connection]:
        if self._process != os.getpid():
            raise self._error("was opened before this process was forked", "open the ledger after the fork")
        with self._lock, self._explained():
            if self._closed:
                raise self._error("is closed", "open it again")
            connection = self._connect()
            try:
                connection.execute(begin)
                yield connection
                connection.execute("COMMIT")
            except apsw.Error:
                self._disconnect()  # which also rolls back; the next transaction starts afresh
                raise
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None

    def _open(self) -> apsw.Connection:
        if is_too_old(apsw.sqlite_lib_version()):
            raise self._error(
                f"needs SQLite {'.'.join(map(str, OLDEST_SQLITE))}, and this is {apsw.sqlite_lib_version()}",
                "install a newer apsw",
            )
        if not self.path.parent.is_dir():
            raise self._error("has no folder to lie in", f"make the folder {self.path.parent}")
        if not self._writable and not self.path.exists():
            raise self._error("does not exist", "check the path")
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if self._writable else apsw.SQLITE_OPEN_READONLY
        connection = apsw.Connection(str(self.path), flags=flags)
        try:
            connection.set_busy_timeout(int(self._wait * 1000))
            self._recognize(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            if self._writable:
                self._make_durable(connection)
        except BaseException:
            connection.close(True)
            raise
        return connection

    def _recognize(self, connection: apsw.Connection) -> None:
        """Leave a file alone that is something else."""
        if self._writable and schema.is_blank(connection):
            return
        application, version = schema.marks(connection)
        if application != schema.APPLICATION:
            raise self._error("is not a ledger", "name another file: a new one is made where there is none")
        if version != schema.VERSION:
            raise self._error(
                f"has version {version}; this Tacit reads {schema.VERSION}", "use the Tacit that wrote it"
            )

    def _make_durable(self, connection: apsw.Connection) -> None:
        """A commit returns once the operating system says that it is on disk."""
        if connection.readonly("main"):
            raise self._error("cannot be written", "give this user the right to write the file and its folder")
        if self._log_ahead(connection) != "wal":
            raise self._error("does not support a write-ahead log", "put it on a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS, where a plain sync does not reach the disk
        connection.execute("PRAGMA checkpoint_fullfsync = ON")

    def _log_ahead(self, connection: apsw.Connection) -> str:
        """Switch to the write-ahead log. SQLite does not wait for others who are switching too, so wait here."""
        deadline = time.monotonic() + self._wait
        while True:
            try:
                ((mode,),) = connection.execute("PRAGMA journal_mode = WAL").fetchall()
                return str(mode)
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _error(self, what: str, fix: str) -> LedgerError:
        return LedgerError(Code.LEDGER, f"{self.path} {what}", fix=fix)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors in our words. Its own text is kept as the cause, out of what is shown."""
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as error:
            what = f"{self.path} was in use by another process for {self._wait:g} seconds"
            raise LedgerError(Code.LEDGER_BUSY, what, fix="try again when it is free") from error
        except apsw.Error as error:
            for kind, what, fix in _CAUSES:
                if isinstance(error, kind):
                    raise self._error(what, fix) from error
            raise self._error("cannot be used", _KEEP) from error


_files: WeakSet[File] = WeakSet()
_forking = threading.Lock()
_held: list[File] = []


def _before_fork() -> None:
    """Wait for the transactions that run, then close every connection."""
    _forking.acquire()
    for file in list(_files):
        file._lock.acquire()
        _held.append(file)
        file._disconnect()


def _after_fork() -> None:
    while _held:
        file = _held.pop()
        file._process = os.getpid()
        file._lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
