"""Scaling of columns to a mean of zero and a variance of one, both learned from noisy moments.

Scaling by the least and the largest value would need these, which no noise protects well. By declared bounds it needs
no data and costs nothing: scikit-learn's own scaler, fitted to the two rows of bounds.

>>> from sklearn.preprocessing import MinMaxScaler
>>> MinMaxScaler(clip=True).fit([[0.0], [100.0]]).transform([[50.0], [130.0]]).tolist()
[[0.5], [1.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.arithmetic import Number
from tacit.errors import ParameterError
from tacit.learn.columns import GroupMoments, estimate_means, estimate_moments
from tacit.learn.facts import BitSource, Bounds, Missing
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, ReleasePlan, center_and_half_width, scale_rows
from tacit.learn.read_rows import read_transformed_rows
from tacit.mechanisms.validation import check_flag
from tacit.sampling.bits import Bits


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, OneShotEstimator):
    """Scaling of columns to a mean of zero and a variance of one, both learned under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: all rows are one
    group of `GroupMoments`; all else is computed from what that releases.

    A variance is at least the deviation of its noise, so a column that does not vary stays small. Under "replace" the
    number of rows is public, and has no noise.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in predictions.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    with_mean : bool
        Whether `transform` subtracts the mean of each column.
    with_std : bool
        Whether columns are divided by their deviation. Without it only the means are learned, with less noise.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The noisy mean of each column.
    var_, scale_ : array of shape (n_features,) or None
        The noisy variance of each column and its root; None without `with_std`.
    n_samples_seen_ : float
        The noisy number of rows; exact under "replace".
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
    >>> ages = [[float(age)] for age in range(20, 80)] * 50
    >>> scaler = StandardScaler(epsilon=1, bounds=(0, 100), rows=3000, bits=partial(ReplayBits, b"doc")).fit(ages)
    >>> scaler.mean_.round(1).tolist(), scaler.scale_.round(1).tolist()  # of 20 .. 79: 49.5 and 17.3
    ([49.5], [17.1])
    """

    _last = "scale_"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        bounds: Bounds | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        with_mean: bool = True,
        with_std: bool = True,
        missing: Missing = "error",
        bits: BitSource | None = None,
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
            The noisy moments, their privacy loss and guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        if not check_flag("with_mean", self.with_mean) | check_flag("with_std", self.with_std):
            raise ParameterError("with_std", "there is nothing to learn without it", fix="with_std=True, or with_mean")
        shape = {"groups": 1, "columns": features, "degree": 1 + self.with_std}
        return ReleasePlan(
            facts, GroupMoments.calibrate(facts.epsilon, facts.delta, **shape, neighbors=facts.neighbors)
        )

    def transform(self, X: npt.ArrayLike) -> Array:
        """Scale rows by the learned means and deviations.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to transform; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_features)
            The scaled rows.
        """
        rows = self._again(X)
        return np.asarray((rows - self.mean_ if self.with_mean else rows) / self._divisor())

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Map scaled rows back to the columns' own units.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Scaled rows, as `transform` returns them.

        Returns
        -------
        array of shape (n_rows, n_features)
            The rows in their own units.
        """
        check_is_fitted(self)
        rows = read_transformed_rows(X, self.n_features_in_) * self._divisor()
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
