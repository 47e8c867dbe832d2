"""MIN, MAX, MEDIAN and quantiles: a point of the argument's grid, selected by its rank; and lists of such points."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit.aggregates.argument import quantize_bound, quote_aggregate, quote_argument
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
from tacit.query.function_calls import AggregateSyntax, CallSyntax, refuse_arguments, refuse_usage, single_operand
from tacit.query.functions import LIST
from tacit.query.nodes import Aggregate, Call, ExactStatistic, Literal, Scalar
from tacit.query.refusals import refuse_unsupported
from tacit.query.types import Type

_DECIMALS = 10**6  # a level has at most six decimals
_LEVELS = {"min": Fraction(0), "max": Fraction(1)}
MAX_PARTS = 100  # of a list of quantiles
_WITH_PRECISION = frozenset({"approx_quantile", "approx_percentile", "percentile_approx", "reservoir_quantile"})
_NAMES = (
    "quantile quantile_cont quantile_disc percentile percentile_cont percentile_disc approx_quantile approx_percentile "
    "percentile_approx reservoir_quantile"
)


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
        return None, _show_points(released[self.position], self.step, self.type), None

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


@dataclass(frozen=True)
class QuantileListEstimator:
    """Selected points of a grid, one for each level, in the order of the levels.

    **Theorem.** If the ranks of all points are off by at most e, then so they are once the points are sorted. Proof:
    let levels increase, r_i be the ranks asked for and v_i the points. The i-th smallest point is at most the largest
    of v_1 ... v_i, of which each has at most r_i + e rows below it; and at least the least of v_i, v_(i+1) ..., of
    which each has at least r_i - e rows up to it. Each rank is off by more with probability at most a part of alpha
    that is as large as all others, so that all hold together with the confidence.
    """

    positions: tuple[int, ...]
    levels: tuple[Fraction, ...]
    step: Fraction
    type: Type
    name: str = field(compare=False)
    values_per_group = 1
    is_always_number = False
    is_selection = True
    is_integer_sum = False

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the selected points of each group, in a list."""
        places = sorted(range(len(self.levels)), key=self.levels.__getitem__)
        lists: list[list[int]] = []
        for points in zip(*(released[position] for position in self.positions), strict=True):
            found = dict(zip(places, sorted(points), strict=True))
            lists.append([found[place] for place in range(len(points))])
        flat = _show_points([point for points in lists for point in points], self.step, self.type)
        starts = range(0, len(flat) + 1, len(self.levels))
        return None, pa.ListArray.from_arrays(pa.array(starts, pa.int32()), flat), None

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
        """Return by how many rows the ranks may be off, all together; of the least and the largest from their ends."""
        each = 1 - (1 - confidence) / len(self.positions)
        missed = 0
        for position in self.positions:
            mechanism = releases.selection(position).mechanism
            assert isinstance(mechanism, Quantile)
            inside = 0 if mechanism.target is None else mechanism.target - 1
            missed = max(missed, inside + mechanism.error(each))
        often = f"{float(100 * confidence):.10g}% of the time"
        return f"{self.name} are values whose ranks are off by at most {missed:,} rows, {often}."


def _show_points(numbers: list[int], step: Fraction, kind: Type) -> Any:
    """Return points of a grid as values of a type, in an Arrow array."""
    if kind is Type.DATE:
        return pa.array([datetime.date.fromordinal(number) for number in numbers], pa.date32())
    if kind in {Type.INT, Type.TIMESTAMP}:  # which is an integer until it is shown
        return pa.array([int(number * step) for number in numbers], pa.int64())
    return pa.array([float(number * step) for number in numbers], pa.float64())


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    level = _LEVELS.get(bound.aggregate.function, bound.aggregate.share)
    assert level is not None
    quantized = quantize_bound(bound, dates=True)
    measure = ExactStatistic("histogram", quantized.scalar)
    return (QuantileMeasurement(measure, level, quantized, quote_aggregate(bound.aggregate)),)


def _measure_list(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    """Return a point for each level; one that is named twice is selected once."""
    quantized = quantize_bound(bound, dates=True)
    measure, inner = ExactStatistic("histogram", quantized.scalar), quote_argument(bound.aggregate)
    return tuple(
        QuantileMeasurement(measure, level, quantized, f"QUANTILE({inner}, {float(level):.6g})")
        for level in _listed_levels(bound.aggregate)
    )


def _list_estimator(
    bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]
) -> QuantileListEstimator:
    point = measured[0]
    assert isinstance(point, QuantileMeasurement)
    levels, name = _listed_levels(bound.aggregate), quote_aggregate(bound.aggregate)
    return QuantileListEstimator(tuple(positions), levels, point.argument.step, argument_type(bound), name)


def _listed_levels(aggregate: Aggregate) -> tuple[Fraction, ...]:
    """Return the levels of a list of quantiles, which stand behind its argument."""
    return tuple(Fraction(level.value) for level in aggregate.others if isinstance(level, Literal))  # type: ignore[arg-type]  # numbers, by `_level`


def _estimator(bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]) -> QuantileEstimator:
    (point,) = measured
    assert isinstance(point, QuantileMeasurement)
    return QuantileEstimator(positions[0], point.argument.step, argument_type(bound))


