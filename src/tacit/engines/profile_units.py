"""What each unit adds, by its norm, in one pass over rows that lie together by unit. Compiled: needs numba.

**Theorem.** Where the rows of all units add at most 2^62 in size, over all vectors, every number here is exact. Proof.
Entries, norms and their sums are at most 2^62, and machine integers are exact modulo 2^64 on the way to them. The share
floor(|x| 2^20 / N) of a norm N is computed in one of three ways. For N < 2^32, in doubles: with a = |x| 2^20 <= 2^52
and k the least integer that is not below a/N, a quotient that is no integer is at most k - 1/N. It would be rounded to
k only if 1/N <= k/2^53, but k N < a + N < 2^53. For N < 2^42, a is below 2^62. Otherwise digit by digit: the remainder
is below N, and twice it below 2^63. A share that is rounded up is one more where its product with N, which is exact
modulo 2^64, is not a: they differ by less than N. The sum of its squares is below 2^42, as a vector has no more than
2^20 entries, and the root of such an integer is rounded up exactly in doubles. The root is at most 2^20 + 2^10 + 1, so
its product with N / 2^20 is below 2^63.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.engines.bound_contributions import UnitRuns
from tacit.privacy.contribution_profile import BITS

MAX_NORM = 2**62
"""The most that the rows of all units may add, in size."""

_DOUBLES, _SHIFTED = 2**32, 2**42
_STEPS = 2**BITS


class RowNumbers(NamedTuple):
    """What rows add. The entry of a unit in a group is `once` + `each` times its rows there + the sum of a column.

    `column` is that of each vector among the numbers, which have a row for each column, or -1 where it has none.
    """

    once: NDArray[np.int64]
    each: NDArray[np.int64]
    column: NDArray[np.int64]
    numbers: NDArray[np.int64]


class ProfileTotals(NamedTuple):
    """Sums by place of the norm, group and vector, and the units of each place; and what the loop writes on.

    `units` are those of each place of the L1 norm and class of ratios, `whole` and `scaled` have a first index for the
    norm: L1 alone where there is one class, or L1 and L2.

    `rows` and `sums` are those of the unit in each group, 0 between units; one more group is that of rows in none.
    `met` are its groups, and `entries` its entries in these.
    """

    units: NDArray[np.int64]
    whole: NDArray[np.int64]
    scaled: NDArray[np.int64]
    rows: NDArray[np.int64]
    sums: NDArray[np.int64]
    met: NDArray[np.int64]
    entries: NDArray[np.int64]

    @classmethod
    def none(cls, limits: int, ratios: int, places: int, groups: int, vectors: int) -> ProfileTotals:
        """No units, with so many limits of norms, classes of ratios, places of clips, groups and vectors."""
        norms = 2 if ratios > 1 else 1
        whole, scaled = (np.zeros((norms, places, groups, vectors), np.int64) for _ in range(2))
        rows, met = np.zeros((2, groups + 1), np.int64)
        sums, entries = (np.zeros((groups + 1, vectors), np.int64) for _ in range(2))
        return cls(np.zeros((limits + 1, ratios), np.int64), whole, scaled, rows, sums, met, entries)


@njit(inline="always")
def find_place(norm: Any) -> Any:
    """How many of 1, 2, 3, 4, 6, 8, 12, ... a norm of at least 1 is above."""
    octave = np.int64(math.frexp(np.float64(norm - 1))[1])
    if octave and norm - 1 < np.int64(1) << (octave - 1):  # a double that was rounded up to a power of two
        octave -= 1
    if octave < 2:
        return octave
    return 2 * octave - 2 + np.int64(norm > np.int64(3) << (octave - 2))


@njit(inline="always")
def find_share(size: Any, norm: Any) -> Any:
    """The share of a norm in steps of 2^-BITS, rounded down."""
    if norm < _DOUBLES:
        return np.int64(np.float64(size << BITS) / np.float64(norm))
    if norm < _SHIFTED:
        return (size << BITS) // norm
    share = np.int64(size >= norm)
    rest = size - norm * share
    for _ in range(BITS):
        rest <<= 1
        above = np.int64(rest >= norm)
        rest -= norm * above
        share = (share << 1) | above
    return share


@njit(inline="always")
def find_second_norm(entries: Any, many: Any, norm: Any) -> Any:
    """An integer that is no less than the L2 norm of so many rows of entries (`privacy/contribution_profile.py`)."""
    squares = np.int64(0)
    for i in range(many):
        for vector in range(entries.shape[1]):
            size = abs(entries[i, vector])
            share = find_share(size, norm)
            share += np.int64(share * norm != size << BITS)
            squares += share * share
    root = np.int64(math.ceil(math.sqrt(np.float64(squares))))
    low = root * (norm & (_STEPS - 1))
    return min(norm, root * (norm >> BITS) + ((low + _STEPS - 1) >> BITS))


@njit(nogil=True, cache=True, error_model="numpy")
def profile_units(
    runs: UnitRuns,
    code: NDArray[Any],
    low: int,
    place_of: NDArray[np.int32],
    added: RowNumbers,
    totals: ProfileTotals,
) -> None:
    """Add the units of a stretch to the totals.

    `place_of` says the group of each code less `low`; the last one is for all other codes. Its last value, one above
    all groups, is that of rows in none.
    """
    once, each, column, numbers = added
    units, whole, scaled, rows, sums, met, entries = totals
    codes, columns, vectors = place_of.shape[0] - 1, numbers.shape[0], once.shape[0]
    groups, last = rows.shape[0] - 1, whole.shape[1] - 1
    limits, ratios = units.shape[0] - 1, units.shape[1]
    row = 0
    for run in range(runs.ends.shape[0]):
        many, end = np.int64(0), runs.ends[run]
        while row < end:
            less = np.int64(code[row]) - low
            group = np.int64(place_of[less if np.uint64(less) < np.uint64(codes) else codes])
            met[many] = group
            many += np.int64(rows[group] == 0) & np.int64(group < groups)
            rows[group] += 1
            for i in range(columns):
                sums[group, i] += numbers[i, row]
            row += 1
        norm = np.int64(0)
        for i in range(many):
            group = met[i]
            for vector in range(vectors):
                entry = once[vector] + each[vector] * rows[group]
                if column[vector] >= 0:
                    entry += sums[group, column[vector]]
                entries[i, vector] = entry
                norm += abs(entry)
            rows[group] = 0
            for vector in range(columns):
                sums[group, vector] = 0
        if norm:
            place, ratio = min(find_place(norm), limits), np.int64(0)
            second, second_place = norm, place
            if ratios > 1:
                second = find_second_norm(entries, many, norm)
                second_place = min(find_place(second), limits)
                ratio = np.int64(min(max(int(place - second_place) // 2 - 1, 0), ratios - 1))
            units[place, ratio] += 1
            for which in range(whole.shape[0]):
                size = second if which else norm
                at = min(second_place if which else place, last)
                for i in range(many):
                    group = met[i]
                    for vector in range(vectors):
                        entry = entries[i, vector]
                        share = find_share(abs(entry), size)
                        whole[which, at, group, vector] += entry
                        scaled[which, at, group, vector] += share if entry > 0 else -share
