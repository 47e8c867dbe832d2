"""The compiled choice keeps what its theorem says, row for row."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.support.counts import FULL

from tacit.engines.bound_contributions import (
    BoundingBuffers,
    UnitRuns,
    add_by_group,
    bound_contributions,
    bound_few_groups,
    bound_rows_per_unit,
    find_runs,
    hash_salt,
)

EXAMPLES = 2000 if FULL else 25
WORD = 2**64
INT64 = 2**63

# Rows of units, each with the number of its group; 3 to 5 and less than -2 are no groups.
rows = st.lists(st.tuples(st.sampled_from([-INT64, -7, 0, 1, 2, INT64 - 1]), st.integers(-4, 5)), max_size=60)
caps = st.one_of(st.integers(1, 4), st.just(2**62))


def mixed(x: int) -> int:
    """The finalizer of splitmix64, on Python's integers."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def place(number: int, size: int) -> int:
    return (number >> 32) * size >> 32


def by_the_theorem(some: list[tuple[int, int]], known: range, k: int, r: int, salt: str) -> list[int]:
    """The numbers of the rows that are kept: `some` are in the order of their units."""
    of_unit: dict[int, list[int]] = defaultdict(list)
    for number, (unit, group) in enumerate(some):
        if group in known:
            of_unit[unit].append(number)
    kept = []
    for unit, own in of_unit.items():
        groups = list(dict.fromkeys(some[number][1] for number in own))
        count = len(groups)
        h = mixed(unit % WORD ^ int(hash_salt(salt)))
        for s, group in enumerate(groups, 1):
            if count > k and (s * k + place(h, count)) % count >= k:
                continue
            members = [number for number in own if some[number][1] == group]
            n = len(members)
            g = place(mixed((h + s) % WORD), n)
            kept += [row for p, row in enumerate(members, 1) if n <= r or (p * r + g) % n < r]
    return sorted(kept)


def runs_of(unit: np.ndarray) -> UnitRuns:
    buffers = BoundingBuffers.of(len(unit))
    many = find_runs(unit, buffers.who, buffers.ends)
    return UnitRuns(buffers.who[:many], buffers.ends[:many])


def chosen(some: list[tuple[int, int]], known: range, k: int, r: int, salt: str, kind: type = np.int64) -> list[int]:
    """The same by the compiled loop. What it counts is checked on the way."""
    unit = np.array([unit for unit, _ in some], np.int64)
    code = np.array([group for _, group in some], kind)
    buffers, units, counts = BoundingBuffers.of(len(some)), *np.zeros((2, len(known)), np.int64)
    many = bound_contributions(runs_of(unit), code, known.start, k, r, hash_salt(salt), buffers, units, counts)
    found = buffers.kept[:many].tolist()
    if k >= len(known):
        few, more = BoundingBuffers.of(len(some)).kept, np.zeros((2, len(known)), np.int64)
        assert bound_few_groups(runs_of(unit), code, known.start, r, hash_salt(salt), few, *more) == many
        assert few[:many].tolist() == found and more.tolist() == [units.tolist(), counts.tolist()]
    pairs = {some[number] for number in found}
    assert units.tolist() == [sum(group == g for _, g in pairs) for group in known]
    assert counts.tolist() == [sum(some[number][1] == group for number in found) for group in known]
    return found


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(some=rows, k=caps, r=caps, salt=st.sampled_from(["", "salt", "another"]))
def test_the_loop_keeps_the_rows_that_the_theorem_names(some, k, r, salt):
    some = sorted(some, key=lambda row: row[0])
    known = range(-2, 3)
    assert chosen(some, known, k, r, salt) == by_the_theorem(some, known, k, r, salt)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_groups_may_be_numbered_in_fewer_bytes(kind):
    some = [(unit, (unit * unit + i * 3) % 11 - 5) for unit in range(40) for i in range(unit)]
    known = range(-4, 5)
    assert chosen(some, known, 2, 3, "x", kind) == by_the_theorem(some, known, 2, 3, "x")


