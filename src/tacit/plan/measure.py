"""What is measured, and how far one unit moves it.

Each aggregate needs some integer vectors over the groups, which get noise, or a choice in each group. What is needed
twice is measured once. The price is split in proportion to `weight`, which is the same for all vectors but those of a
variance: relative to their declared range vectors have the same sensitivity, so an even split makes the largest of the
relative errors least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.answers.recipe import Chosen, Mean, Plain, Point, Several, Spread, Total, Value
from tacit.arithmetic import largest_power_of_ten
from tacit.errors import Code, Refused
from tacit.plan.bounds import Bound
from tacit.privacy.sensitivity import Contribution, l1
from tacit.privacy.unit import Neighbors
from tacit.query.functions import Fn
from tacit.query.nodes import Aggregate, Call, Case, Clamp, Literal, Measure, Quantize, Scalar, place_of
from tacit.query.types import NUMBERS, Key, Type

_FINEST = 2**40  # steps between zero and the larger bound; a finer grid than this tells nothing more
_FINEST_SQUARE = 2**30  # the same where the square of a value must fit 64 bits
_SMALLEST = Fraction(1, 10**100)  # a step below this, and one over it, are out of a double's reach
_DEFAULT = 10**6  # steps of a float that has no grid of its own
SPREADS = frozenset({"var_samp", "var_pop", "stddev_samp", "stddev_pop"})
POINTS = frozenset({"min", "max", "quantile"})
_INSTEAD: dict[Type | None, str] = {
    Type.BOOL: "COUNT(*) FILTER (WHERE x)",
    Type.DATE: "MEDIAN(x) takes dates; or count days first: x - DATE '2025-01-01'",
}


@dataclass(frozen=True)
class Vector:
    """An integer for each group: a linear combination of measures, to which a row adds from `lower` to `upper`.

    With `once`, all rows of a unit in a group add that much together.
    """

    terms: tuple[tuple[int, Measure], ...]
    lower: int
    upper: int
    unit: Fraction
    once: bool = False
    name: str = field(default="", compare=False, repr=False)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What an engine is asked for."""
        return tuple(measure for _, measure in self.terms)

    @property
    def counts_rows(self) -> bool:
        """Whether every row adds one, or every unit does: then the number also says whether a group may be shown."""
        return self.terms in (((1, Measure("count", None)),), ((1, Measure("units", None)),))


@dataclass(frozen=True)
class Grid:
    """An argument as integers: value = integer * step, lower <= integer <= upper."""

    scalar: Scalar
    step: Fraction
    lower: int
    upper: int


@dataclass(frozen=True)
class Rank:
    """A point of a grid in each group, chosen by its rank: the share 1/2 is the median, 0 the least, 1 the largest."""

    measure: Measure
    share: Fraction
    grid: Grid
    name: str = field(default="", compare=False, repr=False)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What an engine is asked for."""
        return (self.measure,)


@dataclass(frozen=True)
class Most:
    """The declared keys that are most frequent in each group, so many of them, the first first."""

    measure: Measure
    values: tuple[Key, ...]
    count: int = 1
    name: str = field(default="", compare=False, repr=False)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What an engine is asked for."""
        return (self.measure,)


Need = Vector | Rank | Most


