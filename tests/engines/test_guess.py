"""The types guessed for a CSV file are ones in which every value of the column can be read."""

from __future__ import annotations

import datetime
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.engines.declared import read_text
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.infer_csv import infer_csv_types
from tacit.query.types import Type

pytestmark = pytest.mark.slow


def guess(*values: str | None, has_decimal_commas: bool = False) -> Type:
    with connect_in_memory() as connection:
        connection.execute('CREATE TABLE t ("a b" VARCHAR)')
        for value in values:
            connection.execute("INSERT INTO t VALUES (?)", [value])
        [found] = infer_csv_types(connection, "t", ["a b"], has_decimal_commas)
        return found


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-2", None), Type.INT),
        (("0",), Type.INT),
        (("1", "2.5"), Type.FLOAT),
        (("1e3", "-0.5"), Type.FLOAT),
        (("9223372036854775808",), Type.FLOAT),  # beyond 64 bits
        (("007", "123"), Type.TEXT),  # a zero in front: a code
        (("2024-02-29", None), Type.DATE),
        (("2024-02-30",), Type.TEXT),  # no day
        (("true", "FALSE"), Type.BOOL),
        (("yes", "no"), Type.TEXT),
        (("A", "1"), Type.TEXT),
        ((None, None), Type.TEXT),
        ((), Type.TEXT),
    ],
)
def test_a_type_is_guessed_where_every_value_is_of_it(values, kind):
    assert guess(*values) is kind


words = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(repr),
    st.dates().map(str),
    st.text("0123456789.-+eE ", max_size=6),
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(words, min_size=1, max_size=4), st.booleans())
def test_values_are_read_as_they_are_written_in_the_guessed_type(values, has_decimal_commas):
    kind = guess(*values, has_decimal_commas=has_decimal_commas)
    as_python = {Type.INT: int, Type.FLOAT: float, Type.DATE: datetime.date.fromisoformat, Type.TEXT: str}
    with connect_in_memory() as connection:
        for value in values:
            expression = read_text("v", kind, None, has_decimal_commas)
            row = connection.execute(f"SELECT {expression} FROM (SELECT ?::VARCHAR AS v)", [value]).fetchone()
            assert row is not None
            [read] = row
            if (
                has_decimal_commas
                and kind is Type.FLOAT
                and re.fullmatch(r"[+-]?[1-9]\d{0,2}([.]\d{3})+", value.strip())
            ):
                assert read in (None, float(value.replace(".", "")))  # may be of thousands
            else:
                assert repr(read) == repr(as_python[kind](value)).replace("-nan", "nan")


def test_what_may_be_a_number_of_thousands_is_guessed_to_be_one_and_not_read():
    assert guess("980,50", "1.250", has_decimal_commas=True) is Type.FLOAT
    assert guess("1.250", "980", has_decimal_commas=True) is Type.FLOAT
    assert guess("1.250", "980") is Type.FLOAT
    assert guess("05/01/24", "06/01/24") is Type.TEXT
    assert guess("1_000", "0x10") is Type.TEXT
