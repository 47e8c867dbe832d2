"""DECLARE, FETCH, MOVE and CLOSE: asked once at the first FETCH, and rows as PostgreSQL's own cursors give them."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import psycopg
import psycopg2
import pytest
from tests.support.counts import some
from tests.support.plain_postgres import run_plain_postgres

from tacit.serve.pgwire.cursor_statements import ALL, Direction, FetchCommand
from tacit.serve.pgwire.cursors import MOST_CURSORS, select_rows

GROUPED = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > %s GROUP BY ward ORDER BY ward"
FORWARD_ONLY = "DECLARE a NO SCROLL CURSOR FOR SELECT ward FROM wards"
DIRECTIONS = ["", "NEXT", "PRIOR", "FIRST", "LAST", "ALL", "FORWARD", "FORWARD ALL", "BACKWARD", "BACKWARD ALL"]
COUNTED = ["", "FORWARD", "BACKWARD", "ABSOLUTE", "RELATIVE"]


@pytest.fixture
def connection(served):
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=1")) as made:
        yield made


@pytest.fixture(scope="module")
def plain():
    """A real PostgreSQL."""
    with (
        tempfile.TemporaryDirectory(prefix="plain-") as folder,
        run_plain_postgres(Path(folder)) as dsn,
        psycopg.connect(dsn) as made,
    ):
        yield made


def test_a_cursor_is_charged_once_and_at_its_first_row(connection, served):
    spent = served.spent()
    with connection.cursor("wards") as cursor:
        cursor.execute(GROUPED, (71,))
        assert [column.name for column in cursor.description] == ["ward", "n"] and served.spent() == spent
        rows = [cursor.fetchone(), *cursor.fetchmany(1), *cursor.fetchall()]
        cursor.scroll(0, mode="absolute")
        assert cursor.fetchall() == rows and [ward for ward, _ in rows] == ["A", "B", "it's"]
    with connection.cursor("again", binary=True) as cursor:
        cursor.itersize = 1
        assert list(cursor.execute(GROUPED, (71,))) == rows
    assert connection.execute(GROUPED, (71,)).fetchall() == rows and served.spent() == spent + 1


def test_a_cursor_that_is_not_fetched_costs_nothing(connection, served):
    entries = served.entries()
    connection.execute("DECLARE a CURSOR FOR SELECT COUNT(*) FROM visits WHERE age > 72")
    connection.execute("CLOSE a")
    connection.execute("DECLARE a CURSOR FOR SELECT * FROM (SELECT COUNT(*) AS n FROM visits) AS q WHERE 0=1")
    assert connection.execute("FETCH ALL FROM a").fetchall() == [] and served.entries() == entries


def test_psycopg2_and_psql_fetch_in_portions(served, psql):
    with psycopg2.connect(served.dsn(options="-c tacit.epsilon=1")) as connection:
        cursor = connection.cursor("portions")
        cursor.execute(GROUPED, (73,))
        rows = cursor.fetchmany(2) + cursor.fetchall()
        connection.rollback()
    connection.close()
    question = GROUPED.replace("%s", "73")
    shown = psql("SET tacit.epsilon = 1", r"\set FETCH_COUNT 1", question)
    expected = [f"{ward} | {n}" for ward, n in rows]
    assert [" ".join(line.split()) for line in shown.stdout.splitlines()][3:6] == expected, shown.stderr
    fetch = 'fetch 2 in "SQL_CUR1"'  # as psqlODBC sends it, in one string
    declare = f'BEGIN;declare "SQL_CUR1" cursor with hold for {question};{fetch};COMMIT'
    lines = [" ".join(line.split()) for line in psql("SET tacit.epsilon = 1", declare, fetch).stdout.splitlines()]
    assert [line for line in lines if line in expected] == expected


def test_a_statement_about_the_catalog_has_cursors_too(connection, served):
    entries = served.entries()
    with connection.cursor("tables") as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname IN (%s, %s) ORDER BY 1", ("wards", "visits"))
        assert [cursor.fetchone(), cursor.fetchone(), cursor.fetchone()] == [("visits",), ("wards",), None]
    assert served.entries() == entries
    connection.execute("DECLARE a CURSOR FOR TABLE visits")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connection.execute("FETCH a")


def test_the_settings_are_those_of_the_declaration(connection, served):
    spent = served.spent()
    connection.execute("SET tacit.epsilon = 0.5")
    connection.execute("DECLARE a CURSOR FOR SELECT COUNT(*) AS n FROM visits WHERE age > 74")
    connection.execute("SET tacit.epsilon = 7")
    connection.execute("SET tacit.intervals = on")
    found = connection.execute("FETCH 1 FROM a")
    assert len(found.description) == 1 and served.spent() == spent + 0.5


def test_the_question_is_that_of_the_declaration_whatever_becomes_of_its_views(connection, served):
    """Asked directly, the declared question is a repeat, which costs nothing; the one of the later view is not."""
    view = "TEMP VIEW changing AS SELECT * FROM visits WHERE age > "
    connection.execute(f"CREATE {view} 75")
    for name in ("replaced", "dropped"):
        connection.execute(f"DECLARE {name} CURSOR WITH HOLD FOR SELECT COUNT(*) AS n FROM changing")
    connection.execute(f"CREATE OR REPLACE {view} 109")
    spent = served.spent()
    rows = connection.execute("FETCH replaced").fetchall()
    connection.execute("DROP VIEW changing")
    assert connection.execute("FETCH dropped").fetchall() == rows and served.spent() == spent + 1
    assert connection.execute("SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 75) AS q").fetchall() == rows
    assert served.spent() == spent + 1
    connection.execute("SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 109) AS q")
    assert served.spent() == spent + 2


@pytest.mark.slow
def test_a_cursor_over_the_catalog_sees_the_views_of_its_declaration(connection):
    listed = "SELECT attname FROM pg_attribute WHERE attrelid = 'changing'::regclass"
    connection.execute("CREATE TEMP VIEW changing AS SELECT ward AS before FROM wards")
    connection.execute(f"DECLARE a CURSOR FOR {listed}")
    connection.execute("CREATE OR REPLACE TEMP VIEW changing AS SELECT ward AS later FROM wards")
    assert connection.execute("FETCH ALL FROM a").fetchall() == [("before",)]
    assert connection.execute(listed).fetchall() == [("later",)]


def test_views_count_among_the_characters_of_cursors(connection):
    """Each cursor keeps about 45,000 characters of the view, so that four fit in 200,000 and a fifth does not."""
    connection.execute("CREATE TEMP VIEW long AS SELECT ward /* " + "x" * 45_000 + " */ FROM wards")
    for name in "abcd":
        connection.execute(f"DECLARE {name} CURSOR FOR SELECT ward FROM long")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        connection.execute("DECLARE e CURSOR FOR SELECT ward FROM long")


def test_cursors_end_with_their_transaction_unless_they_are_held(connection):
    for name, hold in (("plain", ""), ("kept", "WITH HOLD"), ("lost", "WITH HOLD")):
        if name == "lost":
            connection.commit()
        connection.execute(f"DECLARE {name} CURSOR {hold} FOR SELECT ward FROM wards ORDER BY ward")
    connection.rollback()
    assert connection.execute("FETCH ALL FROM kept").fetchall() == [("A",), ("B",), ("it's",)]
    assert connection.execute("MOVE BACKWARD 2 IN kept").statusmessage == "MOVE 2"
    assert connection.execute("CLOSE kept").statusmessage == "CLOSE CURSOR"
    for name in ("plain", "kept", "lost"):
        with pytest.raises(psycopg.errors.InvalidCursorName) as error:
            connection.execute(f"FETCH {name}")
        assert error.value.diag.message_hint == "declare it in this transaction"
        connection.rollback()


@pytest.mark.parametrize(
    ("statements", "state"),
    [
        (["DECLARE a CURSOR FOR SELECT heigth FROM visits"], "42703"),  # a refusal comes with the declaration
        (
            ["RESET tacit.epsilon", "SET tacit.epsilon = ''", "DECLARE a CURSOR FOR SELECT COUNT(*) FROM visits"],
            "22023",
        ),
        (["DECLARE a CURSOR FOR SELECT 1", "DECLARE a CURSOR FOR SELECT 1"], "42P03"),
        (["DECLARE a BINARY CURSOR FOR SELECT 1"], "0A000"),
        (["DECLARE a CURSOR FOR COPY (SELECT 1) TO STDOUT"], "0A000"),
        (["DECLARE a CURSOR FOR SHOW ALL"], "0A000"),
        (["DECLARE a CURSOR FOR"], "42601"),
        (["DECLARE a CURSOR"], "42601"),
        (["FETCH"], "42601"),
        (["FETCH 1.5 FROM a"], "42601"),
        (["FETCH ABSOLUTE FROM a"], "42601"),
        (["CLOSE"], "42601"),
        (["CLOSE a"], "34000"),
        (["DECLARE a NO SCROLL CURSOR FOR SELECT ward FROM wards", "FETCH BACKWARD FROM a"], "55000"),
        (
            ["DECLARE a NO SCROLL CURSOR FOR SELECT ward FROM wards", "FETCH 2 FROM a", "FETCH ABSOLUTE 1 FROM a"],
            "55000",
        ),
    ],
)
def test_what_is_wrong_with_a_cursor_is_said_with_a_fix(connection, statements, state):
    for text in statements[:-1]:
        connection.execute(text)
    with pytest.raises(psycopg.Error) as error:
        connection.execute(statements[-1])
    assert error.value.sqlstate == state and error.value.diag.message_hint


def test_a_cursor_needs_a_transaction_or_is_held(served):
    with psycopg.connect(served.dsn(), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
            connection.execute("DECLARE a CURSOR FOR SELECT 1")
        connection.execute("DECLARE a CURSOR WITH HOLD FOR SELECT 1 AS x")
        assert connection.execute("FETCH a").fetchall() == [(1,)]
        connection.execute("DISCARD ALL")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("FETCH a")


@pytest.mark.slow
def test_ten_thousand_declarations_leave_few_cursors_and_no_rows(served, raw):
    with raw() as client:
        client.login(options="-c tacit.epsilon=1")
        held = served.listener.wire._services.held
        refused = 0
        portions = some(range(0, 10_000, 500), one_in=5)
        for start in portions:
            text = "BEGIN;" + ";".join(f"DECLARE c{start + i} CURSOR WITH HOLD FOR SELECT {i} AS x" for i in range(500))
            refused += any(kind == b"E" and b"54000" in body for kind, body in client.query(text))
            client.query("ROLLBACK")
        assert refused == len(portions) and "ada" not in held
        client.query("BEGIN")
        wide = "SELECT i, repeat('x', 150) FROM generate_series(1, 9000) AS g(i)"  # about 1.5 million bytes
        ended = []
        for name in "abcd":
            found = client.query(f"DECLARE {name} CURSOR FOR {wide}; FETCH 1 FROM {name}")
            ended.append(any(kind == b"E" and b"54000" in body for kind, body in found))
            if ended[-1]:
                break
        assert ended == [False, False, True] and 2_800_000 < held["ada"] < 4_000_000
        client.query("ROLLBACK")
        assert "ada" not in held
        assert len(served.listener.wire._sessions) >= 1 and MOST_CURSORS <= 64


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 3])
def test_rows_are_those_of_postgresql(connection, plain, count):
    """Two hundred random steps of a cursor over so many rows, there and here: the same rows, tags and places."""
    chosen = random.Random(count)
    mine = f"SELECT ward FROM wards WHERE beds <= {10 * count} ORDER BY ward"
    names = ", ".join(["('A')", "('B')", "('it''s')"][:count]) or "(NULL)"
    theirs = f"SELECT ward FROM (VALUES {names}) AS v(ward) WHERE ward IS NOT NULL ORDER BY ward"
    connection.execute(f"DECLARE both_sides SCROLL CURSOR FOR {mine}")
    plain.execute(f"DECLARE both_sides SCROLL CURSOR FOR {theirs}")
    for _ in range(200):
        direction = chosen.choice(DIRECTIONS)
        if chosen.random() < 0.5:
            direction = f"{chosen.choice(COUNTED)} {chosen.randint(-4, 4)}"
        text = f"{chosen.choice(['FETCH', 'MOVE'])} {direction} FROM both_sides"
        found, expected = connection.execute(text), plain.execute(text)
        assert found.statusmessage == expected.statusmessage, text
        if text.startswith("FETCH"):
            assert found.fetchall() == expected.fetchall(), text
    plain.rollback()


@pytest.mark.slow
def test_all_is_more_than_any_answer_has():
    assert select_rows(0, 3, FetchCommand("a", Direction.FORWARD, ALL)) == (range(1, 4), 4)
    assert select_rows(4, 3, FetchCommand("a", Direction.FORWARD, -ALL)) == (range(3, 0, -1), 0)
