"""SUM(x) and SUM(DISTINCT x): one integer for each group, or the parts of an average where that is asked for too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.aggregates.argument import quantize_bound, quote_aggregate, read_argument, read_conditional
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Estimator,
    Floats,
    Measurement,
    Releases,
    VectorMeasurement,
    argument_type,
)
from tacit.aggregates.direct import DirectEstimator, around, describe_chosen, reach_further
from tacit.aggregates.distinct import distinct_total
from tacit.aggregates.mean import centered_measurements, combined_tail
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax
from tacit.query.nodes import ExactStatistic
from tacit.query.types import Type


@dataclass(frozen=True)
class SumEstimator:
    """A sum from the parts of a mean: sum + center * count. It costs nothing where the mean is asked for anyway."""

    sum: int
    count: int
    center: Fraction
    type: Type
    values_per_group = 1
    is_always_number = True
    is_selection = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return self.sum, self.count

    @property
    def is_integer_sum(self) -> bool:
        """Whether it is an integer that post-processing must not overflow."""
        return self.type is Type.INT

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the sum of each group, with its interval."""
        sum_of, count_of = releases.vector(self.sum), releases.vector(self.count)
        terms = [(sum_of.unit, released[self.sum]), (self.center * count_of.unit, released[self.count])]
        width = self._half_width(releases, confidence)
        return reach_further(around(terms, width, self.type), width, sum_of.missing, is_signed=True)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the sums that redrawn noise gives."""
        return drawn[self.sum] + float(self.center) * drawn[self.count]

    def half_width(self, releases: Releases, confidence: Fraction) -> Fraction | None:
        """Return the half-width of the interval; None where a clip is chosen, on which it depends."""
        return None if releases.vector(self.sum).is_chosen else self._half_width(releases, confidence)

    def _half_width(self, releases: Releases, confidence: Fraction) -> Fraction:
        """Return a half-width no smaller than any that has the confidence.

        The error is u |Z_S + theta Z_N|, with u and v the units of the centered sum and of the count and theta =
        center v/u, and has the tail that a mean has. It does not depend on the data.
        """
        sum_of, count_of = releases.vector(self.sum), releases.vector(self.count)
        alpha = float(1 - confidence)
        tail, _ = combined_tail(sum_of, count_of, alpha)
        theta = np.array([abs(float(self.center * count_of.unit / sum_of.unit))])
        low, high = 0.0, 1.0
        while tail(np.array([high]), theta)[0] > alpha:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(np.array([middle]), theta)[0] > alpha else (low, middle)
        steps = Fraction(high * (1 + 1e-12)) + 1 + Fraction(theta[0])
        half = Fraction(1, 2) if self.type is Type.INT else Fraction(0)  # an integer is shown as the nearest one
        return steps * sum_of.unit + half

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return nothing: the half-width does not depend on the data."""
        return ()

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return how wide the interval will be by the clip, where that is chosen; this is no selection."""
        is_chosen = releases.vector(self.sum).is_chosen
        return describe_chosen(self._half_width(releases, confidence)) if is_chosen else ""


def _measure(bound: BoundAggregate, averaged: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    """Return what is summed; of an argument that is averaged too, what the average needs.

    That is cheaper by a vector, and a sum alone would have to share epsilon with them: of three vectors each gets a
    third, of two a half.
    """
    aggregate, argument = bound.aggregate, bound.required_argument
    quantized = quantize_bound(bound)
    if aggregate.distinct:
        return (distinct_total(aggregate, quantized),)
    if argument in averaged:
        return centered_measurements(aggregate, argument, quantized)
    terms = ((1, ExactStatistic("sum", quantized.scalar)),)
    name = quote_aggregate(aggregate)
    return (VectorMeasurement(terms, quantized.lower, quantized.upper, quantized.step, name=name),)


def _estimator(bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]) -> Estimator:
    kind = argument_type(bound)
    if len(measured) == 1:
        return DirectEstimator(positions[0], kind)
    quantized = quantize_bound(bound)
    center = quantized.step * (quantized.lower + quantized.upper) / 2
    return SumEstimator(positions[0], positions[1], center, kind)


_SUM, _SUM_IF = AggregateSyntax(read_argument("sum"), takes_distinct=True), read_conditional("sum")
SUM = AggregateFunction(
    syntax={
        **dict.fromkeys(["sum", "fsum", "sumkahan", "kahan_sum", "sum_no_overflow"], _SUM),
        "sum_if": _SUM_IF,
        "sumif": _SUM_IF,
    },
    functions=("sum",),
    result_type=argument_type,
    measure=_measure,
    estimator=_estimator,
)
