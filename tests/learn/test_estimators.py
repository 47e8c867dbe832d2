"""The estimators as scikit-learn's users meet them, and what they promise."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator
from tests.support.bits import Stopped, Stopping
from tests.support.counts import FULL, some
from tests.support.learning import WEIGHTED, WEIGHTED_TWO_CLASSES, calibrate

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn import LinearSVC, LogisticRegression, Ridge, budget
from tacit.learn.auto import METHODS
from tacit.learn.losses import LogisticLoss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

DECLARED = "it has labels that are not among the declared classes, which is an error; classes are never read from data"
TWO_OF_THREE = "it has two of the three declared classes, and expects a model of two"
EXPECTED = {
    "two classes": {
        "check_classifiers_classes": DECLARED,
        "check_classifier_data_not_an_array": DECLARED,
        "check_estimators_dtypes": DECLARED,
        "check_fit2d_1feature": DECLARED,
    },
    "three classes": {
        "check_classifiers_classes": DECLARED,
        "check_classifiers_train": TWO_OF_THREE,
        "check_decision_proba_consistency": TWO_OF_THREE,
        "check_dtype_object": DECLARED,
    },
    "a number": {},
}
# A large epsilon; and the same bits at every fit, as scikit-learn's own random estimators have the same random_state.
LARGE = {"epsilon": 1000, "rows": 100, "bits": partial(ReplayBits, b"checks")}
# Of three classes the method that is chosen by itself, as it is for two, takes far more steps than this one.
THREE = {**LARGE, "classes": [0, 1, 2], "method": "auto" if FULL else "newton"}
CHECKED = [
    (LogisticRegression(classes=[0, 1], bounds=(-8, 8), **LARGE), "two classes"),
    (LogisticRegression(bounds=(-8, 8), **THREE), "three classes"),
    (LinearSVC(classes=[0, 1], bounds=(-8, 8), **LARGE), "two classes"),
    (Ridge(bounds=(-5, 5), target_bounds=(-10, 10), **LARGE), "a number"),
]
ROUNDING = 1.002  # the accountant's grid rounds up: by less than 1e-3 here
RNG = np.random.default_rng(7)
ROWS = RNG.uniform(-1, 1, size=(2000, 3))
SIDE = (ROWS @ [3.0, -2.0, 0.5] > 0.3).astype(int)
THIRD = np.digitize(ROWS[:, 0], [-0.3, 0.3])
TARGET = 5 + 2 * ROWS[:, 0] - ROWS[:, 1]
PUBLIC = {"epsilon": 2, "bounds": (-1, 1), "rows": 2000}


def replayed(seed: str = "estimators"):
    return partial(ReplayBits, seed.encode())


def logistic(**more) -> LogisticRegression:
    return LogisticRegression(**{**PUBLIC, "classes": [0, 1], "bits": replayed(), **more})


def each_kind(**more):
    """An estimator of each kind with a target it can learn."""
    shared = {**PUBLIC, "bits": replayed(), **more}
    return [
        (LogisticRegression(classes=[0, 1], **shared), SIDE),
        (LogisticRegression(classes=[0, 1, 2], **shared), THIRD),
        (LinearSVC(classes=[0, 1], **shared), SIDE),
        (Ridge(target_bounds=(0, 10), **shared), TARGET),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "kind"), some(CHECKED, 2, 1), ids=lambda value: value if isinstance(value, str) else ""
)
def test_scikit_learns_own_checks_hold_but_for_five(estimator, kind):
    expected = EXPECTED[kind]
    assert len(expected) <= 5
    expected = expected | (WEIGHTED_TWO_CLASSES if kind == "two classes" else WEIGHTED)
    found = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    # What is expected to fail does: a reason that no longer holds is taken out.
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(expected)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "place"), some(product(METHODS, range(4)), 3))
def test_each_method_learns(method, place):
    estimator, target = each_kind(method=method, epsilon=20, delta=1e-6)[place]
    model = estimator.fit(ROWS, target)
    # Without rows to learn from: 64 % are on one side, 40 % in the largest third, and the variance explained is 0.
    assert model.score(ROWS, target) > (0.8, 0.6, 0.8, 0.5)[place]
    assert model.method_ == method
    assert model.guarantee_.epsilon == 20 and model.guarantee_.delta == Fraction(1, 10**6)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "place", "neighbors"), some(product(METHODS, range(4), Neighbors), 7, 2))
def test_what_is_spent_is_within_the_guarantee(method, place, neighbors):
    rows = 2000 if neighbors is Neighbors.ADD_REMOVE else None
    estimator, _ = each_kind(method=method, epsilon=0.7, delta=1e-6, neighbors=neighbors, rows=rows)[place]
    plan = estimator.plan(3, 2000)
    assert epsilon_delta.delta(plan.privacy_loss, 0.7) <= 1e-6 * ROUNDING
    assert plan.guarantee.neighbors is neighbors


def test_a_delta_of_zero_is_for_output_perturbation():
    model = logistic(delta=0, epsilon=50).fit(ROWS, SIDE)
    assert model.method_ == "output" and model.guarantee_.delta == 0
    assert epsilon_delta.epsilon(model.loss_, 0) <= 50
    with pytest.raises(ParameterError, match="delta: objective needs one above 0"):
        logistic(delta=0, method="objective").fit(ROWS, SIDE)


def test_constructors_store_what_they_are_given():
    given = object()
    for kind in (LogisticRegression, LinearSVC, Ridge):
        names = kind().get_params()
        made = kind(**dict.fromkeys(names, given))
        assert all(value is given for value in made.get_params().values())


@pytest.mark.slow
def test_the_model_is_linear_within_the_bounds():
    model = logistic().fit(ROWS, SIDE)
    assert model.coef_.shape == (1, 3) and model.intercept_.shape == (1,)
    assert model.decision_function(ROWS) == pytest.approx(ROWS @ model.coef_[0] + model.intercept_[0])
    # A value outside is read as the bound: as in the fit.
    assert model.decision_function([[9.0, 0, 0]]) == pytest.approx(model.decision_function([[1.0, 0, 0]]))


@pytest.mark.slow
def test_three_classes_have_a_score_each_and_probabilities_that_add_up():
    model = logistic(classes=["c", "a", "b"], epsilon=20).fit(ROWS, np.array(["a", "b", "c"])[THIRD])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.coef_.shape == (3, 3) and model.decision_function(ROWS).shape == (2000, 3)
    assert model.predict_proba(ROWS).sum(axis=1) == pytest.approx(1)
    assert np.exp(model.predict_log_proba(ROWS)) == pytest.approx(model.predict_proba(ROWS))
    assert set(model.predict(ROWS)) == {"a", "b", "c"}


def test_bounds_in_other_units_give_the_same_model():
    # Columns in degrees: x' = 100 x + 300, with the bounds moved alike. The origin of scaling stays in the middle only
    # where 0 is in the bounds, so a symmetric stretch: x' = 100 x.
    one = logistic().fit(ROWS, SIDE)
    other = logistic(bounds=(-100, 100)).fit(100 * ROWS, SIDE)
    assert other.coef_ * 100 == pytest.approx(one.coef_)
    assert other.predict(100 * ROWS).tolist() == one.predict(ROWS).tolist()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"classes": None}, "classes: are not declared"),
        ({"classes": [1]}, "classes: must be two different labels or more"),
        ({"classes": [0, 0]}, "classes: must be two different labels or more"),
        ({"classes": [0, 2]}, "y: some rows have a label that is not among the declared classes"),
        ({"classes": ["0", "1"]}, "y: some rows have a label that is not among the declared classes"),
        ({"epsilon": None}, "epsilon: is not declared"),
        ({"bounds": None}, "bounds: are not declared"),
        ({"rows": None}, "rows: is not declared"),
        ({"method": "magic"}, "method: there is no 'magic'"),
        ({"C": 0}, "C: must be a positive number"),
        ({"C": "1"}, "C: must be a positive number"),
        ({"bits": dict}, "bits: is no source of bits"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_said_with_a_fix(wrong, says):
    with pytest.raises(ParameterError, match=says) as caught:
        logistic(**wrong).fit(ROWS, SIDE)
    assert caught.value.fix


def test_a_support_vector_classifier_of_two_classes_takes_no_third_label():
    with pytest.raises(ParameterError, match="Only binary classification is supported"):
        LinearSVC(classes=[0, 1], **PUBLIC).fit(ROWS, THIRD)


@pytest.mark.parametrize("bounds", [None, 3, (1, 1), (2, 1), ("a", "b")], ids=str)
def test_a_regressor_needs_the_bounds_of_its_target(bounds):
    with pytest.raises(ParameterError, match="target_bounds"):
        Ridge(target_bounds=bounds, **PUBLIC).fit(ROWS, TARGET)


def test_a_target_outside_is_read_as_the_nearest_bound():
    far = TARGET.copy()
    far[far > 6] = 1e300
    clipped = np.where(far > 6, 10, far)
    models = [Ridge(target_bounds=(0, 10), bits=replayed(), **PUBLIC).fit(ROWS, y) for y in (far, clipped)]
    assert models[0].coef_.tolist() == models[1].coef_.tolist()


def test_weights_of_rows_are_refused():
    with pytest.raises(ParameterError, match="sample_weight: a weight other than 0 or 1 would multiply what a row can"):
        logistic().fit(ROWS, SIDE, sample_weight=np.full(2000, 2))


def test_missing_values_follow_the_declared_rule():
    holed = ROWS.copy()
    holed[::10, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        logistic().fit(holed, SIDE)
    filled = np.where(np.isnan(holed), 0.25, holed)
    one, other = logistic(missing=0.25).fit(holed, SIDE), logistic().fit(filled, SIDE)
    assert one.coef_.tolist() == other.coef_.tolist()
    assert one.predict(holed).tolist() == other.predict(filled).tolist()


def test_rows_that_are_there_are_not_counted_under_add_remove():
    # The number of rows is private: with half of them the same plan is made, to the last digit.
    model = logistic()
    assert repr(model.plan(3, 2000).method) == repr(model.plan(3, 1000).method) == repr(model.plan(3).method)


@pytest.mark.slow
def test_a_fit_that_is_stopped_is_charged_and_leaves_no_model():
    model = logistic().fit(ROWS, SIDE)
    model.set_params(epsilon=3, bits=Stopping())
    with pytest.raises(Stopped):
        model.fit(ROWS, SIDE)
    assert model.guarantee_.epsilon == 3
    assert epsilon_delta.delta(model.loss_, 3) <= float(model.guarantee_.delta) * ROUNDING
    assert not hasattr(model, "coef_")
    with pytest.raises(NotFittedError):
        model.predict(ROWS)


def test_a_fit_that_meets_a_bad_label_is_charged():
    model = logistic(classes=[0, 2])
    with pytest.raises(ParameterError):
        model.fit(ROWS, SIDE)
    assert model.guarantee_.epsilon == 2 and not hasattr(model, "coef_")


def test_noise_is_drawn_anew_unless_bits_are_given():
    one, other = (logistic(bits=None).fit(ROWS, SIDE).coef_ for _ in range(2))
    assert np.abs(one - other).max() > 1e-3
    same, again = (logistic().fit(ROWS, SIDE).coef_ for _ in range(2))
    assert same.tolist() == again.tolist()


@pytest.mark.slow
def test_no_warning_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for estimator, target in each_kind():
            estimator.fit(ROWS, target)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4), ids=["two classes", "three classes", "hinge", "number"])
def test_clones_and_pickles_are_what_they_copy(place):
    estimator, target = each_kind()[place]
    assert clone(estimator).get_params(deep=False).keys() == estimator.get_params(deep=False).keys()
    fitted = estimator.fit(ROWS, target)
    back = pickle.loads(pickle.dumps(fitted))
    assert back.predict(ROWS).tolist() == fitted.predict(ROWS).tolist()
    assert back.guarantee_ == fitted.guarantee_ and back.loss_ == fitted.loss_
    assert clone(fitted).fit(ROWS, target).coef_.tolist() == fitted.coef_.tolist()  # the same seed


@pytest.mark.slow
def test_frames_pipelines_and_column_transformers():
    frame = pandas.DataFrame({"age": 50 + 40 * ROWS[:, 0], "ward": np.array(["A", "B", "C"])[THIRD]})
    declared = OneHotEncoder(categories=[["A", "B", "C"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("ward", declared, ["ward"]), ("age", FunctionTransformer(), ["age"])])
    # One category and one number: the norm is at most sqrt(2) once age is scaled.
    model = logistic(bounds=([0, 0, 0, 0], [1, 1, 1, 110]), norm=2**0.5)
    whole = make_pipeline(columns.set_output(transform="pandas"), model).fit(frame, SIDE)
    assert whole.score(frame, SIDE) > 0.75
    assert model.feature_names_in_.tolist() == ["ward__ward_A", "ward__ward_B", "ward__ward_C", "age__age"]
    assert clone(whole).fit(frame, SIDE).predict(frame).tolist() == whole.predict(frame).tolist()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame({"other": [1.0], "b": [1], "c": [1], "d": [1]}))


@pytest.mark.slow
def test_scikit_learns_searches_are_charged_every_fit_or_refused():
    # Two candidates on two folds and the refit: five fits of epsilon 2.
    with budget(epsilon=10, delta=1e-5) as spending:
        GridSearchCV(logistic(), {"C": [0.1, 1]}, cv=2, error_score="raise").fit(ROWS, SIDE)
    assert spending.fits_ == 5
    with budget(epsilon=1, delta=1e-5), pytest.raises(ValueError, match="would cost epsilon 2"):
        cross_val_score(make_pipeline(FunctionTransformer(), logistic()), ROWS, SIDE)


def test_other_compositions_state_a_guarantee_for_each_fit():
    both = MultiOutputRegressor(Ridge(target_bounds=(0, 10), **PUBLIC)).fit(
        ROWS, np.stack([TARGET, 10 - TARGET], axis=1)
    )
    assert [model.guarantee_.epsilon for model in both.estimators_] == [2, 2]


@pytest.mark.slow
def test_probabilities_of_a_cut_loss_are_those_of_the_labels():
    # One column that is 0 or 1, with 90 % and 2 % positive labels. Residuals are cut at c = 0.6, so at 0.02 the score
    # balances 0.6 * 0.02 = q (1 - 0.02): q = 0.0122, where the loss itself would have 0.02. Both come out as they are.
    each = 50_000 if FULL else 10_000
    marks = np.repeat([[0.0, 1.0], [1.0, 0.0]], each, axis=0)
    labels = np.concatenate([np.arange(each) % 50 == 0, np.arange(each) % 10 != 0])
    model = LogisticRegression(
        1000, 1e-6, classes=[False, True], bounds=(0, 1), norm=1, rows=2 * each, method="objective", fit_intercept=False
    )
    plan = model.plan(2)
    method = calibrate(
        type(plan.method),
        Fraction(1000),
        Fraction(1, 10**6),
        loss=LogisticLoss(),
        norm=plan.facts.norm,
        features=2,
        rows=2 * each,
        neighbors=plan.facts.neighbors,
        penalty=0.01,
        cut=0.6,
    )
    cut = replace(plan, method=method)
    model.take(cut, cut.weights(marks, 2.0 * labels - 1, ReplayBits(b"cut")))
    assert 1 / (1 + np.exp(-model.decision_function([[0, 1]])[0])) == pytest.approx(0.0122, abs=5e-4)
    assert model.predict_proba([[0, 1], [1, 0]])[:, 1] == pytest.approx([0.02, 0.9], abs=2e-3)