def needs(
    aggregate: Aggregate, argument: Bound | None, values: tuple[Key, ...] | None, of_unit: bool, averaged: bool = False
) -> tuple[Need, ...]:
    """What an aggregate is made of, in the order in which `finished` reads it.

    A sum whose argument is `averaged` too is made of what the average needs. That is cheaper by a vector, and a sum
    alone would have to share the price with them: of three vectors each gets a third, of two a half.
    """
    if aggregate.function == "count":
        return (_distinct(aggregate, argument, of_unit) if aggregate.distinct else _count(aggregate, argument),)
    assert argument is not None
    if aggregate.function in {"mode", "top_k"}:
        return (_most(aggregate, argument, values),)
    if aggregate.function in POINTS:
        share = {"min": Fraction(0), "max": Fraction(1)}.get(aggregate.function, aggregate.share)
        assert share is not None
        grid = gridded(aggregate, argument, dates=True)
        return (Rank(Measure("histogram", grid.scalar), share, grid, said(aggregate)),)
    grid = gridded(aggregate, argument, _FINEST_SQUARE if aggregate.function in SPREADS else _FINEST)
    total = Measure("sum", grid.scalar)
    if aggregate.function == "sum" and not averaged:
        return (Vector(((1, total),), grid.lower, grid.upper, grid.step, name=said(aggregate)),)
    # Twice the value less twice the center of its range: an integer, at most the width of the range in size. It counts
    # on a row that is counted being summed, so where COUNT(*) counts, a NULL that cannot be would be summed as `lower`.
    width = grid.upper - grid.lower
    count = _count(aggregate, argument, grid)
    ((_, rows),) = count.terms
    scalar = grid.scalar
    if rows.argument is None and not never_null(grid.scalar):
        scalar = Call(Fn.COALESCE, (grid.scalar, Literal(grid.lower)))
    centered = ((2, Measure("sum", scalar)), (-(grid.lower + grid.upper), rows))
    first = Vector(centered, -width, width, grid.step / 2, name=f"centered sum of {said(aggregate)}")
    if aggregate.function in {"avg", "sum"}:
        return first, count
    # The squared distance from the center of the range, times eight and less half of what it can be: with y twice the
    # distance in steps, 2 y^2 - width^2 lies in [-width^2, width^2].
    twice = Call(Fn.SUBTRACT, (Call(Fn.MULTIPLY, (Literal(2), scalar)), Literal(grid.lower + grid.upper)))
    square = Measure("sum", Clamp(Call(Fn.MULTIPLY, (twice, twice)), Fraction(0), Fraction(width**2), whole=True))
    squares = ((2, square), (-(width**2), rows))
    name = f"centered squares of {said(aggregate)}"
    return Vector(squares, -(width**2), width**2, grid.step**2 / 8, name=name), first, count


def weights(aggregate: Aggregate) -> tuple[Fraction, ...]:
    """How the price is shared between what an aggregate needs.

    A mean's error is that of its sum over the count and, at most, as much again from the count: evenly. A variance's
    is, per row and in units of the squared range, 1/8 from the squares, up to 1/2 from the sum and up to 5/8 from the
    count; the sum of a_i/e_i is least where e_i is proportional to the root of a_i.
    """
    if aggregate.function in SPREADS:
        return Fraction(45, 100), Fraction(9, 10), Fraction(1)
    return (Fraction(1), Fraction(1))


def finished(aggregate: Aggregate, argument: Bound | None, parts: tuple[Need, ...], positions: list[int]) -> Value:
    """How the released parts at these positions make the aggregate's value."""
    if aggregate.function == "count":
        return Plain(positions[0], Type.INT)
    assert argument is not None
    assert argument.type is not None
    match parts[0]:
        case Most(_, values, count):
            return Several(positions[0], values, count) if aggregate.count else Chosen(positions[0], values)
        case Rank(_, _, grid):
            return Point(positions[0], grid.step, argument.type)
    if aggregate.function == "sum" and len(parts) == 1:
        return Plain(positions[0], argument.type)
    grid = gridded(aggregate, argument, _FINEST_SQUARE if aggregate.function in SPREADS else _FINEST)
    center = grid.step * (grid.lower + grid.upper) / 2
    lower, upper = grid.step * grid.lower, grid.step * grid.upper
    if aggregate.function == "sum":
        return Total(positions[0], positions[1], center, argument.type)
    mean = Mean(positions[-2], positions[-1], center, lower, upper)
    if aggregate.function == "avg":
        return mean
    return Spread(positions[0], mean, aggregate.function.endswith("_samp"), aggregate.function.startswith("stddev"))


def sensitivity(vector: Vector, each: Contribution, neighbors: Neighbors, groups: int | None) -> int:
    """How far one unit moves the vector, in L1; `groups` is how many there are, None where that is private."""
    rows = Contribution(each.groups, 1) if vector.once else each
    return l1(rows, vector.lower, vector.upper, neighbors, 2 * each.groups if groups is None else groups)


