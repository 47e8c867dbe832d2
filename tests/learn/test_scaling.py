"""Scaling by noisy moments: scikit-learn's manners, its scaler at a large epsilon, and the law of what is released."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pandas
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as Plain
from sklearn.utils.estimator_checks import check_estimator
from tests.support.bits import Stopped, Stopping
from tests.support.counts import some

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn import PCA, StandardScaler
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ALARM = 1e-9  # the chance that a test of a law fails without a cause
RNG = np.random.default_rng(8)
ROWS = np.clip(RNG.normal([40.0, 0.2, 5.0], [12.0, 0.3, 0.0], size=(3000, 3)), [0, -1, 0], [100, 1, 10])
PUBLIC = {"bounds": ([0, -1, 0], [100, 1, 10]), "rows": 3000}
HALF = np.array([50.0, 1.0, 5.0])


def scaler(**more) -> StandardScaler:
    return StandardScaler(**{"epsilon": 1, "bits": partial(ReplayBits, b"scaling"), **PUBLIC, **more})


@pytest.mark.slow
@pytest.mark.parametrize("more", some([{}, {"with_std": False, "neighbors": "replace", "rows": None}], 2), ids=str)
def test_scikit_learns_own_checks_hold(more):
    found = check_estimator(scaler(epsilon=1000, bounds=(-8, 8), **{"rows": 100, **more}), on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] not in {"passed", "skipped"}] == []


@pytest.mark.slow
@pytest.mark.parametrize(("neighbors", "delta"), [(Neighbors.ADD_REMOVE, 1e-7), (Neighbors.REPLACE, 0)])
def test_with_a_large_epsilon_it_is_scikit_learns(neighbors, delta):
    ours, plain = scaler(epsilon=10**6, delta=delta, neighbors=neighbors).fit(ROWS), Plain().fit(ROWS)
    assert ours.mean_ / HALF == pytest.approx(plain.mean_ / HALF, abs=1e-5)
    assert ours.var_ / HALF**2 == pytest.approx(plain.var_ / HALF**2, abs=1e-5)
    assert ours.n_samples_seen_ == pytest.approx(3000, abs=0.01)
    assert ours.transform(ROWS)[:, :2] == pytest.approx(plain.transform(ROWS)[:, :2], abs=1e-3)
    assert ours.inverse_transform(ours.transform(ROWS)) == pytest.approx(ROWS)


def test_a_column_that_does_not_vary_stays_small():
    # What it is off its noisy mean by is s/n, and it is divided by about sqrt(s/n).
    for epsilon in (0.1, 1, 1000):
        assert np.abs(scaler(epsilon=epsilon).fit_transform(ROWS)[:, 2]).max() < 1


@pytest.mark.slow
def test_means_alone_have_less_noise():
    both, alone = scaler().plan(3).release, scaler(with_std=False).plan(3).release
    # three columns, isqrt 1: shares of the count and a degree are 1/3 and 1/3, or 1/2 and 1/2
    assert both.deviations[1] / alone.deviations[1] == pytest.approx((3 / 2) ** 0.5, rel=1e-6)
    fitted = scaler(with_std=False).fit(ROWS)
    assert fitted.var_ is None and fitted.scale_ is None
    assert fitted.transform(ROWS) == pytest.approx(ROWS - fitted.mean_)
    whole = scaler(with_mean=False).fit(ROWS)
    assert whole.transform(ROWS) == pytest.approx(ROWS / whole.scale_)
    assert whole.inverse_transform(whole.transform(ROWS)) == pytest.approx(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "with_std"), [(1e-6, True), (0, False)])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_what_is_spent_is_within_the_guarantee(neighbors, delta, with_std):
    fitted = scaler(epsilon=0.7, delta=delta, neighbors=neighbors, with_std=with_std).fit(ROWS)
    assert 0.699 <= epsilon_delta.epsilon(fitted.loss_, delta) <= 0.7 * (1 + 1e-15)
    assert fitted.guarantee_.epsilon == Fraction(7, 10) and fitted.guarantee_.neighbors is neighbors


@pytest.mark.slow
def test_the_law_of_a_mean_is_the_one_that_is_priced():
    # Ten rows of zeros under replace, where their number is public: a mean is s Z/(10 + 3 s^2/10), with the s of the
    # plan and a standard Gaussian Z. 80,000 columns: at a false-alarm rate of 1e-9 the distance of Kolmogorov and
    # Smirnov is below 0.0116; a scale off by a tenth is at 0.023.
    made = scaler(epsilon=10**6, bounds=(-1, 1), neighbors="replace", rows=None, with_std=False)
    fitted = made.fit(np.zeros((10, 80_000)))
    noise = made.plan(80_000, 10).release.deviations[1]
    law = stats.norm(scale=noise / (10 + 3 * noise**2 / 10))
    assert stats.kstest(fitted.mean_, law.cdf).pvalue > ALARM
    assert stats.kstest(fitted.mean_ / 1.1, law.cdf).pvalue < ALARM


def test_it_is_close_at_a_small_epsilon():
    fitted = scaler(epsilon=0.5).fit(ROWS)
    assert fitted.mean_ / HALF == pytest.approx(ROWS.mean(axis=0) / HALF, abs=0.05)
    assert fitted.scale_[:2] == pytest.approx(ROWS.std(axis=0)[:2], rel=0.3)


def test_rows_are_read_within_bounds_and_missing_ones_as_declared():
    far = ROWS.copy()
    far[::7, 0], far[::5, 1] = 1e9, np.nan
    near = np.where(np.isnan(far), 0.25, np.minimum(far, 100))
    with pytest.raises(ValueError, match="NaN"):
        scaler().fit(far)
    one, other = scaler(missing=0.25).fit(far), scaler().fit(near)
    assert one.mean_.tolist() == other.mean_.tolist()
    assert one.transform(far).tolist() == other.transform(near).tolist()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bounds": None}, "bounds: are not declared"),
        ({"epsilon": 0}, "epsilon: must be positive"),
        ({"delta": 1}, "delta: must be in"),
        ({"rows": None}, "rows: is not declared"),
        ({"with_mean": False, "with_std": False}, "with_std: there is nothing to learn without it"),
        ({"with_std": "yes"}, "with_std: needs True or False"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_said_with_a_fix(wrong, says):
    with pytest.raises(ParameterError, match=says) as caught:
        scaler(**wrong).fit(ROWS)
    assert caught.value.fix


def test_a_fit_that_is_stopped_is_charged_and_leaves_no_model():
    made = scaler().fit(ROWS).set_params(epsilon=3, bits=Stopping())
    with pytest.raises(Stopped):
        made.fit(ROWS)
    assert made.guarantee_.epsilon == 3 and epsilon_delta.epsilon(made.loss_, float(made.guarantee_.delta)) <= 3
    with pytest.raises(NotFittedError):
        made.transform(ROWS)
    with pytest.raises(ParameterError, match="sample_weight"):
        scaler().fit(ROWS, sample_weight=np.ones(3000))


def test_clones_pickles_frames_and_pipelines():
    # Both steps are private and paid for. What the second declares is a guess at public numbers: a norm.
    frame = pandas.DataFrame(ROWS[:, :2], columns=["age", "score"])
    first = scaler(bounds=([0, -1], [100, 1])).set_output(transform="pandas")
    second = PCA(1, norm=4, rows=3000, bits=partial(ReplayBits, b"second"))
    whole = make_pipeline(first, second).fit(frame)
    assert first.transform(frame).columns.tolist() == ["age", "score"] == first.get_feature_names_out().tolist()
    assert [step.guarantee_.epsilon for step in whole] == [1, 1]
    back = pickle.loads(pickle.dumps(whole))
    assert back.transform(frame).tolist() == whole.transform(frame).tolist()
    assert back[0].guarantee_ == first.guarantee_ and back[0].loss_ == first.loss_
    assert clone(whole).fit(frame).transform(frame).tolist() == whole.transform(frame).tolist()  # the same seed
