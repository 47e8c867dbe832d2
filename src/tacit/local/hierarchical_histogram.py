"""Ranges and quantiles of numbers that people randomize: each answers for one level of a tree over the domain.

>>> from tacit.local.unary_encoding import OptimizedUnaryEncoding
>>> from tacit.sampling.bits import ReplayBits
>>> ages = HierarchicalHistogram(OptimizedUnaryEncoding, size=128, epsilon=2)
>>> ages.tree.sizes
(2, 8, 32, 128)
>>> crowd = np.repeat(np.arange(20, 80), 500)
>>> found = ages.estimate(ages.collect(ages.encode(crowd, ReplayBits(b"years"))))
>>> check_probability = found.share(30, 49)  # a third of them
>>> check_probability.low < 1 / 3 < check_probability.high, 45 < found.quantile(0.5).value < 55
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arithmetic import to_integer, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.frequency_oracle import MAX_DOMAIN, FrequencyOracle, Reports, as_array
from tacit.local.multiple_attributes import MultiAttributeProtocol, OracleFactory, one_survey
from tacit.local.summary import FrequencySummary
from tacit.local.tree import Floats, Tree
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class ShareEstimate:
    """An estimated share of people; its interval holds the true one with about the confidence, by the normal
    distribution.
    """

    value: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True)
class QuantileEstimate:
    """An estimated quantile, and the values between which the true one lies, as for a `ShareEstimate`."""

    value: int
    low: int
    high: int


@dataclass(frozen=True)
class HierarchicalHistogram:
    """The values 0 to size - 1 in their order. Each person draws a level of a tree, says which, and reports their node
    on it at epsilon.

    **Theorem.** It is epsilon-LDP: `MultiAttributeProtocol` by ONE, the levels its questions. A range of values is a
    difference of two prefixes, and a prefix is made of at most fanout - 1 nodes a level. So with h levels, n people and
    a protocol of variance V/n, the variance is at most 2 (fanout - 1) h^2 V/n before and after least squares, where
    adding up single values would take up to size V/n (Cormode, Kulkarni, Srivastava 2019).

    **Theorem** (poisoning). Let n people have sent n_l reports on level l. A share m of them lie: they choose level and
    report, without seeing the others'. For a range with the coefficients c on level l, which add up to C, a report
    counts as x = (the sum of c over the nodes it supports, less q C)/(p - q). Let s_l be the largest difference of any
    x and any c of the level. Given the n_l, the mean of the range's estimate is off the truth of the honest people by
    at most m n times the largest s_l/n_l; on h even levels that is h m times the largest s_l. Proof: the fit is affine
    in the shares of each level, with coefficients that depend on the n_l only. An honest report counts, in the mean, as
    the c of its node, and the fit is unbiased for honest ones. A lie on level l puts an x in the place of a mean of
    such c, divided by n_l. There are m n lies.
    """

    make: OracleFactory
    size: int
    epsilon: Fraction
    fanout: int = 4

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
        """The questions, a level each."""
        return MultiAttributeProtocol(self.make, self.tree.sizes, self.epsilon)

    def loss(self) -> Loss:
        """What one report costs the one who sends it."""
        return self.levels.loss()

    def encode(self, values: Any, bits: Bits) -> list[Reports]:
        """The reports on each level."""
        known = as_array(values)
        if known.ndim != 1 or (known.dtype.kind not in "iu" and len(known)):
            raise ParameterError("values", "needs a list of integers", fix="number the values from 0 on, in order")
        if len(known) and (int(known.min()) < 0 or int(known.max()) >= self.size):
            raise ParameterError("values", f"must be from 0 to {self.size - 1}", fix="clamp them first")
        return self.levels.encode(self.tree.ancestors(known.astype(np.int64)), bits)

    def collect(self, reports: Sequence[Any], survey: str = "") -> list[FrequencySummary]:
        """A summary for each level."""
        return self.levels.collect(reports, survey)

    def estimate(self, summaries: Sequence[FrequencySummary], confidence: Any = 0.95) -> HierarchicalEstimate:
        """The shares of all values, consistent by least squares: post-processing, unbiased."""
        protocols = self.levels.protocols
        one_survey(summaries, protocols, [str(level) for level in range(len(protocols))], "levels of this tree")
        if not all(summary.users for summary in summaries):
            raise Refused(ErrorCode.REPORT, "a level has no reports", fix="collect more, or choose a larger fanout")
        shares = [summary.estimate().frequencies for summary in summaries]
        variances = [summary.protocol.variance(summary.users) for summary in summaries]
        fitted = self.tree.fit(shares, variances)
        return HierarchicalEstimate(
            self.tree, fitted, tuple(variances), tuple(summaries), check_probability("confidence", confidence)
        )

    def influence(self, lying: Any, first: int, last: int) -> float:
        """The most by which a share of `lying` people move the share of a range, in the mean, on even levels."""
        protocols = self.levels.protocols
        pulls = self.tree.coefficients(_range(self.size, first, last), [each.variance(1) for each in protocols])
        return _poisoning_bound(protocols, pulls, [1] * len(protocols), lying)


@dataclass(frozen=True, eq=False)
class HierarchicalEstimate:
    """Consistent shares of all values: they add up to one, and every range is the sum of its values."""

    tree: Tree
    shares: Floats
    variances: tuple[float, ...]
    summaries: tuple[FrequencySummary, ...]
    confidence: Fraction

    def share(self, first: int, last: int) -> ShareEstimate:
        """The share of people whose value is from `first` to `last`, both included."""
        wanted = _range(self.tree.size, first, last)
        value, deviation = float(wanted @ self.shares), self._deviation(wanted)
        wide = self._normal() * deviation
        return ShareEstimate(value, deviation, max(0.0, value - wide), min(1.0, value + wide))

    def quantile(self, rank: Any) -> QuantileEstimate:
        """The least value with at least this share of people at or below it.

        **Theorem.** If both ends of the interval of F(v), the share at or below v, hold for each v except with half the
        miss, the true quantile is from `low` to `high` except with the miss. Proof: these are the first and the last v
        where F(v) may be at least the rank, by its upper end, and F(v - 1) below it, by its lower end. The true
        quantile q, a fixed value, has F(q - 1) < rank <= F(q). So it is among them unless the upper end of F(q) is too
        low or the lower end of F(q - 1) too high. The estimate is among them too: it has both by the estimated F.
        """
        target = float(to_rational_between("rank", rank, Fraction(0), Fraction(1)))
        below, low, high = self._prefixes
        possible = high >= target
        possible[1:] &= low[:-1] < target
        ends = np.flatnonzero(possible)
        place = min(int(np.searchsorted(np.maximum.accumulate(below), target)), self.tree.size - 1)
        return QuantileEstimate(place, int(ends[0]), int(ends[-1]))

    def influence(self, lying: Any, first: int, last: int) -> float:
        """The most by which a share of `lying` people moved this range's share, in the mean; a quantile's rank too."""
        wanted = _range(self.tree.size, first, last)
        users = [summary.users for summary in self.summaries]
        protocols = [summary.protocol for summary in self.summaries]
        return _poisoning_bound(protocols, self.tree.coefficients(wanted, self.variances), users, lying)

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats, Floats]:
        """The share at or below each value, and both ends of its interval."""
        below = np.cumsum(self.shares)
        wide = self._normal() * np.sqrt(self.tree.prefix_variances(self._costs(), self.variances))
        low, high = np.clip(below - wide, 0.0, 1.0), np.clip(below + wide, 0.0, 1.0)
        high[-1] = 1.0  # all people are at or below the last value
        return np.clip(below, 0.0, 1.0), low, high

    def _deviation(self, wanted: Floats) -> float:
        """That of a weighted sum of the leaves.

        **Theorem.** With c the coefficient of a node and s its probability to be supported, a level with n people adds
        at most sum of c^2 s/(n (p - q)^2) for k-ary reports, and with s (1 - s) for s for unary ones. Proof: a k-ary
        report adds c of one node, whose variance is at most its mean square; the bits of a unary one are independent
        given the value. The larger is taken for all; the shares in s are estimated.
        """
        pulls = self.tree.coefficients(wanted, self.variances)
        return math.sqrt(sum(float(pull**2 @ cost) for pull, cost in zip(pulls, self._costs(), strict=True)))

    def _costs(self) -> list[Floats]:
        """s/(n (p - q)^2) of each node."""
        return [
            np.clip(each.support / each.users, 1 / each.users, 1.0) / (each.users * each.protocol.gap**2)
            for each in self.summaries
        ]

    def _normal(self) -> float:
        from scipy.special import ndtri

        return float(ndtri(float((1 + self.confidence) / 2)))


def _range(size: int, first: int, last: int) -> Floats:
    """One for each value from `first` to `last`, zero for the others."""
    start, end = to_integer("first", first, least=0), to_integer("last", last)
    if not start <= end < size:
        raise ParameterError("last", f"must be from first to {size - 1}", fix="first=0, last=9, say")
    wanted = np.zeros(size)
    wanted[start : end + 1] = 1.0
    return wanted


def _poisoning_bound(
    protocols: Sequence[FrequencyOracle], pulls: Sequence[Floats], users: Sequence[int], lying: Any
) -> float:
    """m n times the largest s_l/n_l, by `HierarchicalHistogram`. A report supports at most `reach` nodes."""
    lies = float(to_rational_between("lying", lying, Fraction(0), Fraction(1))) * sum(users)
    rates = []
    for protocol, pull, count in zip(protocols, pulls, users, strict=True):
        rising = np.sort(pull)
        least, most = np.minimum(rising[: protocol.reach], 0.0).sum(), np.maximum(rising[-protocol.reach :], 0.0).sum()
        low, high = ((end - protocol.q * pull.sum()) / protocol.gap for end in (least, most))
        rates.append(float(max(high - rising[0], rising[-1] - low)) / count)
    return lies * max(rates)
