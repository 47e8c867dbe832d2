"""What a collector of numbers keeps: counts and sums, however many people report. It merges and travels.

>>> one, other = of_reports("hours", (3,), [0, 2, 2]), of_reports("hours", (3,), [1])
>>> one.merge(other)
Tally(survey='hours', counts=(4,), totals=(5,))
>>> Tally.from_bytes(one.to_bytes()) == one
True
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import Code, ParameterError, Refused

_VERSION = 1
_LONGEST = 4096  # bytes of a tally that is read


@dataclass(frozen=True)
class Kind:
    """A kind of report: the numbers 0 to size - 1, each of which says intercept + slope number of the place."""

    size: int
    intercept: float
    slope: float

    def says(self, report: float) -> float:
        """What one report says."""
        return self.intercept + self.slope * report


@dataclass(frozen=True)
class Average:
    """An estimated mean: unbiased, so it may lie outside the range, where its interval ends.

    `deviation` is that of a crowd who all have this mean; the interval holds for any crowd.
    """

    value: float
    deviation: float
    low: float
    high: float
    users: int


@dataclass(frozen=True)
class Tally:
    """For each kind of report, how many there were and their sum, as exact integers.

    **Theorem.** The tally of all reports is the sum of the tallies of any parts of them, in any order.
    """

    survey: str
    counts: tuple[int, ...]
    totals: tuple[int, ...]

    @property
    def users(self) -> int:
        """How many people reported."""
        return sum(self.counts)

    def merge(self, other: Tally) -> Tally:
        """Both together; they must be of the same survey."""
        self.must_be(other.survey, empty=True)
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Tally(self.survey, counts, tuple(a + b for a, b in zip(self.totals, other.totals, strict=True)))

    def must_be(self, survey: str, empty: bool = False) -> None:
        """Refuses a tally of another survey, and one of nobody."""
        if survey != self.survey:
            raise Refused(Code.REPORT, "these reports are of another survey", fix="collect each survey by itself")
        if not (empty or self.users):
            raise ParameterError("tally", "nobody reported", fix="collect at least one report")

    def to_bytes(self) -> bytes:
        """The tally with its version and a checksum."""
        body = json.dumps([_VERSION, self.survey, self.counts, self.totals]).encode()
        return hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """The tally that `to_bytes` wrote; anything else is refused."""
        try:
            if len(data) > _LONGEST or hashlib.sha256(data[32:]).digest() != data[:32]:
                raise ValueError("no such checksum")
            version, survey, counts, totals = json.loads(data[32:])
            found = cls(str(survey), tuple(map(int, counts)), tuple(map(int, totals)))
            if len(counts) != len(totals) or min(*found.counts, *found.totals, 0) < 0:
                raise ValueError("no such tally")
            if version != _VERSION or found.to_bytes() != data:
                raise ValueError("not what to_bytes writes")
        except (ValueError, TypeError, RecursionError) as problem:
            raise Refused(Code.REPORT, "this is no tally, or a damaged one", fix="send it again") from problem
        return found


def of_reports(survey: str, sizes: tuple[int, ...], reports: Any) -> Tally:
    """The tally of these reports, whose kinds are numbered one after the other."""
    found = np.asarray(reports)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise Refused(Code.REPORT, "a report is one integer", fix="send what encode returned")
    if len(found) and (int(found.min()) < 0 or int(found.max()) >= sum(sizes)):
        raise Refused(Code.REPORT, f"a report is from 0 to {sum(sizes) - 1}", fix="send what encode returned")
    whole = found.astype(np.int64)
    counts, totals, first = [], [], 0
    for size in sizes:
        kind = whole[(whole >= first) & (whole < first + size)] - first
        counts.append(len(kind))
        totals.append(int(kind.sum()))
        first += size
    return Tally(survey, tuple(counts), tuple(totals))
