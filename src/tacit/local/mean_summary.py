"""What a collector of numbers keeps: counts and sums, however many people report. It merges and travels.

>>> from tacit.local import UniformGrid, StochasticRounding
>>> empty = MeanSummary.empty(StochasticRounding(UniformGrid(0, 24, steps=96), 1), survey="sleep")
>>> one, other = empty.add([0, 1, 1]), empty.add([1])
>>> one.merge(other).counts, one.merge(other).totals
((4,), (3,))
>>> MeanSummary.from_bytes(one.to_bytes()) == one
True
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.frequency_oracle import check_well_formed
from tacit.local.strict_json import parse
from tacit.local.summary import (
    MAX_REPORTS,
    check_report_count,
    check_survey_name,
    count_reports,
    different_surveys_error,
)

if TYPE_CHECKING:
    from tacit.local.mean import Mean

_LONGEST = 8192  # bytes of a tally that is read
_NUMBER = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")  # no exponent: a short text must not make a huge number
# The closed table.
_KINDS = {"rounding": "StochasticRounding", "piecewise": "PiecewiseMechanism", "hybrid": "HybridMechanism"}


@dataclass(frozen=True)
class ReportSegment:
    """A kind of report: the numbers 0 to size - 1, each of which says intercept + slope number of the place."""

    size: int
    intercept: float
    slope: float

    def says(self, report: float) -> float:
        """What one report says."""
        return self.intercept + self.slope * report


@dataclass(frozen=True)
class MeanEstimate:
    """An estimated mean: unbiased, so it may lie outside the range, where its interval ends.

    `deviation` is that of a crowd who all have this mean; the interval holds for any crowd.
    """

    value: float
    deviation: float
    low: float
    high: float
    users: int


@dataclass(frozen=True)
class MeanSummary:
    """For each kind of report, how many there were and their sum, as exact integers.

    **Theorem.** The tally of all reports is the sum of the tallies of any parts of them, in any order.
    """

    protocol: Mean
    counts: tuple[int, ...]
    totals: tuple[int, ...]
    survey: str = ""

    @classmethod
    def empty(cls, protocol: Mean, survey: str = "") -> MeanSummary:
        """Before the first report."""
        none = (0,) * len(protocol.kinds)
        return cls(protocol, none, none, check_survey_name(survey))

    @property
    def users(self) -> int:
        """How many people reported."""
        return sum(self.counts)

    @property
    def mark(self) -> str:
        """A short name of the survey, the protocol and its parameters. A report sent with another one is refused."""
        return hashlib.blake2b(json.dumps([self.protocol.name, self.survey]).encode(), digest_size=8).hexdigest()

    def add(self, reports: Any) -> MeanSummary:
        """With these reports too. If one of them is bad, all are refused and nothing changes."""
        whole = self.protocol.shaped(reports)
        check_well_formed(self.protocol.kind, self.protocol.well_formed(whole))
        counts, totals, first = [], [], 0
        for kind in self.protocol.kinds:
            part = whole[(whole >= first) & (whole < first + kind.size)] - first
            counts.append(len(part))
            totals.append(int(part.sum()))
            first += kind.size
        return self._with(tuple(counts), tuple(totals))

    def add_counts(self, rows: Iterable[tuple[Any, Any]]) -> MeanSummary:
        """With reports too that were counted elsewhere: pairs of a report and how often it came, as GROUP BY has them.

        It is exactly what adding all those reports gives.
        """
        times = count_reports(self.protocol.kind, self.protocol.report_limit, rows)
        counts, totals, first = [], [], 0
        for kind in self.protocol.kinds:
            part = times[first : first + kind.size]
            counts.append(int(part.sum()))
            totals.append(sum(number * int(part[number]) for number in np.flatnonzero(part).tolist()))
            first += kind.size
        return self._with(tuple(counts), tuple(totals))

    def merge(self, other: MeanSummary) -> MeanSummary:
        """The reports of both. Tallies of another protocol or survey are refused."""
        if not isinstance(other, MeanSummary):
            raise ParameterError("other", f"needs a tally, got {type(other).__name__}", fix="merge two tallies")
        if self.mark != other.mark:
            raise different_surveys_error(self._words(), other._words())
        return self._with(other.counts, other.totals)

    def estimate(self, confidence: Any = 0.95) -> MeanEstimate:
        """The mean with its interval, which holds it with at least this confidence."""
        return self.protocol.estimate(self, confidence)

    def to_bytes(self) -> bytes:
        """The tally with its version and a checksum."""
        # The first version had no name of a survey, and a tally without one is still written so.
        version, rest = (2, [self.survey]) if self.survey else (1, [])
        body = json.dumps([version, self.protocol.name, self.counts, self.totals, *rest]).encode()
        return hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> MeanSummary:
        """The tally that `to_bytes` wrote; anything else is refused. The checksum finds accidents, not forgeries."""
        try:
            data = bytes(memoryview(data))
            if len(data) > _LONGEST or hashlib.sha256(data[32:]).digest() != data[:32]:
                raise ValueError("no such checksum")
            _, name, counts, totals, *rest = parse(data[32:])
            protocol = _protocol(str(name))
            found = cls(protocol, tuple(map(int, counts)), tuple(map(int, totals)), check_survey_name("".join(rest)))
            if found.to_bytes() != data or not found._is_possible():
                raise ValueError("not what to_bytes writes")
        except (ValueError, KeyError, TypeError, ArithmeticError) as problem:
            raise Refused(ErrorCode.REPORT, "this is no tally, or a damaged one", fix="send it again") from problem
        return found

    def _with(self, counts: tuple[int, ...], totals: tuple[int, ...]) -> MeanSummary:
        check_report_count(self.users + sum(counts))
        both = tuple(a + b for a, b in zip(self.counts, counts, strict=True))
        return replace(self, counts=both, totals=tuple(a + b for a, b in zip(self.totals, totals, strict=True)))

    def _is_possible(self) -> bool:
        parts = zip(self.protocol.kinds, self.counts, self.totals, strict=True)
        return self.users <= MAX_REPORTS and all(0 <= total <= count * (kind.size - 1) for kind, count, total in parts)

    def _words(self) -> str:
        grid, name = self.protocol.grid, f"{self.survey!r}, " if self.survey else ""
        steps = f"{float(grid.lower):g} to {float(grid.upper):g} in {grid.steps} steps"
        return f"{name}{self.protocol.kind} over {steps} at epsilon {float(self.protocol.epsilon):g}"


def _protocol(name: str) -> Mean:
    """The protocol of this name, as `Mean.name` writes it."""
    kind, epsilon, lower, upper, steps = name.split(" ")
    if any(_NUMBER.fullmatch(text) is None for text in (epsilon, lower, upper, steps)):
        raise ValueError(name)
    grid = import_module("tacit.local.uniform_grid").UniformGrid(Fraction(lower), Fraction(upper), int(steps))
    found: Mean = getattr(import_module("tacit.local.mean"), _KINDS[kind])(grid, Fraction(epsilon))
    return found
