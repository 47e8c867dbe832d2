"""Released values that choose rows: what plain SQL says without noise, what one unit moves, and what it costs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL, some
from tests.support.policies import caps, policy_of

from tacit.aggregates.registry import read_question
from tacit.analyst import Analyst
from tacit.answers.choosing_values import fill, placeholders_of
from tacit.curator.ask import release
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.compound_plan import CompoundPlan, plan_question
from tacit.plan.noise import Part
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.types import Type
from tacit.sampling.bits import SystemBits

SMALL = {"type": "int", "lower": -50, "upper": 50}
PLACE = {"type": "text", "values": ["a", "b", "c", "d"]}
KINDS = {"who": pa.int64(), "place": pa.string(), "x": pa.int64(), "z": pa.int64()}


def policy_with(rows: int, neighbors: str = "add-remove") -> Policy:
    """Visits of people, of which so many rows of each are kept in each of as many groups."""
    table = {"unit": "who", "people": "people", **caps(rows, rows), "columns": {"place": PLACE, "x": SMALL, "z": SMALL}}
    return load(policy_of({"visits": table, "notes": table}, neighbors=neighbors))


def make_rows(seed: int, people: int = 12) -> dict[str, list[dict[str, Any]]]:
    """A few rows of each person; a fifth of the values are NULL."""
    rng = random.Random(seed)

    def row() -> dict[str, Any]:
        values = {"who": rng.randrange(people), "place": rng.choice("aaabbcd"), "x": rng.randint(-3, 9)}
        values["z"] = rng.randint(-3, 9)
        return {name: None if name != "who" and rng.random() < 0.2 else value for name, value in values.items()}

    return {name: [row() for _ in range(40)] for name in ("visits", "notes")}


def arrow_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in KINDS.items()})


QUESTIONS = [
    "SELECT COUNT(*), SUM(z) FROM visits WHERE x > (SELECT AVG(x) FROM visits)",
    "SELECT COUNT(*) FROM visits WHERE x <= (SELECT COUNT(*) FROM notes) - 39 OR z > (SELECT AVG(x) FROM notes)",
    "SELECT COUNT(*) FROM visits WHERE NOT x > 2 * (SELECT AVG(x) FROM visits WHERE place = 'a') - 1",
    "SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits WHERE x > (SELECT AVG(x) FROM visits))",
    "SELECT COUNT(*) FROM (SELECT z FROM visits WHERE x > (SELECT AVG(x) FROM notes)) AS t WHERE z > 0",
    "SELECT SUM(CASE WHEN x > (SELECT AVG(x) FROM visits) THEN z ELSE 0 END) FROM visits",
    "SELECT COUNT(*) FROM (SELECT who, SUM(x) AS s FROM visits GROUP BY who) AS t "
    "WHERE s > (SELECT AVG(x) FROM visits) AND s < 1000",
    "SELECT COUNT(*), SUM(x) FROM visits WHERE place = (SELECT place FROM visits WHERE place IS NOT NULL "
    "GROUP BY place ORDER BY COUNT(*) DESC, place LIMIT 1)",
    "SELECT COUNT(*), SUM(x) FROM visits WHERE z > 0 AND place IN (SELECT place FROM visits WHERE place IS NOT NULL "
    "GROUP BY place ORDER BY COUNT(*) DESC, place LIMIT 2)",
    "SELECT COUNT(*) FROM visits WHERE place IN (SELECT place FROM visits WHERE place IS NOT NULL GROUP BY place "
    "HAVING COUNT(*) > 5 ORDER BY COUNT(*) DESC LIMIT 9)",
    "SELECT COUNT(*), SUM(x) FROM visits JOIN (SELECT place AS p, COUNT(*) AS n FROM visits WHERE place IS NOT NULL "
    "GROUP BY place ORDER BY n DESC, p LIMIT 2) AS top ON place = p WHERE z > 0",
    "SELECT COUNT(*), SUM(x) FROM (SELECT place FROM notes WHERE place IS NOT NULL GROUP BY place ORDER BY COUNT(*), 1 "
    "LIMIT 2) AS few JOIN visits AS v ON few.place = v.place",
    "SELECT COUNT(*) FROM visits WHERE place = (SELECT place FROM visits GROUP BY place HAVING COUNT(*) > 1000 "
    "ORDER BY COUNT(*) LIMIT 1)",
    "SELECT place, COUNT(*) AS n, (SELECT AVG(x) FROM visits) AS mean FROM visits "
    "WHERE x > (SELECT AVG(x) FROM visits) AND place IS NOT NULL "
    "GROUP BY place HAVING COUNT(*) > 0 ORDER BY n DESC, place",
    "SELECT SUM(CASE WHEN x > (SELECT AVG(x) FROM visits) THEN z ELSE 0 END) AS a, "
    "SUM(CASE WHEN x > (SELECT AVG(x) FROM visits) + 0 THEN z ELSE 0 END) AS b FROM visits",
    "SELECT COUNT(*) FROM visits v WHERE x > (SELECT AVG(x) FROM notes) "
    "AND (SELECT COUNT(*) FROM notes n WHERE n.who = v.who) > 2",
]


@pytest.fixture(scope="module", params=range(3 if FULL else 1))
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine and the reference without noise, and a DuckDB that knows nothing of privacy."""
    rows, policy = make_rows(request.param), policy_with(1_000)
    tables = {name: arrow_of(some) for name, some in rows.items()}
    engine = DuckDBEngine(table_schemas(policy), None, tables)
    analysts: list[Analyst] = []
    with duckdb.connect(":memory:") as plain:
        for name, table in tables.items():
            plain.register(name, table)
        for number, each in enumerate((engine, ReferenceEngine(rows))):
            ledger = Ledger(tmp_path_factory.mktemp("choosing") / str(number), budget_limits(policy))
            analysts.append(Curator(policy, each, ledger, Ones()).analyst("ada"))
        yield (*analysts, plain)
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUESTIONS)
def test_plain_sql_where_there_is_no_noise(sql: str, asked: Any) -> None:
    engine, reference, plain = asked
    expected = [tuple(0 if value is None else value for value in row) for row in plain.sql(sql).fetchall()]
    for analyst in (engine, reference):
        found = [tuple(row.values()) for row in analyst.ask(sql, epsilon=1)]
        assert len(found) >= len(expected)
        for row, other in zip(found, expected, strict=False):
            assert row == pytest.approx(other)


