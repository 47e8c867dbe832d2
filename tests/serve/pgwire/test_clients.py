"""The clients that people use, each over TLS that is checked and SCRAM."""

from __future__ import annotations

import asyncio
import datetime
from decimal import Decimal

import pandas
import psycopg
import pytest

GROUPED = "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward"
FILTERED = """
    SELECT ward, COUNT(*) AS n, SUM(cost) AS total, AVG(age) AS a, MEDIAN(visited) AS m, TOP_K(ward, 2) AS k,
        COUNT(*) > 0 AS some
    FROM public.visits
    WHERE age >= {} AND ward IN ({}, {}) AND visited BETWEEN {} AND {} AND cost < {} AND insured = {}
    GROUP BY ward LIMIT {}
"""
FIRST, LAST = datetime.date(2025, 1, 1), datetime.date(2025, 12, 1)
VALUES = (30, "A", "it's", FIRST, LAST, 300.5, True, 2)


def check(rows):
    """The rows of FILTERED: the right Python types, and the wards that it names."""
    assert [row[0] for row in rows] == ["A", "it's"]
    for row in rows:
        kinds = [type(value) for value in row if value is not None]
        assert set(kinds) <= {str, int, float, datetime.date, list, bool}
        assert isinstance(row[1], int) and isinstance(row[2], float) and isinstance(row[4], datetime.date)
        assert len(row[5]) == 2 and set(row[5]) <= {"A", "B", "it's"} and row[6] in {True, False}


@pytest.fixture
def connected(served):
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=1")) as connection:
        yield connection


@pytest.fixture(scope="module", params=["psycopg", "psycopg2"])
def engine(served, request):
    import sqlalchemy

    query = {"sslmode": "verify-full", "sslrootcert": str(served.certificate), "options": "-c tacit.epsilon=1"}
    url = sqlalchemy.URL.create(
        f"postgresql+{request.param}", "ada", served.passwords["ada"], "127.0.0.1", served.port, "clinic", query
    )
    made = sqlalchemy.create_engine(url)
    yield made
    made.dispose()


@pytest.mark.slow
def test_psql_lists_and_describes_the_tables(psql):
    done = psql(r"\dt", r"\d", r"\d visits", r"\d+ wards", r"\conninfo", r"\dn", r"\l", r"\du", r"\df")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("public | visits | table | owner") == 2
    assert 'Table "public.visits"' in done.stdout and " cost    | double precision |" in done.stdout
    assert " beds   | bigint |           | not null |" in done.stdout and "from 0 to 100" in done.stdout
    assert "SSL connection" in done.stdout


def test_psql_asks_and_shows_the_receipt(psql):
    done = psql("SET tacit.epsilon = 1", GROUPED, "SET tacit.intervals = on", GROUPED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" it's |") == 2 and "n_low" in done.stdout
    assert "NOTICE:  epsilon 1 · ada has" in done.stderr and "a repeat, free" in done.stderr
    assert "DETAIL:  " in done.stderr and "After WHERE, each patient_id counts" in done.stderr


@pytest.mark.slow
def test_psql_shows_where_an_error_is_and_how_to_fix_it(psql):
    done = psql("SELECT COUNT(*) FROM visits WHERE heigth > 3")
    assert done.returncode == 1
    assert "refused [parameter]" in done.stderr  # the price comes first
    done = psql("SET tacit.epsilon = 1", "SELECT COUNT(*)\nFROM visits WHERE heigth > 3")
    assert "LINE 2: FROM visits WHERE heigth > 3\n                          ^" in done.stderr
    assert "HINT:  its columns are age" in done.stderr
    assert "refused [unknown-column]: visits has no column heigth; fix: its columns are age" in done.stderr


def test_psql_is_not_let_in_with_a_wrong_password_and_binds_to_the_channel(psql):
    done = psql("SELECT 1", password="wrong")
    assert done.returncode == 2 and "the name or the password is wrong" in done.stderr
    assert psql("SELECT 1", channel_binding="require").returncode == 0


@pytest.mark.slow
def test_psycopg_gives_parameters_of_every_type_and_takes_text_and_binary(connected):
    text = FILTERED.format(*["%s"] * 8)
    check(connected.execute(text, VALUES).fetchall())
    with connected.cursor(binary=True) as cursor:
        check(cursor.execute(text, VALUES).fetchall())
    values = (Decimal("30"), *VALUES[1:3], str(FIRST), str(LAST), Decimal("300.5"), *VALUES[6:])
    check(connected.execute(text, values).fetchall())


