"""Who starts next: few at once in their first moments, so that those who are nearly done are done soon.

Most questions are short and keep a core busy, so many at once only delay each other. Where the lock of the interpreter
is shared with long work, one at a time is too few: all of them together would get the share of one thread. A long
question lets others in after its first moments.

>>> pace = StartLimiter(1, moment=60)
>>> with pace:
...     pace.young
1
>>> pace.young
0
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType

RECENT_SECONDS = 0.25  # seconds after which a question is a long one


class StartLimiter:
    """A gate for threads: at most `quick` of those inside came in less than `moment` seconds ago.

    So whoever waits for those before them waits at most a moment for every `quick` of them, however long these run.
    """

    def __init__(self, quick: int | None = None, moment: float = RECENT_SECONDS) -> None:
        # A few more than cores, since some wait for disks, and twice as many: up to half of the time inside is a wait
        # for the edge of a step (`timing.py`). Letting others in before that edge would tell when the run ended.
        self._quick = quick or 2 * max(1, (os.cpu_count() or 2) + 1)
        self._moment = moment
        self._changed = threading.Condition()
        self._since: dict[int, float] = {}  # by thread

    @property
    def young(self) -> int:
        """How many came in less than a moment ago."""
        return len(self._times())

    def __enter__(self) -> None:
        with self._changed:
            while len(young := self._times()) >= self._quick:
                self._changed.wait(max(0.0, min(young) + self._moment - time.monotonic()))
            self._since[threading.get_ident()] = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            del self._since[threading.get_ident()]
            self._changed.notify()

    def _times(self) -> list[float]:
        return [since for since in self._since.values() if time.monotonic() - since < self._moment]
