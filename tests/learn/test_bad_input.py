"""Bad input, for every estimator: each is refused with what is wrong and a fix, and no model is left."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pytest

from tacit.errors import ParameterError, TacitError
from tacit.learn import (
    PCA,
    AdditiveClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ElasticNet,
    GaussianNB,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    KMeans,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivateSearchCV,
    QuantileTransformer,
    RandomForestClassifier,
    RandomForestRegressor,
    Ridge,
    StandardScaler,
    budget,
)
from tacit.learn.base import PrivateLinearModel

RNG = np.random.default_rng(5)
ROWS = RNG.uniform(-1, 1, (60, 2))
SIDE = (ROWS[:, 0] > 0).astype(int)
SHARED = {"epsilon": 1, "delta": 1e-5, "bounds": (-1, 1), "rows": 60}
LABELED = {"classes": [0, 1], **SHARED}


def search(**more):
    """A search takes epsilon and delta itself, all else is the model's."""
    own = {name: more.pop(name) for name in ("epsilon", "delta") if name in more}
    model = LogisticRegression(**{"classes": [0, 1], "bounds": (-1, 1), "rows": 60, **more})
    return PrivateSearchCV(model, {"C": [0.1]}, **{"epsilon": 1, "delta": 1e-5, **own}, trials=1.1)


