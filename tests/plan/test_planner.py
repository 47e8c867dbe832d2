"""From a question to its plan, the same for everyone."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.aggregates.registry import read_question
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.plan.accuracy import plan_within
from tacit.plan.bind_question import plan_for
from tacit.plan.planner import KEY_VERSION, Planner, make_plans
from tacit.plan.question import Question

COUNT = "SELECT COUNT(*) AS n FROM visits"
FIXTURES = Path(__file__).parent / "fixtures"
USUAL = Fraction(95, 100)


@pytest.mark.parametrize("wrong", [{}, {"epsilon": 0.5, "within": {"n": 50}}], ids=["neither", "both"])
def test_a_question_names_an_epsilon_or_an_accuracy(wrong):
    with pytest.raises(ParameterError, match="either epsilon or within"):
        Question(COUNT, **wrong)


@pytest.mark.parametrize("confidence", [0, 0.001, 1, 2, -1, "high", None, True, float("nan")])
def test_a_confidence_that_is_none_is_an_error(policy, confidence):
    with pytest.raises(ParameterError, match="confidence"):
        Question(COUNT, epsilon=1, confidence=confidence).level  # noqa: B018 - it raises
    with pytest.raises(ParameterError, match="confidence"):
        Planner(policy).plan(Question(COUNT, within={"n": 50}, confidence=confidence))


def test_a_plan_is_the_one_that_the_question_asks_for(policy):
    planner, query = Planner(policy), read_question(COUNT)
    assert planner.plan(Question(COUNT, epsilon=0.25)) == plan_for(query, policy, 0.25)
    assert planner.plan(Question(COUNT, within={"n": 50})) == plan_within(query, policy, {"n": 50}, USUAL)


def test_a_plan_made_before_serves_again_and_is_the_one_that_would_be_made(policy):
    planner = Planner(policy)
    for given in ({"epsilon": 0.5}, {"epsilon": Fraction(1, 2)}, {"epsilon": 1}, {"within": {"n": 9}}):
        question = Question(COUNT, **given)
        made = planner.plan(question)
        assert made == make_plans(question, policy).plan
        assert planner.plan(Question(COUNT, **given)) is made
    with pytest.raises(ParameterError):  # True equals 1, and is no epsilon
        planner.plan(Question(COUNT, epsilon=True))
    with pytest.raises(ParameterError):
        planner.plan(Question(COUNT, within={"n": [9]}))


@pytest.mark.slow
def test_plans_are_forgotten_when_there_are_many(policy):
    planner = Planner(policy)
    for number in range(520):
        planner.plan(Question(COUNT, epsilon=1 + number / 1000))
    assert len(planner._kept) == 500


def test_a_question_that_a_ledger_knows_from_before_stays_that_question(policy):
    question = Question(COUNT, epsilon=1 / 3)
    plan, (former,) = make_plans(question, policy)
    assert former.key != plan.key
    known = {former.key}
    planner = Planner(policy, knows_only=lambda one, other: one in known and other not in known)
    assert planner.plan(question) == former
    known.add(plan.key)  # asked anew meanwhile: what a plan is depends on the ledger of now
    assert planner.plan(question) == plan


def test_where_no_ledger_knows_questions_from_before_their_former_plans_are_not_made(policy):
    made = []

    def make(*arguments):
        made.append(make_plans(*arguments))
        return made[-1]

    question = Question(COUNT, epsilon=1 / 3)
    Planner(policy, make=make).plan(question)
    Planner(policy, make=make, knows_only=lambda one, other: False).plan(question)
    assert [len(plans.former) for plans in made] == [0, 1]
    assert made[0].plan == made[1].plan


@pytest.mark.slow
def test_the_keys_of_questions_are_those_of_the_version(policy, policy_with_delta):
    """Where one changes, raise KEY_VERSION, plan it as before in `_make_former`, and run this with TACIT_WRITE=1."""
    keys = {}
    for file in sorted(FIXTURES.rglob("*.sql")):
        sql, _, _ = file.read_text(encoding="utf-8").partition("\n---\n")
        known = policy_with_delta if file.parent.name == "with_delta" else policy
        keys[file.relative_to(FIXTURES).as_posix()] = make_plans(Question(sql, epsilon=0.5), known).plan.key
    recorded = FIXTURES / "keys.json"
    now = {"version": KEY_VERSION, "keys": keys}
    if os.environ.get("TACIT_WRITE") == "1":
        recorded.write_text(f"{json.dumps(now, indent=1)}\n", encoding="utf-8")
    before = json.loads(recorded.read_text(encoding="utf-8"))
    assert before["keys"].items() <= keys.items() and before["version"] == KEY_VERSION


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("functions_of_rows.sql", "25c8b59dc5922807262397d164bc1e32d48b06f94df0267ada62b05dd4107762"),
        ("sum_without_step.sql", "6ca1efb279b87ba6dbfbf4a9a77c341737aa264d5afee701c15ae9d3d112605a"),
        ("unit_through_a_visit.sql", "62529964152ac2949d8f648ff0d7738531f808a2c3cfa89583cc7a8f14117790"),
    ],
)
def test_questions_about_floats_keep_the_keys_that_they_had(policy, file, key):
    """Of version 1, which rounded floats without a grid to a millionth of their bounds."""
    sql, _, _ = (FIXTURES / file).read_text(encoding="utf-8").partition("\n---\n")
    question = Question(sql, epsilon=0.5)
    plan, former = make_plans(question, policy)
    assert key in {each.key for each in former} and plan.key != key
    assert Planner(policy, knows_only=lambda one, _: one == key).plan(question).key == key


def test_a_question_of_too_many_values_is_refused(policy):
    sums = ", ".join(f"COUNT(*) AS n{number}" for number in range(11))
    with pytest.raises(Refused, match=r"11 cells.*10") as caught:
        Planner(policy, most_cells=10).plan(Question(f"SELECT {sums} FROM visits", epsilon=1))
    assert caught.value.code is ErrorCode.TOO_LARGE and caught.value.fix
