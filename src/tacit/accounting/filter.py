"""The privacy filter that guards a budget against questions chosen after seeing answers.

Amounts are whole grains, so that a database can add and compare them without rounding: charges round up, caps round
down, and what the filter admits is never more than what was granted.

>>> cap = Amount.cap(epsilon=Fraction(1), delta=Fraction(0))
>>> third = Amount.charge(epsilon=Fraction(1, 3), delta=Fraction(0))
>>> admits(Amount.zero(), third, cap)
True
>>> admits(third + third, third, cap)  # a third is rounded up, so three of them are more than one
False
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

GRAINS_PER_EPSILON = 10**12
GRAINS_PER_DELTA = 10**18


@dataclass(frozen=True)
class Amount:
    """An amount of privacy loss in grains: 1e-12 of an epsilon, 1e-18 of a delta."""

    epsilon: int
    delta: int

    @classmethod
    def zero(cls) -> Amount:
        """Nothing spent."""
        return cls(0, 0)

    @classmethod
    def charge(cls, epsilon: Fraction, delta: Fraction) -> Amount:
        """A price, rounded up to whole grains."""
        return cls(math.ceil(epsilon * GRAINS_PER_EPSILON), math.ceil(delta * GRAINS_PER_DELTA))

    @classmethod
    def cap(cls, epsilon: Fraction, delta: Fraction) -> Amount:
        """A limit, rounded down to whole grains."""
        return cls(math.floor(epsilon * GRAINS_PER_EPSILON), math.floor(delta * GRAINS_PER_DELTA))

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta)

    @property
    def epsilon_value(self) -> Fraction:
        """The epsilon as a number."""
        return Fraction(self.epsilon, GRAINS_PER_EPSILON)

    @property
    def delta_value(self) -> Fraction:
        """The delta as a number."""
        return Fraction(self.delta, GRAINS_PER_DELTA)

    @property
    def shown(self) -> str:
        """The epsilon as text, exactly, with the delta where there is one."""
        delta = f", delta {float(self.delta_value):.3g}" if self.delta else ""
        return f"{(Decimal(self.epsilon) / GRAINS_PER_EPSILON).normalize():f}{delta}"


@dataclass(frozen=True)
class Standing:
    """How much of a cap is spent."""

    spent: Amount
    cap: Amount

    @property
    def remaining(self) -> Amount:
        """What is left. It is zero, not less, where the owner lowered the cap below what was spent."""
        left = self.cap - self.spent
        return Amount(max(0, left.epsilon), max(0, left.delta))


def admits(spent: Amount, price: Amount, cap: Amount) -> bool:
    """Whether basic composition still guarantees `cap` after a question of this price.

    **Theorem (filter A).** If question i, chosen with knowledge of all answers before it, is (e_i, d_i)-DP and asking
    stops before the sums of e_i or d_i pass e* and d*, the whole transcript is (e*, d*)-DP, although the prices are
    themselves random (Rogers, Roth, Ullman, Vadhan 2016, theorem 4.1).
    """
    after = spent + price
    return after.epsilon <= cap.epsilon and after.delta <= cap.delta
