"""Types and public bounds of scalars, one rule for each node and function.

A bound scalar is lowered for an engine: integers that meet floats are made floats, and the range of its values is known
by interval arithmetic over declared bounds, never from the data.

**Rule.** For every row, whatever it holds, a bound scalar is NULL or a value of its type; a bound INT lies in
[lower, upper], which lies in 64 bits, and a DATE in [lower, upper] where these are known; a FLOAT computed in doubles
may pass its bounds by rounding, so whoever adds it up clamps it once more, as an integer. The bounds of a DATE are
days, counted as `date.toordinal` does.

*Proof*, by induction: the rule of each function maps every choice of operands within their bounds into the result's.
What depends on the rounding of a double is claimed of no INT and no DATE, and never excludes NULL: SIGN of a float may
be any of its three values, and a divisor or the operand of SQRT or LN may round to what its bounds exclude.

**Cost.** A value takes at most `MOST_PARTS` operations and is made of at most `MOST_TEXTS` texts of its row, also where
it stands for a column of a subquery. Engines copy an operand to guard it, so what is guarded counts several times.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from tacit.arithmetic import ball, common_step, precision
from tacit.engines.evaluate import part, truncated
from tacit.errors import Code, Place, Refused
from tacit.query.functions import (
    COMPARISONS,
    CONDITIONS,
    DATE_PARTS,
    FINISHING_ONLY,
    MOST_PATTERN,
    MOST_POSITION,
    MOST_POWER,
    MOST_TEXTS,
    UNITS,
    Fn,
)
from tacit.query.nodes import Call, Case, Clamp, Literal, Scalar, ToFloat, place_of
from tacit.query.types import NUMBERS, Key, Type, iso_date

if TYPE_CHECKING:
    from flint import arb

LEAST_INT, MOST_INT = Fraction(-(2**63)), Fraction(2**63 - 1)
MOST_PARTS = 10_000
_LARGEST_FLOAT = Fraction(10) ** 200
_LARGEST_EXPONENT = 461  # EXP of it is above the largest float
_SMALLEST_EXPONENT = -1000  # EXP of it is 0 as a double
_FINEST = 2**1100  # bounds are multiples of one over this, which is below every double

# How many operands a function takes; those that are not here take as many as the grammar lets stand.
_ARGUMENTS = dict.fromkeys([Fn.SQRT, Fn.LN, Fn.EXP, Fn.SIGN, Fn.LOWER, Fn.UPPER, Fn.TRIM, Fn.LENGTH, *DATE_PARTS], 1)
_ARGUMENTS |= {Fn.MOD: 2, Fn.POWER: 2, Fn.LIKE: 2, Fn.DATE_TRUNC: 2, Fn.DAYS: 2, Fn.SUBSTRING: 3}
# Functions that an engine keeps from what they have no value for. It copies the last operand for that, and works on
# each copy more than once while it plans: within each other they would take seconds at ten, and hours at twenty.
_GUARDED = {Fn.DIVIDE, Fn.MOD, Fn.SQRT, Fn.LN, Fn.DATE_TRUNC}
_COPIES = 4
# The units on whose first days all first days of a unit lie.
_ALSO = {"year": ("year", "quarter", "month"), "quarter": ("quarter", "month"), "month": ("month",), "week": ("week",)}
# What holds a part of a date, within which it only goes up, and the largest there is.
_HOLDERS = {Fn.QUARTER: ("year", 4), Fn.MONTH: ("year", 12), Fn.DAY: ("month", 31), Fn.WEEKDAY: ("week", 7)}
_LONGEST = {"year": 366, "quarter": 92, "month": 31, "week": 7}


@dataclass(frozen=True)
class Bound:
    """A lowered scalar and what is publicly known of its values.

    `type` is None for a bare NULL. A bound that is None is infinite. `step` is a grid that every value lies on, up to
    rounding, or None; zero where the only value is zero. `nullable` is False only where no row can give NULL. `unit`
    is year, quarter, month or week where a DATE is always the first day of one. `texts` is how many texts a TEXT is put
    together from, and `weight` how many operations the value takes.
    """

    scalar: Scalar
    type: Type | None
    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    nullable: bool = True
    unit: str | None = None
    texts: int = 1
    weight: int = 1

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known and are more than those of the machine."""
        return self.lower is not None and self.upper is not None and not self.undeclared

    @property
    def undeclared(self) -> bool:
        """Whether this is an integer that 64 bits alone bound, on one side at least."""
        return self.type is Type.INT and (self.lower == LEAST_INT or self.upper == MOST_INT)


