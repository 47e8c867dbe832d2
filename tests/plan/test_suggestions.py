"""A refusal suggests no question that would be refused because of what the suggestion changes."""

from __future__ import annotations

import pytest

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.plan.suggestions import MOST_STEPS, drop_broken_suggestion
from tacit.policy.load import load

COLUMNS = {
    "status": {"type": "text", "values": ["paid", "open"]},
    "s": {"type": "text", "values": ["x", "y"]},
    "age": {"type": "int", "lower": 0, "upper": 100},
    "t": {"type": "timestamp", "lower": "2024-01-01T00:00:00", "upper": "2024-12-31T00:00:00"},
    "u": {"type": "timestamp", "lower": "2024-01-01T00:00:00", "upper": "2024-12-31T00:00:00"},
    "open": {"type": "timestamp"},
}
POLICY = load(
    {
        "privacy": {"epsilon": 10, "delta": 1e-3, "delta_per_question": 1e-6},
        "analysts": {"ada": {"epsilon": 10, "delta": 1e-3}},
        "tables": {"orders": {"unit": "row", "columns": COLUMNS}},
    }
)


def refuse(sql: str) -> Refused:
    with pytest.raises(Refused) as caught:
        make_plans(Question(sql, epsilon=1), POLICY)
    return caught.value


@pytest.mark.parametrize(
    ("sql", "suggestion"),
    [
        (
            "SELECT EXTRACT(HOUR FROM u - t) AS h, COUNT(*) AS n FROM orders GROUP BY 1",
            "SELECT DATE_DIFF('hour', t, u) AS h, COUNT(*) AS n FROM orders GROUP BY 1",
        ),
        (
            "SELECT AVG(DATE_PART('minute', u - t)) AS a FROM orders",
            "SELECT AVG(DATE_DIFF('minute', t, u)) AS a FROM orders",
        ),
        ("SELECT AVG(u - t) AS a FROM orders", "SELECT AVG(DATE_DIFF('hour', t, u)) AS a FROM orders"),
        (
            "SELECT LOWER(status) AS s, COUNT(*) AS n FROM orders GROUP BY s",
            "SELECT LOWER(status) AS s, COUNT(*) AS n FROM orders GROUP BY LOWER(status)",
        ),
        (
            "SELECT COUNT(*) AS n FROM orders WHERE status = NULL",
            "SELECT COUNT(*) AS n FROM orders WHERE status IS NULL",
        ),
        (
            "SELECT COUNT(*) AS n FROM orders WHERE NULL <> (status)",
            "SELECT COUNT(*) AS n FROM orders WHERE status IS NOT NULL",
        ),
    ],
)
def test_a_suggestion_is_answered(sql: str, suggestion: str) -> None:
    assert refuse(sql).suggestion == suggestion
    assert make_plans(Question(suggestion, epsilon=1), POLICY).plan.key


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CASE status WHEN 'paid' THEN 1 WHEN NULL THEN 2 ELSE 3 END AS c, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT COUNT(*) AS n FROM orders WHERE (status, s) = ('paid', NULL)",
        "SELECT NULLIF(status, NULL) AS x, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT HOUR(u - t) AS h, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT LOWER(status) AS x, COUNT(*) AS n FROM orders",
    ],
)
def test_a_suggestion_that_would_be_refused_is_not_made(sql: str) -> None:
    refusal = refuse(sql)
    assert refusal.suggestion is None
    assert not {"NULL", "COUNT", "DATE_DIFF", "WHEN"} & set(refusal.fix.replace("(", " ").split())


def test_the_fix_stays_where_bounds_alone_are_missing() -> None:
    refusal = refuse("SELECT AVG(t - open) AS a FROM orders")
    assert refusal.suggestion is None and "DATE_DIFF('hour', open, t)" in refusal.fix


def test_a_suggestion_stays_where_another_fault_stands_apart_from_it() -> None:
    refusal = refuse("SELECT AVG(u - t) AS a, SUM(nothing) AS b FROM orders WHERE status = NULL")
    assert refusal.suggestion is not None and "status IS NULL" in refusal.suggestion


def test_the_code_and_the_place_of_a_refusal_stay() -> None:
    refusal = refuse("SELECT LOWER(status) AS x, COUNT(*) AS n FROM orders")
    assert refusal.code is ErrorCode.RAW_COLUMN
    assert refusal.at is not None and refusal.at.written == "status"


def test_few_questions_are_bound_and_none_for_a_refusal_without_a_suggestion() -> None:
    seen: list[str] = []

    def refuse_always(sql: str) -> None:
        seen.append(sql)
        at = SourceLocation(1, 1, sql, len(sql), text=sql, start=0, end=len(sql))
        raise Refused(ErrorCode.TYPE, "wrong", at=at, suggestion=f"{sql}x")

    refusal = Refused(ErrorCode.TYPE, "wrong", fix="write bb", suggestion="bb")
    drop_broken_suggestion(refusal, "aa", refuse_always)
    assert refusal.suggestion is None and seen == ["bb", "bbx", "bbxx"] and len(seen) == MOST_STEPS
    drop_broken_suggestion(refusal, "aa", refuse_always)
    assert len(seen) == MOST_STEPS
