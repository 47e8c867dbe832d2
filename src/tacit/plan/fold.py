"""Subqueries that group by the unit: exact aggregates of each unit's own rows, which need no noise.

**Rule.** An inner aggregate is a function of the multiset of the unit's own rows: counts, sums of integers (a float is
put on its grid first, because engines add floats in an order that other units influence), least and largest values, and
averages as the quotient of the two. How many rows a unit has is not bounded, so a count or a sum has no bounds until
the question clamps it, or needs bounds and is given those of the policy's caps (`plan/caps.py`).

The unit need not be named where a key determines it: rows with the same key of a private table are one unit's
(`RowReference`). It is then grouped by along with the others, which makes no more groups. A public relation has no
units, so it may be grouped by anything; no two rows of the result share all keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.aggregates.argument import quantize_argument, quote_aggregate, quote_argument
from tacit.aggregates.condition import expand_condition
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar, after_cast
from tacit.plan.caps import Cap, bind_within_caps, cap_of, pass_cap
from tacit.plan.joined_columns import columns_of
from tacit.plan.relation import Field, Relation, RowReference, condition, refuse_link, refuse_unit
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.integer_types import PostgresType, type_of_aggregate
from tacit.query.nodes import (
    Aggregate,
    Call,
    ColumnReference,
    ExactStatistic,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    Query,
    Scalar,
    ToFloat,
    find_location,
    walk,
)
from tacit.query.suggest import quote_scalar
from tacit.query.types import ORDERED_TYPES, Type

_MOST_POINTS = 2**53  # of the grid of a float that is grouped by
INNER = frozenset({"count", "sum", "avg", "min", "max"})


def aggregate_per_unit(query: Query, relation: Relation, names: Iterator[str]) -> Relation:
    """The rows of a subquery that groups by the unit, and maybe by more; or of a public one."""
    public = relation.people is None and bool(query.keys)
    if not public and (relation.unit is None or not any(_determines_unit(relation, key) for key in query.keys)):
        unit = next((f.name for f in relation.fields if f.is_unit), None)
        there = "" if unit is None else f"group by {unit} there, or "
        raise Refused(
            ErrorCode.UNSUPPORTED,
            "an aggregate in a subquery that does not group by the unit is not answered",
            at=query.at,
            fix=f"{there}ask for the aggregate itself and compute with its answer",
        )
    fold = UnitAggregates(query, relation, names)
    outputs = [(output.name, fold.output(output.scalar)) for output in query.outputs]
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
        fresh, cap = replace(bound, scalar=ColumnReference(here), capped=None, is_per_unit=False), cap_of(bound)
        raw = here if public and fold.is_key(bound.scalar) else ""
        computed = Field(name, "", fresh, raw=raw, is_matched_unit=bound.is_per_unit, is_null=bound.is_null)
        fields.append(replace(computed if known is None else fold.pass_key(known, name, fresh), cap=cap))
    unit = None
    if not public:
        unit = next(names)
        columns.append((unit, ColumnReference(fold.unit)))
    single = not public and len(query.keys) == 1 and relation.is_unit(query.keys[0])
    each = ContributionBounds(1, 1) if single else relation.each
    return replace(
        relation,
        rows=Projection(rows, tuple(columns), having),
        fields=tuple(fields),
        unit=unit,
        each=each,
        single=single,
        sources=(),
        implied=(),
        keys=fold.find_keys(columns) if public else (),
    )


def _determines_unit(relation: Relation, key: Scalar) -> bool:
    """Whether rows that share a key are one unit's: it is the unit, or names a row of a private table."""
    key = relation.bare(key)
    return relation.is_unit(key) or (
        isinstance(key, ColumnReference) and _link_as_stored(relation.field_of(key, links=True)) is not None
    )


def _link_as_stored(found: Field) -> RowReference | None:
    """What a field names, where its values are those that are stored and not clamped ones."""
    if found.link is None or found.bound.scalar != ColumnReference(found.link.column):
        return None
    return found.link


def _grid_of(bound: TypedScalar, key: Scalar) -> Quantize:
    """A float as a key: the number of the point of its grid. Without a grid engines may tell floats apart otherwise."""
    if not bound.step or not bound.is_bounded or bound.lower is None or bound.upper is None:
        fix = "group by a whole number, a text or a date"
        raise Refused(ErrorCode.TYPE, "cannot group by a float", at=find_location(key), fix=fix)
    lower, upper = math.floor(bound.lower / bound.step), math.ceil(bound.upper / bound.step)
    if max(-lower, upper) > _MOST_POINTS:
        what, fix = "cannot group by a float with so many values", "group by FLOOR(x), or declare a larger step"
        raise Refused(ErrorCode.TYPE, what, at=find_location(key), fix=fix)
    return Quantize(bound.scalar, bound.step, lower, upper)


