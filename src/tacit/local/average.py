"""What the protocols for means share: reports that say something of a number, and an estimate with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.local.grid import Grid
from tacit.local.tails import reach
from tacit.local.tally import Average, Kind, Tally, of_reports
from tacit.mechanisms.given import price, share
from tacit.privacy.loss import Pure


@dataclass(frozen=True)
class Mean:
    """What the protocols share. A report of kind i says `intercept_i + slope_i report` of its place, on average truly.

    **Theorem.** The average of what reports say is unbiased for the mean place. If a share m of the people send what
    they like, it moves by at most m times `influence`.
    """

    grid: Grid
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", price(self.epsilon))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of reports, in the order of their numbers."""
        raise NotImplementedError

    def place_variance(self, place: float) -> float:
        """The variance, in squared steps, of what one report says of this place."""
        raise NotImplementedError

    def loss(self) -> Pure:
        """What one report costs the one who sends it."""
        return Pure(self.epsilon)

    def variance(self, users: int, value: float) -> float:
        """The variance of the estimate from so many people, all with this value."""
        return self.place_variance((value - float(self.grid.lower)) / self.grid.width) * self.grid.width**2 / users

    def worst(self, users: int) -> float:
        """The largest variance of the estimate, whatever the values are. It is quadratic in the place: see the ends."""
        return max(map(self.place_variance, self._turns())) * self.grid.width**2 / users

    @property
    def influence(self) -> float:
        """How far apart two reports can be in what they say, in the unit of the values."""
        said = [kind.says(report) for kind in self.kinds for report in (0, kind.size - 1)]
        return (max(said) - min(said)) * self.grid.width

    def tally(self, reports: Any) -> Tally:
        """All of the reports that matters, of constant size; a report that nobody can have sent is refused."""
        return of_reports(self.name, tuple(kind.size for kind in self.kinds), reports)

    def estimate(self, tally: Tally, confidence: Any = 0.95) -> Average:
        """The mean with its interval, which holds it with at least this confidence for any fixed values.

        The values are those on the grid. `reach` has the proof.
        """
        miss = float(1 - share("confidence", confidence))
        tally.must_be(self.name)
        parts = zip(self.kinds, tally.counts, tally.totals, strict=True)
        center = sum(kind.intercept * count + kind.slope * total for kind, count, total in parts) / tally.users
        spread = [self.place_variance(place) for place in self._turns()]
        said = [kind.says(report) for kind in self.kinds for report in (0, kind.size - 1)]
        bound = max(*said, self.grid.steps - min(said))
        wide = reach(tally.users, max(spread), min(spread), bound, miss)
        return self.average(center, center - wide, center + wide, tally.users)

    def average(self, center: float, low: float, high: float, users: int) -> Average:
        """In the unit of the values, with ends inside the range."""
        ends = [min(max(end, 0.0), float(self.grid.steps)) for end in (low, high)]
        deviation = math.sqrt(self.place_variance(min(max(center, 0.0), float(self.grid.steps))) / users)
        value = self.grid.value
        return Average(value(center), deviation * self.grid.width, value(ends[0]), value(ends[1]), users)

    def _turns(self) -> tuple[float, float, float]:
        return 0.0, self.grid.steps / 2, float(self.grid.steps)

    @property
    def name(self) -> str:
        """The protocol and all its parameters: what a tally must be of."""
        grid = self.grid
        return f"{type(self).__name__.lower()} {self.epsilon} {grid.lower} {grid.upper} {grid.steps}"
