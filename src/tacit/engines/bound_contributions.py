"""What is kept of each unit, in one pass over rows that lie together by unit. Compiled: needs numba.

**Theorem.** Let a unit's rows come in an order that follows from those rows alone. Its D groups are numbered 1 to D as
they first appear, and number s is kept where (s k + h) mod D < k, with h a hash of the salt and the unit; all of them
where D <= k. Of the n > r rows of a group, numbered as they come, number p is kept where (p r + g) mod n < r, with g
made of the hash and of the group's number. Then what is kept of a unit is a function of the unit's own rows, of the
question and of its salt: adding or removing a unit changes what is kept of no other. At most k groups and r rows in
each are kept, evenly spaced, and fairly: over the hash, each group is kept with probability min(1, k/D), each row of a
kept group with min(1, r/n), up to the unevenness of a place made of 32 bits.
Proof. Nothing but the salt, the unit and its rows is looked at. From s - 1 to s the sum s k + h passes a multiple of D
just where the new remainder is below k, and from s = 0 to D it passes k of them: m D, with m from 1 to k, at
s = 1 + floor((m D - h - 1) / k). For a given s, just k of the D remainders of h keep it. The same holds of rows.

**Theorem (all rows).** `bound_rows_per_unit` first leaves at most T rows of a unit, whatever their groups: of n > T
rows that are in a group, numbered as they come, number p where (p T + f) mod n < T, with f made of the hash. That too
is a function of the unit's own rows, of the question and of its salt, and fair: each row is left with probability
min(1, T/n), up to the unevenness of a place made of 32 bits. Proof: as above, with the whole unit in the place of a
group; what is left of a unit is in an order that follows from its rows alone, so the first theorem holds of it.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.engines import plain_bounding
from tacit.loops import compile_lazily

MAX_BATCH_ROWS = 2**31 - 2
"""Rows that can be looked at together: their numbers, and one more, are of 32 bits."""

_HALF = np.uint64(32)
_ONE, _LOW = 1 << 32, (1 << 32) - 1  # a pair of 32 bits each: one more in the high half; the low half
_NONE, _ALL, _SOME = 0, 1, 2  # rows of a group that are kept


def hash_salt(salt: str) -> np.uint64:
    """A question's salt as a number."""
    return np.uint64(int.from_bytes(hashlib.blake2b(salt.encode(), digest_size=8).digest(), "big"))


class UnitRuns(NamedTuple):
    """Rows in the order of their units: each unit, and the number of the row after its last one."""

    who: NDArray[np.int64]
    ends: NDArray[np.int32]


class BoundingBuffers(NamedTuple):
    """What the loops write on, the next time again: fresh memory would take as long as the work.

    `who` and `ends` are for `UnitRuns`. Each group of each unit has a place. `place` says that of a row, `found` which
    group it is and above that its size, `how` which of its rows are kept, `turn` where their choice stands. `kept` are
    the numbers of the rows kept.
    """

    who: NDArray[np.int64]
    ends: NDArray[np.int32]
    kept: NDArray[np.int32]
    place: NDArray[np.int32]
    found: NDArray[np.int64]
    how: NDArray[np.uint8]
    turn: NDArray[np.int32]

    @classmethod
    def of(cls, rows: int) -> BoundingBuffers:
        """Buffers for so many rows."""
        ends, kept, place, turn = np.empty((4, rows + 1), np.int32)
        who, found = np.empty((2, rows + 1), np.int64)
        return cls(who, ends, kept, place, found, np.empty(rows + 1, np.uint8), turn)

    def for_rows(self, rows: int) -> BoundingBuffers:
        """This one, or a larger one if it is too small."""
        return self if len(self.kept) > rows else BoundingBuffers.of(rows)


