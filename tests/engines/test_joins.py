"""Joins, IN and EXISTS as people write them: what plain DuckDB says, where no bound bites and there is no noise.

The files under joins/ hold the questions. Rows that reach no unit are left out of a question, so the plain tables have
none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from functools import cache
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
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import check_join_columns, table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.ledger.ledger import Ledger
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.policy.model import Policy

pytestmark = pytest.mark.slow

SEEDS = range(6 if FULL else 1)
Rows = list[dict[str, Any]]
SMALL = {"type": "int", "lower": -50, "upper": 50}
TEXT = {"type": "text"}

STATUS = {"type": "text", "values": ["paid", "open", "zurich"]}
KINDS = {
    "customers": {"id": "int", "age": "int"},
    "orders": {"id": "text", "customer_id": "int", "store": "text", "status": "text", "amount": "int"},
    "lines": {"order_id": "text", "product": "text", "quantity": "int"},
    "payments": {"order_id": "text", "paid": "int"},
    "visits": {"customer_id": "int", "score": "int"},
    "sales": {"customer_id": "int", "product": "text", "year": "int"},
    "products": {"product": "text", "origin": "text", "price": "int", "weight": "int"},
    "stores": {"store": "text", "city": "text", "size": "int"},
    "prices": {"product": "text", "year": "int", "cost": "int"},
}
TYPES = {"int": pa.int64(), "text": pa.string()}


@cache
def shop(neighbors: str = "add-remove", rows: int = 10_000) -> Policy:
    """Customers, whose orders reach them by a key, and lines and payments through these; three public tables."""
    many = caps(min(1_000, rows), rows)
    own = {"unit": "customer_id", "people": "customers", **many}
    through = {"unit": {"through": "order_id", "to": "orders.id"}, **many}
    return load(
        policy_of(
            {
                "customers": {"unit": "id", "people": "customers", **many, "columns": {"age": SMALL}},
                "orders": {
                    "unit": {"through": "customer_id", "to": "customers.id"},
                    **many,
                    "columns": {"store": TEXT, "status": STATUS, "amount": SMALL},
                },
                "lines": through | {"columns": {"product": TEXT, "quantity": SMALL}},
                "payments": through | {"columns": {"paid": SMALL}},
                "visits": own | {"columns": {"score": SMALL}},
                "sales": own | {"columns": {"product": TEXT, "year": SMALL}},
                "products": {
                    "public": True,
                    "columns": {"product": TEXT | {"unique": True}, "origin": TEXT, "price": SMALL, "weight": SMALL},
                },
                "stores": {"public": True, "columns": {"store": TEXT | {"unique": True}, "city": TEXT, "size": SMALL}},
                "prices": {
                    "public": True,
                    "unique": ["product", "year"],
                    "columns": {"product": TEXT, "year": SMALL, "cost": SMALL},
                },
            },
            neighbors=neighbors,
        )
    )


def make_rows(seed: int) -> dict[str, Rows]:
    """Few values, so that rows meet; a fifth are NULL; customers without orders, and orders without lines."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    def draw(kind: str) -> Any:
        return maybe(rng.randint(-1, 4) if kind == "int" else rng.choice("abcd"))

    people = range(1, 8)
    customers = [{"id": number, "age": draw("int")} for number in people if number != 7]
    orders = [
        {
            "id": f"o{number}",
            "customer_id": maybe(rng.choice(people)),
            "store": draw("text"),
            "status": maybe(rng.choice(["paid", "open", "zurich"])),
            "amount": draw("int"),
        }
        for number in range(rng.choice([0, 9, 14]) if seed else 14)
    ]
    keys = [order["id"] for order in orders] + ["none"]

    def some(size: int, **columns: Any) -> Rows:
        return [{name: value() for name, value in columns.items()} for _ in range(size)]

    number, letter = (lambda: draw("int")), (lambda: draw("text"))
    distinct = {(rng.choice("abcd"), rng.randint(0, 2)) for _ in range(6)}
    return {
        "customers": customers,
        "orders": orders,
        "lines": some(25, order_id=lambda: maybe(rng.choice(keys)), product=letter, quantity=number),
        "payments": some(9, order_id=lambda: maybe(rng.choice(keys)), paid=number),
        "visits": some(12, customer_id=lambda: maybe(rng.choice(people)), score=number),
        "sales": some(15, customer_id=lambda: maybe(rng.choice(people)), product=letter, year=number),
        "products": [{"product": maybe(p), "origin": letter(), "price": number(), "weight": number()} for p in "abc"],
        "stores": [
            {"store": p, "city": maybe(rng.choice(["PAID", "Zurich", "zurich"])), "size": number()} for p in "abd"
        ],
        "prices": [
            *({"product": p, "year": y, "cost": number()} for p, y in sorted(distinct)),
            *({"product": None, "year": 1, "cost": 3} for _ in range(2)),
        ],
    }


