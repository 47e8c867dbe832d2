"""The minimizer is certified: its true gradient is as small as was asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from tacit.errors import Failed
from tacit.learn import minimize as module
from tacit.learn.losses import Huber, Logistic, Multinomial, Squared
from tacit.learn.minimize import Sums, look, minimize, slack, tolerance
from tacit.learn.problem import Problem
from tacit.privacy.unit import Neighbors

LOSSES = [Logistic(), Logistic(0.6), Huber(), Huber(0.05), Squared(1.0), Multinomial(3)]


def made(loss, rows=300, columns=5, penalty=1.0, seed=0, declared=None, sharp=3.0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns)) / np.sqrt(columns)
    scores = sharp * features @ rng.normal(size=(columns, 3)) + rng.normal(size=(rows, 3))
    if isinstance(loss, Multinomial):
        labels = scores.argmax(axis=1).astype(float)
    elif isinstance(loss, Squared):
        labels = np.clip(scores[:, 0] / 4, -1, 1)
    else:
        labels = np.where(scores[:, 0] > 0, 1.0, -1.0)
    return Problem(features, labels, loss, 1.0, Neighbors.ADD_REMOVE, declared or max(rows, 1), penalty)


def true_gradient(problem, weights, tilt):
    """In extended precision, row by row in small blocks, so that its own error is far below what is claimed."""
    return look(problem, tilt, weights, Sums(np.longdouble, 16)).gradient


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", [0.01, 1.0, 1000.0])
def test_the_gradient_is_as_small_as_asked(loss, penalty):
    problem = made(loss, penalty=penalty)
    tilt = np.random.default_rng(1).normal(size=problem.shape) * 5
    goal = tolerance(loss, 1.0, problem.rows)
    found = minimize(problem, tilt, goal)
    assert found.dtype == np.float64 and found.shape == problem.shape
    assert np.linalg.norm(true_gradient(problem, found, tilt)) <= goal


@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_it_agrees_with_scikit_learn(penalty):
    problem = made(Logistic(), 500, penalty=penalty)
    theirs = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(problem.features, problem.labels)
    found = minimize(problem, np.zeros(5), 1e-9)
    np.testing.assert_allclose(found, theirs.coef_[0], atol=1e-5)


def test_the_squared_loss_has_its_closed_form():
    problem = made(Squared(1.0, 50.0), penalty=2.0)  # no prediction comes near the bound
    x, y = problem.features, problem.labels
    expected = np.linalg.solve(x.T @ x + 2 * np.eye(5), x.T @ y)
    np.testing.assert_allclose(minimize(problem, np.zeros(5), 1e-10), expected, atol=1e-10)


def test_many_rows_start_from_a_part_of_them_and_end_the_same():
    problem = made(Logistic(), rows=16 * 256 * 2, columns=2)
    start, solve = module._first_guess(problem, np.zeros(2), 1e-6)
    assert solve is not None and np.linalg.norm(start) > 0
    goal = tolerance(problem.loss, 1.0, problem.rows)
    found = minimize(problem, np.zeros(2), goal)
    assert np.linalg.norm(true_gradient(problem, found, np.zeros(2))) <= goal
    np.testing.assert_allclose(found, minimize(problem, np.zeros(2), goal / 8), atol=2 * goal)


@pytest.mark.parametrize("loss", [Logistic(), Huber(), Multinomial(3)], ids=repr)
def test_more_features_than_can_be_factored_are_solved_too(loss):
    problem = made(loss, rows=60, columns=module._DENSE + 1, penalty=0.1)
    goal = tolerance(loss, 1.0, 60)
    found = minimize(problem, np.zeros(problem.shape), goal)
    assert np.linalg.norm(true_gradient(problem, found, np.zeros(problem.shape))) <= goal


def test_without_rows_the_tilt_alone_decides():
    problem = made(Logistic(), rows=0, penalty=4.0)
    tilt = np.arange(5.0)
    np.testing.assert_allclose(minimize(problem, tilt, 1e-9), -tilt / 4, atol=1e-9)


def test_rows_that_a_line_parts_have_a_minimizer_too():
    problem = Problem(np.ones((100, 1)), np.ones(100), Logistic(), 1.0, Neighbors.ADD_REMOVE, 100, 1e-6)
    goal = tolerance(Logistic(), 1.0, 100)
    found = minimize(problem, np.zeros(1), goal)
    # 100/(1 + e^w) = 1e-6 w gives w = 15.6
    assert found[0] == pytest.approx(15.57, abs=0.2)
    assert abs(true_gradient(problem, found, np.zeros(1))[0]) <= goal


def test_far_more_rows_than_declared_are_certified_in_extended_precision():
    problem = made(Logistic(), rows=4000, columns=3)
    place = look(problem, np.zeros(3), minimize(problem, np.zeros(3), 1e-8), Sums())
    bound = slack(problem, np.zeros(3), place, Sums())
    goal = bound / 4  # doubles cannot prove this
    found = minimize(problem, np.zeros(3), goal)
    assert np.linalg.norm(true_gradient(problem, found, np.zeros(3))) <= goal


def test_a_goal_that_cannot_be_proved_fails_and_says_nothing_of_the_data():
    with pytest.raises(Failed) as one:
        minimize(made(Logistic(), rows=20), np.zeros(5), 0.0)
    with pytest.raises(Failed) as other:
        minimize(made(Huber(), rows=31, columns=2), np.zeros(2), 0.0)
    assert str(one.value) == str(other.value)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_error_of_the_computed_gradient_is_within_its_bound(loss):
    for seed, rows, scale in [(1, 50, 1.0), (2, 3000, 10.0), (3, 5000, 0.1)]:
        problem = made(loss, rows=rows, seed=seed)
        weights = scale * np.random.default_rng(seed).normal(size=problem.shape)
        tilt = 100 * np.ones(problem.shape)
        place = look(problem, tilt, weights, Sums())
        error = np.linalg.norm(place.gradient - true_gradient(problem, weights, tilt))
        assert 0 < error <= slack(problem, tilt, place, Sums())


def test_the_tolerance_leaves_room_above_what_doubles_can_prove():
    # at n = 4,000: 2^-38 n = 1.5e-8 against a slack of about 2 2^-53 n (n's block of 2,048 + a few tens) = 1.9e-9
    problem = made(Logistic(), rows=4000)
    place = look(problem, np.zeros(5), 3 * np.ones(5), Sums())
    assert slack(problem, np.zeros(5), place, Sums()) < tolerance(problem.loss, 1.0, 4000) / 4


@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=25, deadline=None)
def test_a_row_more_moves_the_minimizer_by_at_most_its_gradient_over_the_penalty(seed, loss, penalty):
    problem = made(loss, rows=12, columns=3, penalty=penalty, seed=seed)
    fewer = Problem(
        problem.features[1:], problem.labels[1:], loss, 1.0, Neighbors.ADD_REMOVE, problem.rows, problem.penalty
    )
    one, other = (minimize(p, np.zeros(problem.shape), 1e-9) for p in (problem, fewer))
    assert np.linalg.norm(one - other) <= (loss.slope + 2e-9) / penalty


def test_the_bound_on_a_move_is_reached():
    # one row far on the wrong side: its gradient is almost slope * norm, and the curvature is the penalty's
    loss, push = Logistic(), np.array([50.0])
    row = Problem(np.ones((1, 1)), np.ones(1), loss, 1.0, Neighbors.ADD_REMOVE, 1, 1.0)
    none = Problem(np.empty((0, 1)), np.empty(0), loss, 1.0, Neighbors.ADD_REMOVE, 1, 1.0)
    one, other = (minimize(p, push, 1e-9)[0] for p in (row, none))
    assert one - other == pytest.approx(1.0, abs=1e-6)