@compile_lazily(inline="always")
def mix_bits(x: Any) -> Any:
    """A bijection of 64 bits in which every bit of `x` moves about half of the others."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compile_lazily(inline="always")
def scale_to_range(number: Any, size: Any) -> Any:
    """The high half of a number as one of 0 to size - 1."""
    return np.int64(((number >> _HALF) * np.uint64(size)) >> _HALF)


@compile_lazily(inline="always")
def divide_unsigned(number: Any, by: Any) -> Any:
    """Quotient and rest of numbers of 31 bits; quicker without signs."""
    one, other = np.uint32(number), np.uint32(by)
    return np.int64(one // other), np.int64(one % other)


@compile_lazily(plain=plain_bounding.find_runs, nogil=True, cache=True)
def find_runs(unit: NDArray[np.int64], who: NDArray[np.int64], ends: NDArray[np.int32]) -> int:
    """Write the runs of equal units, and return how many they are; -1 if units are out of order."""
    count, many = np.uint64(unit.shape[0]), np.uint64(0)
    if not count:
        return 0
    last = unit[0]
    who[0] = last
    for row in range(np.uint64(1), count):
        now = unit[row]
        if now != last:
            if now < last:
                return -1
            ends[many] = row
            many += np.uint64(1)
            who[many] = last = now
    ends[many] = count
    return int(many) + 1


@compile_lazily(plain=plain_bounding.are_consecutive, nogil=True, cache=True)
def are_consecutive(numbers: NDArray[np.int64], first: int) -> bool:
    """Whether these are `first`, `first` + 1, and so on."""
    wrong = 0
    for i in range(numbers.shape[0]):
        wrong += numbers[i] != first + i
    return wrong == 0


@compile_lazily(plain=plain_bounding.bound_contributions, nogil=True, cache=True, error_model="numpy")
def bound_contributions(
    runs: UnitRuns,
    code: NDArray[Any],
    low: int,
    most_groups: int,
    most_rows: int,
    key: np.uint64,
    buffers: BoundingBuffers,
    units: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """Write the rows that are kept to the buffers, in order, and return how many they are.

    At most as many rows as the buffers are for, in the order of their units. `code` less `low` numbers the groups; a
    row with any other number is in none. Units and rows that are kept are added to those of their groups.
    """
    _, _, kept, place, found, how, turn = buffers
    count, sizes = code.shape[0], units.shape[0]
    # Places are numbered on over all units, so that one before the unit's first is an earlier unit's. The last one is
    # that of rows in no group.
    place_of = np.full(sizes + 1, -1, np.int32)
    place_of[sizes] = count
    how[: count + 1] = _NONE
    free, row = np.int64(0), 0
    for run in range(runs.who.shape[0]):
        first, end = free, runs.ends[run]
        while row < end:
            less = np.int64(code[row]) - low
            c = np.uint64(less if np.uint64(less) < np.uint64(sizes) else sizes)
            at = np.int64(place_of[c])
            # All ones if the group is new to the unit. Nobody can foretell it, so a branch would take twice as long.
            new = (at - first) >> 63
            at ^= (at ^ free) & new
            free -= new
            place_of[c] = place[row] = at
            group = found[np.uint64(at)]
            found[np.uint64(at)] = (group ^ ((group ^ np.int64(c)) & new)) + _ONE
            row += 1
        groups = int(free - first)
        if groups:
            number = mix_bits(np.uint64(runs.who[run]) ^ key)
            step = min(most_groups, groups)
            at, rest = divide_unsigned(groups - scale_to_range(number, groups) - 1, step)
            whole, part = divide_unsigned(groups, step)
            for _ in range(step):
                group = found[first + at]
                c, size = np.uint64(group & _LOW), group >> 32
                units[c] += 1
                rows[c] += min(size, most_rows)
                how[first + at] = _ALL
                if size > most_rows:
                    how[first + at] = _SOME
                    turn[first + at] = scale_to_range(mix_bits(number + np.uint64(at) + np.uint64(1)), size)
                over = rest + part >= step
                at += whole + over
                rest += part - step * over
    many = 0
    for row in range(count):
        here = np.uint64(place[row])
        kept[many] = row
        if how[here] == _SOME:
            size, now = found[here] >> 32, turn[here] + most_rows
            now -= size * (now >= size)
            turn[here] = now
            many += now < most_rows
        else:
            many += how[here]
    return many


@compile_lazily(plain=plain_bounding.bound_few_groups, nogil=True, cache=True, error_model="numpy")
def bound_few_groups(
    runs: UnitRuns,
    code: NDArray[Any],
    low: int,
    most_rows: int,
    key: np.uint64,
    kept: NDArray[np.int32],
    units: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """What `bound_contributions` does where a unit keeps every group there is, and keeps the same rows.

    Then only units with more than `most_rows` rows in a group need a choice, and most have none.
    """
    sizes, row, many, one = np.uint64(units.shape[0]), np.uint64(0), np.uint64(0), np.uint64(1)
    size_of, turn = np.zeros(sizes + one, np.int32), np.full(sizes, -1, np.int32)  # the last size: rows in no group
    for run in range(runs.who.shape[0]):
        first, end, most = row, np.uint64(runs.ends[run]), np.int32(0)
        while row < end:
            size_of[min(np.uint64(np.int64(code[row]) - low), sizes)] += 1
            row += one
        for c in range(sizes):
            size = size_of[c]
            most = max(most, size)
            units[c] += size > 0
            rows[c] += min(size, most_rows)
        if most <= most_rows:
            for each in range(first, end):
                kept[many] = each
                many += np.uint64(np.uint64(np.int64(code[each]) - low) < sizes)
        else:
            number, met = mix_bits(np.uint64(runs.who[run]) ^ key), np.uint64(0)
            for each in range(first, end):
                group = np.uint64(np.int64(code[each]) - low)
                if group >= sizes:
                    continue
                size, now = np.int64(size_of[group]), np.int64(turn[group])
                if now < 0:  # the first row of its group
                    met += one
                    now = scale_to_range(mix_bits(number + met), size)
                now += most_rows
                now -= size * (now >= size)
                turn[group] = now
                kept[many] = each
                many += np.uint64(size <= most_rows or now < most_rows)
            turn[:] = -1
        size_of[:] = 0
    return int(many)


@compile_lazily(plain=plain_bounding.bound_one_group, nogil=True, cache=True, error_model="numpy")
def bound_one_group(
    runs: UnitRuns,
    most_rows: int,
    key: np.uint64,
    kept: NDArray[np.int32],
    units: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """What `bound_contributions` does where all rows are in one group, and keeps the same rows.

    Where `kept` is empty, rows are only counted. -1 where all rows are kept: then none is written.
    """
    first, many, total, most = np.int64(0), 0, 0, 0
    for run in range(runs.who.shape[0]):
        size = int(runs.ends[run] - first)
        first = np.int64(runs.ends[run])
        total, most = total + min(size, most_rows), max(most, size)
    units[0] += runs.who.shape[0]
    rows[0] += total
    if most <= most_rows:
        return -1
    if not kept.shape[0]:
        return 0
    first = np.int64(0)
    for run in range(runs.who.shape[0]):
        end = np.int64(runs.ends[run])
        size = int(end - first)
        if size <= most_rows:
            for each in range(first, end):
                kept[many] = each
                many += 1
        else:
            now = scale_to_range(mix_bits(mix_bits(np.uint64(runs.who[run]) ^ key) + np.uint64(1)), size)
            for each in range(first, end):
                now += most_rows
                now -= size * (now >= size)
                kept[many] = each
                many += now < most_rows
        first = end
    return many


@compile_lazily(plain=plain_bounding.bound_rows_per_unit, nogil=True, cache=True)
def bound_rows_per_unit(
    runs: UnitRuns,
    code: NDArray[Any],
    low: int,
    sizes: int,
    total: int,
    key: np.uint64,
    left: NDArray[np.int32],
) -> None:
    """Number each row's group from 0 to `sizes` - 1; -1 where it is in none, or is not among the `total` left."""
    first = 0
    for run in range(runs.who.shape[0]):
        end, rows = runs.ends[run], 0
        for row in range(first, end):
            c = np.int64(code[row]) - low
            if 0 <= c < sizes:
                left[row] = c
                rows += 1
            else:
                left[row] = -1
        if rows > total:
            place = scale_to_range(mix_bits(mix_bits(np.uint64(runs.who[run]) ^ key)), rows)
            for row in range(first, end):
                if left[row] >= 0:
                    place += total
                    if place >= rows:
                        place -= rows
                    if place >= total:
                        left[row] = -1
        first = end


