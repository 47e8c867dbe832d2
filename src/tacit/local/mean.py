"""Means of numbers that people randomize themselves: by rounding, by a window, or by a mixture of both.

>>> from tacit.local.grid import Grid
>>> from tacit.sampling.bits import ReplayBits
>>> hours = Grid(0, 24, steps=96)
>>> asked = Hybrid(hours, epsilon=2)
>>> reports = asked.encode(np.repeat([6.0, 8.0], 5000), ReplayBits(b"example"))
>>> found = asked.estimate(asked.tally(reports), confidence=0.95)
>>> found.low < 7 < found.high
True
>>> [round(protocol(hours, 1).worst(1) / 12**2, 2) for protocol in (Rounding, Piecewise, Hybrid)]
[4.68, 5.23, 4.29]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting.exact import Matrix
from tacit.arithmetic import ball
from tacit.local.average import Mean, Reports
from tacit.local.grid import Places, odds
from tacit.local.tails import binomial_ends
from tacit.local.tally import Average, Kind, Tally
from tacit.mechanisms.given import share
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import belows

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class Rounding(Mean):
    """Rounds the place k at random to an end of the range, and tells that end by randomized response (Duchi 2013).

    **Theorem.** With T = k/steps and p = e^epsilon/(1 + e^epsilon), the report is 1 with probability
    T p + (1 - T)(1 - p), else 0: epsilon-DP and no less. (report - (1 - p))/(2p - 1) is unbiased for T, with the
    variance P(1) (1 - P(1))/(2p - 1)^2: largest in the middle, where in units of half the range it is
    ((e^epsilon + 1)/(e^epsilon - 1))^2.

    **Proof.** The upper end has the chance T. The ratio of two chances of a report is largest at the ends: p/(1 - p).
    """

    kind = "rounding"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind, with the reports 0 and 1."""
        gain = math.tanh(float(self.epsilon) / 2)  # 2p - 1
        return (Kind(2, -self.grid.steps * (1 - gain) / 2 / gain, self.grid.steps / gain),)

    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place, exactly of the law above."""
        top = belows(self.grid.steps, len(places), bits) < places
        lie = bernoulli.coins(lambda: 1 / (1 + ball(self.epsilon).exp()), len(places), bits)
        return (top ^ lie).astype(np.int64)

    def place_variance(self, place: float) -> float:
        """In squared steps."""
        gain = math.tanh(float(self.epsilon) / 2)
        high = (1 + (2 * place / self.grid.steps - 1) * gain) / 2
        return high * (1 - high) * (self.grid.steps / gain) ** 2

    def matrix(self) -> Matrix:
        """P[report | place], exactly, with e^epsilon rounded down to a rational by at most 2^-64."""
        truth = odds(self.epsilon) / (1 + odds(self.epsilon))
        shares = [Fraction(k, self.grid.steps) for k in range(self.grid.steps + 1)]
        ones = [part * truth + (1 - part) * (1 - truth) for part in shares]
        return Matrix([[1 - one, one] for one in ones])

    def estimate(self, tally: Tally, confidence: Any = 0.95) -> Average:
        """The mean with its interval, by exact binomial tails: at least this confidence for any fixed values."""
        miss = float(1 - share("confidence", confidence))
        self.must_have(tally)
        ones = tally.totals[0]
        (kind,) = self.kinds
        ends = [kind.says(end) for end in binomial_ends(ones, tally.users, miss)]
        return self.average(kind.says(ones / tally.users), ends[0], ends[1], tally.users)


@dataclass(frozen=True)
class Piecewise(Mean):
    """Sends one of steps + w places; those in a window of w, which begins at k, are e^epsilon times as likely.

    This is the piecewise mechanism (Wang and others 2019) on a grid. The width w is steps e^(-epsilon/2), rounded.

    **Theorem.** Epsilon-DP and no less. With a = (e^epsilon - 1) w/(w e^epsilon + steps) the report's mean is
    a k + a constant, so report/a less a constant is unbiased for k. In units of half the range, and as the grid gets
    fine, its variance is t^2/(r - 1) + (r + 3)/(3 (r - 1)^2) with r = e^(epsilon/2), t in [-1, 1].

    **Proof.** Every row of the law holds w times e^epsilon/Z and steps times 1/Z, with Z = w e^epsilon + steps. The
    sum of the window's places is w k + w (w - 1)/2: linear in k.
    """

    kind = "piecewise"

    @property
    def window(self) -> int:
        """How many places are in the window."""
        return max(1, round(self.grid.steps * math.exp(-float(self.epsilon) / 2)))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind, with reports from 0 to steps + w - 1."""
        size, width, gain = self.grid.steps + self.window, self.window, self._gain()
        # The window's own middle, and that of all places, weighted: the report's mean is gain k + shift.
        shift = gain * (width - 1) / 2 + (1 - gain) * (size - 1) / 2
        return (Kind(size, -shift / gain, 1 / gain),)

    def _gain(self) -> float:
        rest = math.exp(-float(self.epsilon))
        return -math.expm1(-float(self.epsilon)) * self.window / (self.window + self.grid.steps * rest)

    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place: a coin for the window, then a place in it, or one of the `steps` others."""
        inside = bernoulli.coins(self._inside, len(places), bits)
        near = places + belows(self.window, len(places), bits)
        far = belows(self.grid.steps, len(places), bits)
        return np.where(inside, near, far + self.window * (far >= places))

    def _inside(self) -> arb:
        """P(in the window), as an interval at the working precision."""
        return self.window / (self.window + self.grid.steps * (-ball(self.epsilon)).exp())

    def place_variance(self, place: float) -> float:
        """In squared steps: the law is a mixture, with weight a, of the window and of all places, each uniform."""
        width, size, gain = self.window, self.grid.steps + self.window, self._gain()
        apart = place + (width - 1) / 2 - (size - 1) / 2
        within = gain * (width**2 - 1) / 12 + (1 - gain) * (size**2 - 1) / 12
        return (within + gain * (1 - gain) * apart**2) / gain**2

    def matrix(self) -> Matrix:
        """P[report | place], exactly, with e^epsilon rounded down to a rational by at most 2^-64."""
        steps, width, high = self.grid.steps, self.window, odds(self.epsilon)
        total = width * high + steps
        return Matrix(
            [
                [(high if k <= place < k + width else 1) / total for place in range(steps + width)]
                for k in range(steps + 1)
            ]
        )


@dataclass(frozen=True)
class Hybrid(Mean):
    """Tosses a coin that has nothing to do with the value: heads, `Piecewise`; tails, `Rounding` (Wang 2019).

    Heads has the chance 1 - e^(-epsilon/2), and never comes for an epsilon of at most 0.61, where rounding is better.

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
    def parts(self) -> tuple[Piecewise, Rounding]:
        """The two protocols."""
        return Piecewise(self.grid, self.epsilon), Rounding(self.grid, self.epsilon)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Two kinds: a window's places come first, then the two ends. Without heads, the ends only."""
        window, ends = self.parts
        return (*window.kinds, *ends.kinds) if self._mixes else ends.kinds

    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place; the last two numbers are the rounding's ends."""
        if not self._mixes:
            return self.parts[1].encode_places(places, bits)
        window, ends = (part.encode_places(places, bits) for part in self.parts)
        ends += self.kinds[0].size
        return np.where(bernoulli.coins(self._tails, len(places), bits), ends, window)

    def _tails(self) -> arb:
        """P(tails), as an interval at the working precision."""
        return (-ball(self.epsilon) / 2).exp()

    def place_variance(self, place: float) -> float:
        """In squared steps."""
        window, ends = (part.place_variance(place) for part in self.parts)
        return self.heads * window + (1 - self.heads) * ends

    def matrix(self) -> Matrix:
        """P[report | place]; the coin is rounded to a rational, which no ratio depends on."""
        if not self._mixes:
            return self.parts[1].matrix()
        heads = Fraction(self.heads)
        window, ends = (part.matrix().rows for part in self.parts)
        rows = zip(window, ends, strict=True)
        return Matrix([[heads * p for p in one] + [(1 - heads) * p for p in other] for one, other in rows])
