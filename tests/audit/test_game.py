"""The game, played."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support.counts import FULL

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import clopper_pearson_interval
from tacit.audit.game import GameResult, play_game, plot_games
from tacit.audit.zoo import ZOO, specimen
from tacit.errors import ParameterError

pytestmark = pytest.mark.slow

ROUNDS = 1_000_000 if FULL else 40_000


def coin(data, size, rng):
    return data ^ (rng.random(size) < 0.25)


def within(played, truth, miss=1e-9):
    # by Hoeffding's bound the share is off by more than sqrt(ln(2/miss)/(2 n)) with probability miss at most
    return abs(played.error - truth) <= math.sqrt(math.log(2 / miss) / (2 * played.rounds))


def test_randomized_response_is_guessed_as_well_as_its_epsilon_allows():
    # truth with 3/4, epsilon = ln 3: the best guess is the answer itself, wrong with 1/(e^epsilon + 1) = 1/4
    played = play_game(coin, 1, 0, rounds=ROUNDS)
    assert within(played, 0.25)
    assert not within(played, 0.275)  # a tenth off is told apart
    assert played.low < 0.25 < played.high and played.guess == "output = 1"


def test_noise_on_a_count_is_guessed_as_well_as_its_epsilon_allows():
    # discrete Laplace at epsilon 1: "at most 0" is wrong with q/(1 + q) = 1/(e + 1) either way
    each = specimen("discrete-laplace")
    assert within(play_game(each.mechanism, each.one, each.other, rounds=ROUNDS), min_guessing_error(1))


def test_vectors_and_texts_are_guessed_too():
    # noise reused: the difference of the two tells all; keys: wrong where measles stay hidden, 1/(1 + e) of half
    each = specimen("noise-reused")
    assert play_game(each.mechanism, each.one, each.other).error < 0.01
    each = specimen("keys-without-selection")
    assert within(play_game(each.mechanism, each.one, each.other, rounds=ROUNDS), min_guessing_error(1) / 2)


def test_what_says_nothing_is_a_blind_guess():
    # 1e-9
    played = play_game(lambda data, size, rng: rng.integers(9, size=size), 0, 1, rounds=ROUNDS)
    assert within(played, 0.5)


@pytest.mark.parametrize(
    "each", [each for each in ZOO if each.sound and each.claim.name == "epsilon"], ids=lambda x: x.name
)
def test_nobody_errs_less_than_epsilon_allows(each):
    # the true error is at least the bound, so the share is below it by more than Hoeffding's width with 1e-9 at most
    played = play_game(each.mechanism, each.one, each.other, rounds=10_000, seed=2)
    least = min_guessing_error(each.claim.value, each.claim.delta)
    assert played.error >= least - math.sqrt(math.log(1e9) / (2 * played.rounds))


def test_a_wrong_claim_is_seen_in_the_game():
    # scale 50 on a sum that moves by 100, claimed 1: the error is about 0.18, below the 0.2689 that 1 allows
    each = specimen("narrow-mean")
    assert play_game(each.mechanism, each.one, each.other).high < min_guessing_error(each.claim.value)


def test_one_output_a_call_is_enough():
    rng = np.random.default_rng(1)
    played = play_game(lambda data: bool(data) ^ bool(rng.random() < 0.25), 1, 0, rounds=4000)
    assert played.rounds == 4000 and within(played, 0.25)


def test_the_same_seed_is_the_same_game():
    assert play_game(coin, 1, 0, rounds=500, seed=3) == play_game(coin, 1, 0, rounds=500, seed=3)
    assert play_game(coin, 1, 0, rounds=500, seed=3) != play_game(coin, 1, 0, rounds=500, seed=4)


def test_the_interval_is_clopper_and_pearsons():
    # no errors in n rounds: 1 - 0.005^(1/n); all wrong: the mirror image
    assert clopper_pearson_interval(0, 100) == (0.0, pytest.approx(1 - 0.005**0.01))
    assert clopper_pearson_interval(100, 100) == (pytest.approx(0.005**0.01), 1.0)
    # 25 of 100 at 99 %: P(B(100, low) >= 25) = P(B(100, high) <= 25) = 0.005
    low, high = clopper_pearson_interval(25, 100)
    tails = [
        sum(math.comb(100, k) * p**k * (1 - p) ** (100 - k) for k in ks)
        for p, ks in ((low, range(25, 101)), (high, range(26)))
    ]
    assert tails == pytest.approx([0.005, 0.005])


def test_a_game_is_told_in_words_and_in_plain_values():
    played = GameResult(1000, 250, 0.2157, 0.2869, "output = 1")
    assert str(played).startswith("250 of 1,000 guesses were wrong: 0.2500, between 0.2157 and 0.2869")
    assert played.to_dict()["error"] == 0.25


@pytest.mark.parametrize("rounds", [0, 99, 1.5, None])
def test_too_few_rounds_are_an_error(rounds):
    with pytest.raises(ParameterError, match="rounds"):
        play_game(coin, 1, 0, rounds=rounds)


def test_a_mechanism_that_raises_is_told():
    with pytest.raises(ParameterError, match="mechanism"):
        play_game(lambda data: 1 / 0, 1, 0)


def test_the_picture_is_drawn_and_has_the_curve(tmp_path):
    pytest.importorskip("matplotlib")
    played = plot_games(tmp_path / "game.svg", epsilons=(0.5, 1.0, 2.0), rounds=2000)
    assert "<svg" in (tmp_path / "game.svg").read_text()
    assert within(played["noise on a count"][1.0], min_guessing_error(1))
    assert played["half the noise on a count: refuted"][2.0].high < min_guessing_error(2)
    assert played["exponential mechanism, two candidates"][2.0].low > min_guessing_error(2)
    with pytest.raises(ParameterError, match="epsilon"):
        plot_games(tmp_path / "game.svg", epsilons=(0.0, 1.0))
