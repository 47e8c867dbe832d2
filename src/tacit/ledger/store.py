"""A database that holds a ledger: durable transactions, one after the other, never carried across a fork."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import WeakSet

from tacit.errors import ErrorCode, LedgerError

Row = tuple[Any, ...]


class SqlTransaction(Protocol):
    """A transaction that is open. Values stand as ? in the statement."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement, and hand back all rows that it gives."""


class LedgerStore(ABC):
    """One database behind one connection, which threads share in turn.

    The connection is closed before a fork, and parent and child each open their own when they next need it: a
    connection that two processes write to is corrupted, and SQLite's locks do not survive in a child at all.
    """

    name: str  # how errors call it
    wait: float  # seconds to wait for others

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        with _forking:
            _stores.add(self)

    @contextmanager
    def write(self) -> Iterator[SqlTransaction]:
        """A durable transaction: on a normal exit all of it is on disk, on an exception none of it is.

        Write transactions of all threads, processes and hosts happen one after the other.
        """
        with self._transaction(writing=True) as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[SqlTransaction]:
        """One moment of the database: what others write meanwhile is not seen."""
        with self._transaction(writing=False) as session:
            yield session

    def close(self) -> None:
        """Let go of the database. Closing twice is harmless."""
        if self._process == os.getpid():
            with self._lock:
                self._closed = True
                self._disconnect()

    @abstractmethod
    def create(self, session: SqlTransaction) -> None:
        """Write the tables of a new ledger, inside the caller's transaction."""

    @abstractmethod
    def is_blank(self, session: SqlTransaction) -> bool:
        """Whether nothing was ever written here."""

    @abstractmethod
    def is_whole(self, session: SqlTransaction) -> bool:
        """Whether the tables and the locks are those written at the start."""

    @abstractmethod
    def upgrade(self, session: SqlTransaction) -> None:
        """Bring the tables of the former version to this one, inside the caller's transaction."""

    @abstractmethod
    def damage(self, session: SqlTransaction) -> str:
        """What the database itself finds wrong with its pages and indexes, or nothing."""

    @abstractmethod
    def holder(self, session: SqlTransaction) -> str:
        """A name of this process, by which others can tell whether it still runs."""

    @abstractmethod
    def is_alive(self, session: SqlTransaction, holder: str) -> bool:
        """Whether a holder may still run. A wrong verdict costs time or budget, never privacy."""

    @abstractmethod
    def is_known_alive(self, session: SqlTransaction, holder: str) -> bool:
        """Whether a holder surely runs. A wrong no locks a table for nothing; a yes is never wrong."""

    @abstractmethod
    def _transaction_of(self, writing: bool) -> Any:
        """A context of one transaction on the connection, which is made if there is none."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the connection if there is one; what was not committed is undone."""

    def error(self, what: str, fix: str, code: ErrorCode = ErrorCode.LEDGER) -> LedgerError:
        """An error that names this database."""
        return LedgerError(code, f"{self.name} {what}", fix=fix)

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[SqlTransaction]:
        if self._process != os.getpid():
            raise self.error("was opened before this process was forked", "open the ledger after the fork")
        with self._lock:
            if self._closed:
                raise self.error("is closed", "open it again")
            with self._transaction_of(writing) as session:
                yield session


_stores: WeakSet[LedgerStore] = WeakSet()
_forking = threading.Lock()
_locked: list[LedgerStore] = []


def _before_fork() -> None:
    """Wait for the transactions that run, then close every connection."""
    _forking.acquire()
    for store in list(_stores):
        store._lock.acquire()
        _locked.append(store)
        store._disconnect()


def _after_fork() -> None:
    while _locked:
        store = _locked.pop()
        store._process = os.getpid()
        store._lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
