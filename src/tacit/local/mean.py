"""Means of numbers that users randomize themselves: what the protocols of `mean_mechanisms` have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.arithmetic import Number, to_integer, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.confidence_intervals import mean_half_width
from tacit.local.frequency_oracle import check_epsilon, check_integer_reports
from tacit.local.mean_summary import MeanEstimate, MeanSummary, ReportSegment
from tacit.local.uniform_grid import Indices, UniformGrid
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits

if TYPE_CHECKING:
    pass

IntegerReports = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mean(ABC):
    """The base class of protocols that estimate the mean of a number on a grid.

    Reports are integers, in one or two segments. A report r of a segment is mapped to `intercept + slope r`, whose mean
    is the index of the sender's number on the grid.

    **Theorem.** A report is epsilon-LDP: each subclass proves it. The average of the mapped reports is unbiased for the
    mean index. If a share m of the users is malicious, it moves by at most m times `influence`.
    """

    grid: UniformGrid
    epsilon: Fraction
    kind: ClassVar[str]

    if TYPE_CHECKING:  # any number is converted below; subclasses inherit this signature by `init=False`

        def __init__(self, grid: UniformGrid, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.grid, UniformGrid):
            what = f"needs a UniformGrid, got {type(self.grid).__name__}"
            raise ParameterError("grid", what, fix="UniformGrid(0, 24, steps=96)")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    # What a subclass defines.

    @property
    @abstractmethod
    def segments(self) -> tuple[ReportSegment, ...]:
        """The segments of reports, in the order of their numbers."""

    @abstractmethod
    def _index_variance(self, index: float) -> float: ...

    @abstractmethod
    def _encode_indices(self, indices: Indices, bits: Bits) -> IntegerReports: ...

    @abstractmethod
    def _tabulate(self) -> list[list[Fraction]]:
        """Return P[report | index], a row for each index, with e^epsilon rounded to a rational."""

    # The client.

    def encode(self, values: npt.ArrayLike, bits: Bits) -> IntegerReports:
        """Randomize the numbers of many users, one report each.

        The distribution of a report is exactly the one that the class states, for the number rounded to the grid.

        Parameters
        ----------
        values : array_like of int or float
            One number for each user; one outside the grid's range is clamped to it.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        ndarray of int64, shape (users,)
            One report for each user, from 0 to `report_limit` - 1.

        Raises
        ------
        ParameterError
            Where a value is NaN or not a number.
        """
        return self._encode_indices(self.grid.to_indices(values), bits)

    def encode_one(self, value: float, bits: Bits) -> int:
        """Randomize one user's number.

        Parameters
        ----------
        value : float
            The true number; one outside the grid's range is clamped to it.
        bits : Bits
            Source of randomness: `SystemBits()` on a user's device.

        Returns
        -------
        int
            The report to send, epsilon-LDP. A second report on the same number costs epsilon again.

        Raises
        ------
        ParameterError
            Where the value is NaN or not a number.
        """
        return int(self.encode([value], bits)[0])

    # Its properties.

    def loss(self) -> PureDp:
        """Return the privacy loss of one report, for the accountant.

        Returns
        -------
        PureDp
            Pure differential privacy with this `epsilon`, between any two numbers of one user.
        """
        return PureDp(self.epsilon)

    def index_variance(self, index: float) -> float:
        """Compute the variance of one mapped report.

        Parameters
        ----------
        index : float
            The sender's index on the grid, from 0 to the number of steps.

        Returns
        -------
        float
            The variance in squared steps of the grid.
        """
        return self._index_variance(index)

    def variance(self, users: int, value: Number) -> float:
        """Compute the variance of the estimated mean where all users have one value.

        Parameters
        ----------
        users : int
            The number of reports, at least 1. The variance is in proportion to 1/users.
        value : number
            The value that all users have, within the range of the grid.

        Returns
        -------
        float
            The variance in the squared unit of the values.
        """
        inside = to_rational_between("value", value, self.grid.lower, self.grid.upper)
        index = float((inside - self.grid.lower) / (self.grid.upper - self.grid.lower) * self.grid.steps)
        return self._index_variance(index) * self.grid.width**2 / to_integer("users", users, least=1)

    def max_variance(self, users: int) -> float:
        """Compute the largest variance of the estimated mean over all values.

        The variance is quadratic in the value, and symmetric: it is largest at the ends or in the middle.

        Parameters
        ----------
        users : int
            The number of reports, at least 1. The variance is in proportion to 1/users.

        Returns
        -------
        float
            The variance in the squared unit of the values.
        """
        largest = max(map(self._index_variance, self._extremal_indices()))
        return largest * self.grid.width**2 / to_integer("users", users, least=1)

    @property
    def influence(self) -> float:
        """The largest difference of two mapped reports, in the unit of the values.

        A share m of malicious users moves an estimated mean by at most m times this.
        """
        ends = self._segment_ends()
        return (max(ends) - min(ends)) * self.grid.width

    def matrix(self) -> TransitionMatrix:
        """Compute P[report | index] exactly, with e^epsilon rounded down to a rational by at most 2^-64.

        Returns
        -------
        TransitionMatrix
            A row for each index of the grid, a column for each report; its `epsilon` is that of the protocol.
        """
        return TransitionMatrix(self._tabulate())

    # The collector.

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this."""
        return sum(segment.size for segment in self.segments)

    def to_array(self, reports: npt.ArrayLike) -> IntegerReports:
        """Convert received reports to an array of integers.

        Parameters
        ----------
        reports : array_like of int
            Received reports in one dimension.

        Returns
        -------
        ndarray of int64
            The same reports. Well-formedness is not checked.

        Raises
        ------
        Refused
            With the code `report`, where the reports are not integers, or are nested.
        """
        return check_integer_reports(self.kind, reports)

    def is_well_formed(self, reports: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Test which of the reports are ones that this protocol sends.

        Parameters
        ----------
        reports : array_like of int
            Received reports, honest or not.

        Returns
        -------
        ndarray of bool
            True for each report from 0 to `report_limit` - 1.

        Raises
        ------
        Refused
            With the code `report`, where the reports are not integers, or are nested.
        """
        whole = self.to_array(reports)
        return np.asarray((whole >= 0) & (whole < self.report_limit))

    def summarize(self, reports: npt.ArrayLike, survey: str = "") -> MeanSummary:
        """Summarize reports as counts and sums, of constant size.

        Parameters
        ----------
        reports : array_like of int
            Received reports, as `encode` returns them.
        survey : str, default ""
            A name of at most 200 characters. Summaries of two names do not merge.

        Returns
        -------
        MeanSummary
            All that an estimate depends on.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that this protocol sends.
        """
        return MeanSummary.empty(self, survey).add(reports)

    def estimate(self, summary: MeanSummary, confidence: Number = 0.95) -> MeanEstimate:
        """Estimate the mean, without bias, with a confidence interval.

        The interval covers the mean of the numbers on the grid with at least the confidence, for any fixed numbers:
        by exact binomial tails for `StochasticRounding`, else by `mean_half_width`, which has the proof.

        Parameters
        ----------
        summary : MeanSummary
            The reports, summarized, of this very protocol; at least one.
        confidence : number, default 0.95
            The probability, between 0 and 1, with which the interval covers the true mean.

        Returns
        -------
        MeanEstimate
            The mean with its standard deviation and interval, in the unit of the values.

        Raises
        ------
        Refused
            With the code `report`, where the summary is of another protocol.
        ParameterError
            Where there are no reports.
        """
        miss = float(1 - check_probability("confidence", confidence))
        self._check_summary(summary)
        center, low, high = self._interval(summary, miss)
        ends = [min(max(end, 0.0), float(self.grid.steps)) for end in (low, high)]
        deviation = math.sqrt(self._index_variance(min(max(center, 0.0), float(self.grid.steps))) / summary.users)
        value = self.grid.to_value
        return MeanEstimate(value(center), deviation * self.grid.width, value(ends[0]), value(ends[1]), summary.users)

    def _interval(self, summary: MeanSummary, miss: float) -> tuple[float, float, float]:
        """Return the estimated mean index, and the ends of an interval that misses with probability `miss`."""
        parts = zip(self.segments, summary.counts, summary.totals, strict=True)
        center = sum(part.intercept * count + part.slope * total for part, count, total in parts) / summary.users
        variances = [self._index_variance(index) for index in self._extremal_indices()]
        mapped = self._segment_ends()
        bound = max(*mapped, self.grid.steps - min(mapped))
        wide = mean_half_width(summary.users, max(variances), min(variances), bound, miss)
        return center, center - wide, center + wide

    def _check_summary(self, summary: MeanSummary) -> None:
        """Refuse what is not a summary of this protocol, and one without reports."""
        if not isinstance(summary, MeanSummary):
            what = f"needs a MeanSummary, got {type(summary).__name__}"
            raise ParameterError("summary", what, fix="protocol.summarize(reports)")
        if summary.protocol != self:
            what = "these reports were made with another protocol, or other parameters"
            raise Refused(ErrorCode.REPORT, what, fix="summary.protocol.estimate(summary)")
        if not summary.users:
            raise ParameterError("summary", "has no reports", fix="add at least one: summary.add(reports)")

    def _extremal_indices(self) -> tuple[float, float, float]:
        """Return the indices among which the variance is largest and smallest."""
        return 0.0, self.grid.steps / 2, float(self.grid.steps)

    def _segment_ends(self) -> list[float]:
        """Return the mapped first and last report of each segment."""
        return [part.to_index(report) for part in self.segments for report in (0, part.size - 1)]

    @property
    def name(self) -> str:
        """The protocol and all its parameters, as the bytes of a summary name them."""
        grid = self.grid
        return f"{self.kind} {self.epsilon} {grid.lower} {grid.upper} {grid.steps}"
