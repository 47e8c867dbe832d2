"""Functions of numbers and conditions that are put together of others: LOG, WIDTH_BUCKET, DIV0, DECODE, NVL2 and so on.

Each is written with functions that there are, so it has their bounds and needs no engine's help.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.call_syntax import MANY, Build, CallSyntax, check_count, constant_number, constant_text
from tacit.query.date_calls import build_truncation
from tacit.query.dialects import QuestionDialect
from tacit.query.functions import LIST, Function
from tacit.query.nodes import Call, Case, Literal, Scalar

MOST_DIGITS = 15
_EXACT: dict[Function, Callable[[Fraction, Fraction], Fraction]] = {
    Function.ADD: operator.add,
    Function.SUBTRACT: operator.sub,
    Function.MULTIPLY: operator.mul,
}
_MOST_BUCKETS = 1_000


def build_if(written: CallSyntax) -> Case:
    """IF(c, x, y); without y it is NULL."""
    check_count(written, 3, 3, f"{written.name.upper()}(x, y, NULL)")
    condition, then, otherwise = written.arguments
    return Case(((condition, then),), otherwise, written.at)


def _nullif(written: CallSyntax) -> Case:
    """NULLIF(x, y) is x unless x = y; where y is NULL the comparison is not true, so x stays."""
    check_count(written, 2, 2, "NULLIF(x, 0)")
    value, other = written.arguments
    return Case(((Call(Function.EQUAL, (value, other), written.at), Literal(None)),), value, written.at)


def _nullifzero(written: CallSyntax) -> Case:
    check_count(written, 1, 1, "NULLIFZERO(x)")
    (value,) = written.arguments
    return Case(((Call(Function.EQUAL, (value, Literal(0)), written.at), Literal(None)),), value, written.at)


def _zeroifnull(written: CallSyntax) -> Call:
    check_count(written, 1, 1, "ZEROIFNULL(x)")
    return Call(Function.COALESCE, (*written.arguments, Literal(0)), written.at)


def _nvl2(written: CallSyntax) -> Case:
    """NVL2(x, a, b) is a where x has a value, and b where it has none."""
    check_count(written, 3, 3, "NVL2(x, 1, 0)")
    value, then, otherwise = written.arguments
    return Case(((Call(Function.IS_NULL, (value,), written.at), otherwise),), then, written.at)


def _decode(written: CallSyntax) -> Case:
    """DECODE(x, a, r, b, s, rest): a NULL among what x is compared with is met by NULL."""
    check_count(written, 3, MANY)
    subject, *rest = written.arguments
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    otherwise = rest[-1] if len(rest) % 2 else Literal(None)
    branches = tuple((build_same(subject, value, written.at), result) for value, result in pairs)
    return Case(branches, otherwise, written.at)


def fold_decimals(node: Call) -> Scalar:
    """A sum, difference or product of constants of which one has decimals, as the decimal that SQL makes of it.

    Doubles would make another of it: 0.06 + 0.01 is 0.07 here, and not the double above it.
    """
    values = [constant_number(argument) for argument in node.arguments]
    if node.function not in _EXACT or None in values or not any(isinstance(value, Fraction) for value in values):
        return node
    left, right = (Fraction(value) for value in values if value is not None)
    return Literal(_EXACT[Function(node.function)](left, right), node.at)


def build_same(left: Scalar, right: Scalar, at: SourceLocation | None) -> Scalar:
    """left IS NOT DISTINCT FROM right, which is never NULL: two NULLs are the same, and a NULL is nothing else."""
    constants = [operand for operand in (left, right) if isinstance(operand, Literal)]
    if any(constant.value is None for constant in constants):
        other = right if isinstance(left, Literal) and left.value is None else left
        return Call(Function.IS_NULL, (other,), at)
    equal = Call(Function.EQUAL, (left, right), at)
    if constants:
        return Case(((equal, Literal(True)),), Literal(False), at)
    both = Call(Function.AND, (Call(Function.IS_NULL, (left,), at), Call(Function.IS_NULL, (right,), at)), at)
    return Case(((equal, Literal(True)), (both, Literal(True))), Literal(False), at)


def _div0(written: CallSyntax) -> Case:
    """DIV0(x, y) is 0 where y is 0, and x / y otherwise; DIV0NULL reads a missing y as 0 too."""
    check_count(written, 2, 2, "DIV0(x, y)")
    value, divisor = written.arguments
    zero: Scalar = Call(Function.EQUAL, (divisor, Literal(0)), written.at)
    if written.name == "div0null":
        zero = Call(Function.OR, (zero, Call(Function.IS_NULL, (divisor,), written.at)), written.at)
    present = Call(Function.NOT, (Call(Function.IS_NULL, (value,), written.at),), written.at)
    quotient = Call(Function.DIVIDE, (value, divisor), written.at)
    return Case(((Call(Function.AND, (zero, present), written.at), Literal(Fraction(0))),), quotient, written.at)


def _log(written: CallSyntax) -> Call:
    """LOG(x) is to the base 10, and LOG(b, x) to the base b; in BigQuery and MySQL natural, in BigQuery LOG(x, b)."""
    check_count(written, 2 if written.dialect is QuestionDialect.SNOWFLAKE else 1, 2)
    *bases, value = written.arguments
    if written.dialect in {QuestionDialect.BIGQUERY, QuestionDialect.MYSQL} and not bases:
        return Call(Function.LN, (value,), written.at)
    if written.dialect is QuestionDialect.BIGQUERY:
        value, *bases = written.arguments
    if not bases or constant_number(bases[0]) == 10:
        return Call(Function.LOG10, (value,), written.at)
    return _to_base(bases[0], value, written)


def _log2(written: CallSyntax) -> Call:
    check_count(written, 1, 1, "LOG2(x)")
    return _to_base(Literal(2), written.arguments[0], written)


def _to_base(base: Scalar, value: Scalar, written: CallSyntax) -> Call:
    logarithms = tuple(Call(Function.LN, (operand,), written.at) for operand in (value, base))
    return Call(Function.DIVIDE, logarithms, written.at)


def _square(written: CallSyntax) -> Call:
    check_count(written, 1, 1, "SQUARE(x)")
    return Call(Function.POWER, (*written.arguments, Literal(2)), written.at)


def _round(written: CallSyntax) -> Call:
    check_count(written, 1, 2)
    return _to_digits(Function.ROUND, written)


def _to_digits(function: Function, written: CallSyntax) -> Call:
    """ROUND or TRUNC to a number of digits; to less than none, it is that of tens, hundreds and so on."""
    _check_digits(written)
    digits = constant_number(written.arguments[1]) if len(written.arguments) == 2 else 0
    if digits is None or digits >= 0:
        return Call(function, written.arguments, written.at)
    size = Literal(Fraction(10) ** -int(digits))
    tens = Call(function, (Call(Function.DIVIDE, (written.arguments[0], size), written.at),), written.at)
    return Call(Function.MULTIPLY, (tens, size), written.at)


def _check_digits(written: CallSyntax) -> None:
    for digits in written.arguments[1:]:
        value = constant_number(digits)
        if not isinstance(value, int) or not -MOST_DIGITS <= value <= MOST_DIGITS:
            what = f"{written.name.upper()} takes a constant number of digits, -{MOST_DIGITS} to {MOST_DIGITS}"
            raise Refused(ErrorCode.TYPE, what, at=written.at, fix="write the number")


def _trunc(written: CallSyntax) -> Scalar:
    """TRUNC(x) and TRUNC(x, 2), toward zero; TRUNC(d, 'MONTH') is DATE_TRUNC."""
    check_count(written, 1, 2)
    if len(written.arguments) == 2 and constant_text(written.arguments[1]) is not None:
        return build_truncation(written)
    if len(written.arguments) == 1 or constant_number(written.arguments[1]) == 0:
        return Call(Function.TRUNC, written.arguments[:1], written.at)
    return _to_digits(Function.TRUNC, written)


def _width_bucket(written: CallSyntax) -> Case:
    """WIDTH_BUCKET(x, low, high, n): which of n buckets of one width x lies in, from 1; 0 is below, and n + 1 above.

    Where x is in [low, high) the bucket is 1 + FLOOR((x - low) * n / (high - low)). Inside of FLOOR x is clamped, which
    changes nothing there, so the bounds of the result are 0 and n + 1 whatever those of x are.
    """
    check_count(written, 4, 4, "WIDTH_BUCKET(x, 0, 100, 10)")
    value, *ends = written.arguments
    low, high, count = (constant_number(end) for end in ends)
    if low is None or high is None or not isinstance(count, int) or not low < high or not 1 <= count <= _MOST_BUCKETS:
        what = f"WIDTH_BUCKET takes two constants, the smaller first, and a number of buckets up to {_MOST_BUCKETS:,}"
        raise Refused(ErrorCode.TYPE, what, at=written.at, fix="write the least value, then the largest")
    at = written.at
    clamped = Call(Function.LEAST, (Call(Function.GREATEST, (value, ends[0]), at), ends[1]), at)
    scaled = Call(Function.MULTIPLY, (Call(Function.SUBTRACT, (clamped, ends[0]), at), Literal(Fraction(count))), at)
    place = Call(Function.FLOOR, (Call(Function.DIVIDE, (scaled, Literal(Fraction(high - low))), at),), at)
    inside = Call(Function.LEAST, (Call(Function.ADD, (place, Literal(1)), at), Literal(count)), at)
    # no bare column, for nobody wrote a comparison that a note could be about
    whole = Call(Function.COALESCE, (value,), at)
    return Case(
        (
            (Call(Function.IS_NULL, (value,), at), Literal(None)),
            (Call(Function.LESS, (whole, ends[0]), at), Literal(0)),
            (Call(Function.GREATER_EQUAL, (whole, ends[1]), at), Literal(count + 1)),
        ),
        inside,
        at,
    )


def _range_bucket(written: CallSyntax) -> Case:
    """RANGE_BUCKET(x, [5, 15, 30]): how many of the ends are not above x; NULL where x is."""
    usage = "RANGE_BUCKET(x, [5, 15, 30])"
    check_count(written, 2, 2, usage)
    value, ends = written.arguments
    numbers = (
        [constant_number(end) for end in ends.arguments] if isinstance(ends, Call) and ends.function == LIST else []
    )
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers) or known != sorted(known):
        what = "RANGE_BUCKET takes a list of constants, in increasing order"
        raise Refused(ErrorCode.TYPE, what, at=written.at, fix=usage)
    below = ((Call(Function.LESS, (value, Literal(end)), written.at), Literal(n)) for n, end in enumerate(known))
    missing = (Call(Function.IS_NULL, (value,), written.at), Literal(None))
    return Case((missing, *below), Literal(len(known)), written.at)


TAKE_LISTS = frozenset({"range_bucket"})
"""Functions of which an argument is a list of constants."""
BUILDERS: dict[str, Build] = {
    "range_bucket": _range_bucket,
    "if": build_if,
    "nullif": _nullif,
    "nullifzero": _nullifzero,
    "zeroifnull": _zeroifnull,
    "nvl2": _nvl2,
    "decode": _decode,
    "div0": _div0,
    "div0null": _div0,
    "log": _log,
    "log2": _log2,
    "square": _square,
    "round": _round,
    "trunc": _trunc,
    "width_bucket": _width_bucket,
}
