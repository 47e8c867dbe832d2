"""Which whole numbers have an integer type in PostgreSQL, whose quotient / cuts off."""

from __future__ import annotations

from tacit.query.functions import DATE_PARTS, Function
from tacit.query.nodes import Aggregate, Call, Case, Scalar

_NUMERIC = DATE_PARTS | {
    *(Function.HOUR, Function.MINUTE, Function.SECOND, Function.EPOCH, Function.AGE),  # EXTRACT, DATE_PART
    *(Function.FLOOR, Function.CEIL, Function.ROUND, Function.TRUNC, Function.SIGN, Function.POWER, Function.DIV),
}
_LIKE_THEIR_ARGUMENTS = {
    *(Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.RATIO, Function.MOD, Function.NEGATE, Function.ABS),
    *(Function.LEAST, Function.GREATEST, Function.COALESCE),
}


def has_integer_type(scalar: Scalar) -> bool:
    """Whether PostgreSQL has an integer type for a scalar whose values are whole numbers.

    EXTRACT and DIV are numeric there, and FLOOR and ROUND of an integer are of double precision: EXTRACT(DAY FROM d) /
    7 has a fraction, though both sides are whole numbers. What is computed from such a number is one.
    """
    match scalar:
        case Call(function) if function in _NUMERIC:
            return False
        case Call(function, arguments) if function in _LIKE_THEIR_ARGUMENTS:
            return all(map(has_integer_type, arguments))
        case Case(branches, otherwise):
            return all(has_integer_type(result) for _, result in branches) and has_integer_type(otherwise)
        case Aggregate(function="sum" | "min" | "max", argument=argument) if argument is not None:
            return has_integer_type(argument)
    return True
