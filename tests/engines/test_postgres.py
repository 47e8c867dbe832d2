"""PostgreSQL: what it stores and how that is read, a role that only reads, one state of the tables, and failures."""

from __future__ import annotations

import datetime
import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import Any

import psycopg
import pytest
from tests.support.forks import fork, outcome

import tacit
from tacit.aggregates.registry import read_question
from tacit.curator.resources import open_engine
from tacit.curator.tables import check_join_columns, table_schemas
from tacit.engines.base import TableSchema
from tacit.engines.deadline import time_limit
from tacit.engines.dialect import POSTGRES
from tacit.engines.left_out import LeftOut
from tacit.engines.postgres import PostgresEngine, read_columns
from tacit.engines.reference import ReferenceEngine
from tacit.engines.scalars import write_scalar
from tacit.engines.source_columns import SourceColumn
from tacit.engines.underflow import guard_scalar
from tacit.errors import DataError, Failed, ParameterError
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Clamp,
    ColumnReference,
    Constants,
    ExactStatistic,
    GroupKey,
    Literal,
    Projection,
    Quantize,
    Scalar,
    Scan,
)
from tacit.query.types import Type

pytestmark = pytest.mark.slow

COUNT = ExactStatistic("count", None)
_names = count(1)


class Place:
    """A schema of its own on a server."""

    def __init__(self, url: str) -> None:
        self.url, self.schema = url, f"place{next(_names)}"
        self.admin = psycopg.connect(url, autocommit=True)
        self.do(f"CREATE SCHEMA {self.schema}", f"SET search_path = {self.schema}")

    def do(self, *statements: str) -> None:
        for statement in statements:
            self.admin.execute(statement.encode())

    def dsn(self, *options: str, **parts: str) -> str:
        every = [f"search_path={self.schema}", *options]
        said = "".join(f"&{name}={value}" for name, value in parts.items())
        return f"{self.url}{said}&options={'%20'.join('-c%20' + option.replace('=', '%3D') for option in every)}"


@pytest.fixture
def place(postgres):
    made = Place(postgres)
    yield made
    made.admin.close()


def shape(unit: str | None = None, links: tuple[str, ...] = (), name: str = "t", **columns: str) -> TableSchema:
    return TableSchema(name, tuple((column, Type(kind)) for column, kind in columns.items()), unit, links)


def by(key: str | Scalar, *measures: ExactStatistic, table: str = "t", **more: Any) -> Aggregation:
    """How many rows have each value of a column."""
    scalar_of = ColumnReference(key) if isinstance(key, str) else key
    names = more.pop("columns", [key] if isinstance(key, str) else [])
    source = Scan(table, tuple((name, name) for name in names))
    keep = ContributionBounds(*more.pop("keep", (9, 9)))
    return Aggregation(source, None, more.get("unit"), (GroupKey(scalar_of, None),), keep, measures or (COUNT,))


def values(engine: PostgresEngine, column: str) -> set[Any]:
    return {key for (key,) in engine.run(by(column))}


def test_every_stored_type_is_read_as_the_declared_one(place):
    place.do(
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE DOMAIN code AS VARCHAR(5)",
        "CREATE TABLE t (small SMALLINT, whole INTEGER,"
        " fixed CHAR(5), short VARCHAR(9), id UUID, m mood, c code, d DATE)",
        "INSERT INTO t VALUES (-7, 70000, 'ab', 'é''日',"
        " '123e4567-e89b-12d3-a456-426614174000', 'bad', 'x', DATE '2024-02-29')",
    )
    columns = {"small": "int", "whole": "int", "fixed": "text", "short": "text", "id": "text", "m": "text", "c": "text"}
    engine = PostgresEngine([shape(**columns, d="date")], place.dsn())
    expected = [-7, 70000, "ab", "é'日", "123e4567-e89b-12d3-a456-426614174000", "bad", "x", datetime.date(2024, 2, 29)]
    assert [values(engine, column) for column in (*columns, "d")] == [{value} for value in expected]
    engine.close()


