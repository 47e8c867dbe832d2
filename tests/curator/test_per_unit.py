# ruff: noqa: E501 - a question is easier to read on one line
"""Questions about what one person's rows are together: against plain DuckDB over the same rows, the noise set aside.

No bound bites here, so the exact answer is the one that SQL gives. The unit is no listed column, as is usual.
"""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL, some
from tests.support.policies import caps, policy_of

from tacit.aggregates.registry import read_question as parse
from tacit.curator.copies import PolicyLayouts, readings_of
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines import ingest
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.ledger.ledger import Ledger
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.policy.model import DeclaredAnalyst, PrivacyBudget
from tacit.query.timestamps import to_microseconds

pytestmark = pytest.mark.slow

FIRST = datetime.date(2025, 1, 1)
DAY = {"type": "date", "lower": "2025-01-01", "upper": "2025-06-30"}
KIND = {"type": "text", "values": ["visit", "cart", "buy"]}
CHANNEL = {"type": "text", "values": ["web", "app"]}
COLUMNS: dict[str, dict[str, Any]] = {
    "orders": {
        "id": {"type": "int"},
        "day": DAY,
        "channel": CHANNEL,
        "total": {"type": "float", "lower": 0, "upper": 500, "step": 0.5, "nullable": False},
        "items": {"type": "int", "lower": 0, "upper": 9},
    },
    "events": {
        "id": {"type": "int"},
        "happened": {"type": "timestamp", "lower": "2025-01-01T00:00:00", "upper": "2025-06-30T23:59:59"},
        "kind": KIND,
    },
    "customers": {"country": {"type": "text", "values": ["CH", "US"]}, "joined": DAY},
}
TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def declare(groups: int = 60, rows: int = 60, total: int | None = 60, neighbors: str = "add-remove") -> dict[str, Any]:
    tables = {
        name: {"unit": "customer", "people": "customers", **caps(groups, rows, total), "columns": columns}
        for name, columns in COLUMNS.items()
    }
    tables["customers"] |= caps(1, 1)
    return policy_of(tables, neighbors=neighbors, delta=1e-3, delta_per_question=1e-9)


