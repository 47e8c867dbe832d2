"""Names, types and public bounds.

A bound scalar is lowered for an engine: columns are clamped to what the policy declares, integers that meet floats are
made floats, and the range of its values is known by interval arithmetic over declared bounds, never from the data.

**Rule.** For every row, whatever it holds, a bound scalar is NULL or a value of its type; a bound INT lies in
[lower, upper], which lies in 64 bits; a FLOAT computed in doubles may pass its bounds by rounding, so whoever adds it
up clamps it once more, as an integer.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from tacit.arithmetic import common_step
from tacit.errors import Code, Place, Refused
from tacit.policy.model import Table
from tacit.query.functions import COMPARISONS, CONDITIONS, FINISHING_ONLY, Fn
from tacit.query.nodes import Aggregate, Call, Case, Clamp, Column, Literal, Scalar, ToFloat, place_of
from tacit.query.types import NUMBERS, Type, iso_date

_LEAST_INT, _MOST_INT = Fraction(-(2**63)), Fraction(2**63 - 1)
_LARGEST_FLOAT = Fraction(10) ** 200


@dataclass(frozen=True)
class Bound:
    """A lowered scalar and what is publicly known of its values.

    `type` is None for a bare NULL. A bound that is None is infinite. `step` is a grid that every value lies on, up to
    rounding, or None; zero where the only value is zero. `nullable` is False only where no row can give NULL.
    """

    scalar: Scalar
    type: Type | None
    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    nullable: bool = True

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known and are more than those of the machine."""
        return self.lower is not None and self.upper is not None and not self.undeclared

    @property
    def undeclared(self) -> bool:
        """Whether this is an integer bounded by its 64 bits alone."""
        return self.type is Type.INT and (self.lower == _LEAST_INT or self.upper == _MOST_INT)


Leaf = Callable[[Scalar], Bound]


def bind_row(scalar: Scalar, table: Table, alias: str) -> Bound:
    """A scalar over the rows of a table."""

    def leaf(node: Scalar) -> Bound:
        if isinstance(node, Column):
            return _column(node, table, alias)
        if isinstance(node, Aggregate):
            raise Refused(
                Code.AGGREGATE,
                f"{node.function.upper()} cannot stand inside WHERE or another aggregate",
                at=node.at,
                fix="filter released values with HAVING; combine them outside: SUM(x) / COUNT(*)",
            )
        raise AssertionError(f"no leaf of a row: {node!r}")

    return _Binder(leaf, rows=True).bind(scalar)


def bind_released(scalar: Scalar, leaf: Leaf) -> Bound:
    """A scalar over released values and keys, which `leaf` knows. Nothing is bounded there, and nothing needs to be."""
    return _Binder(leaf, rows=False).bind(scalar)


def find(node: Column, table: Table, alias: str) -> str:
    """The policy's name of a column, or Refused. Unlisted columns and absent ones are refused alike."""
    if node.table is not None and node.table.lower() not in {alias.lower(), table.name.lower()}:
        raise Refused(
            Code.UNKNOWN_TABLE,
            f"{node.table} is not a table of this question",
            at=node.at,
            fix=f"this question is over {alias}",
        )
    column = table.column(node.name)
    if column is None:
        names = ", ".join(c.name for c in table.columns)
        raise Refused(
            Code.UNKNOWN_COLUMN, f"{table.name} has no column {node.name}", at=node.at, fix=f"its columns are {names}"
        )
    return column.name


def _column(node: Column, table: Table, alias: str) -> Bound:
    column = table.column(find(node, table, alias))
    assert column is not None
    plain = Column(column.name)
    match column.type:
        case Type.INT if column.lower is None:
            return Bound(plain, Type.INT, _LEAST_INT, _MOST_INT, Fraction(1))
        case Type.INT:
            return Bound(
                Clamp(plain, column.lower, column.upper, whole=True), Type.INT, column.lower, column.upper, Fraction(1)
            )
        case Type.FLOAT:
            clamped = Clamp(plain, column.lower, column.upper, whole=False)
            return Bound(clamped, Type.FLOAT, column.lower, column.upper, column.step)
    return Bound(plain, column.type)


