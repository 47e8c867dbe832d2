"""The interval of a probability, from how often it came true.

>>> low, high = clopper_pearson_interval(25, 100)
>>> round(low, 3), round(high, 3)
(0.148, 0.377)
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.arithmetic import to_integer, to_interval, working_precision
from tacit.errors import ParameterError

CONFIDENCE = 0.99


def clopper_pearson_interval(right: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval that holds the probability p of `right` successes in `trials` with at least this confidence.

    **Theorem** (Clopper, Pearson 1934). The low end is the p at which so many successes or more have the probability
    (1 - confidence)/2, the high end the p at which so many or fewer have it; 0 and 1 at the ends. Whatever p is, each
    end is on the wrong side of it with at most that probability, because P[X >= k] grows with p. Both are quantiles of
    beta distributions. They are found in doubles, and moved outward until interval arithmetic proves them.
    """
    from scipy.special import betaincinv

    count, total = to_integer("right", right, least=0), to_integer("trials", trials, least=1)
    if count > total or not 0 < confidence < 1:
        raise ParameterError(
            "right", "needs right <= trials and a confidence between 0 and 1", fix="right=9, trials=10"
        )
    tail = (1 - Fraction(confidence)) / 2
    low = (
        0.0 if count == 0 else _prove_end(float(betaincinv(count, total - count + 1, float(tail))), count, total, tail)
    )
    high = 0.0 if count == total else float(betaincinv(total - count, count + 1, float(tail)))  # 1 less the end
    high = 1 - _prove_end(high, total - count, total, tail) if high else 1.0
    return low, min(1.0, math.nextafter(high, 2.0))


def _prove_end(near: float, count: int, total: int, tail: Fraction) -> float:
    """A p close below `near` at which so many successes or more have at most the probability `tail`; 0 if none is."""
    if not near > 0:
        return 0.0
    with working_precision(192):
        for power in range(52, 2, -2):
            found = near * (1 - 2.0**-power)
            more = to_interval(Fraction(found)).beta_lower(count, total - count + 1, regularized=1)
            if more <= to_interval(tail):
                return found
    return 0.0
