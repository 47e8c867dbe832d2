"""LEFT and RIGHT JOINs that keep the rows of a public table: random ones against plain DuckDB, and what one unit moves.

The noise is set aside (bits of ones) where answers are compared, and no bound bites.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL, some
from tests.support.policies import caps

from tacit.answers.post_process import post_process
from tacit.curator.ask import read_public, release
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.noise import Part
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.nodes import scanned_tables

Database = dict[str, list[dict[str, Any]]]
TRIES = 60 if FULL else 1
KINDS = {"who": pa.int64(), "id": pa.int64(), "k": pa.string(), "x": pa.int64(), "y": pa.int64(), "s": pa.int64()}
SHAPES: dict[str, list[str]] = {
    "v": ["who", "id", "k", "x", "y"],
    "n": ["who", "x", "k"],
    "p": ["k", "s", "x"],
    "q": ["s", "y"],
}


@lru_cache
def policy_of(neighbors: str = "add-remove", groups: int = 30, rows: int = 30) -> Policy:
    """Private v and n of the same people; p and q are public. x is never missing, and y may be."""
    x = {"type": "int", "lower": 2, "upper": 9, "nullable": False}
    y = {"type": "int", "lower": 0, "upper": 9}
    who = {"unit": "who", "people": "all", **caps(groups, rows)}
    key = {"type": "text", "unique": True}
    return load(
        {
            "privacy": {"epsilon": 1000, "neighbors": neighbors},
            "tables": {
                "v": {**who, "columns": {"id": {"type": "int"}, "k": {"type": "text"}, "x": x, "y": y}},
                "n": {**who, "columns": {"x": x, "k": {"type": "text"}}},
                "p": {"public": True, "columns": {"k": key, "s": y, "x": y}},
                "q": {"public": True, "columns": {"s": {**y, "unique": True}, "y": y}},
            },
            "analysts": {"ada": {"epsilon": 1000}},
        }
    )


def database(rng: random.Random) -> Database:
    def row(columns: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in columns:
            least = 2 if name == "x" else 0
            value: Any = rng.choice("abcde") if name == "k" else rng.randint(least, 9 if name in "xy" else 4)
            missing = name not in {"x", "who", "id"} and rng.random() < 0.2
            found[name] = None if missing else value
        return found

    found = {table: [row(columns) for _ in range(rng.randint(0, 9))] for table, columns in SHAPES.items()}
    found["p"] = [{**row(SHAPES["p"]), "k": key} for key in rng.sample("abcdef", rng.randint(0, 6))]
    found["q"] = [{**row(SHAPES["q"]), "s": s} for s in rng.sample(range(5), rng.randint(0, 5))]
    return found


def frames(data: Database) -> dict[str, Any]:
    return {
        table: pa.table({name: pa.array([row[name] for row in data[table]], KINDS[name]) for name in columns})
        for table, columns in SHAPES.items()
    }


QUESTIONS = """
SELECT p.k, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k
SELECT k, COUNT(who) AS n, COUNT(DISTINCT who) AS d FROM p LEFT JOIN v USING (k) GROUP BY k
SELECT p.k, COUNT(v.y) AS n, COALESCE(SUM(v.y), 0) AS t FROM v RIGHT JOIN p ON p.k = v.k AND v.x > 3 GROUP BY p.k
SELECT p.s, COALESCE(SUM(v.x), 0) AS t FROM p LEFT JOIN v ON v.k = p.k AND p.x > 4 GROUP BY p.s
SELECT p.s, p.x, COUNT(v.who) AS n FROM p LEFT JOIN v ON v.k = p.k AND v.x > p.x GROUP BY p.s, p.x
SELECT p.k, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k WHERE p.s > 1 AND p.k <> 'a' GROUP BY p.k
SELECT p.k, COALESCE(SUM(v.x * p.x), 0) AS t FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k
SELECT p.k, COUNT(CASE WHEN v.x > 4 THEN 1 END) AS a, SUM(CASE WHEN v.x > 4 THEN 1 ELSE 0 END) AS b
 FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k
SELECT p.k, COUNT(*) FILTER (WHERE v.y > 4) AS a, COUNT(DISTINCT v.who) FILTER (WHERE v.x > 4) AS b
 FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k
