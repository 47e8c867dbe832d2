"""E max(0, a sum of many small independent terms): the divergences of shuffled reports, rounded outward.

Each of n users draws one of three: +plus or -minus with the probability `rate`, of which `half` is +plus's, else
-rest.

>>> round(expected_positive_part(1, rate=1.0, plus=3.0, minus=1.0), 6)  # one user: half of the time 3
1.5
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
_MARGIN = 2.0**-30  # relative: far above the error of the incomplete beta function


def expected_positive_part(
    users: int,
    rate: float,
    plus: float,
    minus: float,
    rest: float = 0.0,
    *,
    half: float = 0.5,
    shift: float = 0.0,
    upper: bool = True,
    cut: float = 1e-18,
) -> float:
    """Return E max(0, plus A - minus B - rest (n - A - B) - shift)/n, rounded up, or rounded down.

    **Theorem.** C = A + B is binomial(n, rate), and A given C = c is binomial(c, half). With
    s = minus c + rest (n - c) + shift and k the least A that is worth more than s, the expectation given c is
    h(c) = (plus + minus) c half P(Bin(c - 1, half) >= k - 1) - s P(Bin(c, half) >= k), since a P(A = a) is
    c half P(Bin(c - 1, half) = a - 1). Any other k gives less: a mistake in it does not raise a lower bound.

    h is computed at every m-th c only, m about a 64th of the deviation of C. *Above*, where rest and shift are zero
    (else m is 1): h(c)/c does not grow with c. The average of c exchangeable terms has the average of c + 1 as its mean
    given their sum, and max(0, .) is convex. *Below*: j more in C change the sum by terms of mean -K each, with
    K = (1 - half) minus - half plus - rest, so h(c + j) >= E max(0, sum - j K) >= h(c) - j K P(sum > 0), by Jensen, for
    K >= 0; for a K below 0 it is at least h(c).

    The c that are left out have a probability of at most `cut` by Bernstein's inequality; for an upper bound each
    counts as if all were +plus.
    """
    sign = 1 if upper else -1
    first, weights = _binomial(users, rate, cut)
    stride = max(1, int(math.sqrt(users * rate * (1 - rate)) / 64)) if not upper or rest == shift == 0 else 1
    starts = np.arange(0, len(weights), stride)
    c = (first + starts).astype(np.float64)
    bar = minus * c + rest * (users - c) + shift
    k = np.floor(bar / (plus + minus)) + 1
    above = _binomial_survival(c, half, k)
    gained = (plus + minus) * (c * half) * _binomial_survival(c - 1, half, k - 1) * (1 + sign * _MARGIN)
    found = np.maximum(gained - bar * above * (1 - sign * _MARGIN), 0.0)
    index = np.arange(len(weights)) // stride
    here = first + np.arange(len(weights))
    if upper:
        each = found[index] * np.where(c[index] > 0, here / np.maximum(c[index], 1.0), 1.0)
        if c[0] == 0 and stride > 1:  # nothing is known of the first ones but that each adds at most plus
            each[:stride] = np.maximum(plus, 0.0) * here[:stride]
        return float(weights @ each) / users * (1 + _MARGIN) + max(plus, 0.0) * cut
    fall = max(0.0, (1 - half) * minus - half * plus - rest) * (1 + _MARGIN)
    each = np.maximum(found[index] - (here - c[index]) * fall * above[index], 0.0)
    return float(weights @ each) / users * (1 - _MARGIN) * (1 - cut)


def _binomial(users: int, rate: float, cut: float) -> tuple[int, Doubles]:
    """Return the distribution of C, from the first c on: all but at most `cut` of it, scaled to add up to one.

    Ratios of neighbors are multiplied from the mode on, so no logarithm of a large factorial is taken.
    """
    if rate >= 1:
        return users, np.ones(1)
    log, spread = math.log(2 / cut), users * rate * (1 - rate)
    half = math.ceil(log / 3 + math.sqrt((log / 3) ** 2 + 2 * log * spread)) + 1
    middle = min(users, math.floor((users + 1) * rate))
    first, last = max(0, middle - half), min(users, middle + half)
    c = np.arange(first, last, dtype=np.float64)
    steps = np.log((users - c) / (c + 1)) + math.log(rate) - math.log1p(-rate)
    up, down = np.cumsum(steps[middle - first :]), -np.cumsum(steps[: middle - first][::-1])[::-1]
    weights: Doubles = np.exp(np.concatenate([down, [0.0], up]))
    return first, weights / weights.sum()


def _binomial_survival(trials: Doubles, probability: float, k: Doubles) -> Doubles:
    """Return P(Bin(trials, probability) >= k)."""
    from scipy.special import betainc

    inside = (k >= 1) & (k <= trials)
    found: Doubles = np.where(k < 1, 1.0, 0.0)
    found[inside] = betainc(k[inside], trials[inside] - k[inside] + 1, probability)
    return found
