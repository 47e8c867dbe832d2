"""Unbiased estimates of how common each value is, with confidence intervals.

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

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer
from tacit.errors import ErrorCode, Refused
from tacit.local.confidence_intervals import all_binomial_ends
from tacit.local.frequency_oracle import Counts, FrequencyOracle
from tacit.mechanisms.validation import check_probability

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FrequencyEstimates:
    """Estimated frequencies of all values, each with its confidence interval.

    Estimates are unbiased, so that of a rare value may be negative, unless `is_consistent`. Each interval covers its
    true frequency with at least the confidence; all of them at once where `together`. `len` is the number of values,
    and iteration yields the frequencies.

    Attributes
    ----------
    frequencies : ndarray of float64, shape (domain,)
        The estimated share of users who have each value.
    deviation : ndarray of float64, shape (domain,)
        The estimated standard deviation of each frequency.
    low, high : ndarray of float64, shape (domain,)
        The ends of the confidence intervals, within 0 and 1.
    users : int
        The number of reports that the estimates are made of.
    confidence : Fraction
        The probability with which an interval covers its true frequency.
    together : bool
        Whether all intervals hold at once with this confidence, not only each by itself.
    is_consistent : bool
        Whether the frequencies were projected onto the simplex, and are no longer unbiased.

    Examples
    --------
    >>> from tacit.local import FrequencySummary, KAryRandomizedResponse
    >>> from tacit.sampling.bits import ReplayBits
    >>> protocol = KAryRandomizedResponse(domain=3, epsilon=2)
    >>> reports = protocol.encode([0] * 700 + [2] * 300, ReplayBits(b"example"))
    >>> found = FrequencySummary.empty(protocol).add(reports).estimate(confidence=0.95)
    >>> found.frequencies.round(3).tolist(), len(found)
    ([0.696, 0.002, 0.302], 3)
    >>> bool((found.low <= [0.7, 0, 0.3]).all() and (found.high >= [0.7, 0, 0.3]).all())
    True
    """

    frequencies: Floats
    deviation: Floats
    low: Floats
    high: Floats
    users: int
    confidence: Fraction
    together: bool = False
    is_consistent: bool = False

    def __len__(self) -> int:
        return len(self.frequencies)

    def __iter__(self) -> Iterator[float]:
        return iter(self.frequencies.tolist())

    def largest(self, count: int) -> list[tuple[int, float, float, float]]:
        """Return the most common values by their estimates.

        Parameters
        ----------
        count : int
            How many values to return, at least 0; all of them where there are fewer.

        Returns
        -------
        list of tuple (value, frequency, low, high)
            The most common value first, each with its estimate and the ends of its interval.
        """
        most = to_integer("count", count, least=0)
        order = np.argsort(-self.frequencies, kind="stable")[:most].tolist()
        columns = (self.frequencies, self.low, self.high)
        return [(value, *(float(column[value]) for column in columns)) for value in order]

    def to_consistent(self) -> FrequencyEstimates:
        """Project the frequencies onto the probability simplex: not negative, and with sum one.

        **Theorem.** This is post-processing, so the privacy loss is the same, and the squared error over all values
        does not grow. Proof: the true frequencies lie in the simplex, which is convex, and projecting onto a convex set
        decreases the distance to each of its points. The intervals are about the true frequencies, and do not change.

        Returns
        -------
        FrequencyEstimates
            With the nearest consistent frequencies, which are no longer unbiased; `is_consistent` is True.
        """
        return replace(self, frequencies=project_onto_simplex(self.frequencies), is_consistent=True)


def estimate_frequencies(
    protocol: FrequencyOracle, users: int, support: Counts, confidence: Number = 0.95, together: bool = False
) -> FrequencyEstimates:
    """Estimate the frequencies as (C/n - q)/(p - q), with confidence intervals.

    **Theorem** (intervals). They are Clopper and Pearson's for E C/n, mapped by the same function. If users are drawn
    at random from a large population, C is binomial. If they are fixed, it is a sum of Bernoulli variables with the
    probabilities p and q, for which `binomial_interval` has the proof. So each covers the true frequency among the
    honest users with at least the confidence. With `together`, each has a d-th of the error probability, and by the
    union bound all d hold at once.
    """
    if users < 1:
        raise Refused(ErrorCode.REPORT, "there are no reports to estimate from", fix="add some: summary.add(reports)")
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
    """Return the nearest point whose coordinates are not negative and add up to one.

    It is max(0, x - t), with t such that the sum is one; t is found by sorting (Held, Wolfe, Crowder 1974).
    """
    falling = np.sort(point)[::-1]
    shifts = (np.cumsum(falling) - 1) / np.arange(1, len(point) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.asarray(np.maximum(point - shift, 0.0))
