"""The noise of trees: its account by two accountants, its distributions, and what one row moves, by brute force."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.support.counts import FULL

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn.noise import GridGaussian
from tacit.learn.sums import quantize
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_losses import LogisticTreeLoss, MultinomialTreeLoss, SquaredTreeLoss, join_moments
from tacit.learn.tree_release import TreeReleases, find_rho, quantize_residuals
from tacit.learn.tree_splits import list_candidates, score_candidates
from tacit.mechanisms.exponential import Exponential
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

LOSSES = [LogisticTreeLoss(), MultinomialTreeLoss(3), MultinomialTreeLoss(10), SquaredTreeLoss()]


def plan(epsilon=1, delta=1e-6, **more):
    facts = {"trees": 4, "depth": 2, "outputs": 1, "most_leaves": 16, "neighbors": Neighbors.ADD_REMOVE}
    return TreeReleases.calibrate(Fraction(epsilon), Fraction(delta), **{**facts, **more})


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, 50])
@pytest.mark.parametrize("trees", [1, 30])
def test_the_loss_is_within_epsilon_and_delta_and_not_far_below(epsilon, trees, neighbors):
    found = plan(epsilon, trees=trees, neighbors=neighbors).privacy_loss
    spent = epsilon_delta.epsilon(found, 1e-6, by="zcdp")
    assert 0.9999 * epsilon < spent <= epsilon
    assert epsilon_delta.epsilon(found, 1e-6, by="renyi") <= epsilon * (1 + 1e-6)


@pytest.mark.slow
def test_privacy_loss_distributions_agree():
    # another accountant, which takes no detour by rho: no more, and at most a tenth less
    found = plan(1, trees=10).privacy_loss
    assert 0.9 < epsilon_delta.epsilon(found, 1e-6, by="pld") <= 1


def test_rho_is_the_largest():
    rho = find_rho(Fraction(1), Fraction(1, 10**6))
    # rho + 2 sqrt(rho ln(1/delta)) is the usual bound of the epsilon, which the one that is used is below
    assert 1 < float(rho) + 2 * math.sqrt(float(rho) * math.log(1e6)) < 1.2
    assert epsilon_delta.epsilon(plan(trees=1).privacy_loss, 1e-6, by="zcdp") > 0.9999


def test_rules_at_random_cost_nothing():
    drawn = plan(depth=3, share=Fraction(0))
    assert drawn.choice is None and drawn.noise.sigma < plan(depth=3).noise.sigma
    assert epsilon_delta.epsilon(drawn.privacy_loss, 1e-6, by="zcdp") > 0.9999


def test_a_delta_of_zero_is_refused():
    with pytest.raises(ParameterError, match="delta") as caught:
        plan(delta=0)
    assert caught.value.fix.startswith("delta=1e-9")


def moments_of(loss, score, label):
    if isinstance(loss, SquaredTreeLoss):
        return loss.moments(np.array([[score]]), np.array([np.tanh(label - 1.0)]))
    scores = np.full((1, loss.outputs), 0.0)
    scores[0, 0] = score
    return loss.moments(scores, np.array([label % max(2, loss.outputs)]))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_no_row_has_more_than_its_bounds(loss):
    most = 1 if loss.outputs == 1 else 2
    for score, label in itertools.product([0.0, 1e-3, 0.4, -0.4, 3.0, -3.0, 800.0, -800.0, 1e308], range(4)):
        residuals, curvatures = moments_of(loss, score, label)
        assert np.abs(residuals).sum() <= most * (1 + 1e-12) and 0 <= curvatures[0] <= 1 + 1e-12
        joined = join_moments(loss, residuals, curvatures)
        assert np.linalg.norm(joined) <= 1 + 1e-12
        # what is released has these bounds exactly, in whole units
        assert (quantize(joined, 1.0) ** 2).sum() <= 4**20
        assert np.abs(quantize_residuals(residuals, most)).sum() <= most * 2**20


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_rows_moments_depend_on_no_other_row(loss):
    # to the last bit, wherever the row stands: else one row more could move the residuals of all others
    draw = np.random.default_rng(8)
    scores = draw.normal(0, 4, (997, loss.outputs))
    labels = (
        draw.uniform(-1, 1, 997) if isinstance(loss, SquaredTreeLoss) else draw.integers(0, max(2, loss.outputs), 997)
    )
    whole = join_moments(loss, *loss.moments(scores, labels))
    for start, stop in [(1, 997), (2, 997), (3, 900), (5, 500), (7, 20), (11, 12), (0, 996), (64, 129)]:
        part = join_moments(loss, *loss.moments(scores[start:stop], labels[start:stop]))
        assert np.array_equal(part, whole[start:stop])
    order = draw.permutation(997)
    assert np.array_equal(join_moments(loss, *loss.moments(scores[order], labels[order])), whole[order])


def largest_move(moments, relation, cut=quantize):
    """The most that the sums of two leaves move in L2, over tables of up to two rows; the square, in units."""
    rows = [(leaf, cut(np.array([moment]), 1.0)[0]) for leaf in range(2) for moment in moments]
    sums = np.array([[(leaf == place) * row for place in range(2)] for leaf, row in rows]).reshape(len(rows), -1)
    moves = sums if relation == "add-remove" else (sums[:, None] - sums[None]).reshape(-1, sums.shape[1])
    return (moves**2).sum(axis=1).max()


def test_one_row_moves_the_sums_of_leaves_by_one_in_l2_and_a_replacement_by_two():
    turns = [(math.cos(turn), math.sin(turn)) for turn in np.linspace(0, 2 * math.pi, 101)]
    wild = [*turns, (1.0, 0.0), (-1.0, 0.0), (1.1, 0.0), (3.0, 4.0), (1e308, -1e308), (np.nan, np.inf)]
    assert largest_move(wild, "add-remove") == 4**20
    assert largest_move(wild, "replace") == 4 * 4**20

    def rounded(vectors, bound):  # to the nearest unit in place of toward zero: off by one
        return np.rint(np.clip(np.nan_to_num(vectors), -1, 1) * 2**20 / bound)

    assert largest_move(turns, "add-remove", rounded) > 4**20


def chances(scores, factor):
    powers = np.exp((scores - scores.max()) * float(factor))
    return powers / powers.sum()


@pytest.mark.slow
def test_rules_are_chosen_by_the_exponential_mechanism():
    # 8 rows, of which the upper half has other residuals. The frequencies of n choices are off by more than
    # 6 sqrt(p (1 - p)/n) with probability below 2e-9 a candidate, and the law with twice the epsilon is off by more.
    bins = ColumnBins.of([0.0], [8.0], most=4)
    places = bins.read(np.arange(8.0)[:, None])
    residuals = np.array([[-1.0]] * 4 + [[0.5]] * 4)
    count = 4_000 if FULL else 1_000
    releases = replace(plan(depth=1), choice=Exponential(Fraction(1), 2**20))
    bits = ReplayBits(b"rules")
    drawn = [releases.choose_splits(bins, places, residuals, bits)[0][0].place for _ in range(count)]
    candidates = list_candidates(bins, 1, 16)
    scores = score_candidates(
        bins, candidates, places, np.zeros(8, dtype=np.int64), 1, quantize_residuals(residuals, 1)
    ).astype(float)
    found = np.bincount(drawn, minlength=3) / count

    def far(law):
        return np.any(np.abs(found - law) > 6 * np.sqrt(law * (1 - law) / count))

    # |-2| + |-2 + 2|, |-4| + |2| and |-4 + 1| + |1|
    assert (scores / 2**20).tolist() == [2.0, 6.0, 4.0]
    assert not far(chances(scores, Fraction(1, 2 * 2**20)))
    assert far(chances(scores, Fraction(1, 2**20)))


def test_leaves_have_noise_of_sigma():
    # The variance of 400 draws has a relative deviation of sqrt(2/400) = 0.07: six of these are 0.42.
    releases = plan(trees=1, depth=1, most_leaves=200)
    found = releases.release_leaves(np.zeros(3, dtype=np.int64), 200, np.ones((3, 2)) / 2, ReplayBits(b"leaves"))
    assert found.shape == (200, 2)
    ratio = found[1:].var() / releases.deviation**2
    assert 0.58 < ratio < 1.42
    # less noise by a third, variance 4/9, is told apart
    less = replace(releases, noise=GridGaussian(releases.noise.sigma * 2 / 3, Fraction(1), 400))
    other = less.release_leaves(np.zeros(3, dtype=np.int64), 200, np.ones((3, 2)) / 2, ReplayBits(b"leaves"))
    assert not 0.58 < other[1:].var() / releases.deviation**2 < 1.42