def worst(each: Contribution, named: bool) -> Contribution:
    """What the rows of one unit are priced as: what was kept of it where units are `named`, else its rows in one group.

    **Theorem.** Where a row is its own unit and stands in t rows of the source, it moves vectors and choices by no more
    than t rows in one group do, however its rows lie among the groups.

    *Proof.* Go from one neighbor to the other row by row, in t steps: each adds one, takes one away, or replaces one. A
    step moves a vector by at most the norm that the sensitivity of one row in one group says (under replace of one row
    in each of two groups), and t rows in one group are charged t times that. A choice in a group that s rows come to or
    leave loses at most s/t of what it does for t rows, because the scores move by as much less. Under add-remove the s
    of all groups add up to at most t. Under replace let a come and b leave: take a group with those that grow if
    a >= b and with those that shrink if not; in each of the two sets the larger of a and b adds up to at most t, which
    is one group's price, and two are paid. Losses whose ranges add up to a range have that range together.
    """
    return each if named else Contribution(1, each.rows)


def moved(each: Contribution, neighbors: Neighbors, groups: int | None) -> int:
    """In how many groups a unit can be felt: those it is in, and under replace those of the other unit too."""
    most = each.groups if neighbors is Neighbors.ADD_REMOVE else 2 * each.groups
    return most if groups is None else min(most, groups)


def felt(each: Contribution, neighbors: Neighbors, groups: int | None) -> int:
    """As how many choices those in all groups are priced, each of them made for r rows of a unit.

    **Theorem.** Where a unit has at most T >= r rows in all, they cost no more than floor(2T/(r + 1)) of them, under
    replace twice as many. That is one, and two, for r = T.

    *Proof.* A choice in a group that s rows come to or leave loses at most s/r of what it does for r rows, because the
    scores move by as much less. Losses whose ranges, or whose epsilons, add up to that of one choice cost what one
    does. So put groups together as long as their s add up to at most r: into n bundles, as few as there can be. Any two
    of them have more than r rows, or they would be one; added up over all pairs, (n - 1) T >= (r + 1) n (n - 1)/2, so
    n <= 2T/(r + 1), and for n = 1 too because T >= r. Under replace let a rows come to a group and b leave it: s is the
    larger. Bundle the groups with a >= b, and then the others: in each of these two sets s adds up to at most T.
    """
    if each.total is None:
        return moved(each, neighbors, groups)
    bundles = 2 * each.total // (each.rows + 1)
    return min(moved(each, neighbors, groups), bundles if neighbors is Neighbors.ADD_REMOVE else 2 * bundles)


