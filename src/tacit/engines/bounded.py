"""Bounded aggregation over a prepared copy: Arrow batches from DuckDB, the rows of each unit chosen by a compiled loop.

Rows come in the order of their units, a stretch at a time, so memory does not grow with the table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.engines import codes, sql
from tacit.engines.base import Groups
from tacit.engines.choose import add, choose, cut, key_of
from tacit.engines.layout import UNIT, Straight
from tacit.engines.scalars import name, scalar
from tacit.query.nodes import Aggregation, Scalar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_BATCH = 1 << 20
_WORKERS = 2
_IN_HAND = 3  # stretches of rows in memory at a time
_MOST_LISTED = 1 << 22
_SMALL = 1 << 42  # of numbers below it, a stretch of a few million adds up within 64 bits


def run(
    cursor: DuckDBPyConnection,
    node: Aggregation,
    straight: Straight,
    sources: sql.Sources,
    texts: Mapping[str, Sequence[str]],
) -> Groups:
    """The cells of each group that keeps rows. `texts` are the texts of each numbered column, in order."""
    listed = [m.argument for m in node.measures if m.function in {"histogram", "distinct"}]
    whole = [m.argument for m in node.measures if m.argument is not None and m.argument not in listed]
    plan = _Plan(
        node,
        [
            codes.coder(key, texts[straight.texts[i]] if i in straight.texts else None)
            for i, key in enumerate(straight.keys)
        ],
        list(dict.fromkeys(whole)),
        list(dict.fromkeys(argument for argument in listed if argument is not None)),
        {m.argument for m in node.measures if m.function == "sum"},
    )
    results = [name(UNIT), *(coder.sql for coder in plan.coders)]
    results += [scalar(straight.arguments[argument]) for argument in [*plan.whole, *plan.listed]]
    columns = ", ".join(f"{text} AS x{i}" for i, text in enumerate(results))
    where = "" if straight.where is None else f" WHERE {scalar(straight.where)}"
    reader = cursor.sql(f"SELECT {columns} FROM ({sql.rows_of(straight.source, sources)}){where}").to_arrow_reader(
        _BATCH
    )
    totals = _Totals(plan)
    waiting: deque[Future[_Part]] = deque()
    with ThreadPoolExecutor(_WORKERS) as workers:
        for stretch in _by_unit(reader):
            waiting.append(workers.submit(plan.part, stretch, plan.encode(stretch)))
            while len(waiting) >= _IN_HAND:
                totals.add(waiting.popleft().result())
        while waiting:
            totals.add(waiting.popleft().result())
    return totals.groups()


def _by_unit(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in stretches that hold all rows of each of their units.

    A unit that two batches share is a stretch of its own, so that no other row is copied.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        unit = batch.column(0).to_numpy()
        first = int(np.searchsorted(unit, held[0].column(0)[0].as_py(), "right")) if held else 0
        last = int(np.searchsorted(unit, unit[-1]))
        if first:
            held.append(batch.slice(0, first))
        if first < batch.num_rows:
            if held:
                yield pa.Table.from_batches(held).combine_chunks().to_batches()[0]
            if first < last:
                yield batch.slice(first, last - first)
            held = [batch.slice(last)]
    if held:
        yield pa.Table.from_batches(held).combine_chunks().to_batches()[0]


@dataclass
class _Part:
    """What a stretch adds. The sum of an argument is low + 2^32 high."""

    units: Numbers
    rows: Numbers
    counts: list[Numbers]
    low: list[Numbers]
    high: list[Numbers]
    lists: list[pa.Table]


@dataclass
class _Plan:
    """What is computed of each stretch of rows."""

    node: Aggregation
    coders: list[codes.Coder]
    whole: list[Scalar]
    listed: list[Scalar]
    summed: set[Scalar | None]
    combined: codes.Combined = field(init=False)

    def __post_init__(self) -> None:
        self.combined = codes.Combined(self.coders)

    def encode(self, batch: pa.RecordBatch) -> tuple[NDArray[Any], int, int]:
        """The group of each row, the number of the first group, and how many are known by now.

        Groups are numbered as they are met: one caller at a time.
        """
        columns = [batch.column(i + 1) for i in range(len(self.coders))]
        return *self.combined.encode(columns, batch.num_rows), self.combined.size

    def part(self, batch: pa.RecordBatch, encoded: tuple[NDArray[Any], int, int]) -> _Part:
        """Choose the rows of each unit and add them up."""
        code, first, size = encoded
        unit = batch.column(0).to_numpy()
        kept = np.empty(len(unit), np.bool_)
        units, rows = np.zeros(size, np.int64), np.zeros(size, np.int64)
        keep, key = self.node.keep, key_of(self.node.salt)
        if keep.total is not None:
            left = np.empty(len(unit), np.int32)
            cut(unit, code, first, size, keep.total, key, left)
            code, first = left, 0
        if not choose(unit, code, first, keep.groups, keep.rows, key, kept, units, rows):
            raise RuntimeError("rows are not in the order of their units")
        part = _Part(units, rows, [], [], [], [])
        at = 1 + len(self.coders)
        for position, argument in enumerate(self.whole):
            column, there = batch.column(at + position), kept
            counts = rows
            if column.null_count:
                there = kept & column.is_valid().to_numpy(zero_copy_only=False)
                counts = np.zeros(size, np.int64)
                add(code, first, there, there, counts)
            part.counts.append(counts)
            low, high = np.zeros(size, np.int64), np.zeros(size, np.int64)
            if argument in self.summed:
                _sum_up(code, first, there, column, low, high)
            part.low.append(low)
            part.high.append(high)
        at += len(self.whole)
        for position in range(len(self.listed)):
            values = pa.table(
                {
                    "code": code[kept].astype(np.int64) - first,
                    "value": batch.column(at + position).filter(pa.array(kept)),
                }
            )
            part.lists.append(_counted(values.append_column("n", pa.array(np.ones(values.num_rows, np.int64)))))
        return part


def _sum_up(
    code: NDArray[Any], first: int, kept: NDArray[np.bool_], column: pa.Array, low: Numbers, high: Numbers
) -> None:
    """The exact sum in each group. Terms that could overflow are added up in two halves."""
    values = (column.fill_null(0) if column.null_count else column).to_numpy()
    if values.dtype != np.int64 or (int(values.min()) > -_SMALL and int(values.max()) < _SMALL):
        add(code, first, kept, values, low)
    else:
        add(code, first, kept, values & 0xFFFFFFFF, low)
        add(code, first, kept, values >> 32, high)


def _counted(values: pa.Table) -> pa.Table:
    """How many rows have each value in each group; NULL is none."""
    values = values.filter(values["value"].is_valid())
    return values.group_by(["code", "value"]).aggregate([("n", "sum")]).rename_columns(["code", "value", "n"])


class _Totals:
    """The sum of all parts."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.parts: _Part | None = None

    def add(self, part: _Part) -> None:
        """One more stretch; later ones may know more groups."""
        if self.parts is None:
            self.parts = part
            return
        old = self.parts
        old.units, old.rows = _sum(old.units, part.units), _sum(old.rows, part.rows)
        for i in range(len(part.counts)):
            old.counts[i] = _sum(old.counts[i], part.counts[i])
            low = _sum(old.low[i], part.low[i])
            old.low[i] = low & 0xFFFFFFFF
            old.high[i] = _sum(_sum(old.high[i], part.high[i]), low >> 32)
        for i, values in enumerate(part.lists):
            old.lists[i] = pa.concat_tables([old.lists[i], values])
            if old.lists[i].num_rows > _MOST_LISTED:
                old.lists[i] = _counted(old.lists[i])

    def groups(self) -> Groups:
        """The cells of each group, in the order of the measures."""
        plan, part, node = self.plan, self.parts, self.plan.node
        empty = not node.keys
        if part is None:
            cells: tuple[Any, ...] = tuple({} if m.function == "histogram" else 0 for m in node.measures)
            return {(): cells} if empty else {}
        shown = np.flatnonzero(part.rows) if not empty else np.arange(1)
        columns: list[Mapping[int, Any]] = []
        for measure in node.measures:
            match measure.function:
                case "units":
                    columns.append(_chosen(shown, part.units))
                case "count" if measure.argument is None:
                    columns.append(_chosen(shown, part.rows))
                case "count" if measure.argument in plan.whole:
                    columns.append(_chosen(shown, part.counts[plan.whole.index(measure.argument)]))
                case "sum" if measure.argument in plan.whole:
                    i = plan.whole.index(measure.argument)
                    low, high = _chosen(shown, part.low[i]), _chosen(shown, part.high[i])
                    columns.append({code: low[code] + (high[code] << 32) for code in low})
                case function:
                    assert measure.argument is not None
                    columns.append(_of_list(part.lists[plan.listed.index(measure.argument)], function, shown))
        keys = plan.combined.keys(shown)
        return {key: tuple(column[code] for column in columns) for key, code in zip(keys, shown.tolist(), strict=True)}


def _of_list(values: pa.Table, function: str, shown: NDArray[np.int64]) -> Mapping[int, Any]:
    """A measure of the values that occur in each group, and how often each does."""
    values = _counted(values)
    lists: dict[int, dict[Any, int]] = {code: {} for code in shown.tolist()}
    for code, value, count in zip(*(values[i].to_pylist() for i in range(3)), strict=True):
        lists[code][value] = count
    match function:
        case "histogram":
            return lists
        case "distinct":
            return {code: len(found) for code, found in lists.items()}
        case "count":
            return {code: sum(found.values()) for code, found in lists.items()}
        case "sum":
            return {code: sum(value * count for value, count in found.items()) for code, found in lists.items()}
    raise AssertionError(f"no cell for {function}")


def _chosen(shown: NDArray[np.int64], numbers: Numbers) -> dict[int, int]:
    return dict(zip(shown.tolist(), numbers[shown].tolist(), strict=True))


def _sum(one: Numbers, other: Numbers) -> Numbers:
    """Number by number; the shorter one goes on with zeros."""
    if len(one) < len(other):
        one, other = other, one
    both = one.copy()
    both[: len(other)] += other
    return both
