"""Public keys that WHERE leaves: a week of days has seven rows, and WHERE status = 'paid' one status.

**Rule.** A key is left out only where no row can have it: every condition of a conjunction must be true of a row that
counts. So the same rows are in the same groups as with all keys, and which keys are left follows from the question and
the policy alone.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from tacit.engines.evaluate import evaluate
from tacit.plan.bounds import TypedScalar, bind, domain
from tacit.plan.letter_case import is_case_known
from tacit.plan.relation import Field, Relation
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Clamp,
    ColumnReference,
    Literal,
    Placeholder,
    Scalar,
    ScalarSubquery,
    Window,
    walk,
)
from tacit.query.timestamps import to_microseconds
from tacit.query.types import NUMERIC_TYPES, Key, Type, parse_iso_date

_MOST_VALUES = 1_000  # that conditions are evaluated for
_MOST_CONDITIONS = 20
_MIRRORED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
    Function.EQUAL: Function.EQUAL,
}
_STEPPED = frozenset({Type.INT, Type.DATE, Type.TIMESTAMP})  # whose values are integers, in one way or another
Range = tuple[Fraction, Fraction]


class KeyNarrowing:
    """What WHERE says of the columns of a relation; `ascii_case` as in `plan/letter_case.py`."""

    def __init__(self, relation: Relation, where: Scalar | None, *, ascii_case: bool = False) -> None:
        self._relation = relation
        self._ascii_case = ascii_case
        parts: tuple[Scalar, ...] = () if where is None else (where,)
        if isinstance(where, Call) and where.function == Function.AND:
            parts = where.arguments
        self._conditions: list[tuple[Field, Scalar]] = []
        for part in parts[:_MOST_CONDITIONS]:
            fields = self._fields(part)
            if fields is not None and len(fields) == 1:
                self._conditions.append((fields[0], part))

    def values(self, scalar: Scalar, known: tuple[Key, ...] | None, most: int) -> tuple[Key, ...] | None:
        """The public keys of a scalar that rows may have, in order; `known` are all of them, None where private."""
        fields = self._fields(scalar)
        if fields is None or len(fields) != 1 or not any(field == fields[0] for field, _ in self._conditions):
            return known
        field = fields[0]
        found = known
        narrowed = self._range(field)
        if narrowed is not None and field.values is None:
            listed = domain(bind(scalar, self._leaf(field, narrowed), rows=True), most)
            if listed:
                found = listed if known is None else tuple(key for key in known if key in set(listed)) or known
        if found is not None and isinstance(scalar, ColumnReference) and len(found) <= _MOST_VALUES:
            found = self._that_meet(field, found) or found
        return found

    def knows_case(self, scalar: Scalar, values: tuple[Key, ...]) -> bool:
        """Whether a scalar of these values is known without the engine, as far as letters are changed in it."""
        return is_case_known(scalar, values, ascii_alone=self._ascii_case)

    def demands(self, scalar: Scalar) -> bool:
        """Whether WHERE leaves no row where a key is NULL, as a comparison of its column with a constant does."""
        fields = self._fields(scalar)
        if fields is None:
            return False
        return all(any(about == field and _is_strict(part) for about, part in self._conditions) for field in fields)

    def bind(self, scalar: Scalar) -> TypedScalar:
        """A scalar over the rows that WHERE leaves, with its columns clamped to what WHERE says of them.

        That changes no value of such a row, and what is clamped has these bounds in any row.
        """

        def leaf(node: Scalar) -> TypedScalar | None:
            found = self._relation.leaf(node)
            if not isinstance(node, ColumnReference) or found is None or found.type not in NUMERIC_TYPES:
                return found
            low, high = found.lower, found.upper
            for about, part in self._conditions:
                least, most = _number_ends(part) if about == self._relation.field_of(node) else (None, None)
                low = least if low is None or (least is not None and least > low) else low
                high = most if high is None or (most is not None and most < high) else high
            if found.type is Type.INT and low is not None and high is not None:
                low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
            if (low, high) == (found.lower, found.upper) or low is None or high is None or low > high:
                return found
            clamped = Clamp(found.scalar, low, high, found.type is Type.INT)
            return replace(found, scalar=clamped, lower=low, upper=high, weight=found.weight + 1)

        return bind(scalar, leaf, rows=True)

    def excludes_others(self, field: Field) -> bool:
        """Whether only declared values of a column meet WHERE, so that no row has the key for all others."""
        listed = set(field.values or ())
        for about, part in self._conditions:
            if about == field and isinstance(part, Call) and part.function in {Function.EQUAL, Function.IN}:
                constants = [a.value for a in part.arguments if isinstance(a, Literal)]
                columns = [a for a in part.arguments if isinstance(a, ColumnReference)]
                if len(columns) == 1 == len(part.arguments) - len(constants) and listed.issuperset(constants):
                    return True
        return False

    def _fields(self, scalar: Scalar) -> list[Field] | None:
        """The columns that a scalar is made of, each once; None where it is made of more than columns."""
        found: list[Field] = []
        for node in walk(scalar):
            if isinstance(node, Aggregate | Window | ScalarSubquery | Placeholder):
                return None
            if isinstance(node, ColumnReference):
                field = self._relation.field_of(node)
                if field not in found:
                    found.append(field)
        return found

    def _that_meet(self, field: Field, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        """The values of a column that meet all conditions on it."""
        columns = {node.name for node in walk(field.bound.scalar) if isinstance(node, ColumnReference)}
        if len(columns) != 1 or field.is_unlisted:
            return keys
        (column,) = columns
        for about, part in self._conditions:
            if about == field and self.knows_case(part, keys):
                bound = self._relation.bind(part).scalar
                keys = tuple(key for key in keys if evaluate(bound, {column: key}) is True)
        return keys

    def _range(self, field: Field) -> Range | None:
        """The bounds that conditions leave of a column's; None where they are as declared, or nothing is left."""
        bound = field.bound
        if bound.type not in _STEPPED or not bound.is_bounded or bound.lower is None or bound.upper is None:
            return None
        low, high = bound.lower, bound.upper
        for about, part in self._conditions:
            ends = _ends(part, bound.type) if about == field else None
            if ends is not None:
                low = low if ends[0] is None else max(low, ends[0])
                high = high if ends[1] is None else min(high, ends[1])
        return None if low > high or (low, high) == (bound.lower, bound.upper) else (low, high)

    def _leaf(self, field: Field, ends: Range) -> Callable[[Scalar], TypedScalar | None]:
        def leaf(node: Scalar) -> TypedScalar | None:
            found = self._relation.leaf(node)
            if isinstance(node, ColumnReference) and found is not None and self._relation.field_of(node) == field:
                return replace(found, lower=ends[0], upper=ends[1])
            return found

        return leaf


