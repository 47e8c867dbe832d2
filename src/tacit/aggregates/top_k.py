"""MODE and TOP_K: the most frequent of a column's declared keys. MODE(x) and TOP_K(x, 1) are one selection."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from tacit.aggregates.argument import quote_aggregate, read_argument
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    Releases,
    TopKMeasurement,
    argument_type,
)
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.top_k import TopK
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, refuse_arguments, refuse_usage
from tacit.query.nodes import Aggregate, ExactStatistic, Literal
from tacit.query.types import Key, Type

MAX_TOP_K = 100  # keys that are named
MAX_LISTED = 10_000  # values that follow from bounds


@dataclass(frozen=True)
class TopKEstimator:
    """Selected keys, the most frequent first: k positions for each group, one group after the other; or one key."""

    position: int
    values: tuple[Key, ...]
    k: int | None
    is_always_number = False
    is_selection = True
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The release that it is."""
        return (self.position,)

    @property
    def values_per_group(self) -> int:
        """How many keys are selected in a group."""
        return self.k or 1

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the selected key of each group, or the list of them."""
        names = [self.values[position] for position in released[self.position]]
        if self.k is None:
            return None, pa.array(names), None
        lists = [names[start : start + self.k] for start in range(0, len(names), self.k)]
        return None, pa.array(lists, pa.list_(pa.array(self.values).type)), None

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
        """Return by how many rows a selected key may fall short."""
        selection = releases.selection(self.position)
        mechanism = selection.mechanism
        assert not isinstance(mechanism, Quantile)
        often = f"{float(100 * confidence):.10g}% of the time"
        off = f"{mechanism.error(selection.choices, confidence):,}"
        if isinstance(mechanism, TopK):
            due = f"each with at most {off} rows less than the one due in its place"
            return f"{selection.name} are values, {due}, {often}."
        return f"{selection.name} is a value with at most {off} rows less than the most frequent one, {often}."


def _listed_values(bound: BoundAggregate) -> tuple[Key, ...] | None:
    """Return the declared values, or all there are of a condition, a bounded integer or a bounded date, if not many.

    They follow from the policy, so they are public. The argument is read within its bounds, so no value is left out.
    """
    argument = bound.required_argument
    if bound.values is not None:
        return bound.values
    if argument.type is Type.BOOL:
        return False, True
    if argument.type not in {Type.INT, Type.DATE} or not argument.is_bounded:
        return None
    if argument.lower is None or argument.upper is None or argument.upper - argument.lower >= MAX_LISTED:
        return None
    numbers = range(math.ceil(argument.lower), math.floor(argument.upper) + 1)
    return tuple(numbers) if argument.type is Type.INT else tuple(map(datetime.date.fromordinal, numbers))


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    aggregate = bound.aggregate
    values = _listed_values(bound)
    k, name = aggregate.count or 1, quote_aggregate(aggregate)
    if values is None:
        fix = "ask for a column with declared values, or group by it and take the groups with the largest counts"
        raise Refused(ErrorCode.PRIVATE_KEY, f"{name} needs declared values", at=aggregate.at, fix=fix)
    if k > len(values):
        what = f"{name} names more values than the {len(values):,} that are declared"
        fix = f"name at most {len(values):,}"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=aggregate.at, fix=fix)
    return (TopKMeasurement(ExactStatistic("histogram", bound.required_argument.scalar), values, k, name),)


def _estimator(bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]) -> TopKEstimator:
    (most,) = measured
    assert isinstance(most, TopKMeasurement)
    return TopKEstimator(positions[0], most.values, bound.aggregate.count)


def _read_top_k(written: CallSyntax) -> Aggregate:
    """Read TOP_K(x, 3)."""
    usage = f"{written.name.upper()}(x, 3)"
    if written.star or len(written.arguments) != 2:
        raise refuse_arguments(written, usage, "give it a column and the number of values")
    operand, wanted = written.arguments
    number = wanted.value if isinstance(wanted, Literal) else None
    if type(number) is not int or not 1 <= number <= MAX_TOP_K:
        what = f"{written.name.upper()} without a constant number of values from 1 to {MAX_TOP_K}"
        raise refuse_usage(what, written, usage, "write a number")
    return Aggregate("top_k", operand, count=number)


_TOP_K = AggregateSyntax(_read_top_k, usage="{}(x, 3)")
MODE = AggregateFunction(
    syntax={"mode": AggregateSyntax(read_argument("mode"), takes_order=True)},
    functions=("mode",),
    result_type=argument_type,
    measure=_measure,
    estimator=_estimator,
)
TOP_K = AggregateFunction(
    syntax={"top_k": _TOP_K, "approx_top_k": _TOP_K, "topk": _TOP_K},
    functions=("top_k",),
    result_type=argument_type,
    measure=_measure,
    estimator=_estimator,
    gives_list=True,
)
