"""Ranges and quantiles of numbers that people randomize: each answers for one level of a tree over the domain.

>>> from tacit.local.unary import OptimizedUnary
>>> from tacit.sampling.bits import ReplayBits
>>> ages = Ranges(OptimizedUnary, size=128, epsilon=2)
>>> ages.tree.sizes
(2, 8, 32, 128)
>>> crowd = np.repeat(np.arange(20, 80), 500)
>>> found = ages.estimate(ages.collect(ages.encode(crowd, ReplayBits(b"ages"))))
>>> share = found.share(30, 49)  # a third of them
>>> share.low < 1 / 3 < share.high, 45 < found.quantile(0.5).value < 55
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arithmetic import integer, within
from tacit.errors import Code, ParameterError, Refused
from tacit.local.attributes import Attributes, Make
from tacit.local.frequency import MOST, Reports
from tacit.local.summary import Summary
from tacit.local.tree import Floats, Tree
from tacit.mechanisms.given import price, share
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class Part:
    """An estimated share of people; its interval holds the true one with about the confidence, by the normal law."""

    value: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """An estimated quantile, and the values between which the true one lies with about the confidence."""

    value: int
    low: int
    high: int


@dataclass(frozen=True)
class Ranges:
    """The values 0 to size - 1 in their order. Each person draws a level of a tree, says which, and reports their node
    on it at epsilon.

    **Theorem.** It is epsilon-LDP: `Attributes` by ONE, the levels its questions. A range of values is a difference of
    two prefixes, and a prefix is made of at most fanout - 1 nodes a level. So with h levels, n people and a protocol of
    variance V/n, the variance is at most 2 (fanout - 1) h^2 V/n before and after least squares, where adding up single
    values would take up to size V/n (Cormode, Kulkarni, Srivastava 2019).
    """

    make: Make
    size: int
    epsilon: Fraction
    fanout: int = 4

    def __post_init__(self) -> None:
        size, fanout = integer("size", self.size, least=2), integer("fanout", self.fanout, least=2)
        if size > MOST:
            raise ParameterError("size", f"must be at most {MOST:,}", fix="use a coarser grid")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "fanout", fanout)
        object.__setattr__(self, "epsilon", price(self.epsilon))

    @property
    def tree(self) -> Tree:
        """The tree over the values."""
        return Tree(self.size, self.fanout)

    @property
    def levels(self) -> Attributes:
        """The questions, a level each."""
        return Attributes(self.make, self.tree.sizes, self.epsilon)

    def loss(self) -> Loss:
        """What one report costs the one who sends it."""
        return self.levels.loss()

    def encode(self, values: Any, bits: Bits) -> list[Reports]:
        """The reports on each level."""
        known = np.asarray(values)
        if known.ndim != 1 or known.dtype.kind not in "iu":
            raise ParameterError("values", "needs a list of integers", fix="number the values from 0 on, in order")
        if len(known) and (int(known.min()) < 0 or int(known.max()) >= self.size):
            raise ParameterError("values", f"must be from 0 to {self.size - 1}", fix="clamp them first")
        return self.levels.encode(self.tree.ancestors(known.astype(np.int64)), bits)

    def collect(self, reports: Sequence[Any], survey: str = "") -> list[Summary]:
        """A summary for each level."""
        return self.levels.collect(reports, survey)

    def estimate(self, summaries: Sequence[Summary], confidence: Any = 0.95) -> Fitted:
        """The shares of all values, consistent by least squares: post-processing, unbiased."""
        if [summary.protocol for summary in summaries] != list(self.levels.protocols):
            raise Refused(Code.REPORT, "these are not the levels of this tree", fix="give what collect made")
        if not all(summary.users for summary in summaries):
            raise Refused(Code.REPORT, "a level has no reports", fix="collect more, or choose a larger fanout")
        shares = [summary.estimate().frequencies for summary in summaries]
        variances = [summary.protocol.variance(summary.users) for summary in summaries]
        fitted = self.tree.fit(shares, variances)
        return Fitted(self.tree, fitted, tuple(variances), tuple(summaries), share("confidence", confidence))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Consistent shares of all values: they add up to one, and every range is the sum of its values."""

    tree: Tree
    shares: Floats
    variances: tuple[float, ...]
    summaries: tuple[Summary, ...]
    confidence: Fraction

    def share(self, first: int, last: int) -> Part:
        """The share of people whose value is from `first` to `last`, both included."""
        start, end = integer("first", first, least=0), integer("last", last)
        if not start <= end < self.tree.size:
            raise ParameterError("last", f"must be from first to {self.tree.size - 1}", fix="share(0, 9), say")
        wanted = np.zeros(self.tree.size)
        wanted[start : end + 1] = 1.0
        value, deviation = float(wanted @ self.shares), self._deviation(wanted)
        wide = self._normal() * deviation
        return Part(value, deviation, max(0.0, value - wide), min(1.0, value + wide))

    def quantile(self, rank: Any) -> Point:
        """The least value with at least this share of people at or below it."""
        target = float(within("rank", rank, Fraction(0), Fraction(1)))
        below = np.clip(np.maximum.accumulate(np.cumsum(self.shares)), 0.0, 1.0)
        place = min(int(np.searchsorted(below, target)), self.tree.size - 1)
        wide = self._normal() * self._deviation((np.arange(self.tree.size) <= place).astype(np.float64))
        ends = [min(int(np.searchsorted(below, target + move)), self.tree.size - 1) for move in (-wide, wide)]
        return Point(place, ends[0], ends[1])

    def _deviation(self, wanted: Floats) -> float:
        """That of a weighted sum of the leaves.

        **Theorem.** With c the coefficient of a node and s its chance to be supported, a level with n people adds at
        most sum of c^2 s/(n (p - q)^2) for k-ary reports, and with s (1 - s) for s for unary ones. Proof: a k-ary
        report adds c of one node, whose variance is at most its mean square; the bits of a unary one are independent
        given the value. The larger is taken for all; the shares in s are estimated.
        """
        total = 0.0
        for summary, pull in zip(self.summaries, self.tree.coefficients(wanted, self.variances), strict=True):
            chance = np.clip(summary.support / summary.users, 1 / summary.users, 1.0)
            total += float(pull**2 @ chance) / (summary.users * summary.protocol.gap**2)
        return math.sqrt(total)

    def _normal(self) -> float:
        from scipy.special import ndtri

        return float(ndtri(float((1 + self.confidence) / 2)))
