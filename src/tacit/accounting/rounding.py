"""Roundings that are safe: up for what is spent. `docs/proofs/accounting.md` says of each figure why it is.

>>> double_above(Fraction(1, 3)) > Fraction(1, 3) > double_below(Fraction(1, 3))
True
>>> digits_above(Fraction(12344, 10**11))
'1.24e-07'
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.arithmetic import ball_above as ball_above
from tacit.arithmetic import ball_below as ball_below
from tacit.arithmetic import double_above as double_above
from tacit.arithmetic import double_below as double_below
from tacit.arithmetic import largest_power_of_ten
from tacit.arithmetic import rounded_up as rounded_up

MARGIN = 2.0**-40  # relative error that is allowed for a formula in doubles


def product_above(*factors: Fraction | float) -> float:
    """The least double that is at least the product of numbers that are not negative: never zero unless one is."""
    return double_above(math.prod((Fraction(each) for each in factors), start=Fraction(1)))


def decimal_above(number: Fraction) -> float:
    """The double next to this number whose shortest decimal, which is what people read, is at least it."""
    near = float(number)
    return near if Fraction(repr(near)) >= number else math.nextafter(near, math.inf)


def digits_above(number: Fraction, digits: int = 3) -> str:
    """A number that is not negative as text with so many significant digits, rounded up."""
    if not number:
        return "0"
    unit = largest_power_of_ten(number) / 10 ** (digits - 1)
    return f"{float(math.ceil(number / unit) * unit):.{digits}g}"
