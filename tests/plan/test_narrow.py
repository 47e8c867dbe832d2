"""Public keys that WHERE leaves: none that a row could have is left out."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tacit.aggregates.registry import read_question as parse
from tacit.plan.plan import plan_for
from tacit.plan.planner import Planner, make_plans
from tacit.plan.question import Question


def keys(sql: str, policy) -> list:
    (key,) = plan_for(parse(sql), policy, 1).exact.keys
    return None if key.values is None else list(key.values)


@pytest.mark.parametrize(
    ("key", "where", "left"),
    [
        ("ward", "ward = 'A'", ["A"]),
        ("ward", "ward IN ('A', 'B') AND age > 3", ["A", "B"]),
        ("ward", "ward <> 'A'", ["B", "C"]),
        ("ward", "ward LIKE 'A%'", ["A"]),
        ("ward", "ward = 'A' OR age > 3", ["A", "B", "C"]),  # it is no condition on the key alone
        ("ward", "age > 3", ["A", "B", "C"]),
        ("ward", "ward = 'Z'", ["A", "B", "C"]),  # nothing is left: all are shown, with noise around zero
        ("payer", "payer = 'public'", ["public"]),
        ("payer", "payer <> 'public'", ["private", "Other"]),
        ("payer", "payer = 'unheard of'", ["public", "private", "Other"]),
        ("stay", "stay BETWEEN 3 AND 5", [3, 4, 5]),
        ("stay", "3 < stay AND stay < 5", [4]),
        ("stay", "stay IN (2, 9)", [2, 9]),
        ("FLOOR(age / 10)", "age >= 65", [6, 7, 8, 9, 10, 11]),
        (
            "born",
            "born >= DATE '1990-03-01' AND born < DATE '1990-03-04'",
            [datetime.date(1990, 3, day) for day in (1, 2, 3)],
        ),
        ("DATE_TRUNC('month', born)", "YEAR(born) = 1990", [datetime.date(1990, month, 1) for month in range(1, 13)]),
        ("MONTH(born)", "born BETWEEN '1990-03-01' AND '1990-05-31'", [3, 4, 5]),
    ],
)
def test_where_leaves(key: str, where: str, left: list, policy) -> None:
    assert keys(f"SELECT {key}, COUNT(*) FROM visits WHERE {where} GROUP BY {key}", policy) == left


@settings(max_examples=200, deadline=None)
@given(low=some.integers(-3, 35), high=some.integers(-3, 35), unequal=some.integers(0, 30), tens=some.booleans())
def test_no_key_that_a_row_may_have_is_left_out(low: int, high: int, unequal: int, tens: bool, policy) -> None:
    key = "FLOOR(stay / 10)" if tens else "stay"
    where = f"stay > {low} AND stay <= {high} AND stay <> {unequal}"
    there = {stay for stay in range(31) if low < stay <= high and stay != unequal}
    found = keys(f"SELECT {key}, COUNT(*) FROM visits WHERE {where} GROUP BY {key}", policy)
    assert {stay // 10 if tens else stay for stay in there} <= set(found)
    if there and not tens:
        assert set(found) == there


def test_a_question_that_was_asked_with_all_keys_stays_that_question(policy) -> None:
    question = Question("SELECT ward, COUNT(*) AS n FROM visits WHERE ward = 'A' GROUP BY ward", epsilon=1)
    plan, (former,) = make_plans(question, policy)
    assert plan.recipe.groups == 1 and former.recipe.groups == 3
    known = {former.key}
    planner = Planner(policy, knows_only=lambda one, other: one in known and other not in known)
    assert planner.plan(question) == former
    known.add(plan.key)
    assert planner.plan(question) == plan
