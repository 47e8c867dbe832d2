"""IN and EXISTS with a subquery: whether a row finds a match, as a column of the row.

**Rule.** The rows of the subquery that can be found are put together by what they are matched on, and each row outside
is joined with the one that it finds, if there is one (`PerUnitAggregation` and an outer `EquiJoin`). So every row stays
one row, of the same unit, and the caps of the relation hold.

**Theorem.** The column that a row gets is a function of the rows of its unit and of public tables. *Proof.* A public
subquery is the same whatever units there are. A private one is matched on the unit, or along a foreign key, so that
what a row finds is made of rows of its own unit (`plan/scope.py`); one that is matched on neither is refused.

**NULL.** EXISTS is never NULL: a row finds a match, or it does not. `x IN (SELECT c ...)` is true where a row matches,
otherwise NULL where there are rows and x or one of the c is NULL, and otherwise false. Where a condition only counts if
it is true (WHERE, WHEN, their AND and OR) the difference is not looked at. Elsewhere, as under NOT, the rows that x is
compared with are counted, and the c among them that are not NULL. Where x and c are the unit there is nothing to count:
rows without a unit are left out on both sides, so that neither is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar
from tacit.plan.connect import all_of, has_column
from tacit.plan.flatten import aggregates
from tacit.plan.foreign_keys import joins_of, leaves_of
from tacit.plan.join import Pair, columns_of, conjuncts, make_pair
from tacit.plan.relation import INTERNAL, Field, Relation, condition
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    EquiJoin,
    ExactStatistic,
    Exists,
    FromItem,
    InSubquery,
    Literal,
    PerUnitAggregation,
    Projection,
    Query,
    Scalar,
    SelectItem,
    UnionAll,
    children,
    find_location,
    walk,
)
from tacit.query.types import Type

_TRUE, _FALSE, _NULL = Literal(True), Literal(False), Literal(None)
_KEEPS_TRUTH = frozenset({Function.AND, Function.OR})


class OpensQueries(Protocol):
    """What tells the meaning of a query: `plan/scope.py`."""

    @property
    def names(self) -> Iterator[str]:
        """New names of columns."""

    def open(self, query: Query, *, is_inner: bool = False) -> tuple[Query, Relation]:
        """What FROM means, and the query over it."""

    def rows_of(self, query: Query | UnionAll) -> Relation:
        """What a subquery means."""

    def look(self, source: FromItem) -> Relation:
        """What a source means, to look names up."""


def answer_predicates(
    query: Query, relation: Relation, scope: OpensQueries, *, is_inner: bool
) -> tuple[Query, Relation]:
    """The query over rows that have a column for each IN and EXISTS with a subquery."""
    for join in joins_of(query.source):
        _refuse_inside(join.on, "ON", "move it into WHERE")
    for late in (query.having, *(item.scalar for item in query.order)):
        _refuse_inside(late, "HAVING or ORDER BY", "move it into WHERE, where it is about rows")
    clauses = (query.where, *(output.scalar for output in query.outputs), *query.keys)
    if not any(_has_predicate(clause) for clause in clauses if clause is not None):
        return query, relation
    if not is_inner or aggregates(query):
        _refuse_raw(query)
    inner = _Predicates(relation, scope)
    where = None if query.where is None else inner.answer(query.where, only_truth=True)
    outputs = tuple(SelectItem(output.name, inner.answer(output.scalar)) for output in query.outputs)
    keys = tuple(inner.answer(key) for key in query.keys)
    return replace(query, where=where, outputs=outputs, keys=keys), inner.relation


def _has_predicate(scalar: Scalar) -> bool:
    return any(isinstance(node, InSubquery | Exists) for node in walk(scalar))


def _refuse_inside(scalar: Scalar | None, clause: str, fix: str) -> None:
    for node in walk(scalar) if scalar is not None else ():
        if isinstance(node, InSubquery | Exists):
            what = f"IN or EXISTS with a subquery in {clause} is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)


def _refuse_raw(query: Query) -> None:
    """Refuse a predicate that would be shown row by row: it must stand in an aggregate, or be grouped by."""
    grouped = [node for key in query.keys for node in walk(key)]
    for output in query.outputs:
        for node in _outside_aggregates(output.scalar):
            if isinstance(node, InSubquery | Exists) and node not in grouped:
                what = "IN or EXISTS with a subquery stands neither in an aggregate nor in GROUP BY"
                fix = "aggregate it: COUNT(*) FILTER (WHERE ...)"
                raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=fix)


def _outside_aggregates(scalar: Scalar) -> Iterator[Scalar]:
    if not isinstance(scalar, Aggregate):
        yield scalar
        for child in children(scalar):
            yield from _outside_aggregates(child)


@dataclass(frozen=True)
class _Found:
    """The rows that can be found: what they are matched on, and for IN the column that is compared, which comes first.

    `demands` are conditions on the row outside alone.
    """

    inner: Relation
    pairs: list[Pair]
    compared: Pair | None
    demands: list[Scalar]
    at: SourceLocation | None


class _Predicates:
    """A relation that gets a column for each predicate."""

    def __init__(self, relation: Relation, scope: OpensQueries) -> None:
        self.relation = relation
        self.scope = scope
        self.known: dict[tuple[Scalar, bool], Scalar] = {}  # one that stands twice is answered once

    def answer(self, scalar: Scalar, *, only_truth: bool = False) -> Scalar:
        """The scalar with predicates answered; with `only_truth` NULL and false are alike."""
        match scalar:
            case InSubquery():
                if (scalar, only_truth) not in self.known:
                    self.known[scalar, only_truth] = self._membership(scalar, only_truth=only_truth)
                return self.known[scalar, only_truth]
            case Exists():
                if (scalar, True) not in self.known:
                    self.known[scalar, True] = self._existence(scalar)
                return self.known[scalar, True]
            case Call(function, arguments):
                keeps = only_truth and function in _KEEPS_TRUTH
                return replace(scalar, arguments=tuple(self.answer(a, only_truth=keeps) for a in arguments))
            case Case(branches, otherwise):
                parts = tuple((self.answer(when, only_truth=True), self.answer(then)) for when, then in branches)
                return replace(scalar, branches=parts, otherwise=self.answer(otherwise))
            case Aggregate(argument=argument, others=others) if argument is not None:
                return replace(scalar, argument=self.answer(argument), others=tuple(self.answer(o) for o in others))
        return scalar

    def _existence(self, node: Exists) -> Scalar:
        found = self._find(node.query, None, node.at)
        return self._is_found(found, self._match(found, found.pairs, node))

    def _membership(self, node: InSubquery, *, only_truth: bool) -> Scalar:
        found = self._find(node.query, node.operand, node.at)
        assert found.compared is not None
        matched = self._is_found(found, self._match(found, [found.compared, *found.pairs], node))
        if only_truth or found.compared.is_of_units:
            return matched
        if found.inner.people is not None and not _is_one_units(found.pairs):
            what = "IN over keys of rows is answered where it only counts whether it is true, and not under NOT"
            fix = "write EXISTS (SELECT 1 FROM ... WHERE ...), with the equality of the keys in its WHERE"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
        rows = ExactStatistic("count", None)
        values = ExactStatistic("count", found.compared.right.scalar)
        held, there = self._match(found, found.pairs, node, rows, values)[1:]
        unknown = Call(
            Function.OR,
            (Call(Function.IS_NULL, (node.operand,), node.at), Call(Function.GREATER, (held, there), node.at)),
            node.at,
        )
        some = Call(Function.NOT, (Call(Function.IS_NULL, (held,)),))
        demanded = Call(Function.AND, (*found.demands, some, unknown), node.at)
        return Case(((matched, _TRUE), (demanded, _NULL)), _FALSE, node.at)

    def _is_found(self, found: _Found, columns: list[ColumnReference]) -> Scalar:
        there: Scalar = Call(Function.NOT, (Call(Function.IS_NULL, (columns[0],), found.at),), found.at)
        if not found.demands:
            return there
        return Case(((Call(Function.AND, (*found.demands, there), found.at), _TRUE),), _FALSE, found.at)

    def _find(self, query: Query | UnionAll, operand: Scalar | None, at: SourceLocation | None) -> _Found:
        """What a predicate looks for: its subquery without the conditions that name the row outside."""
        if isinstance(query, UnionAll) or aggregates(query):
            inner = self.scope.rows_of(query)
            compared = None if operand is None else self._compare(operand, inner, at)
            return _Found(inner, [], compared, [], at)
        if query.offset or (query.limit is not None and (operand is not None or not query.limit)):
            fix = "leave it out: which rows come first depends on other people's rows"
            raise Refused(ErrorCode.UNSUPPORTED, "LIMIT in a subquery is not answered", at=at, fix=fix)
        if operand is not None and len(query.outputs) != 1:
            what = "IN compares with one column"
            raise Refused(ErrorCode.SYNTAX, what, at=at, fix="select one column in the subquery")
        inside, sides, demands = self._split(query)
        outputs = [SelectItem(f"column_{number}", side) for number, (_, side) in enumerate(sides)]
        asked = (*query.outputs, *outputs) if operand is not None else tuple(outputs)
        plain = replace(query, where=all_of(inside, query.where), outputs=asked, order=(), limit=None)
        plain, inner = self.scope.open(plain, is_inner=True)
        if plain.where is not None:
            where = condition(inner.bind(plain.where), "WHERE", find_location(plain.where))
            columns = tuple((name, ColumnReference(name)) for name in columns_of(inner.rows))
            inner = replace(inner, rows=Projection(inner.rows, columns, where))
        matched = [output.scalar for output in plain.outputs]
        compared = None
        if operand is not None:
            compared = make_pair(self.relation, inner, operand, matched.pop(0))
        pairs = [
            make_pair(self.relation, inner, ours, theirs) for (ours, _), theirs in zip(sides, matched, strict=True)
        ]
        return _Found(inner, pairs, compared, demands, at)

    def _compare(self, operand: Scalar, inner: Relation, at: SourceLocation | None) -> Pair:
        if len(inner.fields) != 1:
            what = "IN compares with one column"
            raise Refused(ErrorCode.SYNTAX, what, at=at, fix="select one column in the subquery")
        return make_pair(self.relation, replace(inner, sources=("",)), operand, ColumnReference(inner.fields[0].name))

    def _split(self, query: Query) -> tuple[list[Scalar], list[tuple[Scalar, Scalar]], list[Scalar]]:
        """The conditions inside, the equalities with the row outside, and the conditions on that alone."""
        here = [self.scope.look(leaf) for leaf in leaves_of(query.source)]
        inside: list[Scalar] = []
        sides: list[tuple[Scalar, Scalar]] = []
        demands: list[Scalar] = []
        for part in conjuncts(query.where):
            about = _places(part, here)
            if about <= {True}:
                inside.append(part)
            elif about == {False} and not _has_predicate(part):
                demands.append(part)
            else:
                sides.append(_correlation(part, here))
        return inside, sides, demands

    def _match(
        self, found: _Found, pairs: list[Pair], node: InSubquery | Exists, *measures: ExactStatistic
    ) -> list[ColumnReference]:
        """Join each row with what it finds: a column that is not NULL where there is a match, and those of measures."""
        inner, outer, names = found.inner, self.relation, self.scope.names
        if inner.people is not None:
            self._check_private(inner, pairs, node)
        if any(pair.links is not None for pair in pairs) and not any(pair.is_of_units for pair in pairs):
            pairs = [pair.as_stored() for pair in pairs]
        keys = [(next(names), pair.right.scalar) for pair in pairs]
        on: list[tuple[Scalar, Scalar]] = [
            (pair.left.scalar, ColumnReference(key)) for pair, (key, _) in zip(pairs, keys, strict=True)
        ]
        if inner.unit is not None and not any(scalar == ColumnReference(inner.unit) for _, scalar in keys):
            keys.append((next(names), ColumnReference(inner.unit)))
        counted = [(next(names), measure) for measure in (measures or (ExactStatistic("count", None),))]
        rows = PerUnitAggregation(inner.rows, tuple(keys), tuple(counted))
        one = (Literal(1), Literal(1))
        joined = EquiJoin(outer.rows, rows, tuple(on) or (one,), outer=True)
        columns = [counted[0][0], *(name for name, _ in counted)]
        number = TypedScalar(_TRUE, Type.INT, LEAST_INT, MOST_INT)
        fields = [
            Field(f"{INTERNAL}{c}", "", replace(number, scalar=ColumnReference(c))) for c in dict.fromkeys(columns)
        ]
        self.relation = replace(outer, rows=joined, fields=(*outer.fields, *fields))
        return [ColumnReference(f"{INTERNAL}{column}") for column in columns]

    def _check_private(self, inner: Relation, pairs: list[Pair], node: InSubquery | Exists) -> None:
        """That what a row finds is its own unit's."""
        outer = self.relation
        if outer.people is None:
            what = "rows of a public table that depend on private ones are nobody's, and this"
            fix = "ask about the private table, and join the public one to it"
        elif outer.unit is None or inner.unit is None:
            what, fix = "a subquery over a private table in which each row is a unit", "ask about each by itself"
        elif outer.people != inner.people:
            what = "a subquery about different people"
            fix = "ask about each by itself; the owner may declare that the people are the same"
        elif not _is_one_units(pairs):
            what = "a subquery that looks at other people's rows"
            fix = _match_fix(outer, inner)
        else:
            return
        raise Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=node.at, fix=fix)


