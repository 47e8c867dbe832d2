"""Ranges and quantiles of numbers that users randomize: each reports on one level of a tree over the domain.

>>> from tacit.local.unary_encoding import OptimizedUnaryEncoding
>>> from tacit.sampling.bits import ReplayBits
>>> ages = HierarchicalHistogram(OptimizedUnaryEncoding, size=128, epsilon=2)
>>> ages.tree.sizes
(2, 8, 32, 128)
>>> values = np.repeat(np.arange(20, 80), 500)
>>> found = ages.estimate(ages.collect(ages.encode(values, ReplayBits(b"years"))))
>>> share = found.share(30, 49)  # a third of them
>>> share.low < 1 / 3 < share.high, 45 < found.quantile(0.5).value < 55
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.frequency_oracle import MAX_DOMAIN, FrequencyOracle, Reports, as_array
from tacit.local.multiple_attributes import MultiAttributeProtocol, OracleFactory, check_one_survey
from tacit.local.summary import FrequencySummary
from tacit.local.tree import Floats, Tree
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class ShareEstimate:
    """The estimated share of users in a range, with its confidence interval by the normal approximation.

    Attributes
    ----------
    value : float
        The unbiased estimate.
    deviation : float
        Its standard deviation.
    low, high : float
        The ends of the confidence interval, within 0 and 1.
    """

    value: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True)
class QuantileEstimate:
    """An estimated quantile, with its confidence interval by the normal approximation.

    Attributes
    ----------
    value : int
        The estimated quantile, a value of the domain.
    low, high : int
        The values between which the true quantile lies with the confidence.
    """

    value: int
    low: int
    high: int


@dataclass(frozen=True)
class HierarchicalHistogram:
    """A histogram of ordered values that answers ranges and quantiles, by a tree over the domain.

    Each user draws a level of the tree at random, says which, and reports the node of their value on it at epsilon.

    **Theorem.** It is epsilon-LDP: `MultiAttributeProtocol` by ONE, the levels its questions. A range of values is a
    difference of two prefixes, and a prefix is made of at most fanout - 1 nodes of each level. So with h levels, n
    users and a protocol of variance V/n, the variance is at most 2 (fanout - 1) h^2 V/n before and after least squares,
    where adding up single values would take up to size V/n (Cormode, Kulkarni, Srivastava 2019).

    **Theorem** (poisoning). Let n users have sent n_l reports on level l. A share m of them is malicious: they choose
    level and report, without seeing the others'. For a range with the coefficients c on level l, which add up to C, a
    report counts as x = (the sum of c over the nodes it supports, less q C)/(p - q). Let s_l be the largest difference
    of any x and any c of the level. Given the n_l, the expectation of the range's estimate is off the truth of the
    honest users by at most m n times the largest s_l/n_l; on h even levels that is h m times the largest s_l. Proof:
    the fit is affine in the shares of each level, with coefficients that depend on the n_l only. An honest report
    counts, in expectation, as the c of its node, and the fit is unbiased for honest ones. A malicious report on level l
    puts an x in the place of a mean of such c, divided by n_l. There are m n of them.

    Parameters
    ----------
    make : callable (domain, epsilon) -> FrequencyOracle
        Makes the protocol of a level, usually a class such as `OptimizedUnaryEncoding`.
    size : int
        The number of values, from 2 to 2^24. Values are the integers 0 to size - 1, in their order.
    epsilon : number
        The privacy loss of a user's one report, above 0.
    fanout : int, default 4
        The number of children of a node, at least 2. A larger one gives fewer levels, with more reports on each.

    Raises
    ------
    ParameterError
        Where a parameter is outside its range.

    Examples
    --------
    >>> from tacit.local import HierarchicalHistogram, OptimizedUnaryEncoding
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages = HierarchicalHistogram(OptimizedUnaryEncoding, size=128, epsilon=2)
    >>> values = np.repeat(np.arange(20, 80), 500)
    >>> found = ages.estimate(ages.collect(ages.encode(values, ReplayBits(b"years"))), confidence=0.95)
    >>> share = found.share(30, 49)  # a third of them
    >>> share.low < 1 / 3 < share.high
    True
    >>> median = found.quantile(0.5)
    >>> median.low <= 49 <= median.high
    True
    """

    make: OracleFactory
    size: int
    epsilon: Fraction
    fanout: int = 4

    if TYPE_CHECKING:  # any number is converted below

        def __init__(self, make: OracleFactory, size: int, epsilon: Number, fanout: int = 4) -> None: ...

    def __post_init__(self) -> None:
        size, fanout = to_integer("size", self.size, least=2), to_integer("fanout", self.fanout, least=2)
        if size > MAX_DOMAIN:
            raise ParameterError("size", f"must be at most {MAX_DOMAIN:,}", fix="use a coarser grid")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "fanout", fanout)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    @property
    def tree(self) -> Tree:
        """The tree over the values."""
        return Tree(self.size, self.fanout)

    @property
    def levels(self) -> MultiAttributeProtocol:
        """The protocol that asks each user for one level, drawn at random."""
        return MultiAttributeProtocol(self.make, self.tree.sizes, self.epsilon)

    def loss(self) -> Loss:
        """Return the privacy loss of a user's one report, for the accountant.

        Returns
        -------
        Loss
            Pure differential privacy with this `epsilon`, between any two values of one user.
        """
        return self.levels.loss()

    def encode(self, values: npt.ArrayLike, bits: Bits) -> list[Reports]:
        """Randomize the values of many users.

        Parameters
        ----------
        values : array_like of int
            One value for each user, from 0 to size - 1.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        list of ndarray
            The reports on each level of the tree, of the users who drew it.

        Raises
        ------
        ParameterError
            Where a value is not an integer of the domain. The text does not show it: values are private.
        """
        known = as_array(values)
        if known.ndim != 1 or (known.dtype.kind not in "iu" and len(known)):
            raise ParameterError("values", "needs a list of integers", fix="number the values from 0 on, in order")
        if len(known) and (int(known.min()) < 0 or int(known.max()) >= self.size):
            raise ParameterError("values", f"must be from 0 to {self.size - 1}", fix="clamp them first")
        return self.levels.encode(self.tree.ancestors(known.astype(np.int64)), bits)

    def collect(self, reports: Sequence[npt.ArrayLike], survey: str = "") -> list[FrequencySummary]:
        """Summarize the reports on each level.

        Parameters
        ----------
        reports : sequence of array_like
            The reports on each level, as `encode` returns them.
        survey : str, default ""
            A name, to which the level's number is appended. Summaries of two names do not merge.

        Returns
        -------
        list of FrequencySummary
            One for each level, in order; those of several collectors merge level by level.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that its level's protocol sends.
        """
        return self.levels.collect(reports, survey)

    def estimate(self, summaries: Sequence[FrequencySummary], confidence: Number = 0.95) -> HierarchicalEstimate:
        """Estimate the shares of all values, made consistent over the levels by weighted least squares.

        Parameters
        ----------
        summaries : sequence of FrequencySummary
            One for each level, in order, as `collect` returns them; each with at least one report.
        confidence : number, default 0.95
            The probability, between 0 and 1, with which an interval covers the true share or quantile.

        Returns
        -------
        HierarchicalEstimate
            Unbiased shares, from which ranges and quantiles are computed. This is post-processing: any number of them
            has no further privacy loss.

        Raises
        ------
        Refused
            With the code `report`, where the summaries are not of this histogram, or a level has no reports.
        """
        protocols = self.levels.protocols
        check_one_survey(summaries, protocols, [str(level) for level in range(len(protocols))], "levels of this tree")
        if not all(summary.users for summary in summaries):
            what = "a level of the tree has no reports"
            raise Refused(ErrorCode.REPORT, what, fix="collect more, or choose a larger fanout")
        shares = [summary.estimate().frequencies for summary in summaries]
        variances = [summary.protocol.variance(summary.users) for summary in summaries]
        fitted = self.tree.fit(shares, variances)
        return HierarchicalEstimate(
            self.tree, fitted, tuple(variances), tuple(summaries), check_probability("confidence", confidence)
        )

    def influence(self, malicious: Number, first: int, last: int) -> float:
        """Bound how far malicious users can move the expected share of a range, on evenly filled levels.

        Parameters
        ----------
        malicious : number
            The share of users, from 0 to 1, who choose their level and send any well-formed report.
        first, last : int
            The range of values, both included, from 0 to size - 1.

        Returns
        -------
        float
            The largest change of the expected estimate. `HierarchicalEstimate.influence` has it for actual reports.
        """
        protocols = self.levels.protocols
        coefficients = self.tree.coefficients(_range(self.size, first, last), [each.variance(1) for each in protocols])
        return _poisoning_bound(protocols, coefficients, [1] * len(protocols), malicious)


@dataclass(frozen=True, eq=False)
class HierarchicalEstimate:
    """Consistent estimated shares of all values: they add up to one, and every range is the sum of its values.

    Attributes
    ----------
    tree : Tree
        The tree over the values.
    shares : ndarray of float64, shape (size,)
        The estimated share of users who have each value, unbiased.
    variances : tuple of float
        The variance of a node's share on each level, before least squares.
    summaries : tuple of FrequencySummary
        The reports on each level, summarized.
    confidence : Fraction
        The probability with which an interval covers the true share or quantile.
    """

    tree: Tree
    shares: Floats
    variances: tuple[float, ...]
    summaries: tuple[FrequencySummary, ...]
    confidence: Fraction

    def share(self, first: int, last: int) -> ShareEstimate:
        """Estimate the share of users whose value is in a range.

        Parameters
        ----------
        first, last : int
            The range of values, both included, from 0 to size - 1.

        Returns
        -------
        ShareEstimate
            The share with its standard deviation and interval.
        """
        weights = _range(self.tree.size, first, last)
        value, deviation = float(weights @ self.shares), self._deviation(weights)
        wide = self._normal_quantile() * deviation
        return ShareEstimate(value, deviation, max(0.0, value - wide), min(1.0, value + wide))

    def quantile(self, rank: Number) -> QuantileEstimate:
        """Estimate a quantile: the least value with at least this share of users at or below it.

        **Theorem.** If both ends of the interval of F(v), the share at or below v, hold for each v except with half the
        error probability, the true quantile is from `low` to `high` except with the error probability. Proof: these are
        the first and the last v where F(v) may be at least the rank, by its upper end, and F(v - 1) below it, by its
        lower end. The true quantile q, a fixed value, has F(q - 1) < rank <= F(q). So it is among them unless the upper
        end of F(q) is too low or the lower end of F(q - 1) too high. The estimate is among them too: it has both by the
        estimated F.

        Parameters
        ----------
        rank : number
            The share of users, from 0 to 1: 0.5 for the median.

        Returns
        -------
        QuantileEstimate
            The value with its interval.
        """
        target = float(to_rational_between("rank", rank, Fraction(0), Fraction(1)))
        below, low, high = self._prefixes
        possible = high >= target
        possible[1:] &= low[:-1] < target
        ends = np.flatnonzero(possible)
        value = min(int(np.searchsorted(np.maximum.accumulate(below), target)), self.tree.size - 1)
        return QuantileEstimate(value, int(ends[0]), int(ends[-1]))

    def influence(self, malicious: Number, first: int, last: int) -> float:
        """Bound how far malicious users have moved the expected share of a range, and so the rank of a quantile.

        Parameters
        ----------
        malicious : number
            The share of users, from 0 to 1, who chose their level and sent any well-formed report.
        first, last : int
            The range of values, both included, from 0 to size - 1.

        Returns
        -------
        float
            The largest change of the expected estimate, with these numbers of reports on the levels.
        """
        weights = _range(self.tree.size, first, last)
        users = [summary.users for summary in self.summaries]
        protocols = [summary.protocol for summary in self.summaries]
        return _poisoning_bound(protocols, self.tree.coefficients(weights, self.variances), users, malicious)

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats, Floats]:
        """Return the share at or below each value, and both ends of its interval."""
        below = np.cumsum(self.shares)
        wide = self._normal_quantile() * np.sqrt(self.tree.prefix_variances(self._node_variances(), self.variances))
        low, high = np.clip(below - wide, 0.0, 1.0), np.clip(below + wide, 0.0, 1.0)
        high[-1] = 1.0  # all users are at or below the last value
        return np.clip(below, 0.0, 1.0), low, high

    def _deviation(self, weights: Floats) -> float:
        """Return the standard deviation of a weighted sum of the leaves.

        **Theorem.** With c the coefficient of a node and s its probability to be supported, a level with n users adds
        at most sum of c^2 s/(n (p - q)^2) for k-ary reports, and with s (1 - s) for s for unary ones. Proof: a k-ary
        report adds c of one node, whose variance is at most its mean square; the bits of a unary one are independent
        given the value. The larger one is used for all protocols; the shares in s are estimated.
        """
        levels = zip(self.tree.coefficients(weights, self.variances), self._node_variances(), strict=True)
        return math.sqrt(sum(float(coefficients**2 @ variances) for coefficients, variances in levels))

    def _node_variances(self) -> list[Floats]:
        """Return s/(n (p - q)^2) of each node."""
        return [
            np.clip(each.support / each.users, 1 / each.users, 1.0) / (each.users * each.protocol.gap**2)
            for each in self.summaries
        ]

    def _normal_quantile(self) -> float:
        from scipy.special import ndtri

        return float(ndtri(float((1 + self.confidence) / 2)))


def _range(size: int, first: int, last: int) -> Floats:
    """Return one for each value from `first` to `last`, zero for the others."""
    start, end = to_integer("first", first, least=0), to_integer("last", last)
    if not start <= end < size:
        raise ParameterError("last", f"must be from first to {size - 1}", fix=f"first=0, last={size - 1}")
    weights = np.zeros(size)
    weights[start : end + 1] = 1.0
    return weights


def _poisoning_bound(
    protocols: Sequence[FrequencyOracle], coefficients: Sequence[Floats], users: Sequence[int], malicious: Number
) -> float:
    """Return m n times the largest s_l/n_l, by the theorem. A report supports at most `max_support` nodes."""
    reports = float(to_rational_between("malicious", malicious, Fraction(0), Fraction(1))) * sum(users)
    rates = []
    for protocol, each, count in zip(protocols, coefficients, users, strict=True):
        rising, most = np.sort(each), protocol.max_support
        ends = np.minimum(rising[:most], 0.0).sum(), np.maximum(rising[-most:], 0.0).sum()
        low, high = ((end - protocol.q * each.sum()) / protocol.gap for end in ends)
        rates.append(float(max(high - rising[0], rising[-1] - low)) / count)
    return reports * max(rates)
