"""Questions without rows, which tools ask first to learn the columns: free in every way that a client may send them."""

from __future__ import annotations

import psycopg
import pytest

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE age > 41 GROUP BY ward"
COLUMNS = [("ward", 25), ("n", 20), ("c", 701)]
PROBES = [
    f"SELECT * FROM ({QUESTION}) AS q LIMIT 0",  # JupySQL, Superset
    f"SELECT * FROM ({QUESTION}) AS q WHERE 0=1",
    f'SELECT *\nFROM ({QUESTION}) AS "q01"\nWHERE (0 = 1)',  # dbplyr
    f"select * from (\n    {QUESTION}\n) as __dbt_sbq\nwhere false\nlimit 0",  # dbt
    f"WITH q AS ({QUESTION}) SELECT * FROM q WHERE FALSE",
    f"{QUESTION} LIMIT 0",
]


@pytest.fixture
def connection(served):
    """A session without an epsilon, whose statements must leave the ledger as it is."""
    entries = served.entries()
    with psycopg.connect(served.dsn(), autocommit=True) as made:
        yield made
    assert served.entries() == entries


def described(cursor):
    return [(column.name, column.type_code) for column in cursor.description]


@pytest.mark.parametrize("text", PROBES)
def test_a_probe_is_free_by_either_protocol_and_inside_a_copy(connection, text):
    for cursor in (psycopg.ClientCursor(connection), connection.cursor(), connection.cursor(binary=True)):
        cursor.execute(text)
        assert described(cursor) == COLUMNS and cursor.fetchall() == []
    cursor = connection.execute(text, prepare=True)
    assert described(cursor) == COLUMNS and cursor.fetchall() == []
    with connection.cursor().copy(f"COPY ({text}) TO STDOUT (FORMAT csv, HEADER)") as copy:
        assert b"".join(copy) == b"ward,n,c\n"


def test_a_probe_with_parameters_is_free(connection):
    text = "SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits WHERE age > %s GROUP BY ward) AS q LIMIT %s"
    for prepare in (False, True):
        cursor = connection.execute(text, (42, 0), prepare=prepare)
        assert described(cursor) == COLUMNS[:2] and cursor.fetchall() == []


def test_a_probe_of_a_table_is_free(connection):
    for text in ("SELECT * FROM visits LIMIT 0", 'SELECT * FROM "public"."visits" AS "q01" WHERE (0 = 1)'):
        cursor = connection.execute(text)
        assert [name for name, _ in described(cursor)] == ["age", "ward", "visited", "cost", "insured"]


def test_a_probe_has_the_intervals_that_its_question_has(connection):
    connection.execute("SET tacit.intervals = on")
    names = [name for name, _ in described(connection.execute(PROBES[0]))]
    assert names == ["ward", "n", "n_low", "n_high", "c", "c_low", "c_high"]
    connection.execute("SET tacit.within = 'nothing=5'")  # which would be refused of a question
    assert [name for name, _ in described(connection.execute(PROBES[1]))] == names


def test_what_is_no_probe_still_needs_an_epsilon(connection):
    counts = [f"SELECT COUNT(*) FROM ({QUESTION}) AS q WHERE 0=1", "SELECT COUNT(*) FROM visits WHERE 0=1"]
    for text in (QUESTION, *counts):  # a count of no rows is a row
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="neither an epsilon nor an accuracy"):
            connection.execute(text)


def test_a_public_table_needs_no_epsilon(served):
    with psycopg.connect(served.dsn(), autocommit=True) as connection:
        spent = served.spent()
        assert connection.execute("SELECT ward, beds FROM wards WHERE beds > 10 ORDER BY beds").fetchall() == [
            ("B", 20),
            ("it's", 30),
        ]
        assert served.spent() == spent
