"""Types and public bounds of scalars, one rule for each node and function.

A bound scalar is lowered for an engine: integers that meet floats are made floats, and the range of its values is known
by interval arithmetic over declared bounds, never from the data.

**Rule.** For every row, whatever it holds, a bound scalar is NULL or a value of its type; a bound INT lies in
[lower, upper], which lies in 64 bits, and a DATE or TIMESTAMP in [lower, upper] where these are known; a FLOAT computed
in doubles may pass its bounds by rounding, so whoever adds it up clamps it once more, as an integer. The bounds of a
DATE are days, counted as `date.toordinal` does. A TIMESTAMP is an integer (`query/timestamps.py`) and its functions are
made of those of integers and dates (`plan/timestamps.py`), so it needs no rules of its own.

*Proof*, by induction: the rule of each function maps every choice of operands within their bounds into the result's.
What depends on the rounding of a double is claimed of no INT and no DATE, and never excludes NULL: SIGN of a float may
be any of its three values, and a divisor or the operand of SQRT or LN may round to what its bounds exclude.

**Cost.** A value takes at most `MOST_PARTS` operations and is made of at most `MOST_TEXTS` texts of its row, also where
it stands for a column of a subquery. Engines copy an operand to guard it, so what is guarded counts several times.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.casts import cast
from tacit.plan.mixed import mixed_types_error
from tacit.plan.operands import (
    any_null,
    as_date,
    as_float,
    constant_date,
    drop_clamp,
    is_constant,
    scalars_of,
    within_years,
)
from tacit.plan.ranges import (
    ALSO,
    curve_range,
    day_of,
    grid_of,
    interval,
    least_of,
    most_of,
    one_of,
    part_range,
)
from tacit.plan.ranges import domain as domain
from tacit.plan.timestamps import FINER_UNITS, as_timestamp, constant_timestamp, date_of, quotient, time_part, truncate
from tacit.query.bound import LEAST_INT as LEAST_INT
from tacit.query.bound import MOST_INT as MOST_INT
from tacit.query.bound import TypedScalar as TypedScalar
from tacit.query.functions import (
    COMPARISONS,
    CONDITIONS,
    DATE_PARTS,
    DATE_UNITS,
    GROUPING,
    MAX_POWER,
    MOST_LITERAL,
    MOST_PATTERN,
    MOST_POSITION,
    MOST_TEXTS,
    POST_PROCESSING_ONLY,
    TIME_PARTS,
    TIME_UNITS,
    Function,
)
from tacit.query.nodes import Call, Case, Literal, Scalar, ScalarSubquery, Window, find_location
from tacit.query.timestamps import PERIODS
from tacit.query.types import NUMERIC_TYPES, ORDERED_TYPES, TIME_TYPES, Type

MOST_PARTS = 10_000
_LARGEST_FLOAT = Fraction(10) ** 200
_LARGEST_EXPONENT = 461  # EXP of it is above the largest float
_FINEST = 2**1100  # bounds are multiples of one over this, which is below every double

# How many operands a function takes; those that are not here take as many as the grammar lets stand.
_ARGUMENTS = dict.fromkeys(
    [
        Function.SQRT,
        Function.LN,
        Function.EXP,
        Function.SIGN,
        Function.LOWER,
        Function.UPPER,
        Function.TRIM,
        Function.LENGTH,
        *DATE_PARTS,
        *TIME_PARTS,
    ],
    1,
)
_ARGUMENTS |= {
    Function.MOD: 2,
    Function.POWER: 2,
    Function.LIKE: 2,
    Function.DATE_TRUNC: 2,
    Function.DAYS: 2,
    Function.QUOTIENT: 2,
    Function.SUBSTRING: 3,
}
# Functions that an engine keeps from what they have no value for. It copies the last operand for that, and works on
# each copy more than once while it plans: within each other they would take seconds at ten, and hours at twenty.
_GUARDED = {Function.DIVIDE, Function.MOD, Function.SQRT, Function.LN, Function.DATE_TRUNC}
_COPIES = 4


Leaf = Callable[[Scalar], TypedScalar | None]


def bind(scalar: Scalar, leaf: Leaf, *, rows: bool) -> TypedScalar:
    """A scalar with its type and bounds. `leaf` knows the nodes that are names, and may know any other whole.

    Over `rows` bounds are asked for wherever a value is computed with; released values need none.
    """
    return _Binder(leaf, rows).bind(scalar)


def _over_rows(node: Scalar) -> Refused:
    """A refusal of what is computed from released tables alone, where there is none."""
    match node:
        case Window():
            what = "a window function is not answered in WHERE, in a key or inside an aggregate over rows"
            words = "RANK() OVER (...)" if node.at is None else node.at.words
            fix = f"compute it in a subquery, and use it outside: FROM (SELECT *, {words} AS w FROM ...)"
            return Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
        case ScalarSubquery():
            what = "a subquery as a value is not answered where rows are read"
            return Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="ask for its value first, and write it here")
    what, fix = "GROUPING is of keys of grouping sets", "GROUP BY ROLLUP (x), or leave it out"
    return Refused(ErrorCode.UNSUPPORTED, what, at=find_location(node), fix=fix)


class _Binder:
    """One rule for each node. `rows` asks for bounds wherever a value is computed with."""

    def __init__(self, leaf: Leaf, rows: bool) -> None:
        self.leaf = leaf
        self.rows = rows

    def bind(self, node: Scalar) -> TypedScalar:
        known = self.leaf(node)
        if known is not None:
            return known
        match node:
            case Literal():
                return self.literal(node)
            case Case():
                return self.case(node)
            case Call(Function.CAST, (inner, _)):
                operand = self.bind(inner)
                result = cast(node, operand, rows=self.rows)
                return operand if result is operand else self.limit_work(result, [operand.weight] * 2, node)
            case Call(name, arguments) if name != GROUPING:
                function = Function(name)
                operands = [self.bind(argument) for argument in arguments]
                weights = [o.weight for o in operands]
                if function in _GUARDED:
                    weights.append((_COPIES - 1) * weights[-1])
                return self.limit_work(self.call(node, function, operands), weights, node)
        raise _over_rows(node)

    def limit_work(self, result: TypedScalar, weights: list[int], node: Scalar) -> TypedScalar:
        """The result, with what it takes to compute; refused where that is too much."""
        weight = 1 + sum(weights)
        if weight > MOST_PARTS:
            what, fix = "an expression has too many parts", "ask several smaller questions"
            raise Refused(ErrorCode.TOO_LARGE, what, at=find_location(node), fix=fix)
        return replace(result, weight=weight)

    def literal(self, node: Literal) -> TypedScalar:
        if self.rows and isinstance(node.value, str) and len(node.value) > MOST_LITERAL:
            what = f"a text in a question has at most {MOST_LITERAL} characters"  # it may be there once for each row
            raise Refused(
                ErrorCode.TOO_LARGE, what, at=find_location(node), fix="compare with its beginning: x LIKE 'a%'"
            )
        match node.value:
            case None:
                return TypedScalar(node, None)
            case bool():
                return TypedScalar(node, Type.BOOL, nullable=False)
            case int(value):
                if not LEAST_INT <= value <= MOST_INT:
                    raise Refused(
                        ErrorCode.OVERFLOW, f"{value} does not fit 64 bits", at=node.at, fix=f"write {value}.0"
                    )
                return TypedScalar(
                    node, Type.INT, Fraction(value), Fraction(value), Fraction(abs(value)), nullable=False
                )
            case Fraction() as number:
                if abs(number) > _LARGEST_FLOAT:
                    raise Refused(ErrorCode.OVERFLOW, "the number is too large", at=node.at, fix="use a smaller one")
                return TypedScalar(node, Type.FLOAT, number, number, abs(number), nullable=False)
            case str():
                return TypedScalar(node, Type.TEXT, nullable=False)
            case datetime.datetime():
                return constant_timestamp(node.value)
            case datetime.date():
                return constant_date(node.value, node)

    def call(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        if self.rows and function in POST_PROCESSING_ONLY:
            raise Refused(
                ErrorCode.UNKNOWN_FUNCTION,
                f"{function.upper()} over rows is not answered",
                at=node.at,
                fix="use FLOOR(x + 0.5)",
            )
        count = _ARGUMENTS.get(function, len(operands))
        if len(operands) != count:
            what = f"{function.upper()} takes {count} argument{'s' if count > 1 else ''}"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="see the list of functions")
        if function in CONDITIONS:
            self.expect(operands, {Type.BOOL}, node, f"{function.upper()} takes conditions")
            return TypedScalar(Call(function, scalars_of(operands)), Type.BOOL, nullable=any_null(operands))
        if function in COMPARISONS or function is Function.IN:
            return self.comparison(node, function, operands)
        if function in DATE_PARTS:
            return self.date_part(node, function, operands)
        if function in TIME_PARTS:
            (operand,) = self.timestamps(operands, node, f"{function.upper()} takes a timestamp")
            return time_part(function, operand)
        match function:
            case Function.IS_NULL:
                return TypedScalar(Call(function, scalars_of(operands)), Type.BOOL, nullable=False)
            case Function.LEAST | Function.GREATEST | Function.COALESCE:
                return self.choice(node, function, operands)
            case Function.MOD:
                return self.modulo(node, operands)
            case Function.POWER:
                return self.power(node, operands)
            case Function.SQRT | Function.LN | Function.EXP:
                return self.curve(node, function, operands)
            case Function.SIGN:
                return self.sign(node, operands)
            case Function.LOWER | Function.UPPER | Function.TRIM | Function.SUBSTRING | Function.CONCAT:
                return self.text(node, function, operands)
            case Function.LENGTH:
                return self.length(node, operands)
            case Function.LIKE:
                return self.like(node, operands)
            case Function.DATE_TRUNC:
                return self.date_trunc(node, operands)
            case Function.DAYS:
                return self.days(node, operands)
            case Function.QUOTIENT:
                return self.periods(node, operands)
            case Function.SUBTRACT if any(o.type in TIME_TYPES for o in operands):
                return self.days(node, operands)
            case Function.ROUND:
                return self.bind_round(node, operands)
        return self.arithmetic(node, function, operands)

    def comparison(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        operands = self.same(node, operands)
        kind = operands[0].type
        if any(o.type is None for o in operands):
            raise Refused(ErrorCode.TYPE, "a comparison with NULL is never true", at=node.at, fix="write x IS NULL")
        if function in COMPARISONS - {Function.EQUAL, Function.UNEQUAL} and kind in {Type.TEXT, Type.BOOL}:
            raise Refused(
                ErrorCode.TYPE,
                f"{kind} has no order that all engines share",
                at=node.at,
                fix="compare with =, <> or IN",
            )
        scalars = tuple(drop_clamp(operand, operands) for operand in operands)
        return TypedScalar(Call(function, scalars), Type.BOOL, nullable=any_null(operands))

    def choice(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """LEAST, GREATEST and COALESCE skip NULLs, so an operand that may be NULL bounds nothing from its own side."""
        operands = self.same(node, operands)
        if function is not Function.COALESCE:
            self.expect(operands, ORDERED_TYPES, node, f"{function.upper()} compares numbers and dates")
        sure = [o for o in operands if not o.nullable]
        result = one_of(Call(function, scalars_of(operands)), operands, nullable=not sure)
        if function is Function.LEAST:
            caps = [v for v in (result.upper, *(o.upper for o in sure)) if v is not None]
            return replace(result, upper=min(caps, default=None))
        if function is Function.GREATEST:
            floors = [v for v in (result.lower, *(o.lower for o in sure)) if v is not None]
            return replace(result, lower=max(floors, default=None))
        return result

    def case(self, node: Case) -> TypedScalar:
        """One of the results, whatever the conditions say."""
        conditions = [self.bind(when) for when, _ in node.branches]
        self.expect(conditions, {Type.BOOL}, node, "WHEN takes a condition")
        results = self.same(node, [*(self.bind(then) for _, then in node.branches), self.bind(node.otherwise)])
        branches = tuple((c.scalar, r.scalar) for c, r in zip(conditions, results, strict=False))
        result = one_of(Case(branches, results[-1].scalar), results, nullable=any_null(results))
        return self.limit_work(result, [o.weight for o in (*conditions, *results)], node)

    def arithmetic(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """The operators, ABS, FLOOR and CEIL: interval arithmetic over the ends."""
        self.expect(operands, NUMERIC_TYPES, node, f"{function.upper()} takes numbers")
        self.require_bounds(operands, node)
        if function in {Function.FLOOR, Function.CEIL} and operands[0].type is Type.INT:
            return operands[0]  # engines make it a double, which cannot hold all of it
        if function is Function.DIVIDE or len(operands) == 2:
            operands = self.same(node, operands, force_float=function is Function.DIVIDE)
        scalar = Call(function, scalars_of(operands))
        if not self.rows:
            return TypedScalar(scalar, operands[0].type)
        lower, upper, step = interval(function, operands)
        # bounds may exclude zero where a double still underflows to it
        nullable = any_null(operands) or (function is Function.DIVIDE and not is_constant(operands[1]))
        return self.number(node, TypedScalar(scalar, operands[0].type, lower, upper, step, nullable))

    def modulo(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """MOD(a, b) is a - b * t with a/b cut off to the whole number t, so it has the sign of a; NULL where b is 0.

        |MOD(a, b)| <= |a| and < |b|. MOD(a, -b) = MOD(a, b), so an engine divides by |b|: dividing the least integer
        by -1 would overflow.
        """
        self.expect(operands, {Type.INT}, node, "MOD takes whole numbers")
        self.require_bounds(operands[1:], node)
        left, right = operands
        positive = right.lower is not None and right.lower >= 0
        divisor = right.scalar if positive else Call(Function.ABS, (right.scalar,))
        scalar = Call(Function.MOD, (left.scalar, divisor))
        if not self.rows or right.lower is None or right.upper is None:
            return TypedScalar(scalar, Type.INT)
        most = max(abs(right.lower), abs(right.upper), Fraction(1)) - 1
        lower = -min(max(-least_of(left), Fraction(0)), most)
        upper = min(max(most_of(left), Fraction(0)), most)
        nullable = any_null(operands) or right.lower <= 0 <= right.upper
        return TypedScalar(scalar, Type.INT, lower, upper, grid_of(operands), nullable)

    def power(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """POWER(x, n) for a constant whole n that is not negative, as a float; POWER(x, 0) is 1.

        It is monotone on either side of zero, so its extremes are at the ends and at zero.
        """
        self.expect(operands, NUMERIC_TYPES, node, "POWER takes numbers")
        exponent = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        if not isinstance(exponent, int | Fraction) or exponent % 1 or not 0 <= exponent <= MAX_POWER:
            what = f"POWER takes a constant whole exponent from 0 to {MAX_POWER}"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="POWER(x, 2), or 1 / POWER(x, 2)")
        self.require_bounds(operands[:1], node)
        base, n = as_float(operands[0]), int(exponent)
        scalar = Call(Function.POWER, (base.scalar, Literal(Fraction(n))))
        if not self.rows or base.lower is None or base.upper is None:
            return TypedScalar(scalar, Type.FLOAT)
        ends = [base.lower**n, base.upper**n, *([Fraction(0)] if n and base.lower < 0 < base.upper else [])]
        step = None if base.step is None else base.step**n
        return self.number(node, TypedScalar(scalar, Type.FLOAT, min(ends), max(ends), step, base.nullable))

    def curve(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """SQRT, LN and EXP, as floats. SQRT of less than 0 and LN of 0 or less are NULL.

        All three increase, so their bounds are at the ends, rounded outward. LN falls without end toward 0: it has no
        lower bound where its operand's is not above 0. Only a constant is sure not to round to what has no value.
        """
        self.expect(operands, NUMERIC_TYPES, node, f"{function.upper()} takes a number")
        self.require_bounds(operands, node)
        operand = as_float(operands[0])
        scalar = Call(function, (operand.scalar,))
        if not self.rows or operand.lower is None or operand.upper is None:
            return TypedScalar(scalar, Type.FLOAT)
        if function is Function.EXP and operand.upper > _LARGEST_EXPONENT:
            raise _too_large(node.at)
        lower, upper = curve_range(function, operand.lower, operand.upper)
        sure = function is Function.EXP or (is_constant(operand) and operand.lower > 0)
        return self.number(node, TypedScalar(scalar, Type.FLOAT, lower, upper, nullable=operand.nullable or not sure))

    def sign(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """-1, 0 or 1. The sign of a float is that of a double, which may round to zero and beyond."""
        self.expect(operands, NUMERIC_TYPES, node, "SIGN takes a number")
        (operand,) = operands
        low, high = -1, 1
        if operand.type is Type.INT:
            low, high = (_sign(least_of(operand)), _sign(most_of(operand)))
        scalar = Call(Function.SIGN, scalars_of(operands))
        return TypedScalar(scalar, Type.INT, Fraction(low), Fraction(high), Fraction(1), operand.nullable)

    def text(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """A text made of texts. NULL where one of them is."""
        texts = operands[:1] if function is Function.SUBSTRING else operands
        self.expect(texts, {Type.TEXT}, node, f"{function.upper()} takes texts")
        for other in operands[len(texts) :]:
            value = other.scalar.value if isinstance(other.scalar, Literal) else None
            if type(value) is not int or not 1 <= value <= MOST_POSITION:
                what = "SUBSTRING takes a constant start and length, from 1"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="SUBSTRING(x, 1, 3)")
        parts = sum(o.texts for o in texts)
        if parts > MOST_TEXTS:
            what = f"a text is put together from {parts} texts; {MOST_TEXTS} is the most"
            raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="put fewer together")
        return TypedScalar(Call(function, scalars_of(operands)), Type.TEXT, nullable=any_null(texts), texts=parts)

    def length(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """The number of characters, from 0. That it ends somewhere is no bound to add noise by: none is declared."""
        self.expect(operands, {Type.TEXT}, node, "LENGTH takes a text")
        scalar = Call(Function.LENGTH, scalars_of(operands))
        return TypedScalar(scalar, Type.INT, Fraction(0), MOST_INT, Fraction(1), operands[0].nullable)

    def like(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """Whether a text is as a constant pattern says, in which % and _ stand for others. There is no escape."""
        self.expect(operands, {Type.TEXT}, node, "LIKE takes texts")
        pattern = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        if not isinstance(pattern, str) or "\\" in pattern:
            what = "LIKE takes a constant pattern without a backslash"
            raise Refused(
                ErrorCode.TYPE, what, at=node.at, fix="x LIKE 'flu%': % stands for any text, _ for one character"
            )
        if len(pattern) > MOST_PATTERN:
            what = f"a pattern has at most {MOST_PATTERN} characters"
            raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="write a shorter one")
        return TypedScalar(Call(Function.LIKE, scalars_of(operands)), Type.BOOL, nullable=operands[0].nullable)

    def date_part(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """A part of a date: YEAR, QUARTER, MONTH, DAY, WEEK of ISO 8601, or WEEKDAY from Monday = 1.

        A date without bounds may be one that has no end, whose parts are NULL.
        """
        (operand,) = self.dates(operands, node, f"{function.upper()} takes a date")
        lower, upper = part_range(function, operand)
        nullable = operand.nullable or not operand.is_bounded
        scalar: Scalar = Call(function, (operand.scalar,))
        if function is Function.WEEK:
            scalar, _ = within_years(operand, scalar)
        return TypedScalar(scalar, Type.INT, lower, upper, Fraction(1), nullable)

    def date_trunc(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """The first day of the year, quarter, month or week; it increases, so its bounds are at the ends.

        That of a timestamp is a timestamp, and may be the first moment of an hour, minute or second too.

        A date without bounds may lie where an engine has no first day for it, so outside of the years 1 to 9999 the
        result is NULL.
        """
        unit = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
        if not isinstance(unit, str) or unit.lower() not in DATE_UNITS + TIME_UNITS:
            what = f"DATE_TRUNC takes one of {', '.join(DATE_UNITS + TIME_UNITS)}"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="DATE_TRUNC('month', d)")
        unit = unit.lower()
        if operands[1].type is Type.TIMESTAMP or unit in TIME_UNITS:
            (moment,) = self.timestamps(operands[1:], node, f"DATE_TRUNC to {unit} takes a timestamp")
            if unit in FINER_UNITS.get(moment.unit or "", ()):
                return moment
            if unit in PERIODS:
                return truncate(unit, moment)
            return as_timestamp(self.date_trunc(node, [operands[0], date_of(moment)]), node)
        (operand,) = self.dates(operands[1:], node, "DATE_TRUNC takes a date")
        if unit == "day" or unit in ALSO.get(operand.unit or "", ()):
            return operand
        lower = None if operand.lower is None else day_of(unit, operand.lower)
        upper = None if operand.upper is None else day_of(unit, operand.upper)
        scalar, nullable = within_years(operand, Call(Function.DATE_TRUNC, (Literal(unit), operand.scalar)))
        return TypedScalar(scalar, Type.DATE, lower, upper, Fraction(1), nullable, unit)

    def days(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """DAYS(a, b), or a - b, is the days from b to a; without declared bounds where one of the dates has none.

        DAYS of timestamps is that of their dates: how many midnights lie between. Their difference is no number.
        """
        if node.function == Function.SUBTRACT and any(o.type is Type.TIMESTAMP for o in operands):
            what = "a timestamp less another is an interval, which is no number"
            fix = "count hours, minutes or seconds: DATE_DIFF('hour', a, b)"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
        takes = "DAYS takes dates" if node.function == Function.DAYS else "a date is subtracted from a date"
        left, right = self.dates(operands, node, takes)
        lower = None if left.lower is None or right.upper is None else left.lower - right.upper
        upper = None if left.upper is None or right.lower is None else left.upper - right.lower
        low, high = LEAST_INT if lower is None else lower, MOST_INT if upper is None else upper
        nullable = any_null([left, right]) or not (left.is_bounded and right.is_bounded)
        return TypedScalar(Call(Function.DAYS, scalars_of([left, right])), Type.INT, low, high, Fraction(1), nullable)

    def periods(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """How many hours, minutes or seconds there are before a timestamp: what DATE_DIFF subtracts."""
        (operand,) = self.timestamps(operands[:1], node, "DATE_DIFF in hours, minutes or seconds takes timestamps")
        period = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        assert isinstance(period, int)  # of the parser
        return quotient(operand, period)

    def bind_round(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """ROUND of a released value, to a constant number of digits."""
        self.expect(operands, NUMERIC_TYPES, node, "ROUND takes numbers")
        digits = node.arguments[1:]
        if any(not isinstance(d, Literal) or not isinstance(d.value, int) or d.value > 15 for d in digits):
            raise Refused(ErrorCode.TYPE, "ROUND takes a constant number of digits", at=node.at, fix="ROUND(AVG(x), 2)")
        return TypedScalar(Call(Function.ROUND, scalars_of(operands)), operands[0].type, nullable=operands[0].nullable)

    def require_bounds(self, operands: Iterable[TypedScalar], node: Scalar) -> None:
        """Over rows, refuse to compute with what has no declared bounds."""
        if self.rows and not all(operand.is_bounded for operand in operands):
            raise Refused(
                ErrorCode.UNBOUNDED,
                "an operand has no declared bounds, so the result has none",
                at=find_location(node),
                fix="bound it first: GREATEST(0, LEAST(x, 1000)), or ask the owner for lower and upper",
            )

    def number(self, node: Call, result: TypedScalar) -> TypedScalar:
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

    def fits(self, result: TypedScalar, at: SourceLocation | None) -> None:
        """Refuse what the machine's numbers could not hold."""
        low, high = (LEAST_INT, MOST_INT) if result.type is Type.INT else (-_LARGEST_FLOAT, _LARGEST_FLOAT)
        if result.lower is not None and result.upper is not None and not low < result.lower <= result.upper < high:
            raise _too_large(at)

    def same(self, node: Scalar, operands: list[TypedScalar], force_float: bool = False) -> list[TypedScalar]:
        """The operands in one type: integers beside floats become floats, text beside dates becomes dates."""
        kinds = {o.type for o in operands if o.type is not None}
        if Type.FLOAT in kinds | ({Type.FLOAT} if force_float else set()) and kinds <= NUMERIC_TYPES:
            return [as_float(o) for o in operands]
        if Type.TIMESTAMP in kinds and kinds <= {*TIME_TYPES, Type.TEXT}:
            return [as_timestamp(o, node) for o in operands]
        if kinds == {Type.DATE, Type.TEXT}:
            return [as_date(o, node) for o in operands]
        if len(kinds) > 1:
            raise mixed_types_error(node, operands)
        return operands

    def dates(self, operands: list[TypedScalar], node: Scalar, what: str) -> list[TypedScalar]:
        """The operands as dates: a text that is a date is read as one, and a timestamp as its date."""
        read = [as_date(o, node) if isinstance(o.scalar, Literal) else o for o in operands]
        read = [date_of(o) if o.type is Type.TIMESTAMP else o for o in read]
        self.expect(read, {Type.DATE}, node, what)
        return read

    def timestamps(self, operands: list[TypedScalar], node: Scalar, what: str) -> list[TypedScalar]:
        """The operands as timestamps: a constant text that is one is read as one."""
        read = [as_timestamp(o, node) if isinstance(o.scalar, Literal) and o.type is Type.TEXT else o for o in operands]
        for operand in read:
            if operand.type is Type.DATE:
                fix = "a date has no time of day: use DATE_TRUNC('day', d), DAY(d) or DATE_DIFF('day', a, b)"
                raise Refused(ErrorCode.TYPE, f"{what}, got date", at=find_location(node), fix=fix)
        self.expect(read, {Type.TIMESTAMP}, node, what)
        return read

    def expect(
        self, operands: Iterable[TypedScalar], kinds: set[Type] | frozenset[Type], node: Scalar, what: str
    ) -> None:
        for operand in operands:
            if operand.type not in kinds:
                fix = "leave NULL out" if operand.type is None else "check the column's type in the schema"
                found = operand.type or "NULL"
                raise Refused(ErrorCode.TYPE, f"{what}, got {found}", at=find_location(node), fix=fix)


def _too_large(at: SourceLocation | None) -> Refused:
    what = "the result could be too large for the machine"
    return Refused(ErrorCode.OVERFLOW, what, at=at, fix="use smaller factors")


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)
