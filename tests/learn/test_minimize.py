"""The minimizer is certified: its true gradient is as small as was asked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from sklearn.linear_model import LogisticRegression
from tests.support.counts import FULL

from tacit.errors import ParameterError
from tacit.learn import minimize as module
from tacit.learn.certified import UNIT, Long, Scaled, gradient
from tacit.learn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.minimize import (
    check_solvable,
    gradient_tolerance,
    least_penalty,
    minimize,
    most_rows,
    planned_steps,
    solve,
)
from tacit.learn.problem import RiskMinimization
from tacit.privacy.unit import Neighbors

LOSSES = [LogisticLoss(), LogisticLoss(0.6), SmoothedHinge(), SmoothedHinge(0.0625), HuberLoss(1.0), MultinomialLoss(3)]


def made(loss, rows=300, columns=5, penalty=1.0, seed=0, declared=None, sharp=3.0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns)) / np.sqrt(columns)
    scores = sharp * features @ rng.normal(size=(columns, 3)) + rng.normal(size=(rows, 3))
    if isinstance(loss, MultinomialLoss):
        labels = scores.argmax(axis=1).astype(float)
    elif isinstance(loss, HuberLoss):
        labels = np.clip(scores[:, 0] / 4, -1, 1)
    else:
        labels = np.where(scores[:, 0] > 0, 1.0, -1.0)
    return RiskMinimization(features, labels, loss, 1.0, Neighbors.ADD_REMOVE, declared or max(rows, 1), penalty)


def read(problem):
    """The rows as they are solved for: truncated to units of 2^-20 of the least power of two above the norm."""
    scaled = Scaled.of(problem, np.zeros(problem.shape))
    return scaled.rows.units * (scaled.scale * 2.0**-20)


def true_gradient(problem, weights, tilt):
    """In extended precision and column by column, so that its own error is far below what is claimed."""
    rows, at = read(problem).astype(np.longdouble), weights.astype(np.longdouble)
    scores = sum(np.multiply.outer(rows[:, j], at[j]) for j in range(len(at)))
    residuals = problem.loss.residuals(scores, problem.labels)
    return rows.T @ residuals + problem.penalty * at + tilt


def exact_gradient(problem, weights, tilt):
    """With a hundred digits, for a loss of one output."""
    with mp.workdps(100):
        rows, at = [[mp.mpf(float(x)) for x in row] for row in read(problem)], [mp.mpf(x) for x in weights]
        found = [mp.mpf(problem.penalty) * w + mp.mpf(float(t)) for w, t in zip(at, tilt, strict=True)]
        for row, label in zip(rows, problem.labels, strict=True):
            score, y = mp.fdot(row, at), mp.mpf(float(label))
            match problem.loss:
                case LogisticLoss(cut):
                    residual = -y * min(1 / (1 + mp.exp(y * score)), mp.mpf(cut))
                case SmoothedHinge(width):
                    start, bend = mp.mpf(1 + width), mp.mpf(problem.loss.bend)
                    residual = -y * min(max((start - y * score) * bend, mp.mpf(0)), mp.mpf(1))
                case HuberLoss():
                    slope = mp.mpf(problem.loss.slope)
                    residual = min(max(score - y, -slope), slope)
            found = [g + residual * x for g, x in zip(found, row, strict=True)]
        return found


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", [0.05, 1.0, 1000.0])
def test_the_gradient_is_as_small_as_asked(loss, penalty):
    problem = made(loss, penalty=penalty)
    tilt = np.random.default_rng(1).normal(size=problem.shape) * 5
    goal = gradient_tolerance(loss, 1.0, problem.rows)
    found = minimize(problem, tilt, goal)
    assert found.dtype == np.float64 and found.shape == problem.shape
    assert np.linalg.norm(true_gradient(problem, found, tilt)) <= goal


@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_it_agrees_with_scikit_learn(penalty):
    problem = made(LogisticLoss(), 500, penalty=penalty)
    theirs = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(problem.features, problem.labels)
    found = minimize(problem, np.zeros(5), 1e-9)
    np.testing.assert_allclose(found, theirs.coef_[0], atol=1e-5)


def test_the_squared_loss_has_its_closed_form():
    problem = made(HuberLoss(1.0, 50.0), penalty=2.0)  # no prediction comes near the bound
    x, y = read(problem), problem.labels
    expected = np.linalg.solve(x.T @ x + 2 * np.eye(5), x.T @ y)
    np.testing.assert_allclose(minimize(problem, np.zeros(5), 1e-10), expected, atol=1e-10)


def test_many_rows_start_from_a_part_of_them_and_end_the_same(monkeypatch):
    problem = made(LogisticLoss(), rows=16 * 64 * 2, columns=2)
    goal = gradient_tolerance(problem.loss, 1.0, problem.rows)
    with_guess = solve(problem, np.zeros(2), goal)
    assert with_guess.steps == planned_steps(problem) == 2 * len(module._plan_steps(problem)) + module._POLISH
    monkeypatch.setattr(module, "_has_guess", lambda problem: False)
    without = solve(problem, np.zeros(2), goal)
    assert without.steps == len(module._plan_steps(problem)) + module._POLISH
    np.testing.assert_allclose(with_guess.weights, without.weights, atol=2 * goal)


def test_without_rows_the_tilt_alone_decides():
    problem = made(LogisticLoss(), rows=0, penalty=4.0)
    tilt = np.arange(5.0)
    np.testing.assert_allclose(minimize(problem, tilt, 1e-9), -tilt / 4, atol=1e-9)


def test_rows_that_a_line_parts_have_a_minimizer_too():
    problem = RiskMinimization(
        np.ones((100, 1)), np.ones(100), LogisticLoss(), 1.0, Neighbors.ADD_REMOVE, 100, 2.0**-10
    )
    goal = gradient_tolerance(LogisticLoss(), 1.0, 100)
    found = solve(problem, np.zeros(1), goal)
    # 100/(1 + e^w) = w/1024 gives w = 9.31
    assert found.weights[0] == pytest.approx(9.31, abs=0.01) and found.proved
    assert abs(true_gradient(problem, found.weights, np.zeros(1))[0]) <= goal


@pytest.mark.parametrize("declared", [1, 2**14, 10**6])
def test_the_tolerance_covers_the_rows_that_the_theorem_is_for(declared):
    # n rows leave n slope norm 2^-51 open, and that is half the tolerance: n = max(rows, 2^14) 2^(51 - 1 - 38)
    beyond = 2**12 if UNIT <= 2.0**-64 else 2**6
    assert most_rows(declared) == max(declared, 2**14) * beyond
    assert most_rows(declared) * 2.0**-51 <= gradient_tolerance(SmoothedHinge(), 1.0, declared) / 2


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 10, 20_000])
def test_the_number_of_rows_beside_the_declared_one_changes_no_step(count):
    # 2^12 times 2^14 rows are promised, whatever is declared; these are as many as a test has time for
    problem = RiskMinimization(
        np.full((count, 1), 0.5), np.ones(count), SmoothedHinge(), 1.0, Neighbors.ADD_REMOVE, 3, 1.0
    )
    found = solve(problem, np.zeros(1), gradient_tolerance(SmoothedHinge(), 1.0, 3))
    assert found.proved and found.steps == planned_steps(problem)


@pytest.mark.parametrize(
    "loss", [LogisticLoss(), LogisticLoss(0.6), SmoothedHinge(), SmoothedHinge(0.0625), HuberLoss(1.0)], ids=repr
)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e6])
def test_the_error_of_a_gradient_is_within_its_bound(loss, scale):
    problem = made(loss, rows=40, columns=3)
    tilt = 100 * np.ones(3)
    scaled = Scaled.of(problem, tilt)
    for weights in (scale * np.random.default_rng(1).normal(size=3), np.zeros(3)):
        at = Long.of(weights * scaled.scale)
        slope = gradient(scaled, at)
        exact = exact_gradient(problem, weights, tilt)
        with mp.workdps(100):
            shown = [mp.mpf(*mantissa_of(g)) * scaled.scale for g in slope.value]
            error = mp.sqrt(sum((one - other) ** 2 for one, other in zip(shown, exact, strict=True)))
        assert error <= slope.error * scaled.scale
        # and the bound says something: with 40 rows it is below the tolerance of 2^14 by far
        assert slope.error < gradient_tolerance(loss, 1.0, 1) * 2.0**-10


def mantissa_of(number):
    """An extended number as the pair of a mantissa and an exponent that mpmath takes, without error."""
    fraction, exponent = np.frexp(number)
    return ((int(np.ldexp(fraction, 64)), int(exponent) - 64),)


def test_weights_of_ninety_six_bits_take_steps_that_doubles_do_not_show():
    at = Long.of(np.array([1.0, 3.0]))
    moved = at.plus(np.array([2.0**-80, -(2.0**-70)]))
    assert sum(Fraction(part[0]) for part in moved.parts) == 1 + Fraction(1, 2**80)
    assert sum(Fraction(part[1]) for part in moved.parts) == 3 - Fraction(1, 2**70)


def test_a_goal_that_nothing_proves_ends_all_the_same():
    # more rows than the theorem is for look like this: the best that the errors leave open is returned
    problem = made(LogisticLoss(), rows=20)
    found = solve(problem, np.zeros(5), 1e-300)
    assert found.proved and found.steps == planned_steps(problem)


@pytest.mark.slow
def test_short_steps_reach_the_goal_from_anywhere(monkeypatch):
    # what stands behind the planned steps: 1 + 30/4 as a condition number, 8 ln(2 D penalty/goal) = 8 * 27 steps
    problem = made(LogisticLoss(), rows=30, penalty=1.0)
    goal = gradient_tolerance(problem.loss, 1.0, 30)
    scaled = Scaled.of(problem, np.zeros(5))
    place, proved, steps = module._take_short_steps(scaled, Long.of(np.full(5, 50.0)), goal / scaled.scale)
    assert proved and 10 < steps < 300
    expected = minimize(problem, np.zeros(5), goal)
    np.testing.assert_allclose(place.value.astype(float) / scaled.scale, expected, atol=2 * goal)
    monkeypatch.setattr(module, "_plan_steps", lambda problem: [])
    monkeypatch.setattr(module, "_POLISH", 1)
    slow = solve(problem, np.zeros(5), goal)  # no Newton step at all: the rounds and the short steps do it
    np.testing.assert_allclose(slow.weights, expected, atol=2 * goal)


def repeated(seed):
    """A few distinct rows, each many times, of different lengths, some with a wrong label: hard for Newton's steps."""
    rng = np.random.default_rng(seed)
    loss, columns = LOSSES[seed % 5], int(rng.choice([1, 3, 10, 20]))
    count, distinct = int(rng.choice([30, 1000, 5000])), int(rng.integers(1, 6))
    scales = 10.0 ** -rng.uniform(0, rng.choice([0, 2, 4]), size=columns)
    few = rng.normal(size=(distinct, columns)) * scales
    rows = few[rng.integers(0, distinct, count)]
    labels = np.where(rows @ (rng.normal(size=columns) / scales) > 0, 1.0, -1.0)
    labels[rng.random(count) < rng.choice([0, 0.01, 0.3])] *= -1
    penalty = loss.bend / 2.0 ** rng.choice([-10, -4, -2, 0, 2, 4, 6, 8])
    tilt = rng.normal(size=columns) * rng.choice([0, 4, 40, 1000]) * loss.slope
    return RiskMinimization(rows, labels, loss, 1.0, Neighbors.ADD_REMOVE, count, penalty), tilt


