"""A release as bytes: what was stored comes back as it was, keys with their types."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.answers.stored import Release, pack, unpack

keys = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=8),
    st.dates(),
    st.sampled_from(["2025-01-01", "null", "true", "1", '{"date":"2025-01-01"}', "\U0001f600"]),
)
groups = st.lists(st.lists(keys, max_size=3).map(tuple), max_size=4)
numbers = st.lists(st.lists(st.one_of(st.integers(-9, 9), st.integers(-(2**200), 2**200)), max_size=4), max_size=3)


def typed(release: Release) -> list[tuple[type, ...]] | None:
    """The types of the keys: in Python 1 == True."""
    return None if release.groups is None else [tuple(type(key) for key in group) for group in release.groups]


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.builds(Release, st.one_of(st.none(), groups), numbers))
def test_what_was_stored_comes_back(release: Release) -> None:
    again = unpack(pack(release))
    assert again == release
    assert typed(again) == typed(release)
    assert pack(again) == pack(release)


def test_public_keys_are_not_stored_and_no_private_keys_is_not_none():
    assert unpack(pack(Release(None, [[3]]))).groups is None
    assert unpack(pack(Release([], [[]]))).groups == []


def test_a_text_that_looks_like_a_date_stays_a_text():
    day = datetime.date(2025, 1, 1)
    assert unpack(pack(Release([("2025-01-01",), (day,)], []))).groups == [("2025-01-01",), (day,)]


def test_equal_releases_are_equal_bytes():
    assert pack(Release([("A", 1)], [[2]])) == b'{"groups":[["A",1]],"parts":[[2]]}'
