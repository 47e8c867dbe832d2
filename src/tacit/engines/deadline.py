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
    try:
        watch.add(work)
        yield
    except Exception:
        seconds_left()
        raise
    finally:
        watch.remove(work)


class _LimitedWork:
    """Some work, when its time is up, and how to interrupt it."""

    def __init__(self, end: float, interrupt: Callable[[], object]) -> None:
        self.end = end + _AGAIN
        self._interrupt = interrupt
        self._done = threading.Event()
        self._interrupting: threading.Thread | None = None

    def start_interrupting(self) -> None:
        """Interrupt it again and again, by a thread of its own: one that has to wait holds up no other work."""
        interrupting = threading.Thread(target=self._interrupt_until_done, name="tacit-interrupt", daemon=True)
        interrupting.start()
        self._interrupting = interrupting

    def finish(self) -> None:
        """Interrupt it no longer; one that is under way is waited for."""
        self._done.set()
        if self._interrupting is not None:
            self._interrupting.join()

    def _interrupt_until_done(self) -> None:
        while not self._done.is_set():
            with suppress(Exception):  # it is tried again
                self._interrupt()
            self._done.wait(_AGAIN)


class _DeadlineWatch:
    """One thread that looks at the time of all work of a process. Starting one for each would cost more.

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
                self._wakes = work.end
                thread = threading.Thread(target=self._watch, name="tacit-deadline", daemon=True)
                thread.start()
                self._thread = thread
            elif work.end < self._wakes:
                self._wakes = work.end
                self._changed.notify()

    def remove(self, work: _LimitedWork) -> None:
        """Interrupt it no longer; one that is under way is waited for."""
        with self._changed:
            self._works.discard(work)
        work.finish()

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for work in [work for work in self._works if work.end <= now]:
                    try:
                        work.start_interrupting()
                        self._works.remove(work)
                    except RuntimeError:  # no more threads can be started: it is tried again
                        work.end = now + _AGAIN
                self._wakes = min((work.end for work in self._works), default=now + _IDLE)
                while (now := time.monotonic()) < self._wakes:
                    self._changed.wait(self._wakes - now)
                if not self._works:
                    self._thread = None
                    return


_watch = _DeadlineWatch()