CLASSIFIERS = {
    "logistic": lambda **more: LogisticRegression(**{**LABELED, **more}),
    "svc": lambda **more: LinearSVC(**{**LABELED, **more}),
    "additive": lambda **more: AdditiveClassifier(**{**LABELED, **more}),
    "bayes": lambda **more: GaussianNB(**{**LABELED, **more}),
    "boosted": lambda **more: HistGradientBoostingClassifier(**{**LABELED, "max_iter": 3, **more}),
    "tree": lambda **more: DecisionTreeClassifier(**{**LABELED, **more}),
    "forest": lambda **more: RandomForestClassifier(**{**LABELED, **more}),
    "search": search,
}
OTHERS = {
    "boosted numbers": lambda **more: HistGradientBoostingRegressor(
        **{**SHARED, "target_bounds": (0, 1), "max_iter": 3, **more}
    ),
    "tree of numbers": lambda **more: DecisionTreeRegressor(**{**SHARED, "target_bounds": (0, 1), **more}),
    "forest of numbers": lambda **more: RandomForestRegressor(**{**SHARED, "target_bounds": (0, 1), **more}),
    "ridge": lambda **more: Ridge(**{**SHARED, "target_bounds": (0, 1), **more}),
    "squares": lambda **more: LinearRegression(**{**SHARED, "target_bounds": (0, 1), **more}),
    "lasso": lambda **more: Lasso(**{**SHARED, "target_bounds": (0, 1), **more}),
    "elastic net": lambda **more: ElasticNet(**{**SHARED, "target_bounds": (0, 1), **more}),
    "clusters": lambda **more: KMeans(n_clusters=2, **{**SHARED, **more}),
    "components": lambda **more: PCA(**{**SHARED, **more}),
    "quantiles": lambda **more: QuantileTransformer(**{**SHARED, **more}),
    "scaler": lambda **more: StandardScaler(**{**SHARED, **more}),
}
EVERY = CLASSIFIERS | OTHERS
HOLED = np.where(np.arange(120).reshape(60, 2) == 7, np.nan, ROWS)
BAD_ROWS = {
    "NaN": (HOLED, SIDE, "NaN"),
    "infinite": (np.where(np.isnan(HOLED), np.inf, HOLED), SIDE, "infinity"),
    "no rows": (np.zeros((0, 2)), np.zeros(0, dtype=int), "0 sample"),
    "no columns": (np.zeros((60, 0)), SIDE, "0 feature"),
    "strings": (np.full((60, 2), "many"), SIDE, "could not convert"),
    "one dimension": (ROWS[:, 0], SIDE, "Expected 2D array"),
    "complex": (ROWS + 1j, SIDE, "Complex data not supported"),
}
BAD_SETTINGS = {
    "no epsilon": ({"epsilon": None}, "epsilon: is not declared"),
    "epsilon of zero": ({"epsilon": 0}, "epsilon: must be positive"),
    "negative epsilon": ({"epsilon": -1}, "epsilon: must be positive"),
    "NaN for epsilon": ({"epsilon": float("nan")}, "epsilon"),
    "text for epsilon": ({"epsilon": "one"}, "epsilon"),
    "delta of one": ({"delta": 1}, r"delta: must be in \[0, 1\)"),
    "swapped bounds": ({"bounds": (1, -1)}, "bounds|lower"),
    "bounds of other columns": ({"bounds": ([0, 0, 0], [1, 1, 1])}, "bounds: do not fit 2 columns"),
    "NaN in bounds": ({"bounds": (float("nan"), 1)}, "bounds|lower"),
    "infinite bounds": ({"bounds": (0, float("inf"))}, "bounds|upper|lower"),
    "no rows declared": ({"rows": None}, "rows: is not declared"),
    "rows of zero": ({"rows": 0}, "rows"),
    "another relation": ({"neighbors": "both"}, "neighbors: is not a neighbor relation"),
    "text for NaN": ({"missing": "zero"}, "missing"),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("kind", EVERY)
def test_rows_that_cannot_be_learned_from_cost_nothing(kind, bad):
    rows, labels, says = BAD_ROWS[bad]
    model = EVERY[kind]()
    with budget(epsilon=1, delta=1e-4) as spending, pytest.raises(ParameterError, match=says) as caught:
        model.fit(rows, labels)
    assert spending.fits_ == 0 and not hasattr(model, "guarantee_")
    assert caught.value.code == "parameter" and caught.value.name == "X" and caught.value.fix
    # no value of a row is quoted
    assert "many" not in str(caught.value) and str(ROWS[0, 0])[:6] not in str(caught.value)


# What each of these errors advises, done to the rows or to the estimator.
DONE = {
    "NaN": ({"missing": 0}, lambda rows: rows),
    "infinite": ({}, np.nan_to_num),
    "one dimension": ({}, lambda rows: rows.reshape(-1, 1)),
    "complex": ({}, lambda rows: rows.real),
}


@pytest.mark.slow
@pytest.mark.parametrize("bad", DONE)
@pytest.mark.parametrize("kind", EVERY)
def test_what_an_error_of_rows_advises_works(kind, bad):
    rows, labels, _ = BAD_ROWS[bad]
    more, mend = DONE[bad]
    assert EVERY[kind](**more).fit(mend(rows), labels, public=True).n_features_in_ in {1, 2}


@pytest.mark.parametrize("bad", BAD_SETTINGS)
@pytest.mark.parametrize("kind", EVERY)
def test_settings_that_are_wrong_are_named_with_a_fix(kind, bad):
    wrong, says = BAD_SETTINGS[bad]
    with budget(epsilon=1, delta=1e-4) as spending, pytest.raises(ParameterError, match=says) as caught:
        EVERY[kind](**wrong).fit(ROWS, SIDE)
    assert caught.value.code == "parameter" and caught.value.fix and spending.fits_ == 0


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.where(SIDE == 1, 2, 0), "not among the declared classes"),
        (np.where(SIDE == 1, "yes", "no"), "not among the declared classes"),
        (SIDE + 0.5, "Unknown label type"),
        (SIDE[:-1], "inconsistent numbers"),
    ],
    ids=["undeclared", "text", "halves", "too few"],
)
def test_labels_that_are_not_declared_are_refused(kind, labels, says):
    model = CLASSIFIERS[kind]()
    with pytest.raises(ValueError, match=says):
        model.fit(ROWS, labels)
    with pytest.raises(ValueError, match="fitted"):
        model.predict(ROWS)


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind not in {"logistic", "svc", "search"}])
def test_a_search_says_which_models_it_does_not_tune(kind):
    model = EVERY[kind]()
    if isinstance(model, PrivateLinearModel):
        return
    with pytest.raises(ParameterError, match="estimator: only linear models are tuned") as caught:
        PrivateSearchCV(model, {"missing": [0]}, epsilon=1).fit(ROWS, SIDE)
    assert type(model).__name__ in caught.value.fix


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("classes", [None, [0], [0, 0], [0, "one"]], ids=["none", "one", "twice", "mixed"])
def test_classes_are_declared_two_or_more_of_one_type(kind, classes):
    with pytest.raises(ParameterError) as caught:
        CLASSIFIERS[kind](classes=classes).fit(ROWS, SIDE)
    assert caught.value.fix


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_rows_of_one_class_are_learned_from(kind):
    # Which classes occur is private: an error would tell.
    model = CLASSIFIERS[kind](epsilon=100).fit(ROWS, np.zeros(60, dtype=int))
    assert (model.predict(ROWS) == 0).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_weights_are_refused_where_the_number_of_rows_is_public(kind):
    # A row of weight 1 that is replaced by one of weight 0 would change the number of rows that a fit is planned for.
    with budget(epsilon=9, delta=0.1, neighbors="replace") as spending:
        for kept in (np.ones(60), np.arange(60) > 0):
            with pytest.raises(
                ParameterError, match="sample_weight: under replace the number of rows is public"
            ) as caught:
                CLASSIFIERS[kind](neighbors="replace", rows=None).fit(ROWS, SIDE, sample_weight=kept)
        assert "leave sample_weight out" in caught.value.fix and spending.fits_ == 0
        CLASSIFIERS[kind](neighbors="replace", rows=None).fit(ROWS, SIDE)  # the fix


