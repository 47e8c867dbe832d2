"""A question over live data that fails locks what it reads, until the owner has looked."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.engines.conftest import in_schema
from tests.support.policies import policy_of

import tacit
from tacit import learn
from tacit.curator.ask import answer, release
from tacit.errors import ErrorCode, Failed, LedgerError, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import verify
from tacit.plan.question import Question

_schemas = itertools.count(1)
COLUMNS = {"x": {"type": "int", "lower": 0, "upper": 9}}
BOUNDS = {"unit": "who", "max_groups": 1, "max_rows_per_group": 2, "columns": COLUMNS}


@pytest.fixture
def database(postgres: str) -> tuple[str, Callable[[str], None]]:
    """The URL of a schema with the tables visits and stays, and a way to run the owner's statements in it."""
    schema = f"locks{next(_schemas)}"

    def run(statement: str) -> None:
        with psycopg.connect(in_schema(postgres, schema), autocommit=True) as connection:
            connection.execute(statement)

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    for table in ("visits", "stays"):
        run(f"CREATE TABLE {table} AS SELECT i AS who, CAST(i % 10 AS BIGINT) AS x FROM generate_series(1, 50) AS s(i)")
    return in_schema(postgres, schema), run


def policy(folder: Path, url: str) -> dict[str, Any]:
    tables = dict.fromkeys(["visits", "stays"], BOUNDS)
    return {"data": {"engine": "postgres", "source": url}, **policy_of(tables, own={"epsilon": 100}, folder=folder)}


# What a check at open cannot exclude: the owner's database changes afterwards.
FAILING = {
    "a division": "SELECT who, 10 / x AS x FROM stored",
    "a cast": "SELECT who, CAST(CASE WHEN x = 0 THEN 'none' ELSE CAST(x AS TEXT) END AS BIGINT) AS x FROM stored",
}


@pytest.mark.parametrize("view", FAILING)
def test_a_question_that_a_row_makes_fail_locks_the_table(view, database, tmp_path):
    url, run = database
    with tacit.open(policy(tmp_path, url)) as curator:
        ada = curator.analyst("ada")
        run("ALTER TABLE visits RENAME TO stored")
        run(f"CREATE VIEW visits AS {FAILING[view]}")
        with pytest.raises(Failed):
            ada.ask("SELECT SUM(x) FROM visits", epsilon=1)
        for again in ("SELECT SUM(x) FROM visits", "SELECT COUNT(*) FROM visits WHERE x > 5"):
            with pytest.raises(Refused) as refused:
                ada.ask(again, epsilon=1)
            assert refused.value.code == "table-locked"
            assert "visits" in refused.value.what and "tacit tables unlock visits" in refused.value.fix
        assert ada.budget.remaining == 99  # the refusals are free
        ada.ask("SELECT SUM(x) FROM stays", epsilon=1)  # which the question did not read
        run("DROP VIEW visits")
        run("ALTER TABLE stored RENAME TO visits")
        curator.ledger.unlock("visits")
        ada.ask("SELECT SUM(x) FROM visits", epsilon=1)
        kinds = [entry.kind for entry in curator.ledger.entries()]
    assert kinds == [
        *(EntryKind.OPEN, EntryKind.RESERVE, EntryKind.LOCK, EntryKind.FAIL),
        *(EntryKind.RESERVE, EntryKind.COMMIT, EntryKind.UNLOCK, EntryKind.RESERVE, EntryKind.COMMIT),
    ]


def test_a_time_limit_locks_too(database, tmp_path):
    # That it was reached may depend on rows.
    url, run = database
    with tacit.open(policy(tmp_path, url)) as curator:
        run("ALTER TABLE visits RENAME TO stored")
        run("CREATE VIEW visits AS SELECT who, x FROM stored WHERE pg_sleep(x) IS NOT NULL")
        ada, question = curator.analyst("ada"), Question("SELECT SUM(x) FROM visits", 1)
        plan = curator.planner.plan(question, "ada")
        with pytest.raises(Failed):
            answer(
                question, plan, "ada", curator, partial(release, engine=curator.engine, bits=curator.bits, seconds=0.2)
            )
        with pytest.raises(Refused) as refused:
            ada.ask("SELECT COUNT(*) FROM visits", epsilon=1)
        assert refused.value.code == "table-locked"
        (lock,) = curator.ledger.locks().values()
        assert lock.cause == "psycopg.errors.QueryCanceled"


