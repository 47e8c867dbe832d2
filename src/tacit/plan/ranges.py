"""What is publicly known of a scalar's values, and the arithmetic of it: intervals, grids and dates.

Bounds are exact rationals. What is computed in doubles is enclosed by certified arithmetic.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from tacit.arithmetic import common_grid_step, to_interval, working_precision
from tacit.engines.evaluate import extract_date_part, truncate_date
from tacit.plan.timestamps import FINER_UNITS, list_starts, start_of
from tacit.query.bound import LEAST_INT, MOST_INT, TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import Scalar
from tacit.query.types import TIME_TYPES, Key, Type

if TYPE_CHECKING:
    from flint import arb

SMALLEST_EXPONENT = -1000  # EXP of it is 0 as a double
# The units on whose first days all first days of a unit lie.
ALSO = {"year": ("year", "quarter", "month"), "quarter": ("quarter", "month"), "month": ("month",), "week": ("week",)}
# What holds a part of a date, within which it only goes up, and the largest there is.
_HOLDERS = {
    Function.QUARTER: ("year", 4),
    Function.MONTH: ("year", 12),
    Function.DAY: ("month", 31),
    Function.WEEKDAY: ("week", 7),
    Function.DAY_OF_YEAR: ("year", 366),
}
_LONGEST = {"year": 366, "quarter": 92, "month": 31, "week": 7}


def domain(bound: TypedScalar, most: int) -> tuple[Key, ...] | None:
    """All values that are not NULL, in increasing order: public, for bounds and grids are. None if more than `most`.

    Integers with declared bounds, floats on a grid of whole numbers, booleans, and dates and timestamps with bounds
    have such a list, of which every value may occur as far as is publicly known; so have texts made of such dates and
    integers. A float that rounding moves off its grid is not in it. A timestamp is an integer here, as it is in an
    engine.
    """
    if bound.type is Type.BOOL:
        return (False, True) if most >= 2 else None
    if bound.listing is not None:
        return bound.listing(most)
    if not bound.is_bounded or bound.lower is None or bound.upper is None:
        return None
    values: Iterator[Key]
    if bound.type is Type.DATE:
        values = _dates(bound.unit, int(bound.lower), int(bound.upper))
    elif bound.type is Type.TIMESTAMP and bound.unit is not None:
        values = list_starts(bound.unit, int(bound.lower), int(bound.upper))
    elif bound.step is not None and bound.step.denominator == 1:
        values = _multiples(int(bound.step), bound.lower, bound.upper)
    elif bound.type is Type.INT:
        values = _multiples(1, bound.lower, bound.upper)
    else:
        return None
    found: tuple[Key, ...] = tuple(islice(values, most + 1))
    return found if len(found) <= most else None


def least_of(operand: TypedScalar) -> Fraction:
    """The lower bound of an integer."""
    return LEAST_INT if operand.lower is None else operand.lower


def most_of(operand: TypedScalar) -> Fraction:
    """The upper bound of an integer."""
    return MOST_INT if operand.upper is None else operand.upper


def one_of(scalar: Scalar, operands: list[TypedScalar], nullable: bool) -> TypedScalar:
    """A scalar whose value is always that of one of the operands."""
    kind = next((o.type for o in operands if o.type is not None), None)
    lower, upper = hull(operands)
    texts = max(o.texts for o in operands)
    return TypedScalar(scalar, kind, lower, upper, grid_of(operands), nullable, _common_unit(operands), texts)


def _common_unit(operands: list[TypedScalar]) -> str | None:
    """The longest unit on whose first days, or first moments, all operands lie, if they are dates or timestamps."""
    known = [o for o in operands if o.type is not None]
    if not known or any(o.type not in TIME_TYPES or o.type is not known[0].type for o in known):
        return None
    units = ALSO if known[0].type is Type.DATE else FINER_UNITS
    return next((unit for unit in units if all(_lies_on(unit, o) for o in known)), None)


def _lies_on(unit: str, operand: TypedScalar) -> bool:
    is_date = operand.type is Type.DATE
    if operand.unit is not None:
        return unit in (ALSO if is_date else FINER_UNITS)[operand.unit]
    first = day_of if is_date else start_of
    return operand.lower is not None and operand.lower == operand.upper == first(unit, operand.lower)


def day_of(unit: str, day: Fraction) -> Fraction:
    """The first day of the unit that a day lies in."""
    return Fraction(truncate_date(unit, datetime.date.fromordinal(int(day))).toordinal())


def part_range(function: Function, operand: TypedScalar) -> tuple[Fraction, Fraction]:
    """The least and the largest part that a date may have."""
    first, last = (None if o is None else datetime.date.fromordinal(int(o)) for o in (operand.lower, operand.upper))
    if function is Function.YEAR:
        lower = LEAST_INT if first is None else Fraction(first.year)
        return lower, MOST_INT if last is None else Fraction(last.year)
    if function is Function.ISO_YEAR:  # which never decreases
        lower = LEAST_INT if first is None else Fraction(first.isocalendar().year)
        return lower, MOST_INT if last is None else Fraction(last.isocalendar().year)
    if function is Function.WEEK:  # of ISO 8601, whose years begin with a week
        years = {day.isocalendar().year for day in (first, last) if day is not None}
        if first is None or last is None or len(years) > 1:
            return Fraction(1), Fraction(53)
        return Fraction(first.isocalendar().week), Fraction(last.isocalendar().week)
    holder, natural = _HOLDERS[function]
    if first is None or last is None or truncate_date(holder, first) != truncate_date(holder, last):
        return Fraction(1), Fraction(natural)
    return Fraction(extract_date_part(function, first)), Fraction(extract_date_part(function, last))


def _dates(unit: str | None, first: int, last: int) -> Iterator[datetime.date]:
    """The days from first to last, or those of them that a unit starts with."""
    if unit is None:
        yield from map(datetime.date.fromordinal, range(first, last + 1))
        return
    day = truncate_date(unit, datetime.date.fromordinal(first)).toordinal()
    while day <= last:
        if day >= first:
            yield datetime.date.fromordinal(day)
        after = day + _LONGEST[unit]  # in the next unit, and not beyond it
        if after > datetime.date.max.toordinal():
            return
        day = truncate_date(unit, datetime.date.fromordinal(after)).toordinal()


def _multiples(step: int, lower: Fraction, upper: Fraction) -> Iterator[int]:
    """The multiples of a step between two bounds; only zero is one of zero."""
    if step == 0:
        return iter(range(1) if lower <= 0 <= upper else ())
    return iter(range(math.ceil(lower / step) * step, math.floor(upper) + 1, step))


def hull(operands: list[TypedScalar]) -> tuple[Fraction | None, Fraction | None]:
    """The least interval that holds every operand's; NULLs have none."""
    known = [o for o in operands if o.type is not None]
    lowers = [o.lower for o in known]
    uppers = [o.upper for o in known]
    lower = None if not lowers or None in lowers else min(v for v in lowers if v is not None)
    upper = None if not uppers or None in uppers else max(v for v in uppers if v is not None)
    return lower, upper


