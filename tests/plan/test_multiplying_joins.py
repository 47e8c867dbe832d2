"""Joins that multiply the rows of a unit: how many of them a question may have, whatever the data holds."""

from __future__ import annotations

import pytest
from tests.plan.conftest import _policy

from tacit.aggregates.registry import read_question as parse
from tacit.errors import Refused
from tacit.plan.compound_plan import plan_question
from tacit.plan.join import MOST_MULTIPLYING

VISITS = "JOIN visits v{0} ON v{0}.patient_id = v.patient_id"
ONCE = "JOIN (SELECT patient_id, COUNT(*) AS n FROM labs GROUP BY patient_id) l{0} ON l{0}.patient_id = v.patient_id"
LEFT = "LEFT JOIN visits v{0} ON v{0}.patient_id = v.patient_id"


def question(*joins: str) -> str:
    return f"SELECT COUNT(*) FROM visits v {' '.join(join.format(n) for n, join in enumerate(joins))}"


@pytest.mark.parametrize("join", [VISITS, LEFT])
def test_more_than_a_few_joins_that_multiply_rows_are_refused(join: str) -> None:
    policy = _policy()
    assert plan_question(parse(question(*[join] * MOST_MULTIPLYING)), policy, 1).members
    with pytest.raises(Refused, match="joins on the unit"):
        plan_question(parse(question(*[join] * (MOST_MULTIPLYING + 1))), policy, 1)


def test_joins_are_counted_in_subqueries_too() -> None:
    inner = f"(SELECT v.patient_id, v.age FROM visits v {VISITS.format(7)} {VISITS.format(8)})"
    joined = f"SELECT COUNT(*) FROM {inner} a JOIN {inner} b ON a.patient_id = b.patient_id"
    with pytest.raises(Refused, match="joins on the unit"):
        plan_question(parse(joined), _policy(), 1)


def test_a_row_of_each_unit_multiplies_nothing() -> None:
    assert plan_question(parse(question(*[ONCE] * 6, *[VISITS] * MOST_MULTIPLYING)), _policy(), 1).members
