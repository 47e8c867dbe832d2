"""Rows in the order of their units, cut into stretches of whole units, which workers add up side by side.

Rows come a stretch at a time, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from tacit.engines.arrow_arrays import to_numpy
from tacit.engines.bound_contributions import MAX_BATCH_ROWS, BoundingBuffers, UnitRuns, are_consecutive, find_runs
from tacit.errors import DataError, ErrorCode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

Totals = TypeVar("Totals")
Coded = TypeVar("Coded")

_BATCH = 1 << 20
_WORKERS = 2
_MAX_HELD_SLICES = 4  # parts of batches that wait for others; each holds its batch in memory


@dataclass(frozen=True)
class UnitStretch:
    """Rows that hold all rows of each of their units; `runs` are these units, or None where the rows say so."""

    rows: pa.RecordBatch
    runs: UnitRuns | None = None

    def find_runs(self, buffers: BoundingBuffers) -> UnitRuns:
        """The units, and where the rows of each end."""
        if self.runs is not None:
            return self.runs
        many = find_runs(to_numpy(self.rows.column(0)), buffers.who, buffers.ends)
        if many < 0:
            raise RuntimeError("rows are not in the order of their units")
        return UnitRuns(buffers.who[:many], buffers.ends[:many])


class StretchAdder(Protocol[Coded, Totals]):
    """What is computed of each stretch of rows."""

    @property
    def is_fixed(self) -> bool:
        """Whether every group has its number before any row is seen."""

    def encode(self, batch: pa.RecordBatch) -> Coded:
        """The groups of the rows. One caller at a time, unless the numbers of groups are fixed."""

    def none(self) -> Totals:
        """Totals of no rows."""

    def add(self, stretch: UnitStretch, coded: Coded, totals: Totals, buffers: BoundingBuffers) -> None:
        """Add a stretch to totals that are one worker's own."""


def add_stretches(
    cursor: DuckDBPyConnection,
    statement: str,
    units: str | None,
    plan: StretchAdder[Coded, Totals],
    *,
    is_large: bool,
) -> list[Totals]:
    """The totals of each worker over the rows of a statement, whose first column says whose each is.

    That is the unit as an integer where `units` is None, and otherwise the number of the row (`UnitOrderedRows`). Rows
    of a table that is not large are added up by this thread alone: starting others would take longer.
    """
    with closing(cursor.cursor()) as beside:
        # What is prepared as a relation streams, and is bound twice.
        read = cursor.sql(statement) if is_large else cursor.execute(statement)
        batches = read.to_arrow_reader(_BATCH)
        assert batches is not None
        stretches = (
            split_at_unit_boundaries(batches)
            if units is None
            else split_at_last_rows(batches, beside.sql(units).to_arrow_reader(_BATCH))
        )
        return _add_in_parallel(plan, stretches, _WORKERS if is_large else 1)


def _add_in_parallel(
    plan: StretchAdder[Coded, Totals], stretches: Generator[UnitStretch], workers: int
) -> list[Totals]:
    """The totals of each worker. They take turns to fetch a stretch, and add it up while others fetch."""
    turn = Lock()

    def work() -> Totals:
        totals, buffers = plan.none(), BoundingBuffers.of(0)  # as large as the rows need: to touch memory takes time
        while True:
            with turn:
                stretch = next(stretches, None)
                if stretch is None:
                    return totals
                coded = None if plan.is_fixed else plan.encode(stretch.rows)
            buffers = buffers.for_rows(stretch.rows.num_rows)
            plan.add(stretch, plan.encode(stretch.rows) if coded is None else coded, totals, buffers)

    if workers == 1:
        return [work()]
    with ThreadPoolExecutor(workers) as pool:
        try:
            return [done.result() for done in [pool.submit(work) for _ in range(workers)]]
        except BaseException:
            with turn:
                stretches.close()  # so that the others find no more
            raise


