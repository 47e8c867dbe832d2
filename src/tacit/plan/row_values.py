"""A subquery in brackets as a value of each row: (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id).

**Rule.** The rows of the subquery that a row outside may find are put together by what they are matched on, with exact
aggregates (`PerUnitAggregation`), and each row outside is joined with the one group that it finds, if there is one (an
outer `EquiJoin`). So every row stays one row, of the same unit, and the caps of the relation hold. A subquery without
aggregates is joined itself, where a row finds at most one of its rows.

**Theorem.** The value that a row gets is a function of the rows of its unit and of public tables. *Proof.* A public
subquery is the same whatever units there are. A private one is matched on the unit, or along a foreign key, so that
what a row finds is made of rows of its own unit (`plan/scope.py`); one that is matched on neither is refused. The
aggregates are those of `plan/fold.py`, which depend on the multiset of these rows alone.

**NULL.** A row that finds nothing has an aggregate of no rows: a count is 0, and all others are NULL. A row that is
compared by NULL finds nothing, nor does one for which a condition in the subquery's WHERE on itself alone is not true.

**Bounds.** An aggregate has the bounds that it has in a subquery that groups by the unit, except that a count may be 0.
Those of the policy's caps are of private rows only: how many rows of a public table are found is nobody's cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from tacit.aggregates.condition import expand_condition
from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import MOST_INT, TypedScalar
from tacit.plan.caps import bind_within_caps, cap_of
from tacit.plan.connect import all_of
from tacit.plan.flatten import aggregates
from tacit.plan.fold import UnitAggregates
from tacit.plan.foreign_keys import leaves_of
from tacit.plan.join import match_units
from tacit.plan.join_pairs import JoinPair, make_pair
from tacit.plan.joined_columns import columns_of
from tacit.plan.relation import INTERNAL, Field, Relation, condition
from tacit.plan.semi_join import (
    INTEGER,
    Predicates,
    check_private,
    demand_first,
    group_keys,
    is_inside,
    look_up,
    refuse,
)
from tacit.plan.unit_windows import has_windows
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    ColumnReference,
    EquiJoin,
    FromItem,
    Join,
    Literal,
    Projection,
    Query,
    Scalar,
    ScalarSubquery,
    SelectItem,
    TableReference,
    find_location,
    walk,
    walk_clauses,
)
from tacit.query.types import Type

_MANY = "a subquery as a value of a row, of which several rows may be found,"


def reads_released(query: Query, look: Callable[[FromItem], Relation]) -> bool:
    """Whether a query over rows has a subquery as a value that is none of its rows'."""
    keys = group_keys(query, look(query.source))
    values = {node: is_row_value(node, look) for node in _over_rows(query, keys)}
    if not all(values.values()):
        return True
    late = (node for clause in walk_clauses(query) for node in walk(clause) if isinstance(node, ScalarSubquery))
    return any(node not in values for node in late)


def _over_rows(query: Query, keys: list[Scalar]) -> Iterator[ScalarSubquery]:
    """The subqueries as values that stand where rows are read: in WHERE, in a key or in an aggregate."""
    clauses = [*keys, *([] if query.where is None else [query.where])]
    for clause in walk_clauses(query):
        clauses += [node for node in walk(clause) if isinstance(node, Aggregate)]
    yield from (node for clause in clauses for node in walk(clause) if isinstance(node, ScalarSubquery))


def is_row_value(node: ScalarSubquery, look: Callable[[FromItem], Relation]) -> bool:
    """Whether a subquery names the row outside, or is over public tables alone."""
    query = node.query
    if not isinstance(query, Query):
        return False
    try:
        here = [look(leaf) for leaf in leaves_of(query.source)]
    except Refused:  # it is over released tables, or refused for another reason there
        return False
    if all(relation.people is None for relation in here):
        return True
    named = (part for clause in walk_clauses(query) for part in walk(clause) if isinstance(part, ColumnReference))
    known = {output.name.lower() for output in query.outputs} | {"*"}
    return any(not is_inside(part, here) and part.name.lower() not in known for part in named)