@pytest.mark.parametrize("kind", EVERY)
def test_bounds_in_which_nothing_varies_are_refused(kind):
    # An end for each column, and not a pair for each column, is what a pair of lists means.
    with pytest.raises(ParameterError, match="bounds: leave no column that can vary") as caught:
        EVERY[kind](bounds=[(0, 100), (0, 100)]).fit(ROWS, SIDE)
    assert caught.value.fix.startswith("bounds=([0, 0], [100, 100])")
    assert "the lower ends, then the upper ends" in caught.value.fix
    with pytest.raises(ParameterError, match="no column that can vary") as caught:
        EVERY[kind](bounds=(5, 5)).fit(np.ones((60, 9)), SIDE)
    assert caught.value.fix.startswith("bounds=(0, 100)")
    assert EVERY[kind](bounds=([0, 5], [100, 5])).fit(ROWS, SIDE).n_features_in_ == 2  # one may be constant


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("name", ["sample_weight", "random_state", "check_input"])
def test_what_no_private_estimator_takes_is_refused_with_a_reason(kind, name):
    value = np.full(60, 0.5) if name == "sample_weight" else 0
    with pytest.raises(ParameterError, match=f"{name}: ") as caught:
        EVERY[kind]().fit(ROWS, SIDE, **{name: value})
    assert caught.value.fix
    if name == "random_state":
        assert "protects nobody" in caught.value.what
        with pytest.raises(TacitError, match="protects nobody"):
            EVERY[kind](random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "search"])
def test_no_warning_tells_how_many_different_labels_occur(name):
    # warnings are errors here; scikit-learn has one for more labels than half of the rows
    CLASSIFIERS[name](classes=list(range(60))).fit(ROWS, np.arange(60), public=True)


REGRESSORS = [kind for kind in EVERY if "target_bounds" in EVERY[kind]().get_params()]
DAYS = np.datetime64("2025-01-01") + np.arange(60)
DATED = {
    "dates": np.column_stack([DAYS, DAYS]),
    "durations": np.column_stack([DAYS, DAYS]) - DAYS[0],
    "a date among numbers": np.array([[1.0, datetime.date(2025, 1, 31)]] * 60, dtype=object),
    "a list with dates": [[datetime.datetime(2025, 1, 31), 1.0]] * 60,
    "a list of numpy's dates": [[np.datetime64("2025-01-31"), np.datetime64("2025-01-31")]] * 60,
    "an array of objects": np.array([[np.datetime64("2025-01-31"), 1.0]] * 60, dtype=object),
}


def paste(fix, X, y):
    """The rows and targets after what an error advises."""
    names = {"np": np, "X": X, "y": y}
    exec(fix, names)
    return names["X"], names["y"]


@pytest.mark.parametrize("bad", DATED)
@pytest.mark.parametrize("kind", EVERY)
def test_dates_are_refused_with_the_numbers_that_stand_for_them(kind, bad):
    model = EVERY[kind]()
    with (
        budget(epsilon=1, delta=1e-4) as spending,
        pytest.raises(ParameterError, match=r"holds (dates|durations)") as caught,
    ):
        model.fit(DATED[bad], SIDE)
    assert caught.value.name == "X" and spending.fits_ == 0 and isinstance(caught.value, TypeError)
    assert "2025-01-31" not in str(caught.value) and "datetime.d" not in str(caught.value)
    mended, _ = paste(caught.value.fix, DATED[bad], SIDE)
    if bad.startswith("a date"):
        assert mended[:, 1].tolist() == [30.0] * 60  # days from 2025-01-01 to 2025-01-31
    assert model.fit(mended, SIDE, public=True).n_features_in_ == 2


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_dates_in_frames_of_other_libraries_are_refused(library):
    frames = pytest.importorskip(library)
    table = {"x": ROWS[:, 0].tolist(), "day": [datetime.date(2025, 1, 31)] * 60}
    frame = frames.DataFrame(table) if library == "polars" else frames.table(table)
    model = LogisticRegression(**LABELED)
    with pytest.raises(ParameterError, match="holds dates") as caught:
        model.fit(frame, SIDE)
    mended, _ = paste(caught.value.fix, frame, SIDE)
    assert model.fit(mended, SIDE, public=True).n_features_in_ == 2


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_the_column_of_dates_of_a_frame_is_named(zone):
    pandas = pytest.importorskip("pandas")
    days = pandas.Series(DAYS).dt.tz_localize(zone)
    frame = pandas.DataFrame({"x": ROWS[:, 0], 'the "day"': days})
    model = LogisticRegression(**LABELED)
    with pytest.raises(ParameterError, match=r'X\["the \\"day\\""\] holds dates') as caught:
        model.fit(frame, SIDE)
    mended, _ = paste(caught.value.fix, frame, SIDE)
    assert mended['the "day"'].tolist() == list(range(60))
    assert model.fit(mended, SIDE, public=True).n_features_in_ == 2


