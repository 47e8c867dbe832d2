"""What an answer says of itself, in sentences. It is said before the question is paid for, and costs nothing.

**Theorem.** A note depends on the question and the policy only. Proof: all that is used here are the nodes of the
question, the fields that `plan/scope.py` makes of declared columns, and the caps of the policy; no engine is at hand.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

from tacit.engines.evaluate import is_like
from tacit.errors import Refused
from tacit.plan.scope import Field, Relation
from tacit.query.functions import COMPARISONS, Fn
from tacit.query.nodes import Aggregation, Call, Column, Literal, Query, Scalar, Value, scalars, walk
from tacit.query.refuse import plain
from tacit.query.types import NUMBERS, Key, Type, iso_date

_MOST = 5  # notes about constants
_LOOKED_AT = 100  # comparisons, so that a long question takes no longer
_COMPARED = 1_000  # declared values that a pattern is held against
_LISTED = 10  # values that a note names
_SEEN_FROM_THE_RIGHT = {
    Fn.LESS: Fn.GREATER,
    Fn.GREATER: Fn.LESS,
    Fn.LESS_EQUAL: Fn.GREATER_EQUAL,
    Fn.GREATER_EQUAL: Fn.LESS_EQUAL,
}


def about_rows(exact: Aggregation, unit: str) -> tuple[str, ...]:
    """What every answer says of the rows it is about."""
    bars = "Error bars are about the noise; what the bounds cut off is not in them."
    if exact.unit is None:
        return (bars,)
    rows = f"{exact.keep.rows} row{'s' if exact.keep.rows != 1 else ''}"
    groups = f"{exact.keep.groups} group{'s' if exact.keep.groups != 1 else ''}"
    kept_of = f"in at most {groups}, with at most {rows} in each" if exact.keys else f"with at most {rows}"
    if exact.keep.total is not None:
        kept_of = f"with at most {exact.keep.total} rows in all, {kept_of}"
    return (f"After WHERE, each {unit} counts {kept_of}.", bars)


def about_constants(query: Query, relation: Relation) -> tuple[str, ...]:
    """Constants that a column is compared with although it has no such declared value, or lies within other bounds.

    The data may hold values that are not declared, so it is not said that none is equal. A column with bounds is read
    within them, so that no row meets a condition beyond them is true of all data.
    """
    return tuple(dict.fromkeys(_found(query, relation)))[:_MOST]


def _found(query: Query, relation: Relation) -> Iterator[str]:
    named = {output.name.lower(): output.scalar for output in query.outputs}
    finishing = {id(clause) for clause in (query.having, *(item.scalar for item in query.order))}
    nodes = ((clause, _compared(node)) for clause in scalars(query) for node in walk(clause))
    comparisons = ((clause, compared) for clause, compared in nodes if compared is not None)
    for clause, (column, function, values) in islice(comparisons, _LOOKED_AT):
        alias = named.get(column.name.lower(), column) if id(clause) in finishing else column
        if not isinstance(alias, Column) or alias.name.lower() != column.name.lower():
            continue  # the name of an output, which stands for something else there
        field = _field(column, relation)
        if field is not None:
            yield from _said(field, function, values)


def _compared(node: Scalar) -> tuple[Column, Fn, list[Value]] | None:
    """The column, the comparison and the constants, where a node compares a column with constants."""
    if not isinstance(node, Call):
        return None
    parts = tuple(a.arguments[0] if isinstance(a, Call) and a.function == Fn.CAST else a for a in node.arguments)
    match Call(node.function, parts):
        case Call(function, (Column() as column, Literal(value))) if function in COMPARISONS | {Fn.LIKE}:
            return column, Fn(function), [value]
        case Call(function, (Literal(value), Column() as column)) if function in COMPARISONS:
            return column, _SEEN_FROM_THE_RIGHT.get(Fn(function), Fn(function)), [value]
        case Call(Fn.IN, (Column() as column, *items)):
            return column, Fn.IN, [item.value for item in items if isinstance(item, Literal)]
    return None


def _field(column: Column, relation: Relation) -> Field | None:
    try:
        return relation.field_of(column)
    except Refused:  # the name of an output
        return None


def _said(field: Field, function: Fn, values: list[Value]) -> Iterator[str]:
    constants = [value for value in (_typed(value, field.bound.type) for value in values) if value is not None]
    if function is Fn.LIKE:
        yield from _unlike(field, str(constants[0]) if constants else "%")
    elif field.values is not None and function in {Fn.EQUAL, Fn.UNEQUAL, Fn.IN}:
        known = frozenset(field.values)
        yield from _undeclared(field, field.values, [value for value in constants if value not in known])
    elif field.raw:  # a column as it is declared, and none that is computed
        beyond = [value for value in constants if _is_beyond(function, _number(value), field)]
        if beyond and (function is not Fn.IN or len(beyond) == len(constants)):
            sign = f"{function.upper()} ({_listed(beyond)})" if function is Fn.IN else f"{function} {_shown(beyond[0])}"
            yield f"{field.name} {sign} is true of no row: {field.name} is declared from {_range(field)}."


def _undeclared(field: Field, declared: tuple[Key, ...], values: list[Key | Fraction]) -> Iterator[str]:
    alike: dict[str, Key] = {_folded(known): known for known in declared} if values else {}
    for value in values[:_LOOKED_AT]:
        near = alike.get(_folded(value))
        if near is not None:
            yield f"No declared {field.name} is {_shown(value)}; did you mean {_shown(near)}?"
        elif field.other is None:  # where others are expected, it may be one of them
            yield f"No declared {field.name} is {_shown(value)}; there are {_listed(declared)}."


def _folded(value: Key | Fraction) -> str:
    return str(value).strip().casefold()


def _unlike(field: Field, pattern: str) -> Iterator[str]:
    texts = [value for value in field.values or () if isinstance(value, str)]
    few = 0 < len(texts) <= _COMPARED
    if few and field.other is None and not any(is_like(text, pattern) for text in texts):
        yield f"No declared {field.name} is like {_shown(pattern)}; there are {_listed(tuple(texts))}."


def _typed(value: Value, kind: Type | None) -> Key | Fraction | None:
    """A constant as a value of the column's type, as comparing reads it; None for what is none."""
    if kind is Type.DATE and isinstance(value, str):
        return iso_date(value)
    return None if kind in {Type.BOOL, None} else value


