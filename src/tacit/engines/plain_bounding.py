"""The loops of `engines/bound_contributions.py` as operations on whole arrays: the same results without a compiler.

A few questions over a small table take less time so than numba takes to load.

**Theorem.** Each function here writes and returns what the loop of the same name does. Proof. Of D groups of a unit,
the loops keep number s where D <= k or (s k + h) mod D < k. With min(k, D) in the place of k the second condition alone
says the same, because it holds of every s where k is D. So it is with the rows of a group, and with those of a unit.
Groups are numbered by their first rows, and rows are written in the order in which they come, as the loops do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Words = NDArray[np.uint64]
    Runs = tuple[NDArray[np.int64], NDArray[np.int32]]
    Buffers = tuple[
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.uint8],
        NDArray[np.int32],
    ]

_HALF = np.uint64(32)


def find_runs(unit: Integers, who: Integers, ends: NDArray[np.int32]) -> int:
    """Write the runs of equal units, and return how many they are; -1 if units are out of order."""
    if not len(unit):
        return 0
    if (unit[1:] < unit[:-1]).any():
        return -1
    last = np.append(np.flatnonzero(unit[1:] != unit[:-1]), len(unit) - 1)
    who[: len(last)], ends[: len(last)] = unit[last], last + 1
    return len(last)


def are_consecutive(numbers: Integers, first: int) -> bool:
    """Whether these are `first`, `first` + 1, and so on."""
    return bool((numbers == np.arange(first, first + len(numbers))).all())


def bound_contributions(
    runs: Runs,
    code: NDArray[Any],
    low: int,
    most_groups: int,
    most_rows: int,
    key: np.uint64,
    buffers: Buffers,
    units: Integers,
    rows: Integers,
) -> int:
    """Write the rows that are kept to the buffers, in order, and return how many they are."""
    kept = _keep(runs, code, low, most_groups, most_rows, key, units, rows)
    buffers[2][: len(kept)] = kept
    return len(kept)


def bound_few_groups(
    runs: Runs,
    code: NDArray[Any],
    low: int,
    most_rows: int,
    key: np.uint64,
    kept: NDArray[np.int32],
    units: Integers,
    rows: Integers,
) -> int:
    """What `bound_contributions` does where a unit keeps every group there is."""
    found = _keep(runs, code, low, len(units), most_rows, key, units, rows)
    kept[: len(found)] = found
    return len(found)


def bound_one_group(
    runs: Runs,
    most_rows: int,
    key: np.uint64,
    kept: NDArray[np.int32],
    units: Integers,
    rows: Integers,
) -> int:
    """What `bound_contributions` does where all rows are in one group.

    Where `kept` is empty, rows are only counted. -1 where all rows are kept: then none is written.
    """
    sizes = _sizes(runs)
    units[0] += len(sizes)
    rows[0] += int(np.minimum(sizes, most_rows).sum())
    if sizes.max(initial=0) <= most_rows:
        return -1
    if not len(kept):
        return 0
    turns = _scale(_mix(_numbers(runs, key) + np.uint64(1)), sizes)
    found = np.flatnonzero(_keep_evenly(sizes, most_rows, turns))
    kept[: len(found)] = found
    return len(found)


def bound_rows_per_unit(
    runs: Runs,
    code: NDArray[Any],
    low: int,
    sizes: int,
    total: int,
    key: np.uint64,
    left: NDArray[np.int32],
) -> None:
    """Number each row's group from 0 to `sizes` - 1; -1 where it is in none, or is not among the `total` left."""
    codes, inside = _codes(code, low, sizes)
    left[:] = -1
    place = np.flatnonzero(inside)
    counts = np.bincount(_run_of_rows(runs)[place], minlength=len(runs[0])).astype(np.int64)
    kept = place[_keep_evenly(counts, total, _scale(_mix(_numbers(runs, key)), counts))]
    left[kept] = codes[kept]


def add_all_valid(values: NDArray[Any], null: int, sums: Integers, nulls: Integers) -> None:
    """What `add_valid_by_group` does where all rows are kept and in the first group."""
    missing = values == null
    nulls[0] += np.count_nonzero(missing)
    sums[0] += values.sum(where=~missing, dtype=np.int64)


def add_by_group(code: NDArray[Any], low: int, kept: NDArray[np.int32], values: NDArray[Any], sums: Integers) -> None:
    """Add up the values of the rows that are kept, in each group."""
    np.add.at(sums, code[kept].astype(np.int64) - low, values[kept].astype(np.int64))


