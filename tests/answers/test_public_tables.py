"""Rows of public tables in answers: as plain DuckDB has them, at no cost, and never a row of a private table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.collection.compare import difference
from tests.support.bits import Ones
from tests.support.policies import policy_of

from tacit.accounting.filters import BudgetCharge
from tacit.analyst import Analyst
from tacit.answers.columns import IntervalKind
from tacit.curator.ask import read_public
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.query.nodes import scanned_tables

DAY = datetime.date(2025, 1, 1)
TABLES: dict[str, list[dict[str, Any]]] = {
    "visits": [
        {"visit": i, "person": i % 40, "ward": "ABCZ"[i * i % 7 % 4], "cost": i * 7 % 30, "day": i * 5 % 11 % 6}
        for i in range(80)
    ],
    "wards": [
        {"ward": "A", "beds": 30, "region": "north", "share": 0.25, "opened": DAY},
        {"ward": "B", "beds": 12, "region": "north", "share": 0.5, "opened": None},
        {"ward": "C", "beds": 12, "region": "south", "share": None, "opened": DAY + datetime.timedelta(9)},
        {"ward": "D", "beds": 45, "region": None, "share": 0.125, "opened": DAY},
    ],
    "regions": [{"region": "north", "people": 90}, {"region": "south", "people": 40}, {"region": "west", "people": 7}],
    "rooms": [{"room": i, "ward": "ABD"[i % 3], "size": i * 3 % 5} for i in range(12)],
}
POLICY = load(
    policy_of(
        {
            "visits": {
                "unit": "person",
                "max_groups": 4,
                "max_rows_per_group": 4,
                "columns": {
                    "visit": {"type": "int"},
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                    "cost": {"type": "int", "lower": 0, "upper": 40},
                    "day": {"type": "int", "lower": 0, "upper": 5},
                },
            },
            "wards": {
                "public": True,
                "columns": {
                    "ward": {"type": "text", "unique": True},
                    "beds": {"type": "int", "lower": 0, "upper": 100},
                    "region": {"type": "text"},
                    "share": {"type": "float", "lower": 0, "upper": 1},
                    "opened": {"type": "date"},
                },
            },
            "regions": {
                "public": True,
                "columns": {"region": {"type": "text", "unique": True}, "people": {"type": "int"}},
            },
            "rooms": {
                "public": True,
                "columns": {
                    "room": {"type": "int", "unique": True},
                    "ward": {"type": "text"},
                    "size": {"type": "int", "lower": 0, "upper": 9},
                },
            },
        }
    )
)
COUNTED = "SELECT ward, COUNT(*) AS n, SUM(cost) AS c FROM visits WHERE ward IN ('A', 'B', 'C') GROUP BY ward"

PUBLIC = """
SELECT * FROM wards
SELECT ward, beds * 2 AS twice, opened FROM wards WHERE beds > 12 AND region IS NOT NULL ORDER BY beds DESC, ward
SELECT w.* FROM wards w JOIN regions r USING (region) WHERE r.people > 50
SELECT COUNT(*) AS n FROM wards
SELECT COUNT(*) AS n, SUM(beds) AS s, MIN(opened) AS o, MAX(share) AS m, COUNT(DISTINCT region) AS r FROM wards
SELECT COUNT(*) AS n, SUM(beds) AS s, AVG(beds) AS a FROM wards WHERE beds > 100
SELECT AVG(beds) AS a, SUM(share) AS s, MEDIAN(beds) AS m, STDDEV(beds) AS d FROM wards
SELECT region, COUNT(*) AS n, SUM(beds) AS s FROM wards GROUP BY region HAVING COUNT(*) > 1 ORDER BY n DESC, s
SELECT region, AVG(share) AS a FROM wards GROUP BY region
SELECT DISTINCT region FROM wards ORDER BY region
SELECT DISTINCT beds, region FROM wards
SELECT w.region, r.people, COUNT(x.room) AS n FROM wards w JOIN regions r ON r.region = w.region
 LEFT JOIN rooms x ON x.ward = w.ward GROUP BY w.region, r.people
