"""Objective perturbation: its price, its rules and the law of what it releases. The curve has tests of its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.support.counts import FULL, some
from tests.support.learning import calibrate

from tacit.accounting import epsilon_delta
from tacit.accounting.calibrate import gaussian_sigma
from tacit.errors import ParameterError
from tacit.learn import profile
from tacit.learn.certified import Long, Scaled, gradient
from tacit.learn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.minimize import minimize
from tacit.learn.objective import ObjectivePerturbation, default_objective_penalty
from tacit.learn.output import clip_loss
from tacit.learn.problem import RiskMinimization, with_loss
from tacit.privacy.loss import decode, encode
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
ALARM = 1e-9  # the chance that a test of a law fails without a cause


def planned(epsilon="1", delta="1e-6", **changes):
    facts = {"loss": LogisticLoss(), "norm": 1.0, "features": 3, "rows": 1000, "neighbors": ADD}
    return calibrate(ObjectivePerturbation, Fraction(epsilon), Fraction(delta), **(facts | changes))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "loss", "neighbors"),
    some(
        [
            ("0.1", "1e-9", LogisticLoss(), ADD),
            ("1", "1e-6", LogisticLoss(), REPLACE),
            ("8", "1e-9", LogisticLoss(), ADD),
            ("1", "1e-6", SmoothedHinge(), ADD),
            ("0.1", "1e-6", HuberLoss(2.0), REPLACE),
            ("1", "1e-9", MultinomialLoss(4), ADD),
            ("4", "1e-9", MultinomialLoss(4), REPLACE),
        ],
        2,
        1,
    ),
)
def test_a_fit_costs_at_most_what_was_planned(epsilon, delta, loss, neighbors):
    plan = planned(epsilon, delta, loss=loss, neighbors=neighbors)
    spent = epsilon_delta.epsilon(plan.privacy_loss, float(delta))
    assert 0.99 * float(epsilon) < spent <= float(epsilon)
    # what it says of the exact minimizer holds by the curve
    learned = clip_loss(loss, plan.cut)
    noise, penalty = float(plan.sigma), plan.penalty
    bound = profile.compute_delta(
        float(plan.main.epsilon), noise, loss=learned, norm=1.0, penalty=penalty, neighbors=neighbors
    )
    assert bound <= plan.main.delta
    assert decode(encode(plan.privacy_loss)) == plan.privacy_loss


def test_the_noise_is_that_of_one_noisy_sum():
    # with a penalty of norm^2/epsilon, and but for the thousandth of epsilon that the solver's error takes
    plan = planned("1", "1e-9", norm=2.0, penalty=4.0, cut=1.0)
    assert float(plan.sigma) == pytest.approx(2 * float(gaussian_sigma(Fraction(1), Fraction(1, 10**9))), rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "part"), [(1000, 0.99), (10**6, 0.9), (10**8, 0.75)])
def test_the_last_noise_is_small_beside_what_the_random_term_does(rows, part):
    # Along 100 weights the curvature is on average at most penalty + rows/400: rows of length one, a bend of 1/4.
    # Of a hundred million rows a solver's sums are less exact, so there it takes all that it may: a quarter.
    plan = planned(rows=rows, features=100)
    assert float(plan.last.sigma) < 0.25 * float(plan.sigma) / plan.penalty
    if rows < 10**8:
        assert float(plan.last.sigma) < 0.25 * float(plan.sigma) / (plan.penalty + rows / 400)
    assert plan.main.epsilon >= part


@pytest.mark.slow
def test_the_rule_for_the_penalty_has_the_units_of_the_features():
    one, other = planned(norm=1.0, features=50), planned(norm=10.0, features=50)
    assert other.penalty == pytest.approx(100 * one.penalty, rel=1e-5)
    assert float(other.sigma) == pytest.approx(10 * float(one.sigma), rel=1e-4)


def test_the_rule_keeps_the_determinant_to_an_eighth_of_epsilon():
    for loss in (LogisticLoss(), SmoothedHinge(), HuberLoss(1.0), MultinomialLoss(10)):
        for epsilon in (0.1, 1.0, 10.0):
            penalty = default_objective_penalty(
                loss, loss.slope, Fraction(epsilon), 5 / epsilon, 2.0, 3 * loss.outputs, 10**6
            )
            assert profile.max_determinant_cost(loss, 4 / penalty) <= epsilon / 8 * (1 + 1e-9)


@pytest.mark.slow
def test_more_noise_asks_for_a_larger_penalty_and_a_lower_cut():
    plans = [planned(epsilon, "1e-9", features=100) for epsilon in ("0.1", "1", "10")]
    assert [plan.penalty for plan in plans] == sorted((plan.penalty for plan in plans), reverse=True)
    assert [plan.cut for plan in plans] == sorted(plan.cut for plan in plans)


def tiny(plan, columns=1):
    features = np.array([[0.5], [0.9], [-0.3], [0.7]])[:, [0] * columns] / columns
    return RiskMinimization(features, np.array([1.0, -1.0, 1.0, 1.0]), plan.loss, 1.0, ADD, 1000, plan.penalty)


def slope_at(problem, weights):
    scaled = Scaled.of(problem, np.zeros(1))
    return float(gradient(scaled, Long.of(weights * scaled.scale)).value[0] * scaled.scale)


@pytest.mark.slow
def test_the_random_term_that_the_weights_imply_is_gaussian():
    # b = -grad J(w): the last noise moves it by a ten-thousandth
    plan = planned(features=1, penalty=2.0)
    bits, problem = ReplayBits(b"objective"), tiny(plan)
    learned = with_loss(problem, (plan.loss, 1.0, ADD, 2.0), clip_loss(plan.loss, plan.cut))
    count, off = (700, 1.3) if FULL else (150, 2)
    drawn = [plan.fit(problem, bits) for _ in range(count)]
    terms = np.array([-slope_at(learned, weights) for weights in drawn])
    terms /= float(plan.sigma)

    def accepted(values):
        law, total = stats.chi2(len(values)), float(np.sum(values**2))
        return min(stats.kstest(values, "norm").pvalue, 2 * min(law.cdf(total), law.sf(total))) > ALARM / 2

    # power: a scale off by 0.3 moves the variance by 41 % or more, 7 of its standard errors sqrt(2/700); one off by
    # a factor of two by 75 % or more, 6.5 of those of 150
    assert accepted(terms) and not accepted(terms * off) and not accepted(terms / off)


def test_neighbors_with_the_same_bits_get_terms_that_differ_by_the_gradient_of_the_row():
    # the same b on both sides: the weights of one side need, on the other, a term that is off by f' x
    plan = planned(features=1, penalty=2.0, cut=1.0)
    one = tiny(plan)
    two = RiskMinimization(one.features[1:], one.labels[1:], one.loss, 1.0, ADD, 1000, 2.0)
    weights = plan.fit(one, ReplayBits(b"same"))
    gap = slope_at(one, weights) - slope_at(two, weights)
    assert 0 < abs(gap) <= 1.0


def test_the_same_bits_give_the_same_weights():
    plan = planned(features=1, penalty=2.0)
    one, other, third = (plan.fit(tiny(plan), ReplayBits(seed)) for seed in (b"a", b"a", b"b"))
    assert one.tolist() == other.tolist() != third.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("loss", [MultinomialLoss(3), SmoothedHinge(), HuberLoss(1.0)], ids=repr)
def test_with_a_large_epsilon_the_weights_are_those_of_the_minimizer(loss):
    plan = planned("500", "1e-6", loss=loss, features=2, penalty=1.0)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60) if loss.outputs > 1 else rng.choice([-1.0, 1.0], 60)
    problem = RiskMinimization(rng.normal(size=(60, 2)) / 4, labels, loss, 1.0, ADD, 1000, 1.0)
    found = plan.fit(problem, ReplayBits(b"large"))
    assert found.shape == problem.shape
    away = np.abs(found - minimize(problem, np.zeros(problem.shape), 1e-9)).max()
    assert away < 8 * float(plan.sigma) / plan.penalty < 1


def test_a_problem_that_was_not_planned_for_is_refused():
    plan = planned(features=1, penalty=2.0)
    rows, labels = np.ones((4, 1)), np.ones(4)
    for other in (
        RiskMinimization(rows, labels, SmoothedHinge(), 1.0, ADD, 1000, 2.0),
        RiskMinimization(rows, labels, LogisticLoss(), 1.0, REPLACE, 4, 2.0),
        RiskMinimization(rows, labels, LogisticLoss(), 1.0, ADD, 1000, 1.0),
    ):
        with pytest.raises(ParameterError, match="planned"):
            plan.fit(other, ReplayBits(b""))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon": "0"}, "epsilon"),
        ({"delta": "0"}, "delta"),
        ({"delta": "1"}, "delta"),
        ({"delta": "1e-40"}, "delta"),
        ({"penalty": 0.0}, "penalty"),
        ({"penalty": 0.01}, "penalty"),
        ({"cut": 2.0}, "cut"),
        ({"features": 0}, "features"),
    ],
)
def test_bad_plans_are_refused_by_name(changes, named):
    with pytest.raises(ParameterError, match=named):
        planned(**changes)