SELECT COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k
SELECT p.k FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k
SELECT CASE WHEN p.s > 2 THEN 'high' ELSE 'low' END AS s, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY 1
SELECT q.y, COUNT(v.id) AS n FROM q LEFT JOIN p ON p.s = q.s LEFT JOIN v ON v.k = p.k GROUP BY q.y
SELECT q.s, COUNT(v.id) AS n FROM q JOIN p ON p.s = q.s LEFT JOIN v ON v.k = p.k GROUP BY q.s
SELECT p.k, COUNT(n.x) AS n, COALESCE(SUM(n.x), 0) AS t FROM p LEFT JOIN v ON v.k = p.k LEFT JOIN n ON n.who = v.who
 GROUP BY p.k
SELECT p.k, COUNT(n.x) AS n FROM p LEFT JOIN (v JOIN n ON n.who = v.who) ON v.k = p.k GROUP BY p.k
SELECT d.k, COUNT(v.id) AS n FROM (SELECT k FROM p WHERE s > 1) AS d LEFT JOIN v ON v.k = d.k GROUP BY d.k
SELECT p.k, COUNT(t.y) AS n FROM p LEFT JOIN (SELECT k, y FROM v WHERE x < 8) AS t ON t.k = p.k GROUP BY p.k
SELECT p.k, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k HAVING COUNT(v.id) > 1 ORDER BY n DESC, p.k
SELECT p.s, p.k, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY ROLLUP (p.s, p.k)
SELECT p.k, COUNT(v.id) AS n, SUM(COUNT(v.id)) OVER () AS t FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k
WITH a AS (SELECT p.k, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k) SELECT a.k, a.n, p.x FROM a
 JOIN p ON p.k = a.k WHERE p.x > 3
