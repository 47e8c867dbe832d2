"""A question of many columns is planned and explained in time that grows with their number, not with its square."""

from __future__ import annotations

import pytest

from tacit.aggregates.base import BoundAggregate
from tacit.aggregates.registry import read_question as parse
from tacit.plan.explain import explain
from tacit.plan.plan import plan_for
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
