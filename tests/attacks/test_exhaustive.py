"""Every candidate tried: the puzzles of three people, the theorem of 4E, and its tightness."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.attacks.counting_oracles import ExactOracle, RoundingOracle, UniformNoiseOracle
from tacit.attacks.exhaustive import all_subsets, find_consistent, reconstruct_exhaustively
from tacit.attacks.oracle import FunctionOracle
from tacit.errors import ParameterError

FIRST = [0.5, 0.5, 1.0, 1.0, 0.5, 1.5, 1.5, 2.5]
SECOND = [0.5, 0.5, 0.5, 1.5, 0.5, 1.5, 0.5, 1.5]


def digits(rows: np.ndarray) -> list[str]:
    return ["".join(str(int(bit)) for bit in row) for row in rows]


def secret(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, n]).random(n) < 0.5


def by_hand(subsets: np.ndarray, said: np.ndarray, error: float) -> list[str]:
    """The candidates by the definition, one by one."""
    found = []
    for candidate in product((0, 1), repeat=subsets.shape[1]):
        counts = [sum(c for c, chosen in zip(candidate, row, strict=True) if chosen) for row in subsets]
        if all(abs(count - number) <= error + 1e-9 for count, number in zip(counts, said, strict=True)):
            found.append("".join(map(str, candidate)))
    return found


def test_subsets_stand_in_the_order_of_binary_numbers():
    assert digits(all_subsets(2)) == ["00", "01", "10", "11"]
    assert all_subsets(12).shape == (4096, 12)


def test_the_first_puzzle_has_one_candidate():
    assert digits(find_consistent(all_subsets(3), np.array(FIRST), 0.5)) == ["110"]


def test_the_second_puzzle_has_three_survivors_and_the_truth_is_one():
    asked = iter(SECOND)
    left = reconstruct_exhaustively(FunctionOracle(lambda subset: next(asked)), 3, 0.5)
    assert digits(left.candidates) == ["001", "011", "101"]
    assert left.most_wrong == 2  # 4 times 0.5
    assert left.distances([1, 0, 1]).tolist() == [1, 2, 0]
    assert left.holds([1, 0, 1])
    assert "3 of 8 candidates survive: 001, 011, 101" in str(left)


@pytest.mark.slow
@settings(max_examples=200 if FULL else 40, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.7]), st.integers(0, 2**32))
def test_survivors_are_those_of_the_definition(n, error, seed):
    rng = np.random.default_rng(seed)
    subsets = rng.random((rng.integers(1, 12), n)) < 0.5
    said = (subsets & (rng.random(n) < 0.5)).sum(axis=1) + rng.uniform(-error, error, len(subsets))
    assert digits(find_consistent(subsets, said, error)) == by_hand(subsets, said, error)


@pytest.mark.slow
@settings(max_examples=300 if FULL else 60, deadline=None, derandomize=True)
@given(st.integers(1, 8), st.sampled_from([0, 0.25, 0.5, 1, 2]), st.integers(0, 2**32), st.booleans())
def test_no_survivor_is_farther_than_4e_from_the_truth(n, error, seed, extreme):
    # extreme: every answer is off by E exactly, up or down
    rng, truth = np.random.default_rng(seed), secret(n, seed)
    draw = (lambda: error * rng.choice([-1, 1])) if extreme else (lambda: rng.uniform(-error, error))
    left = reconstruct_exhaustively(FunctionOracle(lambda subset: (truth & subset).sum() + draw()), n, error)
    assert left.holds(truth)
    assert left.distances(truth).max() <= 4 * error
    found = left.choose_candidate(truth)
    assert n - found.right <= left.most_wrong


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.5, 1, 2])
def test_4e_is_reached(error):
    # 2E ones of the truth are zeros of the other, and 2E zeros ones. Half way between the counts is within E of both.
    n, half = 12, int(2 * error)
    truth = np.arange(n) < 6
    other = truth.copy()
    other[:half], other[6 : 6 + half] = False, True
    left = reconstruct_exhaustively(
        FunctionOracle(lambda subset: ((truth & subset).sum() + (other & subset).sum()) / 2), n, error
    )
    assert left.holds(truth)
    assert left.holds(other)
    assert left.distances(truth).max() == left.most_wrong == 4 * error


@pytest.mark.slow
def test_a_four_hundredth_of_noise_leaves_at_most_one_bit_in_a_hundred():
    # E = n/400: 4E = n/100. With 20 people 4E is 0.2, below one bit: all are found; and so with 16 people.
    n = 20 if FULL else 16
    truth = secret(n, 1)
    left = reconstruct_exhaustively(UniformNoiseOracle(truth, n / 400, np.random.default_rng(0)), n, n / 400)
    assert left.most_wrong == 0
    assert left.choose_candidate(truth).share == 1


@pytest.mark.slow
def test_twenty_people_and_few_subsets():
    # 200 of the million subsets, noise of at most 1. A wrong candidate has another count in a random subset with a
    # chance of 1/2 or more, and then survives with 1/2 at most: 2^20 (3/4)^200 < 1e-18 for all of them.
    truth = secret(20, 2)
    subsets = np.random.default_rng(3).random((200, 20)) < 0.5
    left = reconstruct_exhaustively(UniformNoiseOracle(truth, 1.0, np.random.default_rng(4)), 20, 1.0, subsets=subsets)
    assert not left.complete
    assert left.most_wrong is None
    assert left.holds(truth)
    assert digits(left.candidates) == digits(truth[np.newaxis])


@pytest.mark.parametrize("n", [3, 8, 12])
def test_true_and_rounded_counts_give_everything_away(n):
    # Rounded to even numbers is off by at most 1: 4 places by the theorem, and in fact none
    truth = secret(n, 5)
    assert digits(reconstruct_exhaustively(ExactOracle(truth), n, 0).candidates) == digits(truth[np.newaxis])
    assert reconstruct_exhaustively(RoundingOracle(truth, 2), n, 1).holds(truth)


def test_all_subsets_in_any_order_are_all_subsets():
    truth, mixed = secret(6, 6), np.random.default_rng(0).permutation(all_subsets(6))
    assert reconstruct_exhaustively(ExactOracle(truth), 6, 0, subsets=mixed).complete
    assert not reconstruct_exhaustively(ExactOracle(truth), 6, 0, subsets=mixed[1:]).complete


def test_answers_that_tell_nothing_strike_nobody_out():
    assert len(reconstruct_exhaustively(FunctionOracle(lambda subset: 2.0), 4, 2.0).candidates) == 16


def test_nobody_survives_where_the_noise_is_larger_than_said():
    left = reconstruct_exhaustively(FunctionOracle(lambda subset: 9.0), 4, 1.0)
    assert len(left.candidates) == 0
    assert not left.holds([1, 1, 1, 1])
    with pytest.raises(ParameterError, match="no candidate survives") as caught:
        left.choose_candidate()
    assert "linear" in caught.value.fix


def test_a_count_at_the_very_edge_survives():
    # 1.1 - 0.1 is 1 to anyone but a double, to which 1.1 - 1 is 0.10000000000000009
    assert digits(find_consistent(np.ones((1, 1), bool), np.array([1.1]), 0.1)) == ["1"]


def test_many_people_are_pointed_to_the_linear_attack():
    with pytest.raises(ParameterError, match="2\\^21 candidates") as caught:
        reconstruct_exhaustively(ExactOracle(secret(21, 0)), 21, 1.0)
    assert "tacit.attacks.linear" in caught.value.fix
    with pytest.raises(ParameterError):
        find_consistent(np.ones((1, 30), bool), np.ones(1), 1.0)


@pytest.mark.parametrize("error", [-1, float("nan"), float("inf"), "1"])
def test_the_error_is_a_size(error):
    with pytest.raises(ParameterError):
        reconstruct_exhaustively(ExactOracle([1, 0]), 2, error)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3"])
def test_people_are_counted(n):
    with pytest.raises(ParameterError):
        reconstruct_exhaustively(ExactOracle([1, 0]), n, 1.0)


def test_subsets_and_answers_must_fit():
    with pytest.raises(ParameterError, match="5 columns for 4 people"):
        reconstruct_exhaustively(ExactOracle(secret(5, 0)), 4, 1.0, subsets=np.ones((2, 5), bool))
    for said in (np.ones(2), np.array([np.nan])):
        with pytest.raises(ParameterError, match="one finite number for each"):
            find_consistent(np.ones((1, 3), bool), said, 1.0)
    with pytest.raises(ParameterError, match="2 bits for 3 people"):
        reconstruct_exhaustively(ExactOracle([1, 0, 1]), 3, 0).distances([1, 0])


def test_progress_goes_to_the_end():
    told: list[float] = []
    reconstruct_exhaustively(ExactOracle(secret(10, 0)), 10, 0.5, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