class _Binder:
    """One rule for each node. `rows` asks for bounds wherever a value is computed with."""

    def __init__(self, leaf: Leaf, rows: bool) -> None:
        self.leaf = leaf
        self.rows = rows

    def bind(self, node: Scalar) -> Bound:
        match node:
            case Literal():
                return self.literal(node)
            case Case():
                return self.case(node)
            case Call(function, arguments):
                return self.call(node, Fn(function), [self.bind(argument) for argument in arguments])
        return self.leaf(node)

    def literal(self, node: Literal) -> Bound:
        match node.value:
            case None:
                return Bound(node, None)
            case bool():
                return Bound(node, Type.BOOL, nullable=False)
            case int(value):
                if not _LEAST_INT <= value <= _MOST_INT:
                    raise Refused(Code.OVERFLOW, f"{value} does not fit 64 bits", at=node.at, fix=f"write {value}.0")
                return Bound(node, Type.INT, Fraction(value), Fraction(value), Fraction(abs(value)), nullable=False)
            case Fraction() as number:
                if abs(number) > _LARGEST_FLOAT:
                    raise Refused(Code.OVERFLOW, "the number is too large", at=node.at, fix="use a smaller one")
                return Bound(node, Type.FLOAT, number, number, abs(number), nullable=False)
            case str():
                return Bound(node, Type.TEXT, nullable=False)
            case datetime.date():
                return Bound(node, Type.DATE, nullable=False)

    def call(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        if self.rows and function in FINISHING_ONLY:
            raise Refused(
                Code.UNKNOWN_FUNCTION,
                f"{function.upper()} over rows is not answered",
                at=node.at,
                fix="use FLOOR(x + 0.5)",
            )
        if function in CONDITIONS:
            self.expect(operands, {Type.BOOL}, node, f"{function.upper()} takes conditions")
            return Bound(Call(function, _scalars(operands)), Type.BOOL, nullable=any(o.nullable for o in operands))
        if function is Fn.IS_NULL:
            return Bound(Call(function, _scalars(operands)), Type.BOOL, nullable=False)
        if function in COMPARISONS or function is Fn.IN:
            return self.comparison(node, function, operands)
        if function in {Fn.LEAST, Fn.GREATEST, Fn.COALESCE}:
            return self.choice(node, function, operands)
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
        return Bound(Call(function, _scalars(operands)), Type.BOOL, nullable=any(o.nullable for o in operands))

    def choice(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        """LEAST, GREATEST and COALESCE skip NULLs, so an operand that may be NULL bounds nothing from its own side."""
        operands = self.same(node, operands)
        if function is not Fn.COALESCE:
            self.expect(operands, NUMBERS, node, f"{function.upper()} compares numbers")
        lower, upper = _hull(operands)
        sure = [o for o in operands if not o.nullable]
        if function is Fn.LEAST:
            caps = [o.upper for o in sure if o.upper is not None]
            upper = min([*caps, *([] if upper is None else [upper])], default=None)
        if function is Fn.GREATEST:
            floors = [o.lower for o in sure if o.lower is not None]
            lower = max([*floors, *([] if lower is None else [lower])], default=None)
        kind = next((o.type for o in operands if o.type is not None), None)
        return Bound(Call(function, _scalars(operands)), kind, lower, upper, _grid(operands), nullable=not sure)

    def case(self, node: Case) -> Bound:
        conditions = [self.bind(when) for when, _ in node.branches]
        self.expect(conditions, {Type.BOOL}, node, "WHEN takes a condition")
        results = self.same(node, [*(self.bind(then) for _, then in node.branches), self.bind(node.otherwise)])
        lower, upper = _hull(results)
        branches = tuple((c.scalar, r.scalar) for c, r in zip(conditions, results, strict=False))
        kind = next((r.type for r in results if r.type is not None), None)
        lowered = Case(branches, results[-1].scalar)
        return Bound(lowered, kind, lower, upper, _grid(results), nullable=any(r.nullable for r in results))

    def arithmetic(self, node: Call, function: Fn, operands: list[Bound]) -> Bound:
        self.expect(operands, NUMBERS, node, f"{function.upper()} takes numbers")
        if function is Fn.ROUND:
            return self.rounded(node, operands)
        for operand in operands:
            if self.rows and not operand.bounded:
                raise Refused(
                    Code.UNBOUNDED,
                    "an operand has no declared bounds, so the result has none",
                    at=place_of(node),
                    fix="bound it first: GREATEST(0, LEAST(x, 1000)), or ask the owner for lower and upper",
                )
        if function in {Fn.FLOOR, Fn.CEIL} and operands[0].type is Type.INT:
            return operands[0]  # engines make it a double, which cannot hold all of it
        if function is Fn.DIVIDE or len(operands) == 2:
            operands = self.same(node, operands, force_float=function is Fn.DIVIDE)
        scalar = Call(function, _scalars(operands))
        kind = operands[0].type
        nullable = any(o.nullable for o in operands)
        if not self.rows:
            return Bound(scalar, kind, nullable=nullable)
        lower, upper, step = _interval(function, operands)
        if function is Fn.DIVIDE and not _is_constant(operands[1]):
            nullable = True  # bounds may exclude zero where a double still underflows to it
        result = Bound(scalar, kind, lower, upper, step, nullable)
        self.fits(result, node.at)
        return result

    def rounded(self, node: Call, operands: list[Bound]) -> Bound:
        digits = node.arguments[1:]
        if any(not isinstance(d, Literal) or not isinstance(d.value, int) or d.value > 15 for d in digits):
            raise Refused(Code.TYPE, "ROUND takes a constant number of digits", at=node.at, fix="ROUND(AVG(x), 2)")
        return Bound(Call(Fn.ROUND, _scalars(operands)), operands[0].type, nullable=operands[0].nullable)

    def fits(self, result: Bound, at: Place | None) -> None:
        """Refuse what the machine's numbers could not hold."""
        low, high = (_LEAST_INT, _MOST_INT) if result.type is Type.INT else (-_LARGEST_FLOAT, _LARGEST_FLOAT)
        if result.lower is not None and result.upper is not None and not low < result.lower <= result.upper < high:
            raise Refused(
                Code.OVERFLOW, "the result could be too large for the machine", at=at, fix="use smaller factors"
            )

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

    def expect(self, operands: Iterable[Bound], kinds: set[Type] | frozenset[Type], node: Scalar, what: str) -> None:
        for operand in operands:
            if operand.type not in kinds:
                fix = "leave NULL out" if operand.type is None else "check the column's type in the schema"
                found = operand.type or "NULL"
                raise Refused(Code.TYPE, f"{what}, got {found}", at=place_of(node), fix=fix)


def _scalars(operands: Iterable[Bound]) -> tuple[Scalar, ...]:
    return tuple(o.scalar for o in operands)


def _is_constant(operand: Bound) -> bool:
    """Whether this is a literal, and not zero as a double."""
    scalar = operand.scalar.operand if isinstance(operand.scalar, ToFloat) else operand.scalar
    return isinstance(scalar, Literal) and isinstance(scalar.value, int | Fraction) and float(scalar.value) != 0


def _as_float(operand: Bound) -> Bound:
    if operand.type is not Type.INT:
        return operand
    # An undeclared integer is as good as unbounded; as a float it has no grid that is worth knowing.
    lower, upper, step = (None, None, None) if operand.undeclared else (operand.lower, operand.upper, operand.step)
    return Bound(ToFloat(operand.scalar), Type.FLOAT, lower, upper, step, operand.nullable)


def _as_date(operand: Bound, node: Scalar) -> Bound:
    if operand.type is not Type.TEXT:
        return operand
    date = iso_date(str(operand.scalar.value)) if isinstance(operand.scalar, Literal) else None
    if date is not None:
        return Bound(Literal(date), Type.DATE, nullable=False)
    raise Refused(Code.TYPE, "a date is compared with a date", at=place_of(node), fix="write DATE '2025-12-31'")


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
