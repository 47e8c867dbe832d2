"""A small policy, with either relation, and how to plan a question on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tacit.plan.plan import Plan, plan_for
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.sql import parse


def _policy(neighbors: str = "add-remove", epoch: int = 1, **visits: Any) -> Policy:
    """Visits of patients, at most two groups with three rows each, and beds, each of which is a unit."""
    columns = {
        "age": {"type": "int", "lower": 0, "upper": 110},
        "score": {"type": "int", "lower": -20, "upper": 10},
        "prior": {"type": "int"},
        "cost": {"type": "float", "lower": 0, "upper": 5000, "step": 0.01},
        "balance": {"type": "float", "lower": -1000, "upper": 1000},
        "ward": {"type": "text", "values": ["A", "B", "C"]},
        "sex": {"type": "text", "values": ["F", "M"]},
        "smoker": {"type": "bool"},
        "visited": {"type": "date"},
    } | visits.pop("columns", {})
    return load({
        "data": {"epoch": epoch},
        "privacy": {"neighbors": neighbors, "epsilon": 10},
        "tables": {
            "visits": {"unit": "patient_id", "max_groups": 2, "max_rows_per_group": 3} | visits | {"columns": columns},
            "beds": {
                "unit": "row",
                "columns": {
                    "age": {"type": "int", "lower": 0, "upper": 110},
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                    "rate": {"type": "float", "lower": 0, "upper": 1, "step": 0.01},
                },
            },
        },
        "analysts": {"ada": {"epsilon": 5}},
    })  # fmt: skip


@pytest.fixture(scope="session")
def policy_with() -> Callable[..., Policy]:
    """The policy with another relation, epoch, caps of a patient or columns."""
    return _policy


@pytest.fixture(scope="session")
def policy() -> Policy:
    return _policy()


@pytest.fixture(scope="session")
def plan() -> Callable[..., Plan]:
    """The plan of a question at epsilon 1/2, on the policy or a changed one."""

    def make(sql: str, epsilon: Any = 0.5, **changes: Any) -> Plan:
        return plan_for(parse(sql), _policy(**changes), epsilon)

    return make
