"""What a value may be made of is limited in all levels of a question together, whatever stands between them."""

from __future__ import annotations

import pytest

from tacit.aggregates.registry import read_question
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.plan.compound_plan import plan_question
from tacit.policy.model import Policy

TEXTS = " || ".join(["s"] * 4)
WORK = " + ".join(["GREATEST(n, 1) % 7"] * 8)


WAYS = {
    "subquery": "{0}",
    "union all": "{0} UNION ALL {1}",
    "union all, last": "{1} UNION ALL {0}",
    "union": "{0} UNION {1}",
    "except": "{0} EXCEPT {1}",
    "full join": "SELECT patient_id, s, n FROM ({0}) AS a FULL JOIN ({1}) AS b USING (patient_id, s, n)",
    "full join, right": "SELECT patient_id, s, n FROM ({1}) AS a FULL JOIN ({0}) AS b USING (patient_id, s, n)",
    "left join": "SELECT a.patient_id, b.s, b.n FROM ({1}) AS a LEFT JOIN ({0}) AS b ON a.patient_id = b.patient_id",
    "groups": "SELECT patient_id, s, n, COUNT(*) AS k FROM ({0}) AS a GROUP BY patient_id, s, n",
}


def _count_levels(policy: Policy, way: str, text: str, number: str) -> int:
    """How many levels are planned, of which each computes a text and a number from those below."""
    rows, levels = "SELECT patient_id, ward AS s, age AS n FROM visits", 0
    inner = rows
    while True:
        inner = WAYS[way].format(f"SELECT patient_id, {text} AS s, {number} AS n FROM ({inner}) AS t", rows)
        try:
            plan_for(read_question(f"SELECT COUNT(*) FROM ({inner}) AS t WHERE s <> 'q' AND n > 3"), policy, 1)
        except Refused as refused:
            if refused.code is not ErrorCode.TOO_LARGE:
                raise
            return levels
        levels += 1
        assert levels < 5, "no number of levels is too many"


@pytest.mark.parametrize("way", WAYS)
def test_texts_are_counted_through_all_levels(way: str, policy: Policy) -> None:
    assert _count_levels(policy, way, TEXTS, "n") == 1


@pytest.fixture(scope="module")
def levels_of_subqueries(policy: Policy) -> int:
    """How many levels of subqueries are planned."""
    return _count_levels(policy, "subquery", "s", f"({WORK}) % 9")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_operations_are_counted_through_all_levels(way: str, policy: Policy, levels_of_subqueries: int) -> None:
    assert _count_levels(policy, way, "s", f"({WORK}) % 9") == levels_of_subqueries


RELEASED = {
    "subquery": "SELECT {0} AS s, {1} AS n FROM ({2}) AS t",
    "distinct": "SELECT DISTINCT {0} AS s, {1} AS n FROM ({2}) AS t",
    "union": "SELECT {0} AS s, {1} AS n FROM ({2}) AS t UNION ALL SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "window": "SELECT {0} AS s, {1} AS n, RANK() OVER (ORDER BY n) AS r FROM ({2}) AS t",
    "lag": "SELECT LAG({0}) OVER (ORDER BY n) AS s, {1} AS n FROM ({2}) AS t",
    "key": "SELECT {0} AS s, SUM({1}) AS n FROM ({2}) AS t GROUP BY {0}",
    "largest": "SELECT n % 2 AS k, MAX({0}) AS s, MAX({1}) AS n FROM ({2}) AS t GROUP BY n % 2",
    "join": "SELECT {0} AS s, {1} AS n FROM ({2}) AS t JOIN (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) "
    "AS o ON t.s <> o.ward",
}


@pytest.mark.parametrize("way", RELEASED)
def test_texts_of_released_rows_are_counted_through_all_levels(way: str, policy: Policy) -> None:
    inner, planned = "SELECT ward AS s, COUNT(*) AS n FROM visits GROUP BY ward", []
    for _ in range(3):
        inner = RELEASED[way].format(TEXTS, "n", inner)
        try:
            plan_question(read_question(inner), policy, 1)
            planned.append(True)
        except Refused as refused:
            planned.append(False)
            if refused.code is not ErrorCode.TOO_LARGE:
                raise
    assert planned == [True, False, False]


def test_a_question_that_is_short_and_means_millions_of_parts_is_refused_at_once(policy: Policy) -> None:
    inner = "SELECT ward AS s, COUNT(*) AS n FROM visits GROUP BY ward"
    for _ in range(10):
        inner = f"SELECT s, {' + '.join(['n'] * 8)} AS n FROM ({inner}) AS t"
    with pytest.raises(Refused, match="too many parts"):
        plan_question(read_question(inner), policy, 1)
