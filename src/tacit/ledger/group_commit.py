"""Threads that write to one ledger take turns, and those who wait meanwhile go together in the next transaction.

A disk acknowledges a transaction in milliseconds, however much is in it. Ten who write one after the other wait for it
ten times; ten who go together wait twice at most.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar, cast

from tacit.errors import ErrorCode, LedgerError, TacitError
from tacit.ledger.transaction import LedgerTransaction

T = TypeVar("T")

_MAX_BATCH = 64  # works in one transaction, so that nobody waits for a crowd


class GroupCommit:
    """Writes for threads in transactions that `writing` opens, many of them in one, in the order in which they came.

    **Theorem.** What `take` returns is on disk, and is what its work would have given in a transaction of its own at
    that moment; every work is written at most once, or finds what it wrote. Proof: one thread leads at a time. It takes
    works off the list under the lock and does one after the other in one durable transaction, where each finds what
    those before it wrote, as it would after them. A work that refuses has written nothing, so the others may go on.
    Where one fails otherwise, or all are done and their commit fails (a disk may be full with what another one wrote),
    each has a transaction of its own: what one thread runs into is no error of the others. It is not known of a failed
    commit that nothing was written, so a work that is done again after it must take what it wrote for its own: a
    settlement stands, and a charge is taken up. A transaction that cannot begin fails for all alike. A thread leaves
    once its work is done or, interrupted before that, off the list.
    """

    def __init__(self, writing: Callable[[], AbstractContextManager[LedgerTransaction]]) -> None:
        self._writing = writing
        self._begin()

    def take(self, work: Callable[[LedgerTransaction], T], undo: Callable[[T], None] = lambda outcome: None) -> T:
        """What `work` returns, durably. Where the caller was interrupted and never sees it, `undo` is told."""
        if self._process != os.getpid():  # the threads that waited here are the parent's
            self._begin()
        part = _PendingWork(work)
        try:
            self._wait(part)
        except BaseException:
            self._leave(part)
            if part.done and part.error is None:
                undo(part.outcome)
            raise
        if part.error is not None:
            raise part.error
        return part.outcome

    def _begin(self) -> None:
        self._process = os.getpid()
        self._turn = threading.Condition()
        self._waiting: list[_PendingWork[Any]] = []
        self._led = False  # whether a thread is writing

    def _wait(self, part: _PendingWork[Any]) -> None:
        """Wait until another thread has done it, or lead."""
        with self._turn:
            self._waiting.append(part)
            while self._led and not part.done:
                self._turn.wait()
            if part.done:
                return
            self._led = True
            parts, self._waiting = self._waiting[:_MAX_BATCH], self._waiting[_MAX_BATCH:]
        try:
            self._write(parts)
        except BaseException as error:  # an interrupt of this thread, which is none of the others'
            for each in parts:
                if not each.written:
                    each.fail(error if each is part else _interruption_error())
            raise
        finally:
            with self._turn:
                for each in parts:
                    each.done = True
                self._led = False
                self._turn.notify_all()

    def _leave(self, part: _PendingWork[Any]) -> None:
        """After an interrupt: off the list, or done."""
        with self._turn:
            if part in self._waiting:
                self._waiting.remove(part)
            else:
                while not part.done:
                    self._turn.wait()

    def _write(self, parts: Sequence[_PendingWork[Any]]) -> bool:
        """All in one transaction, or, where that cannot be, each in its own. Return whether one could begin."""
        begun = False
        try:
            with self._writing() as book:
                begun = True
                for part in parts:
                    part.attempt(book, alone=len(parts) == 1)
            for part in parts:
                part.written = True
        except Exception as error:  # noqa: BLE001 - each thread raises it where it waits
            if begun and len(parts) > 1:
                self._write_each(parts)
            else:
                for part in parts:
                    part.fail(error)
        return begun

    def _write_each(self, parts: Sequence[_PendingWork[Any]]) -> None:
        for number, part in enumerate(parts, 1):
            if not self._write([part]) and part.error is not None:
                for other in parts[number:]:
                    other.fail(part.error)
                return


class _PendingWork(Generic[T]):
    """The work of one thread, and what came of it."""

    def __init__(self, work: Callable[[LedgerTransaction], T]) -> None:
        self._work = work
        self._outcome: T | None = None
        self.error: BaseException | None = None
        self.written = False
        self.done = False

    @property
    def outcome(self) -> T:
        """What the work returned, once it is done without an error."""
        return cast("T", self._outcome)

    def attempt(self, book: LedgerTransaction, *, alone: bool) -> None:
        """Do the work. It counts once its transaction does."""
        before, self.error = book.written, None
        try:
            self._outcome = self._work(book)
        except Exception as error:
            refused = isinstance(error, TacitError) and not isinstance(error, LedgerError)
            if alone or not refused or book.written != before:
                raise
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """There is no outcome. Each thread gets a ledger's error in a copy, because it adds its own trace to it."""
        self._outcome, self.error = None, error
        if isinstance(error, LedgerError):
            self.error = LedgerError(error.code, error.what, fix=error.fix)
            self.error.__cause__ = error.__cause__


def _interruption_error() -> LedgerError:
    return LedgerError(ErrorCode.LEDGER_BUSY, "another thread was interrupted while it wrote", fix="ask again")
