"""Membership inference: what memorizes is found out, what is private or random is not."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import norm
from tests.support.counts import FULL

from tacit.accounting import max_true_positive_rate
from tacit.attacks import MembershipAttack, attack_membership, plot_membership_attacks
from tacit.attacks.membership import METHODS
from tacit.errors import ParameterError

ROWS = 1000


class NoisyMemory:
    """Gives a row's label more weight where it was fitted to it, with normal noise: a known law of the confidence."""

    classes_ = np.array([0, 1])

    def __init__(self, shift, rng):
        self.shift, self.rng = shift, rng

    def fit(self, features, labels):
        self.known = dict(zip(features[:, 0].tolist(), labels.tolist(), strict=True))
        return self

    def decision_function(self, features):
        ids = features[:, 0].tolist()
        signs = np.array([2 * self.known.get(row, int(row) % 2) - 1 for row in ids])
        lifted = np.array([self.shift * (row in self.known) for row in ids])
        return signs * (lifted + self.rng.normal(size=len(ids)))

    def predict(self, features):
        return (self.decision_function(features) > 0).astype(int)


def attack_memory(shift, method, **options):
    features = np.arange(ROWS, dtype=float)[:, None]
    labels = np.arange(ROWS) % 2
    rng = np.random.default_rng(7)
    return attack_membership(lambda x, y: NoisyMemory(shift, rng).fit(x, y), features, labels, method=method, **options)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lira-online", "lira-offline"])
def test_lira_is_as_good_as_the_best_test_of_a_known_law(method):
    # The confidence is N(2, 1) for members and N(0, 1) for others: AUC Phi(2/sqrt 2), and Phi(2 - z) of the members are
    # found where z is the quantile of the false positives. That the attack has to learn both costs a little.
    found = attack_memory(2.0, method, shadows=16, targets=8 if FULL else 2)
    assert found.auc == pytest.approx(norm.cdf(2 / math.sqrt(2)), abs=0.03)
    for rate in (0.01, 0.1):
        share, low, high = found.true_positive_rate(rate)
        assert low <= share <= high
        assert share == pytest.approx(norm.cdf(2 - norm.isf(rate)), abs=0.12)
    assert found.advantage == pytest.approx(2 * norm.cdf(1) - 1, abs=0.06)
    assert found.verdict == "members are found"


@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_forgets_is_not_accused(method):
    found = attack_memory(0.0, method, shadows=4)
    assert found.auc == pytest.approx(0.5, abs=0.08)
    assert found.verdict == "nothing found"
    assert found.lower_epsilon() == 0


def test_the_bound_on_epsilon_holds_for_randomized_response():
    # A test that says "in" with probability 3/4 for members, else 1/4, is ln 3. The bound is above it in at most
    # 1 % of draws, and not far below. 60 draws show 6 or more with probability 4e-5.
    rng = np.random.default_rng(1)
    bounds = []
    for _ in range(60):
        member = rng.random(2000) < 0.5
        said = (member ^ (rng.random(2000) < 0.25)).astype(float)
        bounds.append(MembershipAttack("correctness", said, member, 0).lower_epsilon())
    assert sum(bound > math.log(3) for bound in bounds) < 6
    assert np.mean(bounds) > 0.7


