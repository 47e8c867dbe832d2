"""The hinge of several classes: its values against other ways to compute them, and the classifier that minimizes it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from tests.support.counts import FULL
from tests.support.learning import WEIGHTED, calibrate

from tacit.accounting import epsilon_delta
from tacit.audit.claim import Claim
from tacit.audit.statistical import audit
from tacit.errors import ParameterError
from tacit.learn import LinearSVC
from tacit.learn.gradient import NoisyGradientDescent, NoisyGradients
from tacit.learn.losses import SmoothedHinge
from tacit.learn.multiclass_hinge import MulticlassHinge
from tacit.learn.newton import NoisyNewton
from tacit.learn.noise import GridGaussian
from tacit.learn.problem import RiskMinimization
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(11)
SCORES = RNG.normal(scale=2, size=(400, 4))
LABELS = RNG.integers(0, 4, 400).astype(float)
LOSS = MulticlassHinge(4, 0.5)
ROWS = RNG.uniform(-1, 1, size=(3000, 3))
THIRD = np.digitize(ROWS[:, 0] + ROWS[:, 1] / 2, [-0.3, 0.3])
PUBLIC = {"bounds": (-1, 1), "rows": 3000, "bits": partial(ReplayBits, b"hinge")}


def find_nearest(point):
    """The nearest point of the simplex, by trying every set of entries that may be above zero."""
    best, least = None, math.inf
    for size in range(1, len(point) + 1):
        for kept in map(list, itertools.combinations(range(len(point)), size)):
            found = np.zeros(len(point))
            found[kept] = point[kept] + (1 - point[kept].sum()) / size
            if found.min() >= 0 and np.sum((found - point) ** 2) < least:
                best, least = found, np.sum((found - point) ** 2)
    return best


@pytest.mark.slow
def test_residuals_are_the_nearest_points_of_the_simplex():
    for scores, label, residual in zip(SCORES, LABELS, LOSS.residuals(SCORES, LABELS), strict=True):
        margins = scores - scores[int(label)] + 1
        margins[int(label)] = 0
        assert residual + (np.arange(4) == label) == pytest.approx(find_nearest(margins / 0.5), abs=1e-12)


def test_residuals_are_the_derivatives_of_values():
    step = 1e-6
    for place in range(4):
        moved = step * (np.arange(4) == place)
        rise = LOSS.values(SCORES + moved, LABELS) - LOSS.values(SCORES - moved, LABELS)
        assert rise / (2 * step) == pytest.approx(LOSS.residuals(SCORES, LABELS)[:, place], abs=1e-5)


def test_two_classes_have_the_hinge_of_the_difference():
    # t = ((s_1 - s_0) + 1 + g)/(2 g) for the label 0, within [0, 1]: `SmoothedHinge` at y s = s_0 - s_1.
    pairs, labels = SCORES[:, :2], np.where(LABELS > 1, 1.0, 0.0)
    other, score = SmoothedHinge(0.7), pairs[:, 1] - pairs[:, 0]
    signs = 2 * labels - 1
    both = MulticlassHinge(2, 0.7).residuals(pairs, labels)
    assert MulticlassHinge(2, 0.7).values(pairs, labels) == pytest.approx(other.values(score, signs))
    assert both[:, 1] == pytest.approx(other.residuals(score, signs))
    assert both[:, 0] == pytest.approx(-both[:, 1])


@pytest.mark.parametrize("classes", [2, 3, 7, 50])
def test_slope_and_bend_hold_and_are_reached(classes):
    loss = MulticlassHinge(classes, 0.25)
    scores = RNG.normal(scale=3, size=(2000, classes))
    labels = RNG.integers(0, classes, 2000).astype(float)
    lengths = np.linalg.norm(loss.residuals(scores, labels), axis=1)
    assert lengths.max() <= loss.slope
    wrong = np.zeros((1, classes))
    wrong[0, 1] = 9.0
    assert np.linalg.norm(loss.residuals(wrong, np.zeros(1))) == pytest.approx(math.sqrt(2))
    # |f'(s) - f'(s')| <= bend |s - s'|, and near to it where two classes are close
    for size in (1e-4, 0.1, 3.0):
        moved = scores + RNG.normal(scale=size, size=scores.shape)
        change = np.linalg.norm(loss.residuals(moved, labels) - loss.residuals(scores, labels), axis=1)
        assert np.all(change <= loss.bend * np.linalg.norm(moved - scores, axis=1) * (1 + 1e-9))
    close = np.full((1, classes), -9.0)
    close[0, :2] = 1.0, 0.0
    step = np.zeros_like(close)
    step[0, :2] = 1e-4, -1e-4
    change = loss.residuals(close + step, np.zeros(1)) - loss.residuals(close, np.zeros(1))
    assert np.linalg.norm(change) == pytest.approx(loss.bend * np.linalg.norm(step))


def test_volume_is_at_least_the_determinant():
    for share, probabilities in zip((0.1, 0.5, 0.9), LOSS.curvature(SCORES[:3], LABELS[:3]), strict=True):
        bent = (np.diag(probabilities) - np.outer(probabilities, probabilities)) / (0.5 * probabilities.max())
        found = np.linalg.slogdet(np.eye(4) + 3.0 * bent)[1]
        assert found <= LOSS.volume(np.array([share]), 3.0)[0]


def test_scores_at_the_edges_of_doubles_have_finite_residuals():
    wild = np.array([[1e300, -1e300, 0.0], [5e-324, 0.0, -5e-324], [-1e250, -1e250, -1e250]])
    loss = MulticlassHinge(3, 1 / 16)
    for label in range(3):
        found = loss.residuals(wild, np.full(3, float(label)))
        assert np.all(np.isfinite(found)) and np.all(np.linalg.norm(found, axis=1) <= loss.slope)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_sum_moves_by_what_the_noise_is_for(neighbors):
    # All tables of up to two rows on a small grid, at weights where residuals are at their longest: in units of norm
    # times slope one row moves the sum by at most 1, and by 1 where it can; a replacement by at most 2.
    loss, norm = MulticlassHinge(3, 0.5), 1.0
    rows = [(np.array([x]), y) for x in (-1.0, -0.5, 0.0, 1.0) for y in (0.0, 1.0, 2.0)]
    plan = calibrate(
        NoisyGradientDescent,
        Fraction(1),
        Fraction(1, 10),
        **{"loss": loss, "norm": norm, "features": 1, "rows": 2, "neighbors": neighbors},
    )
    weights = np.array([[5.0, -5.0, 0.0]])

    def add_up(table):
        features = np.array([x for x, _ in table]).reshape(-1, 1)
        labels = np.array([y for _, y in table])
        problem = RiskMinimization(features, labels, loss, norm, neighbors, max(1, len(table)), plan.penalty)
        pulls = NoisyGradients.of(problem, plan.cut, plan.noise, neighbors)
        return pulls.rows.sum_of(pulls._factors(weights)).astype(float) / 2**40

    tables = [[one, two] for one in rows for two in rows]
    if neighbors is Neighbors.ADD_REMOVE:
        moves = [np.linalg.norm(add_up(table) - add_up(table[:1])) for table in tables]
    else:
        moves = [
            np.linalg.norm(add_up([one, two]) - add_up([one, three]))
            for one, two, three in itertools.product(rows[:2], rows, rows)
        ]
    assert max(moves) <= float(plan.noise.sensitivity)
    if neighbors is Neighbors.ADD_REMOVE:  # of replacements the most is reached by opposite rows of one label
        assert max(moves) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "newton"])
def test_three_classes_are_learned(method):
    model = LinearSVC(epsilon=4, classes=["c", "a", "b"], method=method, **PUBLIC)
    model.fit(ROWS, np.array(["a", "b", "c"])[THIRD])
    assert model.score(ROWS, np.array(["a", "b", "c"])[THIRD]) > 0.75  # the largest class has 4 in 10
    assert model.coef_.shape == (3, 3) and model.intercept_.shape == (3,)
    assert model.classes_.tolist() == ["a", "b", "c"] and model.decision_function(ROWS).shape == (3000, 3)
    assert model.decision_function(ROWS) == pytest.approx(ROWS @ model.coef_.T + model.intercept_)
    assert model.method_ == ("gradient" if method == "auto" else "newton")
    assert epsilon_delta.epsilon(model.loss_, float(model.guarantee_.delta)) <= 4 * 1.002  # the accountant's grid


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"method": "output"}, "method"), ({"method": "objective"}, "method"), ({"delta": 0}, "delta")],
    ids=str,
)
def test_what_is_for_two_classes_alone_is_refused_and_the_fix_works(wrong, name):
    with pytest.raises(ParameterError) as caught:
        LinearSVC(1, classes=[0, 1, 2], **{**PUBLIC, **wrong}).plan(3)
    assert caught.value.name == name
    fixed = {"method": "gradient"} if name == "method" else {"delta": 1e-9}
    assert next(iter(fixed)) in caught.value.fix
    assert LinearSVC(1, classes=[0, 1, 2], **{**PUBLIC, **wrong, **fixed}).plan(3).name == "gradient"


@pytest.mark.slow
def test_scikit_learns_own_checks_hold():
    declared = "it has labels that are not among the declared classes; classes are never read from data"
    expected = WEIGHTED | {
        "check_classifiers_classes": declared,
        "check_classifiers_train": "it has two of the three declared classes, and expects a model of two",
        "check_dtype_object": declared,
    }
    method = "auto" if FULL else "newton"  # of fewer steps
    bits = partial(ReplayBits, b"checks")
    model = LinearSVC(1000, classes=[0, 1, 2], bounds=(-8, 8), rows=100, method=method, bits=bits)
    found = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", [NoisyGradientDescent, NoisyNewton])
def test_the_claim_stands_and_less_noise_is_caught(method):
    # No rows against one. Real noise for (1, 0.1) has mu = 0.921, and a quarter of it 3.684: see `test_audits.py`. At
    # weights of zero the residual is (-1, 1/2, 1/2), sqrt(3/4) of the longest, so mu is 0.866 times that: 60 of 60
    # audits of such a Gaussian refuted it with 300 outputs. Weights are read along the residual.
    loss = MulticlassHinge(3, 0.5)
    knobs = {"steps": 1} if method is NoisyGradientDescent else {"steps": 1, "share": Fraction(1, 1000), "penalty": 1e4}
    facts = {"loss": loss, "norm": 1.0, "features": 1, "rows": 4, "neighbors": Neighbors.ADD_REMOVE}
    plan = calibrate(method, Fraction(1), Fraction(1, 10), **facts, **knobs)
    assert epsilon_delta.epsilon(plan.privacy_loss, 0.1) <= 1
    bits = ReplayBits(b"audit")

    def fit_with(used):
        def fit(rows):
            features, labels = np.array([x for x, _ in rows]).reshape(-1, 1), np.array([y for _, y in rows])
            problem = RiskMinimization(features, labels, loss, 1.0, Neighbors.ADD_REMOVE, 4, used.penalty)
            return float(used.fit(problem, bits)[0] @ [1.0, -0.5, -0.5])

        return fit

    less = 2 if FULL else 4
    noise = GridGaussian(plan.noise.sigma / less, plan.noise.sensitivity, plan.noise.coordinates)
    claim = Claim.epsilon(Fraction(1), Fraction(1, 10))
    sure = 1 - 1e-9
    assert not audit(
        fit_with(plan), [], [(1.0, 0.0)], claim, samples=20_000 if FULL else 100, confidence=sure
    ).is_refuted
    weak = fit_with(replace(plan, noise=noise))
    assert audit(weak, [], [(1.0, 0.0)], claim, samples=4_000 if FULL else 300, confidence=sure).is_refuted