Leaf = Callable[[Scalar], Bound | None]


def bind(scalar: Scalar, leaf: Leaf, *, rows: bool) -> Bound:
    """A scalar with its type and bounds. `leaf` knows the nodes that are names, and may know any other whole.

    Over `rows` bounds are asked for wherever a value is computed with; released values need none.
    """
    return _Binder(leaf, rows).bind(scalar)


def domain(bound: Bound, most: int) -> tuple[Key, ...] | None:
    """All values that are not NULL, in increasing order: public, for bounds and grids are. None if more than `most`.

    Integers with declared bounds, floats on a grid of whole numbers, booleans, and dates with bounds have such a list,
    of which every value may occur as far as is publicly known. A float that rounding moves off its grid is not in it.
    """
    if bound.type is Type.BOOL:
        return (False, True) if most >= 2 else None
    if not bound.bounded or bound.lower is None or bound.upper is None:
        return None
    values: Iterator[Key]
    if bound.type is Type.DATE:
        values = _dates(bound.unit, int(bound.lower), int(bound.upper))
    elif bound.step is not None and bound.step.denominator == 1:
        values = _multiples(int(bound.step), bound.lower, bound.upper)
    elif bound.type is Type.INT:
        values = _multiples(1, bound.lower, bound.upper)
    else:
        return None
    found: tuple[Key, ...] = tuple(islice(values, most + 1))
    return found if len(found) <= most else None


