"""The certified bound: from two counts of one event to the least parameter they allow.

>>> from tacit.audit.claim import Claim
>>> round(float(lower_confidence_bound(Claim.epsilon(1), 73106, 26894, 100_000, miss=0.05)), 2)
0.99
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Claim, Reals

_LEAST_WEIGHT = 0.02
_SURE = 1e-12
_FARTHEST = 8.0  # standard deviations: beyond, a double cannot tell a probability from 1


@dataclass(frozen=True)
class ErrorAllocation:
    """How the probability of a wrong bound is spent: shares for each side's own limit, the rest for both together."""

    likelier: float = 0.05
    rarer: float = 0.05

    @property
    def together(self) -> float:
        """What is left."""
        return max(0.0, 1 - self.likelier - self.rarer)


_SPENDINGS = tuple(
    ErrorAllocation(*shares)
    for shares in (
        (0.05, 0.05),
        (0.01, 0.01),
        (0.02, 0.2),
        (0.2, 0.02),
        (0.1, 0.9),
        (0.9, 0.1),
        (0.03, 0.97),
        (0.97, 0.03),
    )
)


def lower_confidence_bound(
    claim: Claim,
    likelier: npt.ArrayLike,
    rarer: npt.ArrayLike,
    trials: float,
    miss: float,
    *,
    weight: npt.ArrayLike | None = None,
    spending: ErrorAllocation = _SPENDINGS[0],
    cells: int = 256,
) -> Reals:
    """The least parameter that an event's counts in `trials` outputs of either side allow, with confidence 1 - miss.

    **Theorem.** Let X be binomial(trials, p) and Y binomial(trials, q), independent. Fixed beforehand are weights with
    w^2 + v^2 = 1 and shares s + r + t = 1. Let A = P[binomial(trials, p) >= X], B = P[binomial(trials, q) <= Y], and
    a, b the normal quantiles of 1 - A and 1 - B. A standard normal is above z(m) with probability m. With
    probability at least 1 - miss, a <= z(s miss), b <= z(r miss) and w a + v b <= z(t miss). So the least parameter
    over all (p, q) for which these hold is a lower bound with that confidence.

    **Proof.** P[A <= u] <= u for every u, and the same for B. So a and b are independent, each stochastically below a
    standard normal, and so is w a + v b, since both weights are positive. The rest is the union bound.

    **Tightness.** With t = 0 and s = r these are Clopper and Pearson's bounds at miss/2 each, whose widths add up. Here
    the squares of the widths add up, where the weights are in proportion to them: as in the best test of large samples.

    The minimum is taken over cells of a. Within one, p is at least what it is at the cell's upper end and q at most
    what it is at the lower end, so the minimum over cells is a bound too. Vectorized over the counts.
    """
    from scipy.special import betainccinv, betaincinv, ndtr, ndtri

    x, y = (np.asarray(count, dtype=np.float64)[..., None] for count in (likelier, rarer))
    w = np.asarray(choose_weight(claim, likelier, rarer, trials) if weight is None else weight)[..., None]
    v = np.sqrt(1 - w**2)
    most_a, most_b, most = (
        -float(ndtri(share * miss)) for share in (spending.likelier, spending.rarer, spending.together)
    )
    start = np.clip((most - v * most_b) / w, -_FARTHEST, most_a)
    upper = start + (most_a - start) * np.linspace(0, 1, cells)
    lower = np.concatenate([np.full_like(start, -np.inf), upper[..., :-1]], axis=-1)
    b = np.minimum((most - w * lower) / v, most_b)
    p = np.where(x > 0, betaincinv(np.maximum(x, 0.5), trials - x + 1, ndtr(-upper)), 0.0)
    q = np.where(y < trials, betainccinv(y + 1, np.maximum(trials - y, 0.5), ndtr(-b)), 1.0)
    # What a double cannot tell from 0 or 1 is not certain; here it would be proof of anything.
    least: Reals = claim.refuted_by(np.minimum(p, 1 - _SURE), np.maximum(q, _SURE)).min(axis=-1)
    return least


def choose_weight(claim: Claim, likelier: npt.ArrayLike, rarer: npt.ArrayLike, trials: float) -> Reals:
    """The weight w in proportion to what one standard deviation of the likelier count costs, for about these counts."""
    p, q = ((np.asarray(count, dtype=np.float64) + 0.5) / (trials + 1) for count in (likelier, rarer))
    middle = claim.refuted_by(p, q)
    first = middle - claim.refuted_by(p - np.minimum(np.sqrt(p * (1 - p) / trials), p / 2), q)
    second = middle - claim.refuted_by(p, q + np.minimum(np.sqrt(q * (1 - q) / trials), (1 - q) / 2))
    length = np.hypot(first, second)
    share = np.where(length > 0, first / np.where(length > 0, length, 1.0), np.sqrt(0.5))
    clipped: Reals = np.clip(share, _LEAST_WEIGHT, np.sqrt(1 - _LEAST_WEIGHT**2))
    return clipped


def choose_allocation(claim: Claim, likelier: float, rarer: float, trials: float, miss: float) -> ErrorAllocation:
    """The spending that gives the largest bound for about these counts."""
    return max(
        _SPENDINGS,
        key=lambda spending: float(
            lower_confidence_bound(claim, likelier, rarer, trials, miss, spending=spending, cells=32)
        ),
    )
