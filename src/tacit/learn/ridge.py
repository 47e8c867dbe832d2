"""Ridge regression."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d, validate_data

from tacit.arithmetic import Number, to_rational
from tacit.errors import ParameterError
from tacit.learn.base import PrivateLinearModel
from tacit.learn.facts import BitSource, Bounds, Missing
from tacit.learn.losses import Array, ConvexLoss, HuberLoss
from tacit.learn.sums import on_grid

_GRID = 2**20  # points of a regressor's row
_TARGETS = 1e100, 1e-100  # the farthest that targets may be, and the least width of their bounds


class Ridge(RegressorMixin, PrivateLinearModel):
    """Linear regression with an L2 penalty, under differential privacy.

    J(w) = sum of squares/2 + alpha |w|^2/2 is minimized on scaled columns and targets, where a residual beyond 2 counts
    linearly unless the method is "newton", which learns from sufficient statistics. **Theorem.** A fit is
    `guarantee_`-DP, where one row is one unit: see `LogisticRegression`.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, in [0, 1); 1/rows^2 where it is None. At 0 only output perturbation is
        possible.
    target_bounds : pair of numbers, optional
        The lower and the upper end of the targets, which are never read from the data. Targets outside are clipped to
        them, and they are scaled to [-1, 1].
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them, and columns are scaled by them to [-1, 1].
    norm : number, optional
        The largest L2 norm of a row once its columns are scaled; longer rows are shortened to it. A smaller one needs
        less noise: one-hot columns of k categories have a norm of sqrt(k). Where `bounds` is None, it is that of the
        rows as they are.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted. The guarantees of "output" and "objective" are for at most 4,096 times as many
        as are declared, or as 16,384 (64 times on machines without extended precision).
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    alpha : number, optional
        Strength of the regularization, positive. Where it is None, the method has a rule of its own, from public facts;
        "newton" then shrinks each direction by what it has released (`learn/moment_shrinkage.py`), unless `scaling` is
        "bounds".
    method : {"auto", "output", "objective", "gradient", "newton"}
        How the weights are made private: by noise on the minimizer, a random linear term in the objective, noisy
        gradients, or noisy second moments with noisy gradients. "auto" chooses by public facts.
    fit_intercept : bool
        Whether a constant column is added. Its weight is regularized like the others.
    intercept_scaling : number
        The constant column's value in units of the norm, from 0 to 1000; a larger one is regularized less and adds
        noise. The default was chosen on synthetic data (benchmarks/rules.md).
    scaling : {"auto", "bounds", "norm", "ranges"}
        How rows are scaled: columns to [-1, 1] by the declared bounds, and nothing learned; or rows to the length that
        most of them have ("norm", `learn/row_norm.py`); or that, and columns by ranges inside of the bounds that hold
        most values ("ranges", `learn/column_ranges.py`). Values beyond a range are clipped to it, and longer rows are
        shortened. "auto" learns each where public facts say that an eighth of epsilon or less is enough for it.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights in the columns' and the target's own units.
    intercept_ : float
        The constant term.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        The method that was used.
    ranges_ : pair of arrays
        The lower and the upper ends that columns were clipped to and scaled by.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, costs = [[float(age)] for age in range(20, 80)] * 50, [10.0 * age for age in range(20, 80)] * 50
    >>> settings = {"target_bounds": (0, 1000), "bounds": (0, 100), "rows": 3000, "bits": partial(ReplayBits, b"doc")}
    >>> model = Ridge(epsilon=1, **settings).fit(ages, costs)
    >>> bool(abs(model.predict([[50.0]])[0] - 500) < 30)
    True
    """

    _strength = "alpha"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        target_bounds: tuple[Number, Number] | None = None,
        bounds: Bounds | None = None,
        norm: Number | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        alpha: float | None = None,
        method: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: Number = 0.5,
        scaling: str = "auto",
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.bounds = bounds
        self.norm = norm
        self.rows = rows
        self.neighbors = neighbors
        self.alpha = alpha
        self.method = method
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.missing = missing
        self.bits = bits

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict the target of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,)
            A number for each row; it may lie outside the declared bounds.
        """
        return self._scores(X)

    def _loss(self) -> ConvexLoss:
        self._target()
        return HuberLoss(1.0)

    def _lambda(self, strength: float) -> float:
        return strength

    def _target(self) -> tuple[float, float]:
        """The middle of the targets and half their width."""
        if self.target_bounds is None:
            what = "are not declared, and are never read from the data"
            raise ParameterError("target_bounds", what, fix="target_bounds=(0, 100), say")
        try:
            low, high = (float(to_rational("target_bounds", end)) for end in self.target_bounds)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not low < high:
            raise ParameterError("target_bounds", "must be two numbers, the lower one first", fix="(0, 100), say")
        if max(-low, high) > _TARGETS[0] or high - low < _TARGETS[1]:
            what = "must be within 1e100 of 0, and 1e-100 apart"
            raise ParameterError("target_bounds", what, fix="predict the target in other units")
        return (low + high) / 2, (high - low) / 2

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite(), y_numeric=True)
        return features, column_or_1d(target, warn=True)

    def _encode(self, target: Array) -> Array:
        middle, half = self._target()
        known = np.asarray(target, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are beyond the ends
            return np.clip(np.nan_to_num((known - middle) / half, nan=0.0), -1.0, 1.0)

    @property
    def _most_points(self) -> int:
        return _GRID

    def _points(self, X: npt.ArrayLike, target: Array) -> tuple[Array, int]:
        """The squared error of what is clipped to the bounds, off the most there can be, on a grid."""
        error = self._encode(self.predict(X)) - self._encode(target)
        return _GRID - on_grid(error**2 / 4, _GRID, _GRID).astype(np.int64), self._most_points

    def _show(self, coefficients: Array, intercept: Array) -> None:
        middle, half = self._target()
        self.coef_ = coefficients * half
        self.intercept_ = float(intercept) * half + middle
