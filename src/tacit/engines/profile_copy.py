"""The profile of contributions over a copy that is sorted by unit: Arrow batches from DuckDB, and a compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from tacit.engines import group_codes
from tacit.engines.aggregate_copy import UnitOrderedRows, read_straight
from tacit.engines.bound_contributions import BoundingBuffers
from tacit.engines.copy_tables import OpenTables, locate_units
from tacit.engines.layout import CopyLayout, CopyScan, plan_copy_scan
from tacit.engines.profile_statements import find_octave, list_groups, list_limits, list_measures
from tacit.engines.profile_units import MAX_NORM, ProfileTotals, RowNumbers, profile_units
from tacit.engines.totals import to_integers
from tacit.engines.unit_stretches import UnitStretch, add_stretches
from tacit.privacy.contribution_profile import OCTAVES, ContributionProfile, list_clips
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.clipped_aggregation import ClippedAggregation, WeightedVector
from tacit.query.nodes import Aggregation, GroupKey, Scalar
from tacit.query.types import Key

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    Coded = tuple[NDArray[Any], int, NDArray[np.int32]]

_MOST_SUMS = 2**24  # of all places, groups and vectors
_MOST_ENTRIES = 2**20  # of a unit, where the L2 norm is looked at


@dataclass(frozen=True)
class ProfileScan:
    """A profile as one pass over a copied table: the rows that are read, and how."""

    node: ClippedAggregation
    rows: Aggregation
    scan: CopyScan


def plan_profile_scan(
    node: ClippedAggregation, layouts: Mapping[str, CopyLayout], count_rows: Callable[[str], int]
) -> ProfileScan | None:
    """The profile as one pass over a copied table, of which `count_rows` tells the size; None where it is none.

    That is so where the rows are not those of one table, where units are counted by the values that they have, and
    where sums of machine integers could overflow.
    """
    if any(measure.function == "units" and measure.argument is not None for measure in list_measures(node)):
        return None
    groups = list_groups(node)
    keys = []
    for i, key in enumerate(node.keys):
        values = sorted({group[i] for _, group in groups}, key=lambda value: (value is None, value))
        keys.append(GroupKey(key.scalar, cast("tuple[Key, ...]", tuple(values))))  # NULL among them where it is listed
    measures = tuple(list_measures(node))
    rows = Aggregation(node.source, node.where, node.unit, tuple(keys), ContributionBounds(1, 1), measures)
    scan = plan_copy_scan(rows, layouts) if groups else None
    norms = 2 if node.ratios > 1 else 1
    if node.ratios > 1 and node.size > _MOST_ENTRIES:
        return None
    if scan is None or norms * node.size * (len(list_clips(node.largest)) + 1) > _MOST_SUMS:
        return None
    size = sum(vector.largest for vector in node.vectors) * count_rows(scan.table)
    factors = [vector.weight * factor for vector in node.vectors for factor, _ in vector.terms]
    if max([size, *map(abs, factors)]) >= MAX_NORM:
        return None
    return ProfileScan(node, rows, scan)


def count_copied_rows(cursor: DuckDBPyConnection, table: str) -> int:
    """How many rows a copy has of a table, which may differ from those of its source."""
    statement = f"SELECT COALESCE(MAX(last) + 1, 0) FROM {locate_units(table)}"
    ((rows,),) = cursor.execute(statement).fetchall()  # to the end, so that the cursor can be used again
    return int(rows)


def profile_copy(
    cursor: DuckDBPyConnection, planned: ProfileScan, tables: OpenTables, *, is_large: bool
) -> ContributionProfile:
    """How many units there are of each norm, and what those of a norm add."""
    rows = read_straight(cursor, planned.rows, planned.scan, tables)
    plan = _BatchProfiler(planned.node, rows)
    return plan.finish(add_stretches(cursor, rows.statement, rows.units, plan, is_large=is_large))


@dataclass
class _BatchProfiler:
    """What is computed of each stretch of rows. `place_of` is the place of each group that has a number by now."""

    node: ClippedAggregation
    rows: UnitOrderedRows
    combined: group_codes.GroupEncoder = field(init=False)
    place_of: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        self.combined = group_codes.GroupEncoder(self.rows.keys)
        self._places = {group: place for place, group in list_groups(self.node)}
        self.place_of = np.full(1, len(self.node.groups), np.int32)
        if self.is_fixed:
            self.place_of = np.full(self.combined.size + 1, len(self.node.groups), np.int32)
            self.place_of[self.combined.find_codes(list(self._places))] = list(self._places.values())

    @property
    def is_fixed(self) -> bool:
        """Whether every group has its number before any row is seen."""
        return self.combined.is_fixed

    def encode(self, batch: pa.RecordBatch) -> Coded:
        """The number of each row's group, the number of the first group, and the place of each."""
        columns = [batch.column(i + 1) for i in range(len(self.rows.keys))]
        code, first = self.combined.encode(columns, batch.num_rows)
        known, none = len(self.place_of) - 1, len(self.node.groups)
        if self.combined.size > known:
            new = self.combined.keys(np.arange(known, self.combined.size))
            found = [*(self._places.get(group, none) for group in new), none]
            self.place_of = np.concatenate([self.place_of[:known], np.array(found, np.int32)])
        return code, first, self.place_of

    def none(self) -> ProfileTotals:
        """Totals of no rows."""
        places, node = len(list_clips(self.node.largest)) + 1, self.node
        return ProfileTotals.none(len(list_limits(node)), node.ratios, places, len(node.groups), len(node.vectors))

    def add(self, stretch: UnitStretch, coded: Coded, totals: ProfileTotals, buffers: BoundingBuffers) -> None:
        """Add the units of a stretch to the totals."""
        profile_units(stretch.find_runs(buffers), *coded, self._read_numbers(stretch.rows), totals)

    def _read_numbers(self, batch: pa.RecordBatch) -> RowNumbers:
        """What each row adds to each vector, in one column of numbers where it is not the same for all."""
        arguments = self._read_arguments(batch)
        vectors = [_combine(vector, arguments) for vector in self.node.vectors]
        columns = [column for _, _, column in vectors if column is not None]
        numbers = np.array(columns, np.int64).reshape(len(columns), batch.num_rows)
        places = iter(range(len(columns)))
        column = [-1 if column is None else next(places) for _, _, column in vectors]
        once, each = ([vector[i] for vector in vectors] for i in range(2))
        return RowNumbers(np.array(once, np.int64), np.array(each, np.int64), np.array(column, np.int64), numbers)

    def _read_arguments(self, batch: pa.RecordBatch) -> dict[Scalar, _Argument]:
        found = {}
        summed = {measure.argument for measure in list_measures(self.node) if measure.function == "sum"}
        for i, argument in enumerate(self.rows.whole):
            column = batch.column(1 + len(self.rows.keys) + i)
            if argument in self.rows.narrow:
                found[argument] = _read_narrow(column.to_numpy())
                continue
            missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
            values = to_integers(column, missing, self.rows.clamps.get(argument)) if argument in summed else None
            found[argument] = _Argument(None if values is None else values.astype(np.int64, copy=False), missing)
        return found

    def finish(self, parts: Sequence[ProfileTotals]) -> ContributionProfile:
        """The profile of all totals."""
        clips, limits = list_clips(self.node.largest), list_limits(self.node)
        units = np.zeros((OCTAVES, self.node.ratios), dtype=np.int64)
        counted = np.sum([part.units for part in parts], axis=0)
        for place in np.flatnonzero(counted.any(axis=1)).tolist():
            units[find_octave(limits, place)] += counted[place]
        sums = {
            norm + 1: {
                place: (
                    np.sum([part.whole[norm, place] for part in parts], axis=0).T.reshape(-1),
                    np.sum([part.scaled[norm, place] for part in parts], axis=0).T.reshape(-1),
                )
                for place in range(len(clips) + 1)
                if any(part.whole[norm, place].any() or part.scaled[norm, place].any() for part in parts)
            }
            for norm in range(2 if self.node.ratios > 1 else 1)
        }
        return ContributionProfile(tuple(clips), self.node.size, units, sums)


