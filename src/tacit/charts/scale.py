"""Where a number stands on an axis, and the round numbers along it.

>>> AxisScale(0, 10).share(5), AxisScale(0, 10).ticks()
(0.5, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
>>> AxisScale(0.01, 100, is_log=True).ticks()
[0.01, 0.1, 1.0, 10.0, 100.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class AxisScale:
    """An axis from `low` to `high`, linear or logarithmic, with about `count` ticks."""

    low: float
    high: float
    is_log: bool = False
    count: int = 5

    def share(self, value: float) -> float:
        """Return the place of a number: 0 at the low end, 1 at the high end."""
        low, high, here = self.low, self.high, value
        if self.is_log:
            low, high, here = math.log(low), math.log(high), math.log(value)
        return (here - low) / ((high - low) or 1)

    def ticks(self) -> list[float]:
        """Return round numbers inside: 1, 2 or 5 times a power of ten apart, or powers of ten."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            apart = max(1, math.ceil((last - first) / self.count))
            return [10.0**power for power in range(first, last + 1, apart)]
        rough = (self.high - self.low) / self.count
        if not 0 < rough < math.inf:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def format_tick(number: float) -> str:
    """Return the label of a tick: the number as it is written, or as a power of ten where that is long."""
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        return f"{number:,.10g}"
    return f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
