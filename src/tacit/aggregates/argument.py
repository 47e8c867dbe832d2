"""The argument of an aggregate on a grid of integers, and the refusal of one that has no bounds."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from fractions import Fraction

from tacit.aggregates.base import BoundAggregate, QuantizedArgument
from tacit.arithmetic import largest_power_of_ten
from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.bound import LEAST_INT, MOST_INT, TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, refuse_arguments, single_operand
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, Case, Clamp, Literal, Quantize, Scalar, find_location
from tacit.query.suggest import clamp, is_known
from tacit.query.timestamps import HOUR, MINUTE, SECOND, to_datetime
from tacit.query.types import NUMERIC_TYPES, ORDERED_TYPES, TIME_TYPES, Type

FINEST = 2**40  # steps between zero and the larger bound; a finer grid than this tells nothing more
FINEST_SQUARE = 2**30  # the same where the square of a value must fit 64 bits
_SMALLEST = Fraction(1, 10**100)  # a step below this, and one over it, are out of a double's reach
_STEPS = 10**9  # steps at least of a float that has no grid of its own
_FORMER_STEPS = 10**6  # the same in earlier versions, also where a grid was too fine
_MOST_MOMENTS = 10**6  # seconds of 11 days, or minutes of two years


def quantize_argument(
    aggregate: Aggregate,
    argument: TypedScalar,
    finest: int = FINEST,
    *,
    dates: bool = False,
    has_fine_grid: bool = True,
) -> QuantizedArgument:
    """Return the argument on its grid, rounded outward; refused where it has no bounds.

    `has_fine_grid` is False for the plans of earlier versions.
    """
    name = quote_aggregate(aggregate)
    if dates and argument.type is Type.TIMESTAMP and argument.lower is not None and argument.upper is not None:
        return _quantize_timestamp(argument.scalar, int(argument.lower), int(argument.upper))
    if dates and argument.type is Type.DATE and argument.lower is not None and argument.upper is not None:
        return QuantizedArgument(argument.scalar, Fraction(1), int(argument.lower), int(argument.upper))
    if argument.type not in (ORDERED_TYPES if dates else NUMERIC_TYPES):
        needed = "a number or a date" if dates else "a number"
        what = f"{name} needs {needed}, got {argument.type or 'NULL'}"
        fix, instead = _fix_type(aggregate, argument)
        raise Refused(ErrorCode.TYPE, what, at=aggregate.at, fix=fix, instead=instead)
    if not argument.is_bounded and argument.capped is not None:
        argument = argument.capped
    if not argument.is_bounded or argument.lower is None or argument.upper is None:
        raise refuse_unbounded(aggregate, argument)
    size = max(abs(argument.lower), abs(argument.upper))
    if argument.type is Type.INT:
        if finest == FINEST_SQUARE < size:
            what = f"{name} has bounds whose squares do not fit the machine"
            clamped = quote_clamped(aggregate, argument, low=f"-{finest}", high=str(finest))
            raise Refused(ErrorCode.OVERFLOW, what, at=aggregate.at, fix=f"clamp it: {clamped}", instead=clamped)
        # Interval arithmetic has bounded it already; clamping once more costs little, and trusts nobody.
        whole = isinstance(argument.scalar, Clamp | Literal) or is_never_null(argument.scalar)
        scalar = argument.scalar if whole else Clamp(argument.scalar, argument.lower, argument.upper, whole=True)
        return QuantizedArgument(scalar, Fraction(1), int(argument.lower), int(argument.upper))
    step = argument.step or Fraction(0)
    if step < _SMALLEST or size / step > finest:
        step = _fit_step(step, size, finest if has_fine_grid else None)
    lower, upper = math.floor(argument.lower / step), math.ceil(argument.upper / step)
    scalar = argument.scalar
    if isinstance(scalar, Clamp) and not scalar.note and (scalar.lower, scalar.upper) == (lower * step, upper * step):
        scalar = scalar.operand  # rounding moves nothing across a point of the grid, so clamping once is enough
    return QuantizedArgument(Quantize(scalar, step, lower, upper), step, lower, upper)


def _fit_step(step: Fraction, size: Fraction, finest: int | None) -> Fraction:
    """Return the grid of a float up to `size` that has none, or one that is too fine; None is that of earlier versions.

    That is the least multiple of its own grid that is not too fine, and without one a power of ten that is at most a
    billionth of `size`. A value is rounded by half a step, which error bars do not hold: over N rows that is at most
    N size / 2e9, and the noise of a sum is at least size / epsilon.
    """
    if not size:
        return Fraction(1)
    if finest is not None and step >= _SMALLEST:
        return step * math.ceil(size / step / finest)
    steps = _FORMER_STEPS if finest is None else min(_STEPS, finest // 10)
    return largest_power_of_ten(max(size, _SMALLEST) / steps)


def quantize_bound(bound: BoundAggregate, finest: int = FINEST, *, dates: bool = False) -> QuantizedArgument:
    """Return the argument of a bound aggregate on its grid."""
    aggregate, argument = bound.aggregate, bound.required_argument
    return quantize_argument(aggregate, argument, finest, dates=dates, has_fine_grid=bound.has_fine_grid)


def _fix_type(aggregate: Aggregate, argument: TypedScalar) -> tuple[str, str | None]:
    """Return what to ask in the place of an aggregate of another type than it takes, and that as SQL."""
    inner, filtered = quote_argument(aggregate), quote_filter(aggregate)
    match argument.type:
        case None:
            return "give it a column", None
        case Type.BOOL:
            if aggregate.function == "avg":
                instead = quote_with(aggregate, f"CAST({inner} AS INT)")
                return f"take 1 where it holds and 0 where it does not: {instead}", instead
            counted = inner if filtered is None else f"({filtered}) AND ({inner})"
            instead = f"COUNT(*) FILTER (WHERE {counted})"
            return f"count the rows where it holds: {instead}", instead
        case Type.DATE if argument.lower is not None and argument.upper is not None:
            days = f"{inner} - DATE '{datetime.date.fromordinal(int(argument.lower))}'"
            return f"count days: {quote_with(aggregate, days)}", quote_with(aggregate, days)
        case Type.TIMESTAMP if argument.lower is not None and argument.upper is not None:
            hours = f"DATE_DIFF('hour', TIMESTAMP '{to_datetime(int(argument.lower))}', {inner})"
            return f"count hours: {quote_with(aggregate, hours)}", quote_with(aggregate, hours)
        case Type.DATE | Type.TIMESTAMP:
            return "count the days from a date, and ask the owner for lower and upper", None
    instead = f"COUNT({inner})" + ("" if filtered is None else f" FILTER (WHERE {filtered})")
    return f"count the rows that have a value: {instead}", instead


def _quantize_timestamp(scalar: Scalar, lower: int, upper: int) -> QuantizedArgument:
    """Return a timestamp in whole seconds, minutes or hours, rounded down: the finest of them that are not too many.

    A histogram has an entry for each value that occurs, and microseconds hardly ever occur twice.
    """
    step = next((unit for unit in (SECOND, MINUTE) if (upper - lower) // unit <= _MOST_MOMENTS), HOUR)
    low, high = lower // step, upper // step
    whole = Clamp(Call(Function.QUOTIENT, (scalar, Literal(step))), Fraction(low), Fraction(high), whole=True)
    return QuantizedArgument(whole, Fraction(step), low, high)


def read_argument(function: str) -> Callable[[CallSyntax], Aggregate]:
    """Return the reader of an aggregate with one argument."""
    return lambda written: Aggregate(function, single_operand(written), written.distinct)


def read_conditional(function: str) -> AggregateSyntax:
    """Return the syntax of SUM_IF(x, c), which is SUM(x) FILTER (WHERE c), and of others like it."""

    def read(written: CallSyntax) -> Aggregate:
        if written.star or len(written.arguments) != 2:
            raise refuse_arguments(written, "", "give it a value, and a condition that says where it counts")
        value, condition = written.arguments
        return Aggregate(function, Case(((condition, value),), Literal(None), find_location(value)))

    return AggregateSyntax(read, usage="{}(x, x > 0)")


def is_never_null(scalar: Scalar) -> bool:
    """Whether this is a clamped column whose missing values are read as a bound."""
    match scalar:
        case Call(Function.COALESCE, (Clamp(), Literal(value))):
            return value is not None
    return False


def refuse_unbounded(aggregate: Aggregate, argument: TypedScalar) -> Refused:
    """Return the refusal of an argument without bounds: what is missing, and the clamp that would do."""
    low, high = argument.lower is not None, argument.upper is not None
    if argument.is_undeclared:
        low, high = argument.lower != LEAST_INT, argument.upper != MOST_INT
    missing = "bound" if low == high else "upper bound" if low else "lower bound"
    what = f"{quote_aggregate(aggregate)} has no {missing}, so one row could move it without limit"
    if argument.type in TIME_TYPES:
        fix = "ask the owner for lower and upper"
        return Refused(ErrorCode.UNBOUNDED, what, at=aggregate.at, fix=fix)
    instead = quote_clamped(aggregate, argument, low=None if low else "0", high=None if high else "1000")
    fix = f"clamp it: {instead}, or ask the owner for lower and upper"
    return Refused(ErrorCode.UNBOUNDED, what, at=aggregate.at, fix=fix, instead=instead)


def quote_aggregate(aggregate: Aggregate) -> str:
    """Return the aggregate in the analyst's own words."""
    return aggregate.function.upper() if aggregate.at is None else aggregate.at.words


