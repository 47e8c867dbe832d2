"""What a ledger says was spent."""

from __future__ import annotations

from fractions import Fraction

from tacit.accounting.filters import GRAINS_PER_EPSILON
from tacit.curator.curator import Curator


def spent(curator: Curator, who: str | None = None) -> Fraction:
    """The epsilon that an analyst has spent, or all together."""
    standing = curator.ledger.overall() if who is None else curator.ledger.standing(who)
    return Fraction(standing.spent.epsilon, GRAINS_PER_EPSILON)