class RowValues(Predicates):
    """A relation that gets a column for each predicate, and for each subquery as a value."""

    def value(self, node: ScalarSubquery) -> Scalar:
        """The value of a subquery, as a column of the row."""
        query = _check_form(node)
        if not is_row_value(node, self.scope.look):
            what = "a subquery as a value is not answered where rows are read"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="ask for its value first, and write it here")
        inside, matched, demands, orders = self.split(query)
        if orders:
            what = "a subquery as a value that compares with the row outside other than by equality"
            fix = "match its columns with =, or compute it by a window over the unit's rows"
            raise refuse(what, fix, find_location(orders[0][2]))
        sides = [SelectItem(f"column_{number}", side) for number, (_, side) in enumerate(matched)]
        outputs = (*query.outputs, *sides)
        plain = replace(query, where=all_of(inside, query.where), outputs=outputs, order=(), limit=None)
        plain, inner = self.scope.open(plain, is_inner=True)
        if plain.where is not None:
            where = condition(inner.bind(plain.where), "WHERE", find_location(plain.where))
            inner = replace(inner, rows=Projection(inner.rows, _all_columns(inner), where))
        theirs = [output.scalar for output in plain.outputs[1:]]
        pairs = [make_pair(self.relation, inner, ours, side) for (ours, _), side in zip(matched, theirs, strict=True)]
        if inner.people is not None:
            check_private(self.relation, inner, pairs, node.at, "(SELECT ...")
        demand = self._all_demands(demands)
        scalar = plain.outputs[0].scalar
        if any(isinstance(part, Aggregate) for part in walk(scalar)):
            field = self._aggregate(plain, inner, pairs, demand)
        else:
            field = self._look_up_one(scalar, inner, pairs, demand, node.at)
        name = f"{INTERNAL}{next(self.scope.names)}"
        self.relation = replace(self.relation, fields=(*self.relation.fields, replace(field, name=name)))
        return ColumnReference(name, None, node.at)

    def _all_demands(self, demands: list[Scalar]) -> Scalar | None:
        """The conditions on the row outside alone, as one."""
        met = [condition(self.relation.bind(part), "WHERE", find_location(part)) for part in demands]
        return all_of(met, None)

    def _aggregate(self, query: Query, inner: Relation, pairs: list[JoinPair], demand: Scalar | None) -> Field:
        """A value made of aggregates of the rows that are found."""
        fold = UnitAggregates(replace(query, keys=()), inner, self.scope.names)

        def leaf(node: Scalar) -> TypedScalar | None:
            if isinstance(node, Aggregate):
                expanded = expand_condition(node)
                if expanded is not None:
                    return bind_within_caps(expanded, leaf)
                return _of_any_rows(fold.aggregate(node), node)
            if isinstance(node, ColumnReference):
                what = f"{node.name} stands beside an aggregate, and is in none"
                raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix="put it into an aggregate, or leave it out")
            return None

        bound = bind_within_caps(query.outputs[0].scalar, leaf)
        counted = [(name, measure, INTEGER) for name, measure in fold.measures]
        self.relation = look_up(self.relation, inner, pairs, counted, self.scope.names, demand)
        return Field("", "", replace(bound, capped=None), cap=cap_of(bound))

    def _look_up_one(
        self, scalar: Scalar, inner: Relation, pairs: list[JoinPair], demand: Scalar | None, at: SourceLocation | None
    ) -> Field:
        """A value of the one row that is found."""
        bound = inner.bind(scalar)
        plain = inner.field_of(scalar) if isinstance(scalar, ColumnReference) else None
        if bound.type is None:
            raise refuse("a subquery as a value that is NULL or a unit", "leave it out", at)
        pairs = self._find_one(inner, pairs, at)
        names = self.scope.names
        keys = [(next(names), pair.right.scalar) for pair in pairs]
        name = next(names)
        rows = Projection(inner.rows, (*keys, (name, bound.scalar)))
        on: list[tuple[Scalar, Scalar]] = [
            (pair.left.scalar, ColumnReference(key)) for pair, (key, _) in zip(pairs, keys, strict=True)
        ]
        joined = EquiJoin(self.relation.rows, rows, demand_first(on, demand), outer=True)
        self.relation = replace(self.relation, rows=joined)
        here = replace(bound, scalar=ColumnReference(name), nullable=True, capped=None, is_per_unit=False)
        values, other = (None, None) if plain is None else (plain.values, plain.other)
        return Field("", "", here, values, other, cap=cap_of(bound))

    def _find_one(self, inner: Relation, pairs: list[JoinPair], at: SourceLocation | None) -> list[JoinPair]:
        """The equalities by which a row finds at most one row, or Refused."""
        many = refuse(_MANY, "aggregate it, or match a column that is unique", at)
        if not pairs:
            raise many
        node = Join(TableReference("", ""), TableReference("", ""), None, (), True, at)
        try:
            match = match_units(self.relation, inner, pairs, node)
        except Refused:
            raise many from None
        if not match.left_once:
            raise many
        return match.pairs


def _check_form(node: ScalarSubquery) -> Query:
    """The query of a subquery that has one column and, by its form, one row or none."""
    query = node.query
    if not isinstance(query, Query) or len(query.outputs) != 1 or query.keys or query.sets is not None:
        what, fix = "a subquery as a value gives one row and one column", "select one aggregate, without groups"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
    ordered = query.order and not aggregates(query)
    if query.having is not None or query.qualify is not None or has_windows(query) or query.offset or ordered:
        what = "a subquery as a value of a row with HAVING, a window, ORDER BY or OFFSET"
        raise refuse(what, "select one aggregate", node.at)
    if query.limit == 0:
        raise refuse("LIMIT 0 in a subquery as a value", "leave it out", node.at)
    return query


def _of_any_rows(bound: TypedScalar, node: Aggregate) -> TypedScalar:
    """An aggregate of the rows that a row finds, which may be none."""
    capped, cap = bound.capped, cap_of(bound)
    if node.function != "count":
        return replace(bound, nullable=True, capped=None if capped is None else replace(capped, nullable=True))
    counted = Call(Function.COALESCE, (bound.scalar, Literal(0)))
    known = TypedScalar(counted, Type.INT, Fraction(0), MOST_INT, Fraction(1), nullable=False)
    known = replace(known, postgres_type=bound.postgres_type)
    return known if cap is None else replace(cap, lower=Fraction(0)).add_to(known)


def _all_columns(relation: Relation) -> tuple[tuple[str, Scalar], ...]:
    return tuple((name, ColumnReference(name)) for name in columns_of(relation.rows))
