"""Temporary views over questions: text that a session keeps, planned as if the client had written it out."""

from __future__ import annotations

import psycopg
import pytest

from tacit.serve.pgwire.session_views import MOST_VIEWS

COLUMNS = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass ORDER BY attnum"
)


@pytest.fixture
def connection(served):
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=1"), autocommit=True) as made:
        yield made


def test_a_question_over_a_view_is_the_question_with_a_subquery(connection, served):
    entries = served.entries()
    connection.execute("CREATE TEMP VIEW grown AS SELECT * FROM visits WHERE age > 51")
    connection.execute("CREATE TEMPORARY VIEW by_ward (w, n) AS SELECT ward, COUNT(*) FROM grown GROUP BY ward")
    assert served.entries() == entries  # which is free
    rows = connection.execute("SELECT w, n FROM by_ward WHERE w <> %s ORDER BY w", ("A",)).fetchall()
    assert [ward for ward, _ in rows] == ["B", "it's"]
    spent = served.spent()
    inner = "SELECT ward, COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 51) AS grown GROUP BY ward"
    plain = f"SELECT ward, n FROM ({inner}) AS q WHERE ward <> 'A' ORDER BY ward"
    assert connection.execute(plain).fetchall() == rows
    named = "WITH x AS (SELECT w, n FROM by_ward) SELECT * FROM x WHERE w = 'B'"
    assert connection.execute(named).fetchall() == rows[:1]
    with connection.transaction(), connection.cursor("named") as cursor:
        assert cursor.execute("SELECT n FROM by_ward WHERE w = 'B'").fetchall() == [rows[0][1:]]
    with connection.cursor().copy("COPY (SELECT n FROM by_ward WHERE w = 'B') TO STDOUT") as copy:
        assert b"".join(copy) == b"%d\n" % rows[0][1]
    assert served.spent() == spent
    entries = served.entries()
    assert connection.execute("SELECT * FROM by_ward WHERE 0=1").fetchall() == [] and served.entries() == entries
    own = "WITH by_ward AS (SELECT 7 AS n FROM wards) SELECT DISTINCT n FROM by_ward"  # the question's own name wins
    assert connection.execute(own).fetchall() == [(7,)]


@pytest.mark.slow
def test_the_catalog_shows_the_views_of_the_session_and_no_others(connection, served):
    connection.execute("CREATE TEMP VIEW shown AS SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward")
    expected = [("ward", "text"), ("n", "bigint"), ("c", "double precision")]
    assert connection.execute(COLUMNS, ("shown",)).fetchall() == expected
    listed = "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
    for who in ("ada", "ben"):
        with psycopg.connect(served.dsn(who), autocommit=True) as other:
            assert other.execute(listed).fetchall() == []
    assert connection.execute(listed).fetchall() == [("shown",)]
    for text in ("SELECT count(*) FROM pg_class, shown", "SELECT query_to_xml('TABLE shown', true, true, '')"):
        with pytest.raises(psycopg.Error) as error:
            connection.execute(text)
        assert error.value.sqlstate in {"0A000", "42501"}
    connection.execute("CREATE OR REPLACE TEMP VIEW shown AS SELECT visited AS d FROM visits")
    assert connection.execute(COLUMNS, ("shown",)).fetchall() == [("d", "date")]
    connection.execute("DROP VIEW shown")
    assert connection.execute(listed).fetchall() == []


def test_a_view_goes_with_a_transaction_that_is_rolled_back(connection):
    connection.execute("CREATE TEMP VIEW kept AS SELECT ward FROM wards")
    connection.execute("BEGIN")
    connection.execute("CREATE TEMP VIEW lost AS SELECT ward FROM wards")
    connection.execute("DROP VIEW kept")
    connection.execute("ROLLBACK")
    assert len(connection.execute("SELECT * FROM kept").fetchall()) == 3
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM lost")
    connection.execute("DISCARD ALL")
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM kept")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("CREATE TEMP VIEW visits AS SELECT ward FROM wards", "42939"),
        ('CREATE TEMP VIEW "Visits" AS SELECT ward FROM wards', "42939"),
        ("CREATE TEMP VIEW pg_class AS SELECT ward FROM wards", "42939"),
        ("CREATE TEMP VIEW known AS SELECT ward FROM wards", "42P07"),
        ("CREATE TEMP VIEW v AS SELECT heigth FROM visits", "42703"),
        ("CREATE TEMP VIEW v AS SELECT relname FROM pg_class", "0A000"),
        ("CREATE TEMP VIEW v AS SELECT COUNT(*) FROM visits WHERE age > $1", "0A000"),
        ("CREATE TEMP VIEW v AS SELECT COUNT(*) FROM visits); SELECT COUNT(*) FROM (SELECT 1", "42601"),
        ("CREATE TEMP VIEW v (a b) AS SELECT ward FROM wards", "42601"),
        ("CREATE TEMP VIEW v", "42601"),
        ("CREATE TEMP VIEW v AS", "42601"),
        ("CREATE VIEW v AS SELECT COUNT(*) FROM visits", "0A000"),
        ("CREATE TEMP TABLE v AS SELECT COUNT(*) FROM visits", "0A000"),
        ("DROP VIEW v", "42P01"),
        ("DROP VIEW known,", "42601"),
        ("DROP TABLE visits", "0A000"),
    ],
)
def test_what_is_no_view_is_refused_with_a_fix(connection, served, text, state):
    entries = served.entries()
    connection.execute("CREATE TEMP VIEW known AS SELECT ward FROM wards")
    with pytest.raises(psycopg.Error) as error:
        psycopg.ClientCursor(connection).execute(text)
    assert error.value.sqlstate == state and error.value.diag.message_hint and served.entries() == entries


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "state"),
    [
        ("wards_ward_key AS SELECT ward FROM wards", "42P07"),  # an index of the catalog's table
        ('"a b" AS SELECT ward FROM wards', "42P07"),  # the catalog writes a line break as a space
        (f"v AS SELECT COUNT(*) AS {'a' * 63}b, COUNT(*) AS {'a' * 63}c FROM visits", "42701"),
    ],
)
def test_what_postgresql_does_not_take_is_refused_when_it_is_created(connection, view, state):
    connection.execute('CREATE TEMP VIEW "a\nb" AS SELECT ward FROM wards')
    listed = "SELECT relname FROM pg_class WHERE relkind IN ('v', 'i') AND relnamespace = 'public'::regnamespace"
    before = connection.execute(listed).fetchall()
    assert {("a b",), ("wards_ward_key",)} <= set(before)
    with pytest.raises(psycopg.Error) as error:
        connection.execute(f"CREATE TEMP VIEW {view}")
    assert error.value.sqlstate == state and error.value.diag.message_hint
    assert error.value.diag.statement_position is None
    assert sorted(connection.execute(listed).fetchall()) == sorted(before)
    connection.execute("CREATE TEMP VIEW v AS SELECT ward FROM wards")
    assert connection.execute("SELECT 1 FROM pg_class WHERE relname = 'v'").fetchall() == [(1,)]


@pytest.mark.slow
def test_views_are_bounded(connection):
    for number in range(MOST_VIEWS):
        connection.execute(f"CREATE TEMP VIEW v{number} AS SELECT ward FROM wards")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        connection.execute("CREATE TEMP VIEW more AS SELECT ward FROM wards")
    connection.execute("DROP VIEW IF EXISTS v0, v1 CASCADE")
    long = "SELECT ward /* " + "x" * 40_000 + " */ FROM wards"
    for number in (2, 3):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW v{number} AS {long}")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW v4 AS {long}")
