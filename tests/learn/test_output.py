"""Output perturbation: its price, its sensitivity and the law of what it releases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.support.counts import FULL
from tests.support.learning import calibrate

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.minimize import minimize
from tacit.learn.output import GridLaplace, OutputPerturbation, clip_loss
from tacit.learn.problem import RiskMinimization
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
ALARM = 1e-9  # the chance that a test of a law fails without a cause


def facts(loss=None, neighbors=ADD, features=3, rows=1000, norm=1.0):
    return {"loss": loss or LogisticLoss(), "norm": norm, "features": features, "rows": rows, "neighbors": neighbors}


def planned(epsilon="1", delta="1e-6", **changes):
    knobs = {name: changes.pop(name) for name in ("penalty", "cut") if name in changes}
    return calibrate(OutputPerturbation, Fraction(epsilon), Fraction(delta), **facts(**changes), **knobs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "loss", "neighbors"),
    [
        ("0.1", "1e-9", LogisticLoss(), ADD),
        ("1", "1e-6", LogisticLoss(), REPLACE),
        ("4", "1e-9", SmoothedHinge(), ADD),
        ("0.1", "1e-6", HuberLoss(2.0), REPLACE),
        ("1", "1e-9", MultinomialLoss(4), ADD),
    ],
)
def test_a_fit_costs_what_was_planned(epsilon, delta, loss, neighbors):
    plan = planned(epsilon, delta, loss=loss, neighbors=neighbors)
    spent = epsilon_delta.epsilon(plan.privacy_loss, float(delta))
    assert 0.99 * float(epsilon) < spent <= float(epsilon)


def test_without_a_delta_the_price_is_pure():
    plan = planned("0.5", "0", features=40)
    assert isinstance(plan.noise, GridLaplace)
    assert epsilon_delta.epsilon(plan.privacy_loss, 0.0) == 0.5
    # sqrt(d) s/epsilon is the scale, sqrt 2 of it the deviation: rounding to the grid adds 1e-7
    expected = math.sqrt(2 * 40) * float(plan.noise.sensitivity) / 0.5
    assert plan.deviation == pytest.approx(expected, rel=1e-6) and plan.deviation > expected


@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHinge(), HuberLoss(2.0), MultinomialLoss(4)], ids=repr)
def test_the_sensitivity_is_the_slope_times_the_norm_over_the_penalty(loss):
    for neighbors, times in ((ADD, 1), (REPLACE, 2)):
        plan = planned(loss=loss, neighbors=neighbors, norm=3.0, penalty=5.0, cut=loss.slope)
        least = times * loss.slope * 3.0 / 5.0
        assert least < plan.noise.sensitivity < least * (1 + 1e-6)


def test_a_cut_makes_the_noise_smaller():
    whole, half = (planned(penalty=1.0, cut=cut) for cut in (1.0, 0.5))
    assert half.deviation == pytest.approx(whole.deviation / 2, rel=1e-6)
    assert 0.5 < planned().cut < 1.0  # the rule's
    assert planned(rows=10**9).cut > 0.999  # as the noise vanishes the loss becomes itself
    assert planned(loss=SmoothedHinge()).cut == 1.0


def test_the_rule_for_the_penalty_has_the_units_of_the_features():
    # features in other units, ten times larger: the penalty is a hundred times larger, and the scores the same
    one, other = planned(norm=1.0), planned(norm=10.0)
    assert other.penalty == pytest.approx(100 * one.penalty)
    assert other.deviation == pytest.approx(one.deviation / 10, rel=1e-5)
    # and like the cube root of the rows
    assert planned(rows=8000, cut=1.0).penalty == pytest.approx(2 * planned(rows=1000, cut=1.0).penalty)


def tiny(plan):
    return RiskMinimization(np.full((4, 1), 0.5), np.array([1.0, -1.0, 1.0, 1.0]), plan.loss, 1.0, ADD, 1000, 2.0)


def draws(plan, count, seed):
    bits, problem = ReplayBits(seed), tiny(plan)
    center = minimize(
        tiny(OutputPerturbation(plan.noise, clip_loss(plan.loss, plan.cut), 1.0, 1000, ADD, 2.0, 1.0)),
        np.zeros(1),
        1e-9,
    )
    return np.array([plan.fit(problem, bits)[0] for _ in range(count)]) - center[0]


def sides(law, value):
    """The p-value of a statistic, both ways."""
    return 2 * min(law.cdf(value), law.sf(value))


@pytest.mark.slow
def test_what_is_released_is_the_minimizer_with_gaussian_noise():
    plan = planned(features=1, penalty=2.0)
    count, off = (1000, 1.25) if FULL else (180, 1.8)
    noise = draws(plan, count, b"gaussian") / plan.deviation

    def accepted(values):
        squares = sides(stats.chi2(len(values)), float(np.sum(values**2)))
        return min(stats.kstest(values, "norm").pvalue, squares) > ALARM / 2

    # power: a scale off by a quarter moves the variance by 36 % or more, 8 of its standard errors sqrt(2/1000); one off
    # by 0.8 by 69 % or more, 6.5 of those of 180
    assert accepted(noise) and not accepted(noise * off) and not accepted(noise / off)


@pytest.mark.slow
def test_without_a_delta_the_noise_is_laplace():
    plan = planned("1", "0", features=1, penalty=2.0)
    count, off = (800, 1.33) if FULL else (180, 2)
    noise = draws(plan, count, b"laplace") / (plan.deviation / math.sqrt(2))

    def accepted(values):
        total = sides(stats.gamma(len(values)), float(np.sum(np.abs(values))))
        return min(stats.kstest(values, "laplace").pvalue, total) > ALARM / 2

    # power: the sum of sizes is off by a quarter or more, 7 of its standard errors 1/sqrt(800), or by half or more,
    # 6.7 of those of 180
    assert accepted(noise) and not accepted(noise * off) and not accepted(noise / off)


def test_the_same_bits_give_the_same_weights():
    plan = planned(features=1, penalty=2.0)
    one, other, third = (plan.fit(tiny(plan), ReplayBits(seed)) for seed in (b"a", b"a", b"b"))
    assert one.tolist() == other.tolist() != third.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["1e-6", "0"])
def test_weights_have_the_shape_of_the_problem(delta):
    plan = planned("1000", delta, loss=MultinomialLoss(3), features=2, penalty=1.0)
    features = np.random.default_rng(0).normal(size=(50, 2)) / 4
    problem = RiskMinimization(features, np.arange(50.0) % 3, MultinomialLoss(3), 1.0, ADD, 1000, 1.0)
    found = plan.fit(problem, ReplayBits(b"shape"))
    assert found.shape == (2, 3)
    assert np.abs(found - minimize(problem, np.zeros((2, 3)), 1e-9)).max() < 12 * plan.deviation


def test_a_problem_that_was_not_planned_for_is_refused():
    plan = planned(features=1, penalty=2.0)
    rows, labels = np.ones((4, 1)), np.ones(4)
    for other in (
        RiskMinimization(rows, labels, SmoothedHinge(), 1.0, ADD, 1000, 2.0),
        RiskMinimization(rows, labels, LogisticLoss(), 1.0, REPLACE, 4, 2.0),
        RiskMinimization(rows, labels, LogisticLoss(), 2.0, ADD, 1000, 2.0),
        RiskMinimization(rows, labels, LogisticLoss(), 1.0, ADD, 1000, 1.0),
    ):
        with pytest.raises(ParameterError, match="planned"):
            plan.fit(other, ReplayBits(b""))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"delta": "1"}, "delta"),
        ({"delta": "-1e-9"}, "delta"),
        ({"penalty": 0.0}, "penalty"),
        ({"cut": 1.5}, "cut"),
        ({"features": 0}, "features"),
    ],
)
def test_bad_plans_are_refused_by_name(changes, named):
    with pytest.raises(ParameterError, match=named):
        planned(**changes)
    if "epsilon" in changes:
        with pytest.raises(ParameterError, match=named):
            planned(**changes, delta="0")
