"""Types of parameters that a client leaves open: what their places ask for, before there are values."""

from __future__ import annotations

import asyncio
import datetime
import struct
import tempfile
from pathlib import Path

import asyncpg
import psycopg
import pytest
from tests.support.plain_postgres import run_plain_postgres

pytestmark = pytest.mark.slow
DAY = datetime.date(2025, 3, 1)

ASKED = [
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING count(*) > $1", 5),
    ("SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN $1 AND $2", 1, 10_000),
    ("SELECT ward FROM visits GROUP BY ward HAVING count(*) NOT BETWEEN $1 AND $2", 0, 10_000),
    ("SELECT ward FROM visits GROUP BY ward HAVING $1 < count(*)", 5),
    ("SELECT ward FROM visits GROUP BY ward HAVING avg(cost) > $1", 1.5),
    ("SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / count(*) > $1", 1.5),
    ("SELECT date_trunc($1, visited) AS m, COUNT(*) AS n FROM visits GROUP BY 1", "month"),
    ("SELECT COUNT(*) FROM visits WHERE extract(month FROM visited) = $1", 3),
    ("SELECT COUNT(*) FROM visits WHERE cost * 2 > 5 AND extract(month FROM visited) = $1", 3),
    ("SELECT COUNT(*) FROM visits WHERE date_part($1, visited) = $2", "month", 3),
    ("SELECT COUNT(*) FROM visits WHERE length(ward) = $1", 1),
    ("SELECT COUNT(*) FROM visits WHERE lower(ward) = $1", "a"),
    ("SELECT COUNT(*) FROM visits WHERE left(ward, $1) = $2", 1, "A"),
    ("SELECT COUNT(*) FROM visits WHERE $1 < age AND age % $2 = $3", 30, 2, 0),
    ("SELECT width_bucket(cost, $1, $2, $3) AS b, COUNT(*) AS n FROM visits GROUP BY 1", 0.0, 100.0, 4),
    ("SELECT COUNT(*) FROM visits WHERE visited >= $1 AND insured = $2", DAY, True),
    ("SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2 LIMIT $1 OFFSET $2", 1, 0),
    ("SELECT SUM(CASE WHEN age > $1 THEN $2 WHEN age > 9 THEN 2 ELSE 0 END) FROM visits", 30, 1),
]
# What PostgreSQL has no function for, or gives a type that a day is not of.
OWN = [
    ("SELECT round(avg(cost), $1) FROM visits", 1),
    ("SELECT quantile(cost, $1) FROM visits", 0.5),
    ("SELECT COUNT(*) FROM visits WHERE date_trunc('month', visited) = $1", DAY),
    ("SELECT SUM(CASE WHEN age > $1 THEN $2 ELSE $3 END) FROM visits", 30, 1, 0),
    ("SELECT COUNT(*) * $1 AS n FROM visits", 2.5),
]


@pytest.fixture(scope="module")
def plain():
    with (
        tempfile.TemporaryDirectory(prefix="plain-") as folder,
        run_plain_postgres(Path(folder)) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        yield connection


@pytest.mark.parametrize("text", [text for text, *_ in ASKED])
def test_the_types_are_those_that_postgresql_finds(text, raw, plain):
    plain.pgconn.prepare(b"", text.encode())
    expected = plain.pgconn.describe_prepared(b"")
    types = [expected.param_type(index) for index in range(expected.nparams)]
    with raw() as client:
        client.login()
        client.send(b"P", b"\0" + text.encode() + b"\0\0\0")
        client.send(b"D", b"S\0")
        client.send(b"S")
        found = dict(client.until(b"Z"))
    assert b"E" not in found, found
    assert found[b"t"] == struct.pack(f">h{len(types)}I", len(types), *types)


def test_a_driver_that_describes_before_it_binds_is_answered(served):
    async def ask():
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=served.port,
            user="ada",
            password=served.passwords["ada"],
            database="clinic",
            ssl=served.context(),
            server_settings={"tacit.epsilon": "1"},
        )
        try:
            return [len(await connection.fetch(text, *values)) for text, *values in (*ASKED, *OWN)]
        finally:
            await connection.close()

    counts = asyncio.run(ask())
    assert all(counts[:2]) and all(counts[3:])  # no group is as large as the third asks for


def test_a_day_that_was_asked_as_a_text_is_the_same_question_as_a_date(served):
    """So a question that was charged when the parameter counted as a text is found again."""
    text = "SELECT COUNT(*) AS n FROM visits WHERE date_trunc('month', visited) {} AND age > 33"
    pairs = [("= '2025-04-01'", "= DATE '2025-04-01'"), (">= '2025-05-01'", ">= DATE '2025-05-01'")]
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=0.25"), autocommit=True) as connection:
        for old, new in pairs:
            first = connection.execute(text.format(old)).fetchall()
            spent = served.spent()
            assert connection.execute(text.format(new)).fetchall() == first
            assert served.spent() == spent


def test_a_whole_number_beside_whole_numbers_in_a_case_is_the_same_question_as_its_literal(served):
    async def ask():
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=served.port,
            user="ada",
            password=served.passwords["ada"],
            database="clinic",
            ssl=served.context(),
            server_settings={"tacit.epsilon": "0.25"},
        )
        try:
            text = "SELECT SUM(CASE WHEN age > $1 THEN $2 ELSE 0 END) AS n FROM visits"
            first = await connection.fetchval(text.replace("$1", "34").replace("$2", "1"))
            spent = served.spent()
            return first, await connection.fetchval(text, 34, 1), served.spent() - spent
        finally:
            await connection.close()

    first, second, charged = asyncio.run(ask())
    assert first == second and charged == 0


def test_a_whole_number_without_a_type_beside_a_float_is_one_question(served):
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=0.01"), autocommit=True) as connection:
        found, spent = set(), served.spent()
        for value in ("3", "3.0", 3.0):  # a text has no type in psycopg
            found.add(connection.execute("SELECT SUM(cost * %s) FROM visits", (value,)).fetchone())
        assert len(found) == 1 and round(served.spent() - spent, 9) == 0.01
