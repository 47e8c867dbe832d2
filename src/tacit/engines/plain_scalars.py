"""Scalars of one column that are computed without the database: its values, also clamped, and comparisons of them.

To bind and run a statement takes DuckDB longer than such a comparison over a hundred thousand values.

**Theorem.** What `compute_plain` returns is what `engines/evaluate.py` means, value by value. Proof. A comparison with
a constant is NULL just where the value is, in Arrow as in SQL; AND, OR and NOT are those of three-valued logic.
Integers are compared as integers of 64 bits, doubles as doubles, days by their number, texts by their bytes: the order
of UTF-8, which is that of code points. Doubles follow IEEE 754, under which NaN compares false to all. No constant is
NaN, so SQL, where NaN is above all numbers, differs in > and >= alone, and there NaN is added. An integer becomes the
nearest double, ties to even, in both. Clamped doubles are only compared, so it is the same whether -0.0 stays that.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tacit.engines.deadline import seconds_left
from tacit.query.functions import Function
from tacit.query.nodes import Call, Clamp, ColumnReference, Literal, Scalar, ToFloat

_MOST_LISTED = 16  # of the constants of IN: each is a comparison

_COMPARISONS: dict[Function, Callable[..., Any]] = {
    Function.EQUAL: pc.equal,
    Function.UNEQUAL: pc.not_equal,
    Function.LESS: pc.less,
    Function.LESS_EQUAL: pc.less_equal,
    Function.GREATER: pc.greater,
    Function.GREATER_EQUAL: pc.greater_equal,
}
_MIRRORED = {  # 1 < x is x > 1
    Function.LESS: Function.GREATER,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER: Function.LESS,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}


def compute_plain(scalar: Scalar, values: pa.Array) -> pa.Array | None:
    """The scalar for each value of the one column that it names; None where it is left to the database."""
    match scalar:
        case ColumnReference():
            return values
        case Clamp(ColumnReference(), whole=True):
            return _read_operand(scalar, values)
        case Call(Function.IS_NULL, (operand,)):
            numbers = _read_operand(operand, values)
            return None if numbers is None else numbers.is_null()
        case Call(Function.NOT, (operand,)):
            found = _compute_condition(operand, values)
            return None if found is None else pc.invert(found)
        case Call(Function.AND | Function.OR as function, operands):
            parts = [_compute_condition(operand, values) for operand in operands]
            if any(part is None for part in parts):
                return None
            return reduce(pc.and_kleene if function is Function.AND else pc.or_kleene, parts)
        case Call(Function.IN, (operand, *constants)) if len(constants) <= _MOST_LISTED:
            equals = [_compare(Function.EQUAL, operand, constant, values) for constant in constants]
            return None if any(equal is None for equal in equals) else reduce(pc.or_kleene, equals)
        case Call(function, (Literal() | ToFloat(Literal()) as one, other)) if function in _COMPARISONS:
            function = Function(function)
            return _compare(_MIRRORED.get(function, function), other, one, values)
        case Call(function, (one, other)) if function in _COMPARISONS:
            return _compare(Function(function), one, other, values)
    return None


def _compute_condition(scalar: Scalar, values: pa.Array) -> pa.Array | None:
    found = compute_plain(scalar, values)
    return found if found is not None and pa.types.is_boolean(found.type) else None


def _compare(function: Function, operand: Scalar, constant: Scalar, values: pa.Array) -> pa.Array | None:
    """A comparison of what is read of the values with a constant of the same type.

    Raises TimeLimit where the time of the question is over: nothing interrupts Arrow.
    """
    seconds_left()
    numbers = _read_operand(operand, values)
    if numbers is None:
        return None
    found = _read_constant(constant, numbers.type)
    if found is None or (pa.types.is_boolean(numbers.type) and function not in {Function.EQUAL, Function.UNEQUAL}):
        return None
    compared = _COMPARISONS[function](numbers, found)
    if numbers.type == pa.float64() and function in {Function.GREATER, Function.GREATER_EQUAL}:
        compared = pc.or_kleene(compared, pc.is_nan(numbers))
    return compared


def _read_operand(operand: Scalar, values: pa.Array) -> pa.Array | None:
    """The values of the column, of integers as ones of 64 bits; clamped, or as doubles, where the operand says so."""
    match operand:
        case ColumnReference() if pa.types.is_integer(values.type):
            return None if values.type == pa.uint64() else values.cast(pa.int64())
        case ColumnReference():
            return values
        case ToFloat(inner):
            numbers = _read_operand(inner, values)
            return numbers.cast(pa.float64(), safe=False) if numbers is not None and _is_number(numbers) else None
        case Clamp(ColumnReference() as inner, lower, upper, whole):
            numbers = _read_operand(inner, values)
            if numbers is None or numbers.type != (pa.int64() if whole else pa.float64()):
                return None
            if not whole:
                numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
            if lower is None or upper is None:
                return numbers
            ends = [pa.scalar(int(end) if whole else float(end), numbers.type) for end in (lower, upper)]
            return pc.min_element_wise(
                pc.max_element_wise(numbers, ends[0], skip_nulls=False), ends[1], skip_nulls=False
            )
    return None


def _is_number(values: pa.Array) -> bool:
    return bool(values.type in {pa.int64(), pa.float64()})


def _read_constant(constant: Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """A constant as one of a type; None where it is of another."""
    match constant:
        case ToFloat(Literal(int() | Fraction() as number)) | Literal(Fraction() as number) if kind == pa.float64():
            double = float(number)
            return pa.scalar(double, kind) if math.isfinite(double) else None
        case Literal(bool() as value) if pa.types.is_boolean(kind):
            return pa.scalar(value, kind)
        case Literal(int() as number) if (
            kind == pa.int64() and not isinstance(number, bool) and -(2**63) <= number < 2**63
        ):
            return pa.scalar(number, kind)
        case Literal(str() as text) if kind in {pa.string(), pa.large_string()}:
            return pa.scalar(text, kind)
        case Literal(datetime.date() as day) if kind == pa.date32() and not isinstance(day, datetime.datetime):
            return pa.scalar(day, kind)
    return None
