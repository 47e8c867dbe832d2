"""How much of the collection is answered, and how many spellings of one meaning are one charge."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.collection import worlds
from tests.collection.load import Query, pairs, queries

from tacit.errors import Refused
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.dialects import QuestionDialect

ANSWERED = 436
"""How many of those labeled answerable are answered at least. It only rises."""
SAME = 101
"""How many pairs of equal meaning are one charge at least. It only rises."""


@pytest.fixture(scope="module")
def policies() -> dict[str, Policy]:
    return {path.stem: load(path) for path in worlds.FOLDER.glob("*.toml")}


def planned(query_or_text: str, policy: Policy, epsilon: int = 1) -> AnyPlan:
    return make_plans(Question(query_or_text.rstrip().rstrip(";"), epsilon=epsilon), policy).plan


def is_answered(query: Query, policy: Policy) -> bool:
    try:
        planned(query.sql, replace(policy, dialect=QuestionDialect(query.dialect)))
    except Refused:
        return False
    return True


@pytest.mark.slow
def test_so_much_is_answered(policies: dict[str, Policy]) -> None:
    found = [query.id for query in queries() if query.answerable and is_answered(query, policies[query.world])]
    assert len(found) >= ANSWERED


def test_a_name_is_of_the_table_that_has_the_column(policies: dict[str, Policy]) -> None:
    # lineitem reaches its unit through orders, so o_custkey could be a name of both
    joined = "FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey"
    assert planned(f"SELECT COUNT(*) {joined}", policies["tpch"])


@pytest.mark.slow
def test_so_many_pairs_are_one_charge(policies: dict[str, Policy]) -> None:
    same = 0
    for pair in pairs():
        try:
            keys = {planned(text, policies[pair.world]).key for text in (pair.first, pair.second)}
        except Refused:
            continue
        same += pair.same and len(keys) == 1
    assert same >= SAME
