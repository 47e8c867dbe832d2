"""Principal components: scikit-learn's manners, its model at a large epsilon, and what is promised at a small one."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.decomposition import PCA as Plain
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from tests.support.bits import Stopped, Stopping
from tests.support.counts import some

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn import PCA
from tacit.learn.components import ScatterRelease
from tacit.learn.sums import EXPONENT, QuantizedRows
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, SWAP = Neighbors.ADD_REMOVE, Neighbors.REPLACE
ALARM = 1e-9  # the chance that a test of a law fails without a cause
RNG = np.random.default_rng(4)
MIX = np.array([[3.0, 1.0, 0.0], [0.0, 1.5, 0.5], [0.0, 0.0, 0.3]])
ROWS = np.clip(RNG.normal(size=(4000, 3)) @ MIX + [1.0, 20.0, -3.0], [-9, 10, -6], [11, 30, 0])
PUBLIC = {"bounds": ([-9, 10, -6], [11, 30, 0]), "rows": 4000}


def model(**more) -> PCA:
    return PCA(**{"epsilon": 1, "bits": partial(ReplayBits, b"components"), **PUBLIC, **more})


def scatter(epsilon="1", delta="1e-6", columns=2, neighbors=ADD, constant=0.5) -> ScatterRelease:
    shape = {"origin": np.zeros(columns), "norm": 1.0, "constant": constant, "neighbors": neighbors}
    return ScatterRelease.calibrate(Fraction(epsilon), Fraction(delta), **shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    "declared", some([{"bounds": (-8, 8)}, {"bounds": None, "norm": 20, "n_components": 1}], 2), ids=str
)
def test_scikit_learns_own_checks_hold(declared):
    found = check_estimator(model(epsilon=1000, **{"rows": 100, **declared}), on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] not in {"passed", "skipped"}] == []


@pytest.mark.slow
@pytest.mark.parametrize(("neighbors", "delta"), [(ADD, 1e-8), (SWAP, 0)])
def test_with_a_large_epsilon_it_is_scikit_learns(neighbors, delta):
    # Rows are 14.5 long at most. Noise of 1e-3 of 14.5^2 on sums over 4,000 rows is below 1e-4 of a variance of one.
    ours, plain = model(epsilon=10**6, delta=delta, neighbors=neighbors).fit(ROWS), Plain().fit(ROWS)
    assert ours.mean_ == pytest.approx(plain.mean_, abs=1e-3)
    assert ours.explained_variance_ == pytest.approx(plain.explained_variance_, abs=1e-3)
    assert ours.explained_variance_ratio_ == pytest.approx(plain.explained_variance_ratio_, abs=1e-4)
    assert ours.components_ == pytest.approx(plain.components_, abs=1e-3)
    assert ours.transform(ROWS) == pytest.approx(plain.transform(ROWS), abs=2e-2)
    assert ours.inverse_transform(ours.transform(ROWS)) == pytest.approx(ROWS)


def test_around_a_declared_center_the_second_moments_are_those_off_it():
    center = [1.0, 20.0, -3.0]
    fitted = model(epsilon=10**6, center=center).fit(ROWS)
    exact = (ROWS - center).T @ (ROWS - center) / 4000
    assert fitted.mean_.tolist() == center
    assert fitted.explained_variance_ == pytest.approx(np.linalg.eigvalsh(exact)[::-1], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "center"), [(1e-6, None), (1e-6, 0), (0, None)])
@pytest.mark.parametrize("neighbors", [ADD, SWAP])
def test_what_is_spent_is_within_the_guarantee(neighbors, delta, center):
    plan = model(epsilon=0.7, delta=delta, neighbors=neighbors, center=center).plan(3, 4000)
    assert 0.699 <= epsilon_delta.epsilon(plan.privacy_loss, delta) <= 0.7 * (1 + 1e-15)
    assert plan.guarantee.epsilon == Fraction(7, 10) and plan.guarantee.neighbors is neighbors


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([ADD, SWAP]))
def test_without_a_delta_a_neighbor_moves_the_entries_by_no_more_than_is_priced(seed, width, neighbors):
    generator = np.random.default_rng(seed)
    rows = generator.choice([-1.0, 0.0, 0.7, 1.0], size=(5, width)) * generator.uniform(0, 2, size=(5, 1))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    one, other = (
        QuantizedRows.of(rows[1:], 1.0).gram(),
        QuantizedRows.of(rows if neighbors is ADD else rows[:-1], 1.0).gram(),
    )
    moved = sum(abs(int(v)) for v in (one - other)[np.triu_indices(width)])
    assert moved <= scatter("1", "0", width, neighbors, constant=0).privacy_loss.sensitivity


def test_that_bound_is_reached():
    # a row of four equal numbers: ten products of 1/4
    moved = sum(int(v) for v in QuantizedRows.of(np.full((1, 4), 0.5), 1.0).gram()[np.triu_indices(4)])
    assert moved == scatter("1", "0", 4, constant=0).privacy_loss.sensitivity == 5 * 2 ** (EXPONENT - 1)


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["1e-6", "0"], ids=["Gaussian", "Laplace"])
def test_the_law_of_the_noise_is_the_one_that_is_priced(delta):
    # 450 columns have 101,475 entries on and above the diagonal. The distance of Kolmogorov and Smirnov is below
    # sqrt(ln(2e9)/202,950) = 0.0103, but once in 1e9; a scale off by a tenth is at 0.023 (Gaussian), 0.0175 (Laplace).
    made = scatter("1000000000" if delta == "0" else "1", delta, columns=450, constant=0)
    found, _, _ = made.release(np.zeros((0, 450)), ReplayBits(b"law"))
    assert np.array_equal(found, found.T)
    entries = found[np.triu_indices(450)]
    if delta == "0":
        law = stats.laplace(scale=made.deviation / np.sqrt(2))
    else:
        law = stats.norm(scale=made.deviation)
        # beside the diagonal the deviation is less by sqrt 2
        entries = np.concatenate([np.diagonal(found), found[np.triu_indices(450, 1)] * np.sqrt(2)])
    assert stats.kstest(entries, law.cdf).pvalue > ALARM
    assert stats.kstest(entries / 1.1, law.cdf).pvalue < ALARM


@pytest.mark.parametrize("constant", [0, 0.5])
def test_a_row_of_full_length_moves_the_release_by_all_that_is_priced_and_no_more(constant):
    # With the same bits the noise is the same, so the difference of two releases is what the row moves. In units of the
    # noise, where an entry beside the diagonal counts twice, that is one over the relative sigma that is priced.
    made = scatter("1", "1e-6", columns=2, constant=constant)
    none, one = (made.release(rows, ReplayBits(b"same")) for rows in (np.zeros((0, 2)), np.array([[0.6, -0.8]])))
    second, total, count = (b - a for a, b in zip(none, one, strict=True))
    square = (second**2).sum() + 2 * constant**2 * (total**2).sum() + constant**4 * count**2
    assert np.sqrt(square) / made.deviation == pytest.approx(1 / float(made.noise.relative), rel=1e-5)
    assert made.privacy_loss.parts[0].sigma == made.noise.relative


def test_one_release_tells_second_moments_sum_and_number():
    rows = RNG.uniform(-0.5, 0.5, size=(300, 2))
    second, total, count = scatter("1e8").release(rows, ReplayBits(b"three"))
    assert second == pytest.approx(rows.T @ rows, abs=2e-3)
    assert total == pytest.approx(rows.sum(axis=0), abs=2e-3)
    assert count == pytest.approx(300, abs=2e-3)


def test_it_learns_at_a_small_epsilon():
    plain = Plain(n_components=1).fit(ROWS)
    fitted = model(n_components=1, epsilon=0.5).fit(ROWS)
    # the cosine of the angle between the first components
    assert abs(float(fitted.components_[0] @ plain.components_[0])) > 0.99
    assert fitted.explained_variance_[0] == pytest.approx(
        plain.explained_variance_[0], abs=10 * fitted.noise_deviation_
    )


def test_components_are_orthonormal_and_variances_fall_whatever_the_noise():
    fitted = model(epsilon=1e-3).fit(ROWS)
    assert fitted.components_ @ fitted.components_.T == pytest.approx(np.eye(3))
    assert np.all(np.diff(fitted.explained_variance_) <= 0) and np.all(fitted.explained_variance_ >= 0)
    assert np.all((fitted.mean_ >= PUBLIC["bounds"][0]) & (fitted.mean_ <= PUBLIC["bounds"][1]))


def test_rows_are_read_within_bounds_and_norm():
    far = ROWS.copy()
    far[::9] = 1e6
    near = np.minimum(far, PUBLIC["bounds"][1])
    assert model().fit(far).components_.tolist() == model().fit(near).components_.tolist()
    # With a norm of 2 around the center, a row at a distance of 10 is read at a distance of 2.
    short = model(norm=2, center=[1, 20, -3]).fit(ROWS)
    assert short.transform([[11.0, 20.0, -3.0]]) == pytest.approx(short.transform([[3.0, 20.0, -3.0]]))
    assert short._scatter.norm == 2


def test_missing_values_follow_the_declared_rule():
    holed = ROWS.copy()
    holed[::10, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model().fit(holed)
    one, other = model(missing=15).fit(holed), model().fit(np.where(np.isnan(holed), 15, holed))
    assert one.components_.tolist() == other.components_.tolist()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bounds": None}, "bounds: are not declared"),
        ({"bounds": (1, 1)}, "bounds: leave no column that can vary"),
        ({"bounds": (-1e100, 1e100)}, "norm: of a row must be between"),
        ({"norm": 0}, "norm: must be a positive number"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 4}, "n_components: is 4, and there are 3 columns"),
        ({"n_components": 0.9}, "n_components: needs an integer"),
        ({"center": [1, 2]}, "center: does not fit 3 columns"),
        ({"center": "middle"}, "center: does not fit 3 columns"),
        ({"epsilon": -1}, "epsilon: must be positive"),
        ({"rows": None}, "rows: is not declared"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_said_with_a_fix(wrong, says):
    with pytest.raises(ParameterError, match=says) as caught:
        model(**wrong).fit(ROWS)
    assert caught.value.fix


def test_weights_of_rows_are_refused():
    with pytest.raises(ParameterError, match="sample_weight"):
        model().fit(ROWS, sample_weight=np.ones(4000))


def test_a_fit_that_is_stopped_is_charged_and_leaves_no_model():
    made = model().fit(ROWS).set_params(epsilon=3, bits=Stopping())
    with pytest.raises(Stopped):
        made.fit(ROWS)
    assert made.guarantee_.epsilon == 3 and epsilon_delta.epsilon(made.loss_, float(made.guarantee_.delta)) <= 3
    with pytest.raises(NotFittedError):
        made.transform(ROWS)


def test_clones_pickles_frames_and_pipelines():
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    whole = make_pipeline(FunctionTransformer(), model(n_components=2).set_output(transform="pandas")).fit(frame)
    found = whole.transform(frame)
    assert found.columns.tolist() == ["pca0", "pca1"] == whole[-1].get_feature_names_out().tolist()
    back = pickle.loads(pickle.dumps(whole))
    assert back.transform(frame).equals(found) and back[-1].loss_ == whole[-1].loss_
    assert clone(whole).fit_transform(frame).equals(found)  # the same seed
