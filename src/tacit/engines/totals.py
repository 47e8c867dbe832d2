"""What is added up in each group: exact sums of integers, counts, and how often each value occurs.

Every worker has totals of its own, into which compiled loops add; they are added up once, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tacit.engines.arrow_arrays import to_numpy
from tacit.engines.bound_contributions import add_all_valid, add_by_group, add_valid_by_group

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_FULL = 1 << 62
_MOST_LISTED = 1 << 22


class KeptRows(NamedTuple):
    """The number of each row's group, the number of the first group, and the rows that are kept."""

    code: NDArray[Any]
    first: int
    kept: NDArray[np.int32]

    @classmethod
    def all_in_one_group(cls, rows: int) -> KeptRows:
        """All of so many rows."""
        return cls(np.zeros(rows, np.int8), 0, np.arange(rows, dtype=np.int32))


@dataclass
class ExactSums:
    """The sum of integers in each group, exactly: low + 2^32 high.

    **Theorem.** No addition leaves 64 bits. Proof: `weight` is at least the absolute value of every low. Of n < 2^31
    numbers each at most v, the sum is at most n v. Below 2^62 it is added to lows that are at most 2^62, as they are
    carried over into the highs before they could be more; then they are below 2^32. Otherwise the lower halves of the
    numbers are added up, at most (2^32 - 1) n < 2^63 - 2^32; and their upper halves, at most 2^31 n, to the highs, that
    only 2^32 numbers could fill.
    """

    low: Numbers
    high: Numbers
    weight: int = 0

    def add(self, rows: KeptRows, values: NDArray[Any]) -> None:
        """Add the values of the rows that are kept to their groups."""
        weight = _max_magnitude(values) * len(rows.kept)
        if weight < _FULL:
            self._reserve(weight)
            add_by_group(*rows, values, self.low)
        else:
            self._reserve(len(rows.kept) << 32)
            add_by_group(*rows, values & 0xFFFFFFFF, self.low)
            add_by_group(*rows, values >> 32, self.high)

    def add_narrow(self, rows: KeptRows | None, values: NDArray[Any], nulls: Numbers) -> None:
        """The same of narrow integers, whose least value stands for NULL: those are counted in `nulls`, and not added.

        None are all rows, in one group. Rows and values are of 31 bits at most, so their weight is below 2^62.
        """
        null = int(np.iinfo(values.dtype).min)
        self._reserve(-null * len(values))
        if rows is None:
            add_all_valid(values, null, self.low, nulls)
        else:
            add_valid_by_group(*rows, values, null, self.low, nulls)

    def _reserve(self, weight: int) -> None:
        if self.weight + weight > _FULL:
            self.carry()
        self.weight += weight

    def carry(self) -> None:
        """Leave below 2^32 in each low."""
        self.high += self.low >> 32
        self.low &= 0xFFFFFFFF
        self.weight = 1 << 32

    def grow(self, size: int) -> None:
        """Make room for more groups."""
        self.low, self.high = pad_with_zeros(self.low, size), pad_with_zeros(self.high, size)

    def merge(self, other: ExactSums) -> None:
        """Add the sums of as many groups."""
        self.carry()
        other.carry()
        self.low += other.low
        self.high += other.high
        self.weight += other.weight

    def of(self, groups: Numbers) -> list[int]:
        """The sum of each of these groups."""
        lows, highs = self.low[groups].tolist(), self.high[groups].tolist()
        return [low + (high << 32) for low, high in zip(lows, highs, strict=True)]


def _max_magnitude(values: NDArray[Any]) -> int:
    """No value is further from zero."""
    if values.dtype != np.int64:
        return -int(np.iinfo(values.dtype).min)
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))


@dataclass
class ValueCounts:
    """How often each value occurs in each group. What has been met is counted whenever it has doubled."""

    parts: list[pa.Table] = field(default_factory=list)
    size: int = 0
    most: int = _MOST_LISTED

    def add(self, code: NDArray[Any], values: pa.Array, counts: Numbers | None = None) -> None:
        """Values with their groups, and how often each is there, once where `counts` is None; NULL is none."""
        often = np.ones(len(code), np.int64) if counts is None else counts
        table = pa.table({"code": pa.array(code, pa.int64()), "value": values, "n": often})
        self._append(_merge_counts(table.filter(table["value"].is_valid())))

    def _append(self, part: pa.Table) -> None:
        self.parts.append(part)
        self.size += part.num_rows
        if self.size > self.most:
            self.parts = [_merge_counts(pa.concat_tables(self.parts))]
            self.size = self.parts[0].num_rows
            self.most = max(self.most, 2 * self.size)

    def merge(self, other: ValueCounts) -> None:
        """Add what another has counted."""
        for part in other.parts:
            self._append(part)

    def of(self, groups: Numbers) -> list[dict[Any, int]]:
        """The values in each of these groups."""
        lists: dict[int, dict[Any, int]] = {group: {} for group in groups.tolist()}
        if self.parts:
            counted = _merge_counts(pa.concat_tables(self.parts))
            for group, value, count in zip(*(counted[i].to_pylist() for i in range(3)), strict=True):
                lists[group][value] = count
        return list(lists.values())


