"""A list of the most frequent values takes work that public numbers decide, and no more than a limit."""

from __future__ import annotations

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load


def test_a_list_of_many_values_in_many_groups_is_refused_before_anything_is_charged():
    columns = {
        "town": {"type": "int", "values": list(range(2_000))},
        "day": {"type": "int", "lower": 0, "upper": 999},
    }
    policy = load(
        {
            "privacy": {"epsilon": 1},
            "tables": {"visits": {"unit": "row", "columns": columns}},
            "analysts": {"ada": {"epsilon": 1}},
        }
    )
    assert plan_for(parse("SELECT TOP_K(town, 10) FROM visits"), policy, 0.5)
    with pytest.raises(Refused) as caught:  # 1,000 groups, 10 looks at 2,000 values in each
        plan_for(parse("SELECT day, TOP_K(town, 10) FROM visits GROUP BY day"), policy, 0.5)
    assert caught.value.code is ErrorCode.TOO_LARGE
