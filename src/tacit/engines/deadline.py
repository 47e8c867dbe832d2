"""How long an engine may work on one question: a limit of the thread that asks, which engines look up.

>>> with time_limit(60):
...     0 < seconds_left() <= 60
True
>>> seconds_left() is None
True
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

_AGAIN = 0.05  # seconds between two interrupts: one that comes between two statements stops neither
_IDLE = 10.0  # seconds for which the thread that interrupts waits for more work
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class TimeLimit(Exception):
    """A question ran for longer than it may."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit what this thread asks of engines while the block lasts; None is no limit."""
    token = _deadline.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """Return the seconds that this thread's question has left, None without a limit; raise TimeLimit at the end."""
    end = _deadline.get()
    if end is None:
        return None
    left = end - time.monotonic()
    if left <= 0:
        raise TimeLimit
    return left


@contextmanager
def interrupted_at_limit(interrupt: Callable[[], object]) -> Iterator[None]:
    """Call `interrupt` from another thread once the time is up, again and again until the block ends.

    It is never called once the block has ended. Whatever error the interrupted work raises, the block raises TimeLimit
    where the time was up.
    """
    left = seconds_left()
    if left is None:
        yield
        return
    global _watch  # noqa: PLW0603 - one thread of a process watches for all
    if _watch.process != os.getpid():  # forked: the thread and its lock are the parent's
        _watch = _DeadlineWatch()
    watch, work = _watch, _LimitedWork(time.monotonic() + left, interrupt)
    watch.add(work)
    try:
        yield
    except Exception:
        seconds_left()
        raise
    finally:
        watch.remove(work)


class _LimitedWork:
    """Some work, when its time is up, and how to interrupt it."""

    __slots__ = ("interrupt", "is_done", "lock", "next")

    def __init__(self, end: float, interrupt: Callable[[], object]) -> None:
        self.next = end + _AGAIN
        self.interrupt = interrupt
        self.is_done = False
        self.lock = threading.Lock()  # held while it is interrupted

    def interrupt_once(self) -> None:
        """Interrupt it, unless it is done."""
        with self.lock:
            if not self.is_done:
                with suppress(Exception):  # the others are still to be watched
                    self.interrupt()


class _DeadlineWatch:
    """One thread that interrupts all work of a process whose time is up. Starting one for each would cost more.

    The thread is woken where work comes that ends before it would look again: where all have the same limit, hardly
    ever. It ends where it looks and there is no work.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._changed = threading.Condition()
        self._works: set[_LimitedWork] = set()
        self._wakes = float("inf")  # when the thread looks next; never, where there is none
        self._thread: threading.Thread | None = None

    def add(self, work: _LimitedWork) -> None:
        """Interrupt it from its end on."""
        with self._changed:
            self._works.add(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="tacit-deadline", daemon=True)
                self._wakes = work.next
                self._thread.start()
            elif work.next < self._wakes:
                self._wakes = work.next
                self._changed.notify()

    def remove(self, work: _LimitedWork) -> None:
        """Interrupt it no longer; one that is under way is waited for."""
        with self._changed:
            self._works.discard(work)
        with work.lock:
            work.is_done = True

    def _watch(self) -> None:
        while (due := self._wait()) is not None:
            for work in due:
                work.interrupt_once()

    def _wait(self) -> list[_LimitedWork] | None:
        """Wait for work to interrupt; None where there is no work any longer."""
        with self._changed:
            now = time.monotonic()
            self._wakes = min((work.next for work in self._works), default=now + _IDLE)
            while now < self._wakes:
                self._changed.wait(self._wakes - now)
                now = time.monotonic()
            if not self._works:
                self._thread = None
                return None
            due = [work for work in self._works if work.next <= now]
            for work in due:
                work.next = now + _AGAIN
            return due


_watch = _DeadlineWatch()
