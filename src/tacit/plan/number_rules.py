"""Types and bounds of functions of numbers, by interval arithmetic over the bounds of their operands.

The rule that each keeps is in `plan/bounds.py`.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan.binding import Binding, expect_types, refuse_large_result, require_bounds, shorten_bounds, unify_types
from tacit.plan.operands import any_null, as_float, is_constant, scalars_of
from tacit.plan.ranges import curve_range, grid_of, interval, least_of, most_of
from tacit.plan.rounding import (
    divide_whole,
    is_exact,
    released_integer,
    round_number,
    truncate_number,
    truncate_released,
)
from tacit.query.bound import TypedScalar
from tacit.query.functions import MAX_POWER, Function
from tacit.query.nodes import Call, Literal
from tacit.query.suggest import quote_scalar
from tacit.query.types import NUMERIC_TYPES, Type

_LARGEST_EXPONENT = 461  # EXP of it is above the largest float


def bind_arithmetic(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """The operators, ABS, FLOOR and CEIL: interval arithmetic over the ends."""
    expect_types(binding, operands, NUMERIC_TYPES, node, f"{function.upper()} takes numbers")
    require_bounds(binding, operands, node)
    if function in {Function.FLOOR, Function.CEIL} and operands[0].type is Type.INT:
        return operands[0]  # engines make it a double, which cannot hold all of it
    if function is Function.DIVIDE or len(operands) == 2:
        operands = unify_types(node, operands, force_float=function is Function.DIVIDE)
    scalar = Call(function, scalars_of(operands))
    if not binding.rows:
        return TypedScalar(scalar, operands[0].type)
    lower, upper, step = interval(function, operands)
    # bounds may exclude zero where a double still underflows to it
    nullable = any_null(operands) or (function is Function.DIVIDE and not is_constant(operands[1]))
    return shorten_bounds(node, TypedScalar(scalar, operands[0].type, lower, upper, step, nullable))


def bind_modulo(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """MOD(a, b) is a - b * t with a/b cut off to the whole number t, so it has the sign of a; NULL where b is 0.

    |MOD(a, b)| <= |a| and < |b|. MOD(a, -b) = MOD(a, b), so an engine divides by |b|: dividing the least integer
    by -1 would overflow.
    """
    expect_types(binding, operands, {Type.INT}, node, "MOD takes whole numbers")
    require_bounds(binding, operands[1:], node)
    left, right = operands
    positive = right.lower is not None and right.lower >= 0
    divisor = right.scalar if positive else Call(Function.ABS, (right.scalar,))
    scalar = Call(Function.MOD, (left.scalar, divisor))
    if not binding.rows or right.lower is None or right.upper is None:
        return TypedScalar(scalar, Type.INT)
    most = max(abs(right.lower), abs(right.upper), Fraction(1)) - 1
    lower = -min(max(-least_of(left), Fraction(0)), most)
    upper = min(max(most_of(left), Fraction(0)), most)
    nullable = any_null(operands) or right.lower <= 0 <= right.upper
    return TypedScalar(scalar, Type.INT, lower, upper, grid_of(operands), nullable)


def bind_power(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """POWER(x, n) for a constant whole n that is not negative, as a float; POWER(x, 0) is 1.

    It is monotone on either side of zero, so its extremes are at the ends and at zero.
    """
    expect_types(binding, operands, NUMERIC_TYPES, node, "POWER takes numbers")
    exponent = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
    if not isinstance(exponent, int | Fraction) or exponent % 1 or not 0 <= exponent <= MAX_POWER:
        what = f"POWER takes a constant whole exponent from 0 to {MAX_POWER}"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the exponent, or divide by a power")
    require_bounds(binding, operands[:1], node)
    base, n = as_float(operands[0]), int(exponent)
    scalar = Call(Function.POWER, (base.scalar, Literal(Fraction(n))))
    if not binding.rows or base.lower is None or base.upper is None:
        return TypedScalar(scalar, Type.FLOAT)
    ends = [base.lower**n, base.upper**n, *([Fraction(0)] if n and base.lower < 0 < base.upper else [])]
    step = None if base.step is None else base.step**n
    return shorten_bounds(node, TypedScalar(scalar, Type.FLOAT, min(ends), max(ends), step, base.nullable))


def bind_curve(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """SQRT, LN, LOG10 and EXP, as floats. SQRT of less than 0 and logarithms of 0 or less are NULL.

    All of them increase, so their bounds are at the ends, rounded outward. A logarithm falls without end toward 0:
    it has no lower bound where its operand's is not above 0. Only a constant is sure not to round to what has no
    value.
    """
    expect_types(binding, operands, NUMERIC_TYPES, node, f"{function.upper()} takes a number")
    require_bounds(binding, operands, node)
    operand = as_float(operands[0])
    scalar = Call(function, (operand.scalar,))
    if not binding.rows or operand.lower is None or operand.upper is None:
        return TypedScalar(scalar, Type.FLOAT)
    if function is Function.EXP and operand.upper > _LARGEST_EXPONENT:
        raise refuse_large_result(node.at)
    lower, upper = curve_range(function, operand.lower, operand.upper)
    sure = function is Function.EXP or (is_constant(operand) and operand.lower > 0)
    return shorten_bounds(node, TypedScalar(scalar, Type.FLOAT, lower, upper, nullable=operand.nullable or not sure))


def bind_sign(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """-1, 0 or 1. The sign of a float is that of a double, which may round to zero and beyond."""
    expect_types(binding, operands, NUMERIC_TYPES, node, "SIGN takes a number")
    (operand,) = operands
    low, high = -1, 1
    if operand.type is Type.INT:
        low, high = (_sign(least_of(operand)), _sign(most_of(operand)))
    scalar = Call(Function.SIGN, scalars_of(operands))
    return TypedScalar(scalar, Type.INT, Fraction(low), Fraction(high), Fraction(1), operand.nullable)


def bind_rounding(binding: Binding, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
    """ROUND and TRUNC, to a constant number of digits. Released values need no bounds."""
    name = function.upper()
    expect_types(binding, operands, NUMERIC_TYPES, node, f"{name} takes numbers")
    digits = [d.value if isinstance(d, Literal) else None for d in node.arguments[1:]]
    if any(not isinstance(value, int) or not 0 <= value <= 15 for value in digits):
        what, fix = f"{name} takes a constant number of digits", "write the number"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
    count = next((value for value in digits if isinstance(value, int)), 0)
    operand = operands[0]
    if binding.rows:
        require_bounds(binding, [operand], node)
        return shorten_bounds(node, (round_number if function is Function.ROUND else truncate_number)(operand, count))
    if function is Function.ROUND:
        return TypedScalar(Call(Function.ROUND, scalars_of(operands)), operand.type, nullable=operand.nullable)
    if operand.type is Type.INT:
        return operand
    factor = Literal(Fraction(10**count))
    cut = truncate_released(Call(Function.MULTIPLY, (operand.scalar, factor)))
    return TypedScalar(Call(Function.DIVIDE, (cut, factor)), Type.FLOAT, nullable=operand.nullable)


def bind_whole_quotient(binding: Binding, node: Call, operands: list[TypedScalar]) -> TypedScalar:
    """DIV(x, y), or x // y: whole numbers divided, toward zero."""
    if any(o.type is Type.FLOAT for o in operands):
        what, ends = "DIV and // take whole numbers, got float", map(quote_scalar, node.arguments)
        quotient = " / ".join(f"({end})" if " " in end else end for end in ends)
        quotient = quotient if "//" in quote_scalar(node) else f"TRUNC({quotient})"  # // divides floats as / does
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"write {quotient}", instead=quotient)
    expect_types(binding, operands, {Type.INT}, node, "DIV takes whole numbers")
    require_bounds(binding, operands, node)
    left, right = operands
    if not binding.rows:
        floats = as_float(left), as_float(right)
        return released_integer(truncate_released(Call(Function.DIVIDE, scalars_of(floats))))
    if not isinstance(right.scalar, Literal) and not (is_exact(left) and is_exact(right)):
        raise refuse_large_result(node.at)
    return divide_whole(left, right)


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)
