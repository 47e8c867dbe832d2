"""Intervals of released rows that are named by their values: a row that no other draw has again gets none."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.plan.conftest import _policy

import tacit
from tacit.aggregates.registry import read_question as parse
from tacit.answers.columns import IntervalKind
from tacit.answers.compound import compound_columns
from tacit.answers.post_processing_plan import CompoundPostProcessingPlan
from tacit.demo.clinic import build_clinic
from tacit.plan.compound_plan import plan_question

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def kinds(sql: str) -> list[IntervalKind]:
    recipe = plan_question(parse(sql), _policy(), 1).recipe
    assert isinstance(recipe, CompoundPostProcessingPlan)
    return [column.bars for column in compound_columns(recipe)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT COUNT(*) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM visits UNION SELECT COUNT(*) FROM labs",
        "SELECT COUNT(*) AS n FROM visits EXCEPT SELECT COUNT(*) FROM labs",
        "SELECT COUNT(*) AS n FROM visits INTERSECT SELECT COUNT(*) FROM labs",
        f"WITH q AS ({BY_WARD}) SELECT n, COUNT(*) AS m FROM q GROUP BY n",
        f"WITH q AS ({BY_WARD}) SELECT DISTINCT ward, (SELECT COUNT(*) FROM labs) AS n FROM q LIMIT 2",
    ],
)
def test_a_row_that_is_named_by_a_noisy_value_has_no_interval(sql: str) -> None:
    assert set(kinds(sql)) == {IntervalKind.NONE}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) FROM labs",
        f"WITH q AS ({BY_WARD}) SELECT SUM(n) AS n FROM q",
        f"WITH q AS ({BY_WARD}) SELECT SUM(m) AS n FROM (SELECT n, COUNT(*) AS m FROM q GROUP BY n) AS r",
    ],
)
def test_other_rows_keep_theirs(sql: str) -> None:
    assert kinds(sql)[-1] is not IntervalKind.NONE


@pytest.mark.slow
def test_a_geometric_mean_over_a_window_is_that_of_the_released_numbers(tmp_path: Path) -> None:
    with tacit.open(build_clinic(tmp_path)) as curator:
        question = "SELECT ward, COUNT(*) AS n, GEOMEAN(COUNT(*)) OVER () AS g FROM visits GROUP BY ward"
        found = curator.analyst("ada").ask(question, epsilon=0.5).to_pandas()
        assert found["g"].tolist() == pytest.approx(
            [math.exp(sum(map(math.log, found["n"])) / len(found))] * len(found)
        )
