"""What attacks see: true and noisy counts, and every way in which an oracle can misbehave."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.attacks.counting_oracles import (
    ExactOracle,
    GaussianNoiseOracle,
    LaplaceNoiseOracle,
    RoundingOracle,
    UniformNoiseOracle,
)
from tacit.attacks.oracle import UNKNOWN_NOISE, FunctionOracle, NoiseModel, ask_oracle, noise_model
from tacit.errors import ParameterError

SECRET = [1, 0, 1, 0, 1]
PAIR = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 1]], dtype=bool)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def many(people: int, count: int, seed: int = 0) -> np.ndarray:
    return generator(seed).integers(0, 2, (count, people), dtype=bool)


class Says:
    """An oracle that says whatever it was told to say."""

    def __init__(self, said: object) -> None:
        self.said = said

    def ask(self, subsets: np.ndarray) -> object:
        return self.said


def test_two_subsets_of_five_people():
    # 1,0,1,0,1 over the first and third: 2. Over the second, fourth and fifth: 1.
    assert ask_oracle(ExactOracle(SECRET), PAIR).tolist() == [2.0, 1.0]


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(0, 2**32))
def test_a_subset_and_the_rest_add_up_to_all(bits, seed):
    some = many(len(bits), 5, seed)
    assert (ask_oracle(ExactOracle(bits), some) + ask_oracle(ExactOracle(bits), ~some) == sum(bits)).all()


def test_rounding_is_to_the_nearest_multiple():
    # 7 of 10 people: 5 and 10 are the multiples of 5 around it, and 5 is nearer.
    assert ask_oracle(RoundingOracle([1] * 7 + [0] * 3, to=5), np.ones((1, 10), dtype=bool)).tolist() == [5.0]


@pytest.mark.parametrize("seed", range(5))
def test_bounded_oracles_keep_their_bound(seed):
    bits = many(40, 1, seed)[0]
    some = many(40, 500, seed)
    true = ask_oracle(ExactOracle(bits), some)
    for oracle in (UniformNoiseOracle(bits, 3.0, generator()), RoundingOracle(bits, 8)):
        worst = np.abs(ask_oracle(oracle, some) - true).max()
        assert 0.9 * oracle.noise.bound < worst <= oracle.noise.bound


@pytest.mark.parametrize(
    ("make", "kurtosis"),
    [
        (lambda bits: UniformNoiseOracle(bits, 6.0, generator(1)), 1.8),
        (lambda bits: GaussianNoiseOracle(bits, 6.0, generator(1)), 3.0),
        (lambda bits: LaplaceNoiseOracle(bits, 6.0, generator(1)), 6.0),
    ],
    ids=["uniform", "normal", "Laplace"],
)
def test_the_noise_has_the_deviation_that_the_oracle_says(make, kurtosis):
    # A sample variance of N draws is off by a share of sqrt((kurtosis - 1)/N) in one deviation: 0.005 for Laplace at
    # N = 200,000. Seven deviations are rarer than 1e-11; a scale off by a tenth is off by 0.19 or more.
    bits, size = [1, 0, 1], 200_000
    oracle, some = make(bits), many(3, size)
    noise = ask_oracle(oracle, some) - ask_oracle(ExactOracle(bits), some)
    allowed = 7 * np.sqrt((kurtosis - 1) / size)
    ratio = float(np.mean(noise**2)) / oracle.noise.deviation**2
    assert abs(ratio - 1) < allowed < 0.19
    assert abs(ratio / 1.1**2 - 1) > allowed


def test_any_function_is_an_oracle():
    oracle = FunctionOracle(lambda subset: Fraction(int(subset.sum()), 2))
    assert ask_oracle(oracle, PAIR).tolist() == [1.0, 1.5]
    assert noise_model(oracle) is UNKNOWN_NOISE


def test_what_an_oracle_says_of_its_noise():
    assert noise_model(ExactOracle(SECRET)).bound == 0
    assert str(noise_model(UniformNoiseOracle(SECRET, 2, generator()))) == "uniform noise of at most 2"
    assert noise_model(Says([1.0])) is UNKNOWN_NOISE
    odd = Says([1.0])
    odd.noise = "plenty"
    assert noise_model(odd) is UNKNOWN_NOISE
    assert noise_model(FunctionOracle(len, NoiseModel("a law of its own", bound=3.0))).bound == 3


@pytest.mark.parametrize(
    "said",
    [[2, 1], (2.0, 1.0), np.array([2, 1], dtype=np.uint8), [Decimal(2), Fraction(1)], np.array([2, 1], dtype=object)],
    ids=["list", "tuple", "bytes", "exact", "objects"],
)
def test_numbers_of_any_kind_are_answers(said):
    assert ask_oracle(Says(said), PAIR).tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([1.0, float("nan")], "answer 1 is NaN"),
        ([float("inf"), 1.0], "answer 0 is not a number of people: inf"),
        ([1.0, -float("inf")], "answer 1 is not a number of people: -inf"),
        ([1.0, 1e200], "answer 1 is not a number of people: 1e"),
        ([1.0], "1 answers to 2 subsets"),
        ([], "0 answers to 2 subsets"),
        ([1.0, 2.0, 3.0], "3 answers to 2 subsets"),
        ([[1.0, 2.0], [3.0, 4.0]], "shape (2, 2) to 2 subsets"),
        (7.0, "shape () to 2 subsets"),
        ([[1.0], [2.0, 3.0]], "not all numbers"),
        (None, "not all numbers"),
        ([1.0, None], "not all numbers"),
        ([10**400, 1], "not all numbers"),
        ("12", "gave str"),
        (["1", "2"], "where numbers are needed"),
        ([True, False], "gave bool"),
        ([1j, 2.0], "gave complex128"),
        ({1: 2}, "not all numbers"),
    ],
    ids=str,
)
def test_what_is_no_answer_is_refused_in_words(said, words):
    with pytest.raises(ParameterError) as caught:
        ask_oracle(Says(said), PAIR)
    assert caught.value.name == "oracle"
    assert words in caught.value.what
    assert caught.value.fix


def test_a_raising_oracle_is_named_and_its_cause_kept():
    def budget(subset):
        raise RuntimeError("the budget is spent")

    with pytest.raises(ParameterError, match="RuntimeError: the budget is spent") as caught:
        ask_oracle(FunctionOracle(budget), PAIR)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_interrupt_is_not_swallowed():
    def stop(subset):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_oracle(FunctionOracle(stop), PAIR)


def test_an_oracle_without_ask_is_refused():
    with pytest.raises(ParameterError, match="has no method ask"):
        ask_oracle(SECRET, PAIR)  # type: ignore[arg-type]


def test_an_oracle_cannot_change_the_subsets():
    def meddle(subset):
        subset[:] = False
        return 0

    some = PAIR.copy()
    with pytest.raises(ParameterError, match="read-only"):
        ask_oracle(FunctionOracle(meddle), some)
    assert (some == PAIR).all()


@pytest.mark.parametrize("wrong", [np.zeros((0, 5), bool), PAIR[0], PAIR.astype(int), [[1, 0], [0, 1]]], ids=repr)
def test_subsets_are_a_table_of_bits(wrong):
    with pytest.raises(ParameterError, match="table of bits"):
        ask_oracle(ExactOracle(SECRET), wrong)


def test_people_and_columns_must_agree():
    with pytest.raises(ParameterError, match="there are 3 people"):
        ask_oracle(ExactOracle([1, 0, 1]), PAIR)


@pytest.mark.parametrize("bits", [[], [0, 2], [0.5], "101", [[0, 1]], [None], [[0], [1, 1]], [float("nan")]], ids=repr)
def test_secrets_are_bits(bits):
    with pytest.raises(ParameterError, match="list of bits"):
        ExactOracle(bits)


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), "2", True])
def test_noise_is_of_a_positive_size(size):
    for make in (
        lambda: RoundingOracle(SECRET, size),
        lambda: UniformNoiseOracle(SECRET, size, generator()),
        lambda: GaussianNoiseOracle(SECRET, size, generator()),
        lambda: LaplaceNoiseOracle(SECRET, size, generator()),
    ):
        with pytest.raises(ParameterError):
            make()


def test_progress_is_told_from_block_to_block_and_changes_no_answer():
    told: list[float] = []
    some = many(5, 333)
    with_progress = ask_oracle(GaussianNoiseOracle(SECRET, 2.0, generator()), some, told.append)
    assert (with_progress == ask_oracle(GaussianNoiseOracle(SECRET, 2.0, generator()), some)).all()
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 20


def test_errors_are_data():
    with pytest.raises(ParameterError) as caught:
        ask_oracle(Says([1.0]), PAIR)
    assert json.dumps({"code": caught.value.code, "what": caught.value.what})
