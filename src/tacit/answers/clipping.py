"""How the clip of a question is chosen: what is known of it before the release."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.mechanisms.clipped_sum import ClippedSum

MOST_ENTRIES = 10**6
"""More entries of a vector are taken for as many, in how epsilon is shared."""


@dataclass(frozen=True)
class Clipping:
    """How the clip of a question is chosen, what one row adds to the norm at most, and what a unit is called."""

    mechanism: ClippedSum
    per_row: int
    called: str = ""

    def over(self, entries: int) -> ClippedSum:
        """The mechanism for vectors of so many entries."""
        return replace(self.mechanism, groups=max(1, min(MOST_ENTRIES, entries)))