def grid_of(operands: list[TypedScalar]) -> Fraction | None:
    """A grid that all operands lie on."""
    step = Fraction(0)
    for operand in operands:
        if operand.type is None:
            continue
        if operand.step is None:
            return None
        step = common_grid_step(step, operand.step)
    return step


def interval(
    function: Function, operands: list[TypedScalar]
) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """Interval arithmetic, and the grid of the result."""
    (low, high), *rest = [(o.lower, o.upper) for o in operands]
    assert low is not None
    assert high is not None
    step = operands[0].step
    match function:
        case Function.NEGATE:
            return -high, -low, step
        case Function.ABS:
            return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high)), step
        case Function.FLOOR:
            return Fraction(math.floor(low)), Fraction(math.floor(high)), Fraction(1)
        case Function.CEIL:
            return Fraction(math.ceil(low)), Fraction(math.ceil(high)), Fraction(1)
    other_low, other_high = rest[0]
    assert other_low is not None
    assert other_high is not None
    match function:
        case Function.ADD:
            return low + other_low, high + other_high, grid_of(operands)
        case Function.SUBTRACT:
            return low - other_high, high - other_low, grid_of(operands)
        case Function.MULTIPLY:
            corners = [a * b for a in (low, high) for b in (other_low, other_high)]
            other = operands[1].step
            return min(corners), max(corners), None if step is None or other is None else step * other
        case Function.DIVIDE:
            if other_low <= 0 <= other_high:
                return None, None, None
            corners = [a / b for a in (low, high) for b in (other_low, other_high)]
            constant = other_low == other_high and step is not None
            return min(corners), max(corners), step / abs(other_low) if constant and step is not None else None
    raise AssertionError(f"no rule for {function}")


def curve_range(function: Function, low: Fraction, high: Fraction) -> tuple[Fraction | None, Fraction]:
    """Bounds of SQRT, LN, LOG10 or EXP between two ends; zero where there is no value at all."""
    match function:
        case Function.SQRT:
            return _enclose(function, max(low, Fraction(0)))[0], _enclose(function, max(high, Fraction(0)))[1]
        case Function.LN | Function.LOG10:
            upper = _enclose(function, high)[1] if high > 0 else Fraction(0)
            return _enclose(function, low)[0] if low > 0 else None, upper
    lower = _enclose(function, low)[0] if low >= SMALLEST_EXPONENT else Fraction(0)
    return lower, _enclose(function, max(high, Fraction(SMALLEST_EXPONENT)))[1]


def _enclose(function: Function, number: Fraction) -> tuple[Fraction, Fraction]:
    """Two rationals that the function's value lies between, or is: the ends of a certified interval."""
    with working_precision(128):
        operand = to_interval(number)
        curves = {Function.SQRT: operand.sqrt, Function.LN: operand.log, Function.EXP: operand.exp}
        value = operand.log() / to_interval(Fraction(10)).log() if function is Function.LOG10 else curves[function]()
        return _rational(value.lower()), _rational(value.upper())


def _rational(exact: arb) -> Fraction:
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