@pytest.mark.slow
def test_rows_that_are_repeated_are_solved_by_the_planned_steps():
    for seed in range(5000 if FULL else 20):
        problem, tilt = repeated(seed)
        found = solve(problem, tilt, gradient_tolerance(problem.loss, 1.0, problem.rows))
        assert found.proved and found.steps == planned_steps(problem), seed


def test_rows_that_outlast_the_plan_take_the_same_rounds_more(monkeypatch):
    # a plan of no Newton steps at all is outlasted by rows whose condition number is not 1
    problem = made(LogisticLoss(), rows=30, penalty=1.0)
    monkeypatch.setattr(module, "_plan_steps", lambda problem: [module.Step(1.0, fresh=True, double=False)])
    found = solve(problem, np.zeros(5), gradient_tolerance(problem.loss, 1.0, 30))
    assert found.proved
    extra = found.steps - planned_steps(problem)
    assert extra > 0 and extra % (module._AGAIN * (1 + module._POLISH)) == 0


def test_the_number_of_certified_gradients_is_public(monkeypatch):
    taken = []

    def counted(scaled, place):
        taken.append(place)
        return gradient(scaled, place)

    monkeypatch.setattr(module, "gradient", counted)
    for rows in (made(LogisticLoss(), rows=0), made(LogisticLoss(), rows=50), made(LogisticLoss(), rows=50, sharp=1e6)):
        taken.clear()
        minimize(rows, np.zeros(5), gradient_tolerance(LogisticLoss(), 1.0, 50))
        assert len(taken) == module._POLISH


