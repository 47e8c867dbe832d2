"""Roundings that are safe: up for what is spent, with the error of the machine on top."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flint import arb

_PARTS = 10**24
MARGIN = 2.0**-40  # relative error that is allowed for a formula in doubles


def rounded_up(number: arb) -> Fraction:
    """A rational with 24 decimals that is at least the real number in this interval, whatever the precision is."""
    middle, radius, exponent = number.mid_rad_10exp(40)
    upper = (Fraction(int(middle)) + Fraction(int(radius))) * Fraction(10) ** int(exponent)
    return Fraction(math.ceil(upper * _PARTS), _PARTS)


def at_least(number: float) -> float:
    """A double that is above the true value of a formula whose relative error is below 2^-40."""
    return number if number in {0.0, math.inf} else math.nextafter(number * (1 + MARGIN), math.inf)


def double_above(number: Fraction) -> float:
    """The least double that is at least this number."""
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