@pytest.mark.slow
def test_an_overfit_forest_leaks_and_a_private_model_does_not(tmp_path):
    from sklearn.datasets import make_classification
    from sklearn.ensemble import ExtraTreesClassifier

    from tacit.learn import LogisticRegression
    from tacit.sampling.bits import ReplayBits

    features, labels = make_classification(ROWS, 8, flip_y=0.2, random_state=1)
    features = np.clip(features, -4, 4)
    bits = ReplayBits(b"membership")

    def forest(x, y):
        return ExtraTreesClassifier(5, random_state=0).fit(x, y)

    def private(x, y):
        return LogisticRegression(1, 1e-6, bounds=(-4, 4), classes=[0, 1], rows=ROWS // 2, bits=bits).fit(x, y)

    leaks = attack_membership(forest, features, labels, shadows=8)
    assert leaks.auc > 0.8
    assert leaks.lower_epsilon() > 1
    for method in ("correctness", "robustness"):
        assert attack_membership(forest, features, labels, method=method).verdict == "members are found"
    safe = attack_membership(private, features, labels, shadows=8)
    assert safe.verdict == "nothing found"
    for rate in (0.001, 0.01, 0.1):
        # the rate of outsiders that were accused is at most the asked one, but for chance in either count
        assert safe.true_positive_rate(rate)[1] <= max_true_positive_rate(1, rate, 1e-6)
    plot_membership_attacks({"forest": leaks, "private": safe}, tmp_path / "roc.svg", epsilon=1, delta=1e-6)
    leaks.plot(tmp_path / "one.svg")
    assert "</svg>" in (tmp_path / "one.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_regressors_and_models_of_labels_alone_are_attacked():
    from sklearn.neighbors import KNeighborsRegressor

    rng = np.random.default_rng(3)
    features, targets = rng.normal(size=(400, 3)), rng.normal(size=400)
    found = attack_membership(lambda x, y: KNeighborsRegressor(1).fit(x, y), features, targets, shadows=8)
    assert found.auc > 0.9


def test_area_and_curve_agree_with_scikit_learn():
    from sklearn.metrics import roc_auc_score, roc_curve

    rng = np.random.default_rng(4)
    member = rng.random(500) < 0.4
    scores = np.round(member + rng.normal(size=500), 1)  # with ties
    found = MembershipAttack("correctness", scores, member, 0)
    assert found.auc == pytest.approx(roc_auc_score(member, scores))
    alarms, shares, _ = roc_curve(member, scores)
    assert found.advantage == pytest.approx(np.max(shares - alarms))
    for rate in (0.05, 0.2):
        assert found.true_positive_rate(rate)[0] == pytest.approx(max(shares[alarms <= rate + 1e-12]))


def test_the_result_is_shown_as_text_html_and_json():
    found = attack_memory(2.0, "correctness")
    assert "labels alone" in str(found)
    assert found._repr_html_().count("<tr>") == 4
    told = json.loads(json.dumps(found.to_dict()))
    assert [rate["false_positive_rate"] for rate in told["rates"]] == [0.001, 0.01, 0.1]
    assert told["members"] + told["outsiders"] == ROWS


def fit_constant(features, labels):
    class Constant:
        classes_ = np.array([0, 1])

        def predict(self, rows):
            return np.zeros(len(rows), dtype=int)

    return Constant()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"method": "magic"}, "method"),
        ({"shadows": 3}, "shadows"),
        ({"targets": 0}, "targets"),
        ({"features": np.zeros((5, 1))}, "features"),
        ({"labels": np.zeros(60)}, "labels"),
        ({}, "fit"),  # it does not say how sure it is
    ],
)
def test_mistakes_are_named(options, name):
    arguments = {"features": np.arange(60.0)[:, None], "labels": np.arange(60) % 2, **options}
    with pytest.raises(ParameterError, match=name) as caught:
        attack_membership(fit_constant, **arguments)
    assert caught.value.fix


class Silent:
    """Answers with one value for the rows that it was fitted to, and with 0 or a half for all others."""

    def __init__(self, rows, answer):
        self.known, self.answer = set(rows[:, 0].tolist()), answer

    def tell(self, features, other):
        return np.where([value in self.known for value in features[:, 0].tolist()], self.answer, other)

    def predict(self, features):
        return self.tell(features, 0.0)


class SilentClassifier(Silent):
    classes_ = np.array([0, 1])

    def predict_proba(self, features):
        return np.column_stack([self.tell(features, 0.5)] * 2)


class SilentMargin(Silent):
    classes_ = np.array([0, 1])

    def decision_function(self, features):
        return self.tell(features, 0.5)


@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("model", "method"),
    [
        (SilentClassifier, "lira-online"),
        (SilentMargin, "lira-offline"),
        (Silent, "lira-online"),
        (Silent, "correctness"),
        (Silent, "robustness"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_answer_that_is_no_number_is_refused_and_not_passed_over(model, method, answer):
    features, labels = np.arange(100.0)[:, None], np.arange(100) % 2
    with pytest.raises(ParameterError, match="if for members only, that tells them") as caught:
        attack_membership(lambda x, y: model(x, answer), features, labels, method=method, shadows=4)
    assert "nan_to_num" in caught.value.fix


@pytest.mark.parametrize("method", ["correctness", "robustness"])
def test_a_label_that_is_nan_is_refused(method):
    features, labels = np.arange(100.0)[:, None], np.arange(100) % 2
    with pytest.raises(ParameterError, match="if for members only"):
        attack_membership(lambda x, y: SilentClassifier(x, math.nan), features, labels, method=method)


def test_the_same_model_with_a_number_in_that_place_is_found():
    features, labels = np.arange(400.0)[:, None], np.arange(400) % 2
    found = attack_membership(lambda x, y: Silent(x, 50.0), features, labels, shadows=8)
    assert found.verdict == "members are found"
    assert found.auc > 0.95


def test_scores_that_are_not_finite_are_refused():
    for score in (math.nan, math.inf):
        with pytest.raises(ParameterError, match="scores"):
            MembershipAttack("correctness", np.array([score, 0.0]), np.array([True, False]), 0)


def test_a_label_that_the_model_never_saw_has_the_least_margin():
    from tacit.attacks.membership import _confidence

    class Margins:
        classes_ = np.array([0, 1, 2])

        def decision_function(self, features):
            return np.array([[3.0, 1.0, 0.0], [3.0, 1.0, 0.0]])

    # the margin of label 1 is 1 - 3; label 7 has the least, 0 - 3
    assert _confidence(Margins(), np.zeros((2, 1)), np.array([1, 7])).tolist() == [-2.0, -3.0]
