"""Linkage: unique keys in both tables are people found, and nothing else is claimed."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.attacks.linkage import expected_uniqueness, link_tables
from tacit.errors import ParameterError

pytestmark = pytest.mark.slow

KEY = ["postcode", "born", "sex"]

rows = st.lists(
    st.fixed_dictionaries({"a": st.none() | st.integers(0, 3), "b": st.none() | st.sampled_from("xy")}),
    min_size=1,
    max_size=25,
)


def naive(released, public, on):
    """The definition, word by word."""
    mine = [tuple(row[name] for name in on) for row in released]
    known = [tuple(row[name] for name in on) for row in public]
    times, persons = Counter(mine), Counter(known)
    pairs, ambiguous, unmatched, missing = [], 0, 0, 0
    for number, key in enumerate(mine):
        if None in key:
            missing += 1
        elif persons[key] == 0:
            unmatched += 1
        elif persons[key] == 1 and times[key] == 1:
            pairs.append([number, known.index(key)])
        else:
            ambiguous += 1
    sizes = Counter(times[key] for key in mine if None not in key)
    return pairs, ambiguous, unmatched, missing, dict(sizes)


@given(rows, rows, st.sampled_from([["a"], ["b"], ["a", "b"], ["b", "a"]]))
def test_it_is_the_definition(released, public, on):
    # a column that is NULL throughout has no type of its own, and matches nothing
    found = link_tables(released, public, on)
    pairs, ambiguous, unmatched, missing, sizes = naive(released, public, on)
    assert found.pairs.tolist() == pairs
    assert (found.ambiguous, found.unmatched, found.missing) == (ambiguous, unmatched, missing)
    assert dict(found.sizes) == sizes
    assert found.link_count + found.ambiguous + found.unmatched + found.missing == len(released)


@given(rows)
def test_a_table_linked_to_itself_gives_away_whoever_is_alone(table):
    # whoever is alone with a whole key is found, and rightly
    found = link_tables(table, table, ["a", "b"], truth=range(len(table)))
    assert found.link_count == found.right == found.sizes.get(1, 0)


def town(people: int, postcodes: int, seed: int) -> pa.Table:
    """People with uniform keys: a postcode, a birth date in 80 years, a sex."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("1940-01-01")
    return pa.table(
        {
            "name": [f"person {i}" for i in range(people)],
            "postcode": rng.integers(0, postcodes, people).astype(str),
            "born": pa.array(start + rng.integers(0, 29_200, people), type=pa.date32()),
            "sex": rng.choice(["f", "m"], people),
        }
    )


def test_most_of_a_city_is_unique_and_the_share_is_what_the_theorem_says():
    # 50,000 people, 10 postcodes of 58,400 keys each: (1 - 1/584,000)^49,999 = 0.918. The share of unique people has a
    # standard error below 2 sqrt(p (1 - p)/n) = 0.0025 (they depend on each other a little); 6.5 of them are 0.016.
    people = 200_000 if FULL else 50_000
    public = town(people, 10, seed=1)
    order = np.random.default_rng(2).permutation(people)
    found = link_tables(public.take(order).drop_columns(["name"]), public, KEY, truth=order)
    expected = expected_uniqueness(people, 10 * 29_200 * 2)
    error = 2 * math.sqrt(expected * (1 - expected) / people)
    assert abs(found.share - expected) < 6.5 * error
    assert (
        abs(found.share - expected_uniqueness(people, 5 * 29_200 * 2)) > 6.5 * error
    )  # power: half the keys is another share
    assert found.right == found.link_count  # every link is true where the public table is complete
    assert found.unmatched == 0
    assert found.anonymity == 1


def test_an_incomplete_public_table_makes_wrong_links():
    # Two people share a key; the public table knows only one. The other's row, alone in the sample, is linked wrongly.
    public = [{"k": 1}]
    found = link_tables([{"k": 1}], public, ["k"], truth=[-1])
    assert found.link_count == 1 and found.right == 0
    assert "0 of them rightly" in str(found)


def test_nulls_never_match():
    found = link_tables({"k": [None, 1]}, {"k": [None, 1]}, ["k"])
    assert found.pairs.tolist() == [[1, 1]]
    assert found.missing == 1


def test_nans_never_match():
    found = link_tables({"k": [math.nan, 1.0]}, {"k": [math.nan, 1.0]}, ["k"])
    assert found.pairs.tolist() == [[1, 1]]
    assert found.missing == 1


def test_two_rows_of_one_key_are_ambiguous_and_two_anonymous():
    found = link_tables({"k": [7, 7]}, {"k": [7]}, ["k"])
    assert (found.link_count, found.ambiguous, found.anonymity) == (0, 2, 2)
    assert found.verdict == "nothing linked"


def test_every_kind_of_table_is_read():
    columns = {"postcode": ["4051", "4052"], "born": [datetime.date(1961, 3, 7)] * 2, "sex": ["f", "m"]}
    kinds = [
        pa.table(columns),
        pd.DataFrame(columns),
        pd.DataFrame(columns, index=[5, 9]).astype({"sex": "category"}),
        pl.DataFrame(columns),
        columns,
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    ]
    for one in kinds:
        for other in kinds:
            assert link_tables(one, other, KEY).pairs.tolist() == [[0, 0], [1, 1]]


def test_numbers_of_different_widths_match():
    found = link_tables({"k": pa.array([1, 2], pa.int16())}, {"k": pa.array([2, 3], pa.int64())}, ["k"])
    assert found.pairs.tolist() == [[1, 0]]


def test_many_wide_columns_still_fit():
    # 8 columns of 1,000 values are 10^24 combinations, more than 64 bits hold
    rng = np.random.default_rng(3)
    table = {f"c{i}": rng.integers(0, 1000, 3000) for i in range(8)}
    found = link_tables(table, table, list(table), truth=range(3000))
    assert found.link_count == found.right == 3000


@pytest.mark.parametrize(
    ("released", "public", "on", "name"),
    [
        ([], [{"k": 1}], ["k"], "released"),
        ([{"k": 1}], 5, ["k"], "public"),
        ([{"k": 1}], [{"k": 1}], ["q"], "on"),
        ([{"k": 1}], [{"k": 1}], [], "on"),
        ([{"k": 1}], [{"k": "1"}], ["k"], "on"),
        ([{"k": [1]}], [{"k": [1]}], ["k"], "on"),
    ],
)
def test_what_cannot_be_linked_is_a_clear_error(released, public, on, name):
    with pytest.raises(ParameterError) as caught:
        link_tables(released, public, on)
    assert caught.value.name == name and caught.value.fix


def test_a_truth_of_another_length_is_a_clear_error():
    with pytest.raises(ParameterError, match="truth"):
        link_tables([{"k": 1}], [{"k": 1}], ["k"], truth=[0, 1])


def test_words_json_and_a_picture(tmp_path):
    table = town(300, 1, seed=4)
    found = link_tables(table, table, ["born", "sex"])
    assert "re-identified by born, sex" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["rows"] == 300
    found.plot(tmp_path / "sizes.svg")
    link_tables(table, table, ["sex"]).plot(tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size > 1000


def test_one_column_may_be_a_word():
    assert link_tables({"k": [1]}, {"k": [1]}, "k").link_count == 1


def test_unique_shares():
    # 23 people, 365 birthdays: each is alone with (364/365)^22 = 0.941
    assert expected_uniqueness(23, 365) == pytest.approx((364 / 365) ** 22)
    assert expected_uniqueness(1, 1) == 1
