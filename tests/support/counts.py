"""How much to run: the counts of every day, or the full ones."""

from __future__ import annotations

import os
from fractions import Fraction

FULL = os.environ.get("TACIT_FULL") == "1"
"""Whether to run the full counts: TACIT_FULL=1."""
OFF = Fraction(1, 10) if FULL else Fraction(1, 5)
"""By how much of itself a parameter is off where a test of fit rejects its distribution."""


def enough(count: int) -> int:
    """How many draws reject what is `OFF`, where `count` reject what is off by a tenth.

    The statistic grows with the number of draws and the square of what is off: a quarter of them do for a fifth.
    """
    return count if FULL else count // 4
