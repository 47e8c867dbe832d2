"""Stretches of whole units, and sums that leave 64 bits nowhere."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.engines import totals, unit_stretches
from tacit.engines.bound_contributions import (
    BoundingBuffers,
    UnitRuns,
    bound_contributions,
    bound_one_group,
    find_runs,
    hash_salt,
)
from tacit.engines.totals import ExactSums, GroupTotals, KeptRows, ValueCounts

pytestmark = pytest.mark.slow

EXAMPLES = 2000 if FULL else 25

sizes = st.lists(st.integers(0, 7), max_size=40)


def batches(units: list[int], lengths: list[int]) -> list[pa.RecordBatch]:
    """Rows of these units, numbered, cut at these lengths and at the end."""
    table = pa.table({"unit": pa.array(units, pa.int64()), "row": pa.array(range(len(units)), pa.int64())})
    cuts = [0, *(min(sum(lengths[: i + 1]), len(units)) for i in range(len(lengths))), len(units)]
    (whole,) = table.to_batches() or [pa.record_batch(table.to_pydict(), table.schema)]
    return [whole.slice(start, end - start) for start, end in pairwise(cuts)]


def runs_of(units: np.ndarray) -> UnitRuns:
    buffers = BoundingBuffers.of(len(units))
    many = find_runs(units, buffers.who, buffers.ends)
    assert many >= 0
    return UnitRuns(buffers.who[:many], buffers.ends[:many])


def in_order(stretch: unit_stretches.UnitStretch) -> bool:
    buffers = BoundingBuffers.of(stretch.rows.num_rows)
    try:
        stretch.find_runs(buffers)
    except RuntimeError:
        return False
    return True


def rows_of(stretch: unit_stretches.UnitStretch) -> list[int]:
    return stretch.rows.column(1).to_pylist()


@settings(max_examples=EXAMPLES, deadline=None)
@given(of_units=sizes, lengths=sizes)
def test_every_row_is_in_one_stretch_with_all_rows_of_its_unit(of_units, lengths):
    units = [unit for unit, size in enumerate(of_units) for _ in range(size)]
    stretches = list(unit_stretches.split_at_unit_boundaries(batches(units, lengths)))
    assert sorted(row for stretch in stretches for row in rows_of(stretch)) == list(range(len(units)))
    assert Counter(unit for stretch in stretches for unit in set(stretch.rows.column(0).to_pylist())) == dict.fromkeys(
        units, 1
    )
    assert all(in_order(stretch) for stretch in stretches)


@settings(max_examples=EXAMPLES, deadline=None)
@given(units=st.lists(st.integers(0, 9), min_size=2, max_size=40), lengths=sizes)
def test_where_units_are_out_of_order_a_stretch_is(units, lengths):
    stretches = list(unit_stretches.split_at_unit_boundaries(batches(units, lengths)))
    assert sorted(row for stretch in stretches for row in rows_of(stretch)) == list(range(len(units)))
    assert all(in_order(stretch) for stretch in stretches) == (units == sorted(units))


def test_the_first_and_last_units_of_some_batches_are_one_stretch():
    # 40 batches of three units of two rows each: the middle unit is a stretch. The 80 others wait, and are joined when
    # 5 or 6 are there: first of 5, then 6 at a time, the last 3 at the end.
    units = [unit for unit in range(120) for _ in range(2)]
    assert unit_stretches._MAX_HELD_SLICES == 4
    assert len(list(unit_stretches.split_at_unit_boundaries(batches(units, [6] * 40)))) == 40 + 1 + 12 + 1


def test_a_unit_of_more_rows_than_numbers_of_32_bits_is_refused(monkeypatch):
    monkeypatch.setattr(unit_stretches, "MAX_BATCH_ROWS", 9)
    assert sum(stretch.rows.num_rows for stretch in unit_stretches.split_at_unit_boundaries(batches([1] * 9, [4]))) == 9
    with pytest.raises(unit_stretches.DataError, match="more than two billion rows"):
        list(unit_stretches.split_at_unit_boundaries(batches([1] * 10, [4])))


edges = st.sampled_from([0, 1, -1, 2**31, -(2**31) - 1, 2**42, 2**62, -(2**62), 2**63 - 1, -(2**63)])
stretches_of_values = st.lists(st.lists(st.tuples(st.integers(0, 2), st.booleans(), edges), max_size=9), max_size=9)


@settings(max_examples=EXAMPLES, deadline=None)
@given(some=stretches_of_values, others=stretches_of_values)
def test_sums_are_those_of_integers_without_end(some, others):
    found = []
    wanted: Counter[int] = Counter({0: 0, 1: 0, 2: 0})
    for stretches in (some, others):
        sums = ExactSums(totals.zeros(), totals.zeros())
        sums.grow(3)
        for rows in stretches:
            kept = np.array([i for i, (_, is_kept, _) in enumerate(rows) if is_kept], np.int32)
            code, values = np.array([g for g, *_ in rows], np.int64), np.array([v for *_, v in rows], np.int64)
            sums.add(KeptRows(code, 0, kept), values)
            for group, is_kept, value in rows:
                wanted[group] += value if is_kept else 0
        found.append(sums)
    found[0].merge(found[1])
    assert found[0].of(np.arange(3)) == [wanted[0], wanted[1], wanted[2]]


@pytest.mark.parametrize("value", [2**40 - 1, -(2**40), 2**63 - 1, -(2**63)])
def test_many_stretches_do_not_fill_a_sum(value):
    # 2^10 rows a stretch: 2^50 each of the small ones, so that 2^12 of them are carried over; 2^73 of the large ones.
    sums, count, times = ExactSums(totals.zeros(1), totals.zeros(1)), 1 << 10, 1 << 13
    code, kept = np.zeros(count, np.int8), np.arange(count, dtype=np.int32)
    values = np.full(count, value, np.int64)
    for _ in range(times):
        sums.add(KeptRows(code, 0, kept), values)
    assert sums.of(np.arange(1)) == [value * count * times]


def test_narrow_numbers_are_weighed_by_their_type():
    # 10 numbers of two bytes weigh 10 * 2^15, whatever they are: none is looked at.
    sums = ExactSums(totals.zeros(1), totals.zeros(1))
    sums.add(KeptRows(np.zeros(10, np.int8), 0, np.arange(10, dtype=np.int32)), np.full(10, -(2**15), np.int16))
    assert sums.weight == 10 * 2**15 == -sums.of(np.arange(1))[0]


def test_lists_are_counted_when_they_have_doubled():
    # Six parts of 3 values each are 18 rows; beyond 4 they are counted, which leaves 3, or 6 once all are met.
    lists = ValueCounts(most=4)
    for part in range(6):
        lists.add(np.array([0, 0, 1]), pa.array([part % 2, None, part % 2], pa.int64()))
        assert lists.size <= 2 * 4
    assert lists.of(np.arange(3)) == [{0: 3, 1: 3}, {0: 3, 1: 3}, {}]


def test_totals_of_workers_that_have_met_different_groups_are_added_up():
    one, other = GroupTotals.none(1, 0), GroupTotals.none(1, 0)
    one.grow(1)
    other.grow(3)
    for some, kept in ((one, [0]), (other, [0, 1, 2])):
        some.rows[kept] += 5
        some.nulls[0][kept] += 2
        some.sums[0].add(KeptRows(np.array(kept), 0, np.arange(len(kept), dtype=np.int32)), np.full(len(kept), 7))
    one.merge(other)
    assert one.rows.tolist() == [10, 5, 5]
    assert one.nulls[0].tolist() == [4, 2, 2]
    assert one.sums[0].of(np.arange(3)) == [14, 7, 7]


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 9)), min_size=0, max_size=30),
    st.integers(1, 9),
    st.text(max_size=5),
)
def test_one_group_is_bounded_as_any_group_is(runs, most_rows, salt):
    units = np.array(sorted(unit for unit, size in runs for _ in range(size)), np.int64)
    key = hash_salt(salt)
    any_group, one_group, counted = (np.zeros((2, 1), np.int64) for _ in range(3))
    buffers = BoundingBuffers.of(len(units))
    code = np.zeros(len(units), np.int8)
    runs = runs_of(units)
    many = bound_contributions(runs, code, 0, 3, most_rows, key, buffers, *any_group)
    expected = buffers.kept[:many].tolist()
    kept = np.full(len(units) + 1, -1, np.int32)
    found = bound_one_group(runs, most_rows, key, kept, *one_group)
    are_all_kept = many == len(units)
    assert found == (-1 if are_all_kept else many)
    assert are_all_kept or kept[:many].tolist() == expected
    assert bound_one_group(runs, most_rows, key, kept[:0], *counted) == (-1 if are_all_kept else 0)
    assert any_group.tolist() == one_group.tolist() == counted.tolist()


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_runs_are_those_of_equal_units_in_order(units):
    buffers = BoundingBuffers.of(len(units))
    many = find_runs(np.array(units, np.int64), buffers.who, buffers.ends)
    if units != sorted(units):
        assert many == -1
    else:
        assert buffers.who[:many].tolist() == sorted(set(units))
        assert buffers.ends[:many].tolist() == [len(units) - units[::-1].index(unit) for unit in sorted(set(units))]


def last_rows(names: list[int], of_units: list[int]) -> list[pa.RecordBatch]:
    """The units with their last rows, three at a time."""
    columns = {"unit": pa.array(names, pa.int64()), "last": pa.array(np.cumsum(of_units, dtype=np.int64) - 1)}
    whole = pa.record_batch(columns)
    return [whole.slice(i, 3) for i in range(0, len(names), 3)]


@settings(max_examples=EXAMPLES, deadline=None)
@given(of_units=st.lists(st.integers(1, 7), max_size=40), lengths=sizes)
def test_numbered_rows_are_in_one_stretch_with_all_rows_of_their_unit_and_its_name(of_units, lengths):
    names = [7 * number - 3 for number in range(len(of_units))]
    units = [name for name, size in zip(names, of_units, strict=True) for _ in range(size)]
    numbered = [batch.select(["row", "unit"]) for batch in batches(units, lengths)]
    found = {}
    for stretch in unit_stretches.split_at_last_rows(numbered, last_rows(names, of_units)):
        runs, start = stretch.find_runs(BoundingBuffers.of(0)), 0
        for who, end in zip(runs.who.tolist(), runs.ends.tolist(), strict=True):
            assert who not in found
            assert set(stretch.rows.column(1).to_pylist()[start:end]) == {who}
            found[who] = stretch.rows.column(0).to_pylist()[start:end]
            start = end
        assert start == stretch.rows.num_rows
    assert found == {name: [row for row, unit in enumerate(units) if unit == name] for name in names}


@pytest.mark.parametrize(
    ("numbers", "sizes"), [([0, 2, 1], [3]), ([1, 2], [2]), ([0, 1, 2], [1, 1]), ([0, 1], [1, 2]), ([], [1]), ([0], [])]
)
def test_rows_that_are_not_those_of_the_units_are_noticed(numbers, sizes):
    rows = pa.record_batch({"row": pa.array(numbers, pa.int64())})
    with pytest.raises(RuntimeError):
        list(unit_stretches.split_at_last_rows([rows], last_rows(list(range(len(sizes))), sizes)))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.sampled_from([None, -127, 0, 1, 127])), max_size=30))
def test_narrow_numbers_are_added_up_without_those_that_stand_for_null(rows):
    kept = np.array([i for i, (_, is_kept, _) in enumerate(rows) if is_kept], np.int32)
    values = np.array([-128 if v is None else v for *_, v in rows], np.int8)
    sums, nulls = ExactSums(totals.zeros(3), totals.zeros(3)), totals.zeros(3)
    sums.add_narrow(KeptRows(np.array([g for g, *_ in rows], np.int64), 0, kept), values, nulls)
    own = [[v for g, is_kept, v in rows if g == group and is_kept] for group in range(3)]
    assert sums.of(np.arange(3)) == [sum(v for v in values if v is not None) for values in own]
    assert nulls.tolist() == [values.count(None) for values in own]
    whole, missing = ExactSums(totals.zeros(1), totals.zeros(1)), totals.zeros(1)
    whole.add_narrow(None, values, missing)
    every = [v for *_, v in rows]
    assert whole.of(np.arange(1)) == [sum(v for v in every if v is not None)] and missing[0] == every.count(None)
