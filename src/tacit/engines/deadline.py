"""How long an engine may work on one question: a limit of the thread that asks, which engines look up.

>>> with time_limit(60):
...     0 < seconds_left() <= 60
True
>>> seconds_left() is None
True
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_AGAIN = 0.05  # seconds between two interrupts: one that comes between two statements stops neither
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

    Whatever error the interrupted work raises, the block raises TimeLimit where the time was up.
    """
    left = seconds_left()
    if left is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        if not done.wait(left):
            while not done.wait(_AGAIN):
                interrupt()

    watcher = threading.Thread(target=watch, name="tacit-deadline", daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        seconds_left()
        raise
    finally:
        done.set()
        watcher.join()
