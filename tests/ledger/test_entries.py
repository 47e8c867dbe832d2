from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.filters import LARGEST, BudgetCharge
from tacit.ledger.entries import COLUMNS, Entry, EntryKind, add_hash, from_row, hash_entry, to_row

NOON = "2030-01-01T12:00:00.000000+00:00"
ENTRY = add_hash(
    Entry(
        sequence=7,
        time=NOON,
        kind=EntryKind.RESERVE,
        analyst="ada",
        month="2030-01",
        request="r-1",
        key="5eed",
        loss="{}",
        claim=3,
        shared=1,
        charge=BudgetCharge(1, 2, 3, 4),
        spent=BudgetCharge(5, 6, 7, 8),
        overall=BudgetCharge(9, 10, 11, 12),
        everyone=BudgetCharge(13, 14, 15, LARGEST),
        answer_digest="d",
        note="n",
    )
)


@pytest.mark.parametrize("at", range(len(COLUMNS) - 1), ids=COLUMNS[:-1])
def test_the_hash_covers_every_column(at):
    row = list(to_row(ENTRY))
    row[at] = "repeat" if COLUMNS[at] == "kind" else row[at] + 1 if isinstance(row[at], int) else row[at] + "x"
    assert hash_entry(from_row(tuple(row))) != ENTRY.hash


def test_the_hash_is_not_part_of_itself():
    assert COLUMNS[-1] == "hash"
    assert hash_entry(ENTRY) == ENTRY.hash == hash_entry(replace(ENTRY, hash=""))


def test_every_field_has_its_columns():
    # Four of the fields are costs, of four numbers each.
    assert len(COLUMNS) == len(set(COLUMNS)) == len(fields(Entry)) + 4 * 3 == len(to_row(ENTRY))


@given(st.text(), st.text(), st.text(), st.text())
def test_text_does_not_slip_from_one_field_into_the_next(analyst, month, other_who, other_month):
    same = (analyst, month) == (other_who, other_month)
    one, other = replace(ENTRY, analyst=analyst, month=month), replace(ENTRY, analyst=other_who, month=other_month)
    assert (hash_entry(one) == hash_entry(other)) is same


def test_an_entry_survives_being_a_row():
    assert from_row(to_row(ENTRY)) == ENTRY


def test_a_kind_that_does_not_exist_is_a_value_error():
    row = list(to_row(ENTRY))
    row[COLUMNS.index("kind")] = "refund"
    with pytest.raises(ValueError, match="refund"):
        from_row(tuple(row))


def test_only_a_shared_charge_counts_for_all():
    assert ENTRY.shared_charge == BudgetCharge(1, 2, 3, 4)
    assert replace(ENTRY, shared=0).shared_charge == BudgetCharge.zero()
