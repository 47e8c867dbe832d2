"""The last look at what an engine is told, before anything is charged: no row can make it fail.

**Theorem.** An engine that computes what has passed this check raises for no row that tables hold as they are declared.
So whether a question fails is no function of the rows, and failing tells nothing of them. *Proof*, by induction over
the nodes of rows: the columns of each lie within their ranges, by `plan/machine_ranges.py` for scalars, and here for
what is computed of several rows. Sums that 64 bits do not hold are NULL.

Whatever does not pass is refused: the rules of functions (`plan/bounds.py`) bound what they compute already, and a rule
that is false for some operands must not be found out by the rows that have them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.machine_ranges import (
    ANY_INTEGER,
    OPAQUE,
    Range,
    Ranges,
    UnsafeScalar,
    ValueKind,
    hull,
    range_of_type,
)
from tacit.policy.model import Policy
from tacit.query.nodes import (
    Aggregation,
    Constants,
    EquiJoin,
    ExactStatistic,
    Literal,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
    WindowStatistic,
    find_location,
    walk,
)
from tacit.query.types import Key, Type

_COUNTED = ANY_INTEGER._replace(lower=0, is_sure=True)
_NUMBERED = ANY_INTEGER._replace(lower=1, is_sure=True)
_KEYS: dict[ValueKind, type] = {
    ValueKind.INT: int,
    ValueKind.FLOAT: int,
    ValueKind.TEXT: str,
    ValueKind.BOOL: bool,
    ValueKind.DATE: datetime.date,
}
_FIX = "use smaller numbers, or clamp a part of it: LEAST(GREATEST(x, 0), 1000)"


class ArithmeticCheck:
    """Checks what engines compute over rows of the tables of a policy. A scalar or node of rows is looked at once."""

    def __init__(self, policy: Policy, at: SourceLocation | None = None) -> None:
        self._policy = policy
        self._at = at
        self._rows: dict[int, tuple[RelationalNode, Ranges]] = {}  # with the node, so that its id stays its own

    def check(self, exact: Aggregation, measures: Iterable[ExactStatistic] = ()) -> None:
        """Refuse an aggregation, and more measures of its rows, for which a row might fail."""
        scalars = [] if exact.where is None else [exact.where]
        try:
            self.check_scalars(exact.source, scalars)
            ranges = self._ranges(exact.source)
            for key in exact.keys:
                self.require_type(ranges.find(key.scalar), key.values or (), key.scalar)
            for measure in (*exact.measures, *measures):
                _measure(ranges, measure)
        except UnsafeScalar as unsafe:
            raise self._refuse(unsafe) from None

    def check_scalars(self, rows: RelationalNode, scalars: Iterable[Scalar]) -> None:
        """Refuse rows, and scalars over them, for which a row might fail."""
        try:
            ranges = self._ranges(rows)
            for scalar in scalars:
                ranges.find(scalar)
        except UnsafeScalar as unsafe:
            raise self._refuse(unsafe) from None

    def check_values(self, rows: RelationalNode, scalar: Scalar | None, values: tuple[Key, ...]) -> None:
        """Refuse listed values of a scalar over rows that are not of its type."""
        if scalar is not None:
            try:
                self.require_type(self._ranges(rows).find(scalar), values, scalar)
            except UnsafeScalar as unsafe:
                raise self._refuse(unsafe) from None

    @staticmethod
    def require_type(found: Range, values: tuple[Key, ...], scalar: Scalar) -> None:
        """Refuse listed values that are of another type than what they list."""
        wanted = _KEYS.get(found.kind)
        if wanted is not None and not set(map(type, values)) <= {wanted}:
            raise UnsafeScalar(scalar, "the listed values are of another type")

    def _refuse(self, unsafe: UnsafeScalar) -> Refused:
        places = (find_location(node) for node in walk(unsafe.node))
        at = next((place for place in places if place is not None), self._at)
        return Refused(ErrorCode.OVERFLOW, unsafe.what, at=at, fix=_FIX)

    def _ranges(self, node: RelationalNode) -> Ranges:
        """The ranges of scalars over the rows of a node."""
        found = self._rows.get(id(node))
        if found is None:
            found = self._rows[id(node)] = node, Ranges(self._columns(node))
        return found[1]

    def _columns(self, node: RelationalNode) -> dict[str, Range]:
        match node:
            case Scan(table, columns):
                declared = self._policy.declared_table(table)
                types = {} if declared is None else {column.name: column.type for column in declared.columns}
                return {here: range_of_type(types.get(there)) for there, here in columns}
            case Constants():
                return _constants(node)
            case Projection(source, columns, where):
                ranges = self._ranges(source)
                if where is not None:
                    ranges.find(where)
                return {name: ranges.find(scalar) for name, scalar in columns}
            case EquiJoin(left, right, on, outer):
                one, other = self._ranges(left), self._ranges(right)
                for scalar, matched in on:
                    one.find(scalar)
                    other.find(matched)
                found = other.columns
                if outer:
                    found = {name: each._replace(is_sure=False) for name, each in found.items()}
                return {**one.columns, **found}
            case PerUnitAggregation(source, keys, measures):
                ranges = self._ranges(source)
                grouped = {name: ranges.find(scalar) for name, scalar in keys}
                return grouped | {name: _measure(ranges, measure) for name, measure in measures}
            case UnitWindow(source, columns=made):
                before = self._ranges(source).columns
                return {**before, **{name: _window(before, statistic) for name, statistic in made}}
            case RowUnion(parts):
                each_part = [self._ranges(part).columns for part in parts]
                return {name: hull([columns.get(name, OPAQUE) for columns in each_part]) for name in each_part[0]}


def _constants(node: Constants) -> dict[str, Range]:
    """The ranges of the columns of constants."""
    found = {}
    for place, (name, kind) in enumerate(node.columns):
        values = dict.fromkeys(Literal(row[place]) for row in node.rows)
        ranges = Ranges({})
        whole = range_of_type(kind)
        known = hull([ranges.find(value) for value in values])
        found[name] = known if known.kind is whole.kind else whole
        if kind is Type.FLOAT and known.kind is ValueKind.INT:
            found[name] = known._replace(kind=ValueKind.FLOAT, lower=float(known.lower), upper=float(known.upper))
    return found


def _measure(ranges: Ranges, measure: ExactStatistic) -> Range:
    """The range of an exact statistic of rows."""
    argument = None if measure.argument is None else ranges.find(measure.argument)
    match measure.function:
        case "count" | "distinct" | "units" | "weight":
            return _COUNTED
        case "sum" | "distinct_sum" if argument is not None:
            if argument.kind is ValueKind.NULL:
                return argument
            if argument.kind is ValueKind.INT:
                return _sum(argument)
        case "min" | "max" | "histogram" if argument is not None:
            return argument._replace(is_sure=False)
    raise UnsafeScalar(measure.argument or Literal(None), f"{measure.function.upper()} has no range")


def _sum(argument: Range, rows: int | None = None) -> Range:
    """A sum of integers, of at most so many where that is known. It is NULL where 64 bits do not hold it."""
    lower, upper = ANY_INTEGER.lower, ANY_INTEGER.upper
    if rows is not None:
        lower = max(lower, min(argument.lower, argument.lower * rows))
        upper = min(upper, max(argument.upper, argument.upper * rows))
    lower = max(lower, 0) if argument.lower >= 0 else lower
    upper = min(upper, 0) if argument.upper <= 0 else upper
    return Range(ValueKind.INT, lower, upper)


def _window(columns: Mapping[str, Range], statistic: WindowStatistic) -> Range:
    """The range of what is computed from the rows of a partition."""
    argument = None if statistic.argument is None else columns.get(statistic.argument, OPAQUE)
    start, end = statistic.start, statistic.end
    rows = None if statistic.peers or start is None or end is None else end - start + 1
    match statistic.function:
        case "row_number" | "rank" | "dense_rank":
            return _NUMBERED
        case "ntile" if statistic.number is not None:
            return _NUMBERED._replace(upper=statistic.number)
        case "count":
            return _COUNTED if rows is None else _COUNTED._replace(upper=rows)
        case "sum" if argument is not None and argument.kind is ValueKind.INT:
            return _sum(argument, rows)
        case "lag" | "lead" if argument is not None and statistic.otherwise is not None:
            return hull([argument, columns.get(statistic.otherwise, OPAQUE)], is_sure=False)
        case "lag" | "lead" | "first_value" | "last_value" | "nth_value" | "min" | "max" if argument is not None:
            return argument._replace(is_sure=False)
    raise UnsafeScalar(Literal(None), f"{statistic.function.upper()} over a window has no range")
