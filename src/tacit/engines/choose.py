"""What is kept of each unit, in one pass over rows that lie together by unit. Compiled: needs numba.

**Theorem.** Let a unit's rows come in an order that follows from those rows alone. Its D groups are numbered 1 to D as
they first appear, and number s is kept where (s k + h) mod D < k, with h a hash of the salt and the unit; all of them
where D <= k. Of the n > r rows of a group, numbered as they come, number p is kept where (p r + g) mod n < r, with g
made of the hash and of the group's number. Then what is kept of a unit is a function of the unit's own rows, of the
question and of its salt: adding or removing a unit changes what is kept of no other. At most k groups and r rows in
each are kept, evenly spaced, and fairly: over the hash, each group is kept with probability min(1, k/D), each row of a
kept group with min(1, r/n), up to the unevenness of a place made of 32 bits.
Proof. Nothing but the salt, the unit and its rows is looked at. From s to s + 1 the sum s k + h passes a multiple of D
just where the new remainder is below k, and from s = 0 to D it passes k of them. For a given s, just k of the D
remainders of h keep it. The same holds of rows.

**Theorem (all rows).** `cut` first leaves at most T rows of a unit, whatever their groups: of n > T rows that are in a
group, numbered as they come, number p where (p T + f) mod n < T, with f made of the hash. That too is a function of the
unit's own rows, of the question and of its salt, and fair: each row is left with probability min(1, T/n), up to the
unevenness of a place made of 32 bits. Proof: as above, with the whole unit in the place of a group; what is left of a
unit is in an order that follows from its rows alone, so the first theorem holds of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_HALF = np.uint64(32)


def key_of(salt: str) -> np.uint64:
    """A question's salt as a number."""
    return np.uint64(int.from_bytes(hashlib.blake2b(salt.encode(), digest_size=8).digest(), "big"))


@njit(inline="always")
def _mixed(x: Any) -> Any:
    """A bijection of 64 bits in which every bit of `x` moves about half of the others."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def _place(number: Any, size: Any) -> Any:
    """The high half of a number as one of 0 to size - 1."""
    return np.int64(((number >> _HALF) * np.uint64(size)) >> _HALF)


@njit(nogil=True, cache=True)
def choose(
    unit: NDArray[np.int64],
    code: NDArray[Any],
    low: int,
    most_groups: int,
    most_rows: int,
    key: np.uint64,
    kept: NDArray[np.bool_],
    units: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> bool:
    """Mark the rows that are kept, and count the units and rows of each group; False if rows are out of order.

    Rows are in the order of their units. `code` less `low` numbers the groups; a row with any other number is in none.
    """
    count, sizes = unit.shape[0], units.shape[0]
    slot = np.zeros(sizes, np.int64)  # the number of a group in its unit, plus `base`
    size, first, turn = np.empty(sizes, np.int64), np.empty(sizes, np.int64), np.empty(sizes, np.int64)
    chosen = np.empty(sizes, np.bool_)
    base, i = 1, 0
    while i < count:
        who, groups, many, j = unit[i], 0, False, i
        while j < count and unit[j] == who:
            c = np.int64(code[j]) - low
            if 0 <= c < sizes:
                s = slot[c] - base
                if s < 0:
                    slot[c] = base + groups
                    size[groups], first[groups] = 1, c
                    groups += 1
                else:
                    size[s] += 1
                    many |= size[s] > most_rows
            j += 1
        if j < count and unit[j] < who:
            return False
        number = _mixed(np.uint64(who) ^ key)
        step = min(most_groups, groups)
        place = _place(number, groups)
        for s in range(groups):
            place += step
            if place >= groups:
                place -= groups
            chosen[s] = place < most_groups
            units[first[s]] += chosen[s]
        if many:
            for s in range(groups):
                turn[s] = _place(_mixed(number + np.uint64(s) + np.uint64(1)), size[s])
        for row in range(i, j):
            c = np.int64(code[row]) - low
            if c < 0 or c >= sizes:
                kept[row] = False
                continue
            s = slot[c] - base
            keep = chosen[s]
            if many and size[s] > most_rows:
                turn[s] += most_rows
                if turn[s] >= size[s]:
                    turn[s] -= size[s]
                keep &= turn[s] < most_rows
            kept[row] = keep
            rows[c] += keep
        base += groups
        i = j
    return True


@njit(nogil=True, cache=True)
def cut(
    unit: NDArray[np.int64],
    code: NDArray[Any],
    low: int,
    sizes: int,
    total: int,
    key: np.uint64,
    left: NDArray[np.int32],
) -> None:
    """The number of each row's group, from 0 to `sizes` - 1; -1 where it is in none, or is not among the `total` left.

    Rows are in the order of their units, as `choose` finds out.
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
            place = _place(_mixed(_mixed(np.uint64(who) ^ key)), rows)
            for row in range(i, j):
                if left[row] >= 0:
                    place += total
                    if place >= rows:
                        place -= rows
                    if place >= total:
                        left[row] = -1
        i = j


@njit(nogil=True, cache=True)
def add(code: NDArray[Any], low: int, kept: NDArray[np.bool_], values: NDArray[Any], sums: NDArray[np.int64]) -> None:
    """Add up the values of the rows that are kept, in each group."""
    for row in range(code.shape[0]):
        if kept[row]:
            sums[np.int64(code[row]) - low] += np.int64(values[row])