def test_a_server_that_cannot_be_reached_locks_nothing(database, tmp_path):
    url, _ = database
    with tacit.open(policy(tmp_path, url)) as curator:
        engine = curator.engine
        engine.close()
        engine._dsn = "host=/nowhere dbname=none"  # where the server was
        with pytest.raises(Failed):
            curator.analyst("ada").ask("SELECT SUM(x) FROM visits", epsilon=1)
        engine._dsn = url
        curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=1)
        assert curator.ledger.locks() == {}
        assert curator.analyst("ada").budget.remaining == 98  # both are charged


UNTYPED = "CASE WHEN x > 1 THEN z ELSE x END"


@pytest.mark.parametrize("chosen", [f"SUM({UNTYPED})", f"COUNT(*), MEDIAN({UNTYPED})"])
def test_a_statement_that_the_server_cannot_read_locks_nothing(chosen, database, tmp_path, monkeypatch):
    # z is NULL, and a text to PostgreSQL, where it is not written in the place of each operand. The statement of a
    # median comes after one that can be read, and no row decides which of them can.
    url, _ = database
    nulls = "(SELECT who, x, CASE WHEN x > 3 THEN NULL END AS z FROM visits) AS s"
    with tacit.open(policy(tmp_path, url)) as curator:
        ada = curator.analyst("ada")
        with monkeypatch.context() as patched:
            patched.setattr("tacit.engines.postgres.write_bare_nulls", lambda node: node)
            with pytest.raises(Failed):
                ada.ask(f"SELECT {chosen} FROM {nulls}", epsilon=1)
        assert curator.ledger.locks() == {}
        ada.ask(f"SELECT {chosen} FROM {nulls}", epsilon=2)
        assert ada.budget.remaining == 97  # both are charged


def test_a_server_that_is_lost_after_a_statement_was_sent_locks(database, tmp_path):
    url, run = database
    with tacit.open(policy(tmp_path, url)) as curator:
        run("ALTER TABLE visits RENAME TO stored")
        ends = "pg_terminate_backend(pg_backend_pid())"
        run(f"CREATE VIEW visits AS SELECT who, x FROM stored WHERE x <> 3 OR {ends}")
        with pytest.raises(Failed):
            curator.analyst("ada").ask("SELECT SUM(x) FROM visits", epsilon=1)
        assert set(curator.ledger.locks()) == {"visits"}


BETWEEN = {
    "a question": lambda curator: curator.analyst("ada").ask(
        "SELECT (SELECT COUNT(*) FROM visits WHERE x > 3) AS a, (SELECT SUM(x) FROM visits WHERE x < 3) AS b", epsilon=1
    ),
    "bounds that are chosen first": lambda curator: curator.analyst("ada").ask("SELECT SUM(z) FROM visits", epsilon=1),
    "a profile": lambda curator: curator.profile(0.5, tables=["visits"]),
}


@pytest.mark.parametrize("asked", BETWEEN)
def test_a_server_that_is_lost_between_two_statements_locks(asked, database, tmp_path, monkeypatch):
    # The second finds no connection, so nothing of it was sent; but rows that the first read may be the cause.
    url, run = database
    run("ALTER TABLE visits ADD COLUMN z BIGINT")
    run("UPDATE visits SET z = x")
    whole = policy(tmp_path, url)
    whole["tables"]["visits"] = {**BOUNDS, "columns": {**COLUMNS, "z": {"type": "int"}}}
    with tacit.open(whole) as curator:
        engine, sent = curator.engine, []
        engine_run = engine.run

        def once(aggregation: Any) -> Any:
            found = engine_run(aggregation)
            sent.append(found)
            engine.close()
            engine._dsn = "host=/nowhere dbname=none"  # where the server was
            return found

        monkeypatch.setattr(engine, "run", once)
        with pytest.raises(Failed):
            BETWEEN[asked](curator)
        assert len(sent) == 1
        (lock,) = curator.ledger.locks().values()
        assert (lock.table, lock.cause) == ("visits", "tacit.engines.one_run.ConnectionLost")


