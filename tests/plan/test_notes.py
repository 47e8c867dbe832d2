"""Notes on constants: what the policy alone shows of a question, before it is paid for."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.aggregates.registry import read_question as parse
from tacit.plan.bind_question import plan_for
from tacit.plan.explain import explain
from tacit.plan.plan import Plan
from tacit.policy.load import load
from tacit.policy.model import Policy

MakePlan = Callable[..., Plan]
WARDS = "there are 'A', 'B', 'C'."
BORN = "1920-01-01 to 2024-12-31"
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


def notes(sql: str, plan: MakePlan) -> list[str]:
    """All notes on constants: those before what every answer says, without those on keys."""
    question = sql if sql.startswith("SELECT") else f"SELECT COUNT(*) FROM visits WHERE {sql}"
    return [note for note in plan(question).recipe.notes[:-2] if "in no group" not in note]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ward = 'a'", "No declared ward is 'a'; did you mean 'A'?"),
        ("ward = 'A '", "No declared ward is 'A '; did you mean 'A'?"),
        ("'Dentist' = ward", f"No declared ward is 'Dentist'; {WARDS}"),
        ("ward <> 'Dentist'", f"No declared ward is 'Dentist'; {WARDS}"),
        ("ward::text IN ('A', 'Dentist') OR ward = 'A'", f"No declared ward is 'Dentist'; {WARDS}"),
        ("ward LIKE 'a%'", f"No declared ward is like 'a%'; {WARDS}"),
        ("room = 500", "No declared room is 500; there are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 190 more."),
        ("payer = 'Public'", "No declared payer is 'Public'; did you mean 'public'?"),
        ("age > 200", "age > 200 is true of no row: age is declared from 0 to 110."),
        ("age > 110", "age > 110 is true of no row: age is declared from 0 to 110."),
        ("200 < age", "age > 200 is true of no row: age is declared from 0 to 110."),
        ("age BETWEEN 200 AND 300", "age >= 200 is true of no row: age is declared from 0 to 110."),
        ("age IN (-1, 200)", "age IN (-1, 200) is true of no row: age is declared from 0 to 110."),
        ("cost > 5000.5", "cost > 5000.5 is true of no row: cost is declared from 0 to 5000."),
        ("stay = 31", "stay = 31 is true of no row: stay is declared from 0 to 30."),
        ("born < '1900-01-01'", f"born < 1900-01-01 is true of no row: born is declared from {BORN}."),
        ("SELECT COUNT(*) FILTER (WHERE ward = 'a') FROM visits", "No declared ward is 'a'; did you mean 'A'?"),
        ("SELECT SUM(CASE ward WHEN 'a' THEN 1 END) FROM visits", "No declared ward is 'a'; did you mean 'A'?"),
        (
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING ward = 'a'",
            "No declared ward is 'a'; did you mean 'A'?",
        ),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits WHERE ward = 'a')", "No declared ward is 'a'; did you mean 'A'?"),
        (
            "SELECT COUNT(*) FROM (SELECT ward AS w FROM visits) WHERE w = 'a'",
            "No declared ward is 'a'; did you mean 'A'?",
        ),
        (
            "SELECT COUNT(*) FROM visits JOIN wards USING (ward) WHERE floor > 9",
            "floor > 9 is true of no row: floor is declared from 1 to 9.",
        ),
    ],
)
def test_a_constant_that_is_not_declared_is_noted(sql: str, said: str, plan: MakePlan) -> None:
    assert notes(sql, plan) == [said]


@pytest.mark.parametrize(
    "sql",
    [
        "ward = 'A' AND ward IN ('B', 'C') AND ward LIKE 'A%'",
        "age > 109 AND age >= 110 AND age < 1 AND age <= 0 AND age <> 200",
        "age IN (3, 200)",  # one of them may be
        "payer = 'cash'",  # values that are not declared are expected
        "diagnosis = 'x' AND diagnosis LIKE 'y'",
        "prior > 1000000 AND visited > '9000-01-01' AND pulse > 1e9",  # no bounds
        "smoker = FALSE",
        "born = '2024-12-31'",
        "SELECT ward, COUNT(*) AS age FROM visits GROUP BY ward HAVING age > 200",  # the count, and not the column
    ],
)
def test_a_constant_that_may_occur_is_not_noted(sql: str, plan: MakePlan) -> None:
    assert notes(sql, plan) == []


def test_a_list_of_constants_has_few_notes(plan: MakePlan) -> None:
    listed = ", ".join(f"'x{number}'" for number in range(900))
    assert notes(f"ward IN ({listed})", plan) == [f"No declared ward is 'x{number}'; {WARDS}" for number in range(5)]


def test_a_long_question_is_looked_at_in_part(plan: MakePlan) -> None:
    declared = " OR ".join(["ward = 'A'"] * 99)
    assert notes(f"{declared} OR ward = 'x'", plan) == [f"No declared ward is 'x'; {WARDS}"]
    assert notes(f"ward = 'A' OR {declared} OR ward = 'x'", plan) == []


def test_a_note_cannot_move_the_cursor_of_who_reads_it(plan: MakePlan) -> None:
    # \x1b[2J empties a terminal
    assert all(note.isprintable() for note in notes("ward = '\x1b[2J' OR ward LIKE '\x1b[2J'", plan))


def test_explaining_says_it_too_and_the_price_is_the_same(policy: Policy) -> None:
    made = plan_for(parse("SELECT COUNT(*) FROM visits WHERE ward = 'a'"), policy, 0.5)
    assert made.epsilon_delta == (0.5, 0)
    assert "  No declared ward is 'a'; did you mean 'A'?" in str(explain(made, policy, 0.95)).splitlines()


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(
    low=st.integers(-20, 20),
    width=st.integers(1, 20),
    sign=st.sampled_from(sorted(SIGNS)),
    constant=st.integers(-60, 60),
    halves=st.booleans(),
)
def test_a_condition_is_said_to_be_true_of_no_row_just_where_it_is(
    low: int, width: int, sign: str, constant: int, halves: bool
) -> None:
    # A column is read within its bounds, so a row has one of these values, or NULL, which meets no condition.
    column = {"type": "float" if halves else "int", "lower": low, "upper": low + width}
    policy = load({
        "privacy": {"epsilon": 1},
        "tables": {"t": {"unit": "row", "columns": {"x": column}}},
        "analysts": {"ada": {"epsilon": 1}},
    })  # fmt: skip
    scale = 2 if halves else 1
    values = [number / scale for number in range(scale * low, scale * (low + width) + 1)]
    written = f"{constant / 2}" if halves else f"{constant}"
    met = any(SIGNS[sign](value, float(written)) for value in values)
    found = plan_for(parse(f"SELECT COUNT(*) FROM t WHERE x {sign} {written}"), policy, 0.5).recipe.notes
    assert any("is true of no row" in note for note in found) is not met
