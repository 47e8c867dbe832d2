"""Means of numbers that people randomize themselves: by rounding, by a window, or by a mixture of both.

>>> from tacit.local.uniform_grid import UniformGrid
>>> from tacit.sampling.bits import ReplayBits
>>> hours = UniformGrid(0, 24, steps=96)
>>> asked = HybridMechanism(hours, epsilon=2)
>>> reports = asked.encode(np.repeat([6.0, 8.0], 5000), ReplayBits(b"example"))
>>> found = asked.estimate(asked.tally(reports), confidence=0.95)
>>> found.low < 7 < found.high
True
>>> protocols = (StochasticRounding, PiecewiseMechanism, HybridMechanism)
>>> [round(protocol(hours, 1).worst(1) / 12**2, 2) for protocol in protocols]
[4.68, 5.23, 4.29]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.arithmetic import to_integer, to_interval, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.confidence_intervals import binomial_interval, mean_half_width
from tacit.local.frequency_oracle import check_epsilon, check_integer_reports
from tacit.local.mean_summary import MeanEstimate, MeanSummary, ReportSegment
from tacit.local.uniform_grid import Places, UniformGrid, rational_exp
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

if TYPE_CHECKING:
    from flint import arb

Reports = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mean(ABC):
    """What the protocols share. A report of kind i says `intercept_i + slope_i report` of its place, on average truly.

    **Theorem.** The average of what reports say is unbiased for the mean place. If a share m of the people send what
    they like, it moves by at most m times `influence`.
    """

    grid: UniformGrid
    epsilon: Fraction
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.grid, UniformGrid):
            raise ParameterError("grid", f"needs a grid, got {type(self.grid).__name__}", fix="Grid(0, 24, steps=96)")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    @property
    @abstractmethod
    def kinds(self) -> tuple[ReportSegment, ...]:
        """The kinds of reports, in the order of their numbers."""

    @abstractmethod
    def place_variance(self, place: float) -> float:
        """The variance, in squared steps, of what one report says of this place."""

    @abstractmethod
    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place."""

    # The client.

    def encode(self, values: Any, bits: Bits) -> Reports:
        """One report for each number, exactly of the distribution that the class states."""
        return self.encode_places(self.grid.places(values), bits)

    def encode_one(self, value: float, bits: Bits) -> int:
        """One person's report."""
        return int(self.encode([value], bits)[0])

    # What holds of it.

    def loss(self) -> PureDp:
        """What one report costs the one who sends it."""
        return PureDp(self.epsilon)

    def variance(self, users: int, value: float) -> float:
        """The variance of the estimate from so many people, all with this value."""
        inside = to_rational_between("value", value, self.grid.lower, self.grid.upper)
        place = float((inside - self.grid.lower) / (self.grid.upper - self.grid.lower) * self.grid.steps)
        return self.place_variance(place) * self.grid.width**2 / to_integer("users", users, least=1)

    def worst(self, users: int) -> float:
        """The largest variance of the estimate, whatever the values are. It is quadratic in the place: see the ends."""
        largest = max(map(self.place_variance, self._turns()))
        return largest * self.grid.width**2 / to_integer("users", users, least=1)

    @property
    def influence(self) -> float:
        """How far apart two reports can be in what they say, in the unit of the values."""
        said = [kind.says(report) for kind in self.kinds for report in (0, kind.size - 1)]
        return (max(said) - min(said)) * self.grid.width

    # The collector.

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this."""
        return sum(kind.size for kind in self.kinds)

    def shaped(self, reports: Any) -> Reports:
        """The reports as an array of integers; anything else is refused."""
        return check_integer_reports(self.kind, reports)

    def well_formed(self, reports: Any) -> npt.NDArray[np.bool_]:
        """Which of the reports are ones that this protocol sends; refused if they are no integers."""
        whole = self.shaped(reports)
        return np.asarray((whole >= 0) & (whole < self.report_limit))

    def tally(self, reports: Any, survey: str = "") -> MeanSummary:
        """All of the reports that matters, of constant size; a report that nobody can have sent is refused."""
        return MeanSummary.empty(self, survey).add(reports)

    def estimate(self, tally: MeanSummary, confidence: Any = 0.95) -> MeanEstimate:
        """The mean with its interval, which holds it with at least this confidence for any fixed values.

        The values are those on the grid. `reach` has the proof.
        """
        miss = float(1 - check_probability("confidence", confidence))
        self.must_have(tally)
        parts = zip(self.kinds, tally.counts, tally.totals, strict=True)
        center = sum(kind.intercept * count + kind.slope * total for kind, count, total in parts) / tally.users
        spread = [self.place_variance(place) for place in self._turns()]
        said = [kind.says(report) for kind in self.kinds for report in (0, kind.size - 1)]
        bound = max(*said, self.grid.steps - min(said))
        wide = mean_half_width(tally.users, max(spread), min(spread), bound, miss)
        return self.average(center, center - wide, center + wide, tally.users)

    def must_have(self, tally: MeanSummary) -> None:
        """Refuses what is no tally of this protocol, and one of nobody."""
        if not isinstance(tally, MeanSummary):
            raise ParameterError("tally", f"needs a tally, got {type(tally).__name__}", fix="tally the reports first")
        if tally.protocol != self:
            raise Refused(ErrorCode.REPORT, "these reports are of another survey", fix="collect each survey by itself")
        if not tally.users:
            raise ParameterError("tally", "nobody reported", fix="collect at least one report")

    def average(self, center: float, low: float, high: float, users: int) -> MeanEstimate:
        """In the unit of the values, with ends inside the range."""
        ends = [min(max(end, 0.0), float(self.grid.steps)) for end in (low, high)]
        deviation = math.sqrt(self.place_variance(min(max(center, 0.0), float(self.grid.steps))) / users)
        value = self.grid.value
        return MeanEstimate(value(center), deviation * self.grid.width, value(ends[0]), value(ends[1]), users)

    def _turns(self) -> tuple[float, float, float]:
        return 0.0, self.grid.steps / 2, float(self.grid.steps)

    @property
    def name(self) -> str:
        """The protocol and all its parameters, as a tally's bytes name them."""
        grid = self.grid
        return f"{self.kind} {self.epsilon} {grid.lower} {grid.upper} {grid.steps}"


