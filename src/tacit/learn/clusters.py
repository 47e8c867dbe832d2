"""K-means: a few of Lloyd's steps, each from noisy counts, sums and sums of squares of the clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from tacit.arithmetic import Number, to_integer
from tacit.errors import ParameterError
from tacit.learn.columns import GroupMoments, estimate_moments
from tacit.learn.facts import BitSource, Bounds, DeclaredParameters, Missing
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, ReleasePlan, center_and_half_width, clip_rows, scale_rows
from tacit.sampling.bits import Bits

_STEPS = 7
_MOST_CLUSTERS, _MOST_STEPS = 10_000, 1_000
_SETTLING = 3  # steps at the end in which no clusters are joined, so that sums of steps are sums of the same
_BLOCK = 2**12  # rows whose distances are worked on at a time
_WORTH = 1.5  # times what joining costs: what a split is to gain, for both to be done
_FARTHEST = 1e100  # of a declared center: squares of distances are doubles
_DOUBT = 3.0  # deviations of its noise up to which a count is taken for none
# the mean of half a normal distribution, in deviations; the variance that is left is 1 - 2/pi
_HALF = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class ClusterMoments:
    """How many rows there are, their mean, and the variance of each column, as far as is known."""

    count: float
    mean: Array
    variance: Array

    @property
    def gain(self) -> float:
        """What a split takes off the sum of squares: 2/pi of the widest column's, if that is normal."""
        return float(self.count * self.variance.max() * _HALF**2)

    def halves(self) -> tuple[ClusterMoments, ClusterMoments]:
        """Two clusters, cut in the middle of the widest column.

        The halves of a normal distribution of deviation s have their means at s sqrt(2/pi) off its middle, and a
        variance of (1 - 2/pi) s^2.
        """
        wide = np.arange(len(self.mean)) == self.variance.argmax()
        step = np.where(wide, _HALF * np.sqrt(self.variance), 0.0)
        left = np.where(wide, 1 - _HALF**2, 1.0) * self.variance
        return ClusterMoments(self.count / 2, self.mean - step, left), ClusterMoments(
            self.count / 2, self.mean + step, left
        )

    def join_with(self, other: ClusterMoments) -> ClusterMoments:
        """One cluster of the rows of both."""
        count = self.count + other.count
        share = other.count / count
        mean = self.mean + share * (other.mean - self.mean)
        within = (1 - share) * self.variance + share * other.variance
        return ClusterMoments(count, mean, within + share * (1 - share) * np.square(other.mean - self.mean))


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, OneShotEstimator):
    """K-means under differential privacy: a few of Lloyd's steps from noisy counts, sums and sums of squares.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: in each of
    `max_iter` steps a row is in the cluster of the center next to it, which is a function of that row and of the
    centers before, so the counts and moments of the clusters are one release of `GroupMoments`; all else is computed
    from what these release. The distances from a row are added up column by column, each sum rounded correctly, so that
    they do not depend on what other rows there are.

    A cluster whose count is not above its noise is dropped, and others are split in its place, as `rebalance` says. All
    steps are made, with equal parts of the budget, and the sums of the last three are pooled. Distances are in the
    rows' own units. There are no `labels_` and no `inertia_`, which would hold rows.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None.
    n_clusters : int
        How many clusters there are, from 1 to 10,000.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in predictions.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    init : array of shape (n_clusters, n_features), optional
        Declared centers of the first step. Where it is None, the first step has one cluster of all rows, which is
        split.
    max_iter : int
        The number of steps, from 1 to 1,000. Each has an equal part of the budget, so more steps have more noise.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centers, within the bounds.
    cluster_counts_ : array
        The noisy number of rows of each cluster.
    n_iter_ : int
        The number of steps that were made.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages = [[float(age)] for age in (20, 21, 22, 70, 71, 72)] * 2000
    >>> settings = {"bounds": (0, 100), "rows": 12_000, "bits": partial(ReplayBits, b"doc")}
    >>> model = KMeans(epsilon=1, n_clusters=2, **settings).fit(ages)
    >>> sorted(model.cluster_centers_.round().ravel().tolist())
    [21.0, 71.0]
    """

    _last = "cluster_centers_"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        n_clusters: int = 8,
        bounds: Bounds | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        init: npt.ArrayLike | None = None,
        max_iter: int = _STEPS,
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.rows = rows
        self.neighbors = neighbors
        self.init = init
        self.max_iter = max_iter
        self.missing = missing
        self.bits = bits

    def plan(self, features: int, rows: int | None = None) -> ReleasePlan[GroupMoments]:
        """Plan a fit: what it would do and cost. No data is needed.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        ReleasePlan
            The noisy counts and moments of all steps, their privacy loss and guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        self._start(facts)
        groups = _up_to("n_clusters", self.n_clusters, _MOST_CLUSTERS)
        times = _up_to("max_iter", self.max_iter, _MOST_STEPS)
        shape = {"groups": groups, "columns": features, "degree": 2, "times": times}
        return ReleasePlan(
            facts, GroupMoments.calibrate(facts.epsilon, facts.delta, **shape, neighbors=facts.neighbors)
        )

    def predict(self, X: npt.ArrayLike) -> Array:
        """Assign each row to the nearest center.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of int
            The place of each row's center in `cluster_centers_`.
        """
        rows = self._again(X)
        return assign_to_centers(rows, self.cluster_centers_)

    def transform(self, X: npt.ArrayLike) -> Array:
        """Compute the distance of each row from each center.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_clusters)
            Euclidean distances, in the rows' own units.
        """
        rows = self._again(X)
        return np.sqrt(squared_distances(rows, self.cluster_centers_))

    def fit_predict(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        public: bool = False,
        **refused: object,
    ) -> Array:
        """Learn from rows, and return the cluster of each.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows: one row is one unit. Numbers, NaN only where `missing` says what it is read as.
        y : object
            Ignored: clusters are found without labels.
        public : bool
            Whether the rows are public: the fit then is not charged to a budget.
        **refused : object
            Not accepted: `sample_weight` would multiply what a row can change, and noise that a `random_state`
            repeats protects nobody.

        Returns
        -------
        array of int
            The cluster of each row, without noise: for whoever holds the rows.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range, or if the rows do not fit what is declared.
        Refused
            Before a value of the data is used, if a budget (`tacit.learn.budget`) does not admit the fit.
        """
        return self.fit(X, y, public=public, **refused).predict(X)

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> float:
        """Compute minus the sum of squared distances of the rows from their centers, without noise.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.
        y : object
            Ignored: clusters have no labels.

        Returns
        -------
        float
            At most 0; for whoever holds the rows, as it is not private.
        """
        return -float(np.square(self.transform(X).min(axis=1)).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _learn(self, plan: ReleasePlan[GroupMoments], features: Array, target: Any, bits: Bits) -> None:
        columns = plan.release
        middle, half = center_and_half_width(plan.facts)
        rows, units = np.asfortranarray(clip_rows(plan.facts, features)), scale_rows(plan.facts, features)
        centers, clusters = self._start(plan.facts), list[ClusterMoments]()
        pooled: list[list[Array]] = []
        for step in range(columns.times):
            pooled.append(columns.release(units, assign_to_centers(rows, centers), bits))
            sums = [np.mean(parts, axis=0) for parts in zip(*pooled, strict=True)]
            deviations = [deviation / math.sqrt(len(pooled)) for deviation in columns.deviations]
            counts, means, variances = estimate_moments(sums, tuple(deviations))
            there = sums[0] > max(1.0, _DOUBT * deviations[0])
            there[sums[0].argmax()] = True
            found = [
                ClusterMoments(float(counts[place]), middle + half * means[place], half**2 * variances[place])
                for place in np.flatnonzero(there)
            ]
            settling = step >= columns.times - _SETTLING
            if not (settling and there.all()):
                pooled = []
            clusters = rebalance(found, columns.groups, merging=not settling)
            centers = np.clip([cluster.mean for cluster in clusters], plan.facts.lower, plan.facts.upper)
        self.n_iter_, self.cluster_counts_ = columns.times, np.array([cluster.count for cluster in clusters])
        self.cluster_centers_ = centers

    def _start(self, facts: DeclaredParameters) -> Array:
        """The centers of the first step: those declared, or the middle of the bounds."""
        if self.init is None:
            return center_and_half_width(facts)[0][None, :]
        try:
            found = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.zeros(0)
        if found.shape != (self.n_clusters, facts.columns) or not np.all(np.abs(found) <= _FARTHEST):
            what = "must be None, or a center for each cluster with a number a column"
            raise ParameterError("init", what, fix="leave it out: the clusters are found by splitting")
        return found


def _up_to(name: str, value: Any, most: int) -> int:
    """A number of something, or an error that says how many there may be."""
    found = to_integer(name, value, least=1)
    if found > most:
        raise ParameterError(name, f"must be at most {most:,}", fix=f"{name}=8, say")
    return found


def assign_to_centers(rows: Array, centers: Array) -> Array:
    """The place of the center next to each row; of two that are equally near, the first."""
    places = np.zeros(len(rows), dtype=np.intp)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        places[block] = squared_distances(rows[block], centers).argmin(axis=1)
    return places


def squared_distances(rows: Array, centers: Array) -> Array:
    """The squares of the distances of each row from each center."""
    return np.stack([_distances_to(rows, center) for center in centers], axis=1)


def _distances_to(rows: Array, center: Array) -> Array:
    """The squares of the distances from a center, added up column by column: for each row alone."""
    found = np.zeros(len(rows))
    for column, value in enumerate(center):
        found += np.square(rows[:, column] - value)
    return found


def rebalance(found: list[ClusterMoments], most: int, merging: bool) -> list[ClusterMoments]:
    """So many clusters: those that are missing come from splitting, and where that is worth it two are joined for it.

    Joining is for steps after which there is time to settle: two centers in one group of rows and one for two is what
    Lloyd's steps cannot leave by themselves.
    """
    clusters = list(found)
    for _ in range(most):
        if len(clusters) == most:
            if not merging or most < 3:
                break
            costs = _costs(clusters)
            one, other = sorted(divmod(int(costs.argmin()), most))
            gains = [cluster.gain for place, cluster in enumerate(clusters) if place not in {one, other}]
            if max(gains) <= _WORTH * costs.min():
                break
            clusters[one] = clusters[one].join_with(clusters.pop(other))
        widest = max(range(len(clusters)), key=lambda place: clusters[place].gain)
        clusters[widest : widest + 1] = clusters[widest].halves()
    return clusters


def _costs(clusters: list[ClusterMoments]) -> Array:
    """What joining two clusters adds to the sum of squares; of a cluster with itself, infinite."""
    counts = np.array([cluster.count for cluster in clusters])
    means = np.array([cluster.mean for cluster in clusters])
    found = squared_distances(means, means) / (1 / counts[:, None] + 1 / counts)
    np.fill_diagonal(found, np.inf)
    return np.asarray(found)