def add_valid_by_group(
    code: NDArray[Any],
    low: int,
    kept: NDArray[np.int32],
    values: NDArray[Any],
    null: int,
    sums: Integers,
    nulls: Integers,
) -> None:
    """The same where the value `null` stands for NULL: these are counted, and not added."""
    groups, some = code[kept].astype(np.int64) - low, values[kept].astype(np.int64)
    missing = some == null
    nulls += np.bincount(groups[missing], minlength=len(nulls))
    some[missing] = 0
    np.add.at(sums, groups, some)


class _Groups(NamedTuple):
    """The groups of all units, in the order in which they appear: of each its unit's place, code, size and rank."""

    run: Integers
    code: Integers
    size: Integers
    rank: Integers


def _keep(
    runs: Runs,
    code: NDArray[Any],
    low: int,
    most_groups: int,
    most_rows: int,
    key: np.uint64,
    units: Integers,
    rows: Integers,
) -> Integers:
    """The rows that are kept, in order. Units and rows are added to those of their groups."""
    codes, inside = _codes(code, low, len(units))
    place = np.flatnonzero(inside)
    pair = _run_of_rows(runs)[place] * len(units) + codes[place]
    order = np.argsort(pair, kind="stable")
    groups, first = _find_groups(pair[order], order, len(units))
    many = np.bincount(groups.run, minlength=len(runs[0])).astype(np.int64)[groups.run]  # D of each group's unit
    number = _numbers(runs, key)[groups.run]
    step = np.minimum(many, most_groups)
    chosen = (groups.rank * step + _scale(number, many)) % np.maximum(many, 1) < step
    units += np.bincount(groups.code[chosen], minlength=len(units))
    turns = _scale(_mix(number + groups.rank.astype(np.uint64)), groups.size)
    in_order = np.argsort(first)  # `order` lists the rows by unit and code
    sizes, turns, chosen = groups.size[in_order], turns[in_order], chosen[in_order]
    kept = place[order[_keep_evenly(sizes, most_rows, turns) & np.repeat(chosen, sizes)]]
    rows += np.bincount(codes[kept], minlength=len(rows))
    return np.sort(kept)


def _find_groups(pair: Integers, order: Integers, sizes: int) -> tuple[_Groups, Integers]:
    """The groups in the order of their first rows, and where the rows of each begin among those sorted by pairs."""
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    size = np.diff(starts, append=len(pair))
    by_row = np.argsort(order[starts])
    starts, size = starts[by_row], size[by_row]
    run, code = pair[starts] // sizes, pair[starts] % sizes
    begins = np.flatnonzero(np.diff(run, prepend=-1))  # the first group of each unit that has one
    rank = np.arange(1, len(run) + 1) - np.repeat(begins, np.diff(begins, append=len(run)))
    return _Groups(run, code, size, rank), starts


def _keep_evenly(sizes: Integers, most: int, turns: Integers) -> NDArray[np.bool_]:
    """Which rows are kept of stretches of these sizes, one after the other: at most so many of each.

    Of n rows, number p is kept where (p r + g) mod n < r, with g the stretch's turn and r the least of `most` and n.
    """
    if sizes.max(initial=0) <= most:
        return np.ones(int(sizes.sum()), np.bool_)
    size, step = np.repeat(sizes, sizes), np.repeat(np.minimum(sizes, most), sizes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    number = np.arange(1, len(size) + 1) - starts
    kept: NDArray[np.bool_] = (number * step + np.repeat(turns, sizes)) % size < step
    return kept


def _codes(code: NDArray[Any], low: int, sizes: int) -> tuple[Integers, NDArray[np.bool_]]:
    """The number of each row's group from 0, and whether it is one, modulo 2^64 as the loops compute it."""
    codes = code.astype(np.int64) - np.int64(low)
    return codes, codes.view(np.uint64) < np.uint64(sizes)


def _sizes(runs: Runs) -> Integers:
    sizes: Integers = np.diff(runs[1], prepend=0).astype(np.int64)
    return sizes


def _run_of_rows(runs: Runs) -> Integers:
    """For each row the place of its unit among the runs."""
    return np.repeat(np.arange(len(runs[0])), _sizes(runs))


def _numbers(runs: Runs, key: np.uint64) -> Words:
    """The hash of each unit."""
    return _mix(runs[0].astype(np.int64).view(np.uint64) ^ key)


def _mix(x: Words) -> Words:
    """The `mix_bits` of the loops."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _scale(number: Words, size: Integers) -> Integers:
    """The `scale_to_range` of the loops."""
    return (((number >> _HALF) * size.astype(np.uint64)) >> _HALF).astype(np.int64)
