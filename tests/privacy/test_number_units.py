"""Ids of units: equal numbers for equal ids and for no others, or a refusal, whatever the ids come in."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.mechanisms import ClippedSum
from tacit.privacy.number_units import number_units

NAN, BIG = math.nan, 2**63
IDS = [
    st.integers(),
    st.text(),
    st.binary(),
    st.booleans(),
    st.floats(-(2.0**50), 2.0**50),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.dates(),
    st.datetimes(),
    st.tuples(st.text(max_size=1), st.integers(0, 2)),
]


def partition(ids):
    """Which rows have the same id, by comparing each two of them."""
    return [[j for j, other in enumerate(ids) if one == other] for one in ids]


def check(given_ids, ids):
    numbers = number_units(given_ids)
    assert numbers.dtype == np.int64 and partition(numbers.tolist()) == partition(ids)
    assert sorted(set(numbers.tolist())) == list(range(len(set(numbers.tolist()))))


@given(st.one_of(*map(st.lists, IDS)))
def test_rows_have_one_number_if_and_only_if_their_ids_are_equal(ids):
    twice = ids + ids
    check(twice, twice)
    array = np.empty(len(twice), dtype=object)
    array[:] = twice
    check(array, twice)


@pytest.mark.parametrize("ids", [[1, BIG, BIG + 1], ["ann", "ann\0", "ann"], [b"a", b"a\0"], [("a", 1), ("a", 2)]])
def test_ids_that_a_conversion_to_an_array_would_merge_are_apart(ids):
    check(ids, ids)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**62, 2**62 + 1, 2**62]),
        np.array([BIG, BIG + 1, BIG], dtype=np.uint64),
        np.array(["b", "a", "b"]),
        np.array([0.0, -0.0, 0.5]),
        np.array([True, False, True]),
        np.array(["2020-01-01", "2020-01-02", "2020-01-01"], dtype="M8[ns]"),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Series([BIG, BIG + 1, BIG], dtype="UInt64"),
        pd.Series(["b", "a", "b"], dtype="string"),
        pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", "2020-01-02"], utc=True)),
        pa.chunked_array([[2**62, 2**62 + 1], [2**62]]),
        pa.array(["b", "a", "b"]).dictionary_encode(),
        [np.int64(1), 2, np.int64(1)],
        range(3),
    ],
)
def test_columns_of_any_kind_are_numbered_by_their_values(ids):
    check(ids, ids.tolist() if isinstance(ids, np.ndarray) else list(ids))


MISSING = [
    [1, None, 2],
    ["a", NAN],
    [1.0, NAN],
    [Decimal(1), Decimal("sNaN")],
    [("a", 1), ("b", None)],
    [np.datetime64("2020-01-01"), np.datetime64("NaT")],
    np.array([1.0, NAN], dtype=np.float32),
    np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    np.ma.masked_array([1, 2], mask=[True, False]),
    pd.Series([3, NAN, 1, 3, NAN], dtype=object),
    pd.Series([1, None], dtype="Int64"),
    pd.Series(["a", None], dtype="category"),
    pd.Series([pd.Timestamp("2020-01-02"), pd.NaT], dtype=object),
    pa.array([2**53 + 1, None]),
    pa.array(["a", None]),
]


@pytest.mark.parametrize("ids", MISSING)
def test_rows_whose_id_is_missing_are_refused(ids):
    with pytest.raises(ParameterError, match="rows whose id is missing"):
        number_units(ids)


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        ([1, "1"], "several types: int, str"),
        ([1, 1.0], "several types: float, int"),
        ([1, True], "several types: bool, int"),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], "several types: date, datetime"),
        ([(1, "a"), ("1", "a")], "several types: int, str"),
        ([(1,), (1, 2)], "tuples of several lengths"),
        ([2.0**53, 1.0], "floats so large that different integers are one of them"),
        (np.array([2**24], dtype=np.float32), "floats so large that different integers are one of them"),
        ([object(), object()], "ids of the type object"),
        ([[1], [2]], "ids of the type list"),
        (np.zeros((2, 2)), r"has shape \(2, 2\)"),
        ("ann", "is a single str"),
        (5, "is a single int"),
    ],
)
def test_ids_that_may_merge_or_split_persons_are_refused(ids, what):
    with pytest.raises(ParameterError, match=what):
        number_units(ids)


def test_a_clipped_sum_keeps_persons_apart():
    # Three units of one row each: as two units, one of them would have a norm of 2.
    mechanism = ClippedSum(epsilon=1, groups=1)
    profile = mechanism.profile([1, BIG, BIG + 1], [0, 0, 0], [1, 1, 1])
    assert int(profile.units[0, 0]) == 3
    with pytest.raises(ParameterError, match="unit: has rows whose id is missing"):
        mechanism.profile([1, None], [0, 0], [1, 1])


def test_ids_of_a_class_with_equality_and_no_ids_at_all():
    assert number_units([UUID(int=1), UUID(int=1)]).tolist() == [0, 0]
    assert number_units([]).tolist() == []
