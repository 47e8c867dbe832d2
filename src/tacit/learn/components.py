"""Principal components, from second moments that are released once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.learn.facts import BitSource, Bounds, DeclaredParameters, Missing
from tacit.learn.losses import Array
from tacit.learn.newton import NoisySecondMoments
from tacit.learn.noise import unit_sigma
from tacit.learn.one import OneShotEstimator, ReleasePlan, center_and_half_width, clip_rows
from tacit.learn.problem import check_positive, clip_row_norms
from tacit.learn.read_rows import read_transformed_rows
from tacit.learn.sums import EXPONENT, ROW_BITS, QuantizedRows
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

_CONSTANT = 0.5  # of a row's length: the constant that brings the sum and the number of rows
_FARTHEST = 1e100  # of a center: squares of it are doubles
_ROOM = 1 + 2.0**-40  # above the rounding of a norm


@dataclass(frozen=True, eq=False)
class ScatterRelease:
    """Releases X^T X for rows x - origin that are shortened to `norm`; with a `constant` c, for rows (x - origin, c).

    The constant's column of the matrix is c times the sum of the rows, and its corner is c^2 times their number: one
    release tells all three.

    **Theorem.** The release loses at most `privacy_loss`. Proof: `NoisySecondMoments`, in units of the whole length
    squared, for Gaussian noise. At a delta of 0 the entries on and above the diagonal have discrete Laplace noise on
    the grid on which they are exact; a row of D numbers and of length at most one moves them in L1 by (|x|_1^2 +
    |x|_2^2)/2 <= (D + 1)/2, and a replacement by twice that.
    """

    noise: NoisySecondMoments | Laplace
    origin: Array
    norm: float
    constant: float
    neighbors: Neighbors

    @classmethod
    def calibrate(
        cls, epsilon: Fraction, delta: Fraction, *, origin: Array, norm: float, constant: float, neighbors: Neighbors
    ) -> Self:
        """The release for (epsilon, delta), with noise calibrated to it."""
        width = len(origin) + (constant > 0)
        noise: NoisySecondMoments | Laplace
        if delta:
            noise = NoisySecondMoments.of(unit_sigma(epsilon, delta, width * (width + 1) // 2), width, neighbors)
        else:
            noise = Laplace.calibrated(epsilon, _l1_sensitivity(width, neighbors))
        return cls(noise, origin, norm, constant, neighbors)

    @property
    def width(self) -> int:
        """The columns of a row, with the constant."""
        return len(self.origin) + (self.constant > 0)

    @property
    def whole(self) -> float:
        """The longest a row can be, with the constant."""
        return math.hypot(self.norm, self.constant) * _ROOM

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a release."""
        return (
            self.noise.loss
            if isinstance(self.noise, NoisySecondMoments)
            else self.noise.loss(_l1_sensitivity(self.width, self.neighbors))
        )

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a number of the diagonal."""
        unit = (
            self.noise.sigma
            if isinstance(self.noise, NoisySecondMoments)
            else self.noise.scale / 2**EXPONENT * Fraction(99, 70)
        )
        return float(unit) * self.whole**2

    def read(self, facts: DeclaredParameters, features: Array) -> Array:
        """The rows as they are learned from: within their bounds, off the origin, and no longer than the norm."""
        return clip_row_norms(np.ascontiguousarray(clip_rows(facts, features) - self.origin), self.norm)

    def release(self, rows: Array, bits: Bits) -> tuple[Array, Array, float]:
        """The second moments of the rows, their sum and their number, with noise; zeros without a constant."""
        size = len(self.origin)
        longer = np.hstack([rows, np.full((len(rows), self.width - size), self.constant)])
        known = QuantizedRows.of(longer, self.whole)
        noise = self.noise
        found = (
            noise.release(known, bits) if isinstance(noise, NoisySecondMoments) else self._laplace(noise, known, bits)
        )
        found = found * self.whole**2
        if self.width == size:
            return found, np.zeros(size), 0.0
        constant = math.trunc(self.constant * (2.0**ROW_BITS / self.whole)) * (
            self.whole / 2.0**ROW_BITS
        )  # as on the grid
        return found[:size, :size], found[size, :size] / constant, float(found[size, size]) / constant**2

    def _laplace(self, noise: Laplace, rows: QuantizedRows, bits: Bits) -> Array:
        upper = np.triu_indices(self.width)
        noisy = noise.release([int(value) for value in rows.gram()[upper]], bits)
        found = np.zeros((self.width, self.width))
        found[upper] = [value / 2**EXPONENT for value in noisy]
        return found + np.triu(found, 1).T


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OneShotEstimator):
    """Principal components under differential privacy, from second moments that are released once.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: `ScatterRelease`;
    all else is computed from what that releases.

    The origin is the middle of the bounds, and `mean_` is released with the second moments. Columns are not scaled.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None.
    n_components : int, optional
        How many components are kept, from 1 to the number of columns; all where it is None.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in predictions.
    norm : number, optional
        The largest L2 distance of a row from the origin, in the rows' own units; rows farther away are moved to it. It
        or `bounds` is declared; a smaller one needs less noise.
    center : number or array, optional
        A declared origin, which then is `mean_`: the components are those around it, with less noise, and variances are
        by the declared number of rows.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions of largest variance, of length one, in decreasing order of variance.
    explained_variance_ : array
        The variance along each component, 0 or more, with noise; small ones err more upward than down.
    explained_variance_ratio_ : array
        Each variance as a share of the variance of all.
    mean_ : array of shape (n_features,)
        The mean of the rows, or the declared center.
    noise_deviation_ : float
        About the standard deviation of the noise on a variance.
    n_components_ : int
        The number of components that are kept.
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
    >>> rows = [[float(x), 2.0 * x] for x in range(-10, 11)] * 200
    >>> model = PCA(epsilon=1, n_components=1, bounds=(-20, 20), rows=4200, bits=partial(ReplayBits, b"doc")).fit(rows)
    >>> model.components_.round(2).tolist()  # (1, 2)/sqrt 5
    [[0.45, 0.89]]
    """

    _last = "components_"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        n_components: int | None = None,
        bounds: Bounds | None = None,
        norm: Number | None = None,
        center: npt.ArrayLike | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_components = n_components
        self.bounds = bounds
        self.norm = norm
        self.center = center
        self.rows = rows
        self.neighbors = neighbors
        self.missing = missing
        self.bits = bits

    def facts(self, features: int, rows: int | None = None) -> DeclaredParameters:
        """Read the declared parameters for so many columns.

        Where only a norm is declared, it bounds every column.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        DeclaredParameters
            The parameters as exact numbers, one bound for each column.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        norm, center = self._norm(), self._center(features)
        if self.bounds is not None or norm is None:
            return self._read_settings(self.bounds, features, rows)
        return self._read_settings((-norm, norm) if center is None else (center - norm, center + norm), features, rows)

    def plan(self, features: int, rows: int | None = None) -> ReleasePlan[ScatterRelease]:
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
            The noisy second moments, their privacy loss and guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        self._count_components(features)
        center, declared = self._center(features), self._norm()
        origin = center_and_half_width(facts)[0] if center is None else center
        reach = np.maximum(np.abs(facts.upper - origin), np.abs(facts.lower - origin))
        norm = math.hypot(*reach) * _ROOM
        norm = norm if declared is None else min(norm, declared)
        if not 1e-100 <= norm <= 1e100:
            raise ParameterError("norm", "of a row must be between 1e-100 and 1e100", fix="check the bounds")
        constant = _CONSTANT * norm if center is None else 0.0
        return ReleasePlan(
            facts,
            ScatterRelease.calibrate(
                facts.epsilon, facts.delta, origin=origin, norm=norm, constant=constant, neighbors=facts.neighbors
            ),
        )

    def transform(self, X: npt.ArrayLike) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to transform; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_components)
            The coordinates of each row along the components.
        """
        rows = self._scatter.read(self._facts, self._again(X)) + self._scatter.origin
        return np.asarray((rows - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Map coordinates along the components back to rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_components)
            Coordinates along the components.

        Returns
        -------
        array of shape (n_rows, n_features)
            The rows that have these coordinates, and no others.
        """
        check_is_fitted(self)
        return np.asarray(read_transformed_rows(X, len(self.components_)) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _learn(self, plan: ReleasePlan[ScatterRelease], features: Array, target: Any, bits: Bits) -> None:
        scatter = plan.release
        second, total, count = scatter.release(scatter.read(plan.facts, features), bits)
        public = scatter.constant == 0 or plan.facts.neighbors is Neighbors.REPLACE
        rows = max(2.0, float(plan.facts.rows) if public else count)
        offset = np.clip(scatter.origin + total / rows, plan.facts.lower, plan.facts.upper) - scatter.origin
        free = rows if scatter.constant == 0 else rows - 1  # what a variance is divided by
        covariance = (second - rows * np.outer(offset, offset)) / free if scatter.constant else second / free
        values, vectors = np.linalg.eigh(covariance)
        best = vectors.T[::-1]
        signs = np.sign(best[np.arange(len(best)), np.abs(best).argmax(axis=1)])
        variances = np.maximum(values[::-1], 0.0)
        kept = self._count_components(len(values))
        self.n_components_ = kept
        self.mean_ = scatter.origin + offset if scatter.constant else scatter.origin
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = variances[:kept] / max(float(variances.sum()), np.finfo(float).tiny)
        self.noise_deviation_ = scatter.deviation / free
        self._scatter = scatter
        self.components_ = (best * signs[:, None])[:kept]

    def _count_components(self, features: int) -> int:
        """How many components are kept."""
        if self.n_components is None:
            return features
        kept = to_integer("n_components", self.n_components, least=1)
        if kept > features:
            what = f"is {kept}, and there are {features} columns"
            raise ParameterError("n_components", what, fix="n_components=1, say, or None for all")
        return kept

    def _norm(self) -> float | None:
        if self.norm is None:
            return None
        found = float(to_rational("norm", self.norm))
        check_positive("norm", found)
        return found

    def _center(self, features: int) -> Array | None:
        """The declared center."""
        if self.center is None:
            return None
        try:
            found = np.broadcast_to(np.asarray(self.center, dtype=np.float64), (features,))
        except (TypeError, ValueError):
            found = np.full(features, np.nan)
        if not np.all(np.abs(found) <= _FARTHEST):
            what = f"does not fit {features} columns, or is beyond {_FARTHEST:g}"
            raise ParameterError("center", what, fix="a number, or one a column")
        return found


def _l1_sensitivity(width: int, neighbors: Neighbors) -> int:
    """What a neighbor moves the entries on and above the diagonal by in L1, in units of 2^-40."""
    return (width + 1) << (EXPONENT - (neighbors is Neighbors.ADD_REMOVE))
