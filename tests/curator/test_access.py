"""Who may ask what: a restricted analyst is answered what everyone is, or refused as if what is hidden were not there.

Which questions name something hidden is found a second way: sqlglot resolves the names of each question, knowing
nothing of Tacit.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from tests.curator.test_questions import CHOICES, HIDDEN, QUESTIONS, RANKS, TABLES, arrow, clean, declare
from tests.support.counts import FULL, some

import tacit
from tacit.accounting.filters import BudgetCharge
from tacit.curator.curator import Curator, open_policy
from tacit.curator.describe_schema import describe_schema
from tacit.curator.profile import find_profile
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.errors import ErrorCode, Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy, TableAccess
from tacit.sampling.bits import ReplayBits

JOINS = [
    "SELECT COUNT(*) FROM visits JOIN patients USING (patient)",
    "SELECT item, SUM(weight) FROM lines JOIN orders ON lines.order_id = orders.id GROUP BY item",
    "SELECT COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward WHERE beds > 3",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM orders WHERE weight > 3)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient AND born > 1950)",
    "SELECT COUNT(DISTINCT patient) FROM lines",
    "SELECT SUM(n) FROM (SELECT patient, LEAST(COUNT(*), 5) AS n FROM lines GROUP BY patient) AS t",
    "SELECT AVG(cost) FROM (SELECT age AS cost FROM visits) AS t",
    "WITH old AS (SELECT ward, cost FROM visits WHERE age > 60) SELECT ward, AVG(cost) FROM old GROUP BY ward",
]
EVERY = [*QUESTIONS, *CHOICES, *(text for text, _, _ in RANKS), *JOINS]
SQL_TYPES = {"int": "bigint", "float": "double", "text": "text", "bool": "boolean", "date": "date"}
SCHEMA = {name: {c: SQL_TYPES[about["type"]] for c, about in columns.items()} for name, columns in TABLES.items()}
for table, unlisted in HIDDEN.items():
    SCHEMA[table] |= dict.fromkeys(unlisted, "bigint")
SCHEMA["lines"]["patient"] = "bigint"  # the unit, which is reached through orders
STEPS = 8


@cache
def names_in(text: str) -> set[tuple[str, str]]:
    """The tables of a question and their columns, as sqlglot resolves them; a table by itself has no column."""
    tree = qualify(parse_one(text, dialect="duckdb"), schema=SCHEMA, dialect="duckdb", validate_qualify_columns=False)
    found = set()
    for scope in traverse_scope(tree):
        for _, source in scope.selected_sources.values():
            if isinstance(source, exp.Table):
                found.add((source.name.lower(), ""))
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table):
                found.add((source.name.lower(), column.name.lower()))
    return found


def draw_access(rng: random.Random) -> dict[str, list[str]]:
    """The tables that may be named, each whole or with some of its columns."""
    shown = rng.sample(sorted(TABLES), rng.randint(1, len(TABLES)))
    whole = [name for name in shown if rng.random() < 0.4]
    columns = [
        f"{name}.{column}"
        for name in shown
        if name not in whole
        for column in rng.sample(sorted(TABLES[name]), rng.randint(1, len(TABLES[name])))
    ]
    return {"tables": shown} | ({"columns": columns} if columns else {})


def names_hidden(text: str, access: dict[str, list[str]]) -> bool:
    """Whether a question names what is hidden: a table that is not shown, or a listed column that is not."""
    narrowed = {name.partition(".")[0] for name in access.get("columns", ())}
    return any(
        table not in access["tables"]
        or (column in TABLES[table] and table in narrowed and f"{table}.{column}" not in access["columns"])
        for table, column in names_in(text)
        if table in TABLES
    )


def policy_for(restrictions: dict[str, dict[str, Any]]) -> Policy:
    plain = declare(40, 64)
    budget = {"epsilon": 1000, "delta": 1e-6}
    plain["analysts"] = {"free": budget} | {name: budget | access for name, access in restrictions.items()}
    return load(plain)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(STEPS if FULL else 6))
def test_a_question_is_refused_just_where_it_names_what_is_hidden_and_is_the_same_question_elsewhere(seed):
    access = draw_access(random.Random(seed))
    policy = policy_for({"ada": access})
    planner = Planner(policy)
    refused = answered = 0
    for text in some(EVERY, 9, seed):
        asked = Question(text, Fraction(1))
        free = planner.plan(asked, "free")
        if names_hidden(text, access):
            with pytest.raises(Refused) as error:
                planner.plan(asked, "ada")
            assert error.value.code in {ErrorCode.UNKNOWN_TABLE, ErrorCode.UNKNOWN_COLUMN}, text
            refused += 1
        else:
            plan = planner.plan(asked, "ada")
            assert (plan.key, plan.loss, plan.delta, plan.recipe) == (free.key, free.loss, free.delta, free.recipe)
            answered += 1
    assert refused + answered == len(some(EVERY, 9, seed))
    assert refused  # and with all seeds together many are answered: the next test


@pytest.mark.slow
def test_the_drawn_restrictions_leave_questions_to_answer_and_to_refuse():
    kinds = [names_hidden(text, draw_access(random.Random(seed))) for seed in range(6) for text in some(EVERY, 9, seed)]
    assert 20 <= sum(kinds) <= len(kinds) - 20


def curator_of(policy: Policy, folder: Any) -> Curator:
    tables = arrow(clean())
    ledger = Ledger(folder / "x.ledger", budget_limits(policy))
    return Curator(policy, DuckDBEngine(table_schemas(policy), None, tables), ledger, ReplayBits(b""))


def without_receipt(answer: Any) -> dict[str, Any]:
    found = json.loads(answer.to_json())
    found.pop("receipt")
    return found


@pytest.mark.slow
def test_the_answer_of_a_restricted_analyst_is_that_of_a_free_one_bit_by_bit(tmp_path):
    # Two curators with ledgers of their own: neither answers from what the other has stored.
    access = {"tables": ["visits", "lines"], "columns": [f"visits.{c}" for c in ("ward", "age", "cost", "stay")]}
    policy = policy_for({"ada": access})
    texts = some([text for text in EVERY if not names_hidden(text, access)], 16)
    assert len(texts) >= (10 if FULL else 5)
    shown = []
    for name in ("free", "ada"):
        (tmp_path / name).mkdir()
        with curator_of(policy, tmp_path / name) as curator:
            shown.append([])
            for text in texts:
                curator.bits = ReplayBits(text.encode())
                answer = curator.analyst(name).ask(text, epsilon=1)
                shown[-1].append((without_receipt(answer), answer.receipt.charged))
    assert shown[0] == shown[1]


ONE = {"tables": ["visits", "lines"], "columns": [f"visits.{name}" for name in ("patient", "ward", "age", "stay")]}
HOSTILE = """
SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM "patients"
SELECT COUNT(*) FROM PATIENTS AS visits
SELECT COUNT(*) FROM public.patients
SELECT SUM(cost) FROM visits
SELECT SUM("cost") FROM visits
SELECT SUM("COST") FROM visits
SELECT SUM(v.cost) FROM visits AS v
SELECT SUM(v.c) FROM visits AS v(patient, ward, sex, age, c)
SELECT COUNT(DISTINCT cost) FROM visits
SELECT COUNT(*) FROM visits WHERE cost > 3
SELECT COUNT(*) FILTER (WHERE urgent) FROM visits
SELECT ward, COUNT(*) FROM visits GROUP BY ward, sex
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING SUM(cost) > 5
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY SUM(cost)
SELECT sex, COUNT(*) FROM visits GROUP BY 1
SELECT sex, COUNT(*) FROM visits GROUP BY ALL
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY cost
SELECT AVG(cost) FROM (SELECT * FROM visits) AS t
SELECT AVG(t.cost) FROM (SELECT v.* FROM visits AS v) AS t
SELECT AVG(x) FROM (SELECT * EXCLUDE (ward), cost AS x FROM visits) AS t
WITH t AS (SELECT * FROM visits) SELECT SUM(cost) FROM t
WITH t AS (SELECT cost AS x FROM visits) SELECT SUM(x) FROM t
WITH patients AS (SELECT * FROM patients) SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM visits NATURAL JOIN patients
SELECT COUNT(*) FROM visits, patients WHERE visits.patient = patients.patient
SELECT COUNT(*) FROM lines JOIN orders ON order_id = orders.id
SELECT COUNT(*) FROM lines JOIN orders ON lines.order_id = id
SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients)
SELECT COUNT(*) FROM visits WHERE stay IN (SELECT weight FROM orders)
SELECT (SELECT COUNT(*) FROM patients) AS n FROM visits
SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM (SELECT patient FROM visits UNION SELECT patient FROM patients) AS t
SELECT beds FROM wards
SELECT COUNT(*) FROM wards
SELECT ward, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY ward
SELECT SUM(price * weight) FROM lines
SELECT COUNT(*) FROM visits WHERE 1 = 0 AND cost > 1
SELECT cost FROM visits LIMIT 0
SELECT MEDIAN(cost) FROM visits
""".strip().splitlines()


def same_but_undeclared(access: dict[str, list[str]]) -> Policy:
    """The policy in which what is hidden is not declared at all; the way to the unit of lines is kept as a column."""
    plain = declare(40, 64)
    narrowed = {name.partition(".")[0] for name in access["columns"]}
    for name in list(plain["tables"]):
        if name not in access["tables"]:
            del plain["tables"][name]
        elif name in narrowed:
            columns = plain["tables"][name]["columns"]
            plain["tables"][name]["columns"] = {c: columns[c] for c in columns if f"{name}.{c}" in access["columns"]}
    plain["tables"]["lines"]["unit"] = "patient"
    plain["analysts"] = {"ada": {"epsilon": 1000, "delta": 1e-6}}
    return load(plain)


LINK = "order_id"  # by which lines reach their unit, and which the other policy has not


@pytest.mark.parametrize("text", HOSTILE)
def test_a_refusal_is_that_of_a_policy_without_what_is_hidden(text):
    policy = policy_for({"ada": ONE})
    with pytest.raises(Refused) as error:
        Planner(policy).plan(Question(text, Fraction(1)), "ada")
    told = str(error.value)
    said = f"{error.value.what} {error.value.fix}"
    quoted = set(re.findall(r"\w+", text.lower()))
    for name in ("patients", "orders", "wards", "people", "cost", "sex", "urgent", "born", "weight", "beds"):
        assert name in quoted or name not in re.findall(r"\w+", said.lower()), told
    if LINK not in quoted:
        with pytest.raises(Refused) as other:
            Planner(same_but_undeclared(ONE)).plan(Question(text, Fraction(1)), "ada")
        assert told == str(other.value)


NO_UNIT = {"columns": ["visits.ward", "visits.age", "visits.stay"]}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT patient) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE patient = 3",
        "SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (patient)",
        "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.patient = b.patient",
        "SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS t WHERE n > 1",
        "SELECT COUNT(*) FROM visits AS a WHERE patient IN (SELECT b.patient FROM visits AS b)",
    ],
)
def test_a_unit_that_is_listed_and_hidden_cannot_be_named(text):
    planner = Planner(policy_for({"ada": NO_UNIT}))
    planner.plan(Question(text, Fraction(1)), "free")
    with pytest.raises(Refused) as refused:
        planner.plan(Question(text, Fraction(1)), "ada")
    assert refused.value.code is ErrorCode.UNKNOWN_COLUMN


def test_a_unit_that_is_listed_and_hidden_is_no_column_of_a_table():
    policy = policy_for({"ada": NO_UNIT})
    assert set(describe_schema(policy.asked_by("ada")).table_types("visits")) == {"ward", "age", "stay"}
    assert "patient" in describe_schema(policy.asked_by("free")).table_types("visits")


@pytest.mark.slow
def test_what_is_hidden_is_not_in_the_schema_nor_in_the_profile_nor_in_the_tables_of_ibis(tmp_path):
    policy = policy_for({"ada": ONE})
    with curator_of(policy, tmp_path) as curator:
        curator.profile(epsilon=50)
        ada, free = curator.analyst("ada").schema, curator.analyst("free").schema
        assert free == curator.schema()
        assert set(ada.tables) == {"visits", "lines"}
        assert set(ada.tables["visits"]["columns"]) == {"patient", "ward", "age", "stay"}
        assert "unit_through" not in ada.tables["lines"] and ada.tables["lines"]["unit"] == "patient"
        shown, every = ada.profile, find_profile(curator.ledger)
        assert {(t.name, c.name) for t in shown.tables for c in t.columns} == {
            *(("visits", name) for name in ("ward", "age", "stay")),
            *(("lines", name) for name in TABLES["lines"]),
        }
        for table in shown.tables:
            for column in table.columns:
                assert column == every.table(table.name).column(column.name)
        plain = json.dumps([ada.to_dict(), json.loads(shown.stored), str(ada)])
        for name in ("orders", "patients", "wards", "cost", "urgent", "note", "born", "weight"):
            assert f'"{name}"' not in plain and f" {name} " not in str(ada)
        pytest.importorskip("ibis", reason="an extra")
        assert set(curator.analyst("ada").table("visits").columns) <= {"ward", "age", "stay", "patient"}
        with pytest.raises(Refused, match="there is no table orders") as refused:
            curator.analyst("ada").table("orders")
        assert refused.value.fix == "the tables are visits, lines"


@pytest.mark.slow
def test_a_profile_of_hidden_tables_alone_is_not_there(tmp_path):
    with curator_of(policy_for({"ada": ONE}), tmp_path) as curator:
        curator.profile(epsilon=1, tables=["orders"])
        assert curator.analyst("ada").schema.profile is None


@pytest.mark.slow
def test_one_analysts_plan_or_stored_answer_never_answers_anothers_forbidden_question(tmp_path):
    policy, text = policy_for({"ada": ONE}), "SELECT SUM(cost) AS s FROM visits"
    with curator_of(policy, tmp_path) as curator:
        curator.analyst("free").ask(text, epsilon=1)  # its plan and its answer are kept
        before = curator.ledger.overall()
        for name in ("ask", "explain"):
            with pytest.raises(Refused) as refused:
                getattr(curator.analyst("ada"), name)(text, epsilon=1)
            assert refused.value.code is ErrorCode.UNKNOWN_COLUMN
        assert curator.ledger.overall() == before
        assert curator.analyst("free").ask(text, epsilon=1).receipt.charged == BudgetCharge.zero()


@pytest.mark.slow
def test_what_was_paid_before_a_restriction_is_refused_after_it_and_the_rest_is_free_and_equal(tmp_path):
    kept, lost = "SELECT SUM(stay) AS s FROM visits", "SELECT SUM(cost) AS s FROM visits"
    with curator_of(policy_for({"ada": {}}), tmp_path) as curator:
        curator.bits = ReplayBits(b"before")
        paid = curator.analyst("ada").ask(kept, epsilon=1)
        curator.analyst("ada").ask(lost, epsilon=1, request="mine")
    with curator_of(policy_for({"ada": ONE}), tmp_path) as curator:
        again = curator.analyst("ada").ask(kept, epsilon=1)
        assert again.receipt.charged == BudgetCharge.zero() and without_receipt(again) == without_receipt(paid)
        for request in ("", "mine"):
            with pytest.raises(Refused, match="has no column cost"):
                curator.analyst("ada").ask(lost, epsilon=1, request=request)
        assert curator.analyst("free").ask(lost, epsilon=1).receipt.repeat  # it is stored, and others may ask it


@pytest.mark.slow
def test_a_locked_table_that_is_hidden_is_not_named(tmp_path):
    with curator_of(policy_for({"ada": ONE}), tmp_path) as curator:
        curator.live_tables = frozenset({"orders", "lines"})
        curator.engine._connection.execute("DROP TABLE copy.main.orders")
        text = "SELECT COUNT(*) FROM lines"
        with pytest.raises(tacit.Failed):
            curator.analyst("free").ask("SELECT COUNT(*) FROM orders", epsilon=1)
        with pytest.raises(Refused, match="orders is locked"):
            curator.analyst("free").ask(text, epsilon=1)
        with pytest.raises(Refused) as refused:
            curator.analyst("ada").ask(text, epsilon=1)
        explained = curator.analyst("ada").explain(text, epsilon=1).refused
        for error in (refused.value, explained):
            assert error.code is ErrorCode.TABLE_LOCKED and "orders" not in f"{error} {error.__cause__}"


@pytest.mark.slow
def test_a_fit_takes_no_hidden_column(tmp_path):
    learn = pytest.importorskip("tacit.learn", reason="an extra")
    policy = policy_for({"ada": ONE})
    with curator_of(policy, tmp_path) as curator:
        for columns, target in (("age, cost", "cost"), ("*", "cost"), ("age, stay, urgent", "stay")):
            with pytest.raises(Refused) as refused:
                curator.fit(learn.Ridge(), f"SELECT {columns} FROM visits", target, "ada", 1)
            assert refused.value.code is ErrorCode.UNKNOWN_COLUMN
            assert "sex" not in refused.value.fix
        asked = ("SELECT COALESCE(age, 0) AS age, stay FROM visits", "stay")
        charges = []
        for name in ("free", "ada"):
            curator.bits = ReplayBits(b"fit")
            curator.fit(learn.Ridge(rows=300), *asked, name, 1)
            charges.append(curator.ledger.overall().spent)
        assert charges[0] == charges[1]  # the second is a repeat of the first: one key


def test_the_policy_of_an_analyst_keeps_what_answers_mean():
    policy = policy_for({"ada": ONE, "bo": {"columns": ["lines.price"]}})
    for name in ("ada", "bo"):
        view = policy.asked_by(name)
        assert view.digest == policy.digest and view.all_tables == policy.tables
        assert view.neighbors == policy.neighbors and view is policy.asked_by(name)
        assert view.declared_table("orders") == policy.table("orders") and view.table("orders") is None
        for table in view.tables:
            whole = policy.table(table.name)
            assert (table.max_groups, table.max_rows_per_group) == (whole.max_groups, whole.max_rows_per_group)
    assert policy.asked_by("nobody") is policy and policy.asked_by("free") is policy
    assert policy.asked_by("ada").access == TableAccess(
        (("visits", ("patient", "ward", "age", "stay")), ("lines", None))
    )


def test_the_delta_of_a_restricted_analyst_is_their_own():
    policy = policy_for({"ada": ONE})
    plain = replace(policy.analyst("ada"), budget=replace(policy.budget, delta=Fraction(0)))
    policy = replace(policy, analysts=(plain,))
    view = policy.asked_by("ada")
    assert not view.has_delta and view.table("orders") is None and view.question_delta == 0


def test_a_restriction_holds_for_tables_that_are_handed_over(tmp_path):
    shown = {"type": "int", "lower": 0, "upper": 9}
    policy = load(
        {
            "privacy": {"epsilon": 10},
            "ledger": {"store": str(tmp_path / "x.ledger")},
            "tables": {"t": {"unit": "row", "columns": {"a": shown, "b": shown}}},
            "analysts": {"ada": {"epsilon": 10, "columns": ["T.A"]}},
        }
    )
    with open_policy(policy, {"t": pa.table({"a": [1, 2], "b": [3, 4]})}) as curator:
        ada = curator.analyst("ada")
        assert ada.ask("SELECT SUM(a) AS s FROM t", epsilon=1).columns == ("s",)
        stars = ada.explain("SELECT COUNT(*) AS n FROM (SELECT * FROM t) AS q", epsilon=1)
        assert stars.epsilon == 1
        with pytest.raises(Refused, match="t has no column b"):
            ada.ask("SELECT SUM(b) FROM t", epsilon=1)
