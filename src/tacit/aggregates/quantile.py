"""MIN, MAX, MEDIAN and quantiles: a point of the argument's grid, selected by its rank."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from tacit.aggregates.argument import quantize_argument, quote_aggregate, read_argument
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    QuantileMeasurement,
    Releases,
    argument_type,
)
from tacit.mechanisms.quantile import Quantile
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, single_operand
from tacit.query.nodes import Aggregate, ExactStatistic, Literal, Scalar
from tacit.query.refusals import refuse_unsupported
from tacit.query.types import Type

_DECIMALS = 10**6  # a level has at most six decimals
_LEVELS = {"min": Fraction(0), "max": Fraction(1)}


@dataclass(frozen=True)
class QuantileEstimator:
    """A selected point of a grid: a number, a day, or a moment."""

    position: int
    step: Fraction
    type: Type
    values_per_group = 1
    is_always_number = True
    is_selection = True
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The release that it is."""
        return (self.position,)

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the selected point of each group."""
        numbers = released[self.position]
        if self.type is Type.DATE:
            return None, pa.array([datetime.date.fromordinal(number) for number in numbers], pa.date32()), None
        if self.type in {Type.INT, Type.TIMESTAMP}:  # which is an integer until it is shown
            return None, pa.array([int(number * self.step) for number in numbers], pa.int64()), None
        return None, pa.array([float(number * self.step) for number in numbers], pa.float64()), None

    def simulate(self, drawn: Sequence[Floats]) -> None:
        """Return None: a selection stays as it is."""
        return None

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: a selection has a rank statement."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return nothing: a selection has a rank statement."""
        return ()

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return by how many rows the rank may be off."""
        selection = releases.selection(self.position)
        mechanism = selection.mechanism
        assert isinstance(mechanism, Quantile)
        often = f"{float(100 * confidence):.10g}% of the time"
        missed = mechanism.error(confidence)
        if mechanism.target is not None:  # of the least or the largest, which aim some rows inside
            beyond = f"{mechanism.target - 1 + missed:,}"
            side = "below" if mechanism.share == 0 else "above"
            return f"{selection.name} is a value with at most {beyond} rows {side} it, {often}."
        return f"{selection.name} is a value whose rank is off by at most {missed:,} rows, {often}."


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    level = _LEVELS.get(bound.aggregate.function, bound.aggregate.share)
    assert level is not None
    quantized = quantize_argument(bound.aggregate, bound.required_argument, dates=True)
    measure = ExactStatistic("histogram", quantized.scalar)
    return (QuantileMeasurement(measure, level, quantized, quote_aggregate(bound.aggregate)),)


def _estimator(bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]) -> QuantileEstimator:
    (point,) = measured
    assert isinstance(point, QuantileMeasurement)
    return QuantileEstimator(positions[0], point.argument.step, argument_type(bound))


def _read_median(written: CallSyntax) -> Aggregate:
    return Aggregate("quantile", single_operand(written), share=Fraction(1, 2))


def _read_quantile(written: CallSyntax) -> Aggregate:
    """Read QUANTILE(x, 0.9)."""
    match written.arguments:
        case (operand, level):
            return Aggregate("quantile", operand, share=_level(level, written, "QUANTILE(x, 0.9)"))
    raise refuse_unsupported(f"this {written.name.upper()}", "write QUANTILE(x, 0.9)", written.at)


def _read_percentile(written: CallSyntax) -> Aggregate:
    """Read PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x). In descending order the level counts from above."""
    usage = f"{written.name.upper()}(0.9) WITHIN GROUP (ORDER BY x)"
    match written.arguments, written.within:
        case (level,), (operand, descending):
            below = _level(level, written, usage)
            return Aggregate("quantile", operand, share=1 - below if descending else below)
    raise refuse_unsupported(f"this {written.name.upper()}", f"write {usage}", written.at)


def _level(scalar: Scalar, written: CallSyntax, usage: str) -> Fraction:
    """Return the share of rows below: a constant with at most six decimals."""
    value = scalar.value if isinstance(scalar, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise refuse_unsupported(
            f"{written.name.upper()} of a fraction that is not a constant", f"write {usage}", written.at
        )
    if not 0 <= value <= 1 or (value * _DECIMALS) % 1:
        fix = f"a share is between 0 and 1, with at most six decimals: {usage}"
        raise refuse_unsupported(
            f"the share {float(value):g}", fix, scalar.at if isinstance(scalar, Literal) else written.at
        )
    return Fraction(value)


_QUANTILE = AggregateSyntax(_read_quantile, usage="QUANTILE(x, 0.9)")
_PERCENTILE = AggregateSyntax(_read_percentile, takes_order=True)
QUANTILE = AggregateFunction(
    syntax={
        "min": AggregateSyntax(read_argument("min")),
        "max": AggregateSyntax(read_argument("max")),
        "median": AggregateSyntax(_read_median, usage="QUANTILE(x, 0.9)"),
        "quantile": _QUANTILE,
        "quantile_cont": _QUANTILE,
        "quantile_disc": _QUANTILE,
        "percentile_cont": _PERCENTILE,
        "percentile_disc": _PERCENTILE,
    },
    functions=("min", "max", "quantile"),
    result_type=argument_type,
    measure=_measure,
    estimator=_estimator,
)