def without_orphans(rows: dict[str, Rows]) -> dict[str, Rows]:
    """The rows that reach a unit."""
    people = {row["id"] for row in rows["customers"]}
    orders = [row for row in rows["orders"] if row["customer_id"] in people]
    keys = {row["id"] for row in orders}
    kept = {name: [row for row in rows[name] if row["order_id"] in keys] for name in ("lines", "payments")}
    named = {name: [r for r in rows[name] if r["customer_id"] is not None] for name in ("visits", "sales")}
    return rows | {"orders": orders} | kept | named


def as_plain(sql: str) -> str:
    """The question in DuckDB's own dialect, which has no backticks, and takes NULL for equal to NULL in lists."""
    lists, one_by_one = "(v.customer_id, v.score) = (o.customer_id, o.amount)", "v.customer_id = o.customer_id"
    return sql.replace("`", "").replace(lists, f"{one_by_one} AND v.score = o.amount")


def arrow_of(name: str, rows: Rows) -> pa.Table:
    return pa.table({c: pa.array([row[c] for row in rows], TYPES[kind]) for c, kind in KINDS[name].items()})


def questions() -> dict[str, str]:
    found = {}
    for file in sorted((Path(__file__).parent / "joins").glob("*.sql")):
        for part in file.read_text(encoding="utf-8").strip().split("\n\n"):
            title, _, sql = part.strip().partition("\n")
            found[f"{file.stem}: {title.removeprefix('-- ')}"] = sql
    return found


@pytest.fixture(scope="module", params=SEEDS)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine and the reference without noise, and a DuckDB that knows nothing of privacy."""
    rows = make_rows(request.param)
    policy = shop()
    engine = DuckDBEngine(table_schemas(policy), None, {name: arrow_of(name, some) for name, some in rows.items()})
    check_join_columns(policy, engine)
    folder = tmp_path_factory.mktemp("joins")
    analysts: list[Analyst] = []
    with duckdb.connect(":memory:") as plain:
        plain.execute("ATTACH ':memory:' AS shop; CREATE SCHEMA shop.public; USE shop.public")
        for name, some in without_orphans(rows).items():
            plain.register("handed", arrow_of(name, some))
            plain.execute(f"CREATE TABLE {name} AS SELECT * FROM handed")
        plain.execute("ALTER TABLE lines ADD COLUMN customer_id BIGINT")  # which a question may name, and has no table
        plain.execute("UPDATE lines SET customer_id = orders.customer_id FROM orders WHERE orders.id = lines.order_id")
        for number, each in enumerate((engine, ReferenceEngine(rows))):
            ledger = Ledger(folder / str(number), budget_limits(policy))
            analysts.append(Curator(policy, each, ledger, Ones()).analyst("ada"))
        yield (*analysts, plain)
    engine.close()


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in some(questions().items(), 2)])
def test_plain_sql_where_no_bound_bites(sql: str, asked: Any) -> None:
    engine, reference, plain = asked
    expected = {tuple(0 if v is None else v for v in row) for row in plain.sql(as_plain(sql)).fetchall()}
    for analyst in (engine, reference):
        rows = {tuple(row.values()) for row in analyst.ask(sql, epsilon=1)}
        empty = {row for row in rows if all(value in (0, None) or isinstance(value, str | bool) for value in row)}
        assert expected <= rows, (sql, expected, rows)
        assert rows - expected <= empty


@pytest.mark.parametrize("kind", ["postgres", *(["spark"] if FULL else [])])
def test_other_engines_say_what_the_reference_says(kind: str, opened: Any) -> None:
    rows, policy = make_rows(1), shop()
    tables = {name: (KINDS[name], some) for name, some in rows.items()}
    reference = ReferenceEngine(rows)
    with closing(opened(kind, tables, table_schemas(policy))) as engine:
        check_join_columns(policy, engine)
        for sql in some(questions().values(), 2, first=1):  # those that plain DuckDB is not asked beside it
            exact = plan_for(read_question(sql), policy, 1).exact
            assert engine.run(exact) == reference.run(exact), sql
