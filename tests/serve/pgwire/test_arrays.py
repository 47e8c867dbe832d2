"""Lists as parameters: = ANY($1) and <> ALL($1) are the questions with IN and NOT IN, whatever the client sends."""

from __future__ import annotations

import asyncio
import datetime
from decimal import Decimal

import asyncpg
import psycopg
import psycopg2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.serve.pgwire.arrays import read_binary_array, read_text_array
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.types import array_of, decode, encode

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age < 77 AND "
DAYS = [datetime.date(2025, 1, 1), datetime.date(2025, 3, 1)]
LISTS = [
    ("ward IN ('A', 'it''s')", "ward = ANY({})", ["A", "it's"]),
    ("ward NOT IN ('A', 'B')", "ward <> ALL({})", ["A", "B"]),
    ("age IN (20, 21, 70000)", "visits.age = ANY({})", [20, 21, 70_000]),
    ("cost IN (20.5, 21.5)", "cost = ANY({})", [20.5, 21.5]),
    ("visited IN (DATE '2025-01-01', DATE '2025-03-01')", "visited = ANY({})", DAYS),
    ("insured IN (TRUE)", "insured = SOME({})", [True]),
    ("FALSE", "ward = ANY({})", []),
]


@pytest.fixture(scope="module")
def connection(served):
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=0.01"), autocommit=True) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(("plain", "listed", "values"), LISTS)
def test_a_list_is_the_question_with_in(served, connection, plain, listed, values):
    expected = connection.execute(COUNT + plain).fetchall()
    spent = served.spent()
    text = COUNT + listed.format("%s")
    assert connection.execute(text, (values,)).fetchall() == expected
    assert connection.execute(text.replace("%s", "%b"), (values,), prepare=True).fetchall() == expected
    old = psycopg2.connect(served.dsn(options="-c tacit.epsilon=0.01"))
    with old, old.cursor() as cursor:
        cursor.execute(text, (values,))
        assert cursor.fetchall() == expected
    old.close()
    assert asyncio.run(ask_by_asyncpg(served, COUNT + listed.format("$1"), values)) == expected
    assert served.spent() == spent


async def ask_by_asyncpg(served, text, values):
    """By its driver, which describes the statement and sends binary arrays."""
    credential = {"user": "ada", "password": served.passwords["ada"], "database": "clinic"}
    connection = await asyncpg.connect(
        host="127.0.0.1",
        port=served.port,
        ssl=served.context(),
        server_settings={"tacit.epsilon": "0.01"},
        **credential,
    )
    try:
        return [tuple(row) for row in await connection.fetch(text, values)]
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "listed",
    [
        "ward = ANY('{A,\"it''s\"}')",
        "ward = ANY('{A,it''s}'::text[])",
        "ward = ANY(CAST('{A,it''s}' AS text[]))",
        "ward = ANY(ARRAY['A', 'it''s'])",
        "ward = ANY((ARRAY['A'::text, 'it''s'::character varying])::text[])",
        "ward = ANY(CAST(ARRAY['A', 'it''s'] AS varchar[]))",
    ],
)
def test_a_list_in_the_text_is_the_question_with_in(served, connection, listed):
    expected = connection.execute(COUNT + "ward IN ('A', 'it''s')").fetchall()
    spent = served.spent()
    assert connection.execute(COUNT + listed).fetchall() == expected and served.spent() == spent


def test_parameters_in_a_list_have_the_type_of_the_column(served, connection):
    expected = connection.execute(COUNT + "age IN (20, 21)").fetchall()
    for text in ("age = ANY(ARRAY[%s, %s])", "age = ANY(ARRAY[%s::int, %s])"):
        assert connection.execute(COUNT + text, ("20", "21")).fetchall() == expected
    cast = COUNT + "age = ANY(CAST(%s AS bigint[]))"
    assert connection.execute(cast, ("{20,21}",)).fetchall() == expected


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([20, None], "42804"),  # as IN (20, NULL), with the same fix
        ([[1, 2], [3, 4]], "22P02"),
        (["a"], "22P02"),
        ("20", "22P02"),
        (list(range(10_001)), "54000"),
    ],
)
def test_what_is_no_list_of_the_column_is_refused(served, connection, values, state):
    entries = served.entries()
    with pytest.raises(psycopg.Error) as error:
        connection.execute(COUNT + "age = ANY(%s)", (values,))
    assert error.value.sqlstate == state and error.value.diag.message_hint and served.entries() == entries


ITEMS = {
    25: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    20: st.integers(-(2**63), 2**63 - 1),
    701: st.floats(allow_nan=False, allow_infinity=False),
    1082: st.dates(),
    16: st.booleans(),
    1700: st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
}


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(ITEMS)), st.booleans())
def test_what_is_written_as_an_array_is_read_back(data, element, binary):
    values = data.draw(st.lists(st.none() | ITEMS[element], max_size=6))
    oid = array_of(element)
    assert decode(encode(values, oid, binary=binary), oid, binary=binary) == values


@given(st.lists(st.none() | ITEMS[25], max_size=6))
def test_what_psycopg_writes_is_read(values):
    adapted = psycopg.adapt.Transformer()
    for form in (psycopg.adapt.PyFormat.TEXT, psycopg.adapt.PyFormat.BINARY):
        dumper = adapted.get_dumper(values or [""], form)
        written = dumper.dump(values)
        found = read_binary_array(written, 25) if written[:1] == b"\0" else read_text_array(written)
        assert [None if each is None else each.decode() for each in found] == values


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_an_array_or_an_error(data, binary):
    try:
        found = read_binary_array(data, 25) if binary else read_text_array(b"{" + data + b"}")
    except WireError:
        return
    assert all(each is None or isinstance(each, bytes) for each in found)


def test_a_decimal_list_is_written_as_it_is():
    assert decode(b"{1.50,2}", array_of(1700), binary=False) == [Decimal("1.50"), Decimal(2)]