def test_psycopg_prepares_and_is_charged_once(connected, served):
    text = "SELECT COUNT(*) AS n FROM visits WHERE age > %s"
    spent, found = served.spent(), set()
    for _ in range(3):
        found.add(connected.execute(text, (55,), prepare=True).fetchone())
    assert len(found) == 1 and served.spent() == spent + 1
    connected.execute(text, (56,), prepare=True)
    assert served.spent() == spent + 2


def test_psycopg_gets_errors_as_its_own_classes_and_goes_on_after_a_rollback(connected):
    with pytest.raises(psycopg.errors.UndefinedColumn) as error:
        connected.execute("SELECT COUNT(*) FROM visits WHERE age > %s AND heigth > 3", (3,))
    # as psycopg sends it: SELECT COUNT(*) FROM visits WHERE age > $1 AND heigth > 3
    assert error.value.diag.statement_position == "48"
    assert error.value.diag.message_hint.startswith("its columns are")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connected.execute("SELECT 1")
    connected.rollback()
    assert connected.execute("SELECT %s::text, %s::int", ("it's", 4)).fetchone() == ("it's", 4)


def test_psycopg_in_a_pipeline_and_in_nested_transactions(connected):
    with connected.pipeline(), connected.transaction():
        one = connected.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = %s", ("A",))
        two = connected.execute("SHOW tacit.epsilon")
        with connected.transaction():
            three = connected.execute("SELECT 3")
    assert isinstance(one.fetchone()[0], int) and two.fetchone() == ("1",) and three.fetchone() == (3,)


def test_psycopg_hears_the_receipt_as_a_notice(connected):
    heard = []
    connected.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    connected.execute("SELECT COUNT(*) FROM visits WHERE age > 60")
    assert len(heard) == 2 and heard[0].startswith("epsilon 1")
    assert heard[1].startswith("each question has epsilon 1, set by the options of the connection")
    connected.execute("SELECT COUNT(*) FROM visits WHERE age > 60")
    assert len(heard) == 3 and heard[2].startswith("a repeat, free")  # the rest is said once


def test_a_name_of_a_database_sets_an_epsilon_and_the_budget_says_so(served):
    name = "clinic?tacit.epsilon=0.25"
    with psycopg.connect(served.dsn(dbname=name), autocommit=True) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == (name,)
        assert connection.execute("SHOW tacit.epsilon").fetchone() == ("0.25",)
        look = "SELECT each_question, set_by FROM tacit.budget"
        assert connection.execute(look).fetchone() == ("epsilon 0.25", "the name of the database")
        spent = served.spent()
        connection.execute("SELECT COUNT(*) FROM visits WHERE age > 71")
        assert served.spent() == spent + 0.25
        connection.execute("DISCARD ALL")  # as pools of connections do
        connection.execute("SELECT COUNT(*) FROM visits WHERE age > 72")
        assert served.spent() == spent + 0.5
        connection.execute("SET tacit.within = 'n=50'")
        assert connection.execute(look).fetchone() == ("within 'n=50'", "SET")
    with psycopg.connect(served.dsn(), autocommit=True) as connection:
        assert connection.execute(look).fetchone() == (None, None)
    with pytest.raises(psycopg.OperationalError, match="not a number in its range; fix: choose a number"):
        psycopg.connect(served.dsn(dbname="clinic?tacit.epsilon=much"))


def test_an_injection_by_a_parameter_is_a_text_like_any_other(connected):
    evil = "A' OR 1=1; DROP TABLE visits; --"
    (count,) = connected.execute("SELECT COUNT(*) FROM visits WHERE ward = %s", (evil,)).fetchone()
    # no row has that ward; noise of scale 3 is beyond 75 with probability e^-25 = 1.4e-11
    assert abs(count) < 75


def test_psycopg2_asks_with_values_written_into_the_text(served):
    import psycopg2

    connection = psycopg2.connect(served.dsn(options="-c tacit.epsilon=1"))
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(FILTERED.format(*["%s"] * 8), VALUES)
            check(cursor.fetchall())
            cursor.execute("SELECT COUNT(*) FROM visits WHERE ward = %s", ("back\\slash'",))
            assert abs(cursor.fetchone()[0]) < 75
            assert connection.notices[0].startswith("NOTICE:  ")
        with connection.cursor() as cursor, pytest.raises(psycopg2.errors.UndefinedTable):
            cursor.execute("SELECT COUNT(*) FROM visit")
    finally:
        connection.close()


