"""Multilayer perceptrons with scikit-learn's face."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from tests.support.counts import some

from tacit.accounting import epsilon
from tacit.errors import ParameterError
from tacit.learn import budget
from tacit.learn.torch import MLPClassifier, MLPRegressor
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

DECLARED = {"epsilon": 8, "bounds": (-1, 1), "rows": 1500, "hidden_layer_sizes": (8,), "epochs": 4}


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(-1, 1, (1500, 3))


def test_a_classifier_learns(rows):
    labels = np.where(rows[:, 0] + rows[:, 1] > 0, "yes", "no")
    bits = partial(ReplayBits, b"classifier")
    model = MLPClassifier(classes=["no", "yes"], bits=bits, **DECLARED).fit(rows, labels)
    assert model.score(rows, labels) > 0.85
    assert np.allclose(model.predict_proba(rows).sum(1), 1) and set(model.predict(rows)) <= {"no", "yes"}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert np.array_equal(clone(model).fit(rows, labels).predict_proba(rows), model.predict_proba(rows))  # same bits


def test_a_regressor_learns_within_the_bounds(rows):
    target = 10 * rows[:, 0]
    bits = partial(ReplayBits, b"regressor")
    model = MLPRegressor(target_bounds=(-10, 10), bits=bits, **DECLARED).fit(rows, target)
    assert model.score(rows, target) > 0.6
    assert np.abs(model.predict(50 * rows)).max() <= 10


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_guarantee_is_that_of_the_loss(rows, neighbors):
    model = MLPClassifier(classes=[0, 1], neighbors=str(neighbors), **DECLARED)
    plan = model.plan(3, 1500)
    assert plan.guarantee.epsilon == 8 and plan.guarantee.delta == Fraction(1, 1500**2)
    assert plan.guarantee.neighbors is plan.release.training.neighbors is neighbors
    assert 7.9 < epsilon(plan.privacy_loss, plan.guarantee.delta) <= 8
    fitted = model.fit(rows, (rows[:, 0] > 0).astype(int))
    assert fitted.loss_ == plan.privacy_loss and fitted.guarantee_ == plan.guarantee


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (MLPClassifier(**DECLARED), "classes: are not declared"),
        (MLPRegressor(**DECLARED), "target_bounds: are not declared"),
        (MLPClassifier(classes=[0, 1], **DECLARED | {"bounds": None}), "bounds: are not declared"),
        (MLPClassifier(classes=[0, 1], **DECLARED | {"epochs": 0}), "epochs"),
        (MLPClassifier(classes=[0, 1], delta=0, **DECLARED), "needs a delta above 0"),
    ],
)
def test_what_is_not_declared_is_said(model, what):
    with pytest.raises(ParameterError, match=what):
        model.plan(3)


LABELS = "it has labels that are not among the declared classes, which is an error; classes are never read from data"
CHECKED = {"bounds": (-8, 8), "rows": 100, "hidden_layer_sizes": (8,), "epochs": 15, "batch_size": 100}


CASES = [
    (
        MLPClassifier(1000, classes=[0, 1], learning_rate=0.2, **CHECKED),
        {
            "check_classifiers_classes": LABELS,
            "check_classifier_data_not_an_array": LABELS,
            "check_estimators_dtypes": LABELS,
            "check_fit2d_1feature": LABELS,
        },
    ),
    (MLPRegressor(1000, target_bounds=(-10, 10), learning_rate=0.05, **{**CHECKED, "batch_size": 25}), {}),
]


@pytest.mark.parametrize(("model", "expected"), some(CASES, 2), ids=lambda value: type(value).__name__)
def test_scikit_learns_own_checks_hold(model, expected):
    model.set_params(bits=partial(ReplayBits, b"checks"))
    found = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(expected)


def test_fits_are_charged_to_a_budget_and_those_that_meet_a_bad_label_too(rows):
    model = MLPClassifier(classes=[0, 1], **DECLARED)
    with budget(epsilon=16, delta=1e-5) as spending:
        model.fit(rows, (rows[:, 0] > 0).astype(int))
        with pytest.raises(ParameterError, match="not among the declared classes"):
            model.fit(rows, np.full(1500, 7))
    assert spending.fits_ == 2 and not hasattr(model, "network_")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"clip": 0}, "clip"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"hidden_layer_sizes": 64}, "hidden_layer_sizes"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes"),
        ({"target_bounds": (1, 0)}, "target_bounds"),
        ({"target_bounds": 3}, "target_bounds"),
    ],
    ids=str,
)
def test_what_is_out_of_range_is_refused_before_anything_is_charged(rows, wrong, name):
    with budget(epsilon=9, delta=1e-5) as spending, pytest.raises(ParameterError, match=f"{name}: ") as caught:
        MLPRegressor(**{**DECLARED, "target_bounds": (0, 1), **wrong}).fit(rows, rows[:, 0])
    assert caught.value.fix and spending.fits_ == 0


@pytest.mark.parametrize("name", ["sample_weight", "random_state"])
def test_what_no_private_estimator_takes_is_refused(rows, name):
    with pytest.raises(ParameterError, match=f"{name}: ") as caught:
        MLPClassifier(classes=[0, 1], **DECLARED).fit(rows, rows[:, 0] > 0, **{name: 1})
    assert caught.value.fix == f"leave {name} out"
