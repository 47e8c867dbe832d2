"""Subqueries that group by the unit: exact aggregates of each unit's own rows, which need no noise.

**Rule.** An inner aggregate is a function of the multiset of the unit's own rows: counts, sums of integers (a float is
put on its grid first, because engines add floats in an order that other units influence), least and largest values, and
averages as the quotient of the two. How many rows a unit has is not bounded, so a count or a sum has no bounds until
the question clamps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.aggregates.argument import quantize_argument, quote_aggregate
from tacit.aggregates.condition import expand_condition
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar, bind
from tacit.plan.join import columns_of
from tacit.plan.relation import Field, Relation, condition
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    ColumnReference,
    ExactStatistic,
    Literal,
    PerUnitAggregation,
    Projection,
    Query,
    Scalar,
    ToFloat,
    find_location,
    walk,
)
from tacit.query.types import ORDERED_TYPES, Type

INNER = frozenset({"count", "sum", "avg", "min", "max"})


def aggregate_per_unit(query: Query, relation: Relation, names: Iterator[str]) -> Relation:
    """The rows of a subquery that groups by the unit, and maybe by more."""
    if relation.unit is None or not any(relation.is_unit(key) for key in query.keys):
        unit = next((f.name for f in relation.fields if f.is_unit), None)
        there = "" if unit is None else f"group by {unit} there, or "
        raise Refused(
            ErrorCode.UNSUPPORTED,
            "an aggregate in a subquery that does not group by the unit is not answered",
            at=query.at,
            fix=f"{there}ask for the aggregate itself and compute with its answer",
        )
    fold = _Fold(query, relation, names)
    outputs = [(output.name, fold.bind(output.scalar)) for output in query.outputs]
    having = None if query.having is None else condition(fold.bind(query.having), "HAVING", find_location(query.having))
    where = None if query.where is None else condition(relation.bind(query.where), "WHERE", find_location(query.where))
    source = relation.rows
    if where is not None:
        source = Projection(source, tuple((name, ColumnReference(name)) for name in columns_of(source)), where)
    rows = PerUnitAggregation(source, tuple(fold.keys), tuple(fold.measures))
    columns: list[tuple[str, Scalar]] = []
    fields = []
    for output, (name, bound) in zip(query.outputs, outputs, strict=True):
        here = next(names)
        columns.append((here, bound.scalar))
        known = (
            fold.key_fields.get(relation.resolve(output.scalar)) if isinstance(output.scalar, ColumnReference) else None
        )
        fresh = replace(bound, scalar=ColumnReference(here))
        fields.append(Field(name, "", fresh) if known is None else replace(known, name=name, source="", bound=fresh))
    unit = next(names)
    columns.append((unit, ColumnReference(fold.unit)))
    single = len(query.keys) == 1
    each = ContributionBounds(1, 1) if single else relation.each
    whole = Projection(rows, tuple(columns), having)
    return replace(relation, rows=whole, fields=tuple(fields), unit=unit, each=each, single=single, sources=())


@dataclass
class _Fold:
    query: Query
    relation: Relation
    names: Iterator[str]
    keys: list[tuple[str, Scalar]] = field(default_factory=list)
    measures: list[tuple[str, ExactStatistic]] = field(default_factory=list)
    key_bounds: dict[Scalar, TypedScalar] = field(default_factory=dict)
    key_fields: dict[Scalar, Field] = field(default_factory=dict)
    unit: str = ""

    def __post_init__(self) -> None:
        for key in map(self.relation.bare, self.query.keys):
            name = next(self.names)
            plain = self.relation.field_of(key) if isinstance(key, ColumnReference) else None
            bound = plain.bound if plain is not None and plain.is_unit else self.relation.bind(key)
            if bound.type is Type.FLOAT:
                fix = "group by FLOOR(x), or by an int, text or date column"
                raise Refused(ErrorCode.TYPE, "cannot group by a float", at=getattr(key, "at", None), fix=fix)
            self.keys.append((name, bound.scalar))
            resolved = self.relation.resolve(key)
            self.key_bounds[resolved] = replace(bound, scalar=ColumnReference(name))
            if plain is not None:
                self.key_fields[resolved] = plain
            if plain is not None and plain.is_unit and not self.unit:
                # The unit as it lies is a key: clamped, two units could be one.
                assert self.relation.unit is not None
                own = ColumnReference(self.relation.unit)
                self.unit = name if bound.scalar == own else next(self.names)
                if self.unit != name:
                    self.keys.append((self.unit, own))

    def bind(self, scalar: Scalar) -> TypedScalar:
        return bind(scalar, self.leaf, rows=True)

    def leaf(self, node: Scalar) -> TypedScalar | None:
        if isinstance(node, Aggregate):
            return self.aggregate(node)
        if isinstance(node, ColumnReference) or not _has_aggregate(node):
            known = self.key_bounds.get(self.relation.resolve(node))
            if known is not None:
                return known
        if isinstance(node, ColumnReference):
            what = f"{node.name} is neither grouped by nor inside an aggregate"
            ordered = self.relation.field_of(node).bound.type in ORDERED_TYPES
            instead = f"MAX({node.name})" if ordered else f"COUNT(DISTINCT {node.name})"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=f"add it to GROUP BY, or write {instead}")
        return None

    def aggregate(self, node: Aggregate) -> TypedScalar:
        condition = expand_condition(node)
        if condition is not None:
            return self.bind(condition)
        if node.function not in INNER or (node.distinct and node.function != "count"):
            raise Refused(
                ErrorCode.UNSUPPORTED,
                f"{quote_aggregate(node)} in a subquery is not answered",
                at=node.at,
                fix="inside a subquery use COUNT, SUM, AVG, MIN and MAX, and other aggregates outside",
            )
        argument = None if node.argument is None else self._argument(node.argument)
        if node.function == "count":
            function = "distinct" if node.distinct else "count"
            name = self.measure(function, None if argument is None else argument.scalar)
            return TypedScalar(ColumnReference(name), Type.INT, Fraction(0), MOST_INT, Fraction(1), nullable=False)
        assert argument is not None
        if node.function in {"min", "max"}:
            if argument.type in {Type.TEXT, Type.BOOL, None}:
                what = f"{quote_aggregate(node)} needs a number or a date"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="use COUNT(DISTINCT x)")
            return replace(
                argument, scalar=ColumnReference(self.measure(node.function, argument.scalar)), nullable=True
            )
        grid = quantize_argument(node, argument)
        total = ColumnReference(self.measure("sum", grid.scalar))
        if node.function == "sum":
            # However many rows there are, a sum of what is never negative is not, and likewise for never positive.
            low, high = (Fraction(0) if grid.lower >= 0 else None), (Fraction(0) if grid.upper <= 0 else None)
            if argument.type is Type.INT:
                least, most = LEAST_INT if low is None else low, MOST_INT if high is None else high
                return TypedScalar(total, Type.INT, least, most, Fraction(1))
            return TypedScalar(
                Call(Function.MULTIPLY, (ToFloat(total), Literal(grid.step))), Type.FLOAT, low, high, grid.step
            )
        rows = ColumnReference(self.measure("count", grid.scalar))
        mean = Call(Function.DIVIDE, (Call(Function.MULTIPLY, (ToFloat(total), Literal(grid.step))), ToFloat(rows)))
        return TypedScalar(mean, Type.FLOAT, grid.step * grid.lower, grid.step * grid.upper)

    def _argument(self, scalar: Scalar) -> TypedScalar:
        scalar = self.relation.bare(scalar)
        plain = self.relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
        return plain.bound if plain is not None and plain.is_unit else self.relation.bind(scalar)

    def measure(self, function: str, argument: Scalar | None) -> str:
        """The column of a measure; one needed twice is computed once."""
        wanted = ExactStatistic(function, argument)
        for name, known in self.measures:
            if known == wanted:
                return name
        name = next(self.names)
        self.measures.append((name, wanted))
        return name


def _has_aggregate(scalar: Scalar) -> bool:
    return any(isinstance(node, Aggregate) for node in walk(scalar))