def rows_of(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Sixty customers: some without orders, some with several on one day; ids tell all rows apart."""
    orders, events, customers = [], [], []
    for customer in range(60):
        customers.append({"customer": f"c{customer}", "country": rng.choice(["CH", "US"]), "joined": FIRST})
        for _ in range(rng.choice([0, 1, 2, 3, 6])):
            orders.append(
                {
                    "customer": f"c{customer}",
                    "id": len(orders) * 7 % 1000,
                    "day": FIRST + datetime.timedelta(rng.randrange(150)),
                    "channel": rng.choice(["web", "app"]),
                    "total": rng.randint(0, 1000) / 2,
                    "items": None if rng.random() < 0.2 else rng.randint(0, 9),
                }
            )
        moment = datetime.datetime(2025, 2, 1) + datetime.timedelta(minutes=rng.randrange(9000))
        for _ in range(rng.choice([0, 2, 5, 9])):
            moment += datetime.timedelta(minutes=rng.choice([1, 5, 31, 600]))
            kind = rng.choice(["visit", "visit", "cart", "buy"])
            events.append({"customer": f"c{customer}", "id": len(events), "happened": moment, "kind": kind})
    return {"orders": orders, "events": events, "customers": customers}


def arrow(tables: dict[str, list[dict[str, Any]]]) -> dict[str, pa.Table]:
    return {
        table: pa.table(
            {"customer": pa.array([row["customer"] for row in rows], pa.string())}
            | {
                name: pa.array([row[name] for row in rows], TYPES[column["type"]])
                for name, column in COLUMNS[table].items()
            }
        )
        for table, rows in tables.items()
    }


NUMBERED = "ROW_NUMBER() OVER (PARTITION BY customer ORDER BY day, id)"
QUESTIONS = f"""
SELECT AVG(n), SUM(n), VAR_SAMP(n) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)
SELECT AVG(n) FROM (SELECT customer, COUNT(items) AS n, SUM(items) AS s FROM orders GROUP BY customer) WHERE s > 3
SELECT AVG(s), SUM(s) FROM (SELECT customer, SUM(total) AS s FROM orders GROUP BY customer)
SELECT SUM(s), AVG(d) FROM (SELECT customer, SUM(items) AS s, COUNT(DISTINCT channel) AS d FROM orders GROUP BY customer)
SELECT AVG(mean) FROM (SELECT customer, SUM(total) / COUNT(*) AS mean FROM orders GROUP BY customer)
SELECT AVG(2 * n + 1) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)
SELECT AVG(COALESCE(o.n, 0)) FROM customers AS c LEFT JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS o ON o.customer = c.customer
SELECT country, AVG(o.n) FROM customers AS c JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS o ON o.customer = c.customer GROUP BY country
SELECT CORR(o.n, e.n) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS o JOIN (SELECT customer, COUNT(*) AS n FROM events GROUP BY customer) AS e USING (customer)
SELECT AVG(most) FROM (SELECT customer, MAX(n) AS most FROM (SELECT customer, day, COUNT(*) AS n FROM orders GROUP BY customer, day) GROUP BY customer)
SELECT channel, COUNT(*), AVG(total) FROM (SELECT channel, total, {NUMBERED} AS rn FROM orders) WHERE rn = 1 GROUP BY channel
SELECT channel, COUNT(*), AVG(total) FROM (SELECT channel, total FROM orders QUALIFY {NUMBERED} = 2) GROUP BY channel
SELECT COUNT(*), SUM(total) FROM (SELECT *, {NUMBERED} AS rn FROM orders QUALIFY rn <= 3)
SELECT COUNT(*), SUM(total) FROM (SELECT t.*, {NUMBERED} AS rn FROM orders AS t WHERE channel = 'web') AS u WHERE 3 > u.rn
SELECT AVG(rn) FROM (SELECT {NUMBERED} AS rn FROM orders)
SELECT COUNT(*), SUM(total * n) FROM (SELECT customer, total, COUNT(*) AS n FROM orders GROUP BY customer, total)
SELECT AVG(total), COUNT(*) FROM (SELECT DISTINCT ON (customer) customer, total, day AS d FROM orders ORDER BY customer, d DESC, id)
SELECT channel, AVG(total) FROM (SELECT DISTINCT ON (customer, channel) channel, total FROM orders WHERE items > 1 ORDER BY total DESC, id) GROUP BY channel
SELECT country, COUNT(*) FROM (SELECT customer, {NUMBERED} AS rn FROM orders) AS o JOIN customers USING (customer) WHERE o.rn = 1 GROUP BY country
SELECT channel, following, COUNT(*) FROM (SELECT channel, LEAD(channel) OVER (PARTITION BY customer ORDER BY day, id) AS following FROM orders) WHERE following IS NOT NULL GROUP BY channel, following
SELECT AVG(gap) FROM (SELECT day - LAG(day) OVER (PARTITION BY customer ORDER BY day, id) AS gap FROM orders) WHERE gap IS NOT NULL
SELECT AVG(DATE_DIFF('minute', earlier, happened)) FROM (SELECT happened, LAG(happened) OVER (PARTITION BY customer ORDER BY happened, id) AS earlier FROM events) WHERE earlier IS NOT NULL
SELECT SUM(total - before) FROM (SELECT total, LAG(total, 2, 0) OVER w AS before FROM orders WINDOW w AS (PARTITION BY customer ORDER BY day DESC, id))
SELECT AVG(last - first) FROM (SELECT FIRST_VALUE(total) OVER w AS first, LAST_VALUE(total) OVER w AS last FROM orders WINDOW w AS (PARTITION BY customer ORDER BY day, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))
SELECT AVG(x) FROM (SELECT NTH_VALUE(items, 2) OVER (PARTITION BY customer ORDER BY day, id) AS x FROM orders)
SELECT third, COUNT(*) FROM (SELECT NTILE(3) OVER (PARTITION BY customer ORDER BY day, id) AS third FROM orders) GROUP BY third
SELECT SUM(r), SUM(d) FROM (SELECT RANK() OVER (PARTITION BY customer ORDER BY channel, items) AS r, DENSE_RANK() OVER (PARTITION BY customer ORDER BY channel) AS d FROM orders)
SELECT AVG(share) FROM (SELECT GREATEST(0, LEAST(total / SUM(total) OVER (PARTITION BY customer), 1)) AS share FROM orders WHERE total > 0.5)
SELECT AVG(n), AVG(m) FROM (SELECT COUNT(*) OVER (PARTITION BY customer, channel) AS n, COUNT(items) OVER (PARTITION BY customer) AS m FROM orders)
SELECT SUM(running) FROM (SELECT SUM(items) OVER (PARTITION BY customer ORDER BY day, id) AS running FROM orders)
SELECT SUM(moving), AVG(mean) FROM (SELECT SUM(total) OVER w AS moving, AVG(items) OVER w AS mean FROM orders WINDOW w AS (PARTITION BY customer ORDER BY day, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING))
SELECT SUM(upto) FROM (SELECT SUM(total) OVER (PARTITION BY customer ORDER BY channel) AS upto FROM orders)
SELECT AVG(most - least) FROM (SELECT MAX(items) OVER (PARTITION BY customer) AS most, MIN(items) OVER (PARTITION BY customer ORDER BY day, id ROWS 2 PRECEDING) AS least FROM orders)
SELECT COUNT(*) FROM (SELECT CASE WHEN DATE_DIFF('minute', LAG(happened) OVER (PARTITION BY customer ORDER BY happened, id), happened) <= 30 THEN 0 ELSE 1 END AS starts FROM events) WHERE starts = 1
WITH marked AS (SELECT customer, id, happened, CASE WHEN DATE_DIFF('minute', LAG(happened) OVER (PARTITION BY customer ORDER BY happened, id), happened) > 30 THEN 1 ELSE 0 END AS fresh FROM events), sessions AS (SELECT customer, SUM(fresh) OVER (PARTITION BY customer ORDER BY happened, id ROWS UNBOUNDED PRECEDING) AS number FROM marked) SELECT AVG(n) FROM (SELECT customer, number, COUNT(*) AS n FROM sessions GROUP BY customer, number)
SELECT AVG(change) FROM (SELECT customer, day, COUNT(*) - LAG(COUNT(*)) OVER (PARTITION BY customer ORDER BY day) AS change FROM orders GROUP BY customer, day) WHERE change IS NOT NULL
SELECT COUNT(*) FROM (SELECT customer, channel, COUNT(*) AS n FROM orders GROUP BY customer, channel QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY n DESC, channel) = 1) WHERE channel = 'app'
SELECT COUNT(*) FROM (SELECT DISTINCT customer, MIN(day) OVER (PARTITION BY customer) AS start FROM orders) WHERE start < DATE '2025-02-01'
SELECT COUNT(DISTINCT customer) FILTER (WHERE kind = 'visit') AS a, COUNT(DISTINCT customer) FILTER (WHERE kind = 'buy') AS b FROM events
SELECT channel, COUNT(DISTINCT CASE WHEN items > 3 THEN customer END) AS a, 100.0 * COUNT(DISTINCT CASE WHEN items > 5 THEN customer END) / COUNT(DISTINCT customer) AS b FROM orders GROUP BY channel
SELECT COUNT(DISTINCT CASE WHEN items > 3 THEN CASE WHEN channel = 'web' THEN customer END END) AS a FROM orders
SELECT COUNT(*), COUNT(DISTINCT o.customer), COUNT(o.customer) FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.customer
SELECT COUNT(*) FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.customer WHERE o.customer IS NULL
SELECT COUNT(DISTINCT x) FROM (SELECT CASE WHEN kind = 'buy' THEN customer END AS x FROM events)
WITH firsts AS (SELECT customer, DATE_TRUNC('month', MIN(day)) AS cohort FROM orders GROUP BY customer) SELECT cohort, DATE_TRUNC('month', o.day) AS month, COUNT(DISTINCT o.customer) FROM orders AS o JOIN firsts AS f ON f.customer = o.customer GROUP BY cohort, month
SELECT cohort, COUNT(DISTINCT customer) FROM (SELECT customer, DATE_TRUNC('month', MIN(day) OVER (PARTITION BY customer)) AS cohort FROM orders) GROUP BY cohort
SELECT COUNT(carted), COUNT(CASE WHEN bought > carted THEN 1 END) FROM (SELECT customer, MIN(happened) FILTER (WHERE kind = 'cart') AS carted, MIN(happened) FILTER (WHERE kind = 'buy') AS bought FROM events GROUP BY customer)
SELECT COUNT(*) FROM (SELECT customer FROM orders QUALIFY COUNT(*) OVER (PARTITION BY customer, day) > 1)
""".strip().splitlines()


SOME = QUESTIONS if FULL else QUESTIONS[::3]


class Shop:
    """A curator over the rows, and plain DuckDB over the same."""

    def __init__(self, folder: Any) -> None:
        tables = arrow(rows_of(random.Random(19)))
        self.plain = duckdb.connect()
        for name, table in tables.items():
            self.plain.register(f"{name}_given", table)
            self.plain.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_given")
        loaded = load(declare())
        plenty = PrivacyBudget(Fraction(10**6), loaded.budget.delta)  # for all questions at the highest price
        self.policy = replace(loaded, budget=plenty, analysts=(DeclaredAnalyst("ada", plenty),))
        ledger = Ledger(folder / "shop.ledger", budget_limits(self.policy))
        engine = DuckDBEngine(table_schemas(self.policy), None, tables)
        self.curator = Curator(self.policy, engine, ledger, Ones())

    def ask(self, text: str) -> Any:
        return self.curator.analyst("ada").ask(text, epsilon=1000)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    made = Shop(tmp_path_factory.mktemp("shop"))
    yield made
    made.curator.close()
    made.plain.close()


def same(ours: Any, plain: Any) -> bool:
    """Equal; numbers up to the grid that floats are put on. A sum of nothing is 0."""
    if plain is None:
        return not ours
    return math.isclose(float(ours), float(plain), rel_tol=1e-4, abs_tol=1e-4)


def plain_key(value: Any) -> Any:
    return value.date() if isinstance(value, datetime.datetime) else value


@pytest.mark.parametrize("text", some(QUESTIONS, 2))
def test_the_answer_is_that_of_plain_sql(text, shop):
    size = len(parse(text).keys)
    answer = shop.ask(text)
    ours = {
        tuple(row[name] for name in answer.columns[:size]): [row[n] for n in answer.columns[size:]] for row in answer
    }
    plain = {tuple(map(plain_key, row[:size])): row[size:] for row in shop.plain.execute(text).fetchall()}
    assert plain.keys() <= ours.keys()
    for key, row in ours.items():
        if key in plain:
            assert all(same(one, other) for one, other in zip(row, plain[key], strict=True)), (key, row, plain[key])
        else:
            assert not any(row)  # a declared key that does not occur


def awkward() -> dict[str, list[dict[str, Any]]]:
    """Rows that tie or are equal, are nobody's, or lie beyond their bounds; a customer stands once among customers."""
    rng = random.Random(3)
    tables = rows_of(rng)
    for table in ("orders", "events"):
        for row in tables[table]:
            if rng.random() < 0.1:
                row["customer"] = rng.choice([None, "c1", "c2"])
            if "total" in row and rng.random() < 0.2:
                row |= {"total": rng.choice([-5.0, 1e9, math.nan, 2.5]), "day": FIRST, "id": 1}
    return tables


