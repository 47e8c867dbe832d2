"""A question over live data that fails locks what it reads, until the owner has looked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.engines.conftest import in_schema
from tests.support.policies import policy_of

import tacit
from tacit.errors import Failed, Refused
from tacit.ledger.entries import EntryKind

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
