"""Bounded aggregation over a copy: Arrow batches from DuckDB, the rows of each unit chosen by a compiled loop.

Rows come in the order of their units, a stretch at a time, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.engines import group_codes, sql_statements
from tacit.engines.base import GroupedMeasures
from tacit.engines.bound_contributions import (
    MAX_BATCH_ROWS,
    BoundingBuffers,
    add_by_group,
    bound_contributions,
    bound_one_group,
    bound_rows_per_unit,
    hash_salt,
)
from tacit.engines.copy_tables import unit_to_integer
from tacit.engines.layout import UNIT_COLUMN, CopyScan
from tacit.engines.scalars import quote_name, write_scalar
from tacit.engines.totals import GroupTotals
from tacit.errors import DataError, ErrorCode
from tacit.query.nodes import Aggregation, ExactStatistic, Scalar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    Coded = tuple[NDArray[Any], int, int]

_BATCH = 1 << 20
_BATCH_ROWS = 1 << 17  # rows of a batch, at most, as DuckDB has them in groups
_WORKERS = 2
_MAX_HELD_SLICES = 4  # parts of batches that wait for others; each holds its batch in memory


@dataclass(frozen=True)
class UnitOrderedRows:
    """Rows in the order of their units, as a statement: the unit as an integer, the keys, and the arguments."""

    statement: str
    keys: list[group_codes.KeyEncoder]
    whole: list[Scalar]
    listed: list[Scalar]


def read_straight(
    node: Aggregation,
    scan: CopyScan,
    sources: sql_statements.TableExpressions,
    texts: Mapping[str, Sequence[str]],
) -> UnitOrderedRows:
    """The rows of a table that is sorted by unit, as they lie. `texts` are those of each numbered column, in order."""
    keys = [
        group_codes.make_key_encoder(key, texts[scan.texts[i]] if i in scan.texts else None)
        for i, key in enumerate(scan.keys)
    ]
    whole, listed = _arguments(node)
    results = [quote_name(UNIT_COLUMN), *(coder.sql for coder in keys)]
    results += [write_scalar(scan.arguments[argument]) for argument in [*whole, *listed]]
    where = "" if scan.where is None else f" WHERE {write_scalar(scan.where)}"
    rows = sql_statements.write_rows(scan.source, sources)
    return UnitOrderedRows(f"SELECT {_number(results)} FROM ({rows}){where}", keys, whole, listed)


def read_sorted(
    node: Aggregation, sources: sql_statements.TableExpressions, type_of: Callable[[str], str]
) -> UnitOrderedRows:
    """Any rows, put in the order of their units and then of all that is used of them.

    **Theorem.** The rows of a unit then come in an order that follows from these rows alone. Proof: rows that tie are
    equal in the unit, the keys and the arguments, and nothing else of a row is used.
    """
    assert node.unit is not None
    rows, unit = sql_statements.write_rows(node.source, sources), quote_name(node.unit)
    keys = [group_codes.make_key_encoder(key, None) for key in node.keys]
    whole, listed = _arguments(node)
    results = [unit_to_integer(unit, type_of(f"SELECT {unit} FROM ({rows})")), *(coder.sql for coder in keys)]
    results += [write_scalar(argument) for argument in [*whole, *listed]]
    where = f"{unit} IS NOT NULL" + ("" if node.where is None else f" AND ({write_scalar(node.where)})")
    order = ", ".join(f"x{i}" for i in range(len(results)))
    statement = f"SELECT {_number(results)} FROM ({rows}) WHERE {where} ORDER BY {order}"
    return UnitOrderedRows(statement, keys, whole, listed)


def aggregate_rows(
    cursor: DuckDBPyConnection, node: Aggregation, rows: UnitOrderedRows, *, is_large: bool
) -> GroupedMeasures:
    """The cells of each group that keeps rows.

    Rows of a table that is not large are added up by this thread alone: starting others would take longer.
    """
    summed = {measure.argument for measure in node.measures if measure.function == "sum"}
    plan = _BatchAggregator(node, rows.keys, rows.whole, rows.listed, summed)
    stretches = _split_at_unit_boundaries(cursor.sql(rows.statement).to_arrow_reader(_BATCH))
    return plan.groups(_aggregate_in_parallel(plan, stretches, _WORKERS if is_large else 1))


def _arguments(node: Aggregation) -> tuple[list[Scalar], list[Scalar]]:
    """What is added up as a whole, and what is listed value by value."""
    listed = [m.argument for m in node.measures if m.function in {"histogram", "distinct"}]
    whole = [m.argument for m in node.measures if m.argument is not None and m.argument not in listed]
    return list(dict.fromkeys(whole)), list(dict.fromkeys(argument for argument in listed if argument is not None))


def _number(results: Iterable[str]) -> str:
    return ", ".join(f"{text} AS x{i}" for i, text in enumerate(results))


def _aggregate_in_parallel(
    plan: _BatchAggregator, stretches: Generator[pa.RecordBatch], workers: int
) -> list[GroupTotals]:
    """The totals of each worker. They take turns to fetch a stretch, and add it up while others fetch."""
    turn = Lock()

    def work() -> GroupTotals:
        totals, buffers = plan.none(), BoundingBuffers.of(_BATCH_ROWS)
        while True:
            with turn:
                stretch = next(stretches, None)
                if stretch is None:
                    return totals
                coded = None if plan.combined.is_fixed else plan.encode(stretch)
            buffers = buffers.for_rows(stretch.num_rows)
            plan.add(stretch, coded or plan.encode(stretch), totals, buffers)

    if workers == 1:
        return [work()]
    with ThreadPoolExecutor(workers) as pool:
        try:
            return [done.result() for done in [pool.submit(work) for _ in range(workers)]]
        except BaseException:
            with turn:
                stretches.close()  # so that the others find no more
            raise


def _split_at_unit_boundaries(batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
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
            if len(aside) > _MAX_HELD_SLICES:
                yield _concatenate(aside)
                aside = []
            if first < last:
                yield batch.slice(first, last - first)
            aside.append(batch.slice(last))
    if aside:
        yield _concatenate(aside)


def _concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if sum(batch.num_rows for batch in batches) > MAX_BATCH_ROWS:
        raise DataError(ErrorCode.DATA, "a unit has more than two billion rows", fix="leave it out of the data")
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


@dataclass
class _BatchAggregator:
    """What is computed of each stretch of rows."""

    node: Aggregation
    coders: list[group_codes.KeyEncoder]
    whole: list[Scalar]
    listed: list[Scalar]
    summed: set[Scalar | None]
    combined: group_codes.GroupEncoder = field(init=False)

    def __post_init__(self) -> None:
        self.combined = group_codes.GroupEncoder(self.coders)

    def encode(self, batch: pa.RecordBatch) -> Coded:
        """The group of each row, the number of the first group, and how many are known by now.

        One caller at a time, unless the numbers of groups are fixed: others are numbered as they are met.
        """
        columns = [batch.column(i + 1) for i in range(len(self.coders))]
        return *self.combined.encode(columns, batch.num_rows), self.combined.size

    def add(self, batch: pa.RecordBatch, coded: Coded, totals: GroupTotals, buffers: BoundingBuffers) -> None:
        """Choose the rows of each unit and add them up."""
        code, first, size = coded
        totals.grow(size)
        unit, keep, key = batch.column(0).to_numpy(), self.node.keep, hash_salt(self.node.salt)
        if keep.total is not None:
            left = np.empty(len(unit), np.int32)
            bound_rows_per_unit(unit, code, first, size, keep.total, key, left)
            code, first = left, 0
        if not self.coders and keep.total is None:
            kept = buffers.kept if self.whole or self.listed else buffers.kept[:0]
            many = bound_one_group(unit, keep.rows, key, kept, totals.units, totals.rows)
        else:
            many = bound_contributions(
                unit, code, first, keep.groups, keep.rows, key, buffers, totals.units, totals.rows
            )
        if many < 0:
            raise RuntimeError("rows are not in the order of their units")
        kept = buffers.kept[:many]
        at = 1 + len(self.coders)
        for argument, column, nulls, sums in zip(
            self.whole, batch.columns[at:], totals.nulls, totals.sums, strict=False
        ):
            if column.null_count:
                add_by_group(code, first, kept, column.is_null().to_numpy(zero_copy_only=False), nulls)
            if argument in self.summed:
                sums.add(code, first, kept, (column.fill_null(0) if column.null_count else column).to_numpy())
        at += len(self.whole)
        for column, lists in zip(batch.columns[at:], totals.lists, strict=True):
            lists.add(code[kept].astype(np.int64) - first, column.take(pa.array(kept)))

    def none(self) -> GroupTotals:
        """Totals of no rows."""
        return GroupTotals.none(len(self.whole), len(self.listed))

    def groups(self, parts: Iterable[GroupTotals]) -> GroupedMeasures:
        """The cells of each group, in the order of the measures."""
        whole = self.none()
        whole.grow(self.combined.size)
        for part in parts:
            whole.merge(part)
        shown = np.flatnonzero(whole.rows) if self.node.keys else np.arange(1)
        columns = [self._cells(measure, whole, shown) for measure in self.node.measures]
        return dict(zip(self.combined.keys(shown), zip(*columns, strict=True), strict=True))

    def _cells(self, measure: ExactStatistic, totals: GroupTotals, shown: NDArray[np.int64]) -> Sequence[Any]:
        """A measure of each group."""
        rows: list[int] = totals.rows[shown].tolist()
        match measure:
            case ExactStatistic("units", _):
                return list(totals.units[shown].tolist())
            case ExactStatistic("count", None):
                return rows
            case ExactStatistic("count", argument) if argument in self.whole:
                nulls = totals.nulls[self.whole.index(argument)][shown].tolist()
                return [all_ - none for all_, none in zip(rows, nulls, strict=True)]
            case ExactStatistic("sum", argument) if argument in self.whole:
                return totals.sums[self.whole.index(argument)].of(shown)
        assert measure.argument is not None
        lists = totals.lists[self.listed.index(measure.argument)].of(shown)
        return [_compute_measure(measure.function, values) for values in lists]


def _compute_measure(function: str, values: dict[Any, int]) -> Any:
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
