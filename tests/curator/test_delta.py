"""Who has no delta is asked for none: their questions are planned without."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.errors import ErrorCode, Refused
from tacit.plan.question import Question

POLICY = {
    "privacy": {"epsilon": 100, "delta": 1e-6},
    "tables": {
        "visits": {
            "unit": "patient",
            "max_groups": 40,
            "max_rows_per_group": 1,
            "columns": {
                "cost": {"type": "int", "lower": 0, "upper": 10},
                "day": {"type": "int", "lower": 1, "upper": 40},
                "ward": {"type": "text"},
            },
        }
    },
    "analysts": {"ada": {"epsilon": 50, "delta": 1e-7}, "ben": {"epsilon": 50}},
}
ROWS = [(n % 50, n % 11, 1 + n % 40, "AB"[n % 2]) for n in range(2000)]
BY_DAY = "SELECT day, COUNT(*), SUM(cost) FROM visits GROUP BY day"  # each patient may be in 40 groups: Gaussian noise
COUNT = "SELECT COUNT(*) FROM visits"
BY_WARD = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"


@pytest.fixture
def curator(tmp_path):
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    visits = pa.table(dict(zip(["patient", "cost", "day", "ward"], columns, strict=True)))
    policy = {**POLICY, "ledger": {"store": tmp_path / "visits.ledger"}}
    with tacit.open(policy, data={"visits": visits}) as opened:
        yield opened


def laws(who: tacit.Analyst, question: str) -> set[str]:
    return {noise.law for noise in who.explain(question, epsilon=1).noise}


@pytest.mark.slow
def test_the_smaller_noise_that_an_analyst_can_pay_for_is_taken(curator):
    ada, ben = curator.analyst("ada"), curator.analyst("ben")
    assert laws(ada, BY_DAY) == {"discrete Gaussian"} and laws(ben, BY_DAY) == {"discrete Laplace"}
    for analyst in (ada, ben):
        assert len(analyst.ask(BY_DAY, epsilon=1)) == 40
    assert ada.budget.own.spent.delta_a > 0 == ben.budget.own.spent.delta_a


def test_what_needs_no_delta_is_one_question_for_both(curator):
    keys = [curator.planner.plan(Question(COUNT, Fraction(1)), who).key for who in ("ada", "ben")]
    assert keys[0] == keys[1]
    assert curator.policy.asked_by("ada") is curator.policy
    assert curator.policy.asked_by("ben").digest == curator.policy.digest


def test_private_keys_need_one(curator):
    assert curator.analyst("ada").explain(BY_WARD, epsilon=1).delta > 0
    with pytest.raises(Refused, match="needs a delta, of which your budget has none") as refusal:
        curator.analyst("ben").ask(BY_WARD, epsilon=1)
    assert refusal.value.code is ErrorCode.PRIVATE_KEY
    assert not curator.ledger.standing("ben").spent.epsilon


@pytest.mark.slow
def test_both_plans_are_kept(curator):
    question = Question(BY_DAY, epsilon=1)
    one, other = (curator.planner.plan(question, who) for who in ("ada", "ben"))
    assert one.delta > 0 == other.delta
    assert curator.planner.plan(question, "ada") is one
    assert curator.planner.plan(question, "ben") is other
