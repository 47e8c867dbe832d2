"""Means of numbers that users randomize themselves: by rounding, by a window, or by a mixture of both.

>>> from tacit.local.uniform_grid import UniformGrid
>>> from tacit.sampling.bits import ReplayBits
>>> hours = UniformGrid(0, 24, steps=96)
>>> protocol = HybridMechanism(hours, epsilon=2)
>>> reports = protocol.encode(np.repeat([6.0, 8.0], 5000), ReplayBits(b"example"))
>>> found = protocol.estimate(protocol.summarize(reports), confidence=0.95)
>>> found.low < 7 < found.high
True
>>> protocols = (StochasticRounding, PiecewiseMechanism, HybridMechanism)
>>> [round(protocol(hours, 1).max_variance(1) / 12**2, 2) for protocol in protocols]
[4.68, 5.23, 4.29]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.arithmetic import to_interval
from tacit.local.confidence_intervals import binomial_interval
from tacit.local.mean import IntegerReports, Mean
from tacit.local.mean_summary import MeanSummary, ReportSegment
from tacit.local.uniform_grid import Indices, rational_exp
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class StochasticRounding(Mean):
    """Rounds a number at random to an end of its range, and reports the end by randomized response (Duchi 2013).

    **Theorem.** Let k be the number's index, T = k/steps and p = e^epsilon/(1 + e^epsilon). The report is 1 with
    probability T p + (1 - T)(1 - p), else 0: epsilon-LDP, and for no smaller epsilon. (report - (1 - p))/(2p - 1) is
    unbiased for T, with the variance P(1) (1 - P(1))/(2p - 1)^2: largest in the middle, where in units of half the
    range it is ((e^epsilon + 1)/(e^epsilon - 1))^2.

    **Proof.** The upper end has the probability T. The ratio of two probabilities of a report is largest at the ends:
    p/(1 - p).

    Parameters
    ----------
    grid : UniformGrid
        The range of the numbers and its steps. The error is in proportion to the width of the range.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import StochasticRounding, UniformGrid
    >>> from tacit.sampling.bits import ReplayBits
    >>> protocol = StochasticRounding(UniformGrid(0, 24, steps=96), epsilon=1)
    >>> reports = protocol.encode([7.0] * 10_000, ReplayBits(b"example"))  # one bit each
    >>> found = protocol.estimate(protocol.summarize(reports), confidence=0.95)
    >>> found.low < 7 < found.high
    True
    """

    kind = "rounding"

    @property
    def segments(self) -> tuple[ReportSegment, ...]:
        """One segment, of the reports 0 and 1."""
        gain = math.tanh(float(self.epsilon) / 2)  # 2p - 1
        return (ReportSegment(2, -self.grid.steps * (1 - gain) / 2 / gain, self.grid.steps / gain),)

    def _encode_indices(self, indices: Indices, bits: Bits) -> IntegerReports:
        top = draw_array_below(self.grid.steps, len(indices), bits) < indices
        flip = bernoulli.draw_array_certified(lambda: 1 / (1 + to_interval(self.epsilon).exp()), len(indices), bits)
        return (top ^ flip).astype(np.int64)

    def _index_variance(self, index: float) -> float:
        gain = math.tanh(float(self.epsilon) / 2)
        high = (1 + (2 * index / self.grid.steps - 1) * gain) / 2
        return high * (1 - high) * (self.grid.steps / gain) ** 2

    def _tabulate(self) -> list[list[Fraction]]:
        truth = rational_exp(self.epsilon) / (1 + rational_exp(self.epsilon))
        shares = [Fraction(k, self.grid.steps) for k in range(self.grid.steps + 1)]
        ones = [part * truth + (1 - part) * (1 - truth) for part in shares]
        return [[1 - one, one] for one in ones]

    def _interval(self, summary: MeanSummary, miss: float) -> tuple[float, float, float]:
        """Return the estimate and the ends by exact binomial tails."""
        ones, (segment,) = summary.totals[0], self.segments
        low, high = binomial_interval(ones, summary.users, miss)
        return segment.to_index(ones / summary.users), segment.to_index(low), segment.to_index(high)


@dataclass(frozen=True, init=False)
class PiecewiseMechanism(Mean):
    """The piecewise mechanism (Wang and others 2019) on a grid: a point of a longer grid, likely near the number.

    A report is one of steps + w points; those in a window of w, which begins at the number's index k, are e^epsilon
    times as likely. The width w is steps e^(-epsilon/2), rounded.

    **Theorem.** It is epsilon-LDP, and for no smaller epsilon. With a = (e^epsilon - 1) w/(w e^epsilon + steps) the
    report's mean is a k + a constant, so report/a less a constant is unbiased for k. In units of half the range, and as
    the grid gets fine, its variance is t^2/(r - 1) + (r + 3)/(3 (r - 1)^2) with r = e^(epsilon/2), t in [-1, 1].

    **Proof.** Every row of the distribution holds w times e^epsilon/Z and steps times 1/Z, with Z = w e^epsilon +
    steps. The sum of the window's points is w k + w (w - 1)/2: linear in k.

    Parameters
    ----------
    grid : UniformGrid
        The range of the numbers and its steps. The error is in proportion to the width of the range.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import PiecewiseMechanism, UniformGrid
    >>> protocol = PiecewiseMechanism(UniformGrid(0, 24, steps=96), epsilon=4)
    >>> protocol.window, protocol.report_limit
    (13, 109)
    >>> round(protocol.variance(users=1, value=12) / 12**2, 3)  # in units of half the range
    0.085
    """

    kind = "piecewise"

    @property
    def window(self) -> int:
        """w, the number of points in the window."""
        return max(1, round(self.grid.steps * math.exp(-float(self.epsilon) / 2)))

    @property
    def segments(self) -> tuple[ReportSegment, ...]:
        """One segment, of the reports 0 to steps + w - 1."""
        size, width, gain = self.grid.steps + self.window, self.window, self._gain()
        # The window's own middle, and that of all points, weighted: the report's mean is gain k + shift.
        shift = gain * (width - 1) / 2 + (1 - gain) * (size - 1) / 2
        return (ReportSegment(size, -shift / gain, 1 / gain),)

    def _gain(self) -> float:
        rest = math.exp(-float(self.epsilon))
        return -math.expm1(-float(self.epsilon)) * self.window / (self.window + self.grid.steps * rest)

    def _encode_indices(self, indices: Indices, bits: Bits) -> IntegerReports:
        """Return a report for each index: a point of its window, or one of the `steps` others."""
        inside = bernoulli.draw_array_certified(self._inside, len(indices), bits)
        near = indices + draw_array_below(self.window, len(indices), bits)
        far = draw_array_below(self.grid.steps, len(indices), bits)
        return np.where(inside, near, far + self.window * (far >= indices))

    def _inside(self) -> arb:
        """Return P[a report is in the window], as an interval at the working precision."""
        return self.window / (self.window + self.grid.steps * (-to_interval(self.epsilon)).exp())

    def _index_variance(self, index: float) -> float:
        """Return the variance of a mixture, with weight a, of the window and of all points, each uniform."""
        width, size, gain = self.window, self.grid.steps + self.window, self._gain()
        apart = index + (width - 1) / 2 - (size - 1) / 2
        within = gain * (width**2 - 1) / 12 + (1 - gain) * (size**2 - 1) / 12
        return (within + gain * (1 - gain) * apart**2) / gain**2

    def _tabulate(self) -> list[list[Fraction]]:
        steps, width, high = self.grid.steps, self.window, rational_exp(self.epsilon)
        total = width * high + steps
        return [
            [(high if k <= point < k + width else 1) / total for point in range(steps + width)]
            for k in range(steps + 1)
        ]


@dataclass(frozen=True, init=False)
class HybridMechanism(Mean):
    """The hybrid mechanism (Wang and others 2019): `PiecewiseMechanism` or `StochasticRounding`, chosen at random.

    The choice does not depend on the number: with probability 1 - e^(-epsilon/2) the piecewise mechanism, and never for
    an epsilon of at most 0.61, where rounding is better.

    **Theorem.** It is epsilon-LDP, as both are and the choice is independent of the number. Unbiased, as both are. The
    variance is the mixture of both, and the probability is the one for which, on a fine grid, it is the same for every
    number.

    **Proof.** With probability h of the piecewise mechanism, the coefficient of t^2 is h/(r - 1) - (1 - h), with
    r = e^(epsilon/2): zero at h = 1 - 1/r.

    Parameters
    ----------
    grid : UniformGrid
        The range of the numbers and its steps. The error is in proportion to the width of the range.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import HybridMechanism, MeanSummary, UniformGrid
    >>> from tacit.sampling.bits import ReplayBits
    >>> protocol = HybridMechanism(UniformGrid(0, 24, steps=96), epsilon=2)
    >>> reports = protocol.encode([6.0] * 5000 + [8.0] * 5000, ReplayBits(b"example"))
    >>> found = MeanSummary.empty(protocol, survey="sleep").add(reports).estimate(confidence=0.95)
    >>> found.low < 7 < found.high
    True
    """

    kind = "hybrid"

    @property
    def piecewise_probability(self) -> float:
        """The probability of the piecewise mechanism: 1 - e^(-epsilon/2), or 0 for an epsilon of at most 0.61."""
        return -math.expm1(-float(self.epsilon) / 2) if self._is_mixture else 0.0

    @property
    def _is_mixture(self) -> bool:
        return self.epsilon > Fraction(61, 100)

    @property
    def parts(self) -> tuple[PiecewiseMechanism, StochasticRounding]:
        """The piecewise mechanism and the stochastic rounding that it chooses from."""
        return PiecewiseMechanism(self.grid, self.epsilon), StochasticRounding(self.grid, self.epsilon)

    @property
    def segments(self) -> tuple[ReportSegment, ...]:
        """Two segments: the points of the piecewise mechanism, then the two ends; or the ends only."""
        window, ends = self.parts
        return (*window.segments, *ends.segments) if self._is_mixture else ends.segments

    def _encode_indices(self, indices: Indices, bits: Bits) -> IntegerReports:
        if not self._is_mixture:
            return self.parts[1]._encode_indices(indices, bits)
        window, ends = (part._encode_indices(indices, bits) for part in self.parts)
        ends += self.segments[0].size
        return np.where(bernoulli.draw_array_certified(self._rounding_probability, len(indices), bits), ends, window)

    def _rounding_probability(self) -> arb:
        """Return the probability of stochastic rounding, as an interval at the working precision."""
        return (-to_interval(self.epsilon) / 2).exp()

    def _index_variance(self, index: float) -> float:
        window, ends = (part._index_variance(index) for part in self.parts)
        return self.piecewise_probability * window + (1 - self.piecewise_probability) * ends

    def _tabulate(self) -> list[list[Fraction]]:
        """Return both tables, weighted; the probability is rounded to a rational, which no ratio depends on."""
        if not self._is_mixture:
            return self.parts[1]._tabulate()
        weight = Fraction(self.piecewise_probability)
        window, ends = (part._tabulate() for part in self.parts)
        rows = zip(window, ends, strict=True)
        return [[weight * p for p in one] + [(1 - weight) * p for p in other] for one, other in rows]
