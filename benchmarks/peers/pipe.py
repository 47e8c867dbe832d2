"""A side at the other end of a pipe: one request a line, one reply a line, both JSON. Standard library only.

The clock runs at the side, so the pipe is not in the times. Peak memory is that of the side's own process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version

from question import GROUPS

Table = Iterable[tuple[int, float, float]]
"""For each group, its count and its sum."""

Used = tuple[int, float]
"""Peak memory in bytes, and processor time in seconds."""


def serve(ask: Callable[[], Table], packages: Iterable[str], more: Callable[[], Used] = lambda: (0, 0.0)) -> None:
    """Answer until the pipe closes. `more` is what a process that the side has started itself has used so far."""
    # What a library prints must not get between the replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def reply(what: dict[str, object]) -> None:
        print(json.dumps(what), file=replies, flush=True)

    reply({"versions": {name: version(name) for name in packages}})
    for _ in sys.stdin:
        used, start = time.process_time() + more()[1], time.perf_counter()
        found = ask()
        seconds, used = time.perf_counter() - start, time.process_time() + more()[1] - used
        counts, sums = [0.0] * GROUPS, [0.0] * GROUPS
        for group, count, total in found:
            counts[int(group)], sums[int(group)] = float(count), float(total)
        reply({"seconds": seconds, "cpu": used, "n": counts, "s": sums, "peak": peak() + more()[0]})


def peak() -> int:
    """The most memory that this process has held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
