"""Random LEFT JOINs against plain DuckDB: what is never missing in its table is NULL where nothing matches.

The noise is set aside (bits of ones) and no bound bites, so the answer is the one that SQL gives over the tables as
they are declared: a missing value of a `nullable = false` column is its `lower`, in its own table, before any join.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.curator.curator import Curator
from tacit.curator.prepare import prepare
from tacit.curator.resources import budget_limits, open_engine
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.ledger.ledger import Ledger
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.policy.model import DeclaredAnalyst, Policy, PrivacyBudget

pytestmark = pytest.mark.slow

NUMBERS: dict[str, dict[str, Any]] = {
    "x": {"type": "int", "lower": 3, "upper": 9, "nullable": False},
    "y": {"type": "float", "lower": 2, "upper": 8, "step": 0.5, "nullable": False},
    "z": {"type": "int", "lower": 1, "upper": 9},
    "k": {"type": "text", "values": ["a", "b", "c"]},
}
KINDS = {"who": pa.int64(), "x": pa.int64(), "y": pa.float64(), "z": pa.int64(), "k": pa.string()}
SIDES = [
    "a LEFT JOIN b ON a.who = b.who",
    "a LEFT JOIN b ON a.who = b.who AND a.k = b.k",
    "a LEFT JOIN b ON a.who = b.who AND a.x = b.x",
    "a LEFT JOIN p AS b ON a.k = b.k",
    "a LEFT JOIN (SELECT who, k, x, y, z FROM b WHERE z > 3) AS b ON a.who = b.who",
    "a LEFT JOIN (SELECT who, MAX(x) AS x, MIN(y) AS y, COUNT(*) AS z FROM b GROUP BY who) AS b ON a.who = b.who",
    "(SELECT a.who, a.k, b.x, b.y, b.z FROM a LEFT JOIN b ON a.who = b.who) AS b",
    "a JOIN c ON a.who = c.who LEFT JOIN b ON c.who = b.who",
    "a LEFT JOIN b ON a.who = b.who LEFT JOIN c ON a.who = c.who AND b.x = c.x",
    "(SELECT who, x, y, z FROM a UNION ALL SELECT a.who, b.x, b.y, b.z FROM a LEFT JOIN b ON a.who = b.who) AS b",
]
VALUES = ["b.x", "b.y", "b.x + 1", "LEAST(b.x, 5)", "-b.y", "COALESCE(b.x, 4)", "COALESCE(b.y, b.x, 7)"]
VALUES += ["CASE WHEN b.x > 4 THEN b.x END", "CASE WHEN b.x IS NULL THEN 5 ELSE b.x END"]
VALUES += ["CASE WHEN b.y < 5 THEN 1 END"]
CONDITIONS = ["", "WHERE b.x IS NULL", "WHERE b.y IS NOT NULL", "WHERE NOT (b.x < 5)", "WHERE COALESCE(b.x, 0) < 4"]


def rows(rng: random.Random, public: bool = False) -> list[dict[str, Any]]:
    """Few persons, some of them in one table only; a quarter of the numbers is missing."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.25 else value

    many = 3 if public else rng.randint(0, 12)
    return [
        {
            "who": rng.randrange(8),
            "x": maybe(rng.randint(3, 9)),
            "y": maybe(rng.randint(4, 16) / 2),
            "z": maybe(rng.randint(1, 9)),
            "k": "abc"[number] if public else rng.choice("abc"),
        }
        for number in range(many - public)
    ]


def policy_of(**more: Any) -> Policy:
    private = {"unit": "who", "people": "persons", "max_groups": 40, "max_rows_per_group": 500}
    known = {**NUMBERS, "k": {**NUMBERS["k"], "unique": True}}
    return load(
        {
            "privacy": {"epsilon": 1000, "delta": 1e-6},
            "tables": {
                **{name: {**private, "columns": NUMBERS} for name in "abc"},
                "p": {"public": True, "columns": known},
            },
            "analysts": {"ada": {"epsilon": 1000}},
            **more,
        }
    )


def arrow(found: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in KINDS.items()})