def test_numbers_beyond_a_double_are_moved_to_its_ends(place):
    place.do(
        "CREATE TABLE t (n NUMERIC, r REAL)",
        "INSERT INTO t VALUES (1e400, 1.5), (-1e400, 'Infinity'), (1e-400, 'NaN'), ('NaN', 0), (0.25, 1e-40)",
    )
    engine = PostgresEngine([shape(n="float", r="float")], place.dsn())
    grid = {name: Quantize(ColumnReference(name), Fraction(1, 4), -8, 8) for name in ("n", "r")}
    assert engine.run(by(grid["n"], columns=["n"])) == {(8,): (1,), (-8,): (1,), (0,): (1,), (None,): (1,), (1,): (1,)}
    assert engine.run(by(grid["r"], columns=["r"])) == {(6,): (1,), (8,): (1,), (None,): (1,), (0,): (2,)}
    engine.close()


def test_dates_that_python_has_not_are_null(place):
    place.do(
        "CREATE TABLE t (d DATE)",
        "INSERT INTO t VALUES ('infinity'), ('-infinity'), ('0001-01-01 BC'), ('10000-01-01'), ('9999-12-31')",
    )
    engine = PostgresEngine([shape(d="date")], place.dsn())
    assert engine.run(by("d")) == {(None,): (4,), (datetime.date(9999, 12, 31),): (1,)}
    engine.close()


@pytest.mark.parametrize(
    ("made", "declared", "said"),
    [
        ("x TEXT", {"x": "int"}, "t.x is declared int but stored as text"),
        ("x NUMERIC", {"x": "int"}, "t.x is declared int but stored as numeric"),
        ("x TIMETZ", {"x": "date"}, "t.x is declared date but stored as time with time zone"),
        ("x JSON", {"x": "text"}, "t.x is declared text but stored as json"),
        ("y TEXT", {"x": "text"}, "t has no column x"),
    ],
)
def test_columns_that_are_not_as_declared_are_said_at_open(made, declared, said, place):
    place.do(f"CREATE TABLE t ({made})")
    with pytest.raises(DataError) as caught:
        PostgresEngine([shape(**declared)], place.dsn())
    assert said in caught.value.what and caught.value.fix


@pytest.mark.parametrize("kind", ["DOUBLE PRECISION", "JSONB", "TIMESTAMPTZ"])
def test_a_unit_of_which_equal_values_may_differ_as_texts_is_no_unit(kind, place):
    place.do(f"CREATE TABLE t (x INTEGER, who {kind})")
    with pytest.raises(DataError, match=r"t\.who says whose row it is"):
        PostgresEngine([shape(unit="who", x="int")], place.dsn())


FAILING = {
    "a cast": ("CREATE VIEW t AS SELECT CAST(s AS INTEGER) AS x FROM base", "a view that computes more"),
    "a division": ("CREATE VIEW t AS SELECT 1 / y AS x FROM base", "a view that computes more"),
    "a cast in a filter": ("CREATE VIEW t AS SELECT y AS x FROM base WHERE CAST(s AS INTEGER) > 3", "computes more"),
    "an aggregate": ("CREATE VIEW t AS SELECT CAST(SUM(y) AS BIGINT) AS x FROM base", "computes more"),
    "a subquery": ("CREATE VIEW t AS SELECT (SELECT y FROM base) AS x FROM base", "computes more"),
    "a view of a view": ("CREATE VIEW u AS SELECT 1 / y AS x FROM base; CREATE VIEW t AS SELECT x FROM u", "reads u"),
    "row security": (
        "CREATE TABLE t (x INTEGER); ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY; "
        "CREATE POLICY p ON t USING (1 / x > 0); GRANT SELECT ON t TO {role}",
        "row security",
    ),
}


