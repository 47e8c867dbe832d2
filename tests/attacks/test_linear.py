"""Reconstruction by fitting: the formula of least squares, each method on its noise, and each fit at its optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from tests.support.counts import FULL

from tacit.attacks import fit
from tacit.attacks.counting_oracles import (
    ExactOracle,
    GaussianNoiseOracle,
    LaplaceNoiseOracle,
    RoundingOracle,
    UniformNoiseOracle,
)
from tacit.attacks.differencing import reconstruct_leaving_one_out
from tacit.attacks.exhaustive import reconstruct_exhaustively
from tacit.attacks.linear import choose_method, expected_accuracy, random_subsets, reconstruct, subsets_and_complements
from tacit.attacks.oracle import FunctionOracle
from tacit.attacks.recovered import max_expected_accuracy
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.privacy.unit import Neighbors

pytestmark = pytest.mark.slow


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 1])


def secret(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 2]).random(n) < 0.5


def problem(m: int, n: int, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = generator(seed)
    rows = rng.integers(0, 2, (m, n), dtype=np.int8)
    return rows, rows @ secret(n, seed) + rng.normal(0, sigma, m)


def test_the_formula():
    # sqrt(6000)/(4 * 0.5 sqrt(2000)) = 0.8660, and Phi(0.8660) = 0.8068
    assert expected_accuracy(2000, 8000, 0.5 * math.sqrt(2000)) == pytest.approx(0.8068, abs=1e-4)


def test_least_squares_gets_the_share_of_the_formula():
    # Share of bits: a deviation of sqrt(0.807 * 0.193/(n seeds)). Two seeds of 500: 0.0125, and 0.08 is 6.4 of them,
    # rarer than 1e-9. Ten seeds of 2,000: 0.0028, and 0.03 is 10 of them. Both reject noise of 1.5 times the size,
    # which gives Phi(0.577) = 0.718.
    n, seeds, allowed = (2000, 10, 0.03) if FULL else (500, 2, 0.08)
    sigma = 0.5 * math.sqrt(n)
    shares = []
    for seed in range(seeds):
        truth = secret(n, seed)
        oracle = GaussianNoiseOracle(truth, sigma, generator(seed))
        shares.append(reconstruct(oracle, n, 4 * n, method="least-squares", seed=seed, truth=truth).share)
    assert abs(np.mean(shares) - expected_accuracy(n, 4 * n, sigma)) < allowed
    assert abs(np.mean(shares) - expected_accuracy(n, 4 * n, 1.5 * sigma)) > allowed


@pytest.mark.parametrize("method", ["least-squares", "box", "linear-program", "minimax"])
def test_true_counts_give_everything_away(method):
    # As many questions as people and a few more: the equations have one solution
    truth = secret(60, 0)
    found = reconstruct(ExactOracle(truth), 60, 80, method=method, truth=truth)
    assert found.share == 1
    assert found.blatant


def test_the_box_needs_fewer_questions_than_people():
    # Among the solutions of 80 equations in 100 unknowns only the truth lies in the box
    truth = secret(100, 3)
    assert reconstruct(ExactOracle(truth), 100, 80, method="minimax", truth=truth).share == 1
    assert reconstruct(ExactOracle(truth), 100, 80, method="least-squares", truth=truth).share < 1


def test_bounded_noise_of_half_the_root_of_n_hides_nothing_from_three_hundred():
    # Uniform noise of at most 0.5 sqrt(300) = 8.7 on 1,200 counts. Most that is expected under epsilon = 1: 0.731.
    truth = secret(300, 1)
    found = reconstruct(UniformNoiseOracle(truth, 0.5 * math.sqrt(300), generator(1)), 300, 1200, truth=truth)
    assert found.method == "minimax"
    assert found.blatant
    assert found.interval[0] > max_expected_accuracy(1.0, Neighbors.ADD_REMOVE)


def test_a_tenth_of_wild_answers_does_not_stop_the_linear_program():
    # Nine answers in ten are true, the others off by hundreds: the least absolute residuals are those of the truth
    truth, rng = secret(300, 2), generator(2)
    oracle = FunctionOracle(lambda subset: (truth & subset).sum() + (rng.random() < 0.1) * rng.normal(0, 500))
    found = reconstruct(oracle, 300, 1200, truth=truth)
    assert found.method == "linear program"
    assert found.share == 1


def test_wild_answers_do_stop_least_squares():
    # The same noise: deviation 158, and Phi(sqrt(900)/(4 * 158)) = 0.519
    truth, rng = secret(300, 2), generator(2)
    oracle = FunctionOracle(lambda subset: (truth & subset).sum() + (rng.random() < 0.1) * rng.normal(0, 500))
    assert reconstruct(oracle, 300, 1200, method="least-squares", truth=truth).share < 0.7


@pytest.mark.parametrize(
    ("make", "chosen"),
    [
        (lambda bits, rng: ExactOracle(bits), "minimax"),
        (lambda bits, rng: RoundingOracle(bits, 10), "minimax"),
        (lambda bits, rng: GaussianNoiseOracle(bits, 4.0, rng), "box"),
        (lambda bits, rng: LaplaceNoiseOracle(bits, 4.0, rng), "linear program"),
        (lambda bits, rng: FunctionOracle(lambda subset: (bits & subset).sum() + rng.uniform(-6, 6)), "minimax"),
        (
            lambda bits, rng: FunctionOracle(lambda subset: (bits & subset).sum()),
            "box",
        ),  # no residuals to tell anything
    ],
    ids=["true", "rounded", "normal", "Laplace", "uniform, unsaid", "true, unsaid"],
)
def test_the_method_is_chosen_by_the_noise(make, chosen):
    # 1,000 residuals of 100 people: the excess kurtosis has an error of sqrt(24/1000)/0.81 = 0.19, and the marks at
    # -0.6 and 1 are 3 and 5 of these from normal, 3 from uniform. The seeds are fixed.
    truth = secret(100, 4)
    found = reconstruct(make(truth, generator(4)), 100, 1000, truth=truth)
    assert found.method == chosen
    assert found.share > 0.9


def test_a_known_deviation_is_taken_for_normal_noise():
    truth = secret(50, 5)
    found = reconstruct(FunctionOracle(lambda subset: (truth & subset).sum()), 50, 200, sigma=2.0, truth=truth)
    assert found.method == "box"
    assert found.noise == "noise of deviation 2"


def test_few_residuals_choose_nothing():
    rows = np.ones((20, 10), dtype=np.int8)
    assert choose_method(rows, np.array([100.0] + [0.1] * 19)) == "box"


def test_differences_are_blind_to_a_shared_error():
    # Every answer is 40 too large: plain subsets put the surplus somewhere, differences cancel it
    truth = secret(80, 6)
    biased = FunctionOracle(lambda subset: (truth & subset).sum() + 40)
    assert reconstruct(biased, 80, 400, method="box", design="differences", truth=truth).share == 1
    assert reconstruct(biased, 80, 400, method="box", truth=truth).share < 1


def test_complements_stand_beside_their_subsets():
    pairs = subsets_and_complements(9, 7, generator(0))
    assert pairs.shape == (6, 9)
    assert (pairs[0::2] ^ pairs[1::2]).all()


def test_subsets_are_fair():
    # 200,000 bits: a deviation of 0.0011; 0.008 is 7 of them, rarer than 1e-11
    assert abs(random_subsets(200, 1000, generator(0)).mean() - 0.5) < 0.008


def test_the_same_seed_asks_the_same_questions():
    truth = secret(40, 7)
    for seed in (0, 1):
        one, two = (reconstruct(GaussianNoiseOracle(truth, 9, generator(0)), 40, 90, seed=seed) for _ in range(2))
        assert (one.guess == two.guess).all()


def test_noise_that_drowns_the_counts_leaves_a_coin():
    # sigma = 100 sqrt(n): Phi(0.004) = 0.502. 400 bits: a deviation of 0.025, and 0.16 is 6.4 of them, rarer than 1e-9.
    # Power: noise of 0.5 sqrt(n) would give 0.807.
    truth = secret(400, 8)
    found = reconstruct(GaussianNoiseOracle(truth, 100 * 20.0, generator(8)), 400, 1600, method="box", truth=truth)
    assert abs(found.share - 0.5) < 0.16
    assert not found.blatant


@settings(max_examples=60 if FULL else 15, deadline=None, derandomize=True)
@given(st.integers(1, 25), st.integers(1, 60), st.floats(0, 5), st.integers(0, 1000))
def test_box_is_where_no_step_inside_the_box_helps(n, m, sigma, seed):
    # The gradient is 0 inside, points out at the upper end and in at the lower one: enough, for the problem is convex.
    rows, said = problem(m, n, sigma, seed)
    x = fit.bounded_least_squares(rows, said)
    slope = rows.T.astype(float) @ (rows @ x - said) / m
    assert ((x >= 0) & (x <= 1)).all()
    inside = (x > 1e-4) & (x < 1 - 1e-4)
    assert np.abs(slope[inside]).max(initial=0) < 1e-3
    assert slope[x <= 1e-4].min(initial=0) > -1e-3
    assert slope[x >= 1 - 1e-4].max(initial=0) < 1e-3


def test_box_agrees_with_another_solver():
    rows, said = problem(120, 40, 6.0, 9)
    other = lsq_linear(rows.astype(float), said, (0, 1), tol=1e-12).x
    assert np.abs(fit.bounded_least_squares(rows, said) - other).max() < 1e-4


@settings(max_examples=60 if FULL else 15, deadline=None, derandomize=True)
@given(st.integers(1, 20), st.integers(1, 50), st.floats(0, 5), st.integers(0, 1000))
def test_least_squares_leaves_residuals_that_no_column_explains(n, m, sigma, seed):
    rows, said = problem(m, n, sigma, seed)
    left = said - rows @ fit.least_squares(rows, said)
    assert np.abs(rows.T @ left).max() < 1e-6


def test_of_many_least_squares_the_nearest_to_a_half_is_taken():
    # One sum of three people is 2: each is 2/3, not 2, 0, 0
    rows = np.array([[1, 1, 1]], dtype=np.int8)
    assert fit.least_squares(rows, np.array([2.0])) == pytest.approx([2 / 3] * 3)
    twice = np.repeat(rows, 4, axis=0)  # four rows that say the same leave the normal equations singular
    assert fit.least_squares(twice, np.full(4, 2.0)) == pytest.approx([2 / 3] * 3)


@settings(max_examples=40 if FULL else 10, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.integers(1, 40), st.floats(0, 5), st.integers(0, 1000))
def test_linear_programs_beat_every_other_point_of_the_box(n, m, sigma, seed):
    rows, said = problem(m, n, sigma, seed)
    others = [*generator(seed).random((50, n)), fit.bounded_least_squares(rows, said), secret(n, seed)]
    for solve, size in ((fit.least_absolute_deviations, np.sum), (fit.least_maximum_residual, np.max)):
        x = solve(rows, said)
        assert x.min() >= -1e-9
        assert x.max() <= 1 + 1e-9
        best = size(np.abs(said - rows @ x))
        assert all(best <= size(np.abs(said - rows @ other)) + 1e-5 for other in others)


def test_the_sum_of_absolute_residuals_is_least_at_the_median():
    # One person asked five times: 0.1, 0.2, 0.7, 0.8, 5. The median is 0.7; the middle of the ends is cut to 1.
    rows, said = np.ones((5, 1), dtype=np.int8), np.array([0.1, 0.2, 0.7, 0.8, 5.0])
    assert fit.least_absolute_deviations(rows, said) == pytest.approx([0.7])
    assert fit.least_maximum_residual(rows, said) == pytest.approx([1.0])
    assert fit.least_squares(rows, said) == pytest.approx([1.36])


@pytest.mark.parametrize("method", ["auto", "least-squares", "box", "linear-program", "minimax"])
def test_progress_goes_to_the_end(method):
    told: list[float] = []
    reconstruct(ExactOracle(secret(20, 0)), 20, 60, method=method, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 10


@pytest.mark.parametrize("method", ["auto", "least-squares", "box", "linear-program", "minimax"])
@pytest.mark.parametrize(("n", "queries"), [(1, 1), (1, 5), (5, 1), (3, 3)])
def test_the_smallest_problems_are_solved(method, n, queries):
    found = reconstruct(ExactOracle([1] * n), n, queries, method=method, truth=[1] * n)
    assert found.people == n
    assert found.queries == queries


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"n": 0}, "n"),
        ({"n": 2.5}, "n"),
        ({"queries": 0}, "queries"),
        ({"queries": 10**12}, "queries"),
        ({"method": "magic"}, "method"),
        ({"method": None}, "method"),
        ({"design": "all"}, "design"),
        ({"sigma": -1}, "sigma"),
        ({"sigma": float("nan")}, "sigma"),
        ({"seed": -1}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"truth": [1, 0]}, "truth"),
        ({"truth": [1, 0, 2]}, "truth"),
        ({"oracle": FunctionOracle(lambda subset: math.nan)}, "oracle"),
        ({"oracle": FunctionOracle(lambda subset: "many")}, "oracle"),
        ({"oracle": ExactOracle([1, 0])}, "oracle"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_parameters_are_named(wrong, name):
    right = {"oracle": ExactOracle([1, 0, 1]), "n": 3, "queries": 8}
    with pytest.raises(ParameterError) as caught:
        reconstruct(**{**right, **wrong})
    assert caught.value.name == name
    assert caught.value.fix


@pytest.mark.parametrize(("n", "queries", "sigma"), [(5, 5, 1.0), (5, 4, 1.0), (5, 9, 0.0), (0, 9, 1.0)])
def test_the_formula_is_for_more_questions_than_people_and_some_noise(n, queries, sigma):
    with pytest.raises(ParameterError):
        expected_accuracy(n, queries, sigma)


class Paid:
    """True counts, until the budget is spent; a repeat is free where `remembers`."""

    def __init__(self, bits: np.ndarray, budget: int, remembers: bool = False) -> None:
        self.bits, self.left, self.known = bits, budget, {} if remembers else None

    def __call__(self, subset: np.ndarray) -> int:
        key = subset.tobytes()
        if self.known is not None and key in self.known:
            return self.known[key]
        if not self.left:
            raise Refused(ErrorCode.BUDGET, "0.1 is asked for, and nothing is left")
        self.left -= 1
        found = int(np.count_nonzero(self.bits & subset))
        if self.known is not None:
            self.known[key] = found
        return found

    def ask(self, subsets: np.ndarray) -> np.ndarray:
        return np.array([self(subset) for subset in subsets])


@pytest.mark.parametrize("progress", [None, lambda share: None], ids=["at once", "in blocks"])
@pytest.mark.parametrize("design", ["subsets", "differences"])
@pytest.mark.parametrize("method", ["auto", "least-squares", "box", "linear-program", "minimax"])
def test_what_was_answered_before_the_budget_ended_is_used(method, design, progress):
    # 151 true counts about 60 people give all bits away, also as 75 differences.
    truth = secret(60, 3)
    oracle = FunctionOracle(Paid(truth, 151))
    found = reconstruct(oracle, 60, 600, method=method, design=design, truth=truth, progress=progress)
    assert found.share == 1
    assert (found.queries, found.planned) == (151, 600)
    assert found.stopped == "0.1 is asked for, and nothing is left"
    assert "from 151 answers" in str(found) and "(151 of 600 questions were answered, then the" in str(found)
    assert found.to_dict()["stopped"] == found.stopped


def test_an_oracle_that_is_asked_for_many_at_once_is_asked_again_one_by_one():
    # As a curator that stores its answers: those of the block that was refused are repeats.
    truth = secret(60, 3)
    assert reconstruct(Paid(truth, 151, remembers=True), 60, 600, truth=truth).queries == 151
    with pytest.raises(Refused, match="nothing is left"):
        reconstruct(Paid(truth, 151), 60, 600, truth=truth)


def test_a_budget_for_nothing_and_other_refusals_end_the_attack():
    truth = secret(10, 3)
    with pytest.raises(Refused, match="nothing is left"):
        reconstruct(FunctionOracle(Paid(truth, 0)), 10, 40)
    with pytest.raises(Refused, match="nothing is left"):
        reconstruct(FunctionOracle(Paid(truth, 1)), 10, 40, design="differences")

    def busy(subset):
        raise Refused(ErrorCode.SYNTAX, "no SELECT")

    with pytest.raises(ParameterError, match="no SELECT"):
        reconstruct(FunctionOracle(busy), 10, 40)


def test_the_other_attacks_keep_their_answers_too():
    truth = np.array([1, 1, 1, 0, 1, 0, 1, 1], dtype=bool)
    found = reconstruct_leaving_one_out(FunctionOracle(Paid(truth, 5)), 8, truth=truth)
    assert (found.queries, found.planned, found.guess[:4].tolist()) == (5, 9, truth[:4].tolist())
    assert found.guess[4:].all()  # what most are
    assert found.stopped
    kept = reconstruct_exhaustively(FunctionOracle(Paid(truth, 200)), 8, 0)
    assert (kept.queries, kept.complete, kept.most_wrong) == (200, False, None)
    assert "200 of 256 questions were answered, then: 0.1 is asked for" in str(kept)
    assert kept.holds(truth)
    assert kept.choose_candidate(truth).stopped
