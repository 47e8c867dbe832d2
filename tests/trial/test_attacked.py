"""Attacks on a plain database and on the curator: the first loses every secret, the second keeps its promise."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom
from tests.support.counts import FULL
from tests.support.policies import caps, policy_of

from tacit.aggregates.registry import read_question as parse
from tacit.attacks.recovered import max_expected_accuracy
from tacit.errors import ParameterError
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.privacy.unit import Neighbors
from tacit.trial.attack_comparison import attack_policy
from tacit.trial.attack_report import SIGNIFICANCE, AttackReport
from tacit.trial.target import generate_target
from tacit.trial.unprotected import UnprotectedDatabase

AGE = {"type": "int", "lower": 18, "upper": 90}
SEX = {"type": "text", "values": ["F", "M", "it's X"]}
DAY = {"type": "date", "lower": "2025-01-01", "upper": "2025-03-31"}
ROOM = {"type": "int", "values": [1, 2, 7]}


def policy(neighbors="replace", unit="row", **columns):
    people = {"unit": unit, **({} if unit == "row" else caps(1, 1)), "columns": columns}
    return load(policy_of({"people": people}, epsilon=1, neighbors=neighbors))


# The crowd.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "secret", "known"),
    [
        ({"age": AGE, "sick": {"type": "bool"}}, "sick", ("age",)),
        ({"sex": SEX, "day": DAY, "order": {"type": "bool"}}, '"order"', ("sex", "day")),
        ({"sex": SEX, "age": AGE, "room": ROOM}, "sex = 'F'", ("age",)),
        # age could be the secret too, but then nothing would tell people apart
        ({"age": AGE, "pay": {"type": "float", "lower": 0, "upper": 10}}, "pay >= 6", ("age",)),
        ({"pay": {"type": "float", "lower": 0, "upper": 10}, "day": DAY}, "pay >= 6", ("day",)),
    ],
)
def test_any_subset_is_a_condition_on_public_columns(columns, secret, known):
    declared = policy(unit="who", **columns)
    crowd = generate_target(declared, people=30, seed=3)
    assert (crowd.secret, crowd.known) == (secret, known)
    assert len(set(crowd.numbers)) == 30
    assert 0 < crowd.truth.sum() < 30
    subsets = np.random.default_rng(0).random((20, 30)) < 0.5
    subsets[:3] = [[False] * 30, [True] * 30, [True] + [False] * 29]
    with UnprotectedDatabase(crowd.database) as twin:
        for subset in subsets:
            question = crowd.count(subset)
            plan_for(parse(question), declared, 1)  # the curator answers it too
            assert twin.ask(question) == [(int((subset & crowd.truth).sum()),)]
        each = dict(twin.ask(crowd.each()))
    assert [each[number] for number in crowd.numbers] == crowd.truth.astype(int).tolist()


def test_the_largest_crowd_fits_a_question():
    declared = policy(age=AGE, day=DAY, sick={"type": "bool"})
    crowd = generate_target(declared, people=1000)
    half = np.arange(1000) % 2 == 0
    plan_for(parse(crowd.count(half)), declared, 1)


@pytest.mark.parametrize(
    ("people", "columns", "said"),
    [
        (7, {"age": AGE, "sick": {"type": "bool"}}, "7 is no crowd to attack"),
        (1001, {"age": AGE, "sick": {"type": "bool"}}, "1001 is no crowd to attack"),
        (50, {"age": AGE, "sick": {"type": "bool"}}, "tell 50 people apart: 36 is the most"),  # 73 ages, two for each
        (10, {"sick": {"type": "bool"}}, "tell 10 people apart: 0 is the most"),
        (10, {"name": {"type": "text"}}, "tell 10 people apart: 0 is the most"),
    ],
)
def test_a_crowd_that_cannot_be_told_apart_is_refused(people, columns, said):
    with pytest.raises(ParameterError, match=said):
        generate_target(policy(**columns), people=people)


# The attacks.


@pytest.fixture(scope="module", params=["replace", "add-remove"])
def attacked(request):
    declared = policy(request.param, age=AGE, sex=SEX, sick={"type": "bool"})
    heard: list[float] = []
    found = attack_policy(declared, people=100 if FULL else 40, epsilon=1, seed=2, progress=heard.append)
    assert heard == sorted(heard)
    assert 0 < heard[0] < heard[-1] <= 1
    return found


@pytest.mark.slow
def test_unprotected_every_secret_is_out(attacked):
    assert [line.name for line in attacked.lines] == ["random subsets", "leave one out", "everyone at once"]
    assert [line.unprotected.share for line in attacked.lines] == [1.0, 1.0, 1.0]
    assert attacked.plain.estimate == attacked.target.truth.sum()


@pytest.mark.slow
def test_protected_no_more_is_recovered_than_the_promise_allows(attacked):
    # The right guesses are at most binomial: three lines alarm falsely with probability 1e-9 at most, a third each.
    most = {Neighbors.REPLACE: 0.7310585786, Neighbors.ADD_REMOVE: 0.8807970780}[attacked.neighbors]
    for line in attacked.lines:
        assert line.most == pytest.approx(most)
        assert line.chance == binom.sf(line.protected.right - 1, line.protected.people, line.most)
        assert line.chance > SIGNIFICANCE
    assert not attacked.is_refuted
    assert "no attack got more than the promise allows" in attacked.verdict


@pytest.mark.slow
def test_the_budget_ends_the_attack(attacked):
    people = attacked.target.people
    assert [line.protected.queries for line in attacked.lines] == [2 * people, people + 1, 1]
    assert attacked.refusal == "refused [budget]: it costs epsilon 1, and attacker's own budget has 0 left of 1"
    assert attacked.repeated.verdict == "repeats are one answer"
    assert attacked.reworded.distinct > 5  # of twenty: each has noise of its own


@pytest.mark.slow
def test_more_than_the_promise_allows_is_seen():
    # Power: at epsilon 16 everyone's count is off by one with chance e^-8: all 70 bits are right. Were that a promise
    # of epsilon 1, its chance would be 0.731^70 = 3e-10.
    declared = policy(age=AGE | {"upper": 300}, sick={"type": "bool"})
    found = attack_policy(declared, people=70, epsilon=16, seed=1)
    at_once = found.lines[-1]
    assert at_once.protected.right == 70
    assert not found.is_refuted
    promised = replace(at_once, most=max_expected_accuracy(1, Neighbors.REPLACE))
    assert promised.chance < SIGNIFICANCE
    assert replace(found, lines=(promised,)).is_refuted
    assert "the promise is broken" in replace(found, lines=(promised,)).verdict


def test_all_attacks_together_share_the_probability_of_a_false_alarm():
    def is_refuted(*chances):
        lines = [SimpleNamespace(chance=chance) for chance in chances]
        return AttackReport(None, 1.0, Neighbors.REPLACE, lines, None, None, None, "", 1.0).is_refuted

    # three attacks have a third of 1e-9 each
    assert [is_refuted(1, 1, chance) for chance in (9e-10, 3.4e-10, 3.3e-10)] == [False, False, True]
    assert is_refuted(9e-10) and not is_refuted(1.1e-9)


@pytest.mark.slow
def test_the_same_seed_is_the_same_attack():
    declared = policy(age=AGE, sick={"type": "bool"})
    first, again, other = (attack_policy(declared, people=8, seed=seed) for seed in (5, 5, 6))
    assert first.to_dict() == again.to_dict()
    assert first.to_dict() != other.to_dict()


@pytest.mark.parametrize("epsilon", [0, -1, 1e9, float("nan")])
def test_an_epsilon_that_is_no_price_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        attack_policy(policy(age=AGE, sick={"type": "bool"}), people=8, epsilon=epsilon)
