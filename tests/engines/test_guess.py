"""The types guessed for a CSV file are ones in which every value of the column can be read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.engines.declared import SQL_TYPES
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.infer_csv import infer_csv_types
from tacit.query.types import Type

pytestmark = pytest.mark.slow


def guess(*values: str | None) -> Type:
    with connect_in_memory() as connection:
        connection.execute('CREATE TABLE t ("a b" VARCHAR)')
        for value in values:
            connection.execute("INSERT INTO t VALUES (?)", [value])
        [found] = infer_csv_types(connection, "t", ["a b"])
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
@given(st.lists(words, min_size=1, max_size=4))
def test_no_value_is_lost_by_reading_it_in_the_guessed_type(values):
    kind = guess(*values)
    with connect_in_memory() as connection:
        for value in values:
            row = connection.execute(f"SELECT TRY_CAST(? AS {SQL_TYPES[kind]}) IS NOT NULL", [value]).fetchone()
            assert row == (True,)
