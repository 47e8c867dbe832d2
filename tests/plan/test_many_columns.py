"""A question of many columns is planned and explained in time that grows with their number, not with its square."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction

import pytest

from tacit.aggregates.base import BoundAggregate
from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.plan import accuracy
from tacit.plan.bind_question import MAX_MEASUREMENTS, plan_for
from tacit.plan.compound_plan import plan_question
from tacit.plan.explain import explain
from tacit.sampling import gaussian

MANY = 100


def test_aggregates_are_compared_with_their_equals_only(policy, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    equal = BoundAggregate.__eq__

    def counted(self: BoundAggregate, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(self, other)

    monkeypatch.setattr(BoundAggregate, "__eq__", counted)
    sums = [f"SUM(age + {n})" for n in range(MANY)]
    made = plan_for(parse(f"SELECT {', '.join(sums + sums[:10])} FROM visits"), policy, 0.5)
    assert len(made.recipe.values) == MANY and len(made.recipe.results) == MANY + 10
    assert compared <= 20  # once for each that was there already; by pairs it would be thousands


def test_columns_with_the_same_noise_share_its_interval(policy_with, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    beyond = gaussian._is_beyond

    def counted(*given) -> bool:
        nonlocal looked
        looked += 1
        return beyond(*given)

    monkeypatch.setattr(gaussian, "_is_beyond", counted)
    known = policy_with(delta=1e-6)

    def looks(count: int) -> int:
        nonlocal looked
        gaussian.tail_quantile.cache_clear()
        looked = 0
        counts = ", ".join(f"COUNT(*) FILTER (WHERE age > {n})" for n in range(count))
        explain(plan_for(parse(f"SELECT {counts} FROM visits"), known, 0.001), known, 0.95)
        return looked

    alone = looks(60) / 60
    assert 0 < alone < 2  # a search of some forty looks, once for all sixty


@pytest.mark.slow
@pytest.mark.parametrize(
    ("aggregates", "groups"),
    [
        ([f"SUM(age + {n})" for n in range(MAX_MEASUREMENTS + 1)], ""),
        ([f"CORR(age + {n}, age)" for n in range(MANY)], " GROUP BY CUBE (ward, sex)"),
        ([f"SUM(age + {n})" for n in range(MANY)], " GROUP BY CUBE (ward, sex)"),
    ],
)
def test_a_question_that_measures_too_much_is_refused(aggregates: list[str], groups: str, policy) -> None:
    with pytest.raises(Refused) as refused:
        plan_question(parse(f"SELECT {', '.join(aggregates)} FROM visits{groups}"), policy, 1)
    assert refused.value.code is ErrorCode.TOO_LARGE
    assert len(plan_for(parse(f"SELECT {', '.join(aggregates[:16])} FROM visits"), policy, 1).recipe.values) == 16


def test_a_question_is_bound_once_for_all_epsilons_of_an_accuracy(policy, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, bind = [], accuracy.bind_question
    monkeypatch.setattr(accuracy, "bind_question", lambda *given: bound.append(given) or bind(*given))
    asked = parse("SELECT COUNT(*) AS n FROM visits")
    found = accuracy.plan_within(asked, policy, {"n": 50}, Fraction(19, 20))
    assert len(bound) == 1
    assert found.key == plan_for(asked, policy, found.epsilon_delta[0]).key


@pytest.mark.slow
def test_a_kept_hash_stays_in_its_process(policy) -> None:
    scalar = parse("SELECT SUM(age + 1) FROM visits").outputs[0].scalar.argument
    assert hash(scalar) == hash(scalar)
    read = "import pickle, sys; found = pickle.load(sys.stdin.buffer)"
    program = f"{read}; sys.exit(hash(found) != hash(type(found)(found.function, found.arguments)))"
    for seed in ("1", "2"):  # of the hashes of texts
        ran = subprocess.run(
            [sys.executable, "-c", program], input=pickle.dumps(scalar), env={"PYTHONHASHSEED": seed}, check=False
        )
        assert ran.returncode == 0
