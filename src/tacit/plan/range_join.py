"""Joins by a range with a table in the text: t.minutes BETWEEN v.low AND v.high, where the ranges do not overlap.

**Rule.** Let the rows of V be constants (`plan/constants.py`), and let ON say between which ends of a row of V a scalar
x of the other side lies. Where these ranges are not empty and do not overlap, x lies in one of them at most. So the
join is an equality: of the end of the range that x lies in, which is a CASE of the constants, with that end of the row.

*Proof.* Every engine computes the ends as the planner does (`plan/engine_agreement.py`). No two ranges share that end,
or they would overlap in it or one would be empty; so equal ends are the same row. The CASE gives the end of a row where
the conditions of that row hold, and NULL, which equals nothing, where those of none do; at most one branch holds, so
their order does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tacit.engines.evaluate import Row, evaluate
from tacit.engines.layout import substitute
from tacit.errors import Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.constants import evaluate_constants
from tacit.plan.engine_agreement import is_computed_alike
from tacit.plan.relation import Relation
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    Case,
    ColumnReference,
    Literal,
    Scalar,
    column_names,
    walk,
)
from tacit.query.types import Type

MAX_RANGES = 200
_TURNED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}
_LOW = frozenset({Function.GREATER, Function.GREATER_EQUAL})
_CLOSED = frozenset({Function.GREATER_EQUAL, Function.LESS_EQUAL})


@dataclass(frozen=True)
class RangePair:
    """The equality that a range is: the end that the rows' scalar has, and the end of the constants' row.

    `rest` are the conditions that say something else.
    """

    left: TypedScalar
    right: TypedScalar
    rest: list[Scalar]


@dataclass(frozen=True)
class _End:
    """A condition: x is compared with an end, which is computed from a row of constants."""

    function: Function
    subject: Scalar
    end: Scalar


def find_range(left: Relation, right: Relation, both: Relation, conditions: list[Scalar]) -> RangePair | None:
    """The equality that conditions of ON mean, if one side is of constants whose ranges do not overlap; or None."""
    for constants, is_right in ((right, True), (left, False)):
        rows = None if constants.people is not None else evaluate_constants(constants.rows)
        if rows is not None and len(rows) <= MAX_RANGES:
            found = _find(constants, rows, both, conditions)
            if found is not None:
                return found if is_right else replace(found, left=found.right, right=found.left)
    return None


def _find(constants: Relation, rows: list[Row], both: Relation, conditions: list[Scalar]) -> RangePair | None:
    names = frozenset(column_names(constants.rows))
    ends: list[_End] = []
    rest: list[Scalar] = []
    kinds: set[Type | None] = set()
    for part in _flatten(conditions):
        found = _end(part, both, names)
        if found is not None and (not ends or found[0].subject == ends[0].subject):
            ends.append(found[0])
            kinds.add(found[1])
        else:
            rest.append(part)
    if not ends or len(kinds) > 1 or not is_computed_alike(constants.rows, [end.end for end in ends]):
        return None
    if not _are_apart(ends, rows):
        return None
    named = next((end for end in ends if end.function in _LOW), ends[0])
    branches = []
    for row in rows:
        known: dict[Scalar, Scalar] = {ColumnReference(name): Literal(_literal(value)) for name, value in row.items()}
        holds = tuple(Call(end.function, (end.subject, substitute(end.end, known))) for end in ends)
        when = holds[0] if len(holds) == 1 else Call(Function.AND, holds)
        branches.append((when, substitute(named.end, known)))
    kind = kinds.pop()
    chosen = Case(tuple(branches), Literal(None))
    return RangePair(TypedScalar(chosen, kind), TypedScalar(named.end, kind), rest)


def _flatten(conditions: list[Scalar]) -> list[Scalar]:
    found: list[Scalar] = []
    for part in conditions:
        found += _flatten(list(part.arguments)) if isinstance(part, Call) and part.function == Function.AND else [part]
    return found


def _end(part: Scalar, both: Relation, names: frozenset[str]) -> tuple[_End, Type | None] | None:
    """A comparison of a scalar of the other side with one of constants, and the type of the end."""
    if not isinstance(part, Call) or part.function not in _TURNED:
        return None
    try:
        bound = both.bind(part).scalar
    except Refused:
        return None  # it is refused where ON is read
    if not isinstance(bound, Call) or bound.function not in _TURNED:
        return None
    (one, other), function = bound.arguments, Function(bound.function)
    if _is_of(one, names, inside=True) and _is_of(other, names, inside=False):
        one, other, function = other, one, _TURNED[function]
    if not _is_of(one, names, inside=False) or not _is_of(other, names, inside=True):
        return None
    try:
        kind = both.bind(next(a for a in part.arguments if _is_of(both.bind(a).scalar, names, inside=True))).type
    except Refused:
        return None
    return _End(function, one, other), kind


def _is_of(scalar: Scalar, names: frozenset[str], *, inside: bool) -> bool:
    columns = [node.name in names for node in walk(scalar) if isinstance(node, ColumnReference)]
    return bool(columns) and all(found is inside for found in columns)


def _are_apart(ends: list[_End], rows: list[Row]) -> bool:
    """Whether the ranges of all rows are not empty and do not overlap."""
    ranges = []
    for row in rows:
        found: list[Any] = [None, None, None, None]  # the ends, and whether each is in the range
        for end in ends:
            value = evaluate(end.end, row)
            place = 0 if end.function in _LOW else 1
            if value is None or found[place] is not None:
                return False
            found[place], found[place + 2] = value, end.function in _CLOSED
        low, high, with_low, with_high = found
        if low is not None and high is not None and (low > high or (low == high and not (with_low and with_high))):
            return False
        ranges.append((low, high, with_low, with_high))
    ranges.sort(key=lambda each: (each[0] is not None, each[0] if each[0] is not None else each[1]))
    for (_, high, _, with_high), (low, _, with_low, _) in pairwise(ranges):
        if high is None or low is None or high > low or (high == low and with_high and with_low):
            return False
    return True


def _literal(value: Any) -> Any:
    return Fraction(value) if isinstance(value, float) else value