SELECT w.ward, x.room FROM wards w, rooms x WHERE w.ward = x.ward AND x.size > 2 ORDER BY x.room
SELECT r.region, w.ward FROM regions r LEFT JOIN wards w ON w.region = r.region AND w.beds > 12
SELECT ward FROM wards WHERE ward NOT IN (SELECT ward FROM rooms WHERE size > 2)
SELECT ward FROM wards w WHERE EXISTS (SELECT 1 FROM rooms x WHERE x.ward = w.ward AND x.size = 0)
SELECT ward, beds FROM wards WHERE beds > (SELECT AVG(beds) FROM wards)
SELECT ward, RANK() OVER (ORDER BY beds DESC) AS r, SUM(beds) OVER (PARTITION BY region) AS s FROM wards
SELECT region, SUM(beds) AS b, SUM(SUM(beds)) OVER () AS t FROM wards GROUP BY region
SELECT AVG(beds) AS a FROM (SELECT beds FROM wards ORDER BY beds DESC LIMIT 2) t
SELECT region FROM wards UNION SELECT region FROM regions
SELECT region, 1 AS k FROM wards UNION ALL SELECT region, people FROM regions ORDER BY 1, 2
WITH big AS (SELECT * FROM wards WHERE beds > 20) SELECT b.ward, r.people FROM big b LEFT JOIN regions r USING (region)
SELECT CASE WHEN beds > 20 THEN 'large' ELSE 'small' END AS size, COUNT(*) AS n FROM wards GROUP BY 1
SELECT ward FROM wards ORDER BY beds, ward LIMIT 2 OFFSET 1
SELECT ward FROM wards QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY beds DESC, ward) = 1
SELECT region, ward, COUNT(*) FROM wards GROUP BY ROLLUP (region, ward)
SELECT * FROM wards WHERE ward = 'nowhere'
SELECT share, COUNT(*) AS n FROM wards GROUP BY share
SELECT MIN(region) AS a, MAX(ward) AS b FROM wards
""".strip().replace("\n ", " ").split("\n")  # fmt: skip

JOINED = """
SELECT b.ward, w.beds, b.n, b.n * 1.0 / w.beds AS per_bed FROM ({}) b JOIN wards w ON w.ward = b.ward
SELECT w.ward, b.n FROM wards w LEFT JOIN ({}) b ON b.ward = w.ward ORDER BY w.ward
SELECT w.ward, COALESCE(b.n, 0) AS n, r.people FROM ({}) b RIGHT JOIN wards w USING (ward) LEFT JOIN regions r
 USING (region)
SELECT r.region, SUM(b.n) AS n FROM ({}) b JOIN wards w USING (ward) JOIN regions r USING (region) GROUP BY r.region
SELECT w.beds, b.n FROM wards w, ({}) b WHERE b.ward = w.ward AND w.beds < 20
SELECT x.room, b.n FROM ({}) b JOIN rooms x ON x.ward = b.ward WHERE x.size > 2
SELECT ward, n FROM ({}) UNION ALL SELECT ward, beds FROM wards
SELECT ward FROM ({}) EXCEPT SELECT ward FROM wards WHERE beds > 20
SELECT COUNT(*) AS n, (SELECT SUM(beds) FROM wards) AS beds, COUNT(*) * 1.0 / (SELECT SUM(beds) FROM wards) AS q
 FROM visits