def test_settings_that_are_not_promised_are_refused_before_data():
    check_solvable(LogisticLoss(), 1.0, 2000, least_penalty(LogisticLoss(), 1.0))
    for loss, norm, features, penalty in (
        (LogisticLoss(), 1.0, 2001, 1.0),
        (LogisticLoss(), 1.0, 5, 2.0**-11),
        (LogisticLoss(), 1.0, 5, 2.0**63),
        (SmoothedHinge(0.03), 1.0, 5, 1.0),
        (SmoothedHinge(1e6), 1.0, 5, 1.0),
    ):
        with pytest.raises(ParameterError):
            check_solvable(loss, norm, features, penalty)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=25 if FULL else 10, deadline=None)
def test_a_row_more_moves_the_minimizer_by_at_most_its_gradient_over_the_penalty(seed, loss, penalty):
    problem = made(loss, rows=12, columns=3, penalty=penalty, seed=seed)
    fewer = RiskMinimization(
        problem.features[1:], problem.labels[1:], loss, 1.0, Neighbors.ADD_REMOVE, problem.rows, problem.penalty
    )
    one, other = (minimize(p, np.zeros(problem.shape), 1e-9) for p in (problem, fewer))
    assert np.linalg.norm(one - other) <= (loss.slope + 2e-9) / penalty


def test_the_bound_on_a_move_is_reached():
    # one row far on the wrong side: its gradient is almost slope * norm, and the curvature is the penalty's
    loss, push = LogisticLoss(), np.array([50.0])
    row = RiskMinimization(np.ones((1, 1)), np.ones(1), loss, 1.0, Neighbors.ADD_REMOVE, 1, 1.0)
    none = RiskMinimization(np.empty((0, 1)), np.empty(0), loss, 1.0, Neighbors.ADD_REMOVE, 1, 1.0)
    one, other = (minimize(p, push, 1e-9)[0] for p in (row, none))
    assert one - other == pytest.approx(1.0, abs=1e-6)
