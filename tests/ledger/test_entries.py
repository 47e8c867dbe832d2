from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.ledger.entries import COLUMNS, Entry, Kind, digest, from_values, seal, values

NOON = "2030-01-01T12:00:00.000000+00:00"
ENTRY = seal(Entry(7, NOON, Kind.RESERVE, who="ada", key="5eed", epsilon=3, spent_epsilon=9, loss="{}"))


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "hash"])
def test_the_hash_covers_every_field(name):
    value = getattr(ENTRY, name)
    other = Kind.REPEAT if name == "kind" else value + 1 if isinstance(value, int) else value + "x"
    assert digest(replace(ENTRY, **{name: other})) != ENTRY.hash


def test_the_hash_is_not_part_of_itself():
    assert digest(ENTRY) == ENTRY.hash == digest(replace(ENTRY, hash=""))


@given(st.text(), st.text(), st.text(), st.text())
def test_text_does_not_slip_from_one_field_into_the_next(who, key, other_who, other_key):
    same = (who, key) == (other_who, other_key)
    assert (digest(replace(ENTRY, who=who, key=key)) == digest(replace(ENTRY, who=other_who, key=other_key))) is same


def test_an_entry_survives_being_a_row():
    assert from_values(values(ENTRY)) == ENTRY


def test_a_kind_that_does_not_exist_is_a_value_error():
    row = list(values(ENTRY))
    row[COLUMNS.index("kind")] = "refund"
    with pytest.raises(ValueError, match="refund"):
        from_values(tuple(row))
