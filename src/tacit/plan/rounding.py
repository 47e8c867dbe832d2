"""ROUND, TRUNC and division of whole numbers over rows, written with the functions that engines have.

**Rule.** Halves are rounded away from zero, as SQL rounds exact numbers, for ROUND and for casts to integers alike.
Rounding never decreases, so its bounds are at the ends. Where a float lies on a declared grid, it is rounded as the
number of the grid that it is nearest to, in integers: 1.005 on a grid of 0.001 becomes 1.01, although the double next
to 1.005 is below it. Elsewhere, and where the steps of the grid in a unit are more than 64 bits hold, it is the double
that is rounded.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.plan.machine_ranges import Ranges, UnsafeScalar
from tacit.query.bound import MOST_INT, TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Clamp, Literal, Quantize, Scalar, ToFloat
from tacit.query.types import Type

_EXACT = 2**53  # integers up to this are doubles
_HALF = Fraction(1, 2)


def round_number(operand: TypedScalar, digits: int) -> TypedScalar:
    """A number with bounds, rounded to so many digits."""
    return _to_digits(operand, digits, half=True)


def truncate_number(operand: TypedScalar, digits: int) -> TypedScalar:
    """A number with bounds, cut off toward zero after so many digits."""
    return _to_digits(operand, digits, half=False)


def _to_digits(operand: TypedScalar, digits: int, *, half: bool) -> TypedScalar:
    if operand.type is Type.INT or operand.lower is None or operand.upper is None:
        return operand
    unit = Fraction(1, 10**digits)
    step = operand.step
    if step and (step / unit).denominator == 1:
        return operand
    ratio = unit / step if step else Fraction(0)
    largest = max(abs(operand.lower), abs(operand.upper))
    fits = ratio.denominator == 1 and (2 if half else 1) * ratio <= MOST_INT
    if step and fits and largest / step < _EXACT / 2:
        whole: Scalar = ToFloat(_round_grid(operand, step, int(ratio), half))
    else:
        whole = _round_float(operand, 10**digits, half)
    scalar: Scalar = whole if digits == 0 else Call(Function.DIVIDE, (whole, Literal(Fraction(10**digits))))
    lower, upper = (_move(end * 10**digits, half) / 10**digits for end in (operand.lower, operand.upper))
    return TypedScalar(scalar, Type.FLOAT, lower, upper, unit, operand.nullable)


def _round_grid(operand: TypedScalar, step: Fraction, ratio: int, half: bool) -> Scalar:
    """The multiple k of the grid in units of `ratio` steps: (2 |k| + ratio) // (2 ratio), or |k| // ratio."""
    assert operand.lower is not None
    assert operand.upper is not None
    number: Scalar = Quantize(operand.scalar, step, math.floor(operand.lower / step), math.ceil(operand.upper / step))

    def count(size: Scalar) -> Scalar:
        if not half:
            return Call(Function.QUOTIENT, (size, Literal(ratio)))
        doubled = Call(Function.ADD, (Call(Function.MULTIPLY, (size, Literal(2))), Literal(ratio)))
        return Call(Function.QUOTIENT, (doubled, Literal(2 * ratio)))

    return _by_sign(operand, number, count, Literal(0))


def _round_float(operand: TypedScalar, factor: int, half: bool) -> Scalar:
    scaled: Scalar = operand.scalar
    if factor != 1:
        scaled = Call(Function.MULTIPLY, (operand.scalar, Literal(Fraction(factor))))

    def count(size: Scalar) -> Scalar:
        moved = Call(Function.ADD, (size, Literal(_HALF))) if half else size
        return Call(Function.FLOOR, (moved,))

    return _by_sign(operand, scaled, count, Literal(Fraction(0)))


def _by_sign(operand: TypedScalar, number: Scalar, count: object, zero: Literal) -> Scalar:
    """What a function of sizes gives, with the sign of the number."""
    assert callable(count)
    if operand.lower is not None and operand.lower >= 0:
        forward: Scalar = count(number)
        return forward
    back = Call(Function.NEGATE, (count(Call(Function.NEGATE, (number,))),))
    if operand.upper is not None and operand.upper <= 0:
        return back
    return Case(((Call(Function.LESS, (number, zero)), back),), count(number))


