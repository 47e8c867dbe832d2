"""Products that cannot underflow, for an engine that raises where a product of floats rounds to zero.

An operand next to zero is read as zero: (x + t) - t with t = 2^-298 is x for every double of at least 2^-244 in size, 0
below 2^-351, and a multiple of 2^-351 between. So a product of two such is 0 or at least 2^-702, which is a double. It
names its operand once. Where an operand is a whole number, the product is 0 or not smaller than the other one, and
stays as it is; so do products of integers, for which the columns that are floats must be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from tacit.engines.dialect import FLUSH_TO_ZERO
from tacit.query.clipped_aggregation import ClippedAggregation, change_measures
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    Constants,
    EquiJoin,
    ExactStatistic,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    ToFloat,
    UnitWindow,
)
from tacit.query.types import Type

FloatColumns = frozenset[str]

_TINY = Literal(Fraction(FLUSH_TO_ZERO))
_ALWAYS = frozenset({Function.DIVIDE, Function.POWER, Function.SQRT, Function.LN, Function.LOG10, Function.EXP})
_TYPE_PRESERVING = frozenset(
    [
        Function.ADD,
        Function.SUBTRACT,
        Function.MULTIPLY,
        Function.NEGATE,
        Function.ABS,
        Function.FLOOR,
        Function.CEIL,
        Function.LEAST,
        Function.GREATEST,
        Function.COALESCE,
    ]
)  # floats where their operands are


def guard_products(node: Aggregation, tables: Mapping[str, FloatColumns]) -> Aggregation:
    """The aggregation with every product of floats guarded. `tables` are the columns that are floats."""
    source, floats = _rows(node.source, tables)
    return replace(
        node,
        source=source,
        where=None if node.where is None else guard_scalar(node.where, floats),
        keys=tuple(replace(key, scalar=guard_scalar(key.scalar, floats)) for key in node.keys),
        measures=tuple(_measure(measure, floats) for measure in node.measures),
    )


def guard_clipped_products(node: ClippedAggregation, tables: Mapping[str, FloatColumns]) -> ClippedAggregation:
    """The same where a clip bounds what a unit adds."""
    source, floats = _rows(node.source, tables)
    return replace(
        node,
        source=source,
        where=None if node.where is None else guard_scalar(node.where, floats),
        keys=tuple(replace(key, scalar=guard_scalar(key.scalar, floats)) for key in node.keys),
        vectors=change_measures(node.vectors, lambda measure: _measure(measure, floats)),
    )


def guards_products(rows: RelationalNode, scalars: Iterable[Scalar]) -> bool:
    """Whether a product is guarded in rows of constants, or in scalars of them."""
    guarded, floats = _rows(rows, {})
    return guarded != rows or any(guard_scalar(scalar, floats) != scalar for scalar in scalars)


def is_float(scalar: Scalar, floats: FloatColumns) -> bool:
    """Whether a scalar gives floats, over rows whose columns `floats` are."""
    match scalar:
        case Literal(value):
            return isinstance(value, Fraction)
        case ColumnReference(name):
            return name in floats
        case Clamp(_, _, _, whole):
            return not whole
        case ToFloat():
            return True
        case Case(branches, otherwise):
            return any(is_float(value, floats) for value in (otherwise, *(then for _, then in branches)))
        case Call(function, arguments):
            return function in _ALWAYS or (function in _TYPE_PRESERVING and any(is_float(a, floats) for a in arguments))
    return False


def _rows(node: RelationalNode, tables: Mapping[str, FloatColumns]) -> tuple[RelationalNode, FloatColumns]:
    """The rows, and which of their columns are floats."""
    match node:
        case Scan(table, columns):
            return node, frozenset(here for column, here in columns if column in tables[table])
        case Constants(columns):
            return node, frozenset(name for name, kind in columns if kind is Type.FLOAT)
        case Projection(source, columns, where):
            inner, floats = _rows(source, tables)
            condition = None if where is None else guard_scalar(where, floats)
            named = tuple((name, guard_scalar(value, floats)) for name, value in columns)
            return Projection(inner, named, condition), frozenset(n for n, value in columns if is_float(value, floats))
        case EquiJoin(left, right, on):
            (one, ours), (other, theirs) = _rows(left, tables), _rows(right, tables)
            pairs = tuple((guard_scalar(a, ours), guard_scalar(b, theirs)) for a, b in on)
            return replace(node, left=one, right=other, on=pairs), ours | theirs
        case PerUnitAggregation(source, keys, measures):
            inner, floats = _rows(source, tables)
            named = tuple((name, guard_scalar(value, floats)) for name, value in keys)
            inside = tuple((name, _measure(measure, floats)) for name, measure in measures)
            ends = {n: m.argument for n, m in measures if m.function in {"min", "max"} and m.argument is not None}
            made = frozenset(name for name, value in [*keys, *ends.items()] if is_float(value, floats))
            return PerUnitAggregation(inner, named, inside), made
        case UnitWindow(source, columns=windows):
            inner, floats = _rows(source, tables)
            made = frozenset(
                name for name, window in windows if window.argument in floats and window.function != "count"
            )
            return replace(node, source=inner), floats | made
        case RowUnion(parts):
            found = [_rows(part, tables) for part in parts]
            return RowUnion(tuple(part for part, _ in found)), frozenset.union(*(floats for _, floats in found))
    raise AssertionError(f"no rows: {node!r}")


def _measure(measure: ExactStatistic, floats: FloatColumns) -> ExactStatistic:
    return measure if measure.argument is None else replace(measure, argument=guard_scalar(measure.argument, floats))


def guard_scalar(node: Scalar, floats: FloatColumns) -> Scalar:
    """A scalar over rows whose columns `floats` are, with every product of floats guarded."""
    match node:
        case Call(Function.MULTIPLY, (left, right)) if is_float(node, floats) and not (
            _is_zero_or_at_least_one(left) or _is_zero_or_at_least_one(right)
        ):
            return Call(
                Function.MULTIPLY, tuple(_flush_to_zero(guard_scalar(operand, floats)) for operand in (left, right))
            )
        case Call(function, arguments):
            return Call(function, tuple(guard_scalar(argument, floats) for argument in arguments))
        case Case(branches, otherwise):
            parts = tuple((guard_scalar(when, floats), guard_scalar(then, floats)) for when, then in branches)
            return Case(parts, guard_scalar(otherwise, floats))
        case Clamp(operand) | ToFloat(operand) | Quantize(operand):
            return replace(node, operand=guard_scalar(operand, floats))
    return node


def _is_zero_or_at_least_one(operand: Scalar) -> bool:
    """Whether this is zero or at least one in size, whatever the row."""
    match operand:
        case ToFloat():
            return True
        case Literal(Fraction() as value):
            return value == 0 or abs(value) >= 1
    return False


def _flush_to_zero(operand: Scalar) -> Scalar:
    return Call(Function.SUBTRACT, (Call(Function.ADD, (operand, _TINY)), _TINY))