def plan_of(sql: str, policy: Policy) -> CompoundPlan:
    plan = plan_question(read_question(sql), policy, 1)
    assert isinstance(plan, CompoundPlan)
    return plan


def test_the_charge_is_that_of_the_members_and_a_repeat_is_free(tmp_path: Path) -> None:
    rows, policy = make_rows(5), policy_with(3)
    ledger = Ledger(tmp_path / "ledger", budget_limits(policy))
    analyst = Curator(policy, ReferenceEngine(rows), ledger, SystemBits()).analyst("ada")
    first = analyst.ask(QUESTIONS[0], epsilon=1)
    assert plan_of(QUESTIONS[0], policy).epsilon_delta == (1, 0)
    spent = repr(analyst)
    assert "spent epsilon 1 of" in spent
    again = analyst.ask(QUESTIONS[0], epsilon=1)
    assert str(again).splitlines()[:3] == str(first).splitlines()[:3]
    assert repr(analyst) == spent


def test_another_value_is_another_question() -> None:
    policy = policy_with(3)
    texts = ["{}", "2 * {}", "{} + 1", "-{}"]
    keys = {plan_of(f"SELECT COUNT(*) FROM visits WHERE x > {t.format('(SELECT AVG(x) FROM visits)')}", policy).key
            for t in texts}  # fmt: skip
    assert len(keys) == len(texts)
    listed = "SELECT COUNT(*) FROM visits WHERE place = (SELECT place FROM visits GROUP BY place ORDER BY COUNT(*) {})"
    assert len({plan_of(listed.format(tail), policy).key for tail in ("LIMIT 1", "DESC LIMIT 1")}) == 2
    assert plan_of(QUESTIONS[0], policy).key == plan_of(QUESTIONS[0].lower(), policy).key


