"""How much to run: the counts of every day, or the full ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction
from typing import TypeVar

Case = TypeVar("Case")

FULL = os.environ.get("TACIT_FULL") == "1"
"""Whether to run the full counts: TACIT_FULL=1."""
OFF = Fraction(1, 10) if FULL else Fraction(1, 5)
"""By how much of itself a parameter is off where a test of fit rejects its distribution."""


def enough(count: int) -> int:
    """How many draws reject what is `OFF`, where `count` reject what is off by a tenth.

    The statistic grows with the number of draws and the square of what is off: a quarter of them do for a fifth.
    """
    return count if FULL else count // 4


def some(cases: Iterable[Case], one_in: int, first: int = 0) -> list[Case]:
    """All cases at full counts, else one in so many of them, beginning with number `first` modulo `one_in`.

    Where `first` is counted up over the tests that share their cases, each case is in one of every `one_in` of them.
    """
    return [case for number, case in enumerate(cases) if FULL or number % one_in == first % one_in]


def examples(count: int) -> int:
    """How many examples a property is tried on: `count` at full counts, else an eighth of them."""
    return count if FULL else max(count // 8, 5)