def _move(number: Fraction, half: bool) -> Fraction:
    size = math.floor(abs(number) + (_HALF if half else 0))
    return Fraction(-size if number < 0 else size)


def truncate_released(scalar: Scalar) -> Case:
    """A released number without its fraction."""
    below = Call(Function.LESS, (scalar, Literal(0)))
    return Case(((below, Call(Function.CEIL, (scalar,))),), Call(Function.FLOOR, (scalar,)))


def released_integer(scalar: Scalar) -> TypedScalar:
    """A released number that has no fraction, as an integer; the largest ones where it is beyond these."""
    return TypedScalar(Quantize(scalar, Fraction(1), -(2**62), 2**62), Type.INT)


def as_integer(operand: TypedScalar) -> TypedScalar:
    """A float with bounds that integers have, as the nearest integer.

    A double may pass the bounds of what it is computed from, and so may its rounding: adding 1/2 is rounded, and the
    ends of a Quantize are doubles. An integer may not, so it is clamped where that is not excluded.
    """
    assert operand.lower is not None
    assert operand.upper is not None
    if operand.step and operand.step < 1 and (1 / operand.step).denominator == 1:
        rounded = _to_digits(operand, 0, half=True)
        if isinstance(rounded.scalar, ToFloat):  # by its grid
            assert rounded.lower is not None
            assert rounded.upper is not None
            return _bounded_integer(rounded.scalar.operand, rounded.lower, rounded.upper, operand.nullable)
    lower, upper = (_move(end, half=True) for end in (operand.lower, operand.upper))
    most = int(max(abs(lower), abs(upper)))

    def count(size: Scalar) -> Scalar:
        return Quantize(size, Fraction(1), 0, most)

    scalar = _by_sign(operand, operand.scalar, count, Literal(Fraction(0)))
    return _bounded_integer(scalar, lower, upper, operand.nullable)


def _bounded_integer(scalar: Scalar, lower: Fraction, upper: Fraction, nullable: bool) -> TypedScalar:
    """An integer within bounds, clamped to them where the machine might compute another."""
    try:
        found = Ranges({}).find(scalar)
        is_within = lower <= found.lower and found.upper <= upper
    except UnsafeScalar:
        is_within = False
    scalar = scalar if is_within else Clamp(scalar, lower, upper, whole=True)
    return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), nullable)


def divide_whole(left: TypedScalar, right: TypedScalar) -> TypedScalar:
    """Integers with bounds divided, toward zero; NULL where the divisor is 0.

    By a constant it is a division of sizes. Otherwise it is made of a division of doubles, which is right where the
    dividend is below 2^53 in size: then a quotient that is no integer is further from the next one than rounding moves.
    """
    assert left.lower is not None
    assert left.upper is not None
    divisor = right.scalar.value if isinstance(right.scalar, Literal) else None
    if isinstance(divisor, int) and divisor:
        size = Literal(abs(divisor))
        scalar = _by_sign(left, left.scalar, lambda of: Call(Function.QUOTIENT, (of, size)), Literal(0))
        scalar = Call(Function.NEGATE, (scalar,)) if divisor < 0 else scalar
        ends = sorted(Fraction(int(end / divisor)) for end in (left.lower, left.upper))
        return TypedScalar(scalar, Type.INT, ends[0], ends[1], Fraction(1), left.nullable)
    most = int(max(abs(left.lower), abs(left.upper)))
    quotient = Call(Function.DIVIDE, (ToFloat(left.scalar), ToFloat(right.scalar)))
    cut = truncate_released(quotient)
    return TypedScalar(
        Quantize(cut, Fraction(1), -most, most), Type.INT, Fraction(-most), Fraction(most), Fraction(1), nullable=True
    )


def is_exact(operand: TypedScalar) -> bool:
    """Whether an integer is a double, whatever the row."""
    return (
        operand.lower is not None and operand.upper is not None and -_EXACT <= operand.lower <= operand.upper <= _EXACT
    )