def test_a_desk_may_be_used_again_whatever_it_was_used_for():
    some = [(unit, (unit * unit + i * 3) % 11 - 5) for unit in range(40) for i in range(unit)]
    unit, code = (np.array(column) for column in zip(*some, strict=True))
    args = (-4, 2, 3, hash_salt("x"))
    fresh, used = BoundingBuffers.of(len(some)), BoundingBuffers.of(2 * len(some))
    for array in used:
        array[:] = 99
    for salt in ("a", "b"):
        bound_contributions(runs_of(unit), code, -4, 3, 1, hash_salt(salt), used, *np.zeros((2, 9), np.int64))
    counts = [np.zeros((2, 9), np.int64) for _ in range(2)]
    many = [
        bound_contributions(runs_of(unit), code, *args, buffers, *count)
        for buffers, count in zip((fresh, used), counts, strict=True)
    ]
    assert many[0] == many[1]
    assert (fresh.kept[: many[0]] == used.kept[: many[0]]).all()
    assert (counts[0] == counts[1]).all()


def test_a_desk_has_one_place_more_than_rows():
    # The last one is that of rows in no group.
    buffers = BoundingBuffers.of(5)
    assert {len(array) for array in buffers} == {6}
    assert buffers.for_rows(5) is buffers
    assert len(buffers.for_rows(6).found) == 7


def test_no_rows_are_no_rows():
    assert chosen([], range(3), 1, 1, "salt") == []


def test_numbers_at_the_ends_of_64_bits_are_not_taken_for_groups():
    # 2^63 - 4 is group 0. The difference of -2^63 to it is -2^64 + 4, which is 4 in 64 bits: beyond the groups 0 to 3.
    known = range(INT64 - 4, INT64)
    some = [(1, INT64 - 1), (1, -INT64), (1, 0), (2, -INT64), (2, INT64 - 4)]
    assert chosen(some, known, 9, 9, "salt") == [0, 4]


def test_every_group_and_every_row_of_it_has_the_same_chance():
    # 40,000 units of 7 groups with 5 rows each, 3 groups and 2 rows of each kept: each group in 3/7 of the units, each
    # row in 6/35. 42 two-sided binomial tests at 1e-11 each: a false alarm in 1e-9. A chance that is a tenth more is
    # seen in both.
    units, k, r = 40_000, 3, 2
    unit = np.repeat(np.arange(units) * 7919 - 10**6, 35)
    code = np.tile(np.arange(35) % 7, units)
    buffers, counts, more = BoundingBuffers.of(len(unit)), *np.zeros((2, 7), np.int64)
    many = bound_contributions(runs_of(unit), code, 0, k, r, hash_salt("salt"), buffers, counts, more)
    assert many == units * k * r
    of_row = np.bincount(buffers.kept[:many] % 35, minlength=35)
    for found, chance in ((counts, k / 7), (of_row, k * r / 35)):
        low, high = binom.ppf(0.5e-11, units, chance), binom.isf(0.5e-11, units, chance)
        assert all(low <= count <= high for count in found)
        assert not low <= 1.1 * chance * units <= high


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(some=rows, total=caps, salt=st.sampled_from(["", "salt"]))
def test_of_all_rows_of_a_unit_those_are_left_that_the_theorem_names(some, total, salt):
    some = sorted(some, key=lambda row: row[0])
    known = range(-2, 3)
    left = np.empty(len(some), np.int32)
    unit, code = np.array([u for u, _ in some], np.int64), np.array([g for _, g in some], np.int64)
    bound_rows_per_unit(runs_of(unit), code, known.start, len(known), total, hash_salt(salt), left)
    sizes = Counter(u for u, g in some if g in known)
    met: Counter[int] = Counter()
    wanted = []
    for u, g in some:
        met[u] += g in known
        n, f = sizes[u], place(mixed(mixed(u % WORD ^ int(hash_salt(salt)))), sizes[u])
        is_left = g in known and (n <= total or (met[u] * total + f) % n < total)
        wanted.append(g - known.start if is_left else -1)
    assert left.tolist() == wanted


def test_values_are_added_to_the_groups_of_the_rows_that_are_kept():
    # Rows 1, 2 and 4, of the groups 5, 6 and 5: 20 + 40 and 30.
    sums = np.zeros(2, np.int64)
    add_by_group(
        np.array([5, 5, 6, 6, 5]), 5, np.array([1, 2, 4], np.int32), np.array([10, 20, 30, 35, 40], np.int8), sums
    )
    assert sums.tolist() == [60, 30]
