"""Exact numbers: rationals from what people type, and certified roundings of what is not rational.

>>> to_rational("epsilon", 0.1)
Fraction(1, 10)
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import ParameterError

if TYPE_CHECKING:
    from flint import arb

_MOST_DIGITS = 400  # before the point or after it: as many as a double has
_PARTS = 10**24
_LARGEST_DOUBLE = math.ldexp(1 - 2.0**-53, 1024)
_MOST_BITS = 2**17  # of precision; far more than any number here needs
_locks: dict[int, Any] = {}

Found = TypeVar("Found")
Number = int | float | Decimal | Fraction
"""A real number as callers write it; `to_rational` reads it exactly."""


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Interval arithmetic with this many bits. One thread at a time: flint's precision is the process's own."""
    from flint import ctx

    with _lock(), ctx.workprec(bits):
        yield


def _lock() -> Any:
    """This process's lock: in a forked child the parent's may be held by a thread that is gone."""
    return _locks.setdefault(os.getpid(), threading.RLock())


def to_rational(name: str, value: object, example: str = "0.5") -> Fraction:
    """The number a person meant: 0.1 is one tenth, not the nearest binary fraction.

    Text, booleans, NaN and infinities are errors that name the parameter, with `example` as a value to give it.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ParameterError(name, f"needs a number, got {type(value).__name__} {value!r:.60}", fix=f"{name}={example}")
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(value)
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise ParameterError(name, f"needs a finite number, got {value}", fix=f"{name}={example}")
    if isinstance(value, Decimal) and value and abs(value.adjusted()) > _MOST_DIGITS:
        raise ParameterError(name, "has too large an exponent", fix=f"{name}={example}")
    return Fraction(str(value) if isinstance(value, Decimal) else repr(float(value)))


def to_rational_between(name: str, value: object, lower: Fraction, upper: Fraction) -> Fraction:
    """A rational in [lower, upper], or an error that names the parameter and the range.

    Both numbers that the error names are in the range: "between 0.01 and 0.999999999", never rounded to 1.
    """
    number = to_rational(name, value)
    if not lower <= number <= upper:
        bounds = f"{_end(lower, lower, upper)} and {_end(upper, lower, upper)}"
        got = f"{value!s:.40}" if abs(number) < 10**1000 else "a huge number"
        raise ParameterError(name, f"must be between {bounds}, got {got}", fix=f"choose {name} between {bounds}")
    return number


def _end(end: Fraction, lower: Fraction, upper: Fraction) -> str:
    """An end of a range in as few digits as say a number of the range; exact wherever 17 digits are."""
    texts = [f"{float(end):.{digits}g}" for digits in (6, 9, 12, 17)]
    texts = [text for text in texts if lower <= Fraction(text) <= upper]
    return next((text for text in texts if Fraction(text) == end), texts[0] if texts else str(end))


def to_integer(name: str, value: object, least: int | None = None) -> int:
    """An integer of any kind but a boolean; a float is refused even where it has no fraction.

    The value may be private, so the error names its type only.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ParameterError(name, f"needs an integer, got {type(value).__name__}", fix="give integers, in grid units")
    try:
        found = operator.index(value)
    except TypeError:
        raise ParameterError(name, "needs an integer, got an array", fix="give one integer") from None
    if least is not None and found < least:
        raise ParameterError(name, f"must be at least {least}", fix=f"choose {name} of {least} or more")
    return found


