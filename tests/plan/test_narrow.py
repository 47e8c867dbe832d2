"""Public keys that WHERE leaves: none that a row could have is left out."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.support.counts import examples

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.plan.plan import Plan
from tacit.plan.planner import Planner, make_plans
from tacit.plan.question import Question

MakePlan = Callable[..., Plan]


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


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
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


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'old' END", ("minor", "adult", "old")),
        ("CASE WHEN age < 18 THEN 'minor' END", ("minor",)),
        ("COALESCE(ward, 'none')", ("A", "B", "C", "none")),
        ("LOWER(ward)", ("a", "b", "c")),
        ("ward || '!'", ("A!", "B!", "C!")),
        ("CASE WHEN ward IN ('A', 'B') THEN 'west' ELSE 'east' END", ("west", "east")),
        ("CASE WHEN age < 18 THEN 'minor' ELSE ward END", ("minor", "A", "B", "C")),
    ],
)
def test_keys_follow_from_declared_values_and_constants(plan: MakePlan, key: str, values: tuple[str, ...]) -> None:
    made = plan(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY k")
    assert made.recipe.keys[0].values == values
    assert made.delta == 0


def test_where_narrows_the_keys_of_an_expression(plan: MakePlan) -> None:
    made = plan("SELECT LOWER(ward) AS k, COUNT(*) FROM visits WHERE ward IN ('A', 'C') GROUP BY k")
    assert made.recipe.keys[0].values == ("a", "c")


def test_keys_of_what_is_not_declared_are_private(plan: MakePlan) -> None:
    for key in ("CASE WHEN age < 18 THEN 'minor' ELSE CONCAT(ward, age) END", "CONCAT(ward, sex)"):
        assert plan(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY k", delta=1e-6).recipe.keys[0].values is None


def test_an_answer_says_which_rows_are_in_no_group(plan: MakePlan) -> None:
    def said(sql: str) -> bool:
        return any("in no group" in note for note in plan(sql).recipe.notes)

    assert said("SELECT ward, COUNT(*) FROM visits GROUP BY ward")
    assert not said("SELECT COALESCE(ward, 'none') AS w, COUNT(*) FROM visits GROUP BY w")
    assert not said("SELECT ward, COUNT(*) FROM visits WHERE ward IS NOT NULL GROUP BY ward")
    assert not said("SELECT ward, COUNT(*) FROM visits WHERE ward IN ('A', 'B') GROUP BY ward")
    assert said("SELECT ward, COUNT(*) FROM visits WHERE ward IN ('A', 'B') OR age > 3 GROUP BY ward")


def test_where_bounds_what_the_policy_does_not(plan: MakePlan) -> None:
    for where in ("cost >= 1", "cost > 1 AND age < 9", "1 <= cost", "cost BETWEEN 1 AND 90.5"):
        assert plan(f"SELECT AVG(LN(cost)) FROM visits WHERE {where}").parts
    for where in ("cost >= 0", "cost >= 1 OR age > 3", "cost <> 1", "age >= 1"):
        with pytest.raises(Refused) as caught:
            plan(f"SELECT AVG(LN(cost)) FROM visits WHERE {where}")
        assert caught.value.code is ErrorCode.UNBOUNDED