SELECT b.ward, b.n FROM ({}) b JOIN (SELECT ward, beds FROM wards ORDER BY beds DESC LIMIT 2) w ON w.ward = b.ward
""".strip().replace("\n ", " ").replace("{}", COUNTED).split("\n")  # fmt: skip


def planned(sql: str, epsilon: float = 1) -> AnyPlan:
    return make_plans(Question(sql, epsilon=epsilon), POLICY).plan


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    for name, rows in TABLES.items():
        connection.register(name, pa.Table.from_pylist(rows))
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    found = open_engine(POLICY, {name: pa.Table.from_pylist(rows) for name, rows in TABLES.items()})
    yield found
    found.close()


@pytest.fixture(scope="module")
def ada(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    """Someone who asks without noise."""
    with Ledger(tmp_path_factory.mktemp("ledger") / "x.ledger", budget_limits(POLICY)) as ledger:
        yield Curator(POLICY, engine, ledger, Ones()).analyst("ada")


def rows_of(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(cell.value for cell in row) for row in answer.cells()]


@pytest.mark.slow
@pytest.mark.parametrize("sql", PUBLIC)
def test_a_question_over_public_tables_is_exact_and_free(sql: str, ada: Analyst, plain: Any) -> None:
    before = ada.budget.own
    answer, expected = ada.ask(sql, epsilon=0.5), plain.execute(sql).fetchall()
    assert ada.budget.own == before and answer.receipt.cost == BudgetCharge.zero()
    assert len(answer) == len(expected) and difference(rows_of(answer), expected, 1e-12) == ""
    assert all(heading.bars is IntervalKind.NONE for heading in answer.headings)
    assert "Only public tables were read: the answer is exact, and costs nothing." in answer.notes


@pytest.mark.slow
@pytest.mark.parametrize("sql", JOINED)
def test_released_tables_are_joined_with_public_ones(sql: str, ada: Analyst, plain: Any) -> None:
    answer, expected = ada.ask(sql, epsilon=5), plain.execute(sql).fetchall()
    assert len(answer) == len(expected) and difference(rows_of(answer), expected, 1e-12) == ""


@pytest.mark.parametrize("sql", [*PUBLIC, *JOINED])
def test_only_public_tables_are_read_as_they_are(sql: str) -> None:
    plan = planned(sql)
    assert plan.public
    assert all(scanned_tables(read.rows) <= {"wards", "regions", "rooms"} for read in plan.public)


@pytest.mark.slow
@pytest.mark.parametrize("sql", [*PUBLIC, *JOINED])
def test_the_reference_engine_reads_the_same(sql: str, engine: Any) -> None:
    plan = planned(sql)
    assert read_public(plan, engine) == read_public(plan, ReferenceEngine(TABLES))


@pytest.mark.slow
def test_what_was_paid_for_is_joined_with_public_tables_for_nothing(ada: Analyst) -> None:
    ada.ask(COUNTED, epsilon=0.25)
    before = ada.budget.own
    joined = f"SELECT w.ward, b.n / w.beds AS q FROM ({COUNTED}) b JOIN wards w ON w.ward = b.ward"
    assert ada.ask(joined, epsilon=0.25).receipt.repeat and ada.budget.own == before
    assert planned(joined).key == planned(COUNTED).key


def test_intervals_pass_through_a_join_and_are_computed_after_it(ada: Analyst) -> None:
    sql = f"SELECT w.beds, b.n, b.n * 1.0 / w.beds AS q FROM ({COUNTED}) b JOIN wards w ON w.ward = b.ward"
    found = ada.ask(sql, epsilon=5)
    assert [h.bars for h in found.headings] == [IntervalKind.NONE, IntervalKind.EXACT, IntervalKind.APPROXIMATE]
    for beds, n, q in found.cells():
        assert n.low < n.value < n.high
        assert q.low == pytest.approx(n.low / beds.value, abs=0.5) and q.low < q.value < q.high


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM wards WHERE ward IN (SELECT ward FROM visits)",
        "SELECT ward FROM wards w WHERE EXISTS (SELECT 1 FROM visits v WHERE v.ward = w.ward)",
        "SELECT ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward) AS n FROM wards w",
        "SELECT w.ward, v.cost FROM wards w JOIN visits v ON v.ward = w.ward",
        "SELECT w.ward, v.cost FROM wards w LEFT JOIN visits v ON v.ward = w.ward",
        "SELECT ward FROM wards UNION SELECT ward FROM visits",
        "SELECT ward FROM wards UNION ALL SELECT ward FROM visits",
        "SELECT w.beds, t.cost FROM wards w JOIN (SELECT ward, cost FROM visits) t ON t.ward = w.ward",
        f"SELECT b.n, v.cost FROM ({COUNTED}) b JOIN wards w USING (ward) JOIN visits v USING (ward)",
    ],
)
def test_rows_of_a_private_table_are_never_shown(sql: str) -> None:
    with pytest.raises(Refused):
        planned(sql)


def test_too_many_rows_are_refused_before_anything_is_charged(
    ada: Analyst, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.plan.compound.MAX_PUBLIC_ROWS", 11)
    monkeypatch.setattr("tacit.plan.compound.MAX_JOINED_ROWS", 3)
    joined = f"SELECT b.n, w.beds FROM ({COUNTED}) b JOIN wards w ON w.ward = b.ward"
    for sql in ("SELECT * FROM rooms", "SELECT AVG(size) FROM rooms", joined):
        plan = planned(sql, epsilon=0.125)
        with pytest.raises(Refused) as refused:
            read_public(plan, engine)
        assert refused.value.code is ErrorCode.TOO_LARGE
    # What is filtered and counted where it is stored is not too large.
    for sql in ("SELECT COUNT(*), MAX(size), SUM(size) FROM rooms", "SELECT * FROM rooms WHERE size > 1"):
        read_public(planned(sql), engine)


def test_a_failure_to_read_says_nothing_of_its_cause(engine: Any) -> None:
    class Broken(ReferenceEngine):
        def read(self, rows: Any, most: int) -> Any:
            raise RuntimeError("the cause")

    with pytest.raises(Refused) as refused:
        read_public(planned("SELECT * FROM wards"), Broken(TABLES))
    assert refused.value.code is ErrorCode.DATA
    assert refused.value.__cause__ is None and refused.value.__context__ is None


def test_explain_says_that_it_is_free(ada: Analyst) -> None:
    said = str(ada.explain("SELECT * FROM wards", epsilon=1))
    assert "costs epsilon 0, delta 0" in said and "as many rows as public tables give" in said