def test_every_private_table_that_is_joined_is_locked_and_no_public_one(database, tmp_path):
    url, run = database
    run(
        "CREATE TABLE wards AS SELECT CAST(i AS BIGINT) AS x, CAST(i AS BIGINT) AS beds FROM generate_series(0, 9) s(i)"
    )
    shared = {**BOUNDS, "people": "patients"}
    columns = {"x": {"type": "int", "unique": True}, "beds": {"type": "int", "lower": 0, "upper": 9}}
    wards = {"public": True, "columns": columns}
    tables = {"visits": shared, "stays": shared, "wards": wards}
    whole = {"data": {"engine": "postgres", "source": url}, **policy_of(tables, own={"epsilon": 100}, folder=tmp_path)}
    with tacit.open(whole) as curator:
        run("ALTER TABLE wards RENAME TO stored")
        run("CREATE VIEW wards AS SELECT x, 1 / beds AS beds FROM stored")
        joined = "SELECT SUM(w.beds) FROM visits AS v JOIN wards AS w ON v.x = w.x"
        with pytest.raises(Failed):
            curator.analyst("ada").ask(joined, epsilon=1)
        assert set(curator.ledger.locks()) == {"visits"}
        curator.ledger.unlock("visits")
        with pytest.raises(Failed):
            curator.analyst("ada").ask(
                "SELECT SUM(w.beds) FROM visits AS v JOIN stays AS s ON v.who = s.who JOIN wards AS w ON v.x = w.x",
                epsilon=1,
            )
        assert set(curator.ledger.locks()) == {"visits", "stays"}


def test_explaining_says_that_a_table_is_locked(database, tmp_path):
    url, run = database
    with tacit.open(policy(tmp_path, url)) as curator:
        ada = curator.analyst("ada")
        before = ada.ask("SELECT COUNT(*) FROM visits", epsilon=1)
        run("ALTER TABLE visits RENAME TO stored")
        with pytest.raises(Failed):
            ada.ask("SELECT SUM(x) FROM visits", epsilon=1)
        refused = ada.explain("SELECT COUNT(*) FROM visits WHERE x > 2", epsilon=1).refused
        assert refused is not None and refused.code == "table-locked"
        # What is stored is shown, and explained, as before.
        assert ada.explain("SELECT COUNT(*) FROM visits", epsilon=1).refused is None
        assert ada.ask("SELECT COUNT(*) FROM visits", epsilon=1).value == before.value


def test_a_copy_is_never_locked(tmp_path):
    # Ingest has read every value: what fails there is no row's doing, and the question may be asked again.
    rows = pa.table({"who": list(range(50)), "x": [i % 10 for i in range(50)]})
    with tacit.open(policy_of({"visits": BOUNDS}, folder=tmp_path), data={"visits": rows}) as curator:
        assert curator.live_tables == frozenset()
        curator.engine._connection.execute("DROP TABLE copy.main.visits")
        for _ in range(2):
            with pytest.raises(Failed):
                curator.analyst("ada").ask("SELECT SUM(x) FROM visits", epsilon=1)
        assert curator.ledger.locks() == {}


def test_a_fit_that_fails_locks_like_a_question(tmp_path):
    # Models are fitted over a copy today; what settles a fit is what settles a question, over whatever engine.
    rows = pa.table({"who": list(range(50)), "x": [i % 10 for i in range(50)], "y": [i % 2 for i in range(50)]})
    columns = {**COLUMNS, "y": {"type": "int", "lower": 0, "upper": 1}}
    table = {**BOUNDS, "columns": columns}
    with tacit.open(policy_of({"visits": table}, folder=tmp_path), data={"visits": rows}) as curator:
        curator.live_tables = frozenset({"visits"})
        curator.engine._connection.execute("DROP TABLE copy.main.visits")
        ada, model = curator.analyst("ada"), learn.Ridge(missing=0, rows=50)
        with pytest.raises(Failed):
            ada.fit(model, "SELECT x, y FROM visits", target="y", epsilon=1)
        with pytest.raises(Refused) as refused:
            ada.fit(model, "SELECT x, y FROM visits WHERE x > 1", target="y", epsilon=1)
        assert refused.value.code == "table-locked"
        assert set(curator.ledger.locks()) == {"visits"}


