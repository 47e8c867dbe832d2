"""Questions without rows cost nothing, and only those that have none whatever the data holds."""

from __future__ import annotations

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.answers.post_process import answer_columns
from tacit.errors import Refused
from tacit.plan.compound_plan import CompoundPlan, plan_question
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.query.types import Type


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT age, cost, visited FROM visits LIMIT 0", [Type.INT, Type.FLOAT, Type.DATE]),
        ("SELECT age + 1, ward FROM visits WHERE 1 = 0", [Type.INT, Type.TEXT]),
        ("SELECT ward FROM visits WHERE age > 3 AND FALSE", [Type.TEXT]),
        ("SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward LIMIT 0", [Type.TEXT, Type.INT, Type.FLOAT]),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3 AND 1 = 2", [Type.TEXT, Type.INT]),
        ("SELECT COUNT(*) AS n FROM visits HAVING 1 = 0", [Type.INT]),
        ("SELECT * FROM labs LIMIT 0", [Type.TEXT, Type.FLOAT, Type.INT]),  # without the unit, which is not listed
    ],
)
def test_a_question_without_rows_releases_nothing(sql: str, columns: list[Type], policy) -> None:
    plan = plan_question(parse(sql), policy, 1)
    assert isinstance(plan, CompoundPlan) and plan.members == ()
    assert plan.epsilon_delta == (0, 0) and not plan.tables
    assert [column.type for column in answer_columns(plan.recipe)] == columns


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits WHERE 1 = 0",
        "SELECT COUNT(*) FROM visits WHERE age > 200",
        "SELECT ward, COUNT(*) FROM visits WHERE 1 = 0 GROUP BY ROLLUP (ward)",  # the row of all wards stays
        "SELECT COUNT(*) AS n FROM (SELECT ward, COUNT(*) AS m FROM visits GROUP BY ward) AS q WHERE 1 = 0",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3 OR 1 = 0",
    ],
)
def test_a_question_that_may_have_rows_is_paid(sql: str, policy) -> None:
    assert plan_question(parse(sql), policy, 1).epsilon_delta[0] == 1


@pytest.mark.parametrize("sql", ["SELECT * FROM visits LIMIT 1", "SELECT age FROM visits WHERE age > 200"])
def test_rows_stay_refused(sql: str, policy) -> None:
    with pytest.raises(Refused):
        plan_question(parse(sql), policy, 1)


QUESTIONS = [
    "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n, TOP_K(ward, 2) AS k FROM visits",
    "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT ward, 1 FROM visits GROUP BY ward",
    "SELECT a.ward, a.n, b.c FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a "
    "JOIN (SELECT ward, AVG(cost) AS c FROM visits GROUP BY ward) AS b ON a.ward = b.ward",
    "SELECT ward, n / 2.0 AS h FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS q ORDER BY n LIMIT 3",
    "SELECT DISTINCT ward FROM visits",
]
PROBES = [
    "SELECT * FROM ({}) AS q LIMIT 0",
    "SELECT * FROM ({}) AS q WHERE 0=1",
    'SELECT "q01".* FROM ({}) AS "q01" WHERE (0 = 1) LIMIT 11',
    "SELECT * FROM ({}) AS q WHERE FALSE LIMIT 0",
    "SELECT * FROM ({}) AS q WHERE NOT TRUE",
    "SELECT * FROM (SELECT * FROM ({}) AS q WHERE NULL) AS p",
    "WITH q AS ({}) SELECT * FROM q WHERE 'a' = 'b'",
    "SELECT * FROM ({}) q FETCH FIRST 0 ROWS ONLY",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_probe_has_the_columns_of_its_question(question: str, policy) -> None:
    expected = answer_columns(plan_question(parse(question), policy, 1).recipe)
    for probe in PROBES:
        plan = plan_question(parse(probe.format(question)), policy, 1)
        assert isinstance(plan, CompoundPlan) and plan.empty is not None, probe
        assert [(each.name, each.type, each.many) for each in plan.empty] == [
            (each.name, each.type, each.many) for each in expected
        ], probe
        assert plan.members == () and plan.epsilon_delta == (0, 0) and not plan.tables


def test_a_probe_of_an_accuracy_is_free_too(policy) -> None:
    asked = Question("SELECT * FROM (SELECT COUNT(*) AS n FROM visits) AS q LIMIT 0", within={"n": 5})
    assert make_plans(asked, policy).plan.members == ()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM (SELECT ward, COUNT(*) AS n, heigth FROM visits GROUP BY ward) AS q LIMIT 0", "unknown-column"),
        ("SELECT patient_id FROM visits LIMIT 0", "unknown-column"),
        ("SELECT heigth FROM visits LIMIT 0", "unknown-column"),
    ],
)
def test_a_probe_of_what_is_no_question_says_what_is_wrong_with_that(sql: str, code: str, policy) -> None:
    with pytest.raises(Refused) as refused:
        plan_question(parse(sql), policy, 1)
    assert refused.value.code == code