@dataclass(frozen=True)
class _Argument:
    """The values of an argument, 0 where it is NULL, and where it is; None where that is nowhere."""

    values: NDArray[np.int64] | None
    missing: NDArray[np.bool_] | None


def _read_narrow(numbers: NDArray[Any]) -> _Argument:
    """Narrow integers, whose least value stands for NULL."""
    missing, values = numbers == np.iinfo(numbers.dtype).min, numbers.astype(np.int64)
    if not missing.any():
        return _Argument(values, None)
    values[missing] = 0
    return _Argument(values, missing)


def _combine(
    vector: WeightedVector, arguments: Mapping[Scalar, _Argument]
) -> tuple[int, int, NDArray[np.int64] | None]:
    """What a unit adds to a vector in a group: once, for each row, and a number of each row, if there are such."""
    once, each, column = 0, 0, None
    for factor, measure in vector.terms:
        number = vector.weight * factor
        if measure.function == "units":
            once += number
            continue
        argument = _Argument(None, None) if measure.argument is None else arguments[measure.argument]
        if measure.function == "sum":
            assert argument.values is not None
            part = argument.values if number == 1 else argument.values * np.int64(number)
        elif argument.missing is None:
            each += number
            continue
        else:
            part = np.where(argument.missing, np.int64(0), np.int64(number))
        column = part if column is None else column + part
    return once, each, column
