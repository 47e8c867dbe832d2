"""What is known of a column that holds the values of several: none of them may be left without a group."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from tacit.aggregates.registry import read_question
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import Refused
from tacit.plan.bind_question import plan_for
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load

DAYS = [datetime.date(2025, 1, 1), datetime.date(2025, 1, 15), datetime.date(2025, 2, 1)]
COLUMNS: dict[str, Any] = {
    "n": {"type": "int", "lower": 0, "upper": 3},
    "day": {"type": "date", "lower": "2025-01-01", "upper": "2025-03-31"},
    "note": {"type": "text"},
    "ward": {"type": "text", "values": ["A", "B"], "other": "rest"},
    "side": {"type": "text", "values": ["A", "B"]},
}
CAPS = {"unit": "who", "people": "all", "max_groups": 30, "max_rows_per_group": 30}
POLICY = load(
    {
        "privacy": {"epsilon": 10, "delta": 1e-3, "delta_per_question": 1e-6},
        "tables": {
            "a": {**CAPS, "columns": COLUMNS},
            "b": {**CAPS, "columns": COLUMNS},
            "orders": {**CAPS, "columns": {"id": {"type": "int", "lower": 0, "upper": 5}, "n": COLUMNS["n"]}},
            "lines": {
                "unit": {"through": "id", "to": "orders.id"},
                "max_groups": 30,
                "max_rows_per_group": 30,
                "columns": {"n": COLUMNS["n"]},
            },
        },
        "analysts": {"ada": {"epsilon": 5}},
    }
)


def rows_of(units: list[int]) -> list[dict[str, Any]]:
    values = zip(units, DAYS, ["x", "1", "y"], ["A", "zz", "B"], strict=True)
    return [{"who": who, "n": 1, "day": day, "note": note, "ward": w, "side": "A"} for who, day, note, w in values]


DATA: dict[str, list[dict[str, Any]]] = {
    "a": rows_of([1, 2, 3]),
    "b": rows_of([4, 5, 6]),
    "orders": [{"who": who, "id": number, "n": 1} for who, number in ((1, 1), (2, 2), (3, 77))],
    "lines": [{"id": number, "n": 1} for number in (1, 1, 77)],
}


def count_in_groups(text: str) -> dict[tuple[Any, ...], int]:
    """The rows of each group that an answer shows, by both engines."""
    plan = plan_for(read_question(text), POLICY, 1)
    frames = {name: pa.Table.from_pylist(rows) for name, rows in DATA.items()}
    shown = []
    for engine in (DuckDBEngine(table_schemas(POLICY), frames=frames), ReferenceEngine(DATA)):
        found = engine.run(plan.exact)
        listed = [key.values for key in plan.exact.keys]
        shown.append(
            {
                group: cells[0]
                for group, cells in found.items()
                if all(values is None or key in values for key, values in zip(group, listed, strict=True))
            }
        )
    assert shown[0] == shown[1]
    return shown[0]


BOTH = "(SELECT who, {} AS k FROM a) AS x FULL JOIN (SELECT who, {} AS k FROM b) AS y USING (who, k)"


@pytest.mark.parametrize(
    ("source", "groups"),
    [
        (BOTH.format("day", "day"), {DAYS[0]: 2, DAYS[1]: 2, DAYS[2]: 2}),
        (BOTH.format("DATE_TRUNC('month', day)", "day"), {DAYS[0]: 3, DAYS[1]: 1, DAYS[2]: 2}),
        (BOTH.format("day", "DATE_TRUNC('month', day)"), {DAYS[0]: 3, DAYS[1]: 1, DAYS[2]: 2}),
        (BOTH.format("LAST_DAY(day)", "day"), {datetime.date(2025, 1, 31): 2, datetime.date(2025, 2, 28): 1,
                                              DAYS[0]: 1, DAYS[1]: 1, DAYS[2]: 1}),
        (BOTH.format("CAST(n AS TEXT)", "note"), {"1": 4, "x": 1, "y": 1}),
        (BOTH.format("CAST(n AS TEXT)", "CAST(n AS TEXT)"), {"1": 6}),
        (BOTH.format("ward", "ward"), {"A": 2, "B": 2, "rest": 2}),
        (BOTH.format("ward", "side"), {"A": 4, "B": 1, "rest": 1}),
        ("(SELECT who, ward AS k FROM a UNION ALL SELECT who, ward FROM b) AS z", {"A": 2, "B": 2, "rest": 2}),
        ("(SELECT who, ward AS k FROM a UNION SELECT who, ward FROM b) AS z", {"A": 2, "B": 2, "rest": 2}),
        ("(SELECT who, ward AS k FROM a UNION ALL SELECT who, side FROM b) AS z", {"A": 4, "B": 1, "rest": 1}),
        ("(SELECT who, ward AS k FROM a EXCEPT SELECT who, ward FROM b) AS z", {"A": 1, "B": 1, "rest": 1}),
    ],
)  # fmt: skip
def test_every_value_has_its_group(source, groups):
    assert count_in_groups(f"SELECT k, COUNT(*) FROM {source} GROUP BY k") == {(k,): n for k, n in groups.items()}


@pytest.mark.parametrize("join", ["orders FULL JOIN lines USING (id)", "lines FULL JOIN orders USING (id)"])
def test_a_key_that_one_side_alone_lists_joins_both(join):
    assert count_in_groups(f"SELECT COUNT(*) FROM {join}") == {(): 4}


@pytest.mark.parametrize("use", ["SUM(id)", "COUNT(DISTINCT COALESCE(id, 1))"])
def test_a_key_that_one_side_alone_lists_is_not_computed_with(use):
    with pytest.raises(Refused):
        plan_for(read_question(f"SELECT {use} FROM orders FULL JOIN lines USING (id)"), POLICY, 1)


COMPUTED = "COALESCE(u, 1) * 1000000000000000000 > 5"
LEFT = "a AS x LEFT JOIN b AS y ON x.who = y.who"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM (SELECT y.who AS u, x.n AS n FROM {LEFT} WHERE u IS NULL OR {COMPUTED}) AS z",
        f"SELECT COUNT(*) FROM (SELECT who AS u, COUNT(*) AS c FROM a GROUP BY who, CASE WHEN {COMPUTED} THEN u END)"
        " AS z",
        f"SELECT COUNT(*), COUNT(DISTINCT CASE WHEN {COMPUTED} THEN u END)"
        " FROM (SELECT CASE WHEN n = 1 THEN who END AS u FROM a) AS z",
        f"SELECT COUNT(*) FROM (SELECT y.who AS u, x.n AS n FROM {LEFT} QUALIFY (u IS NULL OR {COMPUTED})"
        " AND ROW_NUMBER() OVER (PARTITION BY x.who ORDER BY x.n) = 1) AS z",
    ],
)
def test_an_alias_of_a_unit_is_not_computed_with_because_it_is_tested_beside(text):
    # An alias stands for one object in several places, of which CASE and IS NULL may name a unit in theirs alone.
    with pytest.raises(Refused):
        plan_for(read_question(text), POLICY, 1)


def test_an_output_that_is_named_like_a_missing_column_is_refused():
    with pytest.raises(Refused):
        make_plans(Question("SELECT COUNT(y) AS y FROM (SELECT n AS x FROM a) AS z", epsilon=1), POLICY)
