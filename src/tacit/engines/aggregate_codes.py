"""Bounded aggregation over coded columns: what a question computes of a row is computed once for each of the distinct
values that the row may have, and looked up for each row.

**Theorem.** The cells are those of `engines/aggregate_copy.py`, integer by integer. Proof. Every scalar of a question
is a function of the columns that it names, evaluated by the same SQL over every combination of their distinct values,
so what is looked up for a row is what is computed from it. Rows come in the order of the copy, those that WHERE leaves
out as rows in no group. The loops of `engines/bound_contributions.py` look at the order of a unit's rows, at which of
them are in one group, and at the unit's own number, and at nothing else, so they keep the same rows. Of the rows that
are kept in a group those of each combination are counted, and a measure follows from these counts by integers that do
not overflow. Where each row is a unit, all rows are kept, as by SQL.

**Rule.** Whether a question is answered so depends on the number of rows, and on how many distinct values its columns
have. It changes how long a question takes, and nothing that is released.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tacit.engines.base import GroupedMeasures
from tacit.engines.bound_contributions import (
    MAX_BATCH_ROWS,
    BoundingBuffers,
    UnitRuns,
    bound_contributions,
    bound_few_groups,
    bound_one_group,
    bound_rows_per_unit,
    hash_salt,
)
from tacit.engines.code_loops import (
    add_looked_up,
    count_all_of_one,
    count_kept,
    count_kept_of_one,
    list_grouped,
    write_looked_up,
)
from tacit.engines.coded_columns import CodedColumn, CodedTables, UnitEnds
from tacit.engines.coded_rows import CodedRows, find_coded_rows
from tacit.engines.coded_sources import open_source
from tacit.engines.combinations import (
    Combinations,
    Names,
    count_combinations,
    join_small_sets,
    join_subsets,
    limit_combinations,
)
from tacit.engines.copy_tables import is_large
from tacit.engines.deadline import seconds_left
from tacit.engines.key_numbers import KeyNumbers, number_groups
from tacit.engines.totals import ValueCounts, compute_measure
from tacit.engines.weigh_groups import list_weights, weigh_groups
from tacit.query.conditions import named_columns
from tacit.query.nodes import Aggregation, ExactStatistic, Scalar
from tacit.query.types import Key

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

_BATCH_ROWS = 1 << 17
_WORKERS = 2
_FEW = 16  # groups that are gone through for each unit
_MOST_COUNTS = 1 << 22  # of combinations in groups
_MOST_TABLES = 16
_MOST_BYTES = 1 << 31  # of the columns of one question, at about two for each row and column


_Values = dict[Scalar, pa.Array]
_Evaluate = Callable[[Names, Sequence[Scalar]], "_Values | None"]


class _GroupTable(NamedTuple):
    """For each combination, what it adds to the number of the row's group, or that the row is in none."""

    combinations: Combinations
    numbers: NDArray[np.int32]


class _CountedColumns(NamedTuple):
    """Combinations that are counted in each group, and the value of each argument for each of them."""

    combinations: Combinations
    values: Mapping[Scalar, pa.Array]


class _Totals(NamedTuple):
    """What some rows add up to: units, weights and rows of each group, and the rows of each combination in it."""

    units: NDArray[np.int64]
    weights: NDArray[np.int64]
    rows: NDArray[np.int64]
    counts: list[NDArray[np.int32]]

    def merge(self, other: _Totals) -> None:
        """Add what other rows add up to."""
        np.add(self.units, other.units, out=self.units)
        np.add(self.weights, other.weights, out=self.weights)
        np.add(self.rows, other.rows, out=self.rows)
        for counts, more in zip(self.counts, other.counts, strict=True):
            np.add(counts, more, out=counts)


class _Batch(NamedTuple):
    """The rows from `start` to before `end`, and their units with all rows of each; None where each row is a unit."""

    start: int
    end: int
    runs: UnitRuns | None


