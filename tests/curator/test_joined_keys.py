"""Keys from public tables that private rows are joined with: against plain DuckDB, and what one unit moves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.curator.test_public_keys import Database, answered, in_order, number
from tests.support.bits import Ones
from tests.support.counts import FULL, some
from tests.support.policies import caps

from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.noise import Part
from tacit.plan.planner import Planner, make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.nodes import scanned_tables

TRIES = 20 if FULL else 1
SHAPES = {"v": ["who", "k", "r", "x"], "n": ["who", "k"], "p": ["k", "s", "x"], "q": ["s", "g", "y"]}


@lru_cache
def policy_of(neighbors: str = "add-remove", groups: int = 30, rows: int = 30, *, delta: bool = False) -> Policy:
    """Private v and n of the same people; p and q are public, and none of their texts is declared."""
    who = {"unit": "who", "people": "all", **caps(groups, rows)}
    text, key, number = {"type": "text"}, {"type": "text", "unique": True}, {"type": "int", "lower": 2, "upper": 9}
    budget = {"epsilon": 1000, "delta": 0.01} if delta else {"epsilon": 1000}
    per_question = {"delta_per_question": 1e-3} if delta else {}
    return load(
        {
            "privacy": {**budget, **per_question, "neighbors": neighbors},
            "tables": {
                "v": {**who, "columns": {"k": text, "r": text, "x": {**number, "nullable": False}}},
                "n": {**who, "columns": {"k": text}},
                "p": {"public": True, "columns": {"k": key, "s": text, "x": number}},
                "q": {"public": True, "columns": {"s": key, "g": text, "y": number}},
            },
            "analysts": {"ada": budget},
        }
    )


def database(rng: random.Random) -> Database:
    def cell(name: str) -> Any:
        if name in {"who", "x", "y"}:
            return rng.randint(0, 4) if name == "who" else rng.randint(2, 9)
        return None if rng.random() < 0.15 else rng.choice("abcde")

    found = {name: [{c: cell(c) for c in shape} for _ in range(rng.randint(0, 9))] for name, shape in SHAPES.items()}
    for name, key in (("p", "k"), ("q", "s")):
        found[name] = [{**row, key: value} for row, value in zip(found[name], "abcde", strict=False)]
    return found


def frames(data: Database) -> dict[str, Any]:
    def kind(name: str) -> pa.DataType:
        return pa.int64() if name in {"who", "x", "y"} else pa.string()

    return {
        table: pa.table({name: pa.array([row[name] for row in data[table]], kind(name)) for name in columns})
        for table, columns in SHAPES.items()
    }


def planned(sql: str, **policy: Any) -> AnyPlan:
    return make_plans(Question(sql, epsilon=100), policy_of(**policy)).plan


# Each question, and the keys that it lists, as a query over public tables that says the same in other words.
QUESTIONS = {
    "SELECT p.s, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY p.s": "SELECT DISTINCT s FROM p",
    "SELECT p.k, COUNT(*) AS n, SUM(v.x) AS t FROM v, p WHERE p.k = v.k AND p.x > 4 GROUP BY p.k": (
        "SELECT k FROM p WHERE x > 4"
    ),
    "SELECT q.g, COUNT(*) AS n FROM v JOIN p ON p.k = v.k JOIN q ON q.s = p.s GROUP BY q.g": (
        "SELECT DISTINCT q.g FROM p, q WHERE p.s = q.s"
    ),
    "SELECT q.g, p.s, COUNT(*) AS n FROM v JOIN p ON p.k = v.k JOIN q ON q.s = p.s AND q.y > 4 GROUP BY 1, 2": (
        "SELECT DISTINCT q.g, p.s FROM q, p WHERE p.s = q.s AND q.y > 4"
    ),
    # q is matched by a private column, so p and q have nothing to do with each other but for WHERE.
    "SELECT p.k, q.g, COUNT(*) AS n FROM v JOIN p ON p.k = v.k JOIN q ON q.s = v.r GROUP BY p.k, q.g": (
        "SELECT * FROM (SELECT DISTINCT k FROM p), (SELECT DISTINCT g FROM q)"
    ),
    "SELECT p.k, q.g, COUNT(*) AS n FROM v, p, q WHERE p.k = v.k AND q.s = v.r AND (p.x > 6 OR q.y > 6)"
    " GROUP BY 1, 2": ("SELECT DISTINCT p.k, q.g FROM p, q WHERE p.x > 6 OR q.y > 6"),
    "SELECT p.k, v.x > 4 AS large, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY p.k, large": (
        "SELECT p.k, l FROM p, (VALUES (TRUE), (FALSE)) AS t(l)"
    ),
    "SELECT v.x, UPPER(p.s) AS u, COUNT(DISTINCT v.who) AS n FROM v JOIN p ON p.k = v.k WHERE v.x < 4 GROUP BY 1, 2": (
        "SELECT x, u FROM (VALUES (2), (3)) AS t(x), (SELECT DISTINCT UPPER(s) AS u FROM p)"
    ),
    "SELECT t.s, SUM(t.x) AS n FROM (SELECT p.s, v.x FROM v JOIN p ON p.k = v.k WHERE p.x < 8) AS t GROUP BY t.s": (
        "SELECT DISTINCT s FROM p WHERE x < 8"
    ),
    "SELECT d.s, COUNT(*) AS n FROM v JOIN (SELECT k, s FROM p WHERE x > 3) AS d ON d.k = v.k GROUP BY d.s": (
        "SELECT DISTINCT s FROM p WHERE x > 3"
    ),
    "SELECT p.s, COUNT(*) AS n FROM v JOIN n ON n.who = v.who JOIN p ON p.k = v.k WHERE v.r = 'b' GROUP BY p.s": (
        "SELECT DISTINCT s FROM p"
    ),
    "SELECT FLOOR(t.z / 2) AS f, COUNT(*) AS n FROM (SELECT p.x * 1000 AS z FROM v JOIN p ON p.k = v.k) AS t"
    " GROUP BY 1": ("SELECT DISTINCT FLOOR(x * 1000 / 2) FROM p"),
    "SELECT t.s, COUNT(*) AS n FROM (SELECT p.s, p.x AS z FROM v JOIN p ON p.k = v.k) AS t WHERE SQRT(t.z) > 2.5"
    " GROUP BY 1": "SELECT DISTINCT s FROM p WHERE SQRT(x) > 2.5",
    "SELECT r.g, p.k, b.k AS o, COUNT(*) AS n FROM v JOIN p ON p.k = v.k JOIN p AS b ON b.k = v.r"
    " JOIN q AS r ON r.s = CASE WHEN p.x > b.x THEN p.s ELSE b.s END GROUP BY 1, 2, 3": (
        "SELECT DISTINCT q.g, p.k, b.k FROM p, p AS b, q WHERE q.s = CASE WHEN p.x > b.x THEN p.s ELSE b.s END"
    ),
    "SELECT a.s, b.s AS o, COUNT(*) AS n FROM v JOIN p AS a ON a.k = v.k JOIN n ON n.who = v.who"
    " JOIN p AS b ON b.k = n.k GROUP BY 1, 2": "SELECT DISTINCT a.s, b.s FROM p AS a, p AS b",
    # A private column that is equal to a public one.
    "SELECT v.k, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY v.k": "SELECT k FROM p",
    "SELECT p.s, v.k, COUNT(*) AS n FROM v JOIN p ON p.k = v.k WHERE p.x > 4 GROUP BY p.s, v.k": (
        "SELECT s, k FROM p WHERE x > 4"
    ),
    "SELECT p.k || v.k AS b, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY 1": "SELECT k || k FROM p",
    "SELECT t.k, p.x, COUNT(*) AS n FROM (SELECT k, x FROM v WHERE x > 3) AS t JOIN p ON t.k = p.k GROUP BY 1, 2": (
        "SELECT k, x FROM p"
    ),
    # Declared keys of a table in which there are others.
    "SELECT p.x, p.k, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY p.x, p.k": "SELECT x, k FROM p",
    "SELECT p.x, p.x > 4 AS large, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY 1, 2": (
        "SELECT DISTINCT x, x > 4 FROM p"
    ),
    "SELECT p.x, q.y, COUNT(*) AS n FROM v JOIN p ON p.k = v.k JOIN q ON q.s = p.s WHERE p.x < 6 GROUP BY 1, 2": (
        "SELECT DISTINCT p.x, q.y FROM p, q WHERE p.s = q.s AND p.x < 6"
    ),
    "SELECT v.x, p.k, v.x > 4 AS large, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY 1, 2, 3": (
        "SELECT v, k, v > 4 FROM p, range(2, 10) AS t(v)"
    ),
}


@pytest.fixture(scope="module")
def opened() -> Iterator[list[tuple[Any, ReferenceEngine, duckdb.DuckDBPyConnection]]]:
    """For each try the engine over random rows, the reference, and plain DuckDB."""
    made = []
    for seed in range(TRIES):
        data, plain = database(random.Random(seed)), duckdb.connect()
        for name, table in frames(data).items():
            plain.register(name, table)
        made.append((open_engine(policy_of(), frames(data)), ReferenceEngine(data), plain))
    yield made
    for engine, _, plain in made:
        engine.close()
        plain.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_keys_are_those_of_public_tables_and_the_groups_those_of_duckdb(sql: str, opened: Any) -> None:
    member = planned(sql).members[0]
    assert member.shown is None and member.listed is not None
    for engine, reference, plain in opened:
        keys = in_order(plain.execute(QUESTIONS[sql]).fetchall())
        width = len(member.exact.keys)
        expected = {row[:width]: row[width:] for row in plain.execute(sql).fetchall()}
        assert set(expected) <= set(keys)
        for each in (engine, reference):
            assert in_order(list(member.listed.read(each))) == keys
            found = {row[:width]: row[width:] for row in answered(planned(sql), each)}
            assert in_order(list(found)) == keys
            for key, values in found.items():
                assert values == expected[key] if key in expected else not any(values)


# By default each question under one of the relations, by turns.
RELATED = [(sql, each) for number, sql in enumerate(QUESTIONS) for each in some(["add-remove", "replace"], 2, number)]


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "neighbors"), RELATED)
def test_one_unit_moves_no_key_and_no_more_than_is_paid_for(sql: str, neighbors: str) -> None:
    rng = random.Random(sql + neighbors)
    for _ in range(TRIES):
        plan = planned(sql, neighbors=neighbors, groups=rng.randint(1, 3), rows=rng.randint(1, 3)).members[0]
        one, other = database(rng), database(rng)
        moved = {name: [row for row in one[name] if row["who"] != 2] for name in ("v", "n")}
        if neighbors == "replace":
            for name, rows in moved.items():
                rows += [row for row in other[name] if row["who"] == 2]
        engines = ReferenceEngine(one), ReferenceEngine({**one, **moved})
        assert plan.listed is not None and scanned_tables(plan.listed.rows) <= {"p", "q"}
        assert plan.listed.read(engines[0]) == plan.listed.read(engines[1])
        before, after = (engine.run(plan.exact) for engine in engines)
        for part in plan.parts:
            assert isinstance(part, Part)
            pairs = [(before.get(group), after.get(group)) for group in {*before, *after}]
            assert sum(abs(number(plan, part, a) - number(plan, part, b)) for a, b in pairs) <= part.sensitivity


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v.r, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY v.r",
        "SELECT p.s, v.r, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY p.s, v.r",
        "SELECT p.k || v.r AS b, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY 1",
        "SELECT v.k, COUNT(*) AS n FROM v JOIN n ON n.who = v.who AND n.k = v.k GROUP BY v.k",
        # What is compared with a released value is not known before it.
        "SELECT b, COUNT(*) AS n FROM (SELECT CASE WHEN p.x > t.m THEN p.k ELSE 'low' END AS b FROM v "
        "JOIN p ON p.k = v.k CROSS JOIN (SELECT AVG(x) AS m FROM v) AS t) AS q GROUP BY b",
        # A row that matches nothing has the key NULL, which no public row need have.
        "SELECT p.k, COUNT(*) AS n FROM v LEFT JOIN p ON p.k = v.k GROUP BY p.k",
    ],
)
def test_a_key_that_no_public_table_has_is_not_listed(sql: str) -> None:
    with pytest.raises(Refused) as refused:
        planned(sql)
    assert refused.value.code is ErrorCode.PRIVATE_KEY  # there is no delta


SQL = "SELECT p.k, COUNT(*) AS n FROM v JOIN p ON p.k = v.k GROUP BY p.k"


@pytest.mark.slow
def test_a_list_that_is_too_long_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr("tacit.plan.joined_keys.MAX_GROUPS", 3)
    policy = policy_of(groups=3, rows=3, delta=True)
    for size in (3, 4):
        data = database(random.Random(1))
        data["p"] = [{"k": key, "s": "a", "x": 3} for key in "abcd"[:size]]
        data["v"] = [{"who": who, "k": "a", "r": "b", "x": 3} for who in range(400)]
        engine = open_engine(policy, frames(data))
        with Ledger(tmp_path / f"{size}.ledger", budget_limits(policy)) as ledger:
            ada = Curator(policy, engine, ledger, Ones()).analyst("ada")
            answer, told = ada.ask(SQL, epsilon=1), ada.explain(SQL, epsilon=1)
            assert answer["k"] == (list("abc") if size == 3 else ["a"])
            assert (told.keys == "") == (size == 3)
            assert any("in public tables are listed" in note for note in answer.notes) == (size == 3)
            assert (told.delta == 0) == (size == 3)
        engine.close()


def test_who_paid_for_the_selected_keys_does_not_pay_again() -> None:
    policy = policy_of(groups=3, rows=3, delta=True)
    listed, selected = (
        make_plans(Question(SQL, epsilon=1), each).plan for each in (policy, policy.without_joined_keys)
    )
    assert listed.key != selected.key and listed.members[0].listed is not None and selected.members[0].shown is not None
    known = Planner(policy, knows_only=lambda key, other: (key, other) == (selected.key, listed.key))
    assert known.plan(Question(SQL, epsilon=1)).key == selected.key
    unknown = Planner(policy, knows_only=lambda key, other: False)
    assert unknown.plan(Question(SQL, epsilon=1)).key == listed.key