HALF = np.arange(60) % 2 == 0
BAD_TARGETS = {
    "NaN": (np.where(HALF, np.nan, 1.0), "contains NaN"),
    "infinite": (np.where(HALF, np.inf, 1.0), "contains infinity"),
    "None": (np.array([None if half else 1 for half in HALF], dtype=object), "NaN|not among the declared"),
    "text": (np.full(60, "many"), "could not convert|not among the declared"),
    "dates": (DAYS, "holds dates|not among the declared"),
    "a list of dates": (DAYS.tolist(), "holds dates|not among the declared"),
    "a list of numpy's dates": (list(DAYS), "holds dates|not among the declared"),
    "durations": (DAYS - DAYS[0], "holds durations|not among the declared"),
    "dicts": (np.array([{}] * 60, dtype=object), "argument must be|not among the declared"),
    "complex": (SIDE + 1j, "Complex data not supported"),
    "two columns": (np.column_stack([SIDE, SIDE]), "1d array"),
    "huge": (np.array([10**400] * 60, dtype=object), "too large|not among the declared"),
}


@pytest.mark.parametrize("bad", BAD_TARGETS)
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_targets_that_cannot_be_learned_are_named_with_a_fix_of_their_own(kind, bad):
    targets, says = BAD_TARGETS[bad]
    with budget(epsilon=1, delta=1e-4) as spending, pytest.raises(ParameterError, match=says) as caught:
        EVERY[kind]().fit(ROWS, targets)
    assert caught.value.name == "y" and "missing=" not in caught.value.fix and caught.value.fix
    assert "many" not in str(caught.value)
    if kind in REGRESSORS:  # whose targets are read before the charge
        assert spending.fits_ == 0


@pytest.mark.parametrize("bad", ["NaN", "infinite"])
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_what_an_error_of_missing_targets_advises_works(kind, bad):
    model, (targets, _) = EVERY[kind](rows=30), BAD_TARGETS[bad]
    with pytest.raises(ParameterError) as caught:
        model.fit(ROWS, targets)
    rows, known = paste(caught.value.fix, ROWS, targets)
    assert len(rows) == len(known) == 30
    assert model.fit(rows, known, public=True).n_features_in_ == 2


def test_missing_labels_among_texts_are_left_out_by_the_fix():
    labels = np.array([float("nan") if half else "yes" for half in HALF], dtype=object)
    model = LogisticRegression(**{**LABELED, "classes": ["no", "yes"]})
    with pytest.raises(ParameterError, match="y: Input contains NaN") as caught:
        model.fit(ROWS, labels)
    rows, known = paste(caught.value.fix, ROWS, labels)
    assert known.tolist() == ["yes"] * 30 and model.fit(rows, known, public=True).n_features_in_ == 2


NEW_ROWS = {bad: case[0] for bad, case in BAD_ROWS.items() if bad != "no columns"} | DATED | {"wide": np.ones((60, 3))}


@pytest.mark.parametrize("kind", EVERY)
def test_new_rows_that_cannot_be_read_have_a_code_and_a_fix(kind):
    model = EVERY[kind]().fit(ROWS, SIDE, public=True)
    ask = model.predict if hasattr(model, "predict") else model.transform
    for bad, rows in NEW_ROWS.items():
        with pytest.raises(ParameterError) as caught:
            ask(rows)
        assert caught.value.name == "X" and caught.value.fix, bad
        # no value of a row is quoted
        assert "many" not in str(caught.value) and str(ROWS[0, 0])[:6] not in str(caught.value)
        if bad in {"NaN", "infinite"}:
            assert len(ask(eval(caught.value.fix.partition(", which")[0], {"np": np, "X": rows}))) == 60


@pytest.mark.parametrize("kind", ["components", "quantiles", "scaler"])
def test_what_transform_did_not_return_is_not_turned_back(kind):
    model = EVERY[kind]().fit(ROWS, SIDE, public=True)
    for rows in NEW_ROWS.values():
        with pytest.raises(ParameterError) as caught:
            model.inverse_transform(rows)
        assert caught.value.name == "X" and caught.value.fix


def test_an_error_of_types_survives_a_pickle():
    with pytest.raises(TypeError) as caught:
        LogisticRegression(**LABELED).fit(DATED["dates"], SIDE)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)
