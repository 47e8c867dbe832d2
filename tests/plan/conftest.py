"""A small policy, with either relation, and how to plan a question on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.plan.bind_question import plan_for
from tacit.plan.plan import Plan
from tacit.policy.load import load
from tacit.policy.model import Policy


def _policy(neighbors: str = "add-remove", epoch: int = 1, delta: float = 0, **visits: Any) -> Policy:
    """Visits of patients, at most two groups with three rows each, and beds, each of which is a unit.

    Labs are of the same patients, items reach them through their visit, staff are other people; wards, regions and
    prices are public.
    """
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
        "born": {"type": "date", "lower": "1920-01-01", "upper": "2024-12-31"},
        "stay": {"type": "int", "lower": 0, "upper": 30, "nullable": False},
        "pulse": {"type": "float"},
        "points": {"type": "int", "lower": 0, "upper": 2**40},
        "diagnosis": {"type": "text"},
        "payer": {"type": "text", "values": ["public", "private"], "other": "Other"},
        "room": {"type": "int", "values": list(range(200))},
        "shift": {"type": "int", "values": list(range(100))},
    } | visits.pop("columns", {})
    return load({
        "data": {"epoch": epoch},
        "privacy": {"neighbors": neighbors, "epsilon": 10, "delta": delta},
        "tables": {
            "visits": {"unit": "patient_id", "people": "patients", "max_groups": 2, "max_rows_per_group": 3}
            | visits
            | {"columns": columns},
            "beds": {
                "unit": "row",
                "columns": {
                    "age": {"type": "int", "lower": 0, "upper": 110},
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                    "rate": {"type": "float", "lower": 0, "upper": 1, "step": 0.01},
                },
            },
            "labs": {
                "unit": "patient_id",
                "people": "patients",
                "max_groups": 3,
                "max_rows_per_group": 2,
                "columns": {
                    "test": {"type": "text", "values": ["blood", "urine"]},
                    "level": {"type": "float", "lower": 0, "upper": 10, "step": 0.1},
                    "age": {"type": "int", "lower": 0, "upper": 120},
                },
            },
            "items": {
                "unit": {"through": "visit_id", "to": "visits.visit_id"},
                "max_groups": 2,
                "max_rows_per_group": 5,
                "columns": {"drug": {"type": "text"}, "price": {"type": "float", "lower": 0, "upper": 100}},
            },
            "staff": {
                "unit": "staff_id",
                "max_groups": 1,
                "max_rows_per_group": 1,
                "columns": {
                    "staff_id": {"type": "int", "lower": 1, "upper": 500},
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                },
            },
            "wards": {
                "public": True,
                "columns": {
                    "ward": {"type": "text", "unique": True},
                    "floor": {"type": "int", "lower": 1, "upper": 9},
                    "region": {"type": "text"},
                    "share": {"type": "float", "lower": 0, "upper": 1},
                },
            },
            "regions": {
                "public": True,
                "columns": {"region": {"type": "text", "unique": True}, "people": {"type": "int"}},
            },
            "prices": {"public": True, "columns": {"drug": {"type": "text"}, "list": {"type": "float"}}},
        },
        "analysts": {"ada": {"epsilon": 5}},
    })  # fmt: skip


@pytest.fixture(scope="session")
def policy_with() -> Callable[..., Policy]:
    """The policy with another relation, epoch, delta, caps of a patient or columns."""
    return _policy


@pytest.fixture(scope="session")
def policy() -> Policy:
    return _policy()


@pytest.fixture(scope="session")
def policy_with_delta() -> Policy:
    return _policy(delta=1e-6)


@pytest.fixture(scope="session")
def plan() -> Callable[..., Plan]:
    """The plan of a question at epsilon 1/2, on the policy or a changed one."""
    known: dict[str, Policy] = {}

    def make(sql: str, epsilon: Any = 0.5, **changes: Any) -> Plan:
        name = repr(changes)
        if name not in known:
            known[name] = _policy(**changes)
        return plan_for(parse(sql), known[name], epsilon)

    return make
