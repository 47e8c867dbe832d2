"""What the collector publishes: a share for each value, unbiased, with an interval.

>>> from tacit.local import KAryRandomizedResponse
>>> protocol, support = KAryRandomizedResponse(2, 1), np.array([500, 500])
>>> found = estimate_frequencies(protocol, users=1000, support=support, confidence=0.95)
>>> found.frequencies.round(6).tolist(), found.low.round(3).tolist()
([0.5, 0.5], [0.432, 0.432])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_integer
from tacit.errors import ErrorCode, Refused
from tacit.local.confidence_intervals import all_binomial_ends
from tacit.local.frequency_oracle import Counts, FrequencyOracle
from tacit.mechanisms.validation import check_probability

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FrequencyEstimates:
    """The share of people with each value. Unbiased, so a rare value's may be negative, unless `is_consistent`.

    Each interval covers its share with at least the confidence; all of them at once where `together`.
    """

    frequencies: Floats
    deviation: Floats
    low: Floats
    high: Floats
    users: int
    confidence: Fraction
    together: bool = False
    is_consistent: bool = False  # post-processing: no longer unbiased

    def __len__(self) -> int:
        return len(self.frequencies)

    def __iter__(self) -> Iterator[float]:
        return iter(self.frequencies.tolist())

    def largest(self, count: int) -> list[tuple[int, float, float, float]]:
        """The values of the largest shares: value, share, and the ends of its interval."""
        most = to_integer("count", count, least=0)
        order = np.argsort(-self.frequencies, kind="stable")[:most].tolist()
        columns = (self.frequencies, self.low, self.high)
        return [(value, *(float(column[value]) for column in columns)) for value in order]

    def consistent(self) -> FrequencyEstimates:
        """The nearest shares that are not negative and add up to one. Marked: they are no longer unbiased.

        **Theorem.** Post-processing costs nothing, and the squared error over all values does not grow. Proof: the true
        shares lie in the simplex, which is convex, and projecting onto a convex set brings every point of it nearer.
        The intervals are about the true shares, and stay as they are.
        """
        return replace(self, frequencies=project_onto_simplex(self.frequencies), is_consistent=True)


def estimate_frequencies(
    protocol: FrequencyOracle, users: int, support: Counts, confidence: Any = 0.95, together: bool = False
) -> FrequencyEstimates:
    """The shares (C/n - q)/(p - q), with intervals.

    **Intervals**: Clopper and Pearson's for E C/n, carried over. If senders are drawn at random from many people, C is
    binomial. If they are fixed, it is a sum of coins with the probabilities p and q, for which `binomial_interval` has
    the proof. So each covers the true share with at least the stated confidence, of the people who sent honest reports.
    With `together`, each leaves out a d-th part of the rest, and all d hold at once.
    """
    if users < 1:
        raise Refused(ErrorCode.REPORT, "there are no reports to estimate from", fix="collect some first")
    level = check_probability("confidence", confidence)
    miss = float((1 - level) / (len(support) if together else 1))
    low, high = all_binomial_ends(support, users, miss)
    p, q, gap = protocol.p, protocol.q, protocol.gap
    found = (support / users - q) / gap
    inside = np.clip(found, 0, 1)
    spread = (inside * p * (1 - p) + (1 - inside) * q * (1 - q)) / (users * gap * gap)
    low, high = (np.clip((end - q) / gap, 0, 1) for end in (low, high))
    return FrequencyEstimates(found, np.sqrt(spread), low, high, users, level, together)


def project_onto_simplex(point: Floats) -> Floats:
    """The nearest point whose coordinates are not negative and add up to one.

    It is max(0, x - t), with t such that the sum is one; t is found by sorting (Held, Wolfe, Crowder 1974).
    """
    falling = np.sort(point)[::-1]
    shifts = (np.cumsum(falling) - 1) / np.arange(1, len(point) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.asarray(np.maximum(point - shift, 0.0))
