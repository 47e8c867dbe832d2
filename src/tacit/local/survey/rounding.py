"""Bounds as text: decimals that are rounded up, or down, and never to the nearest.

>>> decimal(round_up(Fraction(50986, 10000), 4)), places_down(Fraction(1, 28), 3)
('5.099', '0.035')
>>> double_above(Fraction(1, 3)) > Fraction(1, 3)
True
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.arithmetic import largest_power_of_ten


def round_up(number: Fraction, digits: int) -> Fraction:
    """Return the least number of so many significant digits that is not below a number, which is not negative."""
    if not number:
        return number
    step = largest_power_of_ten(number) / Fraction(10) ** (digits - 1)
    return Fraction(math.ceil(number / step)) * step


def places_up(number: Fraction, places: int) -> str:
    """Return a number with so many digits behind the point, rounded up."""
    return _format_fixed(math.ceil(number * 10**places), places)


def places_down(number: Fraction, places: int) -> str:
    """Return a number with so many digits behind the point, rounded down."""
    return _format_fixed(math.floor(number * 10**places), places)


def decimal(number: Fraction, comma: str = "") -> str:
    """Return all digits of a number that has finitely many; `comma` stands between thousands."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return _format_fixed(int(number * 10**places), places, comma)


def double_above(number: Fraction) -> float:
    """Return the least double that is not below a number; infinity where there is none."""
    try:
        found = float(number)
    except OverflowError:
        return math.inf
    return found if Fraction(found) >= number else math.nextafter(found, math.inf)


def _format_fixed(scaled: int, places: int, comma: str = "") -> str:
    whole, part = divmod(abs(scaled), 10**places)
    sign, behind = "-" if scaled < 0 else "", f".{part:0{places}d}" if places else ""
    return f"{sign}{f'{whole:,}'.replace(',', comma)}{behind}"
