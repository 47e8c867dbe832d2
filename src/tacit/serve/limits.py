"""How often: so many requests a second for each person, and so many wrong keys a minute for each address.

>>> rate = Rate(per_second=1.0, burst=2)
>>> [rate.take("ada", now=0.0) for _ in range(3)]  # the third must wait a second
[0.0, 0.0, 1.0]
>>> rate.take("ada", now=1.0)
0.0
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

_MOST = 20_000  # names or addresses kept; those unused for longest are forgotten first


class Rate:
    """A bucket of `burst` tokens for each name, refilled at `per_second`.

    In any stretch of t seconds a name is granted at most burst + t * per_second requests. Proof: every grant takes a
    token, a bucket never holds more than `burst`, and t seconds add at most t * per_second. A name that is forgotten
    was unused for longer than others, and starts full.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self.per_second = per_second
        self.burst = burst
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when there were so many

    def take(self, name: str, now: float | None = None) -> float:
        """Take a token: 0 where there is one, else the seconds until there is."""
        return self._ask(name, now, take=True)

    def wait(self, name: str, now: float | None = None) -> float:
        """The seconds until there is a token. None is taken."""
        return self._ask(name, now, take=False)

    def _ask(self, name: str, now: float | None, *, take: bool) -> float:
        now = time.monotonic() if now is None else now
        with self._lock:
            tokens, then = self._buckets.pop(name, (float(self.burst), now))
            tokens = min(float(self.burst), tokens + max(0.0, now - then) * self.per_second)
            granted = tokens >= 1
            self._buckets[name] = (tokens - 1 if granted and take else tokens, now)
            while len(self._buckets) > _MOST:
                self._buckets.popitem(last=False)
        return 0.0 if granted else (1 - tokens) / self.per_second


class Attempts:
    """Wrong keys and passwords of each address: ten at once, then one every six seconds."""

    def __init__(self, per_second: float = 1 / 6, burst: int = 10) -> None:
        self._failures = Rate(per_second, burst)

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 where it may now."""
        return self._failures.wait(address)

    def failed(self, address: str) -> None:
        """Count a failure."""
        self._failures.take(address)
