"""Bounded aggregation over coded columns: what a question computes of a row is computed once for each of the distinct
values that the row may have, and looked up for each row.

**Theorem.** The cells are those of `engines/aggregate_copy.py`, integer by integer. Proof. Every scalar of a question
is a function of the columns that it names, evaluated by the same SQL over every combination of their distinct values,
so what is looked up for a row is what is computed from it. Rows come in the order of the copy, those that WHERE leaves
out as rows in no group. The loops of `engines/bound_contributions.py` look at the order of a unit's rows, at which of
them are in one group, and at the unit's own number, and at nothing else, so they keep the same rows. Of the rows that
are kept in a group those of each combination are counted, and a measure follows from these counts by integers that do
not overflow; of a column with more values, what is looked up for each row is added up, which does not overflow either
(`engines/plan_codes.py`). Where each row is a unit, all rows are kept, as by SQL.

**Rule.** Whether a question is answered so depends on the number of rows, and on how many distinct values its columns
have. It changes how long a question takes, and nothing that is released.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tacit.engines.base import GroupedMeasures
from tacit.engines.bound_contributions import (
    MAX_BATCH_ROWS,
    BoundingBuffers,
    UnitRuns,
    add_by_group,
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
from tacit.engines.coded_rows import find_coded_rows
from tacit.engines.coded_sources import open_source
from tacit.engines.combinations import Names, limit_combinations
from tacit.engines.copy_tables import is_large
from tacit.engines.deadline import seconds_left
from tacit.engines.plan_codes import CodedPlan, Values, combine, plan_codes
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
_MOST_BYTES = 1 << 31  # of the columns of one question, at about two for each row and column


class _Totals(NamedTuple):
    """What some rows add up to: units, weights and rows of each group, the rows of each combination in it, and sums."""

    units: NDArray[np.int64]
    weights: NDArray[np.int64]
    rows: NDArray[np.int64]
    counts: list[NDArray[np.int32]]
    sums: list[NDArray[np.int64]]

    def merge(self, other: _Totals) -> None:
        """Add what other rows add up to."""
        np.add(self.units, other.units, out=self.units)
        np.add(self.weights, other.weights, out=self.weights)
        np.add(self.rows, other.rows, out=self.rows)
        for counts, more in zip(self.counts, other.counts, strict=True):
            np.add(counts, more, out=counts)
        for sums, others in zip(self.sums, other.sums, strict=True):
            np.add(sums, others, out=sums)


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

    def evaluate(names: Names, scalars: Sequence[Scalar]) -> Values | None:
        combinations = combine(names, columns)
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

    plan = plan_codes(node, read, columns, rows, evaluate)
    return None if plan is None else _CodedAggregator(node, plan).run(list(_split(rows, units)))


def _count_rows(node: Aggregation, units: UnitEnds) -> GroupedMeasures:
    """The cells of a question that only counts the rows or the units of a whole table, from how many each unit has."""
    most = node.keep.rows if node.keep.total is None else min(node.keep.rows, node.keep.total)
    rows = int(np.minimum(units.sizes, most) @ units.units)
    return {(): tuple(len(units.who) if measure.function == "units" else rows for measure in node.measures)}


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

    def __init__(self, node: Aggregation, plan: CodedPlan) -> None:
        self._node, self._plan, self._size = node, plan, plan.size
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
        sizes = [self._size * columns.combinations.size for columns in self._plan.counted]
        units, weights, rows = np.zeros((3, self._size), np.int64)
        sums = [np.zeros(self._size, np.int64) for _ in self._plan.added]
        return _Totals(units, weights, rows, [np.zeros(size, np.int32) for size in sizes], sums)

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
        for columns, counts in zip(self._plan.counted, totals.counts, strict=True):
            codes = columns.combinations.encode(start, end, buffers.combined)
            if kept is None:
                count_all_of_one(codes, counts)
            elif self._size == 1:
                count_kept_of_one(kept, codes, counts)
            else:
                count_kept(kept, group, codes, columns.combinations.size, counts)
        for addends, sums in zip(self._plan.added.values(), totals.sums, strict=True):
            values = addends.values[addends.combinations.encode(start, end, buffers.combined)]
            if kept is None or self._size == 1:
                sums[0] += values.sum() if kept is None else values[kept].sum()
            else:
                add_by_group(group, 0, kept, values, sums)

    def _find_groups(self, batch: _Batch, buffers: _Buffers) -> NDArray[np.int32]:
        """The number of each row's group; below zero where it is in none."""
        group = buffers.group[: batch.end - batch.start]
        if not self._plan.tables and (self._node.keep.total is not None or self._is_weighed):
            group[:] = 0
        for at, table in enumerate(self._plan.tables):
            codes = table.combinations.encode(batch.start, batch.end, buffers.combined)
            (add_looked_up if at else write_looked_up)(codes, table.numbers, group)
        return group

    def _choose(
        self, batch: _Batch, group: NDArray[np.int32], totals: _Totals, buffers: _Buffers
    ) -> NDArray[np.int32] | None:
        """The rows that are kept; None where all are, and in one group."""
        keep, runs, bounding = self._node.keep, batch.runs, buffers.bounding
        if runs is None:
            if not self._plan.tables:
                totals.rows[0] += batch.end - batch.start
                return None
            return bounding.kept[: list_grouped(group, bounding.kept, totals.rows)]
        if not self._plan.tables and keep.total is None:
            kept = bounding.kept if self._plan.counted or self._plan.added else bounding.kept[:0]
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
        places = np.unravel_index(shown, [len(values) for values in self._plan.keys]) if self._plan.keys else []
        keys = [[values[i] for i in at.tolist()] for values, at in zip(self._plan.keys, places, strict=True)]
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
        if measure in self._plan.added:
            return list(totals.sums[list(self._plan.added).index(measure)][shown].tolist())
        argument = measure.argument
        assert argument is not None
        at = next(i for i, columns in enumerate(self._plan.counted) if argument in columns.values)
        values = self._plan.counted[at].values[argument]
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