@dataclass
class UnitAggregates:
    """The keys and measures of a query that groups the rows of each unit."""

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
            plain = self.relation.field_of(key, links=True) if isinstance(key, ColumnReference) else None
            opaque = plain is not None and (plain.is_unit or plain.is_unlisted_link)
            bound = plain.bound if plain is not None and opaque else self.relation.bind(key)
            resolved = self.relation.resolve(key)
            if bound.type is Type.FLOAT:
                grid = _grid_of(bound, key)
                self.keys.append((name, grid))
                value = Call(Function.MULTIPLY, (ToFloat(ColumnReference(name)), Literal(grid.step)))
                self.key_bounds[resolved] = replace(bound, scalar=value, capped=None)
                continue
            self.keys.append((name, bound.scalar))
            self.key_bounds[resolved] = replace(bound, scalar=ColumnReference(name), capped=None)
            if plain is not None:
                self.key_fields[resolved] = plain
            if plain is not None and plain.is_unit and not self.unit:
                # The unit as it lies is a key: clamped, two units could be one.
                assert self.relation.unit is not None
                own = ColumnReference(self.relation.unit)
                self.unit = name if bound.scalar == own else next(self.names)
                if self.unit != name:
                    self.keys.append((self.unit, own))
        if not self.unit and self.relation.unit is not None:
            self.unit = next(self.names)
            self.keys.append((self.unit, ColumnReference(self.relation.unit)))

    def pass_key(self, known: Field, name: str, bound: TypedScalar) -> Field:
        """A key as a column of the result."""
        assert isinstance(bound.scalar, ColumnReference)
        link = _link_as_stored(known)
        if link is not None:
            alone = len(self.query.keys) == 1
            link = replace(link, column=bound.scalar.name, is_key=alone, most=1 if alone else link.most)
        if self.relation.people is not None:
            return replace(known, name=name, source="", bound=bound, link=link)
        alone = len(self.query.keys) == 1
        return Field(
            name, "", bound, known.values, known.other, unique=alone, raw=bound.scalar.name, is_null=known.is_null
        )

    def is_key(self, scalar: Scalar) -> bool:
        """Whether a scalar over the groups is one of the keys."""
        return isinstance(scalar, ColumnReference) and any(name == scalar.name for name, _ in self.keys)

    def find_keys(self, columns: list[tuple[str, Scalar]]) -> tuple[frozenset[str], ...]:
        """The columns of a public result that no two rows share, where all keys are among its columns."""
        there = {scalar.name: here for here, scalar in columns if isinstance(scalar, ColumnReference)}
        found = [there.get(name) for name, _ in self.keys]
        return (frozenset(name for name in found if name is not None),) if None not in found else ()

    def output(self, scalar: Scalar) -> TypedScalar:
        """A scalar of the select list. A unit that is no listed column may be passed on, and not computed with."""
        known = None if _has_aggregate(scalar) else self.key_bounds.get(self.relation.resolve(scalar))
        return self.bind(scalar) if known is None else known

    def bind(self, scalar: Scalar) -> TypedScalar:
        """A scalar over the groups."""
        return bind_within_caps(scalar, self.leaf)

    def leaf(self, node: Scalar) -> TypedScalar | None:
        """A key or an aggregate of a group; None for what is computed from these."""
        if isinstance(node, Aggregate):
            return self.aggregate(node)
        if isinstance(node, ColumnReference) or not _has_aggregate(node):
            known = self.key_bounds.get(self.relation.resolve(node))
            if known is not None and known.type is None:
                self._refuse_units(node)
            if known is not None:
                return known
        if isinstance(node, ColumnReference):
            what = f"{node.name} is neither grouped by nor inside an aggregate"
            ordered = self.relation.field_of(node, links=True).bound.type in ORDERED_TYPES
            instead = f"MAX({quote_scalar(node)})" if ordered else f"COUNT(DISTINCT {quote_scalar(node)})"
            fix = f"group by it too, or put it into an aggregate: {instead}"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=fix, instead=instead)
        return None

    def _refuse_units(self, scalar: Scalar) -> None:
        for node in walk(scalar):
            found = self.relation.field_of(node, links=True) if isinstance(node, ColumnReference) else None
            if isinstance(node, ColumnReference) and found is not None and found.holds_unlisted_unit:
                raise refuse_unit(node)
            if isinstance(node, ColumnReference) and found is not None and found.is_unlisted_link:
                raise refuse_link(node)

    def aggregate(self, node: Aggregate) -> TypedScalar:
        """An exact aggregate of the rows of a group."""
        condition = expand_condition(node)
        if condition is not None:
            return self.bind(condition)
        if node.function not in INNER or (node.distinct and node.function != "count"):
            raise Refused(
                ErrorCode.UNSUPPORTED,
                f"{quote_aggregate(node)} in a subquery is not answered",
                at=node.at,
                fix="inside a subquery use count, sum, avg, min and max, and other aggregates outside",
            )
        argument = None if node.argument is None else self._argument(node.argument)
        if node.function == "count":
            function = "distinct" if node.distinct else "count"
            name = self.measure(function, None if argument is None else argument.scalar)
            known = TypedScalar(ColumnReference(name), Type.INT, Fraction(0), MOST_INT, Fraction(1), nullable=False)
            known = replace(known, postgres_type=PostgresType.BIGINT)
            return self.cap(known, cap_count(node, self.relation))
        assert argument is not None
        if node.function in {"min", "max"}:
            if argument.type in {Type.TEXT, Type.BOOL, None}:
                what = f"{quote_aggregate(node)} needs a number or a date"
                counted = f"COUNT(DISTINCT {quote_argument(node)})"
                fix = f"count the values: {counted}"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix=fix, instead=counted)
            return pass_cap(argument, ColumnReference(self.measure(node.function, argument.scalar)))
        grid = quantize_argument(node, argument, has_fine_grid=self.relation.has_fine_grids)
        total = ColumnReference(self.measure("sum", grid.scalar))
        if node.function == "sum":
            # However many rows there are, a sum of what is never negative is not, and likewise for never positive.
            low, high = (Fraction(0) if grid.lower >= 0 else None), (Fraction(0) if grid.upper <= 0 else None)
            cap = cap_sum(node, self.relation, grid.lower * grid.step, grid.upper * grid.step)
            if argument.type is Type.INT:
                least, most = LEAST_INT if low is None else low, MOST_INT if high is None else high
                of_postgres = type_of_aggregate("sum", argument.postgres_type)
                return self.cap(TypedScalar(total, Type.INT, least, most, Fraction(1), postgres_type=of_postgres), cap)
            scaled = Call(Function.MULTIPLY, (ToFloat(total), Literal(grid.step)))
            return self.cap(TypedScalar(scaled, Type.FLOAT, low, high, grid.step), cap)
        rows = ColumnReference(self.measure("count", grid.scalar))
        mean = Call(Function.DIVIDE, (Call(Function.MULTIPLY, (ToFloat(total), Literal(grid.step))), ToFloat(rows)))
        return TypedScalar(mean, Type.FLOAT, grid.step * grid.lower, grid.step * grid.upper)

    def cap(self, bound: TypedScalar, cap: Cap) -> TypedScalar:
        """An aggregate with the bounds of the policy's caps, which are of private rows only."""
        return bound if self.relation.people is None else cap.add_to(bound)

    def _argument(self, written: Scalar) -> TypedScalar:
        scalar = self.relation.bare(written)
        plain = self.relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
        return after_cast(written, plain.bound if plain is not None and plain.is_unit else self.relation.bind(scalar))

    def measure(self, function: str, argument: Scalar | None) -> str:
        """The column of a measure; one needed twice is computed once."""
        wanted = ExactStatistic(function, argument)
        for name, known in self.measures:
            if known == wanted:
                return name
        name = next(self.names)
        self.measures.append((name, wanted))
        return name


def cap_count(node: Aggregate, relation: Relation) -> Cap:
    """What the caps leave of a count of one unit's rows."""
    most = relation.each.most
    note = f"{quote_aggregate(node)} counts at most {most:,} of each {relation.called}, as the policy's caps say."
    # A group has a row at least.
    return Cap(Fraction(1 if node.argument is None else 0), Fraction(most), note, relation.has_caps)


def cap_sum(node: Aggregate, relation: Relation, lower: Fraction, upper: Fraction) -> Cap:
    """What the caps leave of a sum over one unit's rows, of values from `lower` to `upper`."""
    most = relation.each.most
    low, high = min(lower, lower * most), max(upper, upper * most)
    ends = f"from {float(low):,.10g} to {float(high):,.10g}"
    note = f"{quote_aggregate(node)} of each {relation.called} is read as {ends}, as the policy's caps say."
    return Cap(low, high, note, relation.has_caps)


def _has_aggregate(scalar: Scalar) -> bool:
    return any(isinstance(node, Aggregate) for node in walk(scalar))