def aggregate_codes(cursor: DuckDBPyConnection, node: Aggregation, coded: CodedTables) -> GroupedMeasures | None:
    """The cells of each group that keeps rows; None where the question is to be answered in another way."""
    read = find_coded_rows(node, coded.tables.layouts)
    if read is None or node.excluded:
        return None
    source = open_source(cursor, coded, read, has_unit=node.unit is not None)
    if source is None or not source.has_one_each():
        return None
    if node.unit is not None and not read.scalars and not any(m.function == "weight" for m in node.measures):
        return _count_rows(node, source.find_units())
    if not any(named_columns(scalar) for scalar in read.scalars):
        return None
    rows = source.count_rows()
    if not 0 < rows <= MAX_BATCH_ROWS:
        return None
    names = {name for scalar in read.scalars for name in named_columns(scalar)}
    if 2 * len(names) * rows > _MOST_BYTES:
        return None
    columns: dict[str, CodedColumn] = {}
    for name in sorted(names):
        found = source.find_column(name)
        if found is None:
            return None
        columns[name] = found
    units = None if node.unit is None else source.find_units()

    def evaluate(names: Names, scalars: Sequence[Scalar]) -> _Values | None:
        combinations = _combine(names, columns)
        found = {scalar: plain for scalar in scalars if (plain := combinations.compute_plain(scalar)) is not None}
        left = tuple(scalar for scalar in scalars if scalar not in found)
        if left:
            key, values = (read.table, names, left), [columns[name].values for name in sorted(names)]
            is_due = coded.evaluated.is_met(key) or is_large(rows)
            if not is_due or combinations.size > limit_combinations(rows, left):
                return None
            computed = coded.evaluated.find(key, values, lambda: combinations.evaluate(cursor, left))
            found |= zip(left, computed, strict=True)
        return found

    plan = _plan(node, read, columns, rows, evaluate)
    return None if plan is None else plan.run(list(_split(rows, units)))


def _count_rows(node: Aggregation, units: UnitEnds) -> GroupedMeasures:
    """The cells of a question that only counts the rows or the units of a whole table, from how many each unit has."""
    most = node.keep.rows if node.keep.total is None else min(node.keep.rows, node.keep.total)
    rows = int(np.minimum(units.sizes, most) @ units.units)
    return {(): tuple(len(units.who) if measure.function == "units" else rows for measure in node.measures)}


def _combine(names: Names, columns: Mapping[str, CodedColumn]) -> Combinations:
    return Combinations({name: columns[name] for name in sorted(names)})


def _plan(
    node: Aggregation, read: CodedRows, columns: Mapping[str, CodedColumn], rows: int, evaluate: _Evaluate
) -> _CodedAggregator | None:
    """What is looked up and counted; None where there are too many combinations or groups."""
    grouped = join_small_sets([named_columns(scalar) for scalar in (*read.conditions, *read.keys)], columns)
    counted = join_subsets(named_columns(argument) for argument in read.arguments.values())
    most, several = limit_combinations(rows, read.scalars), [names for names in grouped if len(names) > 1]
    if any(count_combinations(names, columns) > most for names in [*several, *counted]) or len(grouped) > _MOST_TABLES:
        return None
    if ((read.conditions or read.keys) and not grouped) or (read.arguments and not counted):
        return None  # scalars that name no column
    conditions, groups = _assign(read.conditions, grouped), _assign(read.keys, grouped)
    arguments = _assign(read.arguments.values(), counted)
    wanted = [*map(operator.add, conditions, groups), *arguments]
    found = [evaluate(names, scalars) for names, scalars in zip([*grouped, *counted], wanted, strict=True)]
    values = [each for each in found if each is not None]
    if len(values) < len(found):
        return None
    keys = KeyNumbers(node.keys)
    tables = []
    for names, needed, own, of in zip(grouped, conditions, groups, values[: len(grouped)], strict=True):
        is_in = np.ones(count_combinations(names, columns), np.bool_)
        for condition in needed:
            is_in &= of[condition].fill_null(False).to_numpy(zero_copy_only=False)
        tables.append((names, is_in, {i: keys.number(i, of[key]) for i, key in enumerate(read.keys) if key in own}))
    size = prod(len(values) for values in keys.values)
    if (
        not 0 < size <= _MOST_COUNTS
        or sum(size * count_combinations(names, columns) for names in counted) > _MOST_COUNTS
    ):
        return None
    group_tables = [
        _GroupTable(_combine(names, columns), number_groups(is_in, numbers, keys)) for names, is_in, numbers in tables
    ]
    columns_counted = [
        _CountedColumns(
            _combine(names, columns), {a: of[scalar] for a, scalar in read.arguments.items() if scalar in own}
        )
        for names, own, of in zip(counted, arguments, values[len(grouped) :], strict=True)
    ]
    summed = [m.argument for m in node.measures if m.function == "sum"]
    for each in columns_counted:
        if any(argument in summed and not pa.types.is_integer(v.type) for argument, v in each.values.items()):
            return None
    return _CodedAggregator(node, keys.values, group_tables, columns_counted)


