"""The collector's state for a mean: counts and sums of the reports. Its size is constant.

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
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number
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

_LONGEST = 8192  # bytes of a serialized summary
_NUMBER = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")  # no exponent: a short text must not make a huge number
# The closed table.
_KINDS = {"rounding": "StochasticRounding", "piecewise": "PiecewiseMechanism", "hybrid": "HybridMechanism"}


@dataclass(frozen=True)
class ReportSegment:
    """A range of reports, numbered 0 to size - 1, each of which is mapped to the index `intercept + slope report`."""

    size: int
    intercept: float
    slope: float

    def to_index(self, report: float) -> float:
        """Return the index on the grid, whose mean is that of the sender, that a report is mapped to."""
        return self.intercept + self.slope * report


@dataclass(frozen=True)
class MeanEstimate:
    """An estimated mean with its confidence interval, in the unit of the values.

    Attributes
    ----------
    value : float
        The unbiased estimate. It may lie outside the range of the grid, where the interval ends.
    deviation : float
        The standard deviation of the estimate if all users had this mean. The interval holds for any values.
    low, high : float
        The ends of the confidence interval, within the range of the grid.
    users : int
        The number of reports that the estimate is made of.

    Examples
    --------
    >>> from tacit.local import MeanEstimate, StochasticRounding, UniformGrid
    >>> protocol = StochasticRounding(UniformGrid(0, 24, steps=96), epsilon=1)
    >>> found: MeanEstimate = protocol.summarize([0] * 500 + [1] * 500).estimate(confidence=0.95)
    >>> round(found.value, 2), round(found.deviation, 2), round(found.low, 2), round(found.high, 2)
    (12.0, 0.82, 10.37, 13.63)
    """

    value: float
    deviation: float
    low: float
    high: float
    users: int


@dataclass(frozen=True)
class MeanSummary:
    """The reports of one survey about a number, summarized as exact counts and sums.

    **Theorem.** The summary of all reports is the sum of the summaries of any parts of them, in any order. It is a
    function of the reports, so it has no privacy loss of its own.

    Parameters
    ----------
    protocol : StochasticRounding, PiecewiseMechanism or HybridMechanism
        The protocol, with its parameters, that all reports were made with.
    counts : tuple of int
        The number of reports in each of the protocol's segments.
    totals : tuple of int
        The sum of the reports in each of the protocol's segments.
    survey : str, default ""
        A name of at most 200 characters. Summaries of two names do not merge.

    See Also
    --------
    MeanSummary.empty : The usual way to make one.

    Examples
    --------
    >>> from tacit.local import MeanSummary, StochasticRounding, UniformGrid
    >>> empty = MeanSummary.empty(StochasticRounding(UniformGrid(0, 24, steps=96), 1), survey="sleep")
    >>> one, other = empty.add([0, 1, 1]), empty.add([1])
    >>> one.merge(other).counts, one.merge(other).totals
    ((4,), (3,))
    >>> MeanSummary.from_bytes(one.to_bytes()) == one
    True
    """

    protocol: Mean
    counts: tuple[int, ...]
    totals: tuple[int, ...]
    survey: str = ""

    @classmethod
    def empty(cls, protocol: Mean, survey: str = "") -> MeanSummary:
        """Make the summary of no reports.

        Parameters
        ----------
        protocol : StochasticRounding, PiecewiseMechanism or HybridMechanism
            The protocol, with its parameters, that all reports will be made with.
        survey : str, default ""
            A name of at most 200 characters. Summaries of two names do not merge.

        Returns
        -------
        MeanSummary
            With zero users, to which reports can be added.

        Raises
        ------
        ParameterError
            Where the name is not a text, or is too long.
        """
        none = (0,) * len(protocol.segments)
        return cls(protocol, none, none, check_survey_name(survey))

    @property
    def users(self) -> int:
        """The number of reports."""
        return sum(self.counts)

    @property
    def mark(self) -> str:
        """A digest of the survey's name, the protocol and its parameters, in 16 hexadecimal digits.

        Let clients send it with each report, and refuse reports that were made for another survey.
        """
        return hashlib.blake2b(json.dumps([self.protocol.name, self.survey]).encode(), digest_size=8).hexdigest()

    def add(self, reports: npt.ArrayLike) -> MeanSummary:
        """Return the summary with more reports.

        Parameters
        ----------
        reports : array_like of int
            Received reports, as the protocol's `encode` returns them.

        Returns
        -------
        MeanSummary
            A new summary; this one does not change.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that the protocol sends; then none is added.
        """
        whole = self.protocol.to_array(reports)
        check_well_formed(self.protocol.kind, self.protocol.is_well_formed(whole))
        counts, totals, first = [], [], 0
        for segment in self.protocol.segments:
            part = whole[(whole >= first) & (whole < first + segment.size)] - first
            counts.append(len(part))
            totals.append(int(part.sum()))
            first += segment.size
        return self._with(tuple(counts), tuple(totals))

    def add_counts(self, rows: Iterable[tuple[int, int]]) -> MeanSummary:
        """Return the summary with reports that a GROUP BY has counted.

        It is exactly what adding all those reports gives.

        Parameters
        ----------
        rows : iterable of (report, count)
            Each report, from 0 to the protocol's `report_limit` - 1, with how often it was received.

        Returns
        -------
        MeanSummary
            A new summary; this one does not change.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that the protocol sends, or a count is not one.
        """
        times = count_reports(self.protocol.kind, self.protocol.report_limit, rows)
        counts, totals, first = [], [], 0
        for segment in self.protocol.segments:
            part = times[first : first + segment.size]
            counts.append(int(part.sum()))
            totals.append(sum(number * int(part[number]) for number in np.flatnonzero(part).tolist()))
            first += segment.size
        return self._with(tuple(counts), tuple(totals))

    def merge(self, other: MeanSummary) -> MeanSummary:
        """Return the summary of the reports of two collectors.

        Parameters
        ----------
        other : MeanSummary
            A summary of other reports of the same survey, with the same protocol and grid.

        Returns
        -------
        MeanSummary
            A new summary of both; it does not depend on the order.

        Raises
        ------
        Refused
            With the code `report`, where the other summary is of another survey, protocol or grid.
        """
        if not isinstance(other, MeanSummary):
            raise ParameterError("other", f"needs a MeanSummary, got {type(other).__name__}", fix="merge two summaries")
        if self.mark != other.mark:
            raise different_surveys_error(self._words(), other._words())
        return self._with(other.counts, other.totals)

    def estimate(self, confidence: Number = 0.95) -> MeanEstimate:
        """Estimate the mean, without bias, with a confidence interval.

        Parameters
        ----------
        confidence : number, default 0.95
            The probability, between 0 and 1, with which the interval covers the mean of the numbers on the grid.

        Returns
        -------
        MeanEstimate
            The mean with its standard deviation and interval, in the unit of the values.

        Raises
        ------
        ParameterError
            Where there are no reports.
        """
        return self.protocol.estimate(self, confidence)

    def to_bytes(self) -> bytes:
        """Serialize the summary, with a version and a checksum.

        Returns
        -------
        bytes
            At most 8,192, whatever the number of reports.
        """
        # The first version had no name of a survey, and a summary without one is still written so.
        version, rest = (2, [self.survey]) if self.survey else (1, [])
        body = json.dumps([version, self.protocol.name, self.counts, self.totals, *rest]).encode()
        return hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> MeanSummary:
        """Read what `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            A serialized summary. Its checksum detects accidental changes, not forgeries.

        Returns
        -------
        MeanSummary
            The same summary.

        Raises
        ------
        Refused
            With the code `report`, where the data is truncated, changed, or not possible as a summary.
        """
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
            what = "this is not a summary, or it was truncated or changed"
            raise Refused(ErrorCode.REPORT, what, fix="read what MeanSummary.to_bytes wrote") from problem
        return found

    def _with(self, counts: tuple[int, ...], totals: tuple[int, ...]) -> MeanSummary:
        check_report_count(self.users + sum(counts))
        both = tuple(a + b for a, b in zip(self.counts, counts, strict=True))
        return replace(self, counts=both, totals=tuple(a + b for a, b in zip(self.totals, totals, strict=True)))

    def _is_possible(self) -> bool:
        parts = zip(self.protocol.segments, self.counts, self.totals, strict=True)
        possible = all(0 <= total <= count * (segment.size - 1) for segment, count, total in parts)
        return self.users <= MAX_REPORTS and possible

    def _words(self) -> str:
        grid, name = self.protocol.grid, f"{self.survey!r}, " if self.survey else ""
        steps = f"{float(grid.lower):g} to {float(grid.upper):g} in {grid.steps} steps"
        return f"{name}{self.protocol.kind} over {steps} at epsilon {float(self.protocol.epsilon):g}"


def _protocol(name: str) -> Mean:
    """Return the protocol of this name, as `Mean.name` writes it."""
    kind, epsilon, lower, upper, steps = name.split(" ")
    if any(_NUMBER.fullmatch(text) is None for text in (epsilon, lower, upper, steps)):
        raise ValueError(name)
    grid = import_module("tacit.local.uniform_grid").UniformGrid(Fraction(lower), Fraction(upper), int(steps))
    found: Mean = getattr(import_module("tacit.local.mean_mechanisms"), _KINDS[kind])(grid, Fraction(epsilon))
    return found
