"""The naive engine: plain Python over a list of rows, one definition at a time. The oracle of the tests."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tacit.engines.base import Groups
from tacit.query.functions import Fn
from tacit.query.nodes import Aggregation, Call, Case, Clamp, Column, Literal, Quantize, Scalar, ToFloat
from tacit.query.types import Key

Row = Mapping[str, Any]


class Reference:
    """An engine over rows in memory, given as {table: [{column: value}]}."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        self._tables = tables

    def run(self, aggregation: Aggregation) -> Groups:
        """For each group that has rows, its keys and the integer of each measure."""
        rows = [row for row in self._tables[aggregation.table] if _takes_part(row, aggregation)]
        if aggregation.unit is not None:
            rows = _bounded(rows, aggregation, aggregation.unit)
        groups: dict[tuple[Key, ...], list[Row]] = defaultdict(list)
        for row in rows:
            groups[_group(row, aggregation)].append(row)
        if not aggregation.keys:
            groups[()]  # without keys there is one group, even of no rows
        return {group: tuple(_measures(rows, aggregation)) for group, rows in groups.items()}

    def close(self) -> None:
        """Nothing to let go of."""


def _takes_part(row: Row, aggregation: Aggregation) -> bool:
    if aggregation.where is not None and evaluate(aggregation.where, row) is not True:
        return False
    if aggregation.unit is not None and row[aggregation.unit] is None:
        return False
    return all(row[domain.column] in domain.values for domain in aggregation.keys)


def _group(row: Row, aggregation: Aggregation) -> tuple[Key, ...]:
    return tuple(row[domain.column] for domain in aggregation.keys)


def _measures(rows: list[Row], aggregation: Aggregation) -> list[int]:
    results = []
    for measure in aggregation.measures:
        values = [1 if measure.argument is None else evaluate(measure.argument, row) for row in rows]
        present = [value for value in values if value is not None]
        results.append(len(present) if measure.function == "count" else sum(present))
    return results


def _bounded(rows: list[Row], aggregation: Aggregation, unit: str) -> list[Row]:
    """Of each unit, the first groups and rows by a hash of its own contents."""
    units: dict[Any, dict[tuple[Key, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        units[row[unit]][_group(row, aggregation)].append(row)
    arguments = list(dict.fromkeys(m.argument for m in aggregation.measures if m.argument is not None))
    kept: list[Row] = []
    for owner, groups in units.items():
        chosen = sorted(groups, key=lambda group: _hash(aggregation.salt, [owner, *group]))
        for group in chosen[: aggregation.keep.groups]:

            def contents(row: Row) -> str:
                return _hash(aggregation.salt, [evaluate(argument, row) for argument in arguments])

            kept += sorted(groups[group], key=contents)[: aggregation.keep.rows]
    return kept


def _hash(salt: str, values: list[Any]) -> str:
    shown = ["-" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    return hashlib.md5("\x1f".join([salt, *shown]).encode(), usedforsecurity=False).hexdigest()


def evaluate(node: Scalar, row: Row) -> Any:
    """The value of a scalar on one row; None is NULL."""
    match node:
        case Literal(Fraction() as value):
            return float(value)
        case Literal(value):
            return value
        case Column(name):
            return row[name]
        case ToFloat(operand):
            value = evaluate(operand, row)
            return None if value is None else float(value)
        case Clamp(operand, lower, upper, whole):
            value = evaluate(operand, row)
            if value is None or (not whole and math.isnan(value)):
                return None
            if lower is None or upper is None:
                return value
            low, high = (int(lower), int(upper)) if whole else (float(lower), float(upper))
            return min(max(value, low), high)
        case Quantize(operand, step, lower, upper):
            value = evaluate(operand, row)
            if value is None or math.isnan(value):
                return None
            return math.floor(min(max(value * float(1 / step) + 0.5, lower), upper + 0.5))
        case Case(branches, otherwise):
            for when, then in branches:
                if evaluate(when, row) is True:
                    return evaluate(then, row)
            return evaluate(otherwise, row)
        case Call(function, arguments):
            return _call(Fn(function), [evaluate(argument, row) for argument in arguments])
    raise AssertionError(f"no meaning for {node!r}")


def _call(function: Fn, values: list[Any]) -> Any:
    """Three-valued logic first, then functions that skip NULLs, then those that pass them on."""
    match function:
        case Fn.AND:
            return False if False in values else None if None in values else True
        case Fn.OR:
            return True if True in values else None if None in values else False
        case Fn.IS_NULL:
            return values[0] is None
        case Fn.LEAST | Fn.GREATEST | Fn.COALESCE:
            present = [value for value in values if value is not None]
            if not present:
                return None
            return present[0] if function is Fn.COALESCE else min(present) if function is Fn.LEAST else max(present)
    if None in values:
        return None
    first, *rest = values
    match function:
        case Fn.NOT:
            return not first
        case Fn.IN:
            return first in rest
        case Fn.NEGATE:
            return -first
        case Fn.ABS:
            return abs(first)
        case Fn.FLOOR | Fn.CEIL:
            rounded = math.floor(first) if function is Fn.FLOOR else math.ceil(first)
            return float(rounded) if isinstance(first, float) else rounded
    return _binary(function, first, rest[0])


def _binary(function: Fn, left: Any, right: Any) -> Any:
    match function:
        case Fn.ADD:
            return left + right
        case Fn.SUBTRACT:
            return left - right
        case Fn.MULTIPLY:
            return left * right
        case Fn.DIVIDE:
            return None if right == 0 else left / right
        case Fn.EQUAL:
            return left == right
        case Fn.UNEQUAL:
            return left != right
        case Fn.LESS:
            return left < right
        case Fn.LESS_EQUAL:
            return left <= right
        case Fn.GREATER:
            return left > right
        case Fn.GREATER_EQUAL:
            return left >= right
    raise AssertionError(f"no meaning for {function}")
