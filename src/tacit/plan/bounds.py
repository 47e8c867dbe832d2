"""Types and public bounds of scalars, one rule for each node and function.

A bound scalar is lowered for an engine: integers that meet floats are made floats, and the range of its values is known
by interval arithmetic over declared bounds, never from the data.

**Rule.** For every row, whatever it holds, a bound scalar is NULL or a value of its type; a bound INT lies in
[lower, upper], which lies in 64 bits, and a DATE or TIMESTAMP in [lower, upper] where these are known; a FLOAT computed
in doubles may pass its bounds by rounding, so whoever adds it up clamps it once more, as an integer. The bounds of a
DATE are days, counted as `date.toordinal` does. A TIMESTAMP is an integer (`query/timestamps.py`) and its functions are
made of those of integers and dates (`plan/timestamps.py`), so it needs no rules of its own.

The rules of functions stand by family: numbers in `plan/number_rules.py`, texts in `plan/text_rules.py`, dates and
timestamps in `plan/date_rules.py`, comparisons and choices in `plan/choice_rules.py`. What they share is in
`plan/binding.py`.

*Proof*, by induction: the rule of each function maps every choice of operands within their bounds into the result's.
What depends on the rounding of a double is claimed of no INT and no DATE, and never excludes NULL: SIGN of a float may
be any of its three values, and a divisor or the operand of SQRT or LN may round to what its bounds exclude.

**Cost.** A value takes at most `MOST_PARTS` operations and is made of at most `MOST_TEXTS` texts of its row, also where
it stands for a column of a subquery. Engines copy an operand to guard it, so what is guarded counts several times.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from tacit.errors import ErrorCode, Refused
from tacit.plan.binding import LARGEST_FLOAT, expect_types, limit_work, read_timestamps, unify_types
from tacit.plan.binding import MOST_PARTS as MOST_PARTS
from tacit.plan.casts import as_text, cast
from tacit.plan.choice_rules import bind_choice, bind_comparison
from tacit.plan.date_rules import (
    bind_calendar_part,
    bind_date_arithmetic,
    bind_date_part,
    bind_date_trunc,
    bind_days,
    bind_difference_part,
    bind_format,
    bind_periods,
    bind_shifted_date,
)
from tacit.plan.formats import count_copies
from tacit.plan.number_rules import (
    bind_arithmetic,
    bind_curve,
    bind_modulo,
    bind_power,
    bind_rounding,
    bind_sign,
    bind_whole_quotient,
)
from tacit.plan.operands import any_null, constant_date, scalars_of
from tacit.plan.ranges import domain as domain
from tacit.plan.ranges import one_of
from tacit.plan.text_rules import bind_length, bind_like, bind_padding, bind_replacement, bind_text, list_with_empty
from tacit.plan.timestamps import as_timestamp, constant_timestamp, time_part
from tacit.query.bound import LEAST_INT as LEAST_INT
from tacit.query.bound import MOST_INT as MOST_INT
from tacit.query.bound import TypedScalar as TypedScalar
from tacit.query.functions import COMPARISONS, CONDITIONS, DATE_PARTS, GROUPING, MOST_LITERAL, TIME_PARTS, Function
from tacit.query.integer_types import PostgresType, type_of_call, type_of_cast, type_of_literal, widest
from tacit.query.intervals import interval_parts, is_interval
from tacit.query.nodes import Call, Case, Literal, Placeholder, Scalar, ScalarSubquery, Window, find_location
from tacit.query.timestamps import PERIODS
from tacit.query.types import TIME_TYPES, Type

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
    """A scalar with its type and bounds. `leaf` knows the nodes that are names, and may know any other
    but constants as a whole.

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
        if isinstance(node, Literal):
            return self.literal(node)
        known = self.leaf(node)
        if known is not None:
            return known
        match node:
            case Case():
                return self.case(node)
            case Placeholder(_, Type.INT):
                kind = node.postgres_type
                return TypedScalar(node, Type.INT, LEAST_INT, MOST_INT, Fraction(1), postgres_type=kind)
            case Placeholder(_, Type() as type_):
                return TypedScalar(node, type_)
            case Call(Function.CAST, (inner, _)):
                operand = self.bind(inner)
                result = cast(node, operand, rows=self.rows)
                result = operand if result is operand else limit_work(result, [operand.weight] * 2, node)
                return after_cast(node, result)
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
                return replace(self.apply(argument, [written, self.bind(nothing)]), listing=list_with_empty(written))
        part = self.bind(argument)
        written = None if part.type in {Type.TEXT, None} else as_text(part)
        return part if written is None else limit_work(written, [_BETWEEN * part.weight], node)

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
        length = min(max(sum(lengths), int(LEAST_INT)), int(MOST_INT))  # beyond which no two timestamps lie apart
        scalar = Call(function, (Call(Function.SUBTRACT, scalars_of(moments)), Literal(length)))
        result = TypedScalar(scalar, Type.BOOL, nullable=any_null(moments))
        return limit_work(result, [o.weight for o in moments], node)

    def part_of_difference(self, node: Call, less: Call, part: Function, ends: list[TypedScalar]) -> TypedScalar:
        """A part of a - b, which is an interval where one of both is a timestamp, and a date or a number otherwise."""
        if all(o.type in TIME_TYPES for o in ends) and any(o.type is Type.TIMESTAMP for o in ends):
            found = replace(bind_difference_part(node, part, ends), postgres_type=PostgresType.NUMERIC)
            return limit_work(found, [_BETWEEN * o.weight for o in ends], node)
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
        kind = type_of_call(function, (o.postgres_type for o in operands))
        result = replace(self.call(node, function, operands), postgres_type=kind)
        return limit_work(result, [copies * weight for weight in weights], node)

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
                whole, kind = Fraction(value), type_of_literal(value)
                return TypedScalar(node, Type.INT, whole, whole, abs(whole), nullable=False, postgres_type=kind)
            case Fraction() as number:
                if abs(number) > LARGEST_FLOAT:
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
            expect_types(self, operands, {Type.BOOL}, node, f"{function.upper()} takes conditions")
            return TypedScalar(Call(function, scalars_of(operands)), Type.BOOL, nullable=any_null(operands))
        if function in COMPARISONS or function is Function.IN:
            return bind_comparison(node, function, operands)
        if function in DATE_PARTS:
            return bind_date_part(self, node, function, operands)
        if function in TIME_PARTS:
            (operand,) = read_timestamps(self, operands, node, f"{function.upper()} takes a timestamp")
            return time_part(function, operand)
        match function:
            case Function.IS_NULL:
                return TypedScalar(Call(function, scalars_of(operands)), Type.BOOL, nullable=False)
            case Function.LEAST | Function.GREATEST | Function.COALESCE:
                return bind_choice(self, node, function, operands)
            case Function.MOD:
                return bind_modulo(self, node, operands)
            case Function.POWER:
                return bind_power(self, node, operands)
            case Function.SQRT | Function.LN | Function.LOG10 | Function.EXP:
                return bind_curve(self, node, function, operands)
            case Function.SIGN:
                return bind_sign(self, node, operands)
            case Function.LOWER | Function.UPPER | Function.TRIM | Function.LTRIM | Function.RTRIM | Function.CONCAT:
                return bind_text(self, node, function, operands)
            case Function.SUBSTRING | Function.RIGHT:
                return bind_text(self, node, function, operands)
            case Function.SPLIT_PART | Function.REPLACE:
                return bind_replacement(self, node, function, operands)
            case Function.LPAD | Function.RPAD:
                return bind_padding(self, node, function, operands)
            case Function.LENGTH | Function.POSITION:
                return bind_length(self, node, function, operands)
            case Function.LIKE:
                return bind_like(self, node, operands)
            case Function.DATE_TRUNC:
                return bind_date_trunc(self, node, operands)
            case Function.DAYS:
                return bind_days(self, node, operands)
            case Function.QUOTIENT:
                return bind_periods(self, node, operands)
            case Function.ADD | Function.SUBTRACT if {Type.DATE, Type.INT} == {o.type for o in operands}:
                return bind_shifted_date(self, node, function, operands)
            case Function.SUBTRACT if any(o.type in TIME_TYPES for o in operands):
                return bind_days(self, node, operands)
            case Function.ROUND | Function.TRUNC:
                return bind_rounding(self, node, function, operands)
            case Function.DIV:
                return bind_whole_quotient(self, node, operands)
            case Function.DATE_ADD | Function.DATE_DIFF | Function.ELAPSED | Function.AGE:
                return bind_date_arithmetic(self, node, function, operands)
            case Function.EPOCH | Function.YEAR_WEEK | Function.LAST_DAY | Function.WEEK_START:
                return bind_calendar_part(self, node, function, operands)
            case Function.TO_CHAR:
                return bind_format(node, operands)
        return bind_arithmetic(self, node, function, operands)

    def case(self, node: Case) -> TypedScalar:
        """One of the results, whatever the conditions say."""
        conditions = [self.bind(when) for when, _ in node.branches]
        expect_types(self, conditions, {Type.BOOL}, node, "WHEN takes a condition")
        results = unify_types(node, [*(self.bind(then) for _, then in node.branches), self.bind(node.otherwise)])
        branches = tuple((c.scalar, r.scalar) for c, r in zip(conditions, results, strict=False))
        result = one_of(Case(branches, results[-1].scalar), results, nullable=any_null(results))
        result = replace(result, postgres_type=widest(r.postgres_type for r in results))
        return limit_work(result, [o.weight for o in (*conditions, *results)], node)

    def ratio(self, node: Call, operands: list[TypedScalar], *, cut: bool = False) -> TypedScalar:
        """x / y as PostgreSQL has it: of integers their quotient cut off, as DIV(x, y) is, of others a float.

        Where FLOOR has `cut` the quotient of numbers that are not negative, both are the same, and it is the float.
        """
        whole = len(operands) == 2 and all(o.has_whole_quotient for o in operands)
        left, right = (o.lower for o in (operands * 2)[:2])
        if cut and left is not None and left >= 0 and right is not None and right > 0:
            whole = False
        found = self.apply(replace(node, function=Function.DIV if whole else Function.DIVIDE), operands)
        return replace(found, postgres_type=widest(o.postgres_type for o in operands))


def after_cast(written: Scalar, bound: TypedScalar) -> TypedScalar:
    """What a scalar gives, with PostgreSQL's type that a cast to an integer type says: that of others stays."""
    match written:
        case Call(Function.CAST, (_, Literal(str() as name))) if bound.type is Type.INT:
            return replace(bound, postgres_type=type_of_cast(name))
    return bound
