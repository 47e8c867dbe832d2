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
from numba import njit
from numpy.typing import NDArray

MAX_BATCH_ROWS = 2**31 - 2
"""Rows that can be looked at together: their numbers, and one more, are of 32 bits."""

_HALF = np.uint64(32)
_ONE, _LOW = 1 << 32, (1 << 32) - 1  # a pair of 32 bits each: one more in the high half; the low half
_NONE, _ALL, _SOME = 0, 1, 2  # rows of a group that are kept


def hash_salt(salt: str) -> np.uint64:
    """A question's salt as a number."""
    return np.uint64(int.from_bytes(hashlib.blake2b(salt.encode(), digest_size=8).digest(), "big"))


class BoundingBuffers(NamedTuple):
    """What `bound_contributions` writes on, the next time again: fresh memory would take as long as the work.

    Each group of each unit has a place. `place` says that of a row, `found` which group it is and above that its size,
    `how` which of its rows are kept, `turn` where their choice stands. `kept` are the numbers of the rows kept.
    """

    kept: NDArray[np.int32]
    place: NDArray[np.int32]
    found: NDArray[np.int64]
    how: NDArray[np.uint8]
    turn: NDArray[np.int32]

    @classmethod
    def of(cls, rows: int) -> BoundingBuffers:
        """A desk for so many rows."""
        kept, place, turn = np.empty((3, rows + 1), np.int32)
        return cls(kept, place, np.empty(rows + 1, np.int64), np.empty(rows + 1, np.uint8), turn)

    def for_rows(self, rows: int) -> BoundingBuffers:
        """This one, or a larger one if it is too small."""
        return self if len(self.kept) > rows else BoundingBuffers.of(rows)


@njit(inline="always")
def _mix_bits(x: Any) -> Any:
    """A bijection of 64 bits in which every bit of `x` moves about half of the others."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def _scale_to_range(number: Any, size: Any) -> Any:
    """The high half of a number as one of 0 to size - 1."""
    return np.int64(((number >> _HALF) * np.uint64(size)) >> _HALF)


@njit(inline="always")
def _divide_unsigned(number: Any, by: Any) -> Any:
    """Quotient and rest of numbers of 31 bits; quicker without signs."""
    one, other = np.uint32(number), np.uint32(by)
    return np.int64(one // other), np.int64(one % other)


@njit(nogil=True, cache=True, error_model="numpy")
def bound_contributions(
    unit: NDArray[np.int64],
    code: NDArray[Any],
    low: int,
    most_groups: int,
    most_rows: int,
    key: np.uint64,
    buffers: BoundingBuffers,
    units: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """Write the rows that are kept to the desk, in order, and return how many they are; -1 if units are out of order.

    At most as many rows as the desk is for, in the order of their units. `code` less `low` numbers the groups; a row
    with any other number is in none. Units and rows that are kept are added to those of their groups.
    """
    kept, place, found, how, turn = buffers
    count, sizes = unit.shape[0], units.shape[0]
    # Places are numbered on over all units, so that one before the unit's first is an earlier unit's. The last one is
    # that of rows in no group.
    place_of = np.full(sizes + 1, -1, np.int32)
    place_of[sizes] = count
    how[: count + 1] = _NONE
    free, row = np.int64(0), 0
    while row < count:
        who, first = unit[row], free
        while row < count and unit[row] == who:
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
        if row < count and unit[row] < who:
            return -1
        groups = int(free - first)
        if groups:
            number = _mix_bits(np.uint64(who) ^ key)
            step = min(most_groups, groups)
            at, rest = _divide_unsigned(groups - _scale_to_range(number, groups) - 1, step)
            whole, part = _divide_unsigned(groups, step)
            for _ in range(step):
                group = found[first + at]
                c, size = np.uint64(group & _LOW), group >> 32
                units[c] += 1
                rows[c] += min(size, most_rows)
                how[first + at] = _ALL
                if size > most_rows:
                    how[first + at] = _SOME
                    turn[first + at] = _scale_to_range(_mix_bits(number + np.uint64(at) + np.uint64(1)), size)
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


@njit(nogil=True, cache=True, error_model="numpy")
def bound_one_group(
    unit: NDArray[np.int64],
    most_rows: int,
    key: np.uint64,
    kept: NDArray[np.int32],
    units: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """What `bound_contributions` does where all rows are in one group, and keeps the same rows. -1 if out of order.

    Where `kept` is empty, rows are only counted.
    """
    count, row, many, people, total = unit.shape[0], 0, 0, 0, 0
    lists = kept.shape[0] > 0
    while row < count:
        who, first = unit[row], row
        row += 1
        while row < count and unit[row] == who:
            row += 1
        if row < count and unit[row] < who:
            return -1
        size = row - first
        people += 1
        if size <= most_rows:
            total += size
            if lists:
                for each in range(first, row):
                    kept[many] = each
                    many += 1
            continue
        total += most_rows
        if lists:
            now = _scale_to_range(_mix_bits(_mix_bits(np.uint64(who) ^ key) + np.uint64(1)), size)
            for each in range(first, row):
                now += most_rows
                now -= size * (now >= size)
                kept[many] = each
                many += now < most_rows
    units[0] += people
    rows[0] += total
    return many


@njit(nogil=True, cache=True)
def bound_rows_per_unit(
    unit: NDArray[np.int64],
    code: NDArray[Any],
    low: int,
    sizes: int,
    total: int,
    key: np.uint64,
    left: NDArray[np.int32],
) -> None:
    """The number of each row's group, from 0 to `sizes` - 1; -1 where it is in none, or is not among the `total` left.

    Rows are in the order of their units, as `bound_contributions` finds out.
    """
    count, i = unit.shape[0], 0
    while i < count:
        who, j, rows = unit[i], i, 0
        while j < count and unit[j] == who:
            c = np.int64(code[j]) - low
            if 0 <= c < sizes:
                left[j] = c
                rows += 1
            else:
                left[j] = -1
            j += 1
        if rows > total:
            place = _scale_to_range(_mix_bits(_mix_bits(np.uint64(who) ^ key)), rows)
            for row in range(i, j):
                if left[row] >= 0:
                    place += total
                    if place >= rows:
                        place -= rows
                    if place >= total:
                        left[row] = -1
        i = j


@njit(nogil=True, cache=True)
def add_by_group(
    code: NDArray[Any], low: int, kept: NDArray[np.int32], values: NDArray[Any], sums: NDArray[np.int64]
) -> None:
    """Add up the values of the rows that are kept, in each group."""
    for i in range(kept.shape[0]):
        row = kept[i]
        sums[np.int64(code[row]) - low] += np.int64(values[row])