def _number_ends(part: Scalar) -> tuple[Fraction | None, Fraction | None]:
    """The least and the largest number that a condition leaves of a column, which it compares with a constant."""
    match part:
        case Call(Function.AND, parts):
            ends = [_number_ends(each) for each in parts]
            lows, highs = ([end for end in side if end is not None] for side in zip(*ends, strict=True))
            return max(lows, default=None), min(highs, default=None)
        case Call(function, (Literal() as value, ColumnReference() as column)) if function in _MIRRORED:
            return _number_ends(Call(_MIRRORED[Function(function)], (column, value)))
        case Call(function, (ColumnReference(), Literal(int() | Fraction() as value))) if not isinstance(value, bool):
            number = Fraction(value)
            low = number if function in {Function.GREATER, Function.GREATER_EQUAL, Function.EQUAL} else None
            return low, number if function in {Function.LESS, Function.LESS_EQUAL, Function.EQUAL} else None
    return None, None


def _is_strict(part: Scalar) -> bool:
    """Whether a condition is not true where a column in it is NULL."""
    match part:
        case Call(Function.NOT, (Call(Function.IS_NULL, (ColumnReference(),)),)):
            return True
        case Call(function, (ColumnReference(), *rest)) if function in COMPARISONS | {Function.IN, Function.LIKE}:
            return all(isinstance(other, Literal) for other in rest)
        case Call(Function.AND, parts):
            return any(map(_is_strict, parts))
    return False


def _ends(part: Scalar, kind: Type | None) -> tuple[Fraction | None, Fraction | None] | None:
    """The least and the largest value of a column that a comparison with constants leaves; None where it says none."""
    if not isinstance(part, Call):
        return None
    if part.function == Function.IN and isinstance(part.arguments[0], ColumnReference):
        values = [_number(argument, kind) for argument in part.arguments[1:]]
        known = [value for value in values if value is not None]
        return (min(known), max(known)) if known and len(known) == len(values) else None
    if part.function not in _MIRRORED:
        return None
    (left, right), function = part.arguments, Function(part.function)
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED[function]
    if isinstance(left, Call) and left.function == Function.YEAR and isinstance(left.arguments[0], ColumnReference):
        return _year_ends(function, right, kind)
    value = _number(right, kind) if isinstance(left, ColumnReference) else None
    return None if value is None else _find_ends(function, value)


def _find_ends(function: Function, value: Fraction) -> tuple[Fraction | None, Fraction | None]:
    match function:
        case Function.LESS:
            return None, Fraction(math.ceil(value) - 1)
        case Function.LESS_EQUAL:
            return None, Fraction(math.floor(value))
        case Function.GREATER:
            return Fraction(math.floor(value) + 1), None
        case Function.GREATER_EQUAL:
            return Fraction(math.ceil(value)), None
    return value, value


def _year_ends(function: Function, right: Scalar, kind: Type | None) -> tuple[Fraction | None, Fraction | None] | None:
    """The dates of the years that a comparison of YEAR(d) with a constant leaves."""
    year = right.value if isinstance(right, Literal) else None
    if not isinstance(year, int) or isinstance(year, bool) or not 1 < year < 9999:
        return None
    low, high = _find_ends(function, Fraction(year))
    first = None if low is None else datetime.date(int(low), 1, 1)
    after = None if high is None else datetime.date(int(high) + 1, 1, 1)
    start = None if first is None else _number(Literal(first), kind)
    stop = None if after is None else _number(Literal(after), kind)
    return start, None if stop is None else stop - 1


def _number(scalar: Scalar, kind: Type | None) -> Fraction | None:
    """A constant as the number that the bounds of a column of this type are; None where it is none."""
    value = scalar.value if isinstance(scalar, Literal) else None
    if isinstance(value, str):
        value = parse_iso_date(value)
    match value:
        case bool() | None:
            return None
        case int() | Fraction() if kind is Type.INT:
            return Fraction(value)
        case datetime.datetime() if kind is Type.TIMESTAMP:
            return Fraction(to_microseconds(value))
        case datetime.datetime():
            return None
        case datetime.date() if kind is Type.DATE:
            return Fraction(value.toordinal())
        case datetime.date() if kind is Type.TIMESTAMP:
            return Fraction(to_microseconds(datetime.datetime(value.year, value.month, value.day)))
    return None
