"""Joins on the unit take so many rows of a unit: by hand, beside plain DuckDB, and with a very large unit."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, some
from tests.support.policies import caps, policy_of

from tacit.aggregates.registry import read_question
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.limit_joins import MOST_JOINED, limit_joins
from tacit.engines.reference import ReferenceEngine
from tacit.plan.compound_plan import plan_question
from tacit.policy.load import load
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import Aggregation

Row = tuple[int, int, int]  # the unit and two values
SMALL = {"type": "int", "lower": -9, "upper": 99}
COLUMNS = {"x": SMALL, "y": SMALL, "k": {"type": "int", "lower": 0, "upper": 9}, "t": {"type": "text"}}
POLICY = load(
    policy_of(
        {name: {"unit": "u", "people": "us", **caps(9, 9_999), "columns": COLUMNS} for name in ("a", "b")},
        delta=1e-3,
        delta_per_question=1e-6,
    )
)
PAIRS = "SELECT a.x, COUNT(*) FROM a JOIN b ON a.u = b.u WHERE a.y > 1 AND b.y > 2 AND a.x < b.x + 3 GROUP BY a.x"


def exact_of(sql: str) -> Aggregation:
    (member,) = plan_question(read_question(sql), POLICY, 1).members
    return member.exact


def rows_of(table: list[Row]) -> list[dict[str, int]]:
    return [{"u": u, "x": x, "y": y, "k": (x + y) % 3, "t": str(x)} for u, x, y in table]


def evenly_spaced(rows: list[Any], most: int) -> list[Any]:
    """Rows as a list that is walked: a step of `most` for each, and one is taken whenever the sum passes the size."""
    taken, passed = [], 0
    for row in sorted(rows):
        passed += most
        if passed >= len(rows):
            taken.append(row)
            passed -= len(rows)
    return taken if len(rows) > most else rows


def pairs_by_hand(a: list[Row], b: list[Row], most: int) -> Counter[int]:
    """PAIRS, unit by unit: which rows WHERE can keep, which of them are joined, and what they count."""
    found: Counter[int] = Counter()
    own: dict[int, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for u, x, y in a:
        own[u][0].extend([(x, y)] if y > 1 else [])
    for u, x, y in b:
        own[u][1].extend([(x, y)] if y > 2 else [])
    for ours, theirs in own.values():
        for x, _ in evenly_spaced(ours, most):
            found[x] += sum(x < other + 3 for other, _ in evenly_spaced(theirs, most))
    return +found


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 5)), max_size=30)


@pytest.mark.slow
@settings(max_examples=60 if FULL else 20, deadline=None, derandomize=True)
@given(a=ROWS, b=ROWS, most=st.integers(1, 6))
def test_rows_that_where_can_keep_are_evenly_spaced_and_then_joined(a: list[Row], b: list[Row], most: int) -> None:
    groups = ReferenceEngine({"a": rows_of(a), "b": rows_of(b)}).run(limit_joins(exact_of(PAIRS), most))
    counted = {keys[0]: cells[0] for keys, cells in groups.items()}
    assert counted == dict(pairs_by_hand(a, b, most))


JOINED = [
    "SELECT COUNT(*), SUM(b.x) FROM a JOIN b ON a.u = b.u WHERE a.x > 3",
    "SELECT COUNT(*), SUM(b.x) FROM a LEFT JOIN b ON a.u = b.u AND b.y > 2 WHERE a.x > 3 AND COALESCE(b.x, 9) > 4",
    "SELECT COUNT(*), SUM(b.x) FROM a LEFT JOIN b ON a.u = b.u AND b.y > a.y",
    "SELECT COUNT(*), SUM(b.x) FROM a FULL JOIN b ON a.u = b.u AND a.k = b.k",
    "SELECT COUNT(*), SUM(c.y) FROM a JOIN b ON a.u = b.u AND a.k = b.k JOIN a c ON c.u = b.u WHERE c.x < a.x",
    "SELECT COUNT(*), SUM(n) FROM (SELECT a.u, a.k, COUNT(*) AS n FROM a JOIN b ON a.u = b.u GROUP BY a.u, a.k) t",
    "SELECT COUNT(*), SUM(x) FROM (SELECT a.u, b.x FROM a JOIN b ON a.u = b.u UNION ALL SELECT u, x FROM a) t",
    "SELECT COUNT(*), SUM(r) FROM (SELECT a.u, ROW_NUMBER() OVER (PARTITION BY a.u ORDER BY a.x, b.x, a.y, b.y) AS r "
    "FROM a JOIN b ON a.u = b.u) t WHERE r < 9",
]


def drawn(seed: int, most: int) -> list[Row]:
    """Rows of three units, of which none has more than `most`."""
    rng = random.Random(seed)
    return [(u, rng.randint(0, 9), rng.randint(0, 9)) for u in range(3) for _ in range(rng.randint(0, most))]


@pytest.mark.slow
@pytest.mark.parametrize("sql", JOINED)
def test_where_no_unit_has_more_rows_the_join_is_as_it_is_written(sql: str) -> None:
    tables = {"a": rows_of(drawn(1, 8)), "b": rows_of(drawn(2, 8))}
    plain = duckdb.connect()
    for name, rows in tables.items():
        plain.register(name, pa.Table.from_pylist(rows))
    node = exact_of(sql)
    for most in (8**2, MOST_JOINED):
        cells = ReferenceEngine(tables).run(limit_joins(node, most))[()]
        assert list(cells[:2]) == [int(value) for value in plain.execute(sql).fetchall()[0]]


@pytest.mark.parametrize("sql", JOINED)
@pytest.mark.parametrize("most", [2, 4])
def test_what_is_joined_of_a_unit_does_not_depend_on_others(sql: str, most: int) -> None:
    tables = {"a": drawn(3, 12), "b": drawn(4, 12)}
    node = limit_joins(exact_of(sql), most)

    def count(*units: int) -> Any:
        some = {name: rows_of([row for row in rows if row[0] in units]) for name, rows in tables.items()}
        return ReferenceEngine(some).run(node)[()][0]

    assert count(0, 1, 2) == count(0) + count(1) + count(2) > 0


def test_nothing_is_changed_where_rows_are_found_once() -> None:
    node = exact_of("SELECT COUNT(*) FROM a JOIN (SELECT u, SUM(x) AS s FROM b GROUP BY u) t ON t.u = a.u WHERE s > 3")
    assert limit_joins(node) is node


@cache
def make_large_unit() -> pa.Table:
    return pa.Table.from_pylist(rows_of([(1, place % 90, place % 7) for place in range(30_000)] + [(2, 5, 5)]))


@pytest.mark.slow
@pytest.mark.parametrize("joins", some([1, 3, 6], 2))
def test_a_unit_with_very_many_rows_is_joined_in_bounded_work(joins: int) -> None:
    """A unit with 30,000 rows would make 9e8 pairs in one join, and 2e31 in six: more than there is time for."""
    table = make_large_unit()
    more = " ".join(f"JOIN b AS b{n} ON b{n}.u = a.u" for n in range(joins))
    engine = DuckDBEngine(table_schemas(POLICY), None, {"a": table, "b": table})
    try:
        (cells,) = engine.run(exact_of(f"SELECT COUNT(*) FROM a {more}")).values()
    finally:
        engine.close()
    assert cells[0] > 1


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["", "a.k", "a.t"])
@pytest.mark.parametrize("others", [[], [(2, 5, 5)]])
def test_caps_that_multiply_beyond_any_integer_fail_for_no_row(keys: str, others: list[Row]) -> None:
    """Caps of 9,999 rows in 18 tables are 10^72 rows: a loop or a statement that cannot take that would fail."""
    joined = " ".join(f"JOIN b AS b{n} ON b{n}.u = a.u" for n in range(17))
    grouped = f"{keys}, " if keys else ""
    node = exact_of(f"SELECT {grouped}COUNT(*), SUM(a.x) FROM a {joined}" + (f" GROUP BY {keys}" if keys else ""))
    assert node.keep.most < 2**31
    tables = {"a": rows_of(others), "b": rows_of(others)}
    frames = {
        name: pa.Table.from_pylist([*rows, *rows_of([(0, 0, 0)])]).slice(0, len(rows)) for name, rows in tables.items()
    }
    engine = DuckDBEngine(table_schemas(POLICY), None, frames)
    try:
        assert engine.run(node) == engine._compute_in_sql(limit_joins(node)) == ReferenceEngine(tables).run(node)
    finally:
        engine.close()


LOOKED_UP = [
    "SELECT COUNT(*) FROM c WHERE EXISTS (SELECT 1 FROM b WHERE b.u = c.u AND b.x = c.x)",
    "SELECT COUNT(*) FROM (SELECT u, (SELECT MAX(b.y) FROM b WHERE b.u = a.u AND b.x = a.x) AS m FROM a) AS q "
    "WHERE EXISTS (SELECT 1 FROM b WHERE b.u = q.u AND b.y = q.m)",
]


@pytest.mark.slow
@pytest.mark.parametrize("sql", LOOKED_UP)
def test_rows_of_one_unit_are_looked_up_one_by_one(sql: str) -> None:
    """With joins in another order than written, 30,000 rows of one unit would be matched with 30,000 others."""
    size, others = 30_000, 20_000
    unit = [*range(10, 10 + others), *[1] * size]
    wide = {"type": "int", "lower": 0, "upper": 100_000}
    own = {"unit": "u", "people": "us", **caps(2, 12), "columns": {"x": wide, "y": wide}}
    through = {"unit": {"through": "a_id", "to": "a.id"}, **caps(2, 12), "columns": {"x": wide}}
    policy = load(policy_of({"a": own, "b": own, "c": through}))
    values = [*(number % 100 for number in range(others)), *range(size)]
    table = pa.table({"id": range(len(unit)), "u": unit, "x": values, "y": values})
    child = pa.table({"a_id": range(len(unit)), "x": [number % 100 for number in range(len(unit))]})
    engine = DuckDBEngine(table_schemas(policy), None, {"a": table, "b": table, "c": child})
    try:
        (member,) = plan_question(read_question(sql), policy, 1).members
        (cells,) = engine.run(member.exact).values()
    finally:
        engine.close()
    assert cells[0] > others // 2


@cache
def count_in_reference(sql: str) -> Any:
    """The count over 1,500 rows of a unit in one table and 2 in the other."""
    rows = [(1, place % 90, place % 7) for place in range(1_500)]
    tables = {"a": rows_of(rows), "b": rows_of([(1, 5, 5)] * 2)}
    return ReferenceEngine(tables).run(replace(exact_of(sql), keep=ContributionBounds(1, 10**6)))[()][0]


@pytest.mark.slow
@pytest.mark.parametrize("text", some(["a.t || b.t", "REPLACE(a.t, '1', 'long')", "LPAD(a.t, 9, 'x')"], 2))
def test_fewer_rows_are_matched_where_texts_are_put_together(text: str) -> None:
    joined, count = "FROM a JOIN b ON a.u = b.u", count_in_reference
    assert count(f"SELECT COUNT({text}) {joined}") == count(f"SELECT COUNT(*) {joined} WHERE {text} <> ''") == 100 * 2
    assert count(f"SELECT COUNT(*) {joined} WHERE a.t <> ''") == 1_000 * 2