def test_asyncpg_prepares_describes_and_takes_rows_one_by_one(served):
    import asyncpg

    async def asked():
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
            text = FILTERED.format(*[f"${number}" for number in range(1, 9)])
            check([tuple(row) for row in await connection.fetch(text, *VALUES)])
            before = served.entries()
            prepared = await connection.prepare("SELECT ward, COUNT(*) AS n FROM visits WHERE $1 < age GROUP BY ward")
            assert [kind.name for kind in prepared.get_parameters()] == ["int8"]
            assert [(each.name, each.type.name) for each in prepared.get_attributes()] == [
                ("ward", "text"),
                ("n", "int8"),
            ]
            assert served.entries() == before
            async with connection.transaction():
                rows = [row["ward"] async for row in prepared.cursor(21, prefetch=1)]
            assert rows == ["A", "B", "it's"]
            with pytest.raises(asyncpg.UndefinedTableError):
                await connection.fetch("SELECT COUNT(*) FROM visit")
            explained = await connection.fetchval("SELECT tacit.explain($1)", "SELECT COUNT(*) FROM visits")
            assert explained.startswith("costs epsilon 1")
            assert await connection.fetchval("SELECT cap FROM tacit.budget WHERE who = $1", "ada") == 900
            await connection.execute("SET tacit.intervals = on")  # and what was prepared is prepared again
            assert len(await connection.fetchrow("SELECT COUNT(*) AS n FROM visits")) == 3
            await connection.execute("SET tacit.intervals = off")
            assert len(await connection.fetchrow("SELECT COUNT(*) AS n FROM visits")) == 1
            await connection.reset()
        finally:
            await connection.close()

    asyncio.run(asked())


@pytest.mark.slow
def test_sqlalchemy_inspects(engine):
    import sqlalchemy

    with engine.connect() as connection:
        found = sqlalchemy.inspect(connection)
        assert sorted(found.get_table_names()) == ["visits", "wards"]
        assert found.get_view_names() == [] and "public" in found.get_schema_names()
        assert found.has_table("visits") and not found.has_table("nothing")
        columns = {column["name"]: column for column in found.get_columns("visits")}
        kinds = {name: str(column["type"]) for name, column in columns.items()}
        assert kinds["age"] == "BIGINT" and kinds["visited"] == "DATE" and kinds["insured"] == "BOOLEAN"
        assert kinds["ward"] == "TEXT" and kinds["cost"].startswith("DOUBLE")
        assert columns["age"]["comment"] == "from 0 to 110"
        assert found.get_pk_constraint("visits")["constrained_columns"] == []
        assert found.get_foreign_keys("visits") == found.get_indexes("visits") == []
        assert found.get_unique_constraints("visits") == found.get_check_constraints("visits") == []
        assert found.get_table_comment("wards") == {"text": "public"}


@pytest.mark.slow
def test_sqlalchemy_asks_by_expressions_over_reflected_tables(engine):
    import sqlalchemy

    tables = sqlalchemy.MetaData()
    with engine.connect() as connection:
        tables.reflect(connection)
        visits = tables.tables["visits"]
        asked = (
            sqlalchemy.select(visits.c.ward, sqlalchemy.func.count().label("n"), sqlalchemy.func.sum(visits.c.cost))
            .where(visits.c.age > 30, visits.c.visited > FIRST, visits.c.cost < 300.5, visits.c.ward.in_(["A", "B"]))
            .group_by(visits.c.ward)
            .order_by(visits.c.ward)
            .limit(2)
        )
        assert [row.ward for row in connection.execute(asked)] == ["A", "B"]
        text = sqlalchemy.text("SELECT COUNT(*) AS n FROM visits WHERE ward = :ward")
        assert isinstance(connection.execute(text, {"ward": "it's"}).scalar(), int)


def test_pandas_reads_an_answer_and_its_intervals(engine):
    frame = pandas.read_sql(GROUPED, engine)
    assert list(frame.columns) == ["ward", "n", "c"] and frame["n"].dtype == "int64" and frame["c"].dtype == "float64"
    with engine.connect() as connection:
        connection.exec_driver_sql("SET tacit.intervals = on")
        frame = pandas.read_sql(GROUPED, connection)
    assert list(frame.columns) == ["ward", "n", "n_low", "n_high", "c", "c_low", "c_high"]
    assert (frame["n_low"] < frame["n"]).all()


@pytest.mark.parametrize("binary", [False, True])
def test_timestamps_come_and_go_as_they_are_in_postgresql(connected, binary):
    key = "DATE_TRUNC('month', CAST(visited AS TIMESTAMP))"
    text = f"SELECT {key} AS m, COUNT(*) FROM visits WHERE visited < %s GROUP BY m"
    cursor = connected.cursor(binary=binary)
    for before in (datetime.datetime(2025, 3, 1, 10, 30), datetime.datetime(2025, 3, 2)):
        rows = cursor.execute(text, (before,)).fetchall()
        assert cursor.description[0].type_code == 1114
        assert rows[0][0] == datetime.datetime(2025, 1, 1) and type(rows[0][0]) is datetime.datetime
