"""Weights from noisy sums of products: exact without noise, near the best of all penalties with it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tacit.learn import Ridge
from tacit.learn.losses import Array
from tacit.learn.moment_shrinkage import denoise_eigenvalues, estimate_weights
from tacit.sampling.bits import ReplayBits

NONE = (1e-9, 1e-9)


def draw_noise(generator: np.random.Generator, width: int, sigma: float) -> Array:
    """A symmetric matrix of independent entries: sigma on the diagonal, sigma/sqrt 2 beside it."""
    square = generator.normal(size=(width, width))
    return np.asarray((square + square.T) * (sigma / 2))


@pytest.mark.slow
def test_the_noise_of_these_tests_is_that_of_the_release() -> None:
    # diagonal: 2 z sigma/2, of deviation sigma; beside it (z + z') sigma/2, of deviation sigma/sqrt 2
    drawn = np.array([draw_noise(np.random.default_rng(number), 2, 3.0) for number in range(4000)])
    assert np.allclose(drawn.std(axis=0), [[3, 3 / math.sqrt(2)], [3 / math.sqrt(2), 3]], rtol=0.05)


def test_without_noise_it_is_least_squares_with_a_constant() -> None:
    generator = np.random.default_rng(1)
    rows = np.column_stack([generator.normal(0.3, 0.2, size=(900, 4)), np.full(900, 0.4)])
    targets = rows @ [0.4, -0.2, 0.1, 0.3, 0.5] + generator.normal(size=900) / 50
    found = estimate_weights(rows.T @ rows, rows.T @ targets, NONE, rows=900, constant=0.4)
    assert np.allclose(found, np.linalg.lstsq(rows, targets, rcond=None)[0], atol=1e-6)


def test_without_a_constant_no_column_is_taken_out() -> None:
    second = np.diag([90.0, 50.0])
    assert np.allclose(estimate_weights(second, second @ [0.5, 0.4], NONE, rows=400), [0.5, 0.4])


def test_rotated_columns_have_rotated_weights() -> None:
    generator = np.random.default_rng(2)
    rotate = np.linalg.qr(generator.normal(size=(6, 6)))[0]
    second = np.diag([400.0, 200, 90, 40, 20, 5]) + draw_noise(generator, 6, 6)
    first = 30 * generator.normal(size=6)
    found, turned = (
        estimate_weights(turn @ second @ turn.T, turn @ first, (6, 6), rows=2000) for turn in (np.eye(6), rotate)
    )
    assert np.allclose(rotate @ found, turned)


@pytest.mark.parametrize("exact", [np.full(40, 60.0), np.geomspace(1, 900, 40), np.append(np.zeros(39), 500.0)])
def test_eigenvalues_without_noise_are_nearer_to_the_truth(exact: Array) -> None:
    # The truth is v^T A v for the noisy eigenvectors v, which only the exact matrix tells. Over 20 matrices the mean
    # distance of the noisy eigenvalues from it is at least twice that of the denoised ones.
    generator = np.random.default_rng(3)
    raw = denoised = 0.0
    for _ in range(20):
        values, vectors = np.linalg.eigh(np.diag(exact) + draw_noise(generator, 40, 10.0))
        truth = np.sum(vectors**2 * exact[:, None], axis=0)
        raw += float(np.mean((values - truth) ** 2))
        denoised += float(np.mean((denoise_eigenvalues(values, 10.0) - truth) ** 2))
    assert math.sqrt(denoised) < 0.5 * math.sqrt(raw)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.0, 0.3, 2.0])
def test_the_error_is_near_that_of_the_best_penalty(size: float) -> None:
    # p = b + noise of deviation 1 on curvatures that are known to a thousandth. On average over 400 draws it loses no
    # more than the best of 17 penalties and the noise of two of the twelve coordinates (each is at most 1); and where
    # noise is as large as what there is to learn, less than the least penalty does.
    generator = np.random.default_rng(5)
    curvatures = np.geomspace(0.5, 50, 12)
    exact = size * generator.normal(size=12) * np.sqrt(curvatures)
    penalties, losses, chosen = 0.1 * 2.0 ** np.arange(17), np.zeros(17), 0.0

    def error(weights: Array) -> Array:
        return np.asarray(weights**2 @ curvatures - 2 * weights @ exact)

    for _ in range(400):
        noisy = exact + generator.normal(size=12)
        losses += error(noisy / (curvatures + penalties[:, None])) / 400
        chosen += float(error(estimate_weights(np.diag(curvatures), noisy, (1e-3, 1.0), rows=200))) / 400
    assert chosen < losses.min() + 2
    assert chosen < losses[0] - 1 or size == 2.0


def test_sums_of_noise_alone_are_predicted_by_little() -> None:
    # X^T y without signal for 300 rows: what is predicted has less than an eighth of the variance 1/8 that is expected
    # of it, and less than a third of what the solve with raised eigenvalues predicts.
    generator = np.random.default_rng(6)
    second, floor = np.diag([20.0] * 8 + [60.0]), 0.75 * 8 * math.sqrt(2 * 9)
    shrunk, solved = [], []
    for _ in range(200):
        noisy, first = second + draw_noise(generator, 9, 8), generator.normal(size=9) * 8
        weights = estimate_weights(noisy, first, (8, 8), rows=300, constant=math.sqrt(0.2))
        shrunk.append(weights @ second @ weights / 300)
        values, vectors = np.linalg.eigh(noisy)
        weights = vectors @ ((vectors.T @ first) / np.maximum(values, floor))
        solved.append(weights @ second @ weights / 300)
    assert np.mean(shrunk) < min(1 / 64, np.mean(solved) / 3)


def uniform(seed: int, rows: int, columns: int) -> tuple[Array, Array]:
    """Rows that fill their bounds, and a target that is a line of them, with noise, in [-4, 4]."""
    generator = np.random.default_rng(seed)
    features = generator.uniform(-1, 1, (rows, columns))
    line = features @ generator.normal(size=columns)
    return features, line / line.std() + generator.normal(size=rows) / 2


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "epsilon"), [(2000, 16, 0.5), (500, 4, 1.0)])
def test_nothing_is_lost_where_bounds_are_tight(rows: int, columns: int, epsilon: float) -> None:
    # The mean of twelve fits: what is learned of the scaling is paid for by what weights are shrunk less.
    features, target = uniform(7, 2 * rows, columns)
    scores: dict[str, float] = {}
    for scaling in ("bounds", "auto"):
        declared = {"bounds": (-1, 1), "target_bounds": (-4, 4), "rows": rows, "scaling": scaling}
        models = [Ridge(epsilon, **declared, bits=partial(ReplayBits, b"%d" % number)) for number in range(12)]
        found = [model.fit(features[:rows], target[:rows]).score(features[rows:], target[rows:]) for model in models]
        scores[scaling] = float(np.mean(found))
    assert scores["auto"] > scores["bounds"]


@pytest.mark.parametrize(
    ("rows", "columns", "epsilon", "share"),
    [
        # Laplace noise of deviation sqrt 2 columns/(share epsilon), of which the rows are 40: 5431 rows are enough for
        # 3 columns at 1/32, and 3000 are for 1/16 only, which is worth it from 5000 rows on
        (3_000, 3, 1, None),
        (5_431, 3, 1, Fraction(1, 32)),
        (20_000, 3, 1, Fraction(1, 64)),
        # 8 columns, epsilon 1: 60 deviations at 1/8 are 5431 rows
        (5_430, 8, 1, None),
        (5_432, 8, 1, Fraction(1, 8)),
        # enough at 1/8 in deviations, not in rows
        (4_000, 2, Fraction(1, 2), None),
    ],
)
def test_ranges_of_a_regression_are_learned_where_rows_are_many(
    rows: int, columns: int, epsilon: Fraction, share: Fraction | None
) -> None:
    planned = Ridge(epsilon, target_bounds=(0, 1), bounds=(0, 1), rows=rows).plan(columns).scaling.ranges
    assert (None if planned is None else planned.epsilon / epsilon) == share
