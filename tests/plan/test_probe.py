"""Questions without rows cost nothing, and only those that have none whatever the data holds."""

from __future__ import annotations

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.answers.post_process import answer_columns
from tacit.errors import Refused
from tacit.plan.compound_plan import CompoundPlan, plan_question
from tacit.query.types import Type


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT age, cost, visited FROM visits LIMIT 0", [Type.INT, Type.FLOAT, Type.DATE]),
        ("SELECT age + 1, ward FROM visits WHERE 1 = 0", [Type.INT, Type.TEXT]),
        ("SELECT ward FROM visits WHERE age > 3 AND FALSE", [Type.TEXT]),
        ("SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward LIMIT 0", [Type.TEXT, Type.INT, Type.FLOAT]),
        ("SELECT * FROM labs LIMIT 0", [Type.TEXT, Type.FLOAT, Type.INT]),  # without the unit, which is not listed
    ],
)
def test_a_question_without_rows_releases_nothing(sql: str, columns: list[Type], policy) -> None:
    plan = plan_question(parse(sql), policy, 1)
    assert isinstance(plan, CompoundPlan) and plan.members == ()
    assert plan.epsilon_delta == (0, 0) and not plan.tables
    assert [column.type for column in answer_columns(plan.recipe)] == columns


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) FROM visits WHERE 1 = 0", "SELECT COUNT(*) FROM visits WHERE age > 200"]
)
def test_a_question_that_may_have_rows_is_paid(sql: str, policy) -> None:
    assert plan_question(parse(sql), policy, 1).epsilon_delta[0] == 1


@pytest.mark.parametrize("sql", ["SELECT * FROM visits LIMIT 1", "SELECT age FROM visits WHERE age > 200"])
def test_rows_stay_refused(sql: str, policy) -> None:
    with pytest.raises(Refused):
        plan_question(parse(sql), policy, 1)
