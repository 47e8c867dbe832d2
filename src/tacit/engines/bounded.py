"""Bounded aggregation over a prepared copy: Arrow batches from DuckDB, the rows of each unit chosen by a compiled loop.

Rows come in the order of their units, a stretch at a time, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.engines import codes, sql
from tacit.engines.base import Groups
from tacit.engines.choose import MOST, Desk, add, choose, cut, key_of
from tacit.engines.layout import UNIT, Straight
from tacit.engines.scalars import name, scalar
from tacit.engines.totals import Totals
from tacit.errors import Code, DataError
from tacit.query.nodes import Aggregation, Measure, Scalar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    Coded = tuple[NDArray[Any], int, int]

_BATCH = 1 << 20
_USUAL = 1 << 17  # rows of a batch, at most, as DuckDB has them in groups
_WORKERS = 2
_ASIDE = 4  # parts of batches that wait for others; each holds its batch in memory


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
    statement = f"SELECT {columns} FROM ({sql.rows_of(straight.source, sources)}){where}"
    return plan.groups(_added_up(plan, _by_unit(cursor.sql(statement).to_arrow_reader(_BATCH))))


def _added_up(plan: _Plan, stretches: Generator[pa.RecordBatch]) -> list[Totals]:
    """The totals of each worker. They take turns to fetch a stretch, and add it up while others fetch."""
    turn = Lock()

    def work() -> Totals:
        totals, desk = plan.none(), Desk.of(_USUAL)
        while True:
            with turn:
                stretch = next(stretches, None)
                if stretch is None:
                    return totals
                coded = None if plan.combined.is_fixed else plan.encode(stretch)
            desk = desk.for_rows(stretch.num_rows)
            plan.add(stretch, coded or plan.encode(stretch), totals, desk)

    with ThreadPoolExecutor(_WORKERS) as workers:
        try:
            return [done.result() for done in [workers.submit(work) for _ in range(_WORKERS)]]
        except BaseException:
            with turn:
                stretches.close()  # so that the others find no more
            raise


def _by_unit(batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
    """The same rows in stretches that hold all rows of each of their units.

    The first and the last unit of a batch may have more rows in the batches beside it. So these are put aside, and
    those of some batches are a stretch of their own. No other row is copied.

    **Theorem.** Where each stretch is in the order of its units, so are all batches, and a unit is in one stretch.
    Proof: what is aside has the first and last units of all batches, in order: from batch to batch units do not become
    less, and the parts cut off hold one unit each. Where a search has cut, it has looked at the units at both sides,
    and those of the middle are more than the first one, and less than the last.
    """
    aside: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        unit = batch.column(0).to_numpy()
        first = int(np.searchsorted(unit, unit[0], "right"))
        last = first + int(np.searchsorted(unit[first:], unit[-1]))
        aside.append(batch.slice(0, first))
        if first < batch.num_rows:
            if len(aside) > _ASIDE:
                yield _joined(aside)
                aside = []
            if first < last:
                yield batch.slice(first, last - first)
            aside.append(batch.slice(last))
    if aside:
        yield _joined(aside)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if sum(batch.num_rows for batch in batches) > MOST:
        raise DataError(Code.DATA, "a unit has more than two billion rows", fix="leave it out of the data")
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


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

    def encode(self, batch: pa.RecordBatch) -> Coded:
        """The group of each row, the number of the first group, and how many are known by now.

        One caller at a time, unless the numbers of groups are fixed: others are numbered as they are met.
        """
        columns = [batch.column(i + 1) for i in range(len(self.coders))]
        return *self.combined.encode(columns, batch.num_rows), self.combined.size

    def add(self, batch: pa.RecordBatch, coded: Coded, totals: Totals, desk: Desk) -> None:
        """Choose the rows of each unit and add them up."""
        code, first, size = coded
        totals.grow(size)
        unit, keep, key = batch.column(0).to_numpy(), self.node.keep, key_of(self.node.salt)
        if keep.total is not None:
            left = np.empty(len(unit), np.int32)
            cut(unit, code, first, size, keep.total, key, left)
            code, first = left, 0
        many = choose(unit, code, first, keep.groups, keep.rows, key, desk, totals.units, totals.rows)
        if many < 0:
            raise RuntimeError("rows are not in the order of their units")
        kept = desk.kept[:many]
        at = 1 + len(self.coders)
        for argument, column, nulls, sums in zip(
            self.whole, batch.columns[at:], totals.nulls, totals.sums, strict=False
        ):
            if column.null_count:
                add(code, first, kept, column.is_null().to_numpy(zero_copy_only=False), nulls)
            if argument in self.summed:
                sums.add(code, first, kept, (column.fill_null(0) if column.null_count else column).to_numpy())
        at += len(self.whole)
        for column, lists in zip(batch.columns[at:], totals.lists, strict=True):
            lists.add(code[kept].astype(np.int64) - first, column.take(pa.array(kept)))

    def none(self) -> Totals:
        """Totals of no rows."""
        return Totals.none(len(self.whole), len(self.listed))

    def groups(self, parts: Iterable[Totals]) -> Groups:
        """The cells of each group, in the order of the measures."""
        whole = self.none()
        whole.grow(self.combined.size)
        for part in parts:
            whole.merge(part)
        shown = np.flatnonzero(whole.rows) if self.node.keys else np.arange(1)
        columns = [self._cells(measure, whole, shown) for measure in self.node.measures]
        return dict(zip(self.combined.keys(shown), zip(*columns, strict=True), strict=True))

    def _cells(self, measure: Measure, totals: Totals, shown: NDArray[np.int64]) -> Sequence[Any]:
        """A measure of each group."""
        rows: list[int] = totals.rows[shown].tolist()
        match measure:
            case Measure("units", _):
                return list(totals.units[shown].tolist())
            case Measure("count", None):
                return rows
            case Measure("count", argument) if argument in self.whole:
                nulls = totals.nulls[self.whole.index(argument)][shown].tolist()
                return [all_ - none for all_, none in zip(rows, nulls, strict=True)]
            case Measure("sum", argument) if argument in self.whole:
                return totals.sums[self.whole.index(argument)].of(shown)
        assert measure.argument is not None
        lists = totals.lists[self.listed.index(measure.argument)].of(shown)
        return [_of_list(measure.function, values) for values in lists]


def _of_list(function: str, values: dict[Any, int]) -> Any:
    """A measure of the values that occur in a group, and how often each does."""
    match function:
        case "histogram":
            return values
        case "distinct":
            return len(values)
        case "count":
            return sum(values.values())
        case "sum":
            return sum(value * count for value, count in values.items())
    raise AssertionError(f"no cell for {function}")