def to_integers(name: str, values: Any) -> list[int]:
    """A list of integers, exact however large they are."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(name, f"needs a list of integers, got {type(values).__name__}", fix=f"{name}=[3, 5], say")
    return [to_integer(name, value) for value in values]


def certified_floor(enclose: Callable[[], arb], bits: int = 96) -> int:
    """The floor of the real number that `enclose` computes, which must not be an integer.

    `enclose` returns an interval (a ball of flint's) that contains the number, narrower as the working precision
    grows. The precision is doubled until the whole interval has one floor.
    """

    def floor() -> int | None:
        found = enclose().floor().unique_fmpz()
        return None if found is None else int(found)

    return retry_with_more_precision(floor, bits)


def retry_with_more_precision(find: Callable[[], Found | None], bits: int) -> Found:
    """What `find` finds at a working precision that is doubled until it finds something.

    An interval never tells an integer from its neighbors, unless it is exact. Nobody should wait for that: it ends.
    """
    while bits <= _MOST_BITS:
        with working_precision(bits):
            found = find()
        if found is not None:
            return found
        bits *= 2
    raise ArithmeticError(f"{_MOST_BITS} bits do not tell a number from its neighbors: is it known as an exact one?")


def to_interval(number: Fraction) -> arb:
    """A rational as an interval at the working precision."""
    from flint import arb, fmpq

    return arb(fmpq(number.numerator, number.denominator))


def rounded_up(number: arb) -> Fraction:
    """A rational with 24 decimals that is at least the real number in this interval, whatever the precision is."""
    middle, radius, exponent = number.mid_rad_10exp(40)
    upper = (Fraction(int(middle)) + Fraction(int(radius))) * Fraction(10) ** int(exponent)
    return Fraction(math.ceil(upper * _PARTS), _PARTS)


def double_above(number: Fraction) -> float:
    """The least double that is at least this number."""
    try:
        near = float(number)
    except OverflowError:
        return math.inf if number > 0 else -_LARGEST_DOUBLE
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def double_below(number: Fraction) -> float:
    """The largest double that is at most this number."""
    return -double_above(-number)


def ball_above(number: arb) -> float:
    """A double that is at least every real number in this interval: the least one above its upper end."""
    if not number.is_finite():
        return math.inf
    mantissa, exponent = (int(part) for part in number.upper().man_exp())
    size = mantissa.bit_length() + exponent
    if mantissa and size > 1100:
        return math.inf if mantissa > 0 else -_LARGEST_DOUBLE
    if mantissa and size < -1100:
        return math.nextafter(0.0, 1.0) if mantissa > 0 else 0.0
    return double_above(mantissa * Fraction(2) ** exponent)


def ball_below(number: arb) -> float:
    """A double that is at most every real number in this interval."""
    return -ball_above(-number)


def largest_power_of_ten(number: Fraction) -> Fraction:
    """The largest power of ten that is at most `number`, which is positive."""
    exponent = math.floor(math.log10(number.numerator) - math.log10(number.denominator))
    power = Fraction(10) ** exponent
    while power > number:
        power /= 10
    while power * 10 <= number:
        power *= 10
    return power


def common_grid_step(one: Fraction, other: Fraction) -> Fraction:
    """The largest rational that divides both: the grid on which sums of the two lie."""
    denominator = math.lcm(one.denominator, other.denominator)
    return Fraction(math.gcd(int(one * denominator), int(other * denominator)), denominator)


def format_decimal(number: Fraction) -> str:
    """The number as a person would write it: as a decimal wherever it has one, and exact unless absurdly long.

    >>> format_decimal(Fraction(1, 10)), format_decimal(Fraction(-5, 4)), format_decimal(Fraction(1, 3))
    ('0.1', '-1.25', '1/3')
    >>> format_decimal(Fraction(1, 10**9)), format_decimal(Fraction(10**15))
    ('1e-9', '1000000000000000')
    """
    places = _places(number.denominator)
    if places is None:
        return str(number) if number.denominator < 10**20 else f"about {float(number):g}"
    digits = str(abs(number.numerator) * 10**places // number.denominator)
    sign = "-" if number < 0 else ""
    if places == 0:
        return sign + digits
    if places - len(digits) >= 4:
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e-{places - len(digits) + 1}"
    digits = digits.zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _places(denominator: int) -> int | None:
    """How many decimals a fraction in lowest terms with this denominator has; None if they do not end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None
