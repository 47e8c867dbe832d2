"""The interval of a probability, from how often it came true.

>>> low, high = clopper_pearson_interval(25, 100)
>>> round(low, 3), round(high, 3)
(0.148, 0.377)
"""

from __future__ import annotations

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError

CONFIDENCE = 0.99


def clopper_pearson_interval(right: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval that holds the probability p of `right` successes in `trials` with at least this confidence.

    **Theorem** (Clopper, Pearson 1934). The low end is the p at which so many successes or more have the probability
    (1 - confidence)/2, the high end the p at which so many or fewer have it; 0 and 1 at the ends. Whatever p is, each
    end is on the wrong side of it with at most that probability, because P[X >= k] grows with p. Both are quantiles of
    beta distributions.
    """
    from scipy.special import betaincinv

    count, total = to_integer("right", right, least=0), to_integer("trials", trials, least=1)
    if count > total or not 0 < confidence < 1:
        raise ParameterError(
            "right", "needs right <= trials and a confidence between 0 and 1", fix="right=9, trials=10"
        )
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, tail))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1 - tail))
    return low, high
