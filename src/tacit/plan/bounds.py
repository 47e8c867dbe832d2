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

from tacit.engines.evaluate import pad
from tacit.errors import ErrorCode, Refused, SourceLocation, substitute
from tacit.plan import calendar
from tacit.plan.casts import as_text, cast
from tacit.plan.formats import count_copies, refuse_format, to_char
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
from tacit.plan.rounding import (
    divide_whole,
    is_exact,
    released_integer,
    round_number,
    truncate_number,
    truncate_released,
)
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
    TIME_PARTS,
    TIME_UNITS,
    Function,
)
from tacit.query.intervals import MULTIPLES, interval_parts, is_interval
from tacit.query.nodes import Call, Case, Literal, Placeholder, Scalar, ScalarSubquery, Window, find_location
from tacit.query.suggest import clamp_present, quote_scalar, substitute_everywhere
from tacit.query.timestamps import PERIODS
from tacit.query.types import NUMERIC_TYPES, ORDERED_TYPES, TIME_TYPES, Key, Type

MOST_PARTS = 10_000
_LARGEST_FLOAT = Fraction(10) ** 200
_LARGEST_EXPONENT = 461  # EXP of it is above the largest float
_MOST_MONTHS = 12 * 9_999
_MOST_SHIFT = 10**18  # microseconds or days
_FINEST = 2**1100  # bounds are multiples of one over this, which is below every double