class Both:
    """The same rows behind a curator whose noise is zero, and in plain DuckDB as they are declared."""

    def __init__(self, tables: dict[str, list[dict[str, Any]]], folder: Path, bits: Any) -> None:
        self.plain = duckdb.connect()
        for name, found in tables.items():
            self.plain.register(f"{name}_given", arrow(found))
            filled = "who, COALESCE(x, 3) AS x, COALESCE(y, 2) AS y, z, k"
            self.plain.execute(f"CREATE TABLE {name} AS SELECT {filled} FROM {name}_given")
        loaded = policy_of()
        plenty = PrivacyBudget(Fraction(10**6), loaded.budget.delta)
        self.policy = replace(loaded, budget=plenty, analysts=(DeclaredAnalyst("ada", plenty),))
        engine = DuckDBEngine(table_schemas(self.policy), None, {name: arrow(found) for name, found in tables.items()})
        self.curator = Curator(self.policy, engine, Ledger(folder / "ledger", budget_limits(self.policy)), bits)
        self.reference = ReferenceEngine(tables)

    def check(self, text: str) -> None:
        (answer,) = self.curator.analyst("ada").ask(text, epsilon=1000)
        (plain,) = self.plain.execute(text).fetchall()
        for name, theirs in zip(answer, plain, strict=True):
            ours = answer[name]
            assert not ours if theirs is None else math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-4), (text, name)
        exact = plan_for(parse(text), self.policy, 1).exact
        assert dict(self.curator.engine.run(exact)) == dict(self.reference.run(exact)), text


@pytest.fixture(scope="module", params=range(6 if FULL else 1))
def both(request, tmp_path_factory, ones) -> Iterator[Both]:
    rng = random.Random(request.param)
    tables = {name: rows(rng, public=name == "p") for name in "abcp"}
    made = Both(tables, tmp_path_factory.mktemp("both"), ones)
    yield made
    made.curator.close()
    made.plain.close()


def questions(source: str, rng: random.Random) -> Iterator[str]:
    for _ in range(8 if FULL else 1):
        value, other = rng.sample(VALUES, 2)
        yield (
            f"SELECT COUNT(*) AS n, COUNT({value}) AS c, SUM({value}) AS s, AVG({other}) AS m, COUNT(b.z) AS z "
            f"FROM {source} {rng.choice(CONDITIONS)}"
        )


@pytest.mark.parametrize("source", SIDES)
def test_a_left_join_is_that_of_plain_sql(source: str, both: Both) -> None:
    for text in questions(source, random.Random(source)):
        both.check(text)
    both.check(f"SELECT COUNT(b.x) AS x, SUM(b.x) AS sx, COUNT(b.y) AS y, SUM(b.y) AS sy FROM {source}")


def test_an_unmatched_row_holds_nothing(tmp_path, ones) -> None:
    # Three rows on the left, one of them matched by a row whose x is 7: COUNT 1 and SUM 7, not 3 and 7 + 2 * 5.
    one = {"x": 5, "y": 2.0, "z": 1, "k": "a"}
    tables = {
        "a": [{"who": who, **one} for who in (1, 2, 3)],
        "b": [{"who": 1, **one, "x": 7}],
        "c": [],
        "p": [],
    }
    both = Both(tables, tmp_path, ones)
    text = "SELECT COUNT(*) AS n, COUNT(b.x) AS c, SUM(b.x) AS s, AVG(b.x) AS m FROM a LEFT JOIN b ON a.who = b.who"
    (answer,) = both.curator.analyst("ada").ask(text, epsilon=1000)
    assert (answer["n"], answer["c"], answer["s"]) == (3, 1, 7)
    both.check(text)
    both.curator.close()
    both.plain.close()


def test_a_prepared_copy_says_the_same(tmp_path) -> None:
    pytest.importorskip("numba", reason="a prepared copy is read with numba")
    rng = random.Random(5)
    tables = {name: rows(rng, public=name == "p") for name in "abcp"}
    (tmp_path / "data").mkdir()
    for name, found in tables.items():
        pq.write_table(arrow(found), tmp_path / "data" / f"{name}.parquet")
    policy = policy_of(data={"source": str(tmp_path / "data"), "prepared": str(tmp_path / "copy")})
    prepare(policy, lambda _what, _share: None)
    engine, reference = open_engine(policy), ReferenceEngine(tables)
    try:
        for source in SIDES:
            for text in questions(source, random.Random(source)):
                exact = plan_for(parse(text), policy, 1).exact
                assert dict(engine.run(exact)) == dict(reference.run(exact)), text
    finally:
        engine.close()
