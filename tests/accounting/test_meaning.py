"""What a guarantee means to a person."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.meaning import game_error, log_game_error, posterior, shown_error, true_positive_rate, words
from tacit.errors import ParameterError


@pytest.mark.parametrize(
    ("epsilon", "error"), [(0, 0.5), (0.1, 0.475021), (1, 0.268941), (5, 0.006693), (10, 0.0000454)]
)
def test_the_game(epsilon, error):
    assert game_error(epsilon) == pytest.approx(error, abs=5e-7)  # 1/(e^epsilon + 1)


def test_the_game_in_logarithms():
    # 100,000/ln 10 = 43429.4: no overflow
    assert log_game_error(100_000) / math.log(10) == pytest.approx(-43429.4, abs=0.05)
    assert shown_error(100_000) == "10^-43429.4"
    assert game_error(100_000) == 0.0
    assert shown_error(1) == "0.268941"
    assert shown_error(10) == "4.54e-05"


def test_delta_in_the_game():
    assert game_error(0, 0.1) == pytest.approx(0.45)  # (1 - 0.1)/2
    assert game_error(1, 1) == 0.0


def test_an_attack_with_few_false_alarms():
    # At epsilon 1 an attack that wrongly accuses 1 % finds at most e % of the members.
    assert true_positive_rate(1, 0.01) == pytest.approx(0.0271828)
    assert true_positive_rate(1, 0.01, 0.001) == pytest.approx(0.0281828)
    assert true_positive_rate(0, 0.3) == pytest.approx(0.3)
    assert true_positive_rate(5, 0.5) == pytest.approx(1 - 0.5 / math.exp(5))  # the other inequality
    assert true_positive_rate(10_000, 0.5) == 1


def test_the_posterior():
    # even odds become at most e to 1 at epsilon 1
    assert posterior(1, 0.5) == (pytest.approx(0.268941, abs=5e-7), pytest.approx(0.731059, abs=5e-7))
    assert posterior(0, 0.2) == (pytest.approx(0.2), pytest.approx(0.2))
    assert posterior(100_000, 0.5) == (pytest.approx(0), 1.0)
    assert posterior(3, 0) == (0, 0)


def test_words():
    assert words(0).startswith("perfect privacy")
    assert words(0.1).startswith("high privacy") and "0.475021" in words(0.1)
    assert words(1).startswith("good privacy")
    assert words(11).startswith("close to no privacy")
    assert "10^-43429.4" in words(100_000) and "10^43429" in words(100_000)


@given(st.floats(0, 1e6), st.floats(0, 1))
def test_everything_is_a_probability(epsilon, share):
    low, high = posterior(epsilon, share)
    assert 0 <= low <= high <= 1
    assert 0 <= true_positive_rate(epsilon, share) <= 1
    assert true_positive_rate(epsilon, share) >= share - 1e-12
    assert 0 <= game_error(epsilon) <= 0.5


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "1", True])
def test_bad_epsilons(bad):
    for function in (game_error, words):
        with pytest.raises(ParameterError, match="epsilon"):
            function(bad)
    with pytest.raises(ParameterError, match="prior"):
        posterior(1, 2)