def _read_extreme(written: CallSyntax) -> Aggregate:
    """Read MIN(x) and MAX(x), which are those of DISTINCT values too."""
    return Aggregate(written.name, single_operand(written))


def _read_median(written: CallSyntax) -> Aggregate:
    return Aggregate("quantile", single_operand(written), share=Fraction(1, 2))


def _read_quantile(written: CallSyntax) -> Aggregate:
    """Read QUANTILE(x, 0.9), and PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x); with [0.5, 0.9] a list of them.

    In descending order the level counts from above. Approximate quantiles may have a third argument, how exact other
    engines are to be.
    """
    name = written.name.upper()
    usage = f"{name}(0.9) WITHIN GROUP (ORDER BY x)" if written.name.startswith("percentile_") else "QUANTILE(x, 0.9)"
    extra = written.name in _WITH_PRECISION
    match written.arguments, written.within:
        case (operand, level), None:
            descending = False
        case (operand, level, Literal()), None if extra:
            descending = False
        case (level,), (operand, descending):
            pass
        case _:
            raise refuse_usage(f"this {name}", written, usage, "give it a column and a share")
    listed = isinstance(level, Call) and level.function == LIST
    shares = [_level(each, written) for each in (level.arguments if listed else (level,))]  # type: ignore[union-attr]  # a call, where it is listed
    shares = [1 - share if descending else share for share in shares]
    if not listed:
        return Aggregate("quantile", operand, share=shares[0])
    return _quantile_list(written, operand, shares)


def _read_parts(written: CallSyntax) -> Aggregate:
    """Read APPROX_QUANTILES(x, 4): the least value, those at the three quarters between, and the largest."""
    usage = f"{written.name.upper()}(x, 4)"
    if written.star or len(written.arguments) != 2:
        raise refuse_arguments(written, usage, "give it a column and the number of parts")
    operand, wanted = written.arguments
    number = wanted.value if isinstance(wanted, Literal) else None
    if type(number) is not int or not 1 <= number <= MAX_PARTS:
        what = f"{written.name.upper()} without a constant number of parts from 1 to {MAX_PARTS}"
        raise refuse_usage(what, written, usage, "write a number")
    return _quantile_list(written, operand, [Fraction(part, number) for part in range(number + 1)])


def _quantile_list(written: CallSyntax, operand: Scalar, shares: list[Fraction]) -> Aggregate:
    if len(shares) > MAX_PARTS + 1:
        what = f"{written.name.upper()} of more than {MAX_PARTS + 1} levels"
        raise refuse_unsupported(what, "name fewer levels", written.at)
    return Aggregate("quantiles", operand, others=tuple(Literal(share) for share in shares))


def _element(found: Aggregate, place: int) -> Aggregate | None:
    """Return the quantile at a place of a list of them, counted from zero."""
    levels = _listed_levels(found)
    if found.function != "quantiles" or place >= len(levels):
        return None
    return Aggregate("quantile", found.argument, share=levels[place])


def _level(scalar: Scalar, written: CallSyntax) -> Fraction:
    """Return the share of rows below: a constant with at most six decimals."""
    value = scalar.value if isinstance(scalar, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        what = f"{written.name.upper()} of a fraction that is not a constant"
        raise refuse_unsupported(what, "write a share between 0 and 1", written.at)
    if not 0 <= value <= 1 or (value * _DECIMALS) % 1:
        share = Fraction(value) if 0 <= value <= 1 else Fraction(value, 100)
        nearest = f"{float(round(share * _DECIMALS) / Fraction(_DECIMALS)):.6f}".rstrip("0")
        fix = "a share is between 0 and 1, with at most six decimals"
        fix, instead = (f"{fix}: write {nearest}", nearest) if 0 <= share <= 1 else (fix, None)
        at = scalar.at if isinstance(scalar, Literal) else written.at
        raise refuse_unsupported(f"the share {float(value):g}", fix, at, instead)
    return Fraction(value)


_QUANTILE = AggregateSyntax(
    _read_quantile, usage="QUANTILE(x, 0.9)", takes_order=True, takes_list=True, element=_element
)
_MEDIAN = AggregateSyntax(_read_median, usage="QUANTILE(x, 0.9)")
QUANTILE = AggregateFunction(
    syntax={
        "min": AggregateSyntax(_read_extreme, takes_distinct=True),
        "max": AggregateSyntax(_read_extreme, takes_distinct=True),
        "median": _MEDIAN,
        "approx_median": _MEDIAN,
        **dict.fromkeys(_NAMES.split(), _QUANTILE),
    },
    functions=("min", "max", "quantile"),
    result_type=argument_type,
    measure=_measure,
    estimator=_estimator,
)
QUANTILE_LIST = AggregateFunction(
    syntax={"approx_quantiles": AggregateSyntax(_read_parts, usage="{}(x, 4)", element=_element)},
    functions=("quantiles",),
    result_type=argument_type,
    measure=_measure_list,
    estimator=_list_estimator,
    budget_weights=(Fraction(1),) * (MAX_PARTS + 1),
    gives_list=True,
)