# By default each question under one of the relations, by turns.
RELATED = [(sql, each) for number, sql in enumerate(QUESTIONS) for each in some(["add-remove", "replace"], 2, number)]


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "neighbors"), RELATED)
def test_one_person_moves_no_more_than_is_charged_whatever_the_value(sql: str, neighbors: str) -> None:
    plan = plan_of(sql, policy_with(2, neighbors))
    waiting = [member for member in plan.members if placeholders_of(member.exact)]
    assert waiting
    types = {value.name: value.type for value in plan.values}
    for seed in range(30 if FULL else 1):
        rows = make_rows(seed)
        without = {name: [row for row in some if row["who"] != 1] for name, some in rows.items()}
        other = without if neighbors == "add-remove" else {
            name: [*without[name], *({**row, "who": 99} for row in make_rows(seed + 50)[name][:9])] for name in rows
        }  # fmt: skip
        for member in waiting:
            for value in (None, -60, 0, 2, 60):
                names = placeholders_of(member.exact)
                exact = fill(member.exact, {name: fitting(value, types[name]) for name in names})
                one, two = (ReferenceEngine(some).run(exact) for some in (rows, other))
                for part in member.parts:
                    assert isinstance(part, Part)
                    terms = [(f, member.exact.measures.index(measure)) for f, measure in part.need.terms]
                    held, holds = ({g: sum(f * row[i] for f, i in terms) for g, row in x.items()} for x in (one, two))
                    assert sum(abs(held.get(g, 0) - holds.get(g, 0)) for g in held | holds) <= part.sensitivity


def fitting(value: int | None, kind: Type) -> Any:
    """A value of a type."""
    return "abcd"[value % 4] if kind is Type.TEXT and value is not None else value


def test_a_plan_holds_nothing_of_the_data() -> None:
    policy = policy_with(3)
    plan = plan_of(QUESTIONS[0], policy)
    stored = [release(plan, ReferenceEngine(make_rows(seed)), Ones()) for seed in (1, 2)]
    assert stored[0] != stored[1]
    assert plan == plan_of(QUESTIONS[0], policy)  # running it left no value in it
    assert plan.epsilon_delta == (Fraction(1), 0)


def test_a_filled_plan_has_no_placeholders() -> None:
    plan = plan_of(QUESTIONS[0], policy_with(3))
    (waiting,) = [member for member in plan.members if placeholders_of(member.exact)]
    filled = fill(waiting.exact, dict.fromkeys(placeholders_of(waiting.exact), None))
    assert not placeholders_of(filled)
    assert replace(filled, where=waiting.exact.where, source=waiting.exact.source) == waiting.exact


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM visits WHERE x = (SELECT MAX(x) FROM visits)", "which has noise"),
        ("SELECT COUNT(*) FROM visits WHERE place NOT IN (SELECT place FROM visits GROUP BY place ORDER BY COUNT(*) "
         "LIMIT 2)", "ORDER BY"),
        ("SELECT SUM(x - (SELECT AVG(x) FROM visits)) FROM visits", "bound"),
        ("SELECT COUNT(*) FROM visits WHERE x > (SELECT x FROM visits)", "one row"),
    ],
)  # fmt: skip
def test_what_is_refused(sql: str, said: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        plan_question(read_question(sql), policy_with(3), 1)
    assert caught.value.code in {ErrorCode.UNSUPPORTED, ErrorCode.UNBOUNDED}
    assert caught.value.fix


def test_a_join_of_two_released_tables_is_as_it_was() -> None:
    text = (
        "SELECT a.place, a.n FROM (SELECT place, COUNT(*) AS n FROM visits GROUP BY place) AS a JOIN "
        "(SELECT place AS p, COUNT(*) AS m FROM notes GROUP BY place ORDER BY m DESC LIMIT 2) AS b ON a.place = p"
    )
    plan = plan_of(text, policy_with(3))
    assert len(plan.members) == 2
    assert not plan.values


@pytest.mark.parametrize("more", ["SELECT COUNT(*), MAX(n)", "SELECT p, COUNT(*)"])
def test_other_columns_of_a_released_list_are_refused(more: str) -> None:
    top = "(SELECT place AS p, COUNT(*) AS n FROM visits GROUP BY place ORDER BY n LIMIT 2) AS top"
    text = f"{more} FROM visits JOIN {top} ON place = p"
    with pytest.raises(Refused, match="released table"):
        plan_question(read_question(text), policy_with(3), 1)
