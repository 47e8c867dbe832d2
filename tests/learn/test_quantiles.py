"""Quantiles of columns, learned with noise: counts, their noise, and the transformation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn import preprocessing
from sklearn.utils.estimator_checks import check_estimator
from tests.support.counts import FULL, some

from tacit.accounting import epsilon_delta
from tacit.audit.claim import Claim
from tacit.audit.statistical import audit
from tacit.errors import ParameterError
from tacit.learn import QuantileTransformer
from tacit.learn.dyadic_counts import LEAVES, LEVELS, DyadicCounts, estimate_shares
from tacit.learn.noise import GridGaussian
from tacit.learn.quantiles import invert_shares
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(2)
ROWS = np.column_stack([RNG.exponential(20, 4000), RNG.normal(0, 1, 4000)])
PUBLIC = {"bounds": ([0, -6], [200, 6]), "rows": 4000}


def replayed(seed=b"quantiles"):
    return partial(ReplayBits, seed)


def test_without_noise_to_speak_of_it_is_scikit_learns_transformation():
    # Parts are 200/1024 and 12/1024 wide, and the quantiles of a part lie on a line.
    model = QuantileTransformer(10**6, **PUBLIC, n_quantiles=101, bits=replayed()).fit(ROWS)
    peer = preprocessing.QuantileTransformer(n_quantiles=101, subsample=None).fit(ROWS)
    inner = slice(1, -1)  # the outer ones are the declared bounds
    assert np.abs(model.quantiles_[inner] - peer.quantiles_[inner]).max() < 0.4
    # but for the outer hundredths, where one has a line to the bounds and the other to the extremes
    assert np.abs(model.transform(ROWS) - peer.transform(ROWS)).max() < 0.011
    assert model.quantiles_[0].tolist() == [0, -6] and model.quantiles_[-1].tolist() == [200, 6]


def test_at_an_ordinary_epsilon_columns_are_near_uniform_and_near_normal():
    uniform = QuantileTransformer(1, **PUBLIC, bits=replayed()).fit(ROWS).transform(ROWS)
    assert np.abs(np.quantile(uniform, [0.25, 0.5, 0.75], axis=0).T - [0.25, 0.5, 0.75]).max() < 0.05
    normal = QuantileTransformer(1, **PUBLIC, output_distribution="normal", bits=replayed()).fit(ROWS).transform(ROWS)
    assert ndtr(normal) == pytest.approx(uniform, abs=1e-6)


@pytest.mark.parametrize("output", ["uniform", "normal"])
@pytest.mark.parametrize("epsilon", [0.001, 1])
def test_the_transformation_never_falls_and_can_be_undone(output, epsilon):
    model = QuantileTransformer(epsilon, **PUBLIC, output_distribution=output, bits=replayed()).fit(ROWS)
    steps = np.column_stack([np.linspace(-10, 210, 501), np.linspace(-7, 7, 501)])
    found = model.transform(steps)
    assert np.all(np.diff(found, axis=0) >= 0) and np.all(np.isfinite(found))
    back = model.inverse_transform(found)
    assert model.transform(back) == pytest.approx(found, abs=1e-6)
    assert np.all((back >= [0, -6]) & (back <= [200, 6]))


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)], ids=["pure", "approximate"])
def test_counts_move_by_what_the_noise_is_for(neighbors, delta):
    # A row is in one part of each of ten levels in each of two columns: 20 counts, and 40 where it is replaced by one
    # that shares none. In L2 the roots of these.
    plan = DyadicCounts.calibrate(Fraction(1), delta, columns=2, neighbors=neighbors)
    points = [np.array([[x, y]]) for x in (-1.0, -1e-9, 0.3, 1.0) for y in (-1.0, 0.999, 1.0)]
    counts = [plan.counts(point) for point in points]
    assert all(count.sum() == 2 * LEVELS for count in counts)
    others = counts if neighbors is Neighbors.REPLACE else [np.zeros_like(counts[0])]
    moves = [one - other for one in counts for other in others]
    most = 20 if neighbors is Neighbors.ADD_REMOVE else 40
    assert max(np.abs(move).sum() for move in moves) == most
    if isinstance(plan.noise, Laplace):
        assert plan.noise.scale == most
    else:
        assert (
            max(float(np.sqrt((move**2).sum())) for move in moves) <= float(plan.noise.sensitivity) < most**0.5 + 1e-6
        )
    assert epsilon_delta.epsilon(plan.privacy_loss, float(delta)) <= 1.002  # the accountant's grid


@pytest.mark.slow
def test_least_squares_of_all_levels_are_those_of_the_normal_equations():
    # Another way to the same estimate: the matrix of all parts, and its normal equations.
    levels = [np.repeat(np.eye(2**level), LEAVES // 2**level, axis=1) for level in range(1, LEVELS + 1)]
    parts = np.vstack(levels)
    noisy = np.random.default_rng(0).uniform(900, 1100, len(parts)) * parts.sum(axis=1)
    leaves = np.linalg.solve(parts.T @ parts, parts.T @ noisy)
    assert np.all(leaves > 0)  # so isotonic regression changes nothing
    below = np.cumsum(leaves) / leaves.sum()
    assert estimate_shares(noisy[None, :], None)[0, 1:] == pytest.approx(below, abs=1e-9)


def test_under_replace_the_number_of_rows_is_exact():
    model = QuantileTransformer(1, neighbors="replace", bounds=PUBLIC["bounds"], bits=replayed()).fit(ROWS)
    assert model.transform(ROWS).mean() == pytest.approx(0.5, abs=0.05)


def test_shares_are_inverted_where_they_stay_and_where_they_rise():
    shares, ends = np.array([0.0, 0.5, 0.5, 1.0]), np.array([0.0, 1.0, 2.0, 3.0])
    assert invert_shares(shares, ends, np.array([0.0, 0.25, 0.5, 0.75, 1.0])).tolist() == [0, 0.5, 1.5, 2.5, 3]


@pytest.mark.parametrize(
    ("wrong", "name", "fixed"),
    [
        ({"n_quantiles": 1}, "n_quantiles", {"n_quantiles": 33}),
        ({"n_quantiles": 2000}, "n_quantiles", {"n_quantiles": 33}),
        ({"output_distribution": "gamma"}, "output_distribution", {"output_distribution": "normal"}),
    ],
    ids=str,
)
def test_settings_that_are_wrong_are_named_with_a_fix_that_works(wrong, name, fixed):
    with pytest.raises(ParameterError, match=f"{name}: ") as caught:
        QuantileTransformer(1, **PUBLIC, **wrong).fit(ROWS)
    assert caught.value.fix
    assert QuantileTransformer(1, **PUBLIC, **fixed, bits=replayed()).fit(ROWS).n_quantiles_ == 33


@pytest.mark.slow
def test_the_claim_stands_and_less_noise_is_caught():
    # No rows against one at the lower end: along the ten counts that it changes the release is one Gaussian with
    # mu = 0.921 for (1, 0.1), and 3.684 with a quarter of the noise: see test_audits.py.
    plan = DyadicCounts.calibrate(Fraction(1), Fraction(1, 10), columns=1, neighbors=Neighbors.ADD_REMOVE)
    one = plan.counts(np.array([[-1.0]])) > 0
    bits = ReplayBits(b"audit")

    def release_with(noise):
        # the counts that are released, projected to the direction of the move
        return lambda rows: float(noise.release_whole(plan.counts(np.array(rows).reshape(-1, 1))[one], 0, bits).sum())

    less = 2 if FULL else 4
    weak = GridGaussian(plan.noise.sigma / less, plan.noise.sensitivity, plan.noise.coordinates)
    claim, pair = Claim.epsilon(Fraction(1), Fraction(1, 10)), ([], [-1.0])
    sure = 1 - 1e-9
    sound = audit(release_with(plan.noise), *pair, claim, samples=20_000 if FULL else 100, confidence=sure)
    assert not sound.is_refuted
    assert audit(release_with(weak), *pair, claim, samples=2_000 if FULL else 200, confidence=sure).is_refuted
    assert replace(plan, noise=weak).privacy_loss != plan.privacy_loss  # and the loss says so


@pytest.mark.slow
@pytest.mark.parametrize("output", some(["uniform", "normal"], 2, 1))
def test_scikit_learns_own_checks_hold(output):
    model = QuantileTransformer(1000, bounds=(-8, 8), rows=100, output_distribution=output, bits=replayed(b"checks"))
    found = check_estimator(model, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
