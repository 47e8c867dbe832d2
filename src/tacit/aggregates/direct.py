"""A released count or sum as it is, with the interval of its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import pyarrow as pa
import pyarrow.compute as pc

from tacit.aggregates.base import Estimates, Floats, ReleasedVector, Releases
from tacit.query.types import Type

_MOST = 2**63 - 1


@dataclass(frozen=True)
class DirectEstimator:
    """The released number at `position`.

    **Theorem.** The interval is the released value plus and minus the least w with P(|noise| > w) <= 1 - confidence, so
    it covers the bounded value with at least the confidence.
    """

    position: int
    type: Type
    values_per_group = 1
    is_always_number = True
    is_selection = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The release that it is."""
        return (self.position,)

    @property
    def is_integer_sum(self) -> bool:
        """Whether it is an integer that post-processing must not overflow."""
        return self.type is Type.INT

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the value of each group, with its interval."""
        vector = releases.vector(self.position)
        found = around([(vector.unit, released[self.position])], _half_width(vector, confidence, self.type), self.type)
        return reach_further(found, vector.missing, is_signed=vector.is_signed)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives."""
        return drawn[self.position]

    def half_width(self, releases: Releases, confidence: Fraction) -> Fraction | None:
        """Return the half-width of the interval; None where a clip is chosen, on which it depends."""
        vector = releases.vector(self.position)
        return None if vector.is_chosen else _half_width(vector, confidence, self.type)

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return nothing: the half-width does not depend on the data."""
        return ()

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return how wide the interval will be by the clip, where that is chosen; this is no selection."""
        vector = releases.vector(self.position)
        return describe_chosen(_half_width(vector, confidence, self.type)) if vector.is_chosen else ""


def describe_chosen(width: Fraction) -> str:
    """Return how wide an interval is for each row that a clip lets count."""
    return f"within {float(width):,.6g} for each row that the clip lets one unit add; the clip is chosen from the data"


def _half_width(vector: ReleasedVector, confidence: Fraction, kind: Type) -> Fraction:
    width = vector.half_width(confidence)
    # An integer is shown as the nearest one.
    return width + Fraction(1, 2) if kind is Type.INT and vector.unit.denominator != 1 else width


def reach_further(found: Estimates, missing: Fraction, *, is_signed: bool) -> Estimates:
    """Return intervals that hold as much more of each value as is missing of the whole: above it, or on both sides."""
    if missing == 0:
        return found
    low, middle, high = found
    share = float(missing / (1 - missing))
    sizes = pc.abs(middle) if is_signed else pc.max_element_wise(middle, 0)
    more = pc.ceil(pc.multiply(pc.cast(sizes, pa.float64()), share))
    more = more if middle.type == pa.float64() else pc.cast(more, middle.type, safe=False)
    return (pc.subtract(low, more) if is_signed else low), middle, pc.add(high, more)


def around(terms: list[tuple[Fraction, list[int]]], width: Fraction, kind: Type) -> Estimates:
    """Return sums of integers times units, with intervals of one width; those of integers end at integers.

    All are integers over one denominator until the end, whose quotient is rounded once, as that of a fraction is.
    """
    below = math.lcm(width.denominator, *(unit.denominator for unit, _ in terms))
    factors, half = [int(unit * below) for unit, _ in terms], int(width * below)
    rows = zip(*(numbers for _, numbers in terms), strict=True)
    sums = [sum(map(mul, factors, row)) for row in rows]
    if kind is Type.INT:  # what lies between the ends are the same integers
        wholes = [(2 * number + below) // (2 * below) for number in sums]
        ends = ([-((half - v * below) // below) for v in wholes], wholes, [(v * below + half) // below for v in wholes])
        low, middle, high = (pa.array([_fit(v) for v in some], pa.int64()) for some in ends)
    else:
        shifts = (-half, 0, half)
        low, middle, high = (pa.array([(v + shift) / below for v in sums], pa.float64()) for shift in shifts)
    return low, middle, high


def _fit(number: int) -> int:
    """Return a released integer as 64 bits hold it; what is beyond is shown as the largest."""
    return max(-_MOST, min(_MOST, number))