class _Binder:
    """One rule for each node. `rows` asks for bounds wherever a value is computed with."""

    def __init__(self, leaf: Leaf, rows: bool) -> None:
        self.leaf = leaf
        self.rows = rows

    def bind(self, node: Scalar) -> Bound:
        known = self.leaf(node)
        if known is not None:
            return known
        match node:
            case Literal():
                return self.literal(node)
            case Case():
                return self.case(node)
            case Call(name, arguments):
                function = Fn(name)
                operands = [self.bind(argument) for argument in arguments]
                weights = [o.weight for o in operands]
                if function in _GUARDED:
                    weights.append((_COPIES - 1) * weights[-1])
                return self.weighed(self.call(node, function, operands), weights, node)
        raise AssertionError(f"nothing is known of {node!r}")

    def weighed(self, result: Bound, weights: list[int], node: Scalar) -> Bound:
        """The result, with what it takes to compute; refused where that is too much."""
        weight = 1 + sum(weights)
        if weight > MOST_PARTS:
            what, fix = "an expression has too many parts", "ask several smaller questions"
            raise Refused(Code.TOO_LARGE, what, at=place_of(node), fix=fix)
        return replace(result, weight=weight)

    def literal(self, node: Literal) -> Bound:
        match node.value:
            case None:
                return Bound(node, None)
            case bool():
                return Bound(node, Type.BOOL, nullable=False)
            case int(value):
                if not LEAST_INT <= value <= MOST_INT:
                    raise Refused(Code.OVERFLOW, f"{value} does not fit 64 bits", at=node.at, fix=f"write {value}.0")
                return Bound(node, Type.INT, Fraction(value), Fraction(value), Fraction(abs(value)), nullable=False)
            case Fraction() as number:
                if abs(number) > _LARGEST_FLOAT:
                    raise Refused(Code.OVERFLOW, "the number is too large", at=node.at, fix="use a smaller one")
                return Bound(node, Type.FLOAT, number, number, abs(number), nullable=False)
            case str():
                return Bound(node, Type.TEXT, nullable=False)
            case datetime.date():
                return _date(node.value, node)

    def call(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        if self.rows and function in FINISHING_ONLY:
            raise Refused(
                Code.UNKNOWN_FUNCTION,
                f"{function.upper()} over rows is not answered",
                at=node.at,
                fix="use FLOOR(x + 0.5)",
            )
        count = _ARGUMENTS.get(function, len(operands))
        if len(operands) != count:
            what = f"{function.upper()} takes {count} argument{'s' if count > 1 else ''}"
            raise Refused(Code.TYPE, what, at=node.at, fix="see the list of functions")
        if function in CONDITIONS:
            self.expect(operands, {Type.BOOL}, node, f"{function.upper()} takes conditions")
            return Bound(Call(function, _scalars(operands)), Type.BOOL, nullable=_any_null(operands))
        if function in COMPARISONS or function is Fn.IN:
            return self.comparison(node, function, operands)
        if function in DATE_PARTS:
            return self.date_part(node, function, operands)
        match function:
            case Fn.IS_NULL:
                return Bound(Call(function, _scalars(operands)), Type.BOOL, nullable=False)
            case Fn.LEAST | Fn.GREATEST | Fn.COALESCE:
                return self.choice(node, function, operands)
            case Fn.MOD:
                return self.modulo(node, operands)
            case Fn.POWER:
                return self.power(node, operands)
            case Fn.SQRT | Fn.LN | Fn.EXP:
                return self.curve(node, function, operands)
            case Fn.SIGN:
                return self.sign(node, operands)
            case Fn.LOWER | Fn.UPPER | Fn.TRIM | Fn.SUBSTRING | Fn.CONCAT:
                return self.text(node, function, operands)
            case Fn.LENGTH:
                return self.length(node, operands)
            case Fn.LIKE:
                return self.like(node, operands)
            case Fn.DATE_TRUNC:
                return self.date_trunc(node, operands)
            case Fn.DAYS:
                return self.days(node, operands)
            case Fn.SUBTRACT if any(o.type is Type.DATE for o in operands):
                return self.days(node, operands)
            case Fn.ROUND:
                return self.rounded(node, operands)
        return self.arithmetic(node, function, operands)

    def comparison(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        operands = self.same(node, operands)
        kind = operands[0].type
        if any(o.type is None for o in operands):
            raise Refused(Code.TYPE, "a comparison with NULL is never true", at=node.at, fix="write x IS NULL")
        if function in COMPARISONS - {Fn.EQUAL, Fn.UNEQUAL} and kind in {Type.TEXT, Type.BOOL}:
            raise Refused(
                Code.TYPE, f"{kind} has no order that all engines share", at=node.at, fix="compare with =, <> or IN"
            )
        scalars = tuple(_unclamped(operand, operands) for operand in operands)
        return Bound(Call(function, scalars), Type.BOOL, nullable=_any_null(operands))

    def choice(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        """LEAST, GREATEST and COALESCE skip NULLs, so an operand that may be NULL bounds nothing from its own side."""
        operands = self.same(node, operands)
        if function is not Fn.COALESCE:
            self.expect(operands, {*NUMBERS, Type.DATE}, node, f"{function.upper()} compares numbers and dates")
        sure = [o for o in operands if not o.nullable]
        result = _one_of(Call(function, _scalars(operands)), operands, nullable=not sure)
        if function is Fn.LEAST:
            caps = [v for v in (result.upper, *(o.upper for o in sure)) if v is not None]
            return replace(result, upper=min(caps, default=None))
        if function is Fn.GREATEST:
            floors = [v for v in (result.lower, *(o.lower for o in sure)) if v is not None]
            return replace(result, lower=max(floors, default=None))
        return result

    def case(self, node: Case) -> Bound:
        """One of the results, whatever the conditions say."""
        conditions = [self.bind(when) for when, _ in node.branches]
        self.expect(conditions, {Type.BOOL}, node, "WHEN takes a condition")
        results = self.same(node, [*(self.bind(then) for _, then in node.branches), self.bind(node.otherwise)])
        branches = tuple((c.scalar, r.scalar) for c, r in zip(conditions, results, strict=False))
        result = _one_of(Case(branches, results[-1].scalar), results, nullable=_any_null(results))
        return self.weighed(result, [o.weight for o in (*conditions, *results)], node)

    def arithmetic(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        """The operators, ABS, FLOOR and CEIL: interval arithmetic over the ends."""
        self.expect(operands, NUMBERS, node, f"{function.upper()} takes numbers")
        self.known(operands, node)
        if function in {Fn.FLOOR, Fn.CEIL} and operands[0].type is Type.INT:
            return operands[0]  # engines make it a double, which cannot hold all of it
        if function is Fn.DIVIDE or len(operands) == 2:
            operands = self.same(node, operands, force_float=function is Fn.DIVIDE)
        scalar = Call(function, _scalars(operands))
        if not self.rows:
            return Bound(scalar, operands[0].type)
        lower, upper, step = _interval(function, operands)
        # bounds may exclude zero where a double still underflows to it
        nullable = _any_null(operands) or (function is Fn.DIVIDE and not _is_constant(operands[1]))
        return self.number(node, Bound(scalar, operands[0].type, lower, upper, step, nullable))

    def modulo(self, node: Call, operands: list[Bound]) -> Bound:
        """MOD(a, b) is a - b * t with a/b cut off to the whole number t, so it has the sign of a; NULL where b is 0.

        |MOD(a, b)| <= |a| and < |b|. MOD(a, -b) = MOD(a, b), so an engine divides by |b|: dividing the least integer
        by -1 would overflow.
        """
        self.expect(operands, {Type.INT}, node, "MOD takes whole numbers")
        self.known(operands[1:], node)
        left, right = operands
        positive = right.lower is not None and right.lower >= 0
        divisor = right.scalar if positive else Call(Fn.ABS, (right.scalar,))
        scalar = Call(Fn.MOD, (left.scalar, divisor))
        if not self.rows or right.lower is None or right.upper is None:
            return Bound(scalar, Type.INT)
        most = max(abs(right.lower), abs(right.upper), Fraction(1)) - 1
        lower = -min(max(-_low(left), Fraction(0)), most)
        upper = min(max(_high(left), Fraction(0)), most)
        nullable = _any_null(operands) or right.lower <= 0 <= right.upper
        return Bound(scalar, Type.INT, lower, upper, _grid(operands), nullable)

    def power(self, node: Call, operands: list[Bound]) -> Bound:
        """POWER(x, n) for a constant whole n that is not negative, as a float; POWER(x, 0) is 1.

        It is monotone on either side of zero, so its extremes are at the ends and at zero.
        """
        self.expect(operands, NUMBERS, node, "POWER takes numbers")
        exponent = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        if not isinstance(exponent, int | Fraction) or exponent % 1 or not 0 <= exponent <= MOST_POWER:
            what = f"POWER takes a constant whole exponent from 0 to {MOST_POWER}"
            raise Refused(Code.TYPE, what, at=node.at, fix="POWER(x, 2), or 1 / POWER(x, 2)")
        self.known(operands[:1], node)
        base, n = _as_float(operands[0]), int(exponent)
        scalar = Call(Fn.POWER, (base.scalar, Literal(Fraction(n))))
        if not self.rows or base.lower is None or base.upper is None:
            return Bound(scalar, Type.FLOAT)
        ends = [base.lower**n, base.upper**n, *([Fraction(0)] if n and base.lower < 0 < base.upper else [])]
        step = None if base.step is None else base.step**n
        return self.number(node, Bound(scalar, Type.FLOAT, min(ends), max(ends), step, base.nullable))

    def curve(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        """SQRT, LN and EXP, as floats. SQRT of less than 0 and LN of 0 or less are NULL.

        All three increase, so their bounds are at the ends, rounded outward. LN falls without end toward 0: it has no
        lower bound where its operand's is not above 0. Only a constant is sure not to round to what has no value.
        """
        self.expect(operands, NUMBERS, node, f"{function.upper()} takes a number")
        self.known(operands, node)
        operand = _as_float(operands[0])
        scalar = Call(function, (operand.scalar,))
        if not self.rows or operand.lower is None or operand.upper is None:
            return Bound(scalar, Type.FLOAT)
        if function is Fn.EXP and operand.upper > _LARGEST_EXPONENT:
            raise _too_large(node.at)
        lower, upper = _curve(function, operand.lower, operand.upper)
        sure = function is Fn.EXP or (_is_constant(operand) and operand.lower > 0)
        return self.number(node, Bound(scalar, Type.FLOAT, lower, upper, nullable=operand.nullable or not sure))

    def sign(self, node: Call, operands: list[Bound]) -> Bound:
        """-1, 0 or 1. The sign of a float is that of a double, which may round to zero and beyond."""
        self.expect(operands, NUMBERS, node, "SIGN takes a number")
        (operand,) = operands
        low, high = -1, 1
        if operand.type is Type.INT:
            low, high = (_sign(_low(operand)), _sign(_high(operand)))
        scalar = Call(Fn.SIGN, _scalars(operands))
        return Bound(scalar, Type.INT, Fraction(low), Fraction(high), Fraction(1), operand.nullable)

    def text(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        """A text made of texts. NULL where one of them is."""
        texts = operands[:1] if function is Fn.SUBSTRING else operands
        self.expect(texts, {Type.TEXT}, node, f"{function.upper()} takes texts")
        for other in operands[len(texts) :]:
            value = other.scalar.value if isinstance(other.scalar, Literal) else None
            if type(value) is not int or not 1 <= value <= MOST_POSITION:
                what = "SUBSTRING takes a constant start and length, from 1"
                raise Refused(Code.TYPE, what, at=node.at, fix="SUBSTRING(x, 1, 3)")
        parts = sum(o.texts for o in texts)
        if parts > MOST_TEXTS:
            what = f"a text is put together from {parts} texts; {MOST_TEXTS} is the most"
            raise Refused(Code.TOO_LARGE, what, at=node.at, fix="put fewer together")
        return Bound(Call(function, _scalars(operands)), Type.TEXT, nullable=_any_null(texts), texts=parts)

    def length(self, node: Call, operands: list[Bound]) -> Bound:
        """The number of characters, from 0. That it ends somewhere is no bound to add noise by: none is declared."""
        self.expect(operands, {Type.TEXT}, node, "LENGTH takes a text")
        scalar = Call(Fn.LENGTH, _scalars(operands))
        return Bound(scalar, Type.INT, Fraction(0), MOST_INT, Fraction(1), operands[0].nullable)

    def like(self, node: Call, operands: list[Bound]) -> Bound:
        """Whether a text is as a constant pattern says, in which % and _ stand for others. There is no escape."""
        self.expect(operands, {Type.TEXT}, node, "LIKE takes texts")
        pattern = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        if not isinstance(pattern, str) or "\\" in pattern:
            what = "LIKE takes a constant pattern without a backslash"
            raise Refused(Code.TYPE, what, at=node.at, fix="x LIKE 'flu%': % stands for any text, _ for one character")
        if len(pattern) > MOST_PATTERN:
            what = f"a pattern has at most {MOST_PATTERN} characters"
            raise Refused(Code.TOO_LARGE, what, at=node.at, fix="write a shorter one")
        return Bound(Call(Fn.LIKE, _scalars(operands)), Type.BOOL, nullable=operands[0].nullable)

    def date_part(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        """A part of a date: YEAR, QUARTER, MONTH, DAY, or WEEKDAY from Monday = 1.

        A date without bounds may be one that has no end, whose parts are NULL.
        """
        (operand,) = self.dates(operands, node, f"{function.upper()} takes a date")
        lower, upper = _part(function, operand)
        nullable = operand.nullable or not operand.bounded
        return Bound(Call(function, (operand.scalar,)), Type.INT, lower, upper, Fraction(1), nullable)

    def date_trunc(self, node: Call, operands: list[Bound]) -> Bound:
        """The first day of the year, quarter, month or week; it increases, so its bounds are at the ends.

        A date without bounds may lie where an engine has no first day for it, so outside of the years 1 to 9999 the
        result is NULL.
        """
        unit = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
        if not isinstance(unit, str) or unit.lower() not in UNITS:
            what = f"DATE_TRUNC takes one of {', '.join(UNITS)}"
            raise Refused(Code.TYPE, what, at=node.at, fix="DATE_TRUNC('month', d)")
        unit = unit.lower()
        (operand,) = self.dates(operands[1:], node, "DATE_TRUNC takes a date")
        if unit == "day" or unit in _ALSO.get(operand.unit or "", ()):
            return operand
        scalar: Scalar = Call(Fn.DATE_TRUNC, (Literal(unit), operand.scalar))
        lower = None if operand.lower is None else _truncated(unit, operand.lower)
        upper = None if operand.upper is None else _truncated(unit, operand.upper)
        safe = operand.bounded or operand.unit is not None
        if not safe:
            first, last = Literal(datetime.date.min), Literal(datetime.date.max)
            after, before = Call(Fn.GREATER_EQUAL, (operand.scalar, first)), Call(Fn.LESS_EQUAL, (operand.scalar, last))
            scalar = Case(((Call(Fn.AND, (after, before)), scalar),), Literal(None))
        return Bound(scalar, Type.DATE, lower, upper, Fraction(1), operand.nullable or not safe, unit)

    def days(self, node: Call, operands: list[Bound]) -> Bound:
        """DAYS(a, b), or a - b, is the days from b to a; without declared bounds where one of the dates has none."""
        takes = "DAYS takes dates" if node.function == Fn.DAYS else "a date is subtracted from a date"
        left, right = self.dates(operands, node, takes)
        lower = None if left.lower is None or right.upper is None else left.lower - right.upper
        upper = None if left.upper is None or right.lower is None else left.upper - right.lower
        low, high = LEAST_INT if lower is None else lower, MOST_INT if upper is None else upper
        nullable = _any_null([left, right]) or not (left.bounded and right.bounded)
        return Bound(Call(Fn.DAYS, _scalars([left, right])), Type.INT, low, high, Fraction(1), nullable)

    def rounded(self, node: Call, operands: list[Bound]) -> Bound:
        """ROUND of a released value, to a constant number of digits."""
        self.expect(operands, NUMBERS, node, "ROUND takes numbers")
        digits = node.arguments[1:]
        if any(not isinstance(d, Literal) or not isinstance(d.value, int) or d.value > 15 for d in digits):
            raise Refused(Code.TYPE, "ROUND takes a constant number of digits", at=node.at, fix="ROUND(AVG(x), 2)")
        return Bound(Call(Fn.ROUND, _scalars(operands)), operands[0].type, nullable=operands[0].nullable)

    def known(self, operands: Iterable[Bound], node: Scalar) -> None:
        """Over rows, refuse to compute with what has no declared bounds."""
        if self.rows and not all(operand.bounded for operand in operands):
            raise Refused(
                Code.UNBOUNDED,
                "an operand has no declared bounds, so the result has none",
                at=place_of(node),
                fix="bound it first: GREATEST(0, LEAST(x, 1000)), or ask the owner for lower and upper",
            )

    def number(self, node: Call, result: Bound) -> Bound:
        """A number over rows, with bounds that stay short when they are computed with, rounded outward."""
        lower, upper, step = result.lower, result.upper, result.step
        self.fits(result, node.at)
        if lower is not None and lower.denominator > _FINEST:
            lower = Fraction(math.floor(lower * _FINEST), _FINEST)
        if upper is not None and upper.denominator > _FINEST:
            upper = Fraction(math.ceil(upper * _FINEST), _FINEST)
        if step is not None and max(step.numerator, step.denominator) > _FINEST:
            step = None
        return replace(result, lower=lower, upper=upper, step=step)

    def fits(self, result: Bound, at: Place | None) -> None:
        """Refuse what the machine's numbers could not hold."""
        low, high = (LEAST_INT, MOST_INT) if result.type is Type.INT else (-_LARGEST_FLOAT, _LARGEST_FLOAT)
        if result.lower is not None and result.upper is not None and not low < result.lower <= result.upper < high:
            raise _too_large(at)

    def same(self, node: Scalar, operands: list[Bound], force_float: bool = False) -> list[Bound]:
        """The operands in one type: integers beside floats become floats, text beside dates becomes dates."""
        kinds = {o.type for o in operands if o.type is not None}
        if Type.FLOAT in kinds | ({Type.FLOAT} if force_float else set()) and kinds <= NUMBERS:
            return [_as_float(o) for o in operands]
        if kinds == {Type.DATE, Type.TEXT}:
            return [_as_date(o, node) for o in operands]
        if len(kinds) > 1:
            names = " and ".join(sorted(kinds))
            raise Refused(Code.TYPE, f"{names} do not go together", at=place_of(node), fix="use values of one type")
        return operands

    def dates(self, operands: list[Bound], node: Scalar, what: str) -> list[Bound]:
        """The operands as dates: a text that is a date is read as one."""
        read = [_as_date(o, node) if isinstance(o.scalar, Literal) else o for o in operands]
        self.expect(read, {Type.DATE}, node, what)
        return read

    def expect(self, operands: Iterable[Bound], kinds: set[Type] | frozenset[Type], node: Scalar, what: str) -> None:
        for operand in operands:
            if operand.type not in kinds:
                fix = "leave NULL out" if operand.type is None else "check the column's type in the schema"
                found = operand.type or "NULL"
                raise Refused(Code.TYPE, f"{what}, got {found}", at=place_of(node), fix=fix)


def _unclamped(operand: Bound, operands: list[Bound]) -> Scalar:
    """An integer that is compared with constants strictly within its bounds need not be clamped: clamping moves no
    value across any of them, and makes none equal to one. A NULL that is read as a bound stays one."""
    match operand.scalar:
        case Clamp(inner, lower, upper, True):
            plain: Scalar = inner
        case Call(Fn.COALESCE, (Clamp(inner, lower, upper, True), Literal() as missing)):
            plain = Call(Fn.COALESCE, (inner, missing))
        case _:
            return operand.scalar
    for other in operands:
        value = other.scalar.value if isinstance(other.scalar, Literal) else None
        inside = isinstance(value, int) and lower is not None and upper is not None and lower < value < upper
        if other is not operand and not inside:
            return operand.scalar
    return plain


def _scalars(operands: Iterable[Bound]) -> tuple[Scalar, ...]:
    return tuple(o.scalar for o in operands)


def _any_null(operands: Iterable[Bound]) -> bool:
    return any(o.nullable for o in operands)


def _too_large(at: Place | None) -> Refused:
    what = "the result could be too large for the machine"
    return Refused(Code.OVERFLOW, what, at=at, fix="use smaller factors")


def _is_constant(operand: Bound) -> bool:
    """Whether this is a literal, and not zero as a double."""
    scalar = operand.scalar.operand if isinstance(operand.scalar, ToFloat) else operand.scalar
    return isinstance(scalar, Literal) and isinstance(scalar.value, int | Fraction) and float(scalar.value) != 0


def _low(operand: Bound) -> Fraction:
    """The lower bound of an integer."""
    return LEAST_INT if operand.lower is None else operand.lower


def _high(operand: Bound) -> Fraction:
    """The upper bound of an integer."""
    return MOST_INT if operand.upper is None else operand.upper


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


def _as_float(operand: Bound) -> Bound:
    if operand.type is not Type.INT:
        return operand
    # The bounds of the machine are as good as none; as a float such an integer has no grid that is worth knowing.
    lower = None if operand.lower == LEAST_INT else operand.lower
    upper = None if operand.upper == MOST_INT else operand.upper
    step = None if operand.undeclared else operand.step
    return replace(operand, scalar=ToFloat(operand.scalar), type=Type.FLOAT, lower=lower, upper=upper, step=step)


def _as_date(operand: Bound, node: Scalar) -> Bound:
    if operand.type is not Type.TEXT:
        return operand
    date = iso_date(str(operand.scalar.value)) if isinstance(operand.scalar, Literal) else None
    if date is not None:
        return _date(date, Literal(date))
    raise Refused(Code.TYPE, "a date is compared with a date", at=place_of(node), fix="write DATE '2025-12-31'")


def _date(day: datetime.date, scalar: Scalar) -> Bound:
    """A constant date."""
    number = Fraction(day.toordinal())
    return Bound(scalar, Type.DATE, number, number, Fraction(1), nullable=False)


def _one_of(scalar: Scalar, operands: list[Bound], nullable: bool) -> Bound:
    """A scalar whose value is always that of one of the operands."""
    kind = next((o.type for o in operands if o.type is not None), None)
    lower, upper = _hull(operands)
    texts = max(o.texts for o in operands)
    return Bound(scalar, kind, lower, upper, _grid(operands), nullable, _common_unit(operands), texts)


def _common_unit(operands: list[Bound]) -> str | None:
    """The longest unit on whose first days all operands lie, if they are dates."""
    known = [o for o in operands if o.type is not None]
    if any(o.type is not Type.DATE for o in known):
        return None
    return next((unit for unit in _ALSO if known and all(_lies_on(unit, o) for o in known)), None)


def _lies_on(unit: str, operand: Bound) -> bool:
    if operand.unit is not None:
        return unit in _ALSO[operand.unit]
    return operand.lower is not None and operand.lower == operand.upper == _truncated(unit, operand.lower)


def _truncated(unit: str, day: Fraction) -> Fraction:
    return Fraction(truncated(unit, datetime.date.fromordinal(int(day))).toordinal())


def _part(function: Fn, operand: Bound) -> tuple[Fraction, Fraction]:
    """The least and the largest part that a date may have."""
    first, last = (None if o is None else datetime.date.fromordinal(int(o)) for o in (operand.lower, operand.upper))
    if function is Fn.YEAR:
        lower = LEAST_INT if first is None else Fraction(first.year)
        return lower, MOST_INT if last is None else Fraction(last.year)
    holder, natural = _HOLDERS[function]
    if first is None or last is None or truncated(holder, first) != truncated(holder, last):
        return Fraction(1), Fraction(natural)
    return Fraction(part(function, first)), Fraction(part(function, last))


def _dates(unit: str | None, first: int, last: int) -> Iterator[datetime.date]:
    """The days from first to last, or those of them that a unit starts with."""
    if unit is None:
        yield from map(datetime.date.fromordinal, range(first, last + 1))
        return
    day = truncated(unit, datetime.date.fromordinal(first)).toordinal()
    while day <= last:
        if day >= first:
            yield datetime.date.fromordinal(day)
        after = day + _LONGEST[unit]  # in the next unit, and not beyond it
        if after > datetime.date.max.toordinal():
            return
        day = truncated(unit, datetime.date.fromordinal(after)).toordinal()


def _multiples(step: int, lower: Fraction, upper: Fraction) -> Iterator[int]:
    """The multiples of a step between two bounds; only zero is one of zero."""
    if step == 0:
        return iter(range(1) if lower <= 0 <= upper else ())
    return iter(range(math.ceil(lower / step) * step, math.floor(upper) + 1, step))


def _hull(operands: list[Bound]) -> tuple[Fraction | None, Fraction | None]:
    """The least interval that holds every operand's; NULLs have none."""
    known = [o for o in operands if o.type is not None]
    lowers = [o.lower for o in known]
    uppers = [o.upper for o in known]
    lower = None if not lowers or None in lowers else min(v for v in lowers if v is not None)
    upper = None if not uppers or None in uppers else max(v for v in uppers if v is not None)
    return lower, upper


def _grid(operands: list[Bound]) -> Fraction | None:
    """A grid that all operands lie on."""
    step = Fraction(0)
    for operand in operands:
        if operand.type is None:
            continue
        if operand.step is None:
            return None
        step = common_step(step, operand.step)
    return step


def _interval(function: Fn, operands: list[Bound]) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """Interval arithmetic, and the grid of the result."""
    (low, high), *rest = [(o.lower, o.upper) for o in operands]
    assert low is not None
    assert high is not None
    step = operands[0].step
    match function:
        case Fn.NEGATE:
            return -high, -low, step
        case Fn.ABS:
            return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high)), step
        case Fn.FLOOR:
            return Fraction(math.floor(low)), Fraction(math.floor(high)), Fraction(1)
        case Fn.CEIL:
            return Fraction(math.ceil(low)), Fraction(math.ceil(high)), Fraction(1)
    other_low, other_high = rest[0]
    assert other_low is not None
    assert other_high is not None
    match function:
        case Fn.ADD:
            return low + other_low, high + other_high, _grid(operands)
        case Fn.SUBTRACT:
            return low - other_high, high - other_low, _grid(operands)
        case Fn.MULTIPLY:
            corners = [a * b for a in (low, high) for b in (other_low, other_high)]
            other = operands[1].step
            return min(corners), max(corners), None if step is None or other is None else step * other
        case Fn.DIVIDE:
            if other_low <= 0 <= other_high:
                return None, None, None
            corners = [a / b for a in (low, high) for b in (other_low, other_high)]
            constant = other_low == other_high and step is not None
            return min(corners), max(corners), step / abs(other_low) if constant and step is not None else None
    raise AssertionError(f"no rule for {function}")


def _curve(function: Fn, low: Fraction, high: Fraction) -> tuple[Fraction | None, Fraction]:
    """Bounds of SQRT, LN or EXP between two ends; zero where there is no value at all."""
    match function:
        case Fn.SQRT:
            return _enclosed(function, max(low, Fraction(0)))[0], _enclosed(function, max(high, Fraction(0)))[1]
        case Fn.LN:
            upper = _enclosed(function, high)[1] if high > 0 else Fraction(0)
            return _enclosed(function, low)[0] if low > 0 else None, upper
    lower = _enclosed(function, low)[0] if low >= _SMALLEST_EXPONENT else Fraction(0)
    return lower, _enclosed(function, max(high, Fraction(_SMALLEST_EXPONENT)))[1]


def _enclosed(function: Fn, number: Fraction) -> tuple[Fraction, Fraction]:
    """Two rationals that the function's value lies between, or is: the ends of a certified interval."""
    with precision(128):
        operand = ball(number)
        value = {Fn.SQRT: operand.sqrt, Fn.LN: operand.log, Fn.EXP: operand.exp}[function]()
        return _rational(value.lower()), _rational(value.upper())


def _rational(exact: arb) -> Fraction:
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
