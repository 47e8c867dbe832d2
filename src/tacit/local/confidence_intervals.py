"""Confidence intervals with proved coverage, for averages of independent reports.

>>> round(mean_half_width(10_000, variance=4.0, least=3.0, bound=4.0, miss=0.05), 4)
0.0451
>>> shares = binomial_interval(300, 1000, 0.05)
>>> [round(end, 3) for end in shares]
[0.272, 0.329]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

_BERRY_ESSEEN = 0.56  # Shevtsova 2010, for variables of different distributions
_ROUNDING = 2.0**-30  # far above the error of the machine's quantiles, far below what is shown


def mean_half_width(users: int, variance: float, least: float, bound: float, miss: float) -> float:
    """Return a w such that the average of independent variables is off its mean by w or more with probability `miss`.

    There are `users` of them. Each variable is within `bound` of its mean and has a variance between `least` and
    `variance`.

    **Theorem.** Both of these are such a w, with n users, and the smaller one is returned.
    (Bernstein.) The sum is off by t with probability at most 2 exp(-t^2/(2 n variance + 2 bound t/3)).
    (Berry and Esseen, Shevtsova's constant.) The distribution of the sum over its deviation is within 0.56 R of the
    normal distribution, R the third moments over the variances to the power 3/2; as a third moment is at most bound
    times the variance, R <= bound/sqrt(n least). So z sqrt(n variance) will do, where the normal distribution leaves
    out miss - 2 (0.56 R).
    """
    from scipy.special import ndtri

    log = math.log(2 / miss)
    linear = bound * log / 3
    sums = [linear + math.sqrt(linear**2 + 2 * log * users * variance)]
    slack = 2 * _BERRY_ESSEEN * bound / math.sqrt(users * least) if least > 0 else math.inf
    if slack < miss:
        sums.append(-float(ndtri((miss - slack) / 2)) * math.sqrt(users * variance))
    return min(sums) / users * (1 + _ROUNDING)


def binomial_interval(seen: int, total: int, miss: float) -> tuple[float, float]:
    """Return an interval of the mean probability of `total` independent Bernoulli variables, of which `seen` are 1.

    **Theorem.** It misses with probability at most `miss`. Clopper and Pearson's ends hold for equal probabilities. Of
    variables with different probabilities the sum has tails, beyond the mean by one or more, below the binomial's of
    the same mean (Hoeffding 1956). The ends are at least one away from `seen`, so that only such tails are left out.
    """
    low, high = all_binomial_ends([seen], total, miss)
    return float(low[0]), float(high[0])


def all_binomial_ends(seen: npt.ArrayLike, total: int, miss: float) -> tuple[Floats, Floats]:
    """Return the `binomial_interval` of each of these counts."""
    import numpy as np
    from scipy.special import betaincinv

    seen, places = np.unique(np.asarray(seen, dtype=np.float64), return_inverse=True)  # a quantile takes long
    some, not_all = np.maximum(seen, 1), np.minimum(seen, total - 1)
    low = np.where(seen > 0, betaincinv(some, total - some + 1, miss / 2), 0.0)
    high = np.where(seen < total, betaincinv(not_all + 1, total - not_all, 1 - miss / 2), 1.0)
    low, high = low * (1 - _ROUNDING), 1 - (1 - high) * (1 - _ROUNDING)
    low, high = np.minimum(low, (seen - 1) / total), np.maximum(high, (seen + 1) / total)
    return np.maximum(low, 0.0)[places], np.minimum(high, 1.0)[places]
