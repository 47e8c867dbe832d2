"""PostgreSQL's types of whole numbers, which say whether `/` cuts a quotient off: of integers it does, of others not.

A value that is a whole number here may be a bigint there, as a count is, or numeric, as a sum of bigints and a part of
a date are. Every scalar carries its type along (`query/bound.py`), through names and all that is computed. It decides
what `/` means, and nothing else; it is part of no key.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from tacit.query.functions import DATE_PARTS, TIME_PARTS, Function

_MOST_INTEGER = 2**31 - 1
_LONG = frozenset({"bigint", "int8", "int64", "long", "hugeint"})


class PostgresType(IntEnum):
    """PostgreSQL's type of a whole number, from the narrowest to the widest: what mixes two has the wider one.

    A sum has the next wider type. NUMERIC stands for double precision, too, whose quotients are exact as well. The
    stored type of a declared column is not known: it is read as INTEGER.
    """

    INTEGER = 0
    BIGINT = 1
    NUMERIC = 2


_NUMERIC = (
    DATE_PARTS
    | TIME_PARTS
    | {
        *(Function.EPOCH, Function.AGE),  # of EXTRACT and DATE_PART, as those above
        *(Function.FLOOR, Function.CEIL, Function.ROUND, Function.TRUNC, Function.SIGN, Function.POWER, Function.DIV),
    }
)
_LIKE_THEIR_ARGUMENTS = {
    *(Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.MOD, Function.NEGATE, Function.ABS),
    *(Function.LEAST, Function.GREATEST, Function.COALESCE),
}
_LIKE_THEIR_ARGUMENT = frozenset({"min", "max", "mode", "arg_min", "arg_max"})
_COUNTS = frozenset({"count", "regr_count"})


def widest(types: Iterable[PostgresType]) -> PostgresType:
    """The type of what mixes values of these types, as arithmetic, CASE and UNION do."""
    return max(types, default=PostgresType.INTEGER)


def type_of_literal(value: int) -> PostgresType:
    """The type of a constant."""
    return PostgresType.INTEGER if abs(value) <= _MOST_INTEGER else PostgresType.BIGINT


def type_of_cast(name: str) -> PostgresType:
    """The type of what is cast to an integer type of this name."""
    return PostgresType.BIGINT if name in _LONG else PostgresType.INTEGER


def type_of_call(function: Function, operands: Iterable[PostgresType]) -> PostgresType:
    """The type of what a function of operands gives.

    DIV is numeric, and FLOOR and ROUND of an integer are of double precision.
    """
    if function in _NUMERIC:
        return PostgresType.NUMERIC
    return widest(operands) if function in _LIKE_THEIR_ARGUMENTS else PostgresType.INTEGER


def type_of_aggregate(function: str, argument: PostgresType) -> PostgresType:
    """The type of an aggregate: of integers SUM is a bigint, and of bigints it is numeric."""
    if function in _COUNTS:
        return PostgresType.BIGINT
    if function == "sum":
        return PostgresType.BIGINT if argument is PostgresType.INTEGER else PostgresType.NUMERIC
    return argument if function in _LIKE_THEIR_ARGUMENT else PostgresType.NUMERIC


def type_of_window(function: str, arguments: Iterable[PostgresType]) -> PostgresType:
    """The type of a window function that is no aggregate: of row numbers and ranks, or of values of other rows."""
    if function in {"row_number", "rank", "dense_rank"}:
        return PostgresType.BIGINT
    return PostgresType.INTEGER if function == "ntile" else widest(arguments)
