"""What a guarantee means to a person."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.interpretation import (
    describe_epsilon,
    format_guessing_error,
    log_min_guessing_error,
    max_true_positive_rate,
    min_guessing_error,
    posterior_bounds,
)
from tacit.errors import ParameterError


@pytest.mark.parametrize(
    ("epsilon", "error"), [(0, 0.5), (0.1, 0.475021), (1, 0.268941), (5, 0.006693), (10, 0.0000454)]
)
def test_the_game(epsilon, error):
    assert min_guessing_error(epsilon) == pytest.approx(error, abs=5e-7)  # 1/(e^epsilon + 1)


def test_the_game_in_logarithms():
    # 100,000/ln 10 = 43429.4: no overflow
    assert log_min_guessing_error(100_000) / math.log(10) == pytest.approx(-43429.4, abs=0.05)
    assert format_guessing_error(100_000) == "10^-43429.4"
    assert min_guessing_error(100_000) == 0.0
    assert format_guessing_error(1) == "0.268941"
    assert format_guessing_error(10) == "4.54e-05"


def test_delta_in_the_game():
    assert min_guessing_error(0, 0.1) == pytest.approx(0.45)  # (1 - 0.1)/2
    assert min_guessing_error(1, 1) == 0.0


def test_an_attack_with_few_false_alarms():
    # At epsilon 1 an attack that wrongly accuses 1 % finds at most e % of the members.
    assert max_true_positive_rate(1, 0.01) == pytest.approx(0.0271828)
    assert max_true_positive_rate(1, 0.01, 0.001) == pytest.approx(0.0281828)
    assert max_true_positive_rate(0, 0.3) == pytest.approx(0.3)
    assert max_true_positive_rate(5, 0.5) == pytest.approx(1 - 0.5 / math.exp(5))  # the other inequality
    assert max_true_positive_rate(10_000, 0.5) == 1


def test_the_posterior():
    # even odds become at most e to 1 at epsilon 1
    assert posterior_bounds(1, 0.5) == (pytest.approx(0.268941, abs=5e-7), pytest.approx(0.731059, abs=5e-7))
    assert posterior_bounds(0, 0.2) == (pytest.approx(0.2), pytest.approx(0.2))
    assert posterior_bounds(100_000, 0.5) == (pytest.approx(0), 1.0)
    assert posterior_bounds(3, 0) == (0, 0)


def test_words():
    assert describe_epsilon(0).startswith("perfect privacy")
    assert describe_epsilon(0.1).startswith("high privacy") and "0.475021" in describe_epsilon(0.1)
    assert describe_epsilon(1).startswith("good privacy")
    assert describe_epsilon(11).startswith("close to no privacy")
    assert "10^-43429.4" in describe_epsilon(100_000) and "10^43429" in describe_epsilon(100_000)


@given(st.floats(0, 1e6), st.floats(0, 1))
def test_everything_is_a_probability(epsilon, share):
    low, high = posterior_bounds(epsilon, share)
    assert 0 <= low <= high <= 1
    assert 0 <= max_true_positive_rate(epsilon, share) <= 1
    assert max_true_positive_rate(epsilon, share) >= share - 1e-12
    assert 0 <= min_guessing_error(epsilon) <= 0.5


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "1", True])
def test_bad_epsilons(bad):
    for function in (min_guessing_error, describe_epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            function(bad)
    with pytest.raises(ParameterError, match="prior"):
        posterior_bounds(1, 2)
