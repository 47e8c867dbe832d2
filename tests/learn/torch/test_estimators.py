"""Multilayer perceptrons with scikit-learn's face."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from tacit.accounting import epsilon
from tacit.errors import ParameterError
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