def split_at_unit_boundaries(batches: Iterable[pa.RecordBatch]) -> Generator[UnitStretch]:
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
        unit = to_numpy(batch.column(0))
        first = int(np.searchsorted(unit, unit[0], "right"))
        last = first + int(np.searchsorted(unit[first:], unit[-1]))
        aside.append(batch.slice(0, first))
        if first < batch.num_rows:
            if len(aside) > _MAX_HELD_SLICES:
                yield UnitStretch(_concatenate(aside))
                aside = []
            if first < last:
                yield UnitStretch(batch.slice(first, last - first))
            aside.append(batch.slice(last))
    if aside:
        yield UnitStretch(_concatenate(aside))


def split_at_last_rows(batches: Iterable[pa.RecordBatch], units: Iterable[pa.RecordBatch]) -> Generator[UnitStretch]:
    """The same of all rows of a table, numbered as they lie, with the last row of each unit.

    **Theorem.** A unit is in one stretch, with all of its rows. Proof: rows come in the order of their numbers, which
    is checked, and are cut only after the last row of a unit. What is aside are whole units and the beginning of one,
    and it is a stretch of its own only where there is no beginning.
    """
    known = _Units(units)
    aside: list[pa.RecordBatch] = []
    whole: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # the units aside, and how many rows each has
    row, is_begun = 0, False
    for batch in batches:
        if not are_consecutive(to_numpy(batch.column(0)), row):
            raise RuntimeError("rows are not in the order in which they lie")
        start, end = row, row + batch.num_rows
        begun_at = known.row
        who, ends = known.take(end)
        row = end
        if is_begun:
            cut = int(ends[0]) if len(ends) else end
            aside.append(batch.slice(0, cut - start))
            if not len(ends):
                continue
            whole.append((who[:1], ends[:1] - begun_at))
            who, ends, offset, is_begun = who[1:], ends[1:], cut - start, False
        else:
            offset = 0
        if len(aside) > _MAX_HELD_SLICES:
            yield _join(aside, whole)
            aside, whole = [], []
        if len(ends):
            length = int(ends[-1]) - start - offset
            yield UnitStretch(batch.slice(offset, length), UnitRuns(who, (ends - start - offset).astype(np.int32)))
            offset += length
        if start + offset < end:
            aside.append(batch.slice(offset))
            is_begun = True
    if is_begun or known.has_more():
        raise RuntimeError("there are other rows than those of the units")
    if aside:
        yield _join(aside, whole)


class _Units:
    """Units in order, some at a time. `row` is the number of the row after those of the units that were taken."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.row = 0
        self._batches = iter(batches)
        self._who, self._ends = np.empty((2, 0), np.int64)

    def take(self, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The next units whose rows all come before a row, and where the rows of each end."""
        while not len(self._ends) or self._ends[-1] <= end:
            if not self._read():
                break
        many = int(np.searchsorted(self._ends, end, "right"))
        who, ends = self._who[:many], self._ends[:many]
        self._who, self._ends = self._who[many:], self._ends[many:]
        self.row = int(ends[-1]) if many else self.row
        return who, ends

    def has_more(self) -> bool:
        """Whether there are units that were not taken."""
        return len(self._who) > 0 or self._read()

    def _read(self) -> bool:
        batch = next(self._batches, None)
        if batch is None:
            return False
        self._who = np.concatenate([self._who, to_numpy(batch.column(0))])
        self._ends = np.concatenate([self._ends, to_numpy(batch.column(1)) + 1])
        return True


def _join(aside: list[pa.RecordBatch], whole: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> UnitStretch:
    who, sizes = (np.concatenate(each) for each in zip(*whole, strict=True))
    return UnitStretch(_concatenate(aside), UnitRuns(who, np.cumsum(sizes).astype(np.int32)))


def _concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if sum(batch.num_rows for batch in batches) > MAX_BATCH_ROWS:
        raise DataError(ErrorCode.DATA, "a unit has more than two billion rows", fix="leave it out of the data")
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
