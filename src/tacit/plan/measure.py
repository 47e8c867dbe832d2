"""What is measured, how far one unit moves it, and with which noise.

Each aggregate needs one or two integer vectors over the groups; a vector needed twice is measured once. The price is
split evenly between the vectors: relative to their declared range all have the same sensitivity, so an even split makes
the largest of the relative errors least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.answers.recipe import Mean, Plain
from tacit.arithmetic import largest_power_of_ten
from tacit.errors import Code, Refused
from tacit.plan.bind import Bound
from tacit.policy.model import ROW, Table
from tacit.privacy.sensitivity import Contribution, l1
from tacit.privacy.unit import Neighbors
from tacit.query.functions import Fn
from tacit.query.nodes import Aggregate, Call, Case, Clamp, Literal, Measure, Quantize, Scalar
from tacit.query.types import NUMBERS, Type

_FINEST = 2**40  # steps between zero and the larger bound; a finer grid than this tells nothing more
_SMALLEST = Fraction(1, 10**100)  # a step below this, and one over it, are out of a double's reach
_DEFAULT = 10**6  # steps of a float that has no grid of its own


@dataclass(frozen=True)
class Vector:
    """An integer for each group: a linear combination of measures, to which a row adds from `lower` to `upper`."""

    terms: tuple[tuple[int, Measure], ...]
    lower: int
    upper: int
    unit: Fraction
    name: str = field(compare=False, repr=False)


@dataclass(frozen=True)
class Grid:
    """An argument as integers: value = integer * step, lower <= integer <= upper."""

    scalar: Scalar
    step: Fraction
    lower: int
    upper: int


def kept(table: Table, groups: int) -> tuple[str | None, Contribution]:
    """The unit's column, if rows must be bounded, and what one unit keeps of an answer with `groups` groups.

    With unit = row every unit has one row, which lies in one group.
    """
    if table.unit == ROW:
        return None, Contribution(groups=1, rows=1)
    return table.unit, Contribution(groups=min(table.max_groups, groups), rows=table.max_rows_per_group)


def vectors(aggregate: Aggregate, argument: Bound | None) -> tuple[Vector, ...]:
    """The vectors that an aggregate is made of: for AVG the centered sum, then the count."""
    count = _count(aggregate, argument)
    if aggregate.function == "count":
        return (count,)
    assert argument is not None
    grid = _grid(aggregate, argument)
    total = Measure("sum", grid.scalar)
    if aggregate.function == "sum":
        return (Vector(((1, total),), grid.lower, grid.upper, grid.step, said(aggregate)),)
    # Twice the value less twice the center of its range: an integer, at most the width of the range in size. It counts
    # on a row that is counted being summed, so where COUNT(*) counts, a NULL that cannot be would be summed as `lower`.
    width = grid.upper - grid.lower
    ((_, rows),) = count.terms
    if rows.argument is None:
        total = Measure("sum", Call(Fn.COALESCE, (grid.scalar, Literal(grid.lower))))
    centered = ((2, total), (-(grid.lower + grid.upper), rows))
    return Vector(centered, -width, width, grid.step / 2, f"centered sum of {said(aggregate)}"), count


def finished(aggregate: Aggregate, argument: Bound | None, positions: list[int]) -> Plain | Mean:
    """How the released vectors at these positions make the aggregate's value."""
    if aggregate.function == "count":
        return Plain(positions[0], Type.INT)
    assert argument is not None
    assert argument.type is not None
    if aggregate.function == "sum":
        return Plain(positions[0], argument.type)
    grid = _grid(aggregate, argument)
    center = grid.step * (grid.lower + grid.upper) / 2
    return Mean(positions[0], positions[1], center, grid.step * grid.lower, grid.step * grid.upper)


def sensitivity(vector: Vector, each: Contribution, neighbors: Neighbors, groups: int) -> int:
    """How far one unit moves the vector, in L1."""
    return l1(each, vector.lower, vector.upper, neighbors, groups)


def _count(aggregate: Aggregate, argument: Bound | None) -> Vector:
    """COUNT(x) looks only at whether x is NULL; where it cannot be, it is COUNT(*)."""
    if argument is None or not argument.nullable:
        return Vector(((1, Measure("count", None)),), 1, 1, Fraction(1), "COUNT(*)")
    counted = argument.scalar
    if argument.bounded and argument.type in NUMBERS:
        counted = _grid(aggregate, argument).scalar  # the very value that AVG sums
    present = Case(((Call(Fn.IS_NULL, (counted,)), Literal(None)),), Literal(1))
    name = said(aggregate) if aggregate.function == "count" else f"count of {said(aggregate)}"
    return Vector(((1, Measure("count", present)),), 1, 1, Fraction(1), name)


def _grid(aggregate: Aggregate, argument: Bound) -> Grid:
    """The argument on its grid, rounded outward; refused where it has no bounds."""
    name = said(aggregate)
    if argument.type not in {Type.INT, Type.FLOAT}:
        fix = "COUNT(*) FILTER (WHERE x)" if argument.type is Type.BOOL else "COUNT(x) counts values of any type"
        raise Refused(Code.TYPE, f"{name} needs a number, got {argument.type or 'NULL'}", at=aggregate.at, fix=fix)
    if not argument.bounded or argument.lower is None or argument.upper is None:
        raise _unbounded(aggregate, argument)
    if argument.type is Type.INT:
        # Interval arithmetic has bounded it already; clamping once more costs little, and trusts nobody.
        whole = isinstance(argument.scalar, Clamp | Literal)
        scalar = argument.scalar if whole else Clamp(argument.scalar, argument.lower, argument.upper, whole=True)
        return Grid(scalar, Fraction(1), int(argument.lower), int(argument.upper))
    size = max(abs(argument.lower), abs(argument.upper))
    step = argument.step or Fraction(0)
    if step < _SMALLEST or size / step > _FINEST:
        step = largest_power_of_ten(max(size, _SMALLEST) / _DEFAULT) if size else Fraction(1)
    lower, upper = math.floor(argument.lower / step), math.ceil(argument.upper / step)
    return Grid(Quantize(argument.scalar, step, lower, upper), step, lower, upper)


def _unbounded(aggregate: Aggregate, argument: Bound) -> Refused:
    """What is missing, and the clamp that would do."""
    inner = getattr(getattr(aggregate.argument, "at", None), "words", "x")
    low, high = argument.lower is not None, argument.upper is not None
    if argument.undeclared:
        low, high = argument.lower != -(2**63), argument.upper != 2**63 - 1
    missing = "bound" if low == high else "upper bound" if low else "lower bound"
    capped = inner if high else f"LEAST({inner}, 1000)"
    clamped = capped if low else f"GREATEST(0, {capped})"
    what = f"{said(aggregate)} has no {missing}, so one row could move it without limit"
    fix = f"clamp it: {aggregate.function.upper()}({clamped}), or ask the owner for lower and upper"
    return Refused(Code.UNBOUNDED, what, at=aggregate.at, fix=fix)


def said(aggregate: Aggregate) -> str:
    """The aggregate in the analyst's own words."""
    return aggregate.function.upper() if aggregate.at is None else aggregate.at.words