def _number(value: Key | Fraction) -> Fraction | None:
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal())
    return None if isinstance(value, str) else Fraction(value)


def _is_beyond(function: Fn, value: Fraction | None, field: Field) -> bool:
    """Whether no value within the bounds compares so with this one, also where all three are rounded to doubles."""
    bound = field.bound
    if value is None or not bound.bounded or bound.lower is None or bound.upper is None:
        return False
    number, low, high = value, bound.lower, bound.upper
    if bound.type is Type.FLOAT:
        number, low, high = (Fraction(float(one)) for one in (value, low, high))
    match function:
        case Fn.EQUAL | Fn.IN:
            return not low <= number <= high
        case Fn.LESS:
            return number <= low
        case Fn.LESS_EQUAL:
            return number < low
        case Fn.GREATER:
            return number >= high
        case Fn.GREATER_EQUAL:
            return number > high
    return False


def _range(field: Field) -> str:
    ends = [end for end in (field.bound.lower, field.bound.upper) if end is not None]
    if field.bound.type in NUMBERS:
        return " to ".join(_shown(end) for end in ends)
    return " to ".join(str(datetime.date.fromordinal(int(end))) for end in ends)


def _shown(value: Key | Fraction) -> str:
    match value:
        case str():
            return f"'{plain(value)}'"
        case Fraction() if value.denominator != 1:
            return f"{float(value):.10g}"
    return str(value)


def _listed(values: tuple[Key, ...] | list[Key | Fraction]) -> str:
    more = len(values) - _LISTED
    shown = ", ".join(_shown(value) for value in values[:_LISTED])
    return f"{shown} and {more:,} more" if more > 0 else shown