@pytest.mark.parametrize("made", FAILING)
def test_what_could_fail_on_a_row_is_said_at_open(made, place):
    statement, said = FAILING[made]
    role = f"reader{next(_names)}"
    place.do("CREATE TABLE base (s TEXT, y INTEGER)", "INSERT INTO base VALUES ('1', 1), ('no number', 0)")
    place.do(f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA {place.schema} TO {role}")
    place.do(*statement.format(role=role).split("; "), f"GRANT SELECT ON t TO {role}")
    with pytest.raises(DataError) as caught:
        PostgresEngine([shape(x="int")], place.dsn(user=role))
    assert said in caught.value.what and "t" in caught.value.what and caught.value.fix


def test_the_fix_for_a_view_works(place):
    place.do("CREATE TABLE base (s TEXT)", "INSERT INTO base VALUES ('4')")
    place.do("CREATE VIEW t AS SELECT CAST(s AS INTEGER) AS x FROM base")
    with pytest.raises(DataError) as caught:
        PostgresEngine([shape(x="int")], place.dsn())
    place.do(caught.value.fix.removeprefix("store it: "))
    engine = PostgresEngine([shape(name="t_stored", x="int")], place.dsn())
    place.do("INSERT INTO base VALUES ('no number')")
    assert engine.run(by("x", table="t_stored")) == {(4,): (1,)}
    engine.close()


def test_views_of_columns_and_comparisons_are_read(place):
    place.do(
        "CREATE TABLE base (s TEXT, y INTEGER, b BOOLEAN)", "INSERT INTO base VALUES ('a', 1, true), ('b', 0, false)"
    )
    chosen = "y = 1 AND s IN ('a', 'c') AND b IS NOT NULL AND b AND s <> 'x'"
    place.do(
        f"CREATE VIEW u AS SELECT y, s FROM base WHERE {chosen}", "CREATE VIEW t AS SELECT COALESCE(y, 2) AS x FROM u"
    )
    engine = PostgresEngine([shape(x="int")], place.dsn())
    assert engine.run(by("x")) == {(1,): (1,)}
    engine.close()


UNLIKE = [("INTEGER", "BIGINT", True), ("TEXT", "VARCHAR(9)", True), ("NUMERIC(9,1)", "NUMERIC(9,2)", True)]
UNLIKE += [("TEXT", "UUID", False), ("TEXT", "CHAR(4)", False), ("DATE", "TEXT", False), ("NUMERIC", "TEXT", False)]


@pytest.mark.parametrize(("one", "other", "alike"), UNLIKE)
def test_units_are_stored_alike(one, other, alike, place):
    place.do(f"CREATE TABLE a (who {one}, x INTEGER)", f"CREATE TABLE b (who {other}, x INTEGER)")
    table = {"unit": "who", "people": "p", "max_groups": 1, "max_rows_per_group": 1, "columns": {"x": {"type": "int"}}}
    policy = load(
        {
            "data": {"engine": "postgres", "source": place.dsn()},
            "privacy": {"epsilon": 1},
            "tables": {"a": table, "b": table},
            "analysts": {"ada": {"epsilon": 1}},
        }
    )
    engine = open_engine(policy)
    try:
        if alike:
            check_join_columns(policy, engine)
        else:
            with pytest.raises(DataError, match=r"b\.who is stored as .* one unit would be two"):
                check_join_columns(policy, engine)
    finally:
        engine.close()


def test_undeclared_units_are_integers_or_texts(place):
    place.do("CREATE TABLE t (x INTEGER, a BIGINT, b NUMERIC, c CHAR(4))")
    place.do("INSERT INTO t VALUES (1, 5, 1.0, 'ab'), (1, 5, 1.00, 'ab  '), (2, NULL, 2, NULL)")
    for unit, kind in [("a", Type.INT), ("b", Type.TEXT), ("c", Type.TEXT)]:
        engine = PostgresEngine([shape(unit=unit, x="int")], place.dsn())
        assert engine.type_of("t", unit) is kind
        assert engine.type_of("t", "x") is Type.INT
        # 1.0 and 1.00 are one person, as 'ab' and 'ab  ' are
        found = engine.run(by("x", COUNT, ExactStatistic("units", None), columns=["x", unit], unit=unit, keep=(1, 9)))
        assert found[1,] == (2, 1)
        engine.close()


def test_tables_are_found_along_the_search_path_and_in_any_case(place):
    other = f"{place.schema}b"
    place.do(f"CREATE SCHEMA {other}", "CREATE TABLE t (x INTEGER)", f"CREATE TABLE {other}.t (x INTEGER)")
    place.do("INSERT INTO t VALUES (1)", f"INSERT INTO {other}.t VALUES (2)", f'CREATE TABLE {other}."Odd ""t" (x INT)')
    first = PostgresEngine(
        [shape(x="int"), shape(name='odd "T', x="int")], place.dsn(f"search_path={place.schema},{other}")
    )
    assert values(first, "x") == {1}
    first.close()
    with pytest.raises(DataError, match=r"table nothing was not found: .* has t"):
        PostgresEngine([shape(name="nothing", x="int")], place.dsn())


def test_columns_of_a_database(place):
    place.do(
        "CREATE TABLE t (a INTEGER, b NUMERIC, c TEXT, d BOOLEAN, e DATE, f JSON, g TIMESTAMP, h TIMESTAMPTZ, i TIME)",
        "CREATE VIEW v AS SELECT a FROM t",
    )
    kinds: list[Any] = [Type.INT, Type.FLOAT, Type.TEXT, Type.BOOL, Type.DATE, LeftOut("json"), Type.TIMESTAMP]
    kinds += [Type.TIMESTAMP, LeftOut("time without time zone")]
    columns = [SourceColumn(*each) for each in zip("abcdefghi", kinds, strict=True)]
    assert read_columns(place.dsn()) == {"t": columns, "v": [SourceColumn("a", Type.INT)]}


def test_texts_dates_and_times_mean_the_same_whatever_the_role_prefers(place):
    rows = [
        {"who": who, "day": datetime.date(2024, 3, 31) + datetime.timedelta(days=n), "label": label}
        for n, (who, label) in enumerate([("u", "B"), ("u", "a"), ("v", "Z"), ("v", "ä"), ("u", "A"), ("v", "b")] * 3)
    ]
    place.do('CREATE TABLE t (who TEXT, day DATE, label TEXT COLLATE "pg_c_utf8")')
    with place.admin.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", [tuple(row.values()) for row in rows])
    odd = ("TimeZone=Pacific/Auckland", "DateStyle=German", "standard_conforming_strings=off")
    engine = PostgresEngine([shape(who="text", day="date", label="text")], place.dsn(*odd))
    reference = ReferenceEngine({"t": rows})
    week = Call(Function.DATE_TRUNC, (Literal("week"), ColumnReference("day")))
    for key, measure in [
        (ColumnReference("day"), COUNT),
        (week, ExactStatistic("histogram", ColumnReference("label"))),
        (ColumnReference("label"), COUNT),
    ]:
        # Which groups and rows are kept hangs on the texts of dates, and on the order of texts.
        node = by(key, measure, columns=["who", "day", "label"], unit="who", keep=(2, 2))
        assert engine.run(node) == reference.run(node)
    assert values(engine, "label") == {"B", "a", "Z", "ä", "A", "b"}
    escaped = by(Call(Function.EQUAL, (ColumnReference("label"), Literal("\\'"))), columns=["label"])
    assert engine.run(escaped) == {(False,): (18,)}
    engine.close()


def test_a_database_of_another_encoding_is_no_source(place):
    name = f"latin{next(_names)}"
    place.do(f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(DataError, match="has the encoding LATIN1"):
        PostgresEngine([], place.dsn(dbname=name))


@pytest.mark.parametrize(("version_with_all", "capital"), [(10**9, "é"), (0, "É")])
def test_letters_of_constants_change_as_those_of_columns(version_with_all, capital, place, monkeypatch):
    # The database's own collation has a capital of é in every version, as a Turkish one has another of i.
    name = f"unicode{next(_names)}"
    place.do(f"CREATE DATABASE {name} LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0")
    monkeypatch.setattr("tacit.engines.postgres._UNICODE_CASE_VERSION", version_with_all)
    engine = PostgresEngine([], place.dsn(dbname=name))
    rows = Constants((("t", Type.TEXT), ("i", Type.INT)), (("éi", 1), (None, 2)))
    written = Call(Function.CONCAT, (Call(Function.TO_TEXT, (ColumnReference("i"),)), Literal("é")))
    texts = {"stored": ColumnReference("t"), "said": Literal("éi"), "written": written}
    capitals = tuple((here, Call(Function.UPPER, (text,))) for here, text in texts.items())
    found = engine.read(Projection(rows, capitals), 9)
    assert found == [(f"{capital}I", f"{capital}I", f"1{capital}"), (None, f"{capital}I", f"2{capital}")]
    engine.close()


# z and y are NULL in every row, which makes them columns of texts to PostgreSQL.
EMPTY = "(SELECT who, x, b, CASE WHEN x > 1 THEN NULL END AS z, COALESCE(NULL, NULL) AS y FROM t) AS s"
STACKED = "(SELECT who, x, NULL AS z FROM t UNION ALL SELECT who, x, NULL AS z FROM t) AS s"
WINDOWS = "OVER (PARTITION BY who ORDER BY x)"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT SUM(CASE WHEN x > 1 THEN z ELSE x END), SUM(COALESCE(y, z, x)) FROM {EMPTY}",
        f"SELECT COUNT(*) FROM {EMPTY} WHERE COALESCE(z, b) AND z IS NULL",
        f"SELECT COUNT(DISTINCT CASE WHEN b THEN who ELSE z END) FROM {EMPTY}",
        f"SELECT SUM(COALESCE(z, x)) FROM {STACKED}",
        f"SELECT SUM(COALESCE(k, x)) FROM (SELECT who, z AS k, MAX(x) AS x FROM {EMPTY} GROUP BY who, z) AS g",
        f"SELECT SUM(COALESCE(k, x)) FROM (SELECT who, x, LAG(z) {WINDOWS} AS k FROM {EMPTY}) AS g",
        f"SELECT SUM(k) FROM (SELECT who, LAG(z, 1, x) {WINDOWS} AS k FROM {EMPTY}) AS g",
        f"SELECT SUM(k) FROM (SELECT who, LAG(x, 1, z) {WINDOWS} AS k FROM {EMPTY}) AS g",
        f"SELECT COUNT(*) FROM t LEFT JOIN {EMPTY} ON t.who = s.who WHERE CASE WHEN t.b THEN s.z ELSE s.x END = 1",
        f"SELECT COUNT(*) FROM t FULL JOIN {EMPTY} ON t.who = s.who WHERE CASE WHEN t.b THEN s.z ELSE t.x END = 1",
        "SELECT COUNT(*) FROM t JOIN (SELECT k, NULL AS z FROM (VALUES (1), (2)) AS v(k)) AS w ON t.x = COALESCE(z, k)",
        "SELECT COUNT(DISTINCT u) FROM (SELECT NULL AS u FROM t UNION ALL SELECT NULL AS u FROM t"
        " UNION ALL SELECT who AS u FROM t) AS s",
    ],
)
def test_what_is_always_null_goes_with_any_type(text, place):
    rows = [{"who": n // 2, "x": n % 3, "b": n % 2 == 0} for n in range(6)]
    place.do("CREATE TABLE t (who BIGINT, x BIGINT, b BOOLEAN)")
    place.do(*(f"INSERT INTO t VALUES ({row['who']}, {row['x']}, {row['b']})" for row in rows))
    columns = {"x": {"type": "int", "lower": 0, "upper": 2}, "b": {"type": "bool"}}
    table = {"unit": "who", "people": "p", "max_groups": 1, "max_rows_per_group": 9, "columns": columns}
    policy = load({"privacy": {"epsilon": 1}, "tables": {"t": table}, "analysts": {"ada": {"epsilon": 1}}})
    exact = plan_for(read_question(text), policy, 1).exact
    engine = PostgresEngine(table_schemas(policy), place.dsn())
    assert engine.run(exact) == ReferenceEngine({"t": rows}).run(exact)
    engine.close()


def test_nothing_can_be_written_and_a_question_sees_one_state(place):
    place.do("CREATE TABLE t (x INTEGER)")
    engine = PostgresEngine([shape(x="int")], place.dsn("default_transaction_read_only=off"))
    with engine._snapshot() as connection:
        for _ in range(2):
            assert connection.execute(f"SELECT COUNT(*) FROM {place.schema}.t").fetchone() == (0,)
            place.do("INSERT INTO t VALUES (1)")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), engine._snapshot() as connection:
        connection.execute(f"DELETE FROM {place.schema}.t")
    assert engine.run(by("x")) == {(1,): (2,)}
    engine.close()


def test_the_owner_is_told_of_a_role_that_may_write(place, caplog):
    reader = f"reader{next(_names)}"
    place.do("CREATE TABLE t (x INTEGER)", f"CREATE ROLE {reader} LOGIN", f"GRANT SELECT ON t TO {reader}")
    place.do(f"GRANT USAGE ON SCHEMA {place.schema} TO {reader}")
    with caplog.at_level(logging.WARNING, logger="tacit"):
        PostgresEngine([shape(x="int")], place.dsn(user=reader)).close()
        assert caplog.records == []
        PostgresEngine([shape(x="int")], place.dsn()).close()
    assert "may write" in caplog.text


def test_a_role_that_may_not_read_is_told_at_open(place):
    reader = f"reader{next(_names)}"
    place.do(
        "CREATE TABLE t (x INTEGER, y INTEGER)", f"CREATE ROLE {reader} LOGIN", f"GRANT SELECT (x) ON t TO {reader}"
    )
    place.do(f"GRANT USAGE ON SCHEMA {place.schema} TO {reader}")
    PostgresEngine([shape(x="int")], place.dsn(user=reader)).close()
    with pytest.raises(DataError, match="the role may not read all columns of t"):
        PostgresEngine([shape(x="int", y="int")], place.dsn(user=reader))


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Nobody can read the table t meanwhile: whoever does waits."""
    with psycopg.connect(place.url) as other:
        other.execute(f"LOCK TABLE {place.schema}.t IN ACCESS EXCLUSIVE MODE".encode())
        yield


def test_a_statement_that_takes_too_long_is_stopped(place):
    place.do("CREATE TABLE t (x INTEGER)")
    engine = PostgresEngine([shape(x="int")], place.dsn(), timeout=0.2)
    with locked(place), pytest.raises(psycopg.errors.QueryCanceled):
        engine.run(by("x"))
    engine.close()


def test_a_question_s_own_limit_stops_it_and_leaves_the_next_one_alone(place):
    place.do("CREATE TABLE t (x INTEGER)", "CREATE TABLE fast (x INTEGER)", "INSERT INTO fast VALUES (3)")
    engine = PostgresEngine([shape(x="int"), shape(name="fast", x="int")], place.dsn())
    with locked(place), time_limit(0.2), pytest.raises(psycopg.errors.QueryCanceled):
        engine.run(by("x"))
    with time_limit(30):
        engine.run(by("x", table="fast"))
    with engine._snapshot() as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("10min",)
    engine.close()


def test_a_lost_connection_raises_and_the_next_question_has_a_new_one(place):
    place.do("CREATE TABLE t (x INTEGER)", "CREATE TABLE fast (x INTEGER)", "INSERT INTO fast VALUES (3)")
    engine = PostgresEngine([shape(x="int"), shape(name="fast", x="int")], place.dsn())
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tacit' AND state = '{}'"
    stopped = threading.Event()

    def stop() -> None:
        while not stopped.wait(0.05):
            place.do(end.format("active"))

    killer = threading.Thread(target=stop)
    killer.start()
    try:
        with locked(place), pytest.raises(psycopg.OperationalError):
            engine.run(by("x"))
    finally:
        stopped.set()
        killer.join()
    assert engine.run(by("x", table="fast")) == {(3,): (1,)}
    place.do(end.format("idle"))  # between two questions
    assert engine.run(by("x", table="fast")) == {(3,): (1,)}
    engine.close()


def test_questions_at_once_have_connections_of_their_own(place):
    place.do("CREATE TABLE t AS SELECT i % 7 AS x FROM generate_series(1, 5000) AS s(i)")
    engine = PostgresEngine([shape(x="int")], place.dsn())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(engine.run, [by("x")] * 12))
    assert all(one == found[0] for one in found)
    assert len(engine._idle) <= 4
    engine.close()
    assert engine._idle == []


def test_a_fork_does_not_share_a_connection(place):
    place.do("CREATE TABLE t (x INTEGER)")
    engine = PostgresEngine([shape(x="int")], place.dsn())
    child = fork()
    if child == 0:
        try:
            engine.run(by("x"))
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert outcome(child) == 7
    assert engine.run(by("x")) == {}
    engine.close()


@pytest.mark.parametrize("dsn", ["postgresql://ada:s3cret@[/x", "host=x s3cret"])
def test_what_is_no_url_is_refused_without_repeating_it(dsn):
    with pytest.raises(ParameterError) as caught:
        PostgresEngine([], dsn)
    assert "s3cret" not in str(caught.value)


def test_a_server_that_is_not_there_is_said_without_the_password():
    with pytest.raises(DataError) as caught:
        PostgresEngine([], "postgresql://ada:s3cret@127.0.0.1:1/office")
    assert "office at 127.0.0.1 cannot be reached" in str(caught.value)
    assert "s3cret" not in str(caught.value)


# Totality.


def test_a_guard_names_its_operand_once():
    x = Clamp(ColumnReference("x"), None, None, whole=True)  # written as it is
    for node in (
        Call(Function.EXP, (x,)),
        Call(Function.POWER, (x, Literal(Fraction(3)))),
        Call(Function.DIVIDE, (Literal(Fraction(1)), x)),
        Call(Function.SQRT, (x,)),
        Call(Function.LN, (x,)),
        guard_scalar(Call(Function.MULTIPLY, (ColumnReference("x"), Literal(Fraction(1, 3)))), frozenset("x")),
    ):
        assert write_scalar(node, POSTGRES).count('"x"') == 1


def test_products_of_integers_and_with_whole_numbers_stay_as_they_are():
    twice = Call(Function.MULTIPLY, (ColumnReference("x"), Literal(Fraction(2))))
    assert guard_scalar(twice, frozenset("x")) == twice
    square = Call(Function.MULTIPLY, (ColumnReference("x"), ColumnReference("x")))
    assert guard_scalar(square, frozenset()) == square
    assert guard_scalar(square, frozenset("x")) != square


def test_nothing_next_to_zero_or_to_the_largest_double_raises(place):
    place.do("CREATE TABLE t (x DOUBLE PRECISION, y DOUBLE PRECISION)")
    hard = [0.0, -0.0, 5e-324, -5e-324, 1e-308, 1e-200, 1e-160, 2.0**-298, -(2.0**-298), 1e-30, 1.0, 1e200, -1e200]
    with place.admin.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(x, y) for x in hard for y in hard])
    engine = PostgresEngine([shape(x="float", y="float")], place.dsn())
    near = Clamp(ColumnReference("x"), Fraction(-1), Fraction(1), whole=False)
    x, y = (Clamp(ColumnReference(name), Fraction(-(10**200)), Fraction(10**200), whole=False) for name in "xy")
    low = Call(Function.LEAST, (x, Literal(Fraction(400))))
    nodes = [
        Call(Function.MULTIPLY, (near, y)),
        Call(Function.DIVIDE, (x, y)),
        Call(Function.EXP, (low,)),
        *(Call(Function.POWER, (near, Literal(Fraction(n)))) for n in range(11)),
        Call(Function.MULTIPLY, (Call(Function.MULTIPLY, (near, near)), Call(Function.MULTIPLY, (near, near)))),
    ]
    measures = tuple(
        ExactStatistic("count", Quantize(node, Fraction(step), -5, 5)) for node in nodes for step in (1, 1000)
    )
    source = Scan("t", (("x", "x"), ("y", "y")))
    ((counts,),) = [engine.run(Aggregation(source, None, None, (), ContributionBounds(1, 1), measures)).values()]
    # 169 pairs; a quotient is NULL where y is 0, -0, or below 1e-105: 7 of 13
    assert list(counts) == [169, 169, 13 * 6, 13 * 6, *[169] * 2 * (len(nodes) - 2)]
    engine.close()


def test_patterns_take_time_that_grows_with_the_text_alone(place):
    """A search that tried all places would take 3000**4 / 4! steps a row for the first pattern: over the time limit."""
    place.do("CREATE TABLE t AS SELECT repeat('a', 3000) || chr(99 + i) AS s FROM generate_series(1, 20) AS r(i)")
    engine = PostgresEngine([shape(s="text")], place.dsn(), timeout=20)
    for pattern in ("%a_%a_%a_%b", "a%a%a%a%a%b", "_%a_%", "%" + "a" * 50 + "_" + "a" * 40 + "b%", "%_a" * 30):
        found = engine.run(by(Call(Function.LIKE, (ColumnReference("s"), Literal(pattern))), columns=["s"]))
        assert sum(cells[0] for cells in found.values()) == 20
    engine.close()


# The whole story.


def test_a_policy_over_a_database(place, tmp_path):
    made = "SELECT i % 50 AS patient, i % 3 AS ward, i::float8 AS cost FROM generate_series(1, 300) AS s(i)"
    place.do(f"CREATE TABLE visits AS {made}")
    place.do("CREATE TABLE broken AS SELECT patient, ward FROM visits")
    columns = {
        "ward": {"type": "int", "lower": 0, "upper": 2, "values": [0, 1, 2]},
        "cost": {"type": "float", "lower": 0, "upper": 100, "step": 0.01},
    }
    bounds = {"unit": "patient", "max_groups": 3, "max_rows_per_group": 6}
    policy = {
        "data": {"engine": "postgres", "source": place.dsn()},
        "ledger": {"store": str(tmp_path / "visits.ledger")},
        "privacy": {"epsilon": 1000},
        "tables": {
            "visits": {**bounds, "columns": columns},
            "broken": {**bounds, "columns": {"ward": columns["ward"]}},
        },
        "analysts": {"ada": {"epsilon": 1000}},
    }
    with tacit.open(policy) as curator:
        ada = curator.analyst("ada")
        found = ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=500)
        # the noise of a ward is not 0 with a chance of 2 e^(-500/18) = 1.7e-12
        assert [row["n"] for row in found] == [100, 100, 100]
        place.do("DROP TABLE broken")
        with pytest.raises(Failed) as caught:
            ada.ask("SELECT COUNT(*) FROM broken WHERE ward = 1", epsilon=1)
        assert "broken" not in str(caught.value)