@pytest.mark.slow
def test_a_row_that_makes_a_spark_job_fail_locks_the_table(spark, tmp_path):
    frames = {"visits": spark.sql("SELECT id AS who, id % 10 AS x FROM range(9)")}
    with tacit.open({"data": {"engine": "spark"}, **policy_of({"visits": BOUNDS}, folder=tmp_path)}, frames) as curator:
        failing = "SELECT id AS who, IF(id = 7, CAST(raise_error('row 7') AS BIGINT), id % 10) AS x FROM range(9)"
        curator.engine._sources["visits"] = f"({failing}) AS source"  # as a table that changed after it was opened
        ada = curator.analyst("ada")
        with pytest.raises(Failed):
            ada.ask("SELECT SUM(x) FROM visits", epsilon=1)
        with pytest.raises(Refused) as refused:
            ada.ask("SELECT COUNT(*) FROM visits WHERE x > 2", epsilon=1)
        assert refused.value.code == "table-locked"


def test_eight_threads_over_a_row_that_fails(database, tmp_path):
    # Questions that read the failing row, and questions that do not: whatever the order, one failure is seen as all.
    url, run = database
    with tacit.open(policy(tmp_path, url)) as curator:
        run("ALTER TABLE visits RENAME TO stored")
        run("CREATE VIEW visits AS SELECT who, CASE WHEN x = 0 THEN 1 / x ELSE x END AS x FROM stored")
        together, outcomes = threading.Barrier(8), Counter[str]()

        def ask(thread: int) -> None:
            together.wait()
            for again in range(3):
                sql = f"SELECT {'SUM(x)' if thread == again == 1 else 'COUNT(*)'} FROM visits"
                try:
                    curator.analyst("ada").ask(sql, epsilon=1 + thread / 10 + again / 100)
                    outcomes["answered"] += 1
                except (Failed, Refused) as error:
                    outcomes[str(error.code)] += 1

        threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kinds = [entry.kind for entry in curator.ledger.entries()]
        first = kinds.index(EntryKind.LOCK)
        assert kinds.count(EntryKind.LOCK) == 1 and set(kinds[first + 1 :]) == {EntryKind.FAIL}
        assert kinds.count(EntryKind.RESERVE) == outcomes["answered"] + outcomes["failed"]
        assert sum(outcomes.values()) == 24 and set(outcomes) <= {"answered", "failed", "table-locked"}
        assert verify(curator.ledger).ok


def test_a_failure_that_cannot_be_written_down_locks_before_the_next_question(database, tmp_path, monkeypatch):
    url, _ = database
    with tacit.open(policy(tmp_path, url)) as curator:
        ada, write, open_ledger = curator.analyst("ada"), curator.ledger.store.write, [True]

        def full() -> Any:
            if open_ledger[0]:
                return write()
            raise LedgerError(ErrorCode.LEDGER_FULL, "cannot grow", fix="free some space")

        def fails(aggregation: Any) -> Any:
            open_ledger[0] = False  # the disk is full from the charge on
            raise ZeroDivisionError

        monkeypatch.setattr(curator.ledger.store, "write", full)
        monkeypatch.setattr(curator.engine, "run", fails)
        with pytest.raises(LedgerError):
            ada.ask("SELECT SUM(x) FROM visits", epsilon=1)
        monkeypatch.undo()
        with pytest.raises(Refused) as refused:
            ada.ask("SELECT COUNT(*) FROM visits", epsilon=1)
        assert refused.value.code == "table-locked"
        assert ada.budget.remaining == 99
        assert verify(curator.ledger).ok
