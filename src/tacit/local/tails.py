"""How far an average of independent reports may be from what it estimates, with a probability that is proved.

>>> round(reach(10_000, variance=4.0, least=3.0, bound=4.0, miss=0.05), 4)
0.0451
>>> shares = binomial_ends(300, 1000, 0.05)
>>> [round(end, 3) for end in shares]
[0.272, 0.329]
"""

from __future__ import annotations

import math

_BERRY_ESSEEN = 0.56  # Shevtsova 2010, for variables of different laws
_ROUNDING = 2.0**-30  # far above the error of the machine's quantiles, far below what is shown


def reach(users: int, variance: float, least: float, bound: float, miss: float) -> float:
    """A w such that the average of `users` independent variables is off its mean by w or more with at most this chance.

    Each variable is within `bound` of its mean and has a variance between `least` and `variance`.

    **Theorem.** Both of these are such a w, with n users, and the smaller one is taken.
    (Bernstein.) The sum is off by t with probability at most 2 exp(-t^2/(2 n variance + 2 bound t/3)).
    (Berry and Esseen, Shevtsova's constant.) The law of the sum over its deviation is within 0.56 R of the normal law,
    R the third moments over the variances to the power 3/2; as a third moment is at most bound times the variance,
    R <= bound/sqrt(n least). So z sqrt(n variance) will do, where the normal law leaves out miss - 2 (0.56 R).
    """
    from scipy.special import ndtri

    log = math.log(2 / miss)
    linear = bound * log / 3
    sums = [linear + math.sqrt(linear**2 + 2 * log * users * variance)]
    slack = 2 * _BERRY_ESSEEN * bound / math.sqrt(users * least) if least > 0 else math.inf
    if slack < miss:
        sums.append(-float(ndtri((miss - slack) / 2)) * math.sqrt(users * variance))
    return min(sums) / users * (1 + _ROUNDING)


def binomial_ends(seen: int, total: int, miss: float) -> tuple[float, float]:
    """Two ends between which the mean chance of `total` independent coins lies, except with probability `miss`.

    **Theorem.** Clopper and Pearson's ends hold for equal coins. Of coins with different chances the number of heads
    has tails, beyond the mean by one or more, below the binomial's of the same mean (Hoeffding 1956). The ends are kept
    at least one head away from what was seen, so that only such tails are left out.
    """
    from scipy.special import betaincinv

    low = float(betaincinv(seen, total - seen + 1, miss / 2)) if seen else 0.0
    high = float(betaincinv(seen + 1, total - seen, 1 - miss / 2)) if seen < total else 1.0
    low, high = low * (1 - _ROUNDING), 1 - (1 - high) * (1 - _ROUNDING)
    return max(0.0, min(low, (seen - 1) / total)), min(1.0, max(high, (seen + 1) / total))