def quote_argument(aggregate: Aggregate) -> str:
    """Return the argument in the analyst's own words, without what FILTER has put around it."""
    at = _locate_argument(aggregate)
    return "x" if at is None else at.written


def quote_filter(aggregate: Aggregate) -> str | None:
    """Return the condition of FILTER in the analyst's own words, where there is one."""
    match aggregate.argument:
        case Case(((condition, _),), Literal(None), at=at) if at is not None and at == aggregate.at:
            found = find_location(condition)
            return None if found is None else found.written
    return None


def quote_with(aggregate: Aggregate, inner: str) -> str:
    """Return the aggregate in the analyst's own words, with another argument."""
    at, old = aggregate.at, _locate_argument(aggregate)
    if at is not None and old is not None and at.start < old.start and old.end < at.end:
        return at.text[at.start : old.start] + inner + at.text[old.end : at.end]
    return f"{aggregate.function.upper()}({inner})"


def quote_clamped(aggregate: Aggregate, argument: TypedScalar, *, low: str | None, high: str | None) -> str:
    """Return the aggregate with its argument within bounds, over the rows that have a value.

    LEAST and GREATEST skip NULL, so a row without a value would count as one at the bound.
    """
    inner = quote_argument(aggregate)
    clamped = clamp(inner, low=low, high=high)
    if not argument.nullable:
        return quote_with(aggregate, clamped)
    if quote_filter(aggregate) is None:
        return f"{quote_with(aggregate, clamped)} FILTER (WHERE {is_known(inner)})"
    return quote_with(aggregate, f"CASE WHEN {is_known(inner)} THEN {clamped} END")


def _locate_argument(aggregate: Aggregate) -> SourceLocation | None:
    match aggregate.argument:
        case None:
            return None
        case Case(((_, value),), Literal(None), at=at) if at is not None and at == aggregate.at:  # made of FILTER
            return find_location(value)
    return find_location(aggregate.argument)
