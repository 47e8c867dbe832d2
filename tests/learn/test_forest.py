"""Single trees and forests: what they learn, their account, scikit-learn's manners, and what one row moves."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from tests.support.counts import FULL, some
from tests.support.learning import WEIGHTED, WEIGHTED_TWO_CLASSES

from tacit.accounting import epsilon_delta
from tacit.audit.claim import Claim
from tacit.audit.statistical import audit
from tacit.errors import ParameterError
from tacit.learn import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    budget,
)
from tacit.learn.noise import GridGaussian
from tacit.learn.sums import quantize
from tacit.learn.tree_averages import AveragedTrees, ClassCounts, TargetSums, count_columns
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_release import TreeReleases, quantize_residuals
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(6)
ROWS = RNG.uniform(0, 10, (4000, 3))
BANDS = (ROWS[:, 0] > 7) | (ROWS[:, 1] < 2)
TARGET = 10.0 * BANDS + 40 + ROWS[:, 1]
PUBLIC = {"bounds": (0, 10), "rows": 4000, "epsilon": 2, "bits": partial(ReplayBits, b"forest")}
CLASSIFIERS = {
    "tree": lambda **more: DecisionTreeClassifier(**{**PUBLIC, "classes": [False, True], **more}),
    "forest": lambda **more: RandomForestClassifier(**{**PUBLIC, "classes": [False, True], **more}),
}
REGRESSORS = {
    "tree": lambda **more: DecisionTreeRegressor(**{**PUBLIC, "target_bounds": (30, 70), **more}),
    "forest": lambda **more: RandomForestRegressor(**{**PUBLIC, "target_bounds": (30, 70), **more}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_are_told_apart(kind):
    found = CLASSIFIERS[kind]().fit(ROWS, BANDS)
    assert found.score(ROWS, BANDS) > 0.85
    shares = found.predict_proba(ROWS[:50])
    assert np.allclose(shares.sum(axis=1), 1) and np.all(shares >= 0)
    assert found.feature_importances_.sum() == pytest.approx(1) and found.feature_importances_[2] < 0.2
    assert found.method_ == kind and "value" in found.export_text()
    assert found.apply(ROWS).shape == (4000, 1 if kind == "tree" else found.n_estimators)
    assert len(np.unique(found.apply(ROWS)[:, 0])) > 2  # not the root


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_three_classes_and_numbers(kind):
    which = np.digitize(ROWS[:, 0], [3, 6])
    assert CLASSIFIERS[kind](classes=[0, 1, 2], epsilon=4).fit(ROWS, which).score(ROWS, which) > 0.8
    found = REGRESSORS[kind]().fit(ROWS, TARGET)
    assert found.score(ROWS, TARGET) > 0.3
    assert found.predict(ROWS).min() >= 30 and found.predict(ROWS).max() <= 70


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_loss_is_within_the_guarantee(kind, neighbors):
    for make in (CLASSIFIERS[kind], REGRESSORS[kind]):
        plan = make(neighbors=neighbors, rows=None if neighbors == "replace" else 4000).plan(3, 4000)
        spent = epsilon_delta.epsilon(plan.privacy_loss, plan.guarantee.delta, by="zcdp")
        assert 1.999 < spent <= 2 == float(plan.guarantee.epsilon)


@pytest.mark.parametrize("loss", [ClassCounts(2), ClassCounts(5), TargetSums()], ids=["two", "five", "numbers"])
def test_no_row_has_more_than_its_bounds(loss):
    labels = np.array([-1.0, 0.3, 1.0]) if isinstance(loss, TargetSums) else np.arange(loss.classes)
    moments = loss.moments(labels)
    assert moments.shape[1] == loss.outputs + 1
    assert (quantize(moments, 1.0) ** 2).sum(axis=1).max() <= 4**20
    assert np.linalg.norm(moments, axis=1).max() <= 1 + 1e-15
    most = 1 if loss.outputs == 1 else 2
    for seed in range(20):
        prior = np.random.default_rng(seed).dirichlet(np.ones(loss.outputs + 1)) * (1 - 2 * (seed % 2))
        prior = np.abs(prior) if isinstance(loss, ClassCounts) else np.clip(prior * 3, -1, 1)
        residuals = loss.residuals(labels, prior)
        assert np.abs(residuals).sum(axis=1).max() <= most * (1 + 1e-12)
        assert np.abs(quantize_residuals(residuals, most)).sum(axis=1).max() <= most * 2**20


def test_leaves_of_few_rows_are_near_the_prior():
    loss, prior = ClassCounts(2), np.array([0.75, 0.25])
    found = loss.means(np.array([[0.0, 0.0], [-9.0, 3.0], [0.0, 9000.0]]), prior, 30.0)
    assert found[0].tolist() == [0.75, 0.25]
    assert found[1, 0] == pytest.approx(30 * 0.75 / 33) and found[2, 1] > 0.99
    numbers = TargetSums().means(np.array([[0.0, 0.0], [1e9, 1.0]]), np.array([0.5]), 10.0)
    assert numbers.ravel().tolist() == [0.5, 1.0]


DECLARED = "it has labels that are not among the declared classes, which is an error; classes are never read from data"


@pytest.mark.slow
def test_scikit_learns_checks():
    labels = {
        "check_classifiers_classes": DECLARED,
        "check_classifier_data_not_an_array": DECLARED,
        "check_estimators_dtypes": DECLARED,
        "check_fit2d_1feature": DECLARED,
    } | WEIGHTED_TWO_CLASSES
    shared = {"bounds": (-5, 5), "rows": 50, "bits": partial(ReplayBits, b"checks"), "delta": 1e-4, "max_bins": 31}
    cases = [
        (DecisionTreeClassifier(5000, classes=[0, 1], **shared), labels),
        (RandomForestClassifier(5000, classes=[0, 1], n_estimators=3, **shared), labels),
        (DecisionTreeRegressor(5000, target_bounds=(-5, 5), max_depth=6, **shared), WEIGHTED),
        (RandomForestRegressor(5000, target_bounds=(-5, 5), n_estimators=3, **shared), WEIGHTED),
    ]
    for estimator, misses in some(cases, 3):  # a tree and a forest, of classes and of numbers
        found = check_estimator(estimator, expected_failed_checks=misses, on_skip=None, on_fail=None)
        assert [check["check_name"] for check in found if check["status"] == "failed"] == []
        assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(misses)
        assert len(found) > 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_they_are_cloned_pickled_budgeted_and_put_into_pipelines(kind):
    found = CLASSIFIERS[kind]().fit(ROWS, BANDS)
    assert pickle.loads(pickle.dumps(found)).predict_proba(ROWS[:9]).tolist() == found.predict_proba(ROWS[:9]).tolist()
    assert clone(CLASSIFIERS[kind](max_depth=2)).max_depth == 2
    with budget(epsilon=3, delta=1e-6) as spending:
        make_pipeline(FunctionTransformer(), CLASSIFIERS[kind]()).fit(ROWS, BANDS)
    assert spending.fits_ == 1


def test_numbers_of_columns():
    assert [count_columns("sqrt", columns) for columns in (1, 2, 9, 10)] == [1, 2, 3, 4]
    assert count_columns(3, 9) == 3 and count_columns(0.5, 9) == 5 and count_columns(1.0, 9) == 9
    for wrong in ("log2", 0, 10, 0.0, 1.5, True, None, [1]):
        with pytest.raises(ParameterError, match="max_features") as caught:
            count_columns(wrong, 9)
        assert caught.value.fix


@pytest.mark.parametrize("wrong", [{"n_estimators": 0}, {"max_depth": 99}, {"max_leaf_nodes": 2}, {"max_features": 7}])
def test_settings_that_are_wrong_are_named(wrong):
    (name,) = wrong
    for make in (CLASSIFIERS["forest"], REGRESSORS["forest"]):
        with pytest.raises(ParameterError, match=name) as caught:
            make(**wrong).fit(ROWS, BANDS)
        assert caught.value.fix


@pytest.mark.slow
def test_columns_are_drawn_without_the_rows():
    releases = TreeReleases.calibrate(
        Fraction(10**6),
        Fraction(1, 1000),
        trees=1,
        depth=1,
        outputs=1,
        most_leaves=4,
        neighbors=Neighbors.ADD_REMOVE,
    )
    bins = ColumnBins.of([0.0] * 3, [1.0] * 3, most=2)
    places, residuals = np.array([[0, 0, 0], [1, 0, 0]]), np.array([[-1.0], [1.0]])  # the first column parts them
    bits = ReplayBits(b"columns")
    free = [releases.choose_splits(bins, places, residuals, bits)[0][0].column for _ in range(30)]
    drawn = [releases.choose_splits(bins, places, residuals, bits, columns=1)[0][0].column for _ in range(300)]
    assert set(free) == {0}
    # each of three is drawn with probability 1/3: six deviations of 300 draws are 49
    assert all(51 < drawn.count(column) < 149 for column in range(3))


SAMPLES = 20_000 if FULL else 100
LESS, FITS = (2, 2_000) if FULL else (4, 200)
SURE = 1 - 1e-9
EPSILON, DELTA = Fraction(1), Fraction(1, 10)


@pytest.mark.slow
def test_the_claim_stands_and_too_little_noise_is_caught():
    # The sum of all rows is one of two releases of equal noise: one row moves it by one, as much as it may. The claim
    # is what privacy loss distributions prove of this release alone.
    bins = ColumnBins.of([0.0], [1.0], most=2)
    facts = {"loss": ClassCounts(2), "neighbors": Neighbors.ADD_REMOVE, "trees": 1, "depth": 1, "leaves": 2}
    plan = AveragedTrees.calibrate(EPSILON, DELTA, **facts)
    noise = plan.releases.noise
    less = replace(plan.releases, noise=GridGaussian(noise.sigma / LESS, noise.sensitivity, noise.coordinates))

    def mechanism(releases):
        bits, known = ReplayBits(b"audit"), replace(plan, releases=releases)

        def fit(rows):
            return float(
                known.fit(bins, np.zeros((rows, 1), dtype=np.int64), np.ones(rows, dtype=int), bits)[0].values[0, 1]
            )

        return fit

    alone = Claim.epsilon(Fraction(epsilon_delta.epsilon(noise.loss, float(DELTA))), DELTA)
    assert not audit(mechanism(plan.releases), 0, 1, alone, samples=SAMPLES, confidence=SURE).is_refuted
    assert audit(mechanism(less), 0, 1, alone, samples=FITS, confidence=SURE).is_refuted
