"""Which method is chosen, and that nothing but public facts decides it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.learn import LogisticRegression, Ridge
from tacit.learn.auto import METHODS, RULE, Rule, chosen, planned
from tacit.learn.facts import Facts
from tacit.learn.gradient import Gradient
from tacit.learn.losses import Huber, Logistic, Multinomial, Squared
from tacit.learn.moments import Moments
from tacit.learn.newton import Newton
from tacit.learn.objective import Objective
from tacit.learn.output import Output


def facts(epsilon=1, rows=1000, columns=4, **more) -> Facts:
    return Facts.declared(columns=columns, found=None, epsilon=epsilon, bounds=(0, 1), rows=rows, **more)


def test_a_delta_of_zero_leaves_output_perturbation():
    for loss in (Logistic(), Huber(), Multinomial(3), Squared(1.0)):
        assert chosen(facts(delta=0), loss) == "output"
        assert isinstance(planned("auto", facts(delta=0), loss, None)[1], Output)


def test_the_signal_is_epsilon_rows_over_the_root_of_the_weights():
    # Three columns and the constant are 4 weights: the signal is epsilon rows/2.
    loss = Logistic()
    assert chosen(facts(columns=3, epsilon=1, rows=1600), loss) == "objective"  # 800
    assert chosen(facts(columns=3, epsilon=1, rows=1599), loss) == "gradient"
    assert chosen(facts(columns=3, epsilon=0.1, rows=16_000), loss) == "objective"
    # Four classes have four times the weights, and half the signal.
    assert chosen(facts(columns=3, epsilon=1, rows=1600), Multinomial(4)) == "gradient"
    assert chosen(facts(columns=3, epsilon=2, rows=1600), Multinomial(4)) == "objective"


def test_a_squared_loss_is_learned_from_its_statistics_unless_columns_are_many():
    # the constant is a column too
    assert chosen(facts(columns=31, rows=10**6), Squared(1.0)) == "newton"
    assert chosen(facts(columns=32, rows=10**6), Squared(1.0)) == "gradient"


def test_the_thresholds_are_in_one_place():
    assert chosen(facts(), Logistic(), Rule(plenty=0)) == "objective"
    assert chosen(facts(), Logistic(), Rule(plenty=1e9)) == "gradient"
    assert chosen(facts(), Squared(1.0), Rule(wide=0)) == "gradient"
    assert Rule() == RULE


@pytest.mark.parametrize(
    ("name", "loss", "kind"),
    [
        ("output", Logistic(), Output),
        ("objective", Huber(), Objective),
        ("gradient", Multinomial(3), Gradient),
        ("newton", Logistic(), Newton),
        ("newton", Squared(1.0), Moments),
    ],
)
def test_each_name_has_its_method(name, loss, kind):
    found, method = planned(name, facts(), loss, None)
    assert found == name and isinstance(method, kind)
    assert planned(name, facts(), loss, None)[1] is method  # the same facts share a plan


@pytest.mark.parametrize("name", METHODS)
def test_a_penalty_that_is_declared_is_used(name):
    assert planned(name, facts(), Logistic(), 7.5)[1].penalty == 7.5


@pytest.mark.parametrize("wrong", ["sgd", "", None, 3, ["output"]], ids=str)
def test_an_unknown_method_is_an_error(wrong):
    with pytest.raises(ParameterError, match="method: there is no"):
        planned(wrong, facts(), Logistic(), None)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "output"])
def test_gaussian_methods_need_a_delta(name):
    with pytest.raises(ParameterError, match=f"delta: {name} needs one above 0"):
        planned(name, facts(delta=0), Logistic(), None)


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
