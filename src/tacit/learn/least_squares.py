"""Least squares without a penalty, with that of the sum of sizes, or with both: from sums that are released once."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Self

from tacit.arithmetic import Number, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.base import FitPlan
from tacit.learn.facts import BitSource, Bounds, DeclaredParameters, Missing
from tacit.learn.losses import Array
from tacit.learn.moments import SufficientStatistics
from tacit.learn.penalized_sums import PenalizedSums
from tacit.learn.ridge import Ridge

_MOST_STRENGTH = 1e9


class _SumsRegressor(Ridge):
    """What the regressors of released sums share: Ridge's plan by "newton", with another solve of the same sums."""

    method = "newton"

    def plan(self, features: int, rows: int | None = None) -> FitPlan:
        """Plan a fit: what it would do and cost. No data is needed.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        FitPlan
            The method, its noise, its privacy loss and its guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        if self.facts(features, rows).delta == 0:
            raise ParameterError(
                "delta", "noise on sums of products needs one above 0", fix="delta=1e-9, say, or Ridge"
            )
        found = super().plan(features, rows)
        assert isinstance(found.method, SufficientStatistics)
        sums, constant = found.method, found.facts.columns if found.facts.constant else None
        l1, l2 = self._penalties(found.facts, sums)
        return replace(found, method=PenalizedSums(sums, l1, l2, constant), tuned=False)

    def _penalty(self) -> float | None:
        return None  # Ridge's; `_penalties` has these

    def _penalties(self, facts: DeclaredParameters, sums: SufficientStatistics) -> tuple[float, float]:
        """The weights of |w|_1 and of |w|^2/2 beside half the sum of squares."""
        raise NotImplementedError


class LinearRegression(_SumsRegressor):
    """Linear regression without a penalty, under differential privacy.

    The normal equations are solved for noisy sums of products. Where noise hides a direction of the columns, its
    eigenvalue is raised to the size of the noise: the solve divides by none, and weights are shortened there
    (`learn/penalized_sums.py`). `Ridge` is mostly more accurate where rows are few.

    **Theorem.** A fit is `guarantee_`-DP, where one row is one unit: `SufficientStatistics` releases the sums, and all
    else is computed from these.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
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
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    fit_intercept : bool
        Whether a constant column is added. It has no penalty.
    intercept_scaling : number
        The constant column's value in units of the norm, from 0 to 1000; a larger one adds noise.
    scaling : {"auto", "bounds", "norm", "ranges"}
        How rows are scaled: columns to [-1, 1] by the declared bounds, and nothing learned; or rows to the length that
        most of them have ("norm", `learn/row_norm.py`); or that, and columns by ranges inside of the bounds that hold
        most values ("ranges", `learn/column_ranges.py`). "auto" chooses as for `Ridge`.
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
        "newton": sums of products are released, as by `Ridge` of that method.
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
    >>> import numpy as np
    >>> rows = np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 4), -1).reshape(-1, 4)
    >>> costs = 3 * rows[:, 0] + 1
    >>> public = {"bounds": (-1, 1), "target_bounds": (-5, 5), "rows": 6561, "bits": partial(ReplayBits, b"doc")}
    >>> model = LinearRegression(epsilon=1, **public).fit(rows, costs)
    >>> bool(abs(model.coef_ - [3, 0, 0, 0]).max() < 0.1), abs(model.intercept_ - 1) < 0.1
    (True, True)
    """

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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.missing = missing
        self.bits = bits

    def _penalties(self, facts: DeclaredParameters, sums: SufficientStatistics) -> tuple[float, float]:
        return 0.0, 0.0


class ElasticNet(_SumsRegressor):
    """Linear regression with a penalty of sizes and of squares, under differential privacy.

    What has little to say has a weight of zero. **Theorem.** A fit is `guarantee_`-DP, where one row is one unit:
    `SufficientStatistics` releases noisy sums of products, and the weights are computed from these by coordinate
    descent, so that both penalties cost nothing (`learn/penalized_sums.py`).

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
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
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    alpha : number, optional
        Strength of the penalty, positive, as scikit-learn has it: the sum of squares/(2 rows) plus
        alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2/2) is minimized on scaled columns and targets, with the declared
        number of rows. Where it is None, it is the universal threshold of the noise, sigma sqrt(2 ln(2 columns)):
        with l1_ratio=1 noise alone then mostly leaves no weight.
    l1_ratio : number
        The part of the penalty that is |w|_1, from 0 to 1.
    fit_intercept : bool
        Whether a constant column is added. It has no penalty.
    intercept_scaling : number
        The constant column's value in units of the norm, from 0 to 1000; a larger one adds noise.
    scaling : {"auto", "bounds", "norm", "ranges"}
        How rows are scaled: columns to [-1, 1] by the declared bounds, and nothing learned; or rows to the length that
        most of them have ("norm", `learn/row_norm.py`); or that, and columns by ranges inside of the bounds that hold
        most values ("ranges", `learn/column_ranges.py`). "auto" chooses as for `Ridge`.
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
    alpha_ : float
        The strength of the penalty that was used; where none was declared, that of the rule.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        "newton": sums of products are released, as by `Ridge` of that method.
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
    >>> import numpy as np
    >>> rows = np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 4), -1).reshape(-1, 4)
    >>> costs = 3 * rows[:, 0] + 1
    >>> public = {"bounds": (-1, 1), "target_bounds": (-5, 5), "rows": 6561, "bits": partial(ReplayBits, b"doc")}
    >>> model = ElasticNet(epsilon=1, **public).fit(rows, costs)
    >>> bool(abs(model.coef_ - [3, 0, 0, 0]).max() < 0.1)
    True
    """

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
        l1_ratio: Number = 0.5,
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
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.missing = missing
        self.bits = bits

    def take(self, plan: FitPlan, weights: Array) -> Self:
        """Set the fitted attributes from released weights.

        Parameters
        ----------
        plan : FitPlan
            The plan that the weights were released by.
        weights : array
            The released weights, on scaled columns.

        Returns
        -------
        self
            The fitted estimator.
        """
        assert isinstance(plan.method, PenalizedSums)
        self.alpha_ = self._strength_of(plan.facts, plan.method.sums)
        return super().take(plan, weights)

    def _penalties(self, facts: DeclaredParameters, sums: SufficientStatistics) -> tuple[float, float]:
        share, strength = self._share(), self._strength_of(facts, sums)
        return share * strength * facts.rows, (1 - share) * strength * facts.rows

    def _share(self) -> float:
        return float(to_rational_between("l1_ratio", self.l1_ratio, Fraction(0), Fraction(1)))

    def _strength_of(self, facts: DeclaredParameters, sums: SufficientStatistics) -> float:
        """The declared alpha; or the universal threshold of the noise on X^T y, in its units and for one row."""
        declared = Ridge._penalty(self)
        if declared is not None:
            if declared > _MOST_STRENGTH:
                what = f"must be at most {_MOST_STRENGTH:.0e}; at 1 all weights are zero already"
                raise ParameterError("alpha", what, fix="alpha=1.0")
            return declared
        noise = float(sums.noise.sigma) * facts.norm * sums.bound
        return noise * math.sqrt(2 * math.log(2 * facts.width)) / facts.rows


class Lasso(ElasticNet):
    """Linear regression with a penalty of sizes, under differential privacy: weights that say little are zero.

    It is `ElasticNet` with an `l1_ratio` of one. **Theorem.** A fit is `guarantee_`-DP, where one row is one unit:
    `SufficientStatistics` releases noisy sums of products, and the weights are computed from these by coordinate
    descent, so that the penalty costs nothing (`learn/penalized_sums.py`).

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
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
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    alpha : number, optional
        Strength of the penalty, positive, as scikit-learn has it: the sum of squares/(2 rows) plus alpha |w|_1 is
        minimized on scaled columns and targets, with the declared number of rows. Where it is None, it is the
        universal threshold of the noise, sigma sqrt(2 ln(2 columns)): noise alone then mostly leaves no weight.
    fit_intercept : bool
        Whether a constant column is added. It has no penalty.
    intercept_scaling : number
        The constant column's value in units of the norm, from 0 to 1000; a larger one adds noise.
    scaling : {"auto", "bounds", "norm", "ranges"}
        How rows are scaled: columns to [-1, 1] by the declared bounds, and nothing learned; or rows to the length that
        most of them have ("norm", `learn/row_norm.py`); or that, and columns by ranges inside of the bounds that hold
        most values ("ranges", `learn/column_ranges.py`). "auto" chooses as for `Ridge`.
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
    alpha_ : float
        The strength of the penalty that was used; where none was declared, that of the rule.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        "newton": sums of products are released, as by `Ridge` of that method.
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
    >>> import numpy as np
    >>> rows = np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 4), -1).reshape(-1, 4)
    >>> costs = 3 * rows[:, 0] + 1
    >>> public = {"bounds": (-1, 1), "target_bounds": (-5, 5), "rows": 6561, "bits": partial(ReplayBits, b"doc")}
    >>> model = Lasso(epsilon=1, **public).fit(rows, costs)
    >>> [weight != 0 for weight in model.coef_.tolist()]
    [True, False, False, False]
    """

    l1_ratio = 1

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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.missing = missing
        self.bits = bits
