"""What is seen of budgets: both amounts, what is left of each, and what the caps of a policy leave out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from tacit.accounting.filters import BudgetCharge, BudgetStatus, compute_charge, compute_limits
from tacit.answers.analyst_budget import AnalystBudget, describe_spent, remaining_delta, standing_to_dict
from tacit.curator.coverage import Coverage, list_coverage_remarks, measure_coverage, rows_per_unit_limits
from tacit.curator.resources import open_engine
from tacit.policy.load import load
from tacit.privacy.loss import ApproximateDp, LaplaceNoise

CAP = compute_limits(Fraction(1), Fraction(1, 10**6))
KEYS = compute_charge(ApproximateDp(Fraction(1, 2), Fraction(1, 10**9)))


def test_delta_is_shown_with_what_is_left_of_it():
    standing = BudgetStatus(KEYS, CAP)
    # filter A has half of a millionth, and a billionth of it is spent
    assert describe_spent(standing) == "epsilon 0.5 of 1 and delta 1e-9 of 5e-7"
    assert standing_to_dict(standing)["delta"] == {"spent": "1e-9", "cap": "5e-7", "remaining": "4.99e-7"}
    assert str(AnalystBudget("ada", standing, standing)) == (
        "ada has spent epsilon 0.5 of 1 and delta 1e-9 of 5e-7, with 0.5 left; "
        "all analysts together epsilon 0.5 of 1 and delta 1e-9 of 5e-7, with 0.5 left"
    )


def test_where_there_is_no_delta_none_is_mentioned():
    standing = BudgetStatus(compute_charge(LaplaceNoise(Fraction(2), 1)), compute_limits(Fraction(1), Fraction(0)))
    assert describe_spent(standing) == "epsilon 0.5 of 1"
    assert standing_to_dict(standing)["delta"] == {"spent": "0", "cap": "0", "remaining": "0"}


def test_what_is_left_of_delta_is_what_the_better_filter_has():
    # of A 4e-7 of 5e-7 is spent, of B 1e-7 of 2.5e-7: B has more
    assert remaining_delta(BudgetStatus(BudgetCharge(0, 4 * 10**11, 0, 10**11), CAP)) == 15 * 10**10
    # where A has no epsilon left over, its delta does not count; where B has no rho, its delta does not
    assert remaining_delta(BudgetStatus(BudgetCharge(2 * 10**12, 0, 0, 0), CAP)) == CAP.delta_b
    assert remaining_delta(BudgetStatus(BudgetCharge(0, 0, 10**18, 0), CAP)) == CAP.delta_a
    assert remaining_delta(BudgetStatus(BudgetCharge(2 * 10**12, 0, 10**18, 0), CAP)) == 0


def test_once_rho_alone_holds_its_part_is_shown():
    standing = BudgetStatus(BudgetCharge(2 * 10**12, 0, CAP.rho // 4, 0), CAP)
    assert describe_spent(standing) == "25% of epsilon 1, counted by rho"


ROWS = ["a"] * 10 + ["b"] * 2 + ["c"] + [None]
DATA = {"t": pa.table({"who": ROWS, "x": [True] * len(ROWS)}), "people": pa.table({"x": [True, False]})}


def opened(**table_caps: Any):
    tables = {
        "t": {"unit": "who", **table_caps, "columns": {"x": {"type": "bool"}}},
        "people": {"unit": "row", "columns": {"x": {"type": "bool"}}},
    }
    policy = load({"privacy": {"epsilon": 1}, "tables": tables, "analysts": {"ada": {"epsilon": 1}}})
    return policy, open_engine(policy, DATA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table_caps", "total", "grouped"),
    [
        # min(10, 3) + 2 + 1, and min(10, 6) + 2 + 1
        ({"max_groups": 2, "max_rows_per_group": 3}, 6, 9),
        # 2 + 2 + 1, and min(10, 3) + 2 + 1
        ({"max_groups": 2, "max_rows_per_group": 2, "max_rows": 3}, 5, 6),
        ({"max_groups": 1, "max_rows_per_group": 1}, 3, 3),
        ({"max_groups": 1, "max_rows_per_group": 10}, 13, 13),
    ],
)
def test_the_rows_that_the_caps_leave(table_caps, total, grouped):
    policy, engine = opened(**table_caps)
    table = policy.table("t")
    assert table is not None
    assert list(measure_coverage(policy, engine)) == [
        Coverage(table, 13, total, grouped)
    ]  # a row of nobody is left out anyway
    assert len(list(list_coverage_remarks(policy, engine))) == (total < 13)
    engine.close()


@pytest.mark.slow
def test_without_rows_nothing_is_left_out():
    policy, engine = opened(max_groups=2, max_rows_per_group=3)
    engine.close()
    empty = open_engine(policy, {name: table.slice(0, 0) for name, table in DATA.items()})
    assert list(list_coverage_remarks(policy, empty)) == []
    table = policy.table("t")
    assert table is not None
    assert rows_per_unit_limits(table) == (3, 6)
    empty.close()


def test_where_a_clip_is_chosen_there_are_no_caps_to_leave_rows_out():
    policy, engine = opened(max_rows="auto")
    assert list(measure_coverage(policy, engine)) == []
    [remark] = list_coverage_remarks(policy, engine)
    assert remark.path == "tables.t"
    assert remark.text.startswith("how much one unit may add is chosen for each question, so there are no caps")
    engine.close()


@pytest.mark.slow
def test_the_caps_beside_a_chosen_clip_are_those_of_other_questions():
    # at most 3 rows of a unit: min(10, 3) + 2 + 1, with groups and without
    policy, engine = opened(max_rows={"auto_up_to": 3})
    table = policy.table("t")
    assert table is not None
    assert list(measure_coverage(policy, engine)) == [Coverage(table, 13, 6, 6)]
    [remark] = list_coverage_remarks(policy, engine)
    said = "for questions that cannot use a chosen clip, such as medians: an answer without groups counts 6 of 13 rows"
    assert remark.text.startswith(said)
    engine.close()
