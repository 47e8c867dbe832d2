"""Marks of declared categories."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pandas
import pytest
from sklearn import preprocessing
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from tacit.errors import ParameterError
from tacit.learn import LogisticRegression, OneHotEncoder, budget

WARDS, GRADES = ["A", "B", "C"], [1, 2]
FRAME = pandas.DataFrame({"ward": ["A", "C", "B", "A"], "grade": [1, 2, 2, 1]})
DECLARED = {"categories": [WARDS, GRADES]}


@pytest.mark.parametrize("drop", [None, "first", "if_binary", ["B", 2]], ids=str)
def test_it_is_scikit_learns_encoder_of_these_categories(drop):
    peer = preprocessing.OneHotEncoder(**DECLARED, drop=drop, sparse_output=False).fit(FRAME)
    own = OneHotEncoder(**DECLARED, drop=drop).fit(FRAME)
    assert own.transform(FRAME).tolist() == peer.transform(FRAME).tolist()
    assert own.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    assert own.inverse_transform(own.transform(FRAME)).tolist() == FRAME.to_numpy().tolist()
    assert own.set_output(transform="pandas").fit_transform(FRAME).shape == peer.transform(FRAME).shape


def test_a_fit_is_a_function_of_what_is_declared():
    # Rows of other categories, other types and missing values: nothing that is fitted tells them apart.
    odd = pandas.DataFrame({"ward": ["Z", None, 3.5], "grade": [0.5, np.nan, 7]})
    one, other = (OneHotEncoder(**DECLARED).fit(rows) for rows in (FRAME, odd))
    assert [each.tolist() for each in one.categories_] == [each.tolist() for each in other.categories_]
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    assert pickle.loads(pickle.dumps(one)).transform(odd).tolist() == [[0.0] * 5] * 3


def test_nothing_is_charged():
    with budget(epsilon=1, delta=1e-6) as spending:
        OneHotEncoder(**DECLARED).fit(FRAME)
    assert spending.fits_ == 0


def test_missing_values_can_be_categories():
    model = OneHotEncoder(categories=[["A", None], [1, float("nan")]])
    rows = pandas.DataFrame({"ward": ["A", None], "grade": [1.0, np.nan]})
    assert model.fit_transform(rows).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]
    nullable = pandas.DataFrame({"ward": ["A", "B"], "grade": pandas.array([1, None], dtype="Int64")})
    assert model.transform(nullable).tolist() == [[1, 0, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"categories": "auto"}, "categories"),
        ({"categories": None}, "categories"),
        ({"categories": [WARDS]}, "categories"),
        ({"categories": ["AB", "CD"]}, "categories"),
        ({"categories": [WARDS, []]}, "categories"),
        ({"categories": [WARDS, [1, 1]]}, "categories"),
        ({"categories": [[("a", 1), ("b", 2)], GRADES]}, "categories"),
        ({"categories": [[("a", 1)], GRADES]}, "categories"),
        ({"categories": [[["a"], ["b", "c"]], GRADES]}, "categories"),
        ({"categories": [[b"A"], GRADES]}, "categories"),
        ({"categories": [[{"A"}], GRADES]}, "categories"),
        ({"categories": [[np.datetime64("2026-01-31")], GRADES]}, "categories"),
        ({"categories": [[np.timedelta64(1, "D")], GRADES]}, "categories"),
        ({"categories": [[pandas.Timestamp("2026-01-31")], GRADES]}, "categories"),
        ({"categories": [[datetime.date(2026, 1, 31)], GRADES]}, "categories"),
        ({"drop": [("A", "B"), None]}, "drop"),
        ({"drop": [("A", "B", "C"), None]}, "drop"),
        ({"drop": "last"}, "drop"),
        ({"drop": ["A"]}, "drop"),
        ({"drop": ["Z", None]}, "drop"),
        ({"handle_unknown": "warn"}, "handle_unknown"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_a_fix(wrong, name):
    with pytest.raises(ParameterError, match=f"{name}: ") as caught:
        OneHotEncoder(**{**DECLARED, **wrong}).fit(FRAME)
    assert caught.value.fix and caught.value.code == "parameter"


def test_columns_of_dates_are_refused_by_their_type_and_the_fix_works():
    days = ["2026-01-31", "2026-02-28"]
    frame = pandas.DataFrame({"day": pandas.to_datetime(days)})
    zoned = pandas.DataFrame({"day": pandas.to_datetime(days, utc=True)})
    model = OneHotEncoder(categories=[days])
    for rows in (frame, frame[:0], zoned, np.array(days, dtype="M8[D]")[:, None], np.array([[1]], dtype="m8[s]")):
        with pytest.raises(ParameterError, match="X: column 0 is of type") as caught:
            model.fit(rows)
        assert "astype" in caught.value.fix
    texts = frame.astype({"day": str})
    assert model.fit(texts).transform(texts).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ParameterError, match="X: column 0 is of type"):
        model.transform(frame)
    plain = np.array(days, dtype="M8[D]")[:, None].astype(str)
    assert OneHotEncoder(categories=[days]).fit(plain).transform(plain).tolist() == [[1, 0], [0, 1]]


class Incomparable:
    def __eq__(self, other):
        raise ValueError("a secret")

    __hash__ = None


def test_no_value_makes_an_error_however_many_rows_there_are():
    model = OneHotEncoder(categories=[["a", 1]]).fit([["a"]])
    odd = [("a", 1), ("a",), ["a", 1], np.array(["a", 1]), np.array([]), b"a", Incomparable(), np.datetime64("NaT"), {}]
    for count in range(1, len(odd) + 1):
        rows = np.empty((count + 2, 1), dtype=object)
        for place, value in enumerate([*odd[:count], "a", 1]):
            rows[place, 0] = value
        assert model.transform(rows).tolist() == [[0, 0]] * count + [[1, 0], [0, 1]]


def test_categories_are_never_read_from_data_and_the_fix_works():
    with pytest.raises(ParameterError, match="which ones occur is private") as caught:
        OneHotEncoder("auto").fit(FRAME)
    named = caught.value.fix.split(", say")[0]
    assert named == 'categories=[["A", "B"], ["A", "B"]]'
    model = OneHotEncoder(categories=[["A", "B"], ["A", "B"]]).fit(FRAME)
    assert model.transform(FRAME).shape == (4, 4)


def test_unknown_categories_are_refused_without_a_word_of_them():
    model = OneHotEncoder(**DECLARED, handle_unknown="error").fit(FRAME)
    with pytest.raises(ParameterError, match="X: some rows have a category") as caught:
        model.transform(pandas.DataFrame({"ward": ["secret"], "grade": [1]}))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["sample_weight", "random_state"])
def test_what_no_private_estimator_takes_is_refused(name):
    with pytest.raises(ParameterError, match=f"{name}: ") as caught:
        OneHotEncoder(**DECLARED).fit(FRAME, **{name: 1})
    assert caught.value.fix == f"leave {name} out"


@pytest.mark.slow
def test_it_has_the_face_of_a_transformer():
    model = OneHotEncoder(**DECLARED)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.transform(FRAME)
    with pytest.raises(ValueError, match="feature names"):
        model.fit(FRAME).transform(FRAME.rename(columns={"ward": "room"}))
    # Two columns have two marks at most: the norm is sqrt(2).
    marks = {"bounds": (0, 1), "norm": 2**0.5, "rows": 400, "classes": [False, True]}
    whole = make_pipeline(model, LogisticRegression(epsilon=50, **marks))
    many = pandas.concat([FRAME] * 100)
    assert whole.fit(many, many["ward"] == "A").score(many, many["ward"] == "A") > 0.9