def in_memory(tables: dict[str, list[dict[str, Any]]]) -> ReferenceEngine:
    """The reference over the rows, in which a timestamp is an integer."""
    moments = {
        table: [row | {name: to_microseconds(row[name]) for name in ("happened",) if name in row} for row in rows]
        for table, rows in tables.items()
    }
    return ReferenceEngine(moments)


@pytest.mark.parametrize(("groups", "rows", "total"), [(2, 1, None), (2, 3, 4)])
def test_duckdb_and_the_reference_say_the_same_where_bounds_bite(groups, rows, total):
    policy, tables = load(declare(groups, rows, total)), awkward()
    engine, reference = DuckDBEngine(table_schemas(policy), None, arrow(tables)), in_memory(tables)
    for text in SOME:
        exact = plan_for(parse(text), policy, 1).exact
        assert dict(engine.run(exact)) == dict(reference.run(exact)), text
    engine.close()


def test_a_sorted_copy_and_the_reference_say_the_same_where_none_does(monkeypatch):
    pytest.importorskip("numba", reason="the loops are compiled by numba")
    monkeypatch.setattr(ingest, "_READY", 0)  # whatever the size of a table
    policy, tables = load(declare(1000, 1000, None)), awkward()
    copied = {"layouts": PolicyLayouts(policy), "readings": readings_of(policy)}
    engine, reference = DuckDBEngine(table_schemas(policy), None, arrow(tables), **copied), in_memory(tables)
    assert engine._copy.layouts
    for text in SOME:
        exact = plan_for(parse(text), policy, 1).exact
        assert dict(engine.run(exact)) == dict(reference.run(exact)), text
    engine.close()


def test_the_answer_says_what_the_caps_cut_off(shop):
    answer = shop.ask("SELECT AVG(n) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)")
    assert "COUNT(*) counts at most 60 of each customer, as the policy's caps say." in answer.notes
    clamped = shop.ask("SELECT AVG(LEAST(n, 9)) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)")
    assert not any("caps" in note for note in clamped.notes)
