"""Networks through the curator: charged as asked for, stored, keyed by all they depend on; no row makes one fail."""

from __future__ import annotations

import numpy as np
import pytest
from tests.curator.test_fit import QUESTION, WHO, frame, opened
from tests.support.counts import FULL
from tests.support.ledgers import spent
from torch import nn

from tacit.curator.fit import ChargedFit, release_fit
from tacit.curator.fit_limits import FitLimits
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.learn.torch import MLPClassifier, MLPRegressor

pytestmark = pytest.mark.slow


@pytest.fixture
def curator(tmp_path):
    with opened(tmp_path) as found:
        yield found


def network(**more) -> MLPClassifier:
    return MLPClassifier(**{"rows": 1200, "hidden_layer_sizes": (4,), "epochs": 3, "batch_size": 200, **more})


def test_a_network_is_learned_charged_and_free_the_second_time(curator):
    ada = curator.analyst("ada")
    model = ada.fit(network(learning_rate=0.1), QUESTION, target="died", epsilon=8, delta=1e-7)
    rows = model.encoding_.table({"age": [20, 100], "ward": ["A", "B"]})
    assert model.predict(rows).tolist() == [False, True]
    assert (model.n_features_in_, model.classes_.tolist()) == (4, [False, True])
    paid = spent(curator, "ada")
    assert paid == 8 == model.guarantee_.epsilon
    again = ada.fit(network(learning_rate=0.1), QUESTION, target="died", epsilon=8, delta=1e-7)
    assert again.predict_proba(rows).tolist() == model.predict_proba(rows).tolist()
    assert spent(curator, "ada") == paid and again.receipt_.repeat


def test_numbers_are_predicted_within_the_policys_bounds(curator):
    model = curator.analyst("ada").fit(
        MLPRegressor(rows=1200, hidden_layer_sizes=(4,), epochs=3, batch_size=200, missing=0, learning_rate=0.1),
        "SELECT age, cost FROM visits",
        target="cost",
        epsilon=8,
        delta=1e-7,
    )
    found = model.predict(model.encoding_.table({"age": [10, 105]}))
    assert 0 <= found[0] < found[1] <= 150


def test_every_setting_has_a_key_of_its_own(curator):
    policy = curator.policy.asked_by("ada")

    def key(**more):
        return ChargedFit.make(network(**more), QUESTION, "died", policy, 1, 1e-7).key

    settings = [{}, {"hidden_layer_sizes": (5,)}, {"hidden_layer_sizes": (4, 4)}, {"epochs": 4}, {"batch_size": 100}]
    settings += [{"learning_rate": 0.02}, {"clip": 2}, {"rows": 1300}, {"missing": 0}]
    assert len({key(**more) for more in settings}) == len(settings)
    assert key() == key() and key(learning_rate=0.01) == key()  # what it is where none is given


@pytest.mark.parametrize(
    ("model", "counts"),
    [
        (network(rows=20, batch_size=5), (0, 1, 60)),
        (network(rows=20, learning_rate=1e9, clip=1e-6), (0, 1, 60) if FULL else (60,)),
    ],
)
def test_no_row_makes_a_fit_fail(tmp_path, model, counts):
    """That there is no row at all, one row, and many more than were declared, with weights beyond all floats."""
    for count in counts:
        folder = tmp_path / f"{count}"
        folder.mkdir()
        with opened(folder, frame(count > WHO)) as curator:
            found = curator.analyst("ada").fit(model, QUESTION, target="died", epsilon=1, delta=1e-7)
            assert all(np.isfinite(each.detach().numpy()).all() for each in found.network_.parameters())


def test_modules_and_classes_of_an_analysts_own_are_refused(curator):
    class Mine(MLPClassifier):
        def _encode(self, target):
            raise AssertionError(target)

    for estimator in (nn.Linear(4, 2), Mine(rows=1200)):
        with pytest.raises(ParameterError, match="none that the curator knows to be private") as caught:
            curator.analyst("ada").fit(estimator, QUESTION, target="died", epsilon=1)
        assert "MLPClassifier" in caught.value.fix
    assert spent(curator, "ada") == 0


def test_work_is_limited_by_public_numbers(curator):
    for more, limits, what in (
        ({"epochs": 1000}, FitLimits(seconds=10), "some 50 seconds"),
        ({"hidden_layer_sizes": (50,)}, FitLimits(weights=300), "352 weights"),
    ):
        with pytest.raises(Refused, match=what) as caught:
            release_fit(network(**more), QUESTION, "died", "ada", curator, 1, 1e-7, limits=limits)
        assert caught.value.code is ErrorCode.TOO_LARGE and caught.value.fix
    with pytest.raises(ParameterError, match="steps"):
        curator.analyst("ada").fit(network(epochs=10**5, batch_size=1), QUESTION, target="died", epsilon=1, delta=1e-7)
    for sizes in ("ab", 7, iter([3]), {3: 3}, [1] * 100, (10**9,)):
        with pytest.raises(ParameterError, match="hidden_layer_sizes"):
            curator.analyst("ada").fit(
                network(hidden_layer_sizes=sizes), QUESTION, target="died", epsilon=1, delta=1e-7
            )
    assert spent(curator, "ada") == 0


def test_how_many_rows_there_are_decides_of_no_network(curator):
    # A batch of all rows: one more than a pass holds is twice the work, so no limit of time may look at it.
    few = network(rows=1, batch_size=1, epochs=20)
    release_fit(few, QUESTION, "died", "ada", curator, 1, 1e-7, limits=FitLimits(rows=1200, seconds=1))
    assert 0.99 < float(spent(curator, "ada")) <= 1
    with pytest.raises(Refused, match="on 10,000,000 rows, for which the server is made") as caught:
        release_fit(network(rows=1), QUESTION, "died", "ben", curator, 1, 1e-7, limits=FitLimits(rows=10**7, seconds=1))
    assert caught.value.code is ErrorCode.TOO_LARGE and spent(curator, "ben") == 0
