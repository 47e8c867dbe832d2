"""What is looked up for each coded row of a question: its group, what is counted of it, and what is added up."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tacit.engines.coded_columns import CodedColumn
from tacit.engines.coded_rows import CodedRows
from tacit.engines.combinations import (
    Combinations,
    Names,
    count_combinations,
    join_small_sets,
    join_subsets,
    limit_combinations,
    limit_counted,
)
from tacit.engines.key_numbers import KeyNumbers, number_groups
from tacit.query.conditions import named_columns
from tacit.query.nodes import Aggregation, ExactStatistic, Scalar
from tacit.query.types import Key

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_COUNTS = 1 << 22  # of combinations in groups
_MOST_TABLES = 16
_MOST_SUM = 1 << 62

Values = dict[Scalar, pa.Array]
Evaluate = Callable[[Names, Sequence[Scalar]], "Values | None"]


class GroupTable(NamedTuple):
    """For each combination, what it adds to the number of the row's group, or that the row is in none."""

    combinations: Combinations
    numbers: NDArray[np.int32]


class CountedColumns(NamedTuple):
    """Combinations that are counted in each group, and the value of each argument for each of them."""

    combinations: Combinations
    values: Mapping[Scalar, pa.Array]


class Addends(NamedTuple):
    """What each row adds to a measure of its group, by its combination. No sum over rows leaves 63 bits."""

    combinations: Combinations
    values: NDArray[np.int64]


class CodedPlan(NamedTuple):
    """A question over coded rows: the values of its keys, and what is looked up, counted and added up for each row."""

    keys: Sequence[Sequence[Key | None]]
    tables: Sequence[GroupTable]
    counted: list[CountedColumns]
    added: dict[ExactStatistic, Addends]

    @property
    def size(self) -> int:
        """How many groups there may be."""
        return prod(map(len, self.keys))


def plan_codes(
    node: Aggregation, read: CodedRows, columns: Mapping[str, CodedColumn], rows: int, evaluate: Evaluate
) -> CodedPlan | None:
    """What is looked up, counted and added up; None where there are too many combinations or groups.

    `evaluate` gives scalars over the combinations of some columns, or None where it does not.
    """
    grouped = join_small_sets([named_columns(scalar) for scalar in (*read.conditions, *read.keys)], columns)
    used = join_subsets(named_columns(argument) for argument in read.arguments.values())
    most = limit_combinations(rows, read.scalars)
    if any(count_combinations(names, columns) > most for names in [*grouped, *used]) or len(grouped) > _MOST_TABLES:
        return None
    if ((read.conditions or read.keys) and not grouped) or (read.arguments and not used):
        return None  # scalars that name no column
    conditions, groups = _assign(read.conditions, grouped), _assign(read.keys, grouped)
    arguments = _assign(read.arguments.values(), used)
    wanted = [*map(operator.add, conditions, groups), *arguments]
    found = [evaluate(names, scalars) for names, scalars in zip([*grouped, *used], wanted, strict=True)]
    values = [each for each in found if each is not None]
    if len(values) < len(found):
        return None
    keys = KeyNumbers(node.keys)
    is_in_and_keys = []
    for names, needed, own, of in zip(grouped, conditions, groups, values[: len(grouped)], strict=True):
        is_in = np.ones(count_combinations(names, columns), np.bool_)
        for condition in needed:
            is_in &= of[condition].fill_null(False).to_numpy(zero_copy_only=False)
        is_in_and_keys.append((is_in, {i: keys.number(i, of[key]) for i, key in enumerate(read.keys) if key in own}))
    if not 0 < prod(map(len, keys.values)) <= _MOST_COUNTS:
        return None
    tables = [
        GroupTable(combine(names, columns), number_groups(is_in, numbers, keys))
        for names, (is_in, numbers) in zip(grouped, is_in_and_keys, strict=True)
    ]
    plan = CodedPlan(keys.values, tables, [], {})
    for names, own, of in zip(used, arguments, values[len(grouped) :], strict=True):
        each = CountedColumns(combine(names, columns), {a: of[s] for a, s in read.arguments.items() if s in own})
        measures = [measure for measure in node.measures if measure.argument in each.values]
        if any(m.function == "sum" and not pa.types.is_integer(each.values[_argument(m)].type) for m in measures):
            return None
        if each.combinations.size <= limit_counted(rows):
            plan.counted.append(each)
            continue
        for measure in measures:
            addends = _find_addends(measure, each.values[_argument(measure)], rows)
            if addends is None:
                return None
            plan.added[measure] = Addends(each.combinations, addends)
    return None if sum(plan.size * each.combinations.size for each in plan.counted) > _MOST_COUNTS else plan


def combine(names: Names, columns: Mapping[str, CodedColumn]) -> Combinations:
    """The combinations of the values of some columns."""
    return Combinations({name: columns[name] for name in sorted(names)})


def _assign(scalars: Iterable[Scalar], sets: Sequence[Names]) -> list[list[Scalar]]:
    """For each set of columns the scalars that go with it: the first that has all that they name."""
    assigned: list[list[Scalar]] = [[] for _ in sets]
    for scalar in scalars:
        names = named_columns(scalar)
        next(own for known, own in zip(sets, assigned, strict=True) if names <= known).append(scalar)
    return assigned


def _argument(measure: ExactStatistic) -> Scalar:
    assert measure.argument is not None
    return measure.argument


def _find_addends(measure: ExactStatistic, values: pa.Array, rows: int) -> NDArray[np.int64] | None:
    """What each value adds to a measure; None where it is no sum, or one over so many rows could leave 63 bits."""
    if measure.function == "count":
        is_there: NDArray[np.int64] = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        return is_there
    if measure.function != "sum":
        return None
    addends: NDArray[np.int64] = values.fill_null(0).to_numpy().astype(np.int64)
    largest = max(-int(addends.min(initial=0)), int(addends.max(initial=0)))
    return addends if largest * rows < _MOST_SUM else None
