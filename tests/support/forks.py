"""Children of a test, which are killed after a minute: one that hangs has failed."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable


def fork() -> int:
    """What `os.fork` returns, in the parent and in the child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there may be threads: that is often the point
        child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # not what the parent does when a test of its own takes too long
        signal.alarm(60)
    return child


def in_child(work: Callable[[], int]) -> int:
    """Run `work` in a forked process that exits with the number it returns, or 255."""
    child = fork()
    if child:
        return child
    code = 255
    try:
        code = work()
    finally:
        os._exit(code)


def outcome(child: int) -> int:
    """The number with which a child exits, or less than zero where a signal killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
