"""What the protocols for means share: reports that say something of a number, and an estimate with its interval."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import integer, within
from tacit.errors import Code, ParameterError, Refused
from tacit.local.frequency import local_price, numbers_of
from tacit.local.grid import Grid, Places
from tacit.local.tails import reach
from tacit.local.tally import Average, Kind, Tally
from tacit.mechanisms.given import share
from tacit.privacy.loss import Pure
from tacit.sampling.bits import Bits

Reports = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mean(ABC):
    """What the protocols share. A report of kind i says `intercept_i + slope_i report` of its place, on average truly.

    **Theorem.** The average of what reports say is unbiased for the mean place. If a share m of the people send what
    they like, it moves by at most m times `influence`.
    """

    grid: Grid
    epsilon: Fraction
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.grid, Grid):
            raise ParameterError("grid", f"needs a grid, got {type(self.grid).__name__}", fix="Grid(0, 24, steps=96)")
        object.__setattr__(self, "epsilon", local_price(self.epsilon))

    @property
    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of reports, in the order of their numbers."""

    @abstractmethod
    def place_variance(self, place: float) -> float:
        """The variance, in squared steps, of what one report says of this place."""

    @abstractmethod
    def encode_places(self, places: Places, bits: Bits) -> Reports:
        """One report for each place."""

    # The client.

    def encode(self, values: Any, bits: Bits) -> Reports:
        """One report for each number, exactly of the law that the class states."""
        return self.encode_places(self.grid.places(values), bits)

    def encode_one(self, value: float, bits: Bits) -> int:
        """One person's report."""
        return int(self.encode([value], bits)[0])

    # What holds of it.

    def loss(self) -> Pure:
        """What one report costs the one who sends it."""
        return Pure(self.epsilon)

    def variance(self, users: int, value: float) -> float:
        """The variance of the estimate from so many people, all with this value."""
        inside = within("value", value, self.grid.lower, self.grid.upper)
        place = float((inside - self.grid.lower) / (self.grid.upper - self.grid.lower) * self.grid.steps)
        return self.place_variance(place) * self.grid.width**2 / integer("users", users, least=1)

    def worst(self, users: int) -> float:
        """The largest variance of the estimate, whatever the values are. It is quadratic in the place: see the ends."""
        largest = max(map(self.place_variance, self._turns()))
        return largest * self.grid.width**2 / integer("users", users, least=1)

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
        return numbers_of(self.kind, reports)

    def well_formed(self, reports: Any) -> npt.NDArray[np.bool_]:
        """Which of the reports are ones that this protocol sends; refused if they are no integers."""
        whole = self.shaped(reports)
        return np.asarray((whole >= 0) & (whole < self.report_limit))

    def tally(self, reports: Any, survey: str = "") -> Tally:
        """All of the reports that matters, of constant size; a report that nobody can have sent is refused."""
        return Tally.empty(self, survey).add(reports)

    def estimate(self, tally: Tally, confidence: Any = 0.95) -> Average:
        """The mean with its interval, which holds it with at least this confidence for any fixed values.

        The values are those on the grid. `reach` has the proof.
        """
        miss = float(1 - share("confidence", confidence))
        self.must_have(tally)
        parts = zip(self.kinds, tally.counts, tally.totals, strict=True)
        center = sum(kind.intercept * count + kind.slope * total for kind, count, total in parts) / tally.users
        spread = [self.place_variance(place) for place in self._turns()]
        said = [kind.says(report) for kind in self.kinds for report in (0, kind.size - 1)]
        bound = max(*said, self.grid.steps - min(said))
        wide = reach(tally.users, max(spread), min(spread), bound, miss)
        return self.average(center, center - wide, center + wide, tally.users)

    def must_have(self, tally: Tally) -> None:
        """Refuses what is no tally of this protocol, and one of nobody."""
        if not isinstance(tally, Tally):
            raise ParameterError("tally", f"needs a tally, got {type(tally).__name__}", fix="tally the reports first")
        if tally.protocol != self:
            raise Refused(Code.REPORT, "these reports are of another survey", fix="collect each survey by itself")
        if not tally.users:
            raise ParameterError("tally", "nobody reported", fix="collect at least one report")

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
        """The protocol and all its parameters, as a tally's bytes name them."""
        grid = self.grid
        return f"{self.kind} {self.epsilon} {grid.lower} {grid.upper} {grid.steps}"
