"""Trees through the curator: charged as asked for, stored, keyed by all that they depend on, and within limits."""

from __future__ import annotations

import pytest
from tests.curator.test_fit import QUESTION, opened
from tests.support.ledgers import spent

from tacit.curator.fit import ChargedFit, release_fit
from tacit.curator.fit_limits import FitLimits
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.learn import (
    DecisionTreeClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)


@pytest.fixture
def curator(tmp_path):
    with opened(tmp_path) as found:
        yield found


def boosted(**more) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**{"rows": 1200, "max_iter": 6, **more})


@pytest.mark.slow
def test_trees_are_learned_charged_and_free_the_second_time(curator):
    ada = curator.analyst("ada")
    model = ada.fit(boosted(), QUESTION, target="died", epsilon=8)
    rows = model.encoding_.table({"age": [20, 100], "ward": ["A", "B"]})
    assert model.predict(rows).tolist() == [False, True]
    # age is a column of numbers, and each ward a category of two
    assert model._plan.bins.counts == (255, 2, 2, 2) and model.n_features_in_ == 4
    paid = spent(curator, "ada")
    assert 7.9 < float(paid) <= 8
    again = ada.fit(boosted(), QUESTION, target="died", epsilon=8)
    assert again.predict_proba(rows).tolist() == model.predict_proba(rows).tolist()
    assert spent(curator, "ada") == paid


@pytest.mark.slow
def test_numbers_are_predicted_within_the_policys_bounds(curator):
    model = curator.analyst("ada").fit(
        HistGradientBoostingRegressor(rows=1200, max_iter=6, missing=0),
        "SELECT age, cost FROM visits",
        target="cost",
        epsilon=8,
    )
    found = model.predict(model.encoding_.table({"age": [10, 105]}))
    assert 0 <= found[0] < found[1] - 30 and found[1] <= 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_single_trees_and_forests(curator, kind):
    model = curator.analyst("ada").fit(kind(rows=1200), QUESTION, target="died", epsilon=8)
    rows = model.encoding_.table({"age": [20, 100], "ward": ["A", "B"]})
    assert model.predict(rows).tolist() == [False, True] and type(model) is kind


@pytest.mark.slow
def test_every_setting_has_a_key_of_its_own(curator):
    policy = curator.policy.asked_by("ada")

    def key(**more):
        return ChargedFit.make(boosted(**more), QUESTION, "died", policy, 1, None).key

    settings = [{}, {"max_iter": 7}, {"max_depth": 3}, {"max_bins": 31}, {"learning_rate": 0.1}, {"max_leaf_nodes": 9}]
    assert len({key(**more) for more in settings}) == len(settings)
    assert key() == key() and key(learning_rate=0.6) == key()  # what it is where none is given


def test_what_is_the_policys_to_say_is_refused(curator):
    with pytest.raises(ParameterError, match="categorical_features is not its own to say") as caught:
        curator.analyst("ada").fit(boosted(categorical_features=[0]), QUESTION, target="died", epsilon=1)
    assert caught.value.fix == "leave categorical_features out"


@pytest.mark.slow
def test_work_is_limited_by_public_numbers(curator):
    limits = FitLimits(levels=200, tree_cells=2**22)
    for more, what in (
        ({"max_iter": 101}, "202 levels"),
        ({"max_leaf_nodes": 4096, "max_bins": 4000}, "sums for a split"),
    ):
        with pytest.raises(Refused, match=what) as caught:
            release_fit(boosted(**more), QUESTION, "died", "ada", curator, 1, limits=limits)
        assert caught.value.code is ErrorCode.TOO_LARGE
    assert spent(curator, "ada") == 0
