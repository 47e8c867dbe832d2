"""K-means: scikit-learn's manners, its clusters at a large epsilon, and what is promised at a small one."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans as Plain
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from tests.support.bits import Stopped, Stopping
from tests.support.counts import FULL, some

from tacit.accounting import epsilon_delta
from tacit.audit.claim import Claim
from tacit.audit.statistical import audit
from tacit.errors import ParameterError
from tacit.learn import KMeans
from tacit.learn.clusters import ClusterMoments, assign_to_centers, rebalance, squared_distances
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

EXPECTED = {
    "check_clustering": "it reads labels_, which would keep in the model, without noise, what cluster each row is in"
}
CENTERS = np.array([[10.0, 1.0], [50.0, 9.0], [80.0, 2.0], [30.0, 8.0]])
RNG = np.random.default_rng(6)
CROWD = RNG.integers(0, 4, size=4000)
ROWS = np.clip(RNG.normal(CENTERS[CROWD], [[2.5, 0.5]]), 0, [100, 10])
PUBLIC = {"bounds": (0, [100, 10]), "n_clusters": 4, "rows": 4000}


def model(**more) -> KMeans:
    return KMeans(**{"epsilon": 2, "bits": partial(ReplayBits, b"clusters"), **PUBLIC, **more})


def crowded(seed, rows, columns, crowds):
    """Rows around so many points of a cube, and these points."""
    generator = np.random.default_rng(seed)
    points = generator.uniform(-0.8, 0.8, size=(crowds, columns))
    return np.clip(generator.normal(points[generator.integers(0, crowds, size=rows)], 0.1), -1, 1), points


def in_order(centers):
    return centers[np.argsort(centers[:, 0])]


@pytest.mark.slow
@pytest.mark.parametrize("more", some([{}, {"n_clusters": 2, "neighbors": "replace", "rows": None}], 2), ids=str)
def test_scikit_learns_own_checks_hold_but_for_one(more):
    estimator = model(epsilon=1000, bounds=(-8, 8), **{"n_clusters": 3, "rows": 100, **more})
    found = check_estimator(estimator, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize(("neighbors", "delta"), [(Neighbors.ADD_REMOVE, 1e-8), (Neighbors.REPLACE, 0)])
def test_with_a_large_epsilon_it_is_scikit_learns(neighbors, delta):
    ours = model(epsilon=10**6, delta=delta, neighbors=neighbors, max_iter=10).fit(ROWS)
    plain = Plain(4, n_init=5, random_state=0).fit(ROWS)
    half = np.array([50.0, 5.0])
    assert in_order(ours.cluster_centers_) / half == pytest.approx(in_order(plain.cluster_centers_) / half, abs=1e-3)
    assert ours.score(ROWS) == pytest.approx(-plain.inertia_, rel=1e-3)
    assert sorted(ours.cluster_counts_) == pytest.approx(sorted(np.bincount(plain.labels_)), abs=0.5)
    assert sorted(np.bincount(ours.predict(ROWS))) == sorted(np.bincount(plain.labels_))


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "crowds"), [(2, 5), (8, 5), (5, 10)])
def test_crowds_are_found_from_the_middle_of_the_bounds(columns, crowds):
    # one run of seven steps, against the points that the rows were drawn around
    for seed in range(3):
        rows, points = crowded(seed, 5000, columns, crowds)
        ours = model(epsilon=1000, bounds=(-1, 1), n_clusters=crowds).fit(rows)
        assert -ours.score(rows) < 1.05 * squared_distances(rows, points).min(axis=1).sum()


def test_it_learns_at_a_small_epsilon():
    ours, plain = model(epsilon=1).fit(ROWS), Plain(4, n_init=5, random_state=0).fit(ROWS)
    assert -ours.score(ROWS) < 1.5 * plain.inertia_
    # one cluster of all rows is worse by far
    assert Plain(1, n_init=1).fit(ROWS).inertia_ > 10 * plain.inertia_


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_what_is_spent_is_within_the_guarantee(neighbors, delta):
    plan = model(epsilon=0.7, delta=delta, neighbors=neighbors).plan(2, 4000)
    assert 0.699 <= epsilon_delta.epsilon(plan.privacy_loss, delta) <= 0.7 * (1 + 1e-15)
    assert plan.guarantee.epsilon == Fraction(7, 10) and plan.guarantee.neighbors is neighbors


def test_steps_share_the_budget():
    # nine releases: three times the noise of one, or nine times without a delta
    for delta, times in ((1e-6, 3), (0, 9)):
        one, nine = (model(delta=delta, max_iter=steps).plan(2).release.deviations for steps in (1, 9))
        assert [b / a for a, b in zip(one, nine, strict=True)] == pytest.approx([times] * 3, rel=1e-6)


@pytest.mark.slow
def test_the_claim_stands_under_an_audit():
    # Four rows and a fifth. At a delta this large the claim is about the bulk of the law.
    made = model(epsilon=1, delta=0.1, bounds=(-1, 1), n_clusters=2, rows=4, max_iter=2, bits=ReplayBits(b"audit"))
    few = [[-0.9], [-0.8], [0.7], [0.9]]

    def centers(rows):
        return float(made.fit(rows).cluster_centers_.max())

    claim = Claim.epsilon(1, Fraction(1, 10))
    found = audit(centers, few, [*few, [1.0]], claim, samples=4_000 if FULL else 100, confidence=1 - 1e-9)
    assert not found.is_refuted, str(found)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 60))
def test_the_distances_of_a_row_do_not_depend_on_other_rows(seed, columns, count):
    # to the last bit: else a row that is added could move others to another cluster
    generator = np.random.default_rng(seed)
    rows, centers = generator.normal(size=(60, columns)), generator.normal(size=(4, columns))
    chosen = generator.permutation(60)[:count]
    assert np.array_equal(
        squared_distances(rows, centers)[chosen], squared_distances(np.asfortranarray(rows[chosen]), centers)
    )
    assert np.array_equal(assign_to_centers(rows, centers), squared_distances(rows, centers).argmin(axis=1))


def test_halves_are_those_of_a_normal_law():
    # of deviation 2 in the wider column: means at 2 sqrt(2/pi) = 1.5958, variance 4 (1 - 2/pi) = 1.4535
    left, right = ClusterMoments(100.0, np.array([5.0, 1.0]), np.array([4.0, 1.0])).halves()
    assert (left.count, right.count) == (50, 50)
    assert left.mean == pytest.approx([3.4042, 1], abs=1e-4) and right.mean == pytest.approx([6.5958, 1], abs=1e-4)
    assert left.variance == pytest.approx([1.4535, 1], abs=1e-4)
    # Joined again they have what the whole had.
    whole = left.join_with(right)
    assert whole.count == 100 and whole.mean == pytest.approx([5, 1]) and whole.variance == pytest.approx([4, 1])


def test_two_centers_in_one_crowd_are_joined_for_one_in_two_crowds():
    def at(place, variance):
        return ClusterMoments(100.0, np.array([place]), np.array([variance]))

    stuck = [at(-10.0, 0.1), at(-9.0, 0.1), at(5.0, 25.0)]
    # Joining costs 50 * 1^2 = 50; a split of the last gains 100 * 25 * 2/pi = 1592.
    means = sorted(float(cluster.mean[0]) for cluster in rebalance(stuck, 3, merging=True))
    assert means == pytest.approx([-9.5, 5 - 3.9894, 5 + 3.9894], abs=1e-3)
    assert rebalance(stuck, 3, merging=False) == stuck
    # Where it is not worth it nothing is joined.
    apart = [at(-10.0, 0.1), at(0.0, 0.1), at(10.0, 0.1)]
    assert rebalance(apart, 3, merging=True) == apart


@pytest.mark.slow
def test_with_hardly_any_budget_there_are_still_centers_within_the_bounds():
    for seed in range(10):
        fitted = model(epsilon=1e-3, bits=partial(ReplayBits, b"%d" % seed)).fit(ROWS)
        assert fitted.cluster_centers_.shape == (4, 2)
        assert np.all((fitted.cluster_centers_ >= 0) & (fitted.cluster_centers_ <= [100, 10]))


def test_declared_centers_are_where_it_starts():
    one = model(epsilon=10**6, init=CENTERS, max_iter=1).fit(ROWS)
    # one step of Lloyd's from there: the means of the rows nearest to each
    places = assign_to_centers(ROWS, CENTERS)
    means = np.array([ROWS[places == place].mean(axis=0) for place in range(4)])
    assert one.cluster_centers_ == pytest.approx(means, abs=0.01)
    for wrong in (CENTERS[:2], CENTERS[:, :1], "k-means++", np.full((4, 2), np.nan)):
        with pytest.raises(ParameterError, match="init: must be None, or a center for each cluster"):
            model(init=wrong).fit(ROWS)


def test_nothing_of_single_rows_is_kept():
    fitted = model().fit(ROWS)
    assert not hasattr(fitted, "labels_") and not hasattr(fitted, "inertia_")
    assert max(value.size for value in vars(fitted).values() if isinstance(value, np.ndarray)) == 8  # the centers
    assert model().fit_predict(ROWS).tolist() == fitted.predict(ROWS).tolist()
    assert fitted.transform(ROWS).argmin(axis=1).tolist() == fitted.predict(ROWS).tolist()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bounds": None}, "bounds: are not declared"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.0}, "n_clusters: needs an integer"),
        ({"max_iter": 0}, "max_iter"),
        ({"epsilon": None}, "epsilon: is not declared"),
        ({"rows": None}, "rows: is not declared"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_said_with_a_fix(wrong, says):
    with pytest.raises(ParameterError, match=says) as caught:
        model(**wrong).fit(ROWS)
    assert caught.value.fix


def test_rows_are_read_within_bounds_and_missing_ones_as_declared():
    far = ROWS.copy()
    far[::7, 0], far[::5, 1] = 1e9, np.nan
    near = np.where(np.isnan(far), 5, np.minimum(far, 100))
    with pytest.raises(ValueError, match="NaN"):
        model().fit(far)
    one, other = model(missing=5).fit(far), model().fit(near)
    assert one.cluster_centers_.tolist() == other.cluster_centers_.tolist()
    assert one.predict(far).tolist() == other.predict(near).tolist()


def test_a_fit_that_is_stopped_is_charged_and_leaves_no_model():
    made = model().fit(ROWS).set_params(epsilon=3, bits=Stopping())
    with pytest.raises(Stopped):
        made.fit(ROWS)
    assert made.guarantee_.epsilon == 3 and epsilon_delta.epsilon(made.loss_, float(made.guarantee_.delta)) <= 3
    with pytest.raises(NotFittedError):
        made.predict(ROWS)
    with pytest.raises(ParameterError, match="sample_weight"):
        model().fit(ROWS, sample_weight=np.ones(4000))


@pytest.mark.slow
def test_clones_pickles_frames_and_pipelines():
    frame = pandas.DataFrame(ROWS, columns=["age", "score"])
    whole = make_pipeline(FunctionTransformer(), model().set_output(transform="pandas")).fit(frame)
    assert whole.transform(frame).columns.tolist() == ["kmeans0", "kmeans1", "kmeans2", "kmeans3"]
    back = pickle.loads(pickle.dumps(whole))
    assert back.predict(frame).tolist() == whole.predict(frame).tolist()
    assert back[-1].guarantee_ == whole[-1].guarantee_ and back[-1].loss_ == whole[-1].loss_
    assert clone(whole).fit(frame).predict(frame).tolist() == whole.predict(frame).tolist()  # the same seed
