"""Which method is chosen, and that nothing but public facts decides it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn import LogisticRegression, Ridge
from tacit.learn.auto import METHODS, THRESHOLDS, MethodThresholds, choose_method, plan_method
from tacit.learn.facts import DeclaredParameters
from tacit.learn.gradient import NoisyGradientDescent
from tacit.learn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.method import LearningTask
from tacit.learn.moments import SufficientStatistics
from tacit.learn.newton import NoisyNewton
from tacit.learn.objective import ObjectivePerturbation
from tacit.learn.output import OutputPerturbation
from tacit.privacy.unit import Neighbors


def facts(epsilon=1, rows=1000, columns=4, **more) -> DeclaredParameters:
    return DeclaredParameters.from_settings(
        columns=columns, found=None, epsilon=epsilon, bounds=(0, 1), rows=rows, **more
    )


def test_a_delta_of_zero_leaves_output_perturbation():
    for loss in (LogisticLoss(), SmoothedHinge(), MultinomialLoss(3), HuberLoss(1.0)):
        assert choose_method(facts(delta=0), loss) == "output"
        assert isinstance(plan_method("auto", facts(delta=0), loss, None)[1], OutputPerturbation)


def test_the_signal_is_epsilon_rows_over_the_root_of_the_weights():
    # Three columns and the constant are 4 weights: the signal is epsilon rows/2.
    loss = LogisticLoss()
    assert choose_method(facts(columns=3, epsilon=1, rows=1600), loss) == "objective"  # 800
    assert choose_method(facts(columns=3, epsilon=1, rows=1599), loss) == "gradient"
    assert choose_method(facts(columns=3, epsilon=0.1, rows=16_000), loss) == "objective"
    # Four classes have four times the weights, and half the signal.
    assert choose_method(facts(columns=3, epsilon=1, rows=1600), MultinomialLoss(4)) == "gradient"
    assert choose_method(facts(columns=3, epsilon=2, rows=1600), MultinomialLoss(4)) == "objective"


def test_a_squared_loss_is_learned_from_its_statistics_unless_columns_are_many():
    # the constant is a column too
    assert choose_method(facts(columns=31, rows=10**6), HuberLoss(1.0)) == "newton"
    assert choose_method(facts(columns=32, rows=10**6), HuberLoss(1.0)) == "gradient"


def test_the_thresholds_are_in_one_place():
    assert choose_method(facts(), LogisticLoss(), MethodThresholds(plenty=0)) == "objective"
    assert choose_method(facts(), LogisticLoss(), MethodThresholds(plenty=1e9)) == "gradient"
    assert choose_method(facts(), HuberLoss(1.0), MethodThresholds(wide=0)) == "gradient"
    assert MethodThresholds() == THRESHOLDS


@pytest.mark.parametrize(
    ("name", "loss", "kind"),
    [
        ("output", LogisticLoss(), OutputPerturbation),
        ("objective", SmoothedHinge(), ObjectivePerturbation),
        ("gradient", MultinomialLoss(3), NoisyGradientDescent),
        ("newton", LogisticLoss(), NoisyNewton),
        ("newton", HuberLoss(1.0), SufficientStatistics),
    ],
)
def test_each_name_has_its_method(name, loss, kind):
    found, method = plan_method(name, facts(), loss, None)
    assert found == name and isinstance(method, kind)
    assert plan_method(name, facts(), loss, None)[1] is method  # the same facts share a plan


@pytest.mark.parametrize("name", METHODS)
def test_a_penalty_that_is_declared_is_used(name):
    assert plan_method(name, facts(), LogisticLoss(), 7.5)[1].penalty == 7.5


@pytest.mark.parametrize("wrong", ["sgd", "", None, 3, ["output"]], ids=str)
def test_an_unknown_method_is_an_error(wrong):
    with pytest.raises(ParameterError, match="method: there is no"):
        plan_method(wrong, facts(), LogisticLoss(), None)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "output"])
def test_gaussian_methods_need_a_delta(name):
    with pytest.raises(ParameterError, match=f"delta: {name} needs one above 0"):
        plan_method(name, facts(delta=0), LogisticLoss(), None)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_no_row_decides(seed, count):
    # Whatever the rows are and however many, the method that is used follows from what is declared.
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 2)) * 10 ** rng.uniform(-3, 3)
    model = LogisticRegression(1, classes=[0, 1], bounds=(-1, 1), rows=100, method="auto")
    assert model.fit(rows, rng.integers(0, 2, count)).method_ == model.plan(2).name == "gradient"
    ridge = Ridge(Fraction(1), bounds=(-1, 1), target_bounds=(0, 1), rows=100)
    assert ridge.fit(rows, rows[:, 0]).method_ == "newton"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*METHODS.values(), SufficientStatistics])
def test_every_method_is_calibrated_to_a_task_alone(kind):
    loss = HuberLoss(1.0) if kind is SufficientStatistics else LogisticLoss()
    shape = {"norm": 1.0, "features": 3, "rows": 1000, "neighbors": Neighbors.ADD_REMOVE}
    task = LearningTask(Fraction(1), Fraction(1, 10**6), loss, **shape)
    method = kind.calibrate(task)
    assert 0.99 < epsilon_delta.epsilon(method.privacy_loss, 1e-6) <= 1
    assert method.penalty > 0 and method.cut > 0
    assert method == kind.calibrate(task)
    assert kind.calibrate(replace(task, penalty=5.0)).penalty == 5.0
