"""Transformation of columns by their quantiles, which are learned with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.arithmetic import Number, to_integer
from tacit.errors import ParameterError
from tacit.learn.dyadic_counts import LEAVES, DyadicCounts
from tacit.learn.facts import BitSource, Bounds, Missing
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, ReleasePlan, scale_rows
from tacit.learn.read_rows import read_transformed_rows
from tacit.sampling.bits import Bits

_DISTRIBUTIONS = ("uniform", "normal")
_EDGE = 1e-7  # of probability: where normal outputs end, as scikit-learn's do, at 5.2 deviations


class QuantileTransformer(OneToOneFeatureMixin, TransformerMixin, OneShotEstimator):
    """Transformation of columns to a uniform or a normal distribution by quantiles, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: `DyadicCounts`
    releases noisy counts of all columns; all else is computed from these.

    Counts are of 1,024 equal parts of the declared bounds, so columns whose values fill a thousandth of these need
    tighter ones. The least and the largest quantile are the declared bounds: extremes of the data are never learned.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in `transform`.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    n_quantiles : int
        How many quantiles there are, from 2 to 1025; between them the transformation is a line. More of them follow the
        noise as well as the data.
    output_distribution : {"uniform", "normal"}
        The distribution of transformed columns: from 0 to 1, or standard normal, cut off at 5.2 deviations.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    quantiles_ : array of shape (n_quantiles, n_features)
        The noisy quantiles of each column, which never fall.
    references_ : array of shape (n_quantiles,)
        The shares that they are the quantiles of, from 0 to 1.
    n_quantiles_ : int
        How many there are.
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
    >>> incomes = [[float(age**2)] for age in range(100)] * 50
    >>> settings = {"bounds": (0, 10_000), "rows": 5000, "bits": partial(ReplayBits, b"doc")}
    >>> scaler = QuantileTransformer(epsilon=1, **settings).fit(incomes)
    >>> scaler.transform([[0.0], [2500.0], [9801.0]]).round(1).tolist()  # half of them are below 50^2
    [[0.0], [0.5], [1.0]]
    """

    _last = "quantiles_"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        bounds: Bounds | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        n_quantiles: int = 33,
        output_distribution: str = "uniform",
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.rows = rows
        self.neighbors = neighbors
        self.n_quantiles = n_quantiles
        self.output_distribution = output_distribution
        self.missing = missing
        self.bits = bits

    def plan(self, features: int, rows: int | None = None) -> ReleasePlan[DyadicCounts]:
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
            The noisy counts, their privacy loss and guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        self._count()
        if self.output_distribution not in _DISTRIBUTIONS:
            what = f"there is no {self.output_distribution!r:.60}"
            raise ParameterError("output_distribution", what, fix='output_distribution="normal", or "uniform"')
        release = DyadicCounts.calibrate(facts.epsilon, facts.delta, columns=features, neighbors=facts.neighbors)
        return ReleasePlan(facts, release)

    def transform(self, X: npt.ArrayLike) -> Array:
        """Map values to the shares that are below them, or to normal quantiles of these.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to transform; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_features)
            The transformed rows. A larger value never has a smaller one.
        """
        rows = self._again(X)
        found = np.empty(rows.shape)
        for place, quantiles in enumerate(self.quantiles_.T):
            found[:, place] = np.interp(rows[:, place], quantiles, self.references_)
        if self.output_distribution == "uniform":
            return found
        from scipy.special import ndtri

        return np.asarray(ndtri(np.clip(found, _EDGE, 1 - _EDGE)))

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Map transformed rows back to the columns' own units.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows as `transform` returns them.

        Returns
        -------
        array of shape (n_rows, n_features)
            The rows in their own units, within the declared bounds.
        """
        check_is_fitted(self)
        rows = read_transformed_rows(X, self.n_features_in_)
        if self.output_distribution == "normal":
            from scipy.special import ndtr

            rows = ndtr(rows)
            rows = np.where(rows <= _EDGE, 0.0, np.where(rows >= 1 - _EDGE, 1.0, rows))
        found = np.empty(rows.shape)
        for place, quantiles in enumerate(self.quantiles_.T):
            found[:, place] = np.interp(rows[:, place], self.references_, quantiles)
        return found

    def _count(self) -> int:
        count = to_integer("n_quantiles", self.n_quantiles, least=2)
        if count > LEAVES + 1:
            raise ParameterError("n_quantiles", f"must be at most {LEAVES + 1}, got {count}", fix="n_quantiles=33, say")
        return count

    def _learn(self, plan: ReleasePlan[DyadicCounts], features: Array, target: Any, bits: Bits) -> None:
        facts = plan.facts
        shares = plan.release.release(scale_rows(facts, features), bits)
        self.n_quantiles_ = self._count()
        self.references_ = np.linspace(0.0, 1.0, self.n_quantiles_)
        inside = np.linspace(0.0, 1.0, LEAVES + 1)
        part = np.array([invert_shares(row, inside, self.references_) for row in shares])
        self.quantiles_ = np.clip(
            (facts.lower[:, None] * (1 - part) + facts.upper[:, None] * part).T, facts.lower, facts.upper
        )
        self.quantiles_ = np.maximum.accumulate(self.quantiles_, axis=0)  # in spite of rounding


def invert_shares(shares: Array, ends: Array, wanted: Array) -> Array:
    """Where rising shares reach those that are wanted, on lines between the ends; 0 and 1 are at the outer ends.

    Where the shares stay the same for a while, the middle of it is taken.
    """
    first = np.searchsorted(shares, wanted, side="left")
    last = np.searchsorted(shares, wanted, side="right")
    found = np.empty(len(wanted))
    for place, (share, low, high) in enumerate(zip(wanted, first, last, strict=True)):
        if low < high:
            found[place] = (ends[low] + ends[high - 1]) / 2
        else:
            rise = shares[low] - shares[low - 1]
            found[place] = ends[low - 1] + (share - shares[low - 1]) / rise * (ends[low] - ends[low - 1])
    found[0], found[-1] = ends[0], ends[-1]
    return found