@dataclass(frozen=True)
class StochasticRounding(Mean):
    """Rounds the place k at random to an end of the range, and tells that end by randomized response (Duchi 2013).

    **Theorem.** With T = k/steps and p = e^epsilon/(1 + e^epsilon), the report is 1 with probability
    T p + (1 - T)(1 - p), else 0: epsilon-DP and no less. (report - (1 - p))/(2p - 1) is unbiased for T, with the
    variance P(1) (1 - P(1))/(2p - 1)^2: largest in the middle, where in units of half the range it is
    ((e^epsilon + 1)/(e^epsilon - 1))^2.

    **Proof.** The upper end has the probability T. The ratio of two probabilities of a report is largest at the ends:
    p/(1 - p).
    """

    kind = "rounding"

    @property
    def kinds(self) -> tuple[ReportSegment, ...]:
        """One kind, with the reports 0 and 1."""
        gain = math.tanh(float(self.epsilon) / 2)  # 2p - 1
        return (ReportSegment(2, -self.grid.steps * (1 - gain) / 2 / gain, self.grid.steps / gain),)

    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place, exactly of the distribution above."""
        top = draw_array_below(self.grid.steps, len(places), bits) < places
        lie = bernoulli.draw_array_certified(lambda: 1 / (1 + to_interval(self.epsilon).exp()), len(places), bits)
        return (top ^ lie).astype(np.int64)

    def place_variance(self, place: float) -> float:
        """In squared steps."""
        gain = math.tanh(float(self.epsilon) / 2)
        high = (1 + (2 * place / self.grid.steps - 1) * gain) / 2
        return high * (1 - high) * (self.grid.steps / gain) ** 2

    def matrix(self) -> TransitionMatrix:
        """P[report | place], exactly, with e^epsilon rounded down to a rational by at most 2^-64."""
        truth = rational_exp(self.epsilon) / (1 + rational_exp(self.epsilon))
        shares = [Fraction(k, self.grid.steps) for k in range(self.grid.steps + 1)]
        ones = [part * truth + (1 - part) * (1 - truth) for part in shares]
        return TransitionMatrix([[1 - one, one] for one in ones])

    def estimate(self, tally: MeanSummary, confidence: Any = 0.95) -> MeanEstimate:
        """The mean with its interval, by exact binomial tails: at least this confidence for any fixed values."""
        miss = float(1 - check_probability("confidence", confidence))
        self.must_have(tally)
        ones = tally.totals[0]
        (kind,) = self.kinds
        ends = [kind.says(end) for end in binomial_interval(ones, tally.users, miss)]
        return self.average(kind.says(ones / tally.users), ends[0], ends[1], tally.users)


@dataclass(frozen=True)
class PiecewiseMechanism(Mean):
    """Sends one of steps + w places; those in a window of w, which begins at k, are e^epsilon times as likely.

    This is the piecewise mechanism (Wang and others 2019) on a grid. The width w is steps e^(-epsilon/2), rounded.

    **Theorem.** Epsilon-DP and no less. With a = (e^epsilon - 1) w/(w e^epsilon + steps) the report's mean is
    a k + a constant, so report/a less a constant is unbiased for k. In units of half the range, and as the grid gets
    fine, its variance is t^2/(r - 1) + (r + 3)/(3 (r - 1)^2) with r = e^(epsilon/2), t in [-1, 1].

    **Proof.** Every row of the distribution holds w times e^epsilon/Z and steps times 1/Z, with Z = w e^epsilon +
    steps. The sum of the window's places is w k + w (w - 1)/2: linear in k.
    """

    kind = "piecewise"

    @property
    def window(self) -> int:
        """How many places are in the window."""
        return max(1, round(self.grid.steps * math.exp(-float(self.epsilon) / 2)))

    @property
    def kinds(self) -> tuple[ReportSegment, ...]:
        """One kind, with reports from 0 to steps + w - 1."""
        size, width, gain = self.grid.steps + self.window, self.window, self._gain()
        # The window's own middle, and that of all places, weighted: the report's mean is gain k + shift.
        shift = gain * (width - 1) / 2 + (1 - gain) * (size - 1) / 2
        return (ReportSegment(size, -shift / gain, 1 / gain),)

    def _gain(self) -> float:
        rest = math.exp(-float(self.epsilon))
        return -math.expm1(-float(self.epsilon)) * self.window / (self.window + self.grid.steps * rest)

    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place: a coin for the window, then a place in it, or one of the `steps` others."""
        inside = bernoulli.draw_array_certified(self._inside, len(places), bits)
        near = places + draw_array_below(self.window, len(places), bits)
        far = draw_array_below(self.grid.steps, len(places), bits)
        return np.where(inside, near, far + self.window * (far >= places))

    def _inside(self) -> arb:
        """P(in the window), as an interval at the working precision."""
        return self.window / (self.window + self.grid.steps * (-to_interval(self.epsilon)).exp())

    def place_variance(self, place: float) -> float:
        """In squared steps: the distribution is a mixture, with weight a, of the window and of all places, each
        uniform.
        """
        width, size, gain = self.window, self.grid.steps + self.window, self._gain()
        apart = place + (width - 1) / 2 - (size - 1) / 2
        within = gain * (width**2 - 1) / 12 + (1 - gain) * (size**2 - 1) / 12
        return (within + gain * (1 - gain) * apart**2) / gain**2

    def matrix(self) -> TransitionMatrix:
        """P[report | place], exactly, with e^epsilon rounded down to a rational by at most 2^-64."""
        steps, width, high = self.grid.steps, self.window, rational_exp(self.epsilon)
        total = width * high + steps
        return TransitionMatrix(
            [
                [(high if k <= place < k + width else 1) / total for place in range(steps + width)]
                for k in range(steps + 1)
            ]
        )


