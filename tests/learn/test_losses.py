"""Losses are what their docstrings say: slopes, bends, corners and volumes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learn.losses import ConvexLoss, HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge

BINARY = [LogisticLoss(), LogisticLoss(0.6), LogisticLoss(0.5), SmoothedHinge(), SmoothedHinge(0.1)]
SINGLE = [*BINARY, HuberLoss(1.0), HuberLoss(2.0, 0.5)]
ALL: list[ConvexLoss] = [*SINGLE, MultinomialLoss(2), MultinomialLoss(3), MultinomialLoss(10)]
SHARES = np.linspace(0, 1, 401)


def labeled(loss, count=4000, seed=0):
    rng = np.random.default_rng(seed)
    if isinstance(loss, MultinomialLoss):
        return 3 * rng.normal(size=(count, loss.outputs)), rng.integers(0, loss.classes, count).astype(float)
    scores = 4 * rng.normal(size=count)
    if isinstance(loss, HuberLoss):
        return scores, loss.target_bound * rng.uniform(-1, 1, count)
    return scores, rng.choice([-1.0, 1.0], count)


@pytest.mark.parametrize("loss", SINGLE, ids=repr)
def test_residuals_are_the_derivative_of_values_and_curvature_theirs(loss):
    scores, labels = labeled(loss)
    step = 1e-6
    slope = (loss.values(scores + step, labels) - loss.values(scores - step, labels)) / (2 * step)
    bend = (loss.residuals(scores + step, labels) - loss.residuals(scores - step, labels)) / (2 * step)
    np.testing.assert_allclose(slope, loss.residuals(scores, labels), atol=1e-5)
    # f'' jumps where a parabola meets a line: a score is within a step of that with a chance of about 1e-6
    assert np.mean(np.abs(bend - loss.curvature(scores, labels)) < 1e-4) > 0.999


def test_residuals_of_the_multinomial_loss_are_the_gradient_of_values():
    loss = MultinomialLoss(4)
    scores, labels = labeled(loss, 200)
    for output in range(4):
        step = np.zeros(4)
        step[output] = 1e-6
        slope = (loss.values(scores + step, labels) - loss.values(scores - step, labels)) / 2e-6
        np.testing.assert_allclose(slope, loss.residuals(scores, labels)[:, output], atol=1e-7)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_no_residual_is_above_the_slope_and_no_curvature_above_the_bend(loss):
    scores, labels = labeled(loss)
    scores *= 10
    residuals, curvature = loss.residuals(scores, labels), loss.curvature(scores, labels)
    if loss.outputs == 1:
        assert np.abs(residuals).max() <= loss.slope
        assert curvature.min() >= 0 and curvature.max() <= loss.bend
    else:
        assert np.linalg.norm(residuals, axis=1).max() <= loss.slope
        largest = max(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() for p in curvature[:200])
        assert largest <= loss.bend + 1e-15


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_slope_and_bend_are_reached(loss):
    if isinstance(loss, MultinomialLoss):
        scores = np.zeros((1, loss.classes))
        scores[0, 1] = 1000.0  # p = e_1, y = 0
        assert np.linalg.norm(loss.residuals(scores, np.zeros(1))) == pytest.approx(math.sqrt(2))
        p = loss.curvature(np.array([[0.0, 0.0] + [-1000.0] * (loss.classes - 2)]), np.zeros(1))[0]
        assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() == pytest.approx(0.5)
        return
    far, label = np.array([-1000.0]), np.array([1.0 if not isinstance(loss, HuberLoss) else 0.0])
    assert abs(loss.residuals(far, label)[0]) == pytest.approx(loss.slope)
    near = np.array([1.0 if isinstance(loss, SmoothedHinge) else 0.0])
    assert loss.curvature(near, label)[0] == pytest.approx(loss.bend)


@pytest.mark.parametrize("loss", BINARY, ids=repr)
def test_the_label_decides_the_sign_of_the_residual(loss):
    scores, labels = labeled(loss)
    assert loss.one_sided and np.all(loss.residuals(scores, labels) * labels <= 0)


def test_a_cut_loss_is_a_line_where_a_row_is_on_the_wrong_side():
    # cut 1/2: a line from the margin 0 on, where the loss is ln 2: ln 2 + 3/2 at the margin -3
    loss, plus = LogisticLoss(0.5), np.ones(3)
    scores = np.array([-3.0, 0.0, 2.0])
    assert loss.values(scores, plus).tolist() == pytest.approx(
        [math.log(2) + 1.5, math.log(2), math.log1p(math.exp(-2))]
    )
    assert loss.residuals(scores, plus).tolist() == pytest.approx([-0.5, -0.5, -1 / (1 + math.exp(2))])
    assert loss.curvature(scores, plus)[0] == 0


def test_the_squared_loss_is_squared_within_the_bounds():
    loss = HuberLoss(target_bound=2.0, prediction_bound=3.0)
    scores, labels = np.linspace(-3, 3, 50), np.linspace(2, -2, 50)
    np.testing.assert_allclose(loss.values(scores, labels), (scores - labels) ** 2 / 2)
    np.testing.assert_allclose(loss.residuals(scores, labels), scores - labels)
    # beyond, a line of slope 5: at an error of 7 it is 5 (7 - 5/2)
    assert loss.values(np.array([9.0]), np.array([2.0]))[0] == pytest.approx(22.5)


@pytest.mark.parametrize("loss", ALL, ids=repr)
@pytest.mark.parametrize("ratio", [0.01, 1.0, 100.0])
def test_volumes_are_concave_and_not_negative(loss, ratio):
    volume = loss.volume(SHARES, ratio)
    assert volume.min() >= 0
    assert np.diff(volume, 2).max() <= 1e-12 * (1 + volume.max())


@pytest.mark.parametrize("loss", SINGLE, ids=repr)
def test_the_volume_bounds_the_determinant_of_one_row(loss):
    scores, labels = labeled(loss)
    share = np.abs(loss.residuals(scores, labels)) / loss.slope
    for ratio in (0.1, 1.0, 30.0):
        assert np.all(np.log1p(loss.curvature(scores, labels) * ratio) <= loss.volume(share, ratio) + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_multinomial_volume_bounds_the_determinant_and_is_reached_by_equal_odds(classes):
    loss = MultinomialLoss(classes)
    scores, labels = labeled(loss, 300)
    scores[0] = 0
    for ratio in (0.1, 1.0, 30.0):
        found = []
        for p in loss.curvature(scores, labels):
            found.append(np.linalg.slogdet(np.eye(classes) + ratio * (np.diag(p) - np.outer(p, p)))[1])
        share = 1 - loss.curvature(scores, labels)[np.arange(300), labels.astype(int)]
        bound = loss.volume(share, ratio)
        assert np.all(np.array(found) <= bound + 1e-12)
        # K - 1 eigenvalues of 1/K
        assert found[0] == pytest.approx(bound[0]) == pytest.approx((classes - 1) * math.log1p(ratio / classes))


def test_labels_that_a_loss_is_not_made_for_are_told():
    assert LogisticLoss().admits(np.array([1.0, -1.0])) and not LogisticLoss().admits(np.array([0.0, 1.0]))
    assert MultinomialLoss(3).admits(np.array([0.0, 2.0]))
    assert not MultinomialLoss(3).admits(np.array([3.0])) and not MultinomialLoss(3).admits(np.array([0.5]))
    assert HuberLoss(1.0).admits(np.array([-1.0])) and not HuberLoss(1.0).admits(np.array([1.1]))
    for loss in ALL:
        assert not loss.admits(np.array([math.nan]))


def test_parameters_that_make_no_loss_are_refused():
    for make in (
        lambda: LogisticLoss(0),
        lambda: LogisticLoss(1.5),
        lambda: SmoothedHinge(0),
        lambda: HuberLoss(-1),
        lambda: MultinomialLoss(1),
    ):
        with pytest.raises(ParameterError):
            make()
