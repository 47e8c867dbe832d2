"""COUNT(*), COUNT(x), COUNT_IF(c), COUNT(DISTINCT unit) and COUNT(DISTINCT x): one integer for each group."""

from __future__ import annotations

from fractions import Fraction

from tacit.aggregates.argument import quantize_bound, quote_aggregate, quote_clamped
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Measurement,
    QuantizedArgument,
    VectorMeasurement,
)
from tacit.aggregates.direct import DirectEstimator
from tacit.errors import ErrorCode, Refused
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, refuse_arguments, single_operand
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, Case, ExactStatistic, Literal
from tacit.query.types import NUMERIC_TYPES, Type


def count_measurement(
    aggregate: Aggregate, argument: TypedScalar | None, quantized: QuantizedArgument | None = None
) -> VectorMeasurement:
    """Return what COUNT(x) measures: a row adds one unless x is NULL; where it cannot be, this is COUNT(*)."""
    if argument is None or not argument.nullable:
        return VectorMeasurement(((1, ExactStatistic("count", None)),), 1, 1, Fraction(1), name="COUNT(*)")
    quoted = quote_aggregate(aggregate)
    name = quoted if aggregate.function == "count" else f"count of {quoted}"
    if quantized is not None:  # the very value that AVG sums
        return VectorMeasurement(((1, ExactStatistic("count", quantized.scalar)),), 1, 1, Fraction(1), name=name)
    present = Case(((Call(Function.IS_NULL, (argument.scalar,)), Literal(None)),), Literal(1))
    return VectorMeasurement(((1, ExactStatistic("count", present)),), 1, 1, Fraction(1), name=name)


def _distinct_measurement(bound: BoundAggregate) -> VectorMeasurement:
    """Return what COUNT(DISTINCT x) measures.

    **Theorem.** COUNT(DISTINCT unit) moves by one for a unit; COUNT(DISTINCT x) by at most as many as the unit has
    rows. Proof of the second: the number of distinct values of a multiset moves by at most one for each row added or
    removed, and under replace it moves by at most as many as the larger of the two units has rows. Where all rows of a
    unit have the same value of x or NULL, as of CASE WHEN y THEN unit END, a unit has one value or none: it moves the
    number by at most one in each of its groups, as one row would.
    """
    aggregate, name = bound.aggregate, quote_aggregate(bound.aggregate)
    if bound.of_unit and bound.argument is not None:  # of rows that meet a condition
        chosen = ((1, ExactStatistic("distinct", bound.argument.scalar)),)
        return VectorMeasurement(chosen, 1, 1, Fraction(1), is_per_unit=True, name=name)
    if bound.of_unit:
        units = ((1, ExactStatistic("units", None)),)
        return VectorMeasurement(units, 1, 1, Fraction(1), is_per_unit=True, name=name)
    argument = bound.required_argument
    if argument.is_per_unit:
        once = ((1, ExactStatistic("distinct", argument.scalar)),)
        return VectorMeasurement(once, 0, 1, Fraction(1), is_per_unit=True, name=name)
    if argument.type is None:
        raise Refused(ErrorCode.TYPE, f"{name} counts nothing", at=aggregate.at, fix="give it a column")
    scalar = argument.scalar
    if argument.type is Type.FLOAT:
        if not argument.is_bounded:
            what = f"{name} is of a float without bounds, so it has no grid to tell values apart on"
            clamped = quote_clamped(aggregate, argument, low="0", high="1000")
            fix = f"clamp it: {clamped}"
            raise Refused(ErrorCode.UNBOUNDED, what, at=aggregate.at, fix=fix, instead=clamped)
        scalar = quantize_bound(bound).scalar
    return VectorMeasurement(((1, ExactStatistic("distinct", scalar)),), 0, 1, Fraction(1), name=name)


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    if bound.aggregate.distinct:
        return (_distinct_measurement(bound),)
    argument = bound.argument
    is_on_grid = argument is not None and argument.is_bounded and argument.type in NUMERIC_TYPES
    return (count_measurement(bound.aggregate, argument, quantize_bound(bound) if is_on_grid else None),)


def _read(written: CallSyntax) -> Aggregate:
    """Read COUNT(*), COUNT(), COUNT(x) and COUNT(DISTINCT x)."""
    if not written.distinct and not written.arguments:
        return Aggregate("count", None)
    return Aggregate("count", single_operand(written), written.distinct)


def _read_star(written: CallSyntax) -> Aggregate:
    """Read COUNT_STAR()."""
    if written.arguments:
        raise refuse_arguments(written, "COUNT(*)", "give it none")
    return Aggregate("count", None)


def _read_condition(written: CallSyntax) -> Aggregate:
    """Read COUNT_IF(c) as COUNT(*) FILTER (WHERE c)."""
    if written.star or written.within is not None or len(written.arguments) != 1:
        several = " AND ".join("(x)".replace("x", letter) for letter in "abcdefgh"[: len(written.arguments)])
        usage = f"{written.name.upper()}({several})" if several else ""
        raise refuse_arguments(written, usage, "give it one condition")
    (condition,) = written.arguments
    return Aggregate("count", Case(((condition, Literal(1)),), Literal(None), written.at))


def _read_distinct(written: CallSyntax) -> Aggregate:
    """Read APPROX_COUNT_DISTINCT(x) as COUNT(DISTINCT x): what other engines estimate is exact before the noise."""
    return Aggregate("count", single_operand(written), distinct=True)


_CONDITION = AggregateSyntax(_read_condition, usage="{}(x > 0)")
_DISTINCT_NAMES = "approx_count_distinct approx_distinct count_distinct hll ndv uniq uniq_exact"
COUNT = AggregateFunction(
    syntax={
        "count": AggregateSyntax(_read, takes_distinct=True),
        "count_star": AggregateSyntax(_read_star, usage="COUNT(*)"),
        "count_if": _CONDITION,
        "countif": _CONDITION,
        **dict.fromkeys(_DISTINCT_NAMES.split(), AggregateSyntax(_read_distinct)),
    },
    functions=("count",),
    result_type=lambda bound: Type.INT,
    measure=_measure,
    estimator=lambda bound, measured, positions: DirectEstimator(positions[0], Type.INT),
)