@dataclass(frozen=True)
class HybridMechanism(Mean):
    """Tosses a coin that has nothing to do with the value: heads, `PiecewiseMechanism`; tails, `StochasticRounding`
    (Wang 2019).

    Heads has the probability 1 - e^(-epsilon/2), and never comes for an epsilon of at most 0.61, where rounding is
    better.

    **Theorem.** Epsilon-DP, as both are and the coin says nothing. Unbiased, as both are. The variance is the mixture
    of both, and the coin is the one for which, on a fine grid, it is the same for every value.

    **Proof.** The coefficient of t^2 is h/(r - 1) - (1 - h), with r = e^(epsilon/2): zero at h = 1 - 1/r.
    """

    kind = "hybrid"

    @property
    def heads(self) -> float:
        """P(heads)."""
        return -math.expm1(-float(self.epsilon) / 2) if self._mixes else 0.0

    @property
    def _mixes(self) -> bool:
        return self.epsilon > Fraction(61, 100)

    @property
    def parts(self) -> tuple[PiecewiseMechanism, StochasticRounding]:
        """The two protocols."""
        return PiecewiseMechanism(self.grid, self.epsilon), StochasticRounding(self.grid, self.epsilon)

    @property
    def kinds(self) -> tuple[ReportSegment, ...]:
        """Two kinds: a window's places come first, then the two ends. Without heads, the ends only."""
        window, ends = self.parts
        return (*window.kinds, *ends.kinds) if self._mixes else ends.kinds

    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place; the last two numbers are the rounding's ends."""
        if not self._mixes:
            return self.parts[1].encode_places(places, bits)
        window, ends = (part.encode_places(places, bits) for part in self.parts)
        ends += self.kinds[0].size
        return np.where(bernoulli.draw_array_certified(self._tails, len(places), bits), ends, window)

    def _tails(self) -> arb:
        """P(tails), as an interval at the working precision."""
        return (-to_interval(self.epsilon) / 2).exp()

    def place_variance(self, place: float) -> float:
        """In squared steps."""
        window, ends = (part.place_variance(place) for part in self.parts)
        return self.heads * window + (1 - self.heads) * ends

    def matrix(self) -> TransitionMatrix:
        """P[report | place]; the coin is rounded to a rational, which no ratio depends on."""
        if not self._mixes:
            return self.parts[1].matrix()
        heads = Fraction(self.heads)
        window, ends = (part.matrix().rows for part in self.parts)
        rows = zip(window, ends, strict=True)
        return TransitionMatrix([[heads * p for p in one] + [(1 - heads) * p for p in other] for one, other in rows])
