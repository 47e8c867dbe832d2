"""Scaling of columns to a mean of zero and a variance of one, both learned from noisy moments.

>>> from functools import partial
>>> from tacit.sampling.bits import ReplayBits
>>> ages = [[float(age)] for age in range(20, 80)] * 50
>>> scaler = StandardScaler(epsilon=1, bounds=(0, 100), rows=3000, bits=partial(ReplayBits, b"doc")).fit(ages)
>>> scaler.mean_.round(1).tolist(), scaler.scale_.round(1).tolist()  # of 20 .. 79: 49.5 and 17.3
([49.5], [17.1])

Scaling by the least and the largest value would need these, which no noise protects well. By declared bounds it needs
no data and costs nothing: scikit-learn's own scaler, fitted to the two rows of bounds.

>>> from sklearn.preprocessing import MinMaxScaler
>>> MinMaxScaler(clip=True).fit([[0.0], [100.0]]).transform([[50.0], [130.0]]).tolist()
[[0.5], [1.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from tacit.errors import ParameterError
from tacit.learn.columns import GroupMoments, estimate_means, estimate_moments
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, ReleasePlan, center_and_half_width, scale_rows
from tacit.mechanisms.validation import check_flag
from tacit.sampling.bits import Bits


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, OneShotEstimator):
    """Takes `mean_` off each column and divides by `scale_`. See `OneShotEstimator` for the parameters not said here.

    **Theorem.** A fit loses at most `loss_`. Proof: all rows are one group of `GroupMoments`; all else is computed from
    what that releases.

    Without `with_std` only the means are learned, with less noise. A variance is at least the deviation of its noise,
    so a column that does not vary stays small. Under "replace" the number of rows is public, and has no noise.
    """

    _last = "scale_"

    def __init__(
        self,
        epsilon: Any = None,
        delta: Any = None,
        *,
        bounds: Any = None,
        rows: Any = None,
        neighbors: Any = "add-remove",
        with_mean: bool = True,
        with_std: bool = True,
        missing: Any = "error",
        bits: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.rows = rows
        self.neighbors = neighbors
        self.with_mean = with_mean
        self.with_std = with_std
        self.missing = missing
        self.bits = bits

    def plan(self, features: int, rows: int | None = None) -> ReleasePlan[GroupMoments]:
        """What a fit on so many columns would do and cost. No data is needed."""
        facts = self.facts(features, rows)
        if not check_flag("with_mean", self.with_mean) | check_flag("with_std", self.with_std):
            raise ParameterError("with_std", "there is nothing to learn without it", fix="with_std=True, or with_mean")
        shape = {"groups": 1, "columns": features, "degree": 1 + self.with_std}
        return ReleasePlan(
            facts, GroupMoments.calibrate(facts.epsilon, facts.delta, **shape, neighbors=facts.neighbors)
        )

    def transform(self, X: Any) -> Array:  # noqa: N803 - scikit-learn's name
        """The rows, read as in the fit, scaled."""
        rows = self._again(X)
        return np.asarray((rows - self.mean_ if self.with_mean else rows) / self._divisor())

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """The rows that are scaled to these."""
        check_is_fitted(self)
        rows = check_array(X, dtype=np.float64) * self._divisor()
        return np.asarray(rows + self.mean_ if self.with_mean else rows)

    def _divisor(self) -> Any:
        return 1.0 if self.scale_ is None else self.scale_

    def _learn(self, plan: ReleasePlan[GroupMoments], features: Array, target: Any, bits: Bits) -> None:
        columns = plan.release
        released = columns.release(scale_rows(plan.facts, features), np.zeros(len(features), dtype=np.intp), bits)
        middle, half = center_and_half_width(plan.facts)
        if self.with_std:
            counts, first, variances = estimate_moments(released, columns.deviations)
            self.var_: Array | None = half**2 * variances[0]
        else:
            counts, first = estimate_means(released, columns.deviations)
            self.var_ = None
        self.n_samples_seen_ = float(counts[0])
        self.mean_ = middle + half * first[0]
        self.scale_ = None if self.var_ is None else np.sqrt(self.var_)
