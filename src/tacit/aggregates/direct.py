"""A released count or sum as it is, with the interval of its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
import pyarrow as pa

from tacit.aggregates.base import Estimates, Floats, ReleasedVector, Releases
from tacit.query.types import Type

_MOST = 2**63 - 1
_Row = tuple[int | None, int | None, int | None]  # a low end, a value and a high end


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
        width = _half_width(vector, confidence, self.type)
        found = around([(vector.unit, released[self.position])], width, self.type)
        return reach_further(found, width, vector.missing, is_signed=vector.is_signed)

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


def reach_further(found: Estimates, width: Fraction, missing: Fraction | None, *, is_signed: bool) -> Estimates:
    """Return intervals that also hold what a clip may have cut off, above a value or on both sides of it.

    That is as much of each value as is missing of the whole, by an estimate, and once more the half-width of the noise:
    a clip is chosen so that units which cannot be told from noise lose about as much as the noise is (`clip_choice`).
    """
    if missing is None:
        return found
    low, middle, high = found
    if middle.type == pa.float64():
        values, share = middle.to_numpy(), float(missing / (1 - missing))
        more = (np.abs(values) if is_signed else np.maximum(values, 0.0)) * share + float(width)
        return pa.array(low.to_numpy() - more) if is_signed else low, middle, pa.array(high.to_numpy() + more)
    part, rest, half = missing.numerator, missing.denominator - missing.numerator, math.ceil(width)
    rows: list[_Row] = []
    for below, value, above in zip(low.to_pylist(), middle.to_pylist(), high.to_pylist(), strict=True):
        if value is None or below is None or above is None:
            rows.append((below, value, above))
            continue
        more = half - (-(abs(value) if is_signed else max(value, 0)) * part // rest)  # rounded up
        rows.append((below - more if is_signed else below, value, above + more))
    return _fit(rows)


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
        return _fit([(-((half - v * below) // below), v, (v * below + half) // below) for v in wholes])
    shifts = (-half, 0, half)
    low, middle, high = (pa.array([(v + shift) / below for v in sums], pa.float64()) for shift in shifts)
    return low, middle, high


def _fit(rows: list[_Row]) -> Estimates:
    """Return integers with the ends of their intervals. NULL is a value that does not fit 64 bits.

    An interval of which one does not fit is left out: moved to the largest integer, it need not hold the value.
    """
    shown = [row if all(map(_fits, row)) else (None, row[1] if _fits(row[1]) else None, None) for row in rows]
    low, middle, high = (pa.array([row[place] for row in shown], pa.int64()) for place in range(3))
    return low, middle, high


def _fits(number: int | None) -> bool:
    return number is not None and abs(number) <= _MOST
