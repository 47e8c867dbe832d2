"""Additive models: hats, shapes that a linear model cannot have, scikit-learn's manners, and one guarantee."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from tests.support.counts import FULL
from tests.support.learning import WEIGHTED_TWO_CLASSES

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError, Refused
from tacit.learn import AdditiveClassifier, LogisticRegression, budget
from tacit.learn.additive import HatBasis
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(5)
ROWS = RNG.uniform(0, 10, (4000, 2))
MIDDLE = np.abs(ROWS[:, 0] - 5) < 2.5  # a line cannot tell the middle from both ends
PUBLIC = {"bounds": (0, 10), "classes": [False, True], "rows": 4000}


def model(**more) -> AdditiveClassifier:
    return AdditiveClassifier(**{"epsilon": 1, "bits": partial(ReplayBits, b"additive"), **PUBLIC, **more})


@given(st.lists(st.floats(-20, 20), min_size=3, max_size=3), st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_hats_are_weights_of_one_and_a_row_is_no_longer_than_its_columns(row, knots):
    read = HatBasis.of([-5.0, 0.0, 2.0], [5.0, 10.0, 2.0], knots).read(np.array([row]))[0]
    assert np.linalg.norm(read) <= np.sqrt(3) * (1 + 1e-15)
    start = 0
    for count in knots:
        part = read[start : start + count]
        assert np.all(part >= 0)
        assert count == 1 or part.sum() == pytest.approx(1)
        start += count


def test_whole_numbers_with_a_knot_each_are_marks():
    hats = HatBasis.of([0], [3], 4)
    assert hats.read(np.array([[0.0], [1.0], [2.0], [3.0]])).tolist() == np.eye(4).tolist()
    assert hats.positions(0).tolist() == [0, 1, 2, 3]


@pytest.mark.slow
def test_it_learns_what_no_line_can():
    line = LogisticRegression(1, bits=partial(ReplayBits, b"line"), **PUBLIC).fit(ROWS, MIDDLE)
    found = model().fit(ROWS, MIDDLE)
    assert line.score(ROWS, MIDDLE) < 0.6 < 0.9 < found.score(ROWS, MIDDLE)
    (places, heights), (_, flat) = found.shapes_
    assert places[0] == 0 and places[-1] == 10 and len(heights) == 8
    assert min(heights[3:5]) > max(heights[0], heights[-1])  # 4.3 and 5.7 against the two ends
    assert np.ptp(flat) < np.ptp(heights) / 3


@pytest.mark.slow
def test_it_is_logistic_regression_on_hats_and_has_its_guarantee():
    found = model(knots=[5, 3]).fit(ROWS, MIDDLE)
    inner = LogisticRegression(
        1,
        classes=[False, True],
        bounds=(0, 1),
        norm=2**0.5,
        rows=4000,
        fit_intercept=False,
        bits=partial(ReplayBits, b"additive"),
    ).fit(HatBasis.of([0, 0], [10, 10], [5, 3]).read(ROWS), MIDDLE)
    assert np.concatenate([heights for _, heights in found.shapes_]).tolist() == inner.coef_[0].tolist()
    assert (
        found.guarantee_ == inner.guarantee_ and found.loss_ == inner.loss_ == model(knots=[5, 3]).plan(2).privacy_loss
    )
    assert epsilon_delta.epsilon(found.loss_, float(found.guarantee_.delta)) <= 1


@pytest.mark.slow
def test_what_is_missing_is_read_as_declared():
    holes = ROWS.copy()
    holes[::7, 1] = np.nan
    assert model(missing=5).fit(holes, MIDDLE).score(holes, MIDDLE) > 0.9
    with pytest.raises(ValueError, match="NaN"):
        model().fit(holes, MIDDLE)


DECLARED = "it has labels that are not among the declared classes, which is an error; classes are never read from data"


@pytest.mark.slow
def test_scikit_learns_checks():
    expected = {
        "check_classifiers_classes": DECLARED,
        "check_classifier_data_not_an_array": DECLARED,
        "check_estimators_dtypes": DECLARED,
        "check_fit2d_1feature": DECLARED,
    } | WEIGHTED_TWO_CLASSES
    method = "auto" if FULL else "newton"  # of fewer steps
    estimator = AdditiveClassifier(
        1000, classes=[0, 1], bounds=(-5, 5), rows=50, bits=partial(ReplayBits, b"checks"), delta=1e-4, method=method
    )
    found = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(expected)


def test_it_is_cloned_pickled_and_put_into_a_pipeline():
    found = model().fit(ROWS, MIDDLE)
    again = pickle.loads(pickle.dumps(found))
    assert again.predict_proba(ROWS[:9]).tolist() == found.predict_proba(ROWS[:9]).tolist()
    assert clone(model()).get_params()["knots"] == 8
    assert make_pipeline(FunctionTransformer(), model()).fit(ROWS, MIDDLE).score(ROWS, MIDDLE) > 0.9


def test_bad_input():
    for knots in (0, [3], [3, 3, 3], 5000, 2.5):
        with pytest.raises(ParameterError, match="knots"):
            model(knots=knots).fit(ROWS, MIDDLE)
    for name in ("epsilon", "bounds", "classes", "rows"):
        with pytest.raises(ParameterError, match=name):
            model(**{name: None}).fit(ROWS, MIDDLE)
    with pytest.raises(ParameterError, match="sample_weight"):
        model().fit(ROWS, MIDDLE, sample_weight=np.full(4000, 2))
    with budget(epsilon=0.1), pytest.raises(Refused, match="of this budget would cost epsilon"):
        cross_val_score(model(), ROWS, MIDDLE, error_score="raise")
