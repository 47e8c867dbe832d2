"""How much of something each analyst may use in a while: a token bucket that gives the wait in place of a refusal.

>>> throttle = Throttle(per_second=4.0, burst=2.0)
>>> [throttle.delay("ada", 1.0, now=0.0) for _ in range(4)]
[0.0, 0.0, 0.25, 0.5]
>>> throttle.delay("ben", 1.0, now=0.0)
0.0
"""

from __future__ import annotations

import time


class Throttle:
    """Delays what comes faster than `per_second`, after a burst of `burst`.

    **Theorem.** In any stretch of t seconds, what is charged to a name and served after its delay amounts to at most
    burst + t * per_second, and the cost of one more. Proof: `_full[name]` is the moment at which the bucket is full
    again. Each charge moves it on by cost / per_second, and nothing is served earlier than burst / per_second before
    it. Each charge is waited for once, so those who wait are not woken together.
    """

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst / per_second  # in seconds
        self._full: dict[str, float] = {}

    def delay(self, name: str, cost: float, now: float | None = None) -> float:
        """Charge a cost, and return the seconds to wait before it is served."""
        now = time.monotonic() if now is None else now
        self._full[name] = max(self._full.get(name, now), now) + cost / self._per_second
        return self.wait(name, now)

    def wait(self, name: str, now: float | None = None) -> float:
        """The seconds until what was charged so far may have been served; nothing is charged."""
        now = time.monotonic() if now is None else now
        return max(0.0, self._full.get(name, now) - self._burst - now)