@compile_lazily(plain=plain_bounding.add_all_valid, nogil=True, cache=True)
def add_all_valid(values: NDArray[Any], null: int, sums: NDArray[np.int64], nulls: NDArray[np.int64]) -> None:
    """What `add_valid_by_group` does where all rows are kept and in the first group."""
    total, missing = np.int64(0), np.int64(0)
    for i in range(values.shape[0]):
        value = np.int64(values[i])
        is_missing = np.int64(value == null)
        missing += is_missing
        total += value & (is_missing - 1)
    sums[0] += total
    nulls[0] += missing


@compile_lazily(plain=plain_bounding.add_by_group, nogil=True, cache=True)
def add_by_group(
    code: NDArray[Any], low: int, kept: NDArray[np.int32], values: NDArray[Any], sums: NDArray[np.int64]
) -> None:
    """Add up the values of the rows that are kept, in each group."""
    for i in range(kept.shape[0]):
        row = np.uint64(kept[i])
        sums[np.uint64(np.int64(code[row]) - low)] += np.int64(values[row])


@compile_lazily(plain=plain_bounding.add_valid_by_group, nogil=True, cache=True)
def add_valid_by_group(
    code: NDArray[Any],
    low: int,
    kept: NDArray[np.int32],
    values: NDArray[Any],
    null: int,
    sums: NDArray[np.int64],
    nulls: NDArray[np.int64],
) -> None:
    """The same where the value `null` stands for NULL: these are counted, and not added."""
    for i in range(kept.shape[0]):
        row = np.uint64(kept[i])
        c, value = np.uint64(np.int64(code[row]) - low), np.int64(values[row])
        missing = np.int64(value == null)
        nulls[c] += missing
        sums[c] += value & (missing - 1)