SELECT NOT p.x > 4 AS large, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY 1
""".strip().replace("\n ", " ").split("\n")  # fmt: skip


def planned(sql: str, **policy: Any) -> AnyPlan:
    return make_plans(Question(sql, epsilon=100), policy_of(**policy)).plan


def answered(plan: AnyPlan, engine: Any) -> list[tuple[Any, ...]]:
    receipt: Any = None
    found = post_process(release(plan, engine, Ones()), read_public(plan, engine), receipt, Fraction(19, 20))
    return [tuple(cell.value for cell in row) for row in found.cells()]


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, value if value is None else str(value)) for value in row])


@pytest.fixture(scope="module")
def worlds() -> Iterator[list[tuple[Database, Any, duckdb.DuckDBPyConnection]]]:
    """Databases, each with its engine and in plain DuckDB."""
    found = []
    for seed in range(TRIES):
        data, connection = database(random.Random(seed)), duckdb.connect()
        for name, table in frames(data).items():
            connection.register(name, table)
        found.append((data, open_engine(policy_of(), frames(data)), connection))
    yield found
    for _, engine, connection in found:
        engine.close()
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUESTIONS)
def test_every_row_of_the_public_table_is_a_key_as_in_duckdb(sql: str, worlds: Any) -> None:
    plan = planned(sql)
    for data, engine, connection in worlds:
        expected = in_order(connection.execute(sql).fetchall())
        assert in_order(answered(plan, engine)) == expected
        assert in_order(answered(plan, ReferenceEngine(data))) == expected


# By default each question under one of the relations, by turns.
RELATED = [(sql, each) for number, sql in enumerate(QUESTIONS) for each in some(["add-remove", "replace"], 2, number)]


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "neighbors"), RELATED)
def test_one_unit_moves_no_key_and_no_more_than_is_paid_for(sql: str, neighbors: str) -> None:
    rng = random.Random(sql + neighbors)
    for _ in range(TRIES):
        sizes = {"groups": rng.randint(1, 3), "rows": rng.randint(1, 3)}
        plan = planned(sql, neighbors=neighbors, **sizes)
        one, other = database(rng), database(rng)
        moved = {name: [row for row in one[name] if row["who"] != 2] for name in ("v", "n")}
        if neighbors == "replace":
            for name, rows in moved.items():
                rows += [row for row in other[name] if row["who"] == 2]
        engines = ReferenceEngine(one), ReferenceEngine({**one, **moved})
        for member in plan.members:
            if member.listed is not None:
                assert scanned_tables(member.listed.rows) <= {"p", "q"}
                assert member.listed.read(engines[0]) == member.listed.read(engines[1])
            before, after = (engine.run(member.exact) for engine in engines)
            for part in member.parts:
                assert isinstance(part, Part)
                moves = [number(member, part, before.get(g)) - number(member, part, after.get(g))
                         for g in {*before, *after}]  # fmt: skip
                assert sum(map(abs, moves)) <= part.sensitivity


def number(plan: Any, part: Part, cells: Any) -> int:
    places = [(factor, plan.exact.measures.index(measure)) for factor, measure in part.need.terms]
    return 0 if cells is None else sum(factor * cells[place] for factor, place in places)


@pytest.mark.parametrize(
    ("sql", "words", "fix"),
    [
        ("SELECT p.k, COUNT(*) FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k", "match nothing", "COUNT(v.who)"),
        ("SELECT p.k, SUM(1) FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k", "match nothing", ""),
        ("SELECT p.k, COUNT(p.s) FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k", "match nothing", ""),
        ("SELECT p.k, SUM(p.x) FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k", "match nothing", ""),
        ("SELECT p.k, SUM(COALESCE(v.x, 1)) FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k", "match nothing", ""),
        # x is never missing in v, but it is in a row that matches nothing.
        (
            "SELECT p.k, SUM(CASE WHEN v.x IS NULL THEN 1 ELSE 0 END) FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k",
            "match nothing",
            "",
        ),
        ("SELECT k, COUNT(*) FILTER (WHERE v.y IS NULL) FROM p LEFT JOIN v USING (k) GROUP BY k", "match nothing", ""),
        ("SELECT v.y, COUNT(v.id) FROM p LEFT JOIN v ON v.k = p.k GROUP BY v.y", "a key of another table", ""),
        ("SELECT p.k, COUNT(v.id) FROM p LEFT JOIN v ON v.k = p.k WHERE v.id IS NULL GROUP BY p.k", "WHERE about", ""),
        ("SELECT p.s, COUNT(v.id) FROM p LEFT JOIN v ON v.y = p.s GROUP BY p.s", "several rows may share", ""),
        ("SELECT p.k, v.y FROM p LEFT JOIN v ON v.k = p.k", "", ""),
        ("SELECT AVG(y) FROM (SELECT p.k, v.y FROM p LEFT JOIN v ON v.k = p.k) AS t", "keeps rows of a public", ""),
        ("SELECT p.k, COUNT(q.y) FROM p LEFT JOIN v ON v.k = p.k LEFT JOIN q ON q.s = p.s GROUP BY p.k", "public", ""),
        ("SELECT p.k, COUNT(v.id) FROM p FULL JOIN v ON v.k = p.k GROUP BY p.k", "", ""),
    ],
)  # fmt: skip
def test_what_would_be_another_number_is_refused(sql: str, words: str, fix: str) -> None:
    with pytest.raises(Refused) as refused:
        planned(sql)
    assert words in refused.value.what and fix in refused.value.fix


@pytest.mark.slow
def test_it_needs_no_delta_and_is_charged_as_declared_keys_are(tmp_path: Any) -> None:
    data = database(random.Random(5))
    data["p"] = [{"k": key, "s": 1, "x": 3} for key in "abcdef"]
    policy, engine = policy_of(), open_engine(policy_of(), frames(data))
    sql = "SELECT p.k, COUNT(v.id) AS n FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k ORDER BY p.k"
    with Ledger(tmp_path / "x.ledger", budget_limits(policy)) as ledger:
        ada = Curator(policy, engine, ledger, Ones()).analyst("ada")
        found = ada.ask(sql, epsilon=2)
        assert found["k"] == list("abcdef") and found.receipt.charged.epsilon == found.receipt.cost.epsilon > 0
        assert not any("enough units" in note for note in found.notes)
        assert all(low <= value <= high for value, (low, high) in zip(found["n"], found.interval("n"), strict=True))
        assert "as many rows as public tables give" in str(ada.explain(sql, epsilon=2))
        again = ada.ask(f"SELECT n FROM ({sql}) AS t WHERE k = 'f'", epsilon=2)
        assert again.receipt.repeat
    engine.close()


def test_too_many_keys_are_refused_before_anything_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.plan.public_keys.MAX_GROUPS", 3)
    plan = planned("SELECT p.k, COUNT(v.id) AS few FROM p LEFT JOIN v ON v.k = p.k GROUP BY p.k")
    data = {**database(random.Random(1)), "p": [{"k": key, "s": 1, "x": 3} for key in "abcd"]}
    with pytest.raises(Refused) as refused:
        read_public(plan, ReferenceEngine(data))
    assert refused.value.code is ErrorCode.TOO_LARGE
