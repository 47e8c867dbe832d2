"""Questions made of several: what is released for them, and what all of it costs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.plan.bind_question import plan_for
from tacit.plan.compound_plan import CompoundPlan, plan_question
from tacit.plan.explain import explain
from tacit.plan.plan import Plan
from tacit.plan.planner import make_plans
from tacit.plan.question import Question

GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"

RANKED = "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM visits GROUP BY ward"


def compound(sql: str, policy, epsilon: float = 1) -> CompoundPlan:
    found = plan_question(parse(sql), policy, epsilon)
    assert isinstance(found, CompoundPlan)
    return found


@pytest.mark.parametrize(
    ("sql", "members"),
    [
        ("SELECT ward, COUNT(*), RANK() OVER (ORDER BY COUNT(*) DESC) FROM visits GROUP BY ward", 1),
        ("SELECT ward, SUM(COUNT(*)) OVER () FROM visits GROUP BY ward", 1),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) = 1", 1),
        ("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", 1),
        ("SELECT ward, sex, COUNT(*) FROM visits GROUP BY ROLLUP (ward, sex)", 3),
        ("SELECT ward, sex, COUNT(*) FROM visits GROUP BY CUBE (ward, sex)", 4),
        ("SELECT ward, sex, COUNT(*) FROM visits GROUP BY GROUPING SETS ((ward), (sex), (ward))", 2),
        ("SELECT ward, sex, COUNT(*) FROM visits GROUP BY ward, ROLLUP (sex)", 2),
        ("SELECT ward, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits) FROM visits GROUP BY ward", 2),
        ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits WHERE smoker", 2),
        ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits", 1),  # one release stands twice
        (f"WITH a AS ({GROUPED}), b AS ({GROUPED}) SELECT a.ward, a.n + b.n FROM a JOIN b ON a.ward = b.ward", 1),
    ],
)
def test_members_and_their_price(sql: str, members: int, policy) -> None:
    found = compound(sql, policy)
    assert len(found.members) == members
    epsilon, delta = found.epsilon_delta
    assert epsilon <= 1 and delta == 0
    assert epsilon > Fraction(99, 100)
    assert sum(member.epsilon_delta[0] for member in found.members) <= 1


def test_the_deltas_of_private_keys_share_that_of_a_question(policy_with_delta) -> None:
    sql = "SELECT diagnosis, sex, COUNT(*) FROM visits GROUP BY ROLLUP (diagnosis, sex)"
    found = compound(sql, policy_with_delta)
    assert len(found.members) == 3
    assert found.epsilon_delta[1] <= policy_with_delta.question_delta


def test_what_is_computed_from_a_paid_release_is_free(policy) -> None:
    plain = plan_for(parse(GROUPED), policy, 1)
    ranked = compound("SELECT ward, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY ward", policy)
    averaged = compound(f"SELECT AVG(n) FROM ({GROUPED})", policy)
    assert plain.key == ranked.key == averaged.key
    assert plain.loss == ranked.loss


def test_the_order_in_the_text_does_not_matter(policy) -> None:
    parts = ["SELECT COUNT(*) AS n FROM visits", "SELECT SUM(age) AS n FROM visits"]
    one, other = (compound(" UNION ALL ".join(order), policy) for order in (parts, parts[::-1]))
    assert one.key == other.key and one.recipe != other.recipe


def test_a_question_of_one_query_is_planned_as_before(policy) -> None:
    for sql in (
        GROUPED,
        f"SELECT * FROM ({GROUPED}) WHERE n > 10 ORDER BY n LIMIT 3",
        "SELECT DISTINCT ward FROM visits",
    ):
        assert isinstance(plan_question(parse(sql), policy, 1), Plan)


def test_public_keys_alone_read_no_data_and_cost_nothing(policy) -> None:
    found = plan_question(parse("SELECT DISTINCT ward, sex FROM visits"), policy, 1)
    assert isinstance(found, Plan) and not found.reads_data
    assert found.epsilon_delta == (0, 0)
    assert any("no data was read" in note for note in found.recipe.notes)


def test_private_keys_alone_are_selected(policy_with_delta) -> None:
    found = plan_question(parse("SELECT DISTINCT diagnosis FROM visits"), policy_with_delta, 1)
    assert isinstance(found, Plan) and found.reads_data and found.shown is not None


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        (
            "SELECT COUNT(*) FROM visits WHERE age = (SELECT MAX(age) FROM visits)",
            "unsupported",
            "equal to a released one",
        ),
        ("SELECT age, RANK() OVER (ORDER BY age) FROM visits", "unsupported", "over rows"),
        ("SELECT age, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY ward", "raw-column", "age would show"),
        (f"SELECT ward, n, age FROM ({RANKED})", "unknown-column", "has no column age"),
        (
            "SELECT COUNT(*) FROM visits UNION ALL SELECT ward, COUNT(*) FROM visits GROUP BY ward",
            "type",
            "numbers of columns",
        ),
        (
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward UNION ALL SELECT COUNT(*), COUNT(*) FROM visits",
            "type",
            "different types",
        ),
        (
            "SELECT COUNT(*) + (SELECT ward FROM visits GROUP BY ward) FROM visits",
            "unsupported",
            "one row and one column",
        ),
        (f"SELECT ward, LAG(n, -1) OVER (ORDER BY n) FROM ({GROUPED})", "type", "whole number of rows"),
        (f"SELECT n FROM ({GROUPED}) AS a JOIN visits ON a.ward = visits.ward", "unsupported", "released table"),
        (
            "SELECT ward, TOP_K(sex, 2), RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY ward",
            "unsupported",
            "a list of values",
        ),
        ("SELECT foo FROM wards", "unknown-column", "wards has no column foo"),
        ("SELECT foo AS ward FROM wards", "unknown-column", "wards has no column foo"),
        ("SELECT GROUPING(age), COUNT(*) FROM visits GROUP BY ROLLUP (ward)", "type", "GROUPING takes keys"),
        (
            "SELECT ward, sex, COUNT(*) FROM visits GROUP BY CUBE (ward, sex, smoker, stay, age, payer, shift)",
            "too-large",
            "grouping sets",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT ward FROM visits QUALIFY RANK() OVER (ORDER BY age) = 1)",
            "unsupported",
            "a window over rows of several units",
        ),
    ],
)
def test_refusals(sql: str, code: str, said: str, policy) -> None:
    with pytest.raises(Refused, match=said.replace("(", r"\(")) as caught:
        plan_question(parse(sql), policy, 1)
    assert caught.value.code is ErrorCode(code) and caught.value.fix


def test_no_epsilon_is_found_by_accuracy(policy) -> None:
    question = Question("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", within={"n": 5})
    with pytest.raises((Refused, ParameterError), match="made of several"):
        make_plans(question, policy)


def test_what_explain_says(policy) -> None:
    found = explain(
        compound("SELECT ward, COUNT(*) AS n, COUNT(*) * 2 AS twice FROM visits GROUP BY ROLLUP (ward)", policy),
        policy,
        0.95,
    )
    named = {column.name: column for column in found.columns}
    assert named["n"].error is not None and named["twice"].error is None
    assert found.groups == 4
    assert "made of 2 questions" in str(found) and "at no cost" in str(found)


def test_a_name_of_the_select_list_in_where_is_what_it_names(policy) -> None:
    text = "SELECT ward AS w, COUNT(*), SUM(COUNT(*)) OVER () AS every FROM visits WHERE {} <> 'A' GROUP BY {}"
    named, plain = (compound(text.format(*names), policy) for names in (("w", "w"), ("ward", "ward")))
    assert named.key == plain.key


@pytest.mark.parametrize(
    ("sql", "noted"),
    [
        ("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", True),
        ("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE ward <> 'A'", True),
        ("SELECT MIN(n), SUM(n) FROM (SELECT ward, room, COUNT(*) AS n FROM visits GROUP BY ward, room)", True),
        ("SELECT AVG(n) FROM (SELECT n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward))", True),
        ("SELECT SUM(n), MAX(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", False),
        ("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 5)", False),
        ("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > 5", False),
        ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits)", False),
    ],
)
def test_declared_keys_without_rows_in_an_average_are_noted(sql: str, noted: bool, policy) -> None:
    notes = compound(sql, policy).recipe.notes
    assert any("also those without rows" in note for note in notes) == noted