def euclidean(vector: Vector, each: Contribution, neighbors: Neighbors, groups: int | None) -> tuple[int, int]:
    """(shift, coordinates) such that one unit moves the vector by at most shift * sqrt(coordinates) in L2.

    With a cap on all rows it may do so along more coordinates than these.

    **Theorem.** Let a unit have at most r rows in each of k groups, M = max(|lower|, |upper|), W = max(upper, 0) -
    min(lower, 0) and j = max(0, 2k - groups). Add-remove: k coordinates by r M. Replace: with
    c coordinates in both of the units, the squared distance is at most r^2 (c W^2 + 2 (k - c) M^2), c from j to k.
    That is linear in c, so at most the larger of k W^2 and j W^2 + 2 (k - j) M^2 (times r^2). If W^2 >= 2 M^2 it is at
    most k W^2; otherwise, if j = 0, at most 2k M^2; otherwise at most (2k - j) W^2, as W >= M. With at most T rows in
    all it is that of k = ceil(T/r) groups, if these are fewer. Proof: for so many rows a and b of the units in each
    group the squared distance is at most the sum of max(a P + b N, a N + b P)^2, with P and N the largest and the least
    that a row adds, counted from zero. That is convex in the numbers of rows, so over those from 0 to r of which each
    unit has at most r ceil(T/r) it is largest in a corner, where every number is 0 or r: ceil(T/r) groups of r rows.
    """
    k = each.groups if groups is None else min(each.groups, groups)
    rows = 1 if vector.once else each.rows
    if each.total is not None and not vector.once:
        k = min(k, -(-each.total // rows))
    size = max(abs(vector.lower), abs(vector.upper))
    if neighbors is Neighbors.ADD_REMOVE:
        return rows * size, k
    width = max(vector.upper, 0) - min(vector.lower, 0)
    both = 0 if groups is None else max(0, 2 * k - groups)
    if width**2 >= 2 * size**2:
        return rows * width, k
    return (rows * size, 2 * k) if both == 0 else (rows * width, 2 * k - both)


def _count(aggregate: Aggregate, argument: Bound | None, grid: Grid | None = None) -> Vector:
    """COUNT(x) looks only at whether x is NULL; where it cannot be, it is COUNT(*)."""
    if argument is None or not argument.nullable:
        return Vector(((1, Measure("count", None)),), 1, 1, Fraction(1), name="COUNT(*)")
    name = said(aggregate) if aggregate.function == "count" else f"count of {said(aggregate)}"
    if grid is None and argument.bounded and argument.type in NUMBERS:
        grid = gridded(aggregate, argument)
    if grid is not None:  # the very value that AVG sums
        return Vector(((1, Measure("count", grid.scalar)),), 1, 1, Fraction(1), name=name)
    present = Case(((Call(Fn.IS_NULL, (argument.scalar,)), Literal(None)),), Literal(1))
    return Vector(((1, Measure("count", present)),), 1, 1, Fraction(1), name=name)


def _distinct(aggregate: Aggregate, argument: Bound | None, of_unit: bool) -> Vector:
    """COUNT(DISTINCT unit) moves by one for a unit; COUNT(DISTINCT x) by at most as many as the unit has rows.

    Proof of the second: the number of distinct values of a multiset moves by at most one for each row added or removed,
    and under replace it moves by at most as many as the larger of the two units has rows.
    """
    if of_unit:
        return Vector(((1, Measure("units", None)),), 1, 1, Fraction(1), once=True, name=said(aggregate))
    assert argument is not None
    if argument.type is None:
        raise Refused(Code.TYPE, f"{said(aggregate)} counts nothing", at=aggregate.at, fix="give it a column")
    scalar = argument.scalar
    if argument.type is Type.FLOAT:
        if not argument.bounded:
            what = f"{said(aggregate)} is of a float without bounds, so it has no grid to tell values apart on"
            fix = f"clamp it: {_with(aggregate, f'GREATEST(0, LEAST({_inner(aggregate)}, 1000))')}"
            raise Refused(Code.UNBOUNDED, what, at=aggregate.at, fix=fix)
        scalar = gridded(aggregate, argument).scalar
    return Vector(((1, Measure("distinct", scalar)),), 0, 1, Fraction(1), name=said(aggregate))


def _most(aggregate: Aggregate, argument: Bound, values: tuple[Key, ...] | None) -> Most:
    """MODE(x), or the list that starts with it. MODE(x) and TOP_K(x, 1) are one choice, paid once."""
    count = aggregate.count or 1
    if values is None:
        fix = f"ask for a column with declared values; or GROUP BY it and ORDER BY COUNT(*) DESC LIMIT {count}"
        raise Refused(Code.PRIVATE_KEY, f"{said(aggregate)} needs declared values", at=aggregate.at, fix=fix)
    if count > len(values):
        what = f"{said(aggregate)} names more values than the {len(values):,} that are declared"
        raise Refused(Code.UNSUPPORTED, what, at=aggregate.at, fix=f"name at most {len(values):,}")
    return Most(Measure("histogram", argument.scalar), values, count, said(aggregate))


def gridded(aggregate: Aggregate, argument: Bound, finest: int = _FINEST, *, dates: bool = False) -> Grid:
    """The argument on its grid, rounded outward; refused where it has no bounds."""
    name = said(aggregate)
    if dates and argument.type is Type.DATE and argument.lower is not None and argument.upper is not None:
        return Grid(argument.scalar, Fraction(1), int(argument.lower), int(argument.upper))
    if argument.type not in ({*NUMBERS, Type.DATE} if dates else NUMBERS):
        needed = "a number or a date" if dates else "a number"
        fix = _INSTEAD.get(argument.type, "COUNT(x) counts values of any type")
        raise Refused(Code.TYPE, f"{name} needs {needed}, got {argument.type or 'NULL'}", at=aggregate.at, fix=fix)
    if not argument.bounded or argument.lower is None or argument.upper is None:
        raise _unbounded(aggregate, argument)
    size = max(abs(argument.lower), abs(argument.upper))
    if argument.type is Type.INT:
        if finest == _FINEST_SQUARE < size:
            what = f"{name} has bounds whose squares do not fit the machine"
            inner = _inner(aggregate)
            clamped = _with(aggregate, f"GREATEST(-{finest}, LEAST({inner}, {finest}))")
            raise Refused(Code.OVERFLOW, what, at=aggregate.at, fix=f"clamp it: {clamped}")
        # Interval arithmetic has bounded it already; clamping once more costs little, and trusts nobody.
        whole = isinstance(argument.scalar, Clamp | Literal) or never_null(argument.scalar)
        scalar = argument.scalar if whole else Clamp(argument.scalar, argument.lower, argument.upper, whole=True)
        return Grid(scalar, Fraction(1), int(argument.lower), int(argument.upper))
    step = argument.step or Fraction(0)
    if step < _SMALLEST or size / step > finest:
        step = largest_power_of_ten(max(size, _SMALLEST) / _DEFAULT) if size else Fraction(1)
    lower, upper = math.floor(argument.lower / step), math.ceil(argument.upper / step)
    scalar = argument.scalar
    if isinstance(scalar, Clamp) and (scalar.lower, scalar.upper) == (lower * step, upper * step):
        scalar = scalar.operand  # rounding moves nothing across a point of the grid, so clamping once is enough
    return Grid(Quantize(scalar, step, lower, upper), step, lower, upper)


def never_null(scalar: Scalar) -> bool:
    """Whether this is a clamped column whose missing values are read as a bound."""
    match scalar:
        case Call(Fn.COALESCE, (Clamp(), Literal(value))):
            return value is not None
    return False


def _unbounded(aggregate: Aggregate, argument: Bound) -> Refused:
    """What is missing, and the clamp that would do."""
    inner = _inner(aggregate)
    low, high = argument.lower is not None, argument.upper is not None
    if argument.undeclared:
        low, high = argument.lower != -(2**63), argument.upper != 2**63 - 1
    missing = "bound" if low == high else "upper bound" if low else "lower bound"
    what = f"{said(aggregate)} has no {missing}, so one row could move it without limit"
    if argument.type is Type.DATE:
        fix = "ask the owner for lower and upper"
        return Refused(Code.UNBOUNDED, what, at=aggregate.at, fix=fix)
    capped = inner if high else f"LEAST({inner}, 1000)"
    clamped = capped if low else f"GREATEST(0, {capped})"
    fix = f"clamp it: {_with(aggregate, clamped)}, or ask the owner for lower and upper"
    return Refused(Code.UNBOUNDED, what, at=aggregate.at, fix=fix)


def _inner(aggregate: Aggregate) -> str:
    """The argument in the analyst's own words."""
    at = None if aggregate.argument is None else place_of(aggregate.argument)
    return "x" if at is None else at.words


def _with(aggregate: Aggregate, inner: str) -> str:
    """The aggregate in the analyst's own words, with another argument."""
    at, old = aggregate.at, None if aggregate.argument is None else place_of(aggregate.argument)
    if at is not None and old is not None and at.line == old.line:
        start = old.column - at.column
        if start > 0 and at.words[start : start + old.length] == old.words:
            return at.words[:start] + inner + at.words[start + old.length :]
    return f"{aggregate.function.upper()}({inner})"


def said(aggregate: Aggregate) -> str:
    """The aggregate in the analyst's own words."""
    return aggregate.function.upper() if aggregate.at is None else aggregate.at.words
