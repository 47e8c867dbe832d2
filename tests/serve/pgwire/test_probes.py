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


ROWS = [
    "SELECT * FROM visits LIMIT 1",
    'SELECT "visits"."age" AS "a", ward FROM "public"."visits" "visits" WHERE cost > 3 ORDER BY 1 LIMIT 1000',
    "SELECT * FROM (SELECT age, ward FROM visits WHERE age > 30) AS virtual_table LIMIT 1",
    "SELECT age + 1 AS x FROM visits OFFSET 3 FETCH FIRST 5 ROWS ONLY",
]


@pytest.fixture
def hiding(served):
    """A connection that hides rows, with an epsilon that would be spent, and what it hears."""
    before = served.spent(), served.entries()
    options = "-c tacit.rows=hidden -c tacit.epsilon=1"
    with psycopg.connect(served.dsn(options=options), autocommit=True) as found:
        yield found
    assert (served.spent(), served.entries()) == before


@pytest.mark.parametrize("text", ROWS)
def test_rows_that_are_hidden_are_columns_and_free_by_either_protocol(hiding, text):
    heard = []
    hiding.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    named = []
    for cursor in (hiding.cursor(), psycopg.ClientCursor(hiding), hiding.cursor(binary=True)):
        assert cursor.execute(text).fetchall() == [] and cursor.statusmessage == "SELECT 0"
        named.append(described(cursor))
    assert named[0] and named.count(named[0]) == 3
    assert heard == ["rows are not shown, and none were read: tacit.rows is hidden"] * 3
    with hiding.transaction(), hiding.cursor(name="held") as cursor:
        assert cursor.execute(text).fetchall() == []


@pytest.mark.parametrize("text", ROWS)
def test_rows_are_refused_unless_they_are_hidden(hiding, text):
    hiding.execute("RESET ALL")
    hiding.execute("SET tacit.rows = refused")
    with pytest.raises(psycopg.errors.GroupingError, match=r"refused \[raw-column\]"):
        hiding.execute(text)


def test_hiding_rows_changes_no_other_refusal(hiding):
    with pytest.raises(psycopg.errors.UndefinedColumn):
        hiding.execute("SELECT heigth FROM visits LIMIT 5")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="neither refused nor hidden; fix: SET"):
        hiding.execute("SET tacit.rows = shown")


def test_answers_and_public_rows_are_the_same_whether_rows_are_hidden_or_not(served):
    found = []
    for options in ("-c tacit.epsilon=1 -c tacit.rows=hidden", "-c tacit.epsilon=1"):
        with psycopg.connect(served.dsn(options=options), autocommit=True) as connection:
            found.append(connection.execute("SELECT ward, COUNT(*) FROM visits GROUP BY ward").fetchall())
            wards = connection.execute("SELECT ward, beds FROM wards ORDER BY beds").fetchall()
            assert wards == [("A", 10), ("B", 20), ("it's", 30)]
    assert found[0] == found[1] and len(found[0]) == 3
