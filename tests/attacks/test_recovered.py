"""What an attack got: the share, its interval, the rule of blatancy, and what differential privacy allows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.support.counts import examples, some

from tacit.accounting.interval import clopper_pearson_interval
from tacit.attacks.recovered import ReconstructionResult, max_expected_accuracy
from tacit.errors import ParameterError
from tacit.privacy.unit import Neighbors

REPLACE, ADD_REMOVE = Neighbors.REPLACE, Neighbors.ADD_REMOVE


def found(right: int, people: int) -> ReconstructionResult:
    """An attack that guesses all ones, where `right` of the people have a one."""
    truth = np.arange(people) < right
    return ReconstructionResult(np.ones(people, bool), method="all ones", queries=3, noise="no noise", truth=truth)


def test_the_share_is_of_the_bits_guessed_right():
    assert found(3, 4).share == 0.75
    assert found(3, 4).right == 3


def test_without_the_truth_nothing_is_said_of_the_share():
    unknown = ReconstructionResult([1, 0], method="a guess", queries=1, noise="no noise")
    assert (unknown.share, unknown.interval, unknown.blatant, unknown.right) == (None, None, False, None)
    assert "the truth is not known" in str(unknown)
    assert unknown.to_dict()["truth"] is None


@pytest.mark.parametrize(("right", "people"), [(0, 10), (1, 10), (7, 10), (10, 10), (950, 1000)])
def test_the_interval_ends_where_so_extreme_a_count_has_half_a_percent(right, people):
    low, high = clopper_pearson_interval(right, people)
    assert low == 0 if right == 0 else binom.sf(right - 1, people, low) == pytest.approx(0.005)
    assert high == 1 if right == people else binom.cdf(right, people, high) == pytest.approx(0.005)


def test_the_interval_covers_as_it_says():
    # Over all counts of 30 trials, weighed by their law: at least 0.99 for every chance, not 0.9999 for all.
    for chance in np.linspace(0.01, 0.99, 50):
        ends = [clopper_pearson_interval(k, 30) for k in range(31)]
        covered = sum(binom.pmf(k, 30, chance) for k, (low, high) in enumerate(ends) if low <= chance <= high)
        assert 0.99 <= covered + 1e-12 < 1 - 1e-6


@pytest.mark.parametrize(
    ("right", "people", "blatant"),
    # all of n right: the low end is 0.005^(1/n), above 0.9 from 51 on. Of 1,000: 950 right start at 0.929.
    [(50, 50, False), (51, 51, True), (950, 1000, True), (949, 1000, False), (96, 100, False)],
)
def test_the_rule_of_blatantly_non_private(right, people, blatant):
    assert found(right, people).blatant is blatant
    assert ("blatantly non-private: nearly every secret is out" in str(found(right, people))) is blatant


def test_the_text_gives_the_figures():
    text = str(found(75, 100))
    assert "75 of 100, 75.0%" in text
    assert "99 % interval 62.3% to 85.2%" in text  # of Beta(75, 26) at 0.005 and Beta(76, 25) at 0.995
    assert "no proof of privacy" in text


def test_it_becomes_json():
    data = json.loads(json.dumps(found(3, 4).to_dict()))
    assert data["share"] == 0.75
    assert data["guess"] == [1, 1, 1, 1]
    assert data["truth"] == [1, 1, 1, 0]


def test_the_truth_must_be_of_the_same_people():
    with pytest.raises(ParameterError, match="3 bits for 2 people"):
        ReconstructionResult([1, 0], method="", queries=1, noise="", truth=[1, 0, 1])


def test_the_bounds_at_epsilon_one():
    # e/(1 + e) = 0.7311 and e^2/(1 + e^2) = 0.8808
    assert max_expected_accuracy(1.0, REPLACE) == pytest.approx(math.e / (1 + math.e), abs=1e-12)
    assert max_expected_accuracy(1.0, ADD_REMOVE) == pytest.approx(math.e**2 / (1 + math.e**2), abs=1e-12)
    assert (round(max_expected_accuracy(1.0, REPLACE), 3), round(max_expected_accuracy(1.0, ADD_REMOVE), 3)) == (
        0.731,
        0.881,
    )


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(st.floats(0, 2000), st.floats(0, 1))
def test_a_bound_is_a_share_that_grows_with_the_budget_and_with_steps(epsilon, delta):
    one, two = max_expected_accuracy(epsilon, REPLACE, delta), max_expected_accuracy(epsilon, ADD_REMOVE, delta)
    assert 0.5 <= one <= two <= 1
    assert one <= max_expected_accuracy(epsilon + 0.1, REPLACE, delta)


def test_nothing_spent_is_a_coin_and_a_lost_delta_is_everything():
    assert max_expected_accuracy(0, REPLACE) == max_expected_accuracy(0, ADD_REMOVE) == 0.5
    assert max_expected_accuracy(1, REPLACE, 1) == max_expected_accuracy(1, ADD_REMOVE, 1) == 1


def test_randomized_response_reaches_the_bound():
    # Truth with e/(1 + e): guess what is said. 200,000 bits: a deviation of 0.001; 0.0065 is 6.5 of them, rarer than
    # 1e-10. An epsilon off by a tenth moves the share by 0.019.
    rng = np.random.default_rng(0)
    truth = rng.random(200_000) < 0.5
    kept = rng.random(200_000) < math.e / (1 + math.e)
    share = ReconstructionResult(truth == kept, method="believe it", queries=1, noise="coins", truth=truth).share
    assert share == pytest.approx(max_expected_accuracy(1.0, REPLACE), abs=0.0065)
    assert share != pytest.approx(max_expected_accuracy(1.1, REPLACE), abs=0.0065)


@pytest.mark.parametrize("epsilon", [-1, float("nan"), "1"])
@pytest.mark.parametrize("neighbors", [REPLACE, ADD_REMOVE])
def test_what_is_no_epsilon_is_refused(epsilon, neighbors):
    with pytest.raises(ParameterError):
        max_expected_accuracy(epsilon, neighbors)


def test_a_relation_is_needed():
    with pytest.raises(ParameterError, match="not a neighbor relation"):
        max_expected_accuracy(1.0, "sideways")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("right", "trials", "confidence"), [(3, 2, 0.9), (1, 2, 1.0), (1, 2, float("nan")), (0, 0, 0.9)]
)
def test_no_interval_of_nothing(right, trials, confidence):
    with pytest.raises(ParameterError):
        clopper_pearson_interval(right, trials, confidence)


@pytest.mark.slow
@pytest.mark.parametrize("people", some([3, 100, 2600], 2))
def test_the_picture_says_what_it_shows(people, tmp_path):
    found(people - 2, people).plot(tmp_path / "found.svg")
    text = (tmp_path / "found.svg").read_text()
    for words in ("The secret bits", "What the attack guesses", "guessed wrong", "a coin", "epsilon 1"):
        assert words in text
    assert ("the first 2,500 of 2,600 people" in text) is (people == 2600)


@pytest.mark.slow
def test_without_the_truth_the_picture_is_the_guess(tmp_path):
    ReconstructionResult([1, 0, 1], method="", queries=1, noise="").plot(tmp_path / "guess.svg")
    assert "guessed wrong" not in (tmp_path / "guess.svg").read_text()