# How many operands a function takes; those that are not here take as many as the grammar lets stand.
_ARGUMENTS = dict.fromkeys(
    [
        Function.SQRT,
        Function.LN,
        Function.LOG10,
        Function.EXP,
        Function.SIGN,
        Function.LOWER,
        Function.UPPER,
        Function.TRIM,
        Function.LTRIM,
        Function.RTRIM,
        Function.LENGTH,
        Function.EPOCH,
        Function.YEAR_WEEK,
        Function.LAST_DAY,
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
    Function.REPLACE: 3,
    Function.LPAD: 3,
    Function.RPAD: 3,
    Function.SPLIT_PART: 3,
    Function.POSITION: 2,
    Function.RIGHT: 2,
    Function.DIV: 2,
    Function.RATIO: 2,
}
# Functions that an engine keeps from what they have no value for. It copies the last operand for that, and works on
# each copy more than once while it plans: within each other they would take seconds at ten, and hours at twenty.
_GUARDED = {Function.DIVIDE, Function.MOD, Function.SQRT, Function.LN, Function.LOG10, Function.DATE_TRUNC}
_COPIES = 4
_BETWEEN = 8  # how often what lies between two timestamps may name them
# Functions that are written with others, and how often at most these name an operand.
_WRITTEN = {
    Function.ROUND: 4,
    Function.TRUNC: 4,
    Function.DIV: 4,
    Function.DATE_ADD: 6,
    Function.DATE_DIFF: 4,
    Function.ELAPSED: 4,
    Function.AGE: 16,
    Function.EPOCH: 4,
    Function.YEAR_WEEK: 4,
    Function.WEEK_START: 4,
    Function.LAST_DAY: 4,
}


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
            return Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="compute it in a subquery, and use it outside")
        case ScalarSubquery():
            what = "a subquery as a value is not answered where rows are read"
            return Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="ask for its value first, and write it here")
    what, fix = "GROUPING is of keys of grouping sets", "leave it out, or group by grouping sets"
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
            case Placeholder(_, Type.INT):
                return TypedScalar(node, Type.INT, LEAST_INT, MOST_INT, Fraction(1))
            case Placeholder(_, kind):
                return TypedScalar(node, kind)
            case Call(Function.CAST, (inner, _)):
                operand = self.bind(inner)
                result = cast(node, operand, rows=self.rows)
                return operand if result is operand else self.limit_work(result, [operand.weight] * 2, node)
            case Call(name, (Call(Function.SUBTRACT, (later, earlier)), right)) if name in COMPARISONS and is_interval(
                right
            ):
                return self.compare_interval(node, Function(name), [self.bind(later), self.bind(earlier)], right)
            case Call(Function.FLOOR, (Call(Function.RATIO, arguments) as inner,)):
                return self.apply(node, [self.ratio(inner, [self.bind(argument) for argument in arguments], cut=True)])
            case Call(Function.RATIO, arguments):
                return self.ratio(node, [self.bind(argument) for argument in arguments])
            case Call(Function.CONCAT, arguments):
                return self.apply(node, [self.text_part(argument, node) for argument in arguments])
            case Call(Function.INTERVAL):
                fix = "add it to a date, or compare the days between two dates"
                raise Refused(ErrorCode.TYPE, "an interval is no value by itself", at=node.at, fix=fix)
            case Call(Function.DAY | Function.EPOCH as part, (Call(Function.SUBTRACT, (later, earlier)) as less,)):
                if self.leaf(less) is None:
                    return self.part_of_difference(node, less, Function(part), [self.bind(later), self.bind(earlier)])
                return self.apply(node, [self.bind(less)])
            case Call(name, arguments) if name != GROUPING:
                return self.apply(node, [self.bind(argument) for argument in arguments])
        raise _over_rows(node)

    def text_part(self, argument: Scalar, node: Call) -> TypedScalar:
        """A part of a text that is put together: a whole number, condition or date as its text."""
        match argument:
            case Call(Function.COALESCE, (inner, Literal("") as nothing)):
                part = self.bind(inner)
                if part.type in {Type.TEXT, None}:
                    return self.apply(argument, [part, self.bind(nothing)])
                written = as_text(part)
                if written is None:
                    return part
                return replace(self.apply(argument, [written, self.bind(nothing)]), listing=_with_nothing(written))
        part = self.bind(argument)
        written = None if part.type in {Type.TEXT, None} else as_text(part)
        return part if written is None else self.limit_work(written, [_BETWEEN * part.weight], node)

    def compare_interval(
        self, node: Call, function: Function, ends: list[TypedScalar], interval: Scalar
    ) -> TypedScalar:
        """a - b > INTERVAL '2 days', of timestamps: the microseconds of both are compared."""
        parts = [(unit, n.value if isinstance(n, Literal) else None) for unit, n in interval_parts(interval)]
        moments = [as_timestamp(end, node) for end in ends]
        if any(o.type is not Type.TIMESTAMP for o in moments) or all(o.type is Type.DATE for o in ends):
            what = "an interval is compared with what lies between two timestamps"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="compare the number of days between both")
        if any(unit == "month" or not isinstance(n, int) for unit, n in parts):
            fix = "compare the number of months between both, of date_diff"
            raise Refused(ErrorCode.TYPE, "months and what is no constant have no length", at=node.at, fix=fix)
        lengths = [n * (PERIODS["day"] if unit == "day" else 1) for unit, n in parts if isinstance(n, int)]
        scalar = Call(function, (Call(Function.SUBTRACT, scalars_of(moments)), Literal(sum(lengths))))
        result = TypedScalar(scalar, Type.BOOL, nullable=any_null(moments))
        return self.limit_work(result, [o.weight for o in moments], node)

    def part_of_difference(self, node: Call, less: Call, part: Function, ends: list[TypedScalar]) -> TypedScalar:
        """A part of a - b, which is an interval where one of both is a timestamp, and a date or a number otherwise."""
        if all(o.type in TIME_TYPES for o in ends) and any(o.type is Type.TIMESTAMP for o in ends):
            return self.limit_work(self.between(node, part, ends), [_BETWEEN * o.weight for o in ends], node)
        return self.apply(node, [self.apply(less, ends)])

    def apply(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """A function of its operands."""
        function = Function(node.function)
        weights = [o.weight for o in operands]
        if function in _GUARDED:
            weights.append((_COPIES - 1) * weights[-1])
        copies = _WRITTEN.get(function, 1)
        if function is Function.TO_CHAR and isinstance(node.arguments[0], Literal):
            copies = count_copies(str(node.arguments[0].value))
        return self.limit_work(self.call(node, function, operands), [copies * weight for weight in weights], node)

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
            raise Refused(ErrorCode.TOO_LARGE, what, at=find_location(node), fix="compare with its beginning")
        match node.value:
            case None:
                return TypedScalar(node, None)
            case bool():
                return TypedScalar(node, Type.BOOL, nullable=False)
            case int(value):
                if not LEAST_INT <= value <= MOST_INT:
                    raise Refused(
                        ErrorCode.OVERFLOW,
                        f"{value} does not fit 64 bits",
                        at=node.at,
                        fix=f"write {value}.0",
                        instead=f"{value}.0",
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
            case Function.SQRT | Function.LN | Function.LOG10 | Function.EXP:
                return self.curve(node, function, operands)
            case Function.SIGN:
                return self.sign(node, operands)
            case Function.LOWER | Function.UPPER | Function.TRIM | Function.LTRIM | Function.RTRIM | Function.CONCAT:
                return self.text(node, function, operands)
            case Function.SUBSTRING | Function.RIGHT:
                return self.text(node, function, operands)
            case Function.SPLIT_PART | Function.REPLACE:
                return self.replacement(node, function, operands)
            case Function.LPAD | Function.RPAD:
                return self.padded(node, function, operands)
            case Function.LENGTH | Function.POSITION:
                return self.length(node, function, operands)
            case Function.LIKE:
                return self.like(node, operands)
            case Function.DATE_TRUNC:
                return self.date_trunc(node, operands)
            case Function.DAYS:
                return self.days(node, operands)
            case Function.QUOTIENT:
                return self.periods(node, operands)
            case Function.ADD | Function.SUBTRACT if {Type.DATE, Type.INT} == {o.type for o in operands}:
                return self.shift_days(node, function, operands)
            case Function.SUBTRACT if any(o.type in TIME_TYPES for o in operands):
                return self.days(node, operands)
            case Function.ROUND | Function.TRUNC:
                return self.digits(node, function, operands)
            case Function.DIV:
                return self.whole_quotient(node, operands)
            case Function.DATE_ADD | Function.DATE_DIFF | Function.ELAPSED | Function.AGE:
                return self.date_arithmetic(node, function, operands)
            case Function.EPOCH | Function.YEAR_WEEK | Function.LAST_DAY | Function.WEEK_START:
                return self.calendar_part(node, function, operands)
            case Function.TO_CHAR:
                return self.formatted(node, operands)
        return self.arithmetic(node, function, operands)

    def comparison(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        operands = self.same(node, _as_truths(operands))
        kind = operands[0].type
        if any(o.type is None for o in operands):
            raise _refuse_null(node, function, operands)
        if function in COMPARISONS - {Function.EQUAL, Function.UNEQUAL} and kind in {Type.TEXT, Type.BOOL}:
            raise Refused(
                ErrorCode.TYPE,
                f"{kind} has no order that all engines share",
                at=node.at,
                fix="compare with = or <>, or with a list of values",
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
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the exponent, or divide by a power")
        self.require_bounds(operands[:1], node)
        base, n = as_float(operands[0]), int(exponent)
        scalar = Call(Function.POWER, (base.scalar, Literal(Fraction(n))))
        if not self.rows or base.lower is None or base.upper is None:
            return TypedScalar(scalar, Type.FLOAT)
        ends = [base.lower**n, base.upper**n, *([Fraction(0)] if n and base.lower < 0 < base.upper else [])]
        step = None if base.step is None else base.step**n
        return self.number(node, TypedScalar(scalar, Type.FLOAT, min(ends), max(ends), step, base.nullable))

    def curve(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """SQRT, LN, LOG10 and EXP, as floats. SQRT of less than 0 and logarithms of 0 or less are NULL.

        All of them increase, so their bounds are at the ends, rounded outward. A logarithm falls without end toward 0:
        it has no lower bound where its operand's is not above 0. Only a constant is sure not to round to what has no
        value.
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
        texts = operands[:1] if function in {Function.SUBSTRING, Function.RIGHT} else operands
        self.expect(texts, {Type.TEXT}, node, f"{function.upper()} takes texts")
        for other in operands[len(texts) :]:
            value = other.scalar.value if isinstance(other.scalar, Literal) else None
            if type(value) is not int or not 1 <= value <= MOST_POSITION:
                what = "SUBSTRING takes a constant start and length, from 1"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the numbers")
        parts = sum(o.texts for o in texts)
        self.limit_texts(parts, node)
        listing = _list_together(operands) if function is Function.CONCAT else None
        scalar = Call(function, scalars_of(operands))
        return TypedScalar(scalar, Type.TEXT, nullable=any_null(texts), texts=parts, listing=listing)

    def replacement(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """REPLACE(x, 'a', 'b') and SPLIT_PART(x, ',', 2), with constants, of which the sought one is not empty.

        A text grows at most by as many times as what is put in is longer than what is taken out, which counts as so
        many texts.
        """
        texts = operands[: 2 if function is Function.SPLIT_PART else 3]
        self.expect(texts, {Type.TEXT}, node, f"{function.upper()} takes texts")
        values = [o.scalar.value if isinstance(o.scalar, Literal) else None for o in operands[1:]]
        sought, other = values
        place = function is Function.SPLIT_PART and type(other) is int and 1 <= other <= MOST_POSITION
        if not isinstance(sought, str) or not sought or not (place or isinstance(other, str)):
            what = f"{function.upper()} takes constants, and what is sought is not empty"
            nothing = quote_scalar(node.arguments[0]) if function is Function.REPLACE and sought == "" else None
            fix = "write the constants" if nothing is None else f"leave it out: {nothing}"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix, instead=nothing)
        parts = operands[0].texts
        if isinstance(other, str) and function is Function.REPLACE:
            parts *= max(1, math.ceil(len(other) / len(sought)))
        self.limit_texts(parts, node)
        scalar = Call(function, scalars_of(operands))
        return TypedScalar(scalar, Type.TEXT, nullable=operands[0].nullable, texts=parts)

    def padded(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """LPAD(x, 5, '0') and RPAD: a text of exactly so many characters, filled up with a constant or cut."""
        name = function.upper()
        text = as_text(operands[0]) if operands[0].type is Type.INT else operands[0]
        values = [o.scalar.value if isinstance(o.scalar, Literal) else None for o in operands[1:]]
        size, filler = values
        if type(size) is not int or not 1 <= size <= MOST_LITERAL or not isinstance(filler, str) or not filler:
            what = f"{name} takes a constant length from 1 to {MOST_LITERAL}, and a constant that is not empty"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the length and the text")
        assert text is not None
        self.expect([text], {Type.TEXT}, node, f"{name} takes a text")
        inner = text.listing

        def list_texts(most: int) -> tuple[Key, ...] | None:
            assert inner is not None
            found = inner(most)
            if found is None:
                return None
            return tuple(dict.fromkeys(pad(str(one), size, filler, left=function is Function.LPAD) for one in found))

        scalar = Call(function, (text.scalar, operands[2].scalar, Literal(size)))
        known = None if inner is None else list_texts
        return TypedScalar(scalar, Type.TEXT, nullable=text.nullable, texts=text.texts, listing=known)

    def limit_texts(self, parts: int, node: Call) -> None:
        """Refuse a text that is put together from too many."""
        if parts > MOST_TEXTS:
            what = f"a text is put together from {parts} texts; {MOST_TEXTS} is the most"
            raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="put fewer together")

    def length(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """The number of characters, or the place of a constant text among them, from 0.

        That it ends somewhere is no bound to add noise by: none is declared.
        """
        self.expect(operands, {Type.TEXT}, node, f"{function.upper()} takes a text")
        for sought in operands[1:]:
            if not isinstance(sought.scalar, Literal) or not sought.scalar.value:
                what = "the text that is sought is a constant, and not empty"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the text")
        scalar = Call(function, scalars_of(operands))
        return TypedScalar(scalar, Type.INT, Fraction(0), MOST_INT, Fraction(1), operands[0].nullable)

    def like(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """Whether a text is as a constant pattern says, in which % and _ stand for others. There is no escape."""
        self.expect(operands, {Type.TEXT}, node, "LIKE takes texts")
        pattern = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        if not isinstance(pattern, str) or "\\" in pattern:
            what = "LIKE takes a constant pattern without a backslash"
            fix = "write the pattern: % stands for any text, _ for one character"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
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
        if function in {Function.WEEK, Function.ISO_YEAR, Function.DAY_OF_YEAR}:
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
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write one of these units")
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
            later, earlier = (quote_scalar(argument) for argument in node.arguments)
            hours = f"DATE_DIFF('hour', {earlier}, {later})"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"count hours: {hours}", instead=hours)
        takes = "DAYS takes dates" if node.function == Function.DAYS else "a date is subtracted from a date"
        left, right = self.dates(operands, node, takes)
        lower = None if left.lower is None or right.upper is None else left.lower - right.upper
        upper = None if left.upper is None or right.lower is None else left.upper - right.lower
        low, high = LEAST_INT if lower is None else lower, MOST_INT if upper is None else upper
        nullable = any_null([left, right]) or not (left.is_bounded and right.is_bounded)
        return TypedScalar(Call(Function.DAYS, scalars_of([left, right])), Type.INT, low, high, Fraction(1), nullable)

    def periods(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """How many hours, minutes or seconds there are before a timestamp: what DATE_DIFF subtracts."""
        operand = as_timestamp(operands[0], node)
        self.expect([operand], {Type.TIMESTAMP}, node, "DATE_DIFF in hours, minutes or seconds takes timestamps")
        period = operands[1].scalar.value if isinstance(operands[1].scalar, Literal) else None
        assert isinstance(period, int)  # of the parser
        return quotient(operand, period)

    def digits(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """ROUND and TRUNC, to a constant number of digits. Released values need no bounds."""
        name = function.upper()
        self.expect(operands, NUMERIC_TYPES, node, f"{name} takes numbers")
        digits = [d.value if isinstance(d, Literal) else None for d in node.arguments[1:]]
        if any(not isinstance(value, int) or not 0 <= value <= 15 for value in digits):
            what, fix = f"{name} takes a constant number of digits", "write the number"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
        count = next((value for value in digits if isinstance(value, int)), 0)
        operand = operands[0]
        if self.rows:
            self.require_bounds([operand], node)
            return self.number(node, (round_number if function is Function.ROUND else truncate_number)(operand, count))
        if function is Function.ROUND:
            return TypedScalar(Call(Function.ROUND, scalars_of(operands)), operand.type, nullable=operand.nullable)
        if operand.type is Type.INT:
            return operand
        factor = Literal(Fraction(10**count))
        cut = truncate_released(Call(Function.MULTIPLY, (operand.scalar, factor)))
        return TypedScalar(Call(Function.DIVIDE, (cut, factor)), Type.FLOAT, nullable=operand.nullable)

    def ratio(self, node: Call, operands: list[TypedScalar], *, cut: bool = False) -> TypedScalar:
        """x / y as PostgreSQL has it: of whole numbers DIV(x, y), of others a float.

        Where FLOOR has `cut` the quotient of numbers that are not negative, both are the same, and it is the float.
        """
        whole = len(operands) == 2 and all(o.type is Type.INT for o in operands)
        left, right = (o.lower for o in (operands * 2)[:2])
        if cut and left is not None and left >= 0 and right is not None and right > 0:
            whole = False
        return self.apply(replace(node, function=Function.DIV if whole else Function.DIVIDE), operands)

    def whole_quotient(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """DIV(x, y), or x // y: whole numbers divided, toward zero."""
        if any(o.type is Type.FLOAT for o in operands):
            what, ends = "DIV and // take whole numbers, got float", map(quote_scalar, node.arguments)
            quotient = " / ".join(f"({end})" if " " in end else end for end in ends)
            quotient = quotient if "//" in quote_scalar(node) else f"TRUNC({quotient})"  # // divides floats as / does
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"write {quotient}", instead=quotient)
        self.expect(operands, {Type.INT}, node, "DIV takes whole numbers")
        self.require_bounds(operands, node)
        left, right = operands
        if not self.rows:
            floats = as_float(left), as_float(right)
            return released_integer(truncate_released(Call(Function.DIVIDE, scalars_of(floats))))
        if not isinstance(right.scalar, Literal) and not (is_exact(left) and is_exact(right)):
            raise _too_large(node.at)
        return divide_whole(left, right)

    def shift_days(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """d + n and d - n: a date and so many days."""
        date, days = sorted(operands, key=lambda o: o.type is Type.INT)
        if function is Function.SUBTRACT:
            if operands[0] is days:
                what, less = "a date is not taken from a number", " - ".join(map(quote_scalar, node.arguments[::-1]))
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"write the date first: {less}", instead=less)
            days = self.negative(days)
        return self.add_units(node, "day", days, date)

    def negative(self, number: TypedScalar) -> TypedScalar:
        """An integer with the other sign."""
        if isinstance(number.scalar, Literal) and isinstance(number.scalar.value, int):
            return self.bind(Literal(-number.scalar.value))
        ends = [None if end is None else -end for end in (number.upper, number.lower)]
        return replace(number, scalar=Call(Function.NEGATE, (number.scalar,)), lower=ends[0], upper=ends[1])

    def date_arithmetic(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """DATE_ADD, and what lies between two dates or timestamps, in a unit that is the first operand."""
        unit = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
        assert isinstance(unit, str)  # of the parser
        if function is Function.DATE_ADD:
            return self.add_units(node, unit, operands[1], operands[2])
        if function is Function.ELAPSED:
            later, earlier = (as_timestamp(o, node) for o in operands[1:])
            self.expect([later, earlier], {Type.TIMESTAMP}, node, "whole hours or days lie between timestamps")
            return calendar.count_periods(unit, later, earlier)
        later, earlier = self.dates(operands[1:], node, f"{function.upper()} takes dates")
        if function is Function.DATE_DIFF:
            return calendar.difference(unit, later, earlier)
        if any(o.type is Type.TIMESTAMP for o in operands[1:]):
            what, fix = "AGE takes dates, got timestamp", "cast both to dates"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix)
        if unit not in {"year", "month"}:
            what = "an age is an interval, which is no number"
            years = f"EXTRACT(YEAR FROM {quote_scalar(node)})"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix=f"take its whole years: {years}", instead=years)
        return calendar.age(unit, later, earlier)

    def add_units(self, node: Call, unit: str, number: TypedScalar, operand: TypedScalar) -> TypedScalar:
        """A date or timestamp and a number of units. A date with hours or less is a timestamp."""
        self.expect([number], {Type.INT}, node, "the number of an interval is a whole number")
        self.require_bounds([number], node)
        base, factor = MULTIPLES[unit]
        if isinstance(operand.scalar, Literal) and operand.type is Type.TEXT:
            operand = as_timestamp(operand, node) if base == "microsecond" else as_date(operand, node)
        self.expect([operand], TIME_TYPES, node, "an interval is added to a date or a timestamp")
        constant = number.scalar.value if isinstance(number.scalar, Literal) else None
        if base == "month":
            if not isinstance(constant, int) or abs(constant * factor) > _MOST_MONTHS:
                what = "months are added as a constant, of at most 9,999 years"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the number of months")
            return calendar.shift_months(operand, constant * factor, node.at)
        if max(abs(least_of(number)), abs(most_of(number))) * factor > _MOST_SHIFT and self.rows:
            raise _too_large(node.at)
        if base == "day" and operand.type is Type.DATE:
            days = number
            if factor != 1:
                days = self.bind(Literal(constant * factor)) if isinstance(constant, int) else _scale(number, factor)
            return calendar.add_days(operand, days, node.at)
        period = factor if base == "microsecond" else factor * PERIODS["day"]
        return calendar.add_microseconds(as_timestamp(operand, node), number, period, node.at)

    def between(self, node: Call, part: Function, ends: list[TypedScalar]) -> TypedScalar:
        """EXTRACT(EPOCH FROM a - b) and EXTRACT(DAY FROM a - b) of timestamps."""
        later, earlier = (as_timestamp(end, node) for end in ends)
        if part is Function.EPOCH:
            return calendar.count_seconds(later, earlier)
        return calendar.count_periods("day", later, earlier)

    def calendar_part(self, node: Call, function: Function, operands: list[TypedScalar]) -> TypedScalar:
        """EPOCH, YEARWEEK, LAST_DAY, and the first day of a week that starts on a given day."""
        if function is Function.EPOCH:
            (operand,) = [as_timestamp(o, node) if isinstance(o.scalar, Literal) else o for o in operands]
            self.expect([operand], TIME_TYPES, node, "EPOCH takes a date or a timestamp")
            return calendar.epoch(operand)
        (date,) = self.dates(operands[-1:], node, f"{function.upper()} takes a date")
        if function is Function.YEAR_WEEK:
            return calendar.year_week(date)
        if function is Function.LAST_DAY:
            return calendar.last_day(date)
        weekday = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
        return calendar.week_start(str(weekday), date)

    def formatted(self, node: Call, operands: list[TypedScalar]) -> TypedScalar:
        """TO_CHAR: a date or timestamp as a format of `query/date_formats.py` writes it."""
        pattern = operands[0].scalar.value if isinstance(operands[0].scalar, Literal) else None
        operand = operands[1]
        if operand.type is Type.TEXT and isinstance(operand.scalar, Literal):
            operand = as_timestamp(operand, node)
        if operand.type not in TIME_TYPES:
            raise refuse_format(node, str(operand.type or "NULL"))
        date = date_of(operand) if operand.type is Type.TIMESTAMP else operand
        return to_char(str(pattern), operand, date)

    def require_bounds(self, operands: Iterable[TypedScalar], node: Scalar) -> None:
        """Over rows, refuse to compute with what has no declared bounds."""
        if self.rows and not all(operand.is_bounded for operand in operands):
            what = "an operand has no declared bounds, so the result has none"
            fix = owner = "ask the owner for lower and upper"
            suggestion = None
            for part in node.arguments if isinstance(node, Call) else ():
                is_written = find_location(part) not in {None, find_location(node)}  # and not put there by the parser
                operand = self.bind(part) if is_written and not is_interval(part) else None
                if operand is not None and not operand.is_bounded and operand.type in NUMERIC_TYPES:
                    bounded = clamp_present(quote_scalar(part))
                    suggestion = substitute_everywhere(find_location(node), find_location(part), bounded)
                    fix = f"clamp it: {bounded}, or {owner}"
                    break
            raise Refused(ErrorCode.UNBOUNDED, what, at=find_location(node), fix=fix, suggestion=suggestion)

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
                fix = "a date has no time of day: count days"
                raise Refused(ErrorCode.TYPE, f"{what}, got date", at=find_location(node), fix=fix)
        self.expect(read, {Type.TIMESTAMP}, node, what)
        return read

    def expect(
        self, operands: Iterable[TypedScalar], kinds: set[Type] | frozenset[Type], node: Scalar, what: str
    ) -> None:
        for operand in operands:
            if operand.type not in kinds:
                fix = "leave it out" if operand.type is None else "check the column's type in the schema"
                suggestion = self._compare_with_zero(node) if kinds == {Type.BOOL} else None
                fix = fix if suggestion is None else "compare it with zero: <> 0"
                what = f"{what}, got {operand.type or 'NULL'}"
                raise Refused(ErrorCode.TYPE, what, at=find_location(node), fix=fix, suggestion=suggestion)

    def _compare_with_zero(self, node: Scalar) -> str | None:
        """The question with the numbers among conditions compared with zero, as SQL that takes them does."""
        parts = node.arguments if isinstance(node, Call) else ()
        numbers = [part for part in parts if self.bind(part).type in NUMERIC_TYPES]
        edits = [(find_location(part), f"({quote_scalar(part)} <> 0)") for part in numbers]
        return substitute(*edits) if edits else None


def _refuse_null(node: Call, function: Function, operands: list[TypedScalar]) -> Refused:
    """A refusal of x = NULL, which is never true: x IS NULL is meant."""
    what = "a comparison with NULL is never true"
    known = [part for part, operand in zip(node.arguments, operands, strict=False) if operand.type is not None]
    if function not in {Function.EQUAL, Function.UNEQUAL} or len(known) != 1:
        return Refused(ErrorCode.TYPE, what, at=node.at, fix="leave it out, and ask which values are missing")
    instead = f"{quote_scalar(known[0])} IS {'NOT ' if function is Function.UNEQUAL else ''}NULL"
    return Refused(ErrorCode.TYPE, what, at=node.at, fix=f"write {instead}", instead=instead)


def _too_large(at: SourceLocation | None) -> Refused:
    what = "the result could be too large for the machine"
    return Refused(ErrorCode.OVERFLOW, what, at=at, fix="use smaller factors")


def _as_truths(operands: list[TypedScalar]) -> list[TypedScalar]:
    """The operands, where one is a condition and the others the constants 1 and 0, with TRUE and FALSE for these."""
    truths = {o.scalar.value: o for o in operands if isinstance(o.scalar, Literal) and o.type is Type.INT}
    if {o.type for o in operands} != {Type.BOOL, Type.INT} or not truths.keys() <= {0, 1}:
        return operands
    if any(o.type is Type.INT and not isinstance(o.scalar, Literal) for o in operands):
        return operands
    return [
        TypedScalar(Literal(bool(o.scalar.value)), Type.BOOL, nullable=False)
        if o.type is Type.INT and isinstance(o.scalar, Literal)
        else o
        for o in operands
    ]


def _with_nothing(text: TypedScalar) -> Callable[[int], tuple[Key, ...] | None] | None:
    """How to list a text with a list, and the empty one that stands for NULL."""
    inner = text.listing
    if inner is None:
        return None

    def list_texts(most: int) -> tuple[Key, ...] | None:
        found = inner(most - 1)
        return None if found is None else (*found, "")

    return list_texts


def _list_together(operands: list[TypedScalar]) -> Callable[[int], tuple[Key, ...] | None] | None:
    """How to list texts that are put together of constants and of texts with lists; None where one has none."""
    constants = [o.scalar.value if isinstance(o.scalar, Literal) else None for o in operands]
    if not any(o.listing for o in operands) or any(
        o.listing is None and not isinstance(value, str) for o, value in zip(operands, constants, strict=True)
    ):
        return None

    def list_texts(most: int) -> tuple[Key, ...] | None:
        found = [""]
        for operand, constant in zip(operands, constants, strict=True):
            parts = (constant,) if operand.listing is None else operand.listing(most)
            if parts is None or len(found) * len(parts) > most:
                return None
            found = [f"{before}{part}" for before in found for part in parts]
        return tuple(dict.fromkeys(found))

    return list_texts


def _scale(number: TypedScalar, factor: int) -> TypedScalar:
    """An integer with bounds, so many times."""
    ends = [None if end is None else end * factor for end in (number.lower, number.upper)]
    scalar = Call(Function.MULTIPLY, (number.scalar, Literal(factor)))
    return replace(number, scalar=scalar, lower=ends[0], upper=ends[1])


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)