def _assign(scalars: Iterable[Scalar], sets: Sequence[Names]) -> list[list[Scalar]]:
    """For each set of columns the scalars that go with it: the first that has all that they name."""
    assigned: list[list[Scalar]] = [[] for _ in sets]
    for scalar in scalars:
        names = named_columns(scalar)
        next(own for known, own in zip(sets, assigned, strict=True) if names <= known).append(scalar)
    return assigned


def _split(rows: int, units: UnitEnds | None) -> Iterator[_Batch]:
    """All rows, some at a time, those of a unit together."""
    if units is None:
        for start in range(0, rows, _BATCH_ROWS):
            yield _Batch(start, min(rows, start + _BATCH_ROWS), None)
        return
    who, ends = units.who, units.ends
    if not len(ends) or int(ends[-1]) != rows:
        raise RuntimeError("there are other rows than those of the units")
    first, start = 0, 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, start + _BATCH_ROWS, "right")))
        end = int(ends[last - 1])
        yield _Batch(start, end, UnitRuns(who[first:last], (ends[first:last] - start).astype(np.int32)))
        first, start = last, end


class _CodedAggregator:
    """What is computed of each batch of rows, and of all of them."""

    def __init__(
        self,
        node: Aggregation,
        keys: Sequence[Sequence[Key | None]],
        tables: Sequence[_GroupTable],
        counted: Sequence[_CountedColumns],
    ) -> None:
        self._node, self._keys, self._tables, self._counted = node, keys, tables, counted
        self._size = prod(map(len, keys))
        self._salt = hash_salt(node.salt)
        self._is_weighed = any(measure.function == "weight" for measure in node.measures)

    def run(self, batches: Sequence[_Batch]) -> GroupedMeasures:
        """The cells of each group. This thread and others take one batch after another; it looks at the time limit."""
        waiting, is_over, turn = iter(batches), threading.Event(), threading.Lock()

        def work(*, is_first: bool) -> _Totals:
            totals, buffers = self._none(), _Buffers.of(_BATCH_ROWS)
            while not is_over.is_set():
                if is_first:
                    seconds_left()
                with turn:
                    batch = next(waiting, None)
                if batch is None:
                    break
                buffers = buffers.for_rows(batch.end - batch.start)
                self._add(batch, totals, buffers)
            return totals

        if len(batches) == 1:
            return self._measure(work(is_first=True))
        with ThreadPoolExecutor(_WORKERS - 1) as pool:
            others = [pool.submit(work, is_first=False) for _ in range(_WORKERS - 1)]
            try:
                totals = work(is_first=True)
            finally:
                is_over.set()
            for other in others:
                totals.merge(other.result())
        return self._measure(totals)

    def _none(self) -> _Totals:
        sizes = [self._size * columns.combinations.size for columns in self._counted]
        units, weights, rows = np.zeros((3, self._size), np.int64)
        return _Totals(units, weights, rows, [np.zeros(size, np.int32) for size in sizes])

    def _add(self, batch: _Batch, totals: _Totals, buffers: _Buffers) -> None:
        """Choose the rows of each unit, and count the combinations of those that are kept."""
        start, end, runs = batch
        group = self._find_groups(batch, buffers)
        keep = self._node.keep
        if runs is not None and keep.total is not None:
            bound_rows_per_unit(runs, group, 0, self._size, keep.total, self._salt, group)
        if self._is_weighed:
            assert runs is not None
            weigh_groups(
                runs,
                group,
                0,
                list_weights(keep.groups),
                self._salt,
                buffers.bounding.found,
                totals.weights,
                totals.rows,
            )
            return
        kept = self._choose(batch, group, totals, buffers)
        for columns, counts in zip(self._counted, totals.counts, strict=True):
            codes = columns.combinations.encode(start, end, buffers.combined)
            if kept is None:
                count_all_of_one(codes, counts)
            elif self._size == 1:
                count_kept_of_one(kept, codes, counts)
            else:
                count_kept(kept, group, codes, columns.combinations.size, counts)

    def _find_groups(self, batch: _Batch, buffers: _Buffers) -> NDArray[np.int32]:
        """The number of each row's group; below zero where it is in none."""
        group = buffers.group[: batch.end - batch.start]
        if not self._tables and (self._node.keep.total is not None or self._is_weighed):
            group[:] = 0
        for at, table in enumerate(self._tables):
            codes = table.combinations.encode(batch.start, batch.end, buffers.combined)
            (add_looked_up if at else write_looked_up)(codes, table.numbers, group)
        return group

    def _choose(
        self, batch: _Batch, group: NDArray[np.int32], totals: _Totals, buffers: _Buffers
    ) -> NDArray[np.int32] | None:
        """The rows that are kept; None where all are, and in one group."""
        keep, runs, bounding = self._node.keep, batch.runs, buffers.bounding
        if runs is None:
            if not self._tables:
                totals.rows[0] += batch.end - batch.start
                return None
            return bounding.kept[: list_grouped(group, bounding.kept, totals.rows)]
        if not self._tables and keep.total is None:
            kept = bounding.kept if self._counted else bounding.kept[:0]
            many = bound_one_group(runs, keep.rows, self._salt, kept, totals.units, totals.rows)
            return None if many < 0 else kept[:many]
        if self._size <= min(keep.groups, _FEW):
            many = bound_few_groups(runs, group, 0, keep.rows, self._salt, bounding.kept, totals.units, totals.rows)
        else:
            many = bound_contributions(
                runs, group, 0, keep.groups, keep.rows, self._salt, bounding, totals.units, totals.rows
            )
        return bounding.kept[:many]

    def _measure(self, totals: _Totals) -> GroupedMeasures:
        """The cells of each group, in the order of the measures."""
        shown = np.flatnonzero(totals.rows) if self._node.keys else np.arange(1)
        columns = [self._cells(measure, totals, shown) for measure in self._node.measures]
        places = np.unravel_index(shown, [len(values) for values in self._keys]) if self._keys else []
        keys = [[values[i] for i in at.tolist()] for values, at in zip(self._keys, places, strict=True)]
        groups: list[tuple[Key | None, ...]] = list(zip(*keys, strict=True)) if keys else [()]
        return dict(zip(groups, zip(*columns, strict=True), strict=True))

    def _cells(self, measure: ExactStatistic, totals: _Totals, shown: NDArray[np.int64]) -> Sequence[Any]:
        """A measure of each group."""
        match measure:
            case ExactStatistic("units", _):
                return list((totals.rows if self._node.unit is None else totals.units)[shown].tolist())
            case ExactStatistic("weight", _):
                return list(totals.weights[shown].tolist())
            case ExactStatistic("count", None):
                return list(totals.rows[shown].tolist())
        argument = measure.argument
        assert argument is not None
        at = next(i for i, columns in enumerate(self._counted) if argument in columns.values)
        values = self._counted[at].values[argument]
        counts = totals.counts[at].reshape(self._size, -1)[shown]
        match measure.function:
            case "count":
                return list((counts @ values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)).tolist())
            case "sum":
                return add_exactly(counts, values.fill_null(0).to_numpy().astype(np.int64))
        lists, (rows, combinations) = ValueCounts(), np.nonzero(counts)
        lists.add(shown[rows], values.take(pa.array(combinations)), counts[rows, combinations].astype(np.int64))
        return [compute_measure(measure.function, found) for found in lists.of(shown)]


def add_exactly(counts: NDArray[np.int32], values: NDArray[np.int64]) -> list[int]:
    """The sum of all values in each row of `counts`, which says how often each is there.

    **Theorem.** No addition leaves 64 bits. Proof: the counts of a row are fewer than 2^31 together. Where that times
    the largest value is below 2^63, so is every sum. Otherwise the lower halves of the values are added up, less than
    2^32 each, and apart from them the upper halves, at most 2^31.
    """
    largest = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    if largest < 1 << 32:
        return list((counts @ values).tolist())
    lows, highs = counts @ (values & 0xFFFFFFFF), counts @ (values >> 32)
    return [low + (high << 32) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]


class _Buffers(NamedTuple):
    """What is written on for each batch of rows, the next time again."""

    bounding: BoundingBuffers
    group: NDArray[np.int32]
    combined: NDArray[np.uint32]

    @classmethod
    def of(cls, rows: int) -> _Buffers:
        """Buffers for so many rows."""
        return cls(BoundingBuffers.of(rows), np.empty(rows, np.int32), np.empty(rows, np.uint32))

    def for_rows(self, rows: int) -> _Buffers:
        """These, or larger ones where they are too small."""
        return self if len(self.group) >= rows else _Buffers.of(rows)