def _is_one_units(pairs: list[Pair]) -> bool:
    """Whether rows that match are one unit's."""
    return any(pair.is_of_units or pair.links is not None for pair in pairs)


def _match_fix(outer: Relation, inner: Relation) -> str:
    """What to add to the subquery so that it looks at the unit's own rows."""
    sides = ((*inner.fields, *inner.implied), (*outer.fields, *outer.implied))
    units = [next((f for f in side if f.is_unit), None) for side in sides]
    if units[0] is None or units[1] is None or not units[0].source:
        return "match the unit in its WHERE, so that each row looks at rows of its own unit"
    names = " = ".join(f"{unit.source}.{unit.name}" for unit in units if unit is not None)
    return f"match the unit in its WHERE: EXISTS (SELECT 1 FROM ... WHERE {names} AND ...)"


def _places(scalar: Scalar, here: list[Relation]) -> set[bool]:
    """Whether the columns of a scalar are inside, outside, or both. A name means a column inside, if there is one."""
    columns = (node for node in walk(scalar) if isinstance(node, ColumnReference))
    return {any(has_column(relation, node) for relation in here) for node in columns}


def _correlation(part: Scalar, here: list[Relation]) -> tuple[Scalar, Scalar]:
    """The sides of an equality with the row outside, that one first."""
    if isinstance(part, Call) and part.function == Function.EQUAL:
        places = [_places(side, here) for side in part.arguments]
        if places == [{False}, {True}]:
            return part.arguments[0], part.arguments[1]
        if places == [{True}, {False}]:
            return part.arguments[1], part.arguments[0]
    what = "a subquery that compares with the row outside other than by equality"
    fix = "compare with = and a column of each, and with constants otherwise"
    raise Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=find_location(part), fix=fix)
