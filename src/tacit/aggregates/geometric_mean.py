"""GEOMEAN(x): the exponential of the average of LN(x), of which it has the measurements and the interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow.compute as pc

from tacit.aggregates.argument import quantize_bound, quote_aggregate, quote_clamped
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    Releases,
    float_type,
)
from tacit.aggregates.mean import MeanEstimator, centered_measurements, mean_estimator
from tacit.errors import ErrorCode, Refused
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, single_operand
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, find_location


@dataclass(frozen=True)
class GeometricMeanEstimator:
    """exp of a mean of logarithms; NULL where that is.

    **Theorem.** exp is increasing, so the interval of the mean, mapped by it, covers with the same confidence.
    """

    mean: MeanEstimator
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return self.mean.positions

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the geometric mean of each group, with its interval."""
        low, middle, high = self.mean.estimate(released, releases, confidence)
        return pc.exp(low), pc.exp(middle), pc.exp(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives, NaN for NULL."""
        return np.exp(self.mean.simulate(drawn))

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the data."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width when the mean of the logarithms lies in the middle of its range."""
        low, high = self.mean.interval([0] * len(rows), list(rows), releases, confidence)
        return tuple(((np.exp(high) - np.exp(low)) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return the empty text: this is no selection."""
        return ""


def _read(written: CallSyntax) -> Aggregate:
    """Read GEOMEAN(x) as an aggregate of LN(x), which is NULL where x is not positive."""
    operand = single_operand(written)
    return Aggregate("geomean", Call(Function.LN, (operand,), find_location(operand)))


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    if bound.required_argument.lower is None:
        what = f"{quote_aggregate(bound.aggregate)} needs a lower bound above zero"
        instead = quote_clamped(bound.aggregate, bound.required_argument, low="1", high=None)
        fix = f"clamp it: {instead}"
        raise Refused(ErrorCode.UNBOUNDED, what, at=bound.aggregate.at, fix=fix, instead=instead)
    quantized = quantize_bound(bound)
    return centered_measurements(bound.aggregate, bound.required_argument, quantized)


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> GeometricMeanEstimator:
    quantized = quantize_bound(bound)
    return GeometricMeanEstimator(mean_estimator(quantized, positions[0], positions[1]))


_GEOMEAN = AggregateSyntax(_read)
GEOMETRIC_MEAN = AggregateFunction(
    syntax={"geomean": _GEOMEAN, "geometric_mean": _GEOMEAN},
    functions=("geomean",),
    result_type=float_type,
    measure=_measure,
    estimator=_estimator,
)