def _merge_counts(values: pa.Table) -> pa.Table:
    """One row for each value in each group."""
    return values.group_by(["code", "value"]).aggregate([("n", "sum")]).rename_columns(["code", "value", "n"])


@dataclass
class GroupTotals:
    """What some stretches of rows add up to: units, weights and rows of each group, and of each argument its NULLs and
    its sum, or its values."""

    units: Numbers
    weights: Numbers
    rows: Numbers
    nulls: list[Numbers]
    sums: list[ExactSums]
    lists: list[ValueCounts]

    @classmethod
    def none(cls, sums: int, lists: int) -> GroupTotals:
        """No rows, no groups yet."""
        exact = [ExactSums(zeros(), zeros()) for _ in range(sums)]
        return cls(zeros(), zeros(), zeros(), [zeros() for _ in exact], exact, [ValueCounts() for _ in range(lists)])

    def add(
        self,
        position: int,
        rows: KeptRows | None,
        column: pa.Array,
        clamp: tuple[int, int] | None = None,
        *,
        is_summed: bool,
    ) -> None:
        """Add the values of an argument, clamped where `clamp` says so, and count its NULLs.

        None are all rows, in one group.
        """
        rows = rows or KeptRows.all_in_one_group(len(column))
        missing = to_numpy(column.is_null()) if column.null_count else None
        if missing is not None:
            add_by_group(*rows, missing, self.nulls[position])
        if is_summed:
            self.sums[position].add(rows, to_integers(column, missing, clamp))

    def add_narrow(self, position: int, rows: KeptRows | None, column: pa.Array) -> None:
        """The same of narrow integers."""
        self.sums[position].add_narrow(rows, to_numpy(column), self.nulls[position])

    def grow(self, size: int) -> None:
        """Make room for more groups."""
        if len(self.rows) < size:
            self.units, self.rows = pad_with_zeros(self.units, size), pad_with_zeros(self.rows, size)
            self.weights = pad_with_zeros(self.weights, size)
            self.nulls = [pad_with_zeros(nulls, size) for nulls in self.nulls]
            for sums in self.sums:
                sums.grow(size)

    def merge(self, other: GroupTotals) -> None:
        """Add what other stretches add up to."""
        self.grow(len(other.rows))
        other.grow(len(self.rows))
        self.units += other.units
        self.weights += other.weights
        self.rows += other.rows
        self.nulls = [one + more for one, more in zip(self.nulls, other.nulls, strict=True)]
        for sums, others in zip(self.sums, other.sums, strict=True):
            sums.merge(others)
        for lists, listed in zip(self.lists, other.lists, strict=True):
            lists.merge(listed)


def to_integers(column: pa.Array, missing: NDArray[Any] | None, clamp: tuple[int, int] | None) -> NDArray[Any]:
    """The values of a column, clamped where `clamp` says so, and 0 where they are missing."""
    values: NDArray[Any] = to_numpy(column if missing is None else column.fill_null(0))
    if clamp is not None:
        values = np.clip(values, *clamp)
        if missing is not None and not clamp[0] <= 0 <= clamp[1]:
            values[missing] = 0
    return values


def zeros(size: int = 0) -> Numbers:
    """So many zeros."""
    return np.zeros(size, np.int64)


def pad_with_zeros(numbers: Numbers, size: int) -> Numbers:
    """The same numbers, going on with zeros."""
    return np.concatenate([numbers, zeros(size - len(numbers))])


def compute_measure(function: str, values: dict[Any, int]) -> Any:
    """A measure of the values that occur in a group, and how often each does."""
    match function:
        case "histogram":
            return values
        case "distinct":
            return len(values)
        case "distinct_sum":
            return sum(values)
        case "count":
            return sum(values.values())
        case "sum":
            return sum(value * count for value, count in values.items())
    raise AssertionError(f"no cell for {function}")
