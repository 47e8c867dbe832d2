"""Windows over released rows: what an engine would refuse after the charge is refused before it."""

from __future__ import annotations

import pytest
from tests.plan.conftest import _policy

from tacit.aggregates.registry import read_question as parse
from tacit.errors import Refused
from tacit.plan.compound_plan import plan_question

GROUPED = "SELECT ward, COUNT(*) AS n, {} AS r FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    "window",
    [
        "NTILE(0) OVER (ORDER BY ward)",
        "NTILE(-1) OVER (ORDER BY ward)",
        "NTILE(1.5) OVER (ORDER BY ward)",
        "NTILE('a') OVER (ORDER BY ward)",
        "NTILE(COUNT(*)) OVER (ORDER BY ward)",
        "NTH_VALUE(COUNT(*), 0) OVER (ORDER BY ward)",
        "LAG(COUNT(*), 'a') OVER (ORDER BY ward)",
        "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)",
        "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN CURRENT ROW AND 1 PRECEDING)",
        "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN UNBOUNDED FOLLOWING AND UNBOUNDED FOLLOWING)",
        "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED PRECEDING)",
    ],
)
def test_what_no_engine_computes_is_refused_before_it_is_charged(window: str) -> None:
    with pytest.raises(Refused):
        plan_question(parse(GROUPED.format(window)), _policy(), 1)


@pytest.mark.parametrize(
    "window",
    [
        "NTILE(2) OVER (ORDER BY ward)",
        "LAG(COUNT(*), 2, 0) OVER (ORDER BY ward)",
        "GEOMEAN(COUNT(*)) OVER ()",
        "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
        "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    ],
)
def test_others_are_planned(window: str) -> None:
    assert plan_question(parse(GROUPED.format(window)), _policy(), 1).members
