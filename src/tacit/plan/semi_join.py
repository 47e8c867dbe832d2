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
rows without a unit are left out on both sides, so that neither is NULL. Where they name rows by a key, those whose key
is NULL are left out of the subquery: how many there are among other people's rows is not looked at.

**Order.** Some row is larger than a value just where the largest one is, and smaller just where the least one is; some
row differs from a value just where the least or the largest does. So one comparison with the row outside may be other
than an equality, of numbers, dates or timestamps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar
from tacit.plan.connect import all_of, has_column
from tacit.plan.flatten import aggregates
from tacit.plan.foreign_keys import leaves_of
from tacit.plan.join_pairs import JoinPair, make_pair
from tacit.plan.joined_columns import columns_of
from tacit.plan.relation import INTERNAL, Field, Relation, condition
from tacit.plan.unit_windows import has_windows
from tacit.query.conditions import conjuncts
from tacit.query.functions import COMPARISONS, Function
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
    ScalarSubquery,
    SelectItem,
    UnionAll,
    children,
    find_location,
    walk,
)
from tacit.query.types import ORDERED_TYPES, Type

_TRUE, _FALSE, _NULL = Literal(True), Literal(False), Literal(None)
_KEEPS_TRUTH = frozenset({Function.AND, Function.OR})
INTEGER = TypedScalar(_NULL, Type.INT, LEAST_INT, MOST_INT, Fraction(1))
_ENDS = {
    Function.GREATER: ("max",),
    Function.GREATER_EQUAL: ("max",),
    Function.LESS: ("min",),
    Function.LESS_EQUAL: ("min",),
    Function.UNEQUAL: ("min", "max"),
}
_TURNED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}
_EXISTS = "EXISTS (SELECT 1"
_Counted = tuple[str, ExactStatistic, TypedScalar]
"""The column of a measure, the measure, and what is known of it."""


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
    query: Query, relation: Relation, scope: OpensQueries, answers: type[Predicates], *, is_inner: bool
) -> tuple[Query, Relation]:
    """The query over rows that have a column for each IN and EXISTS with a subquery, and each subquery as a value."""
    for late in (query.having, *(item.scalar for item in query.order)):
        _refuse_inside(late)
    clauses = (query.where, *(output.scalar for output in query.outputs), *query.keys)
    if not any(_has_predicate(clause) for clause in clauses if clause is not None):
        return query, relation
    if not is_inner or aggregates(query):
        _refuse_raw(query, relation, is_inner=is_inner)
    inner = answers(relation, scope, frozenset() if is_inner else _find_late(query, relation))
    where = None if query.where is None else inner.answer(query.where, only_truth=True)
    outputs = tuple(SelectItem(output.name, inner.answer(output.scalar)) for output in query.outputs)
    keys = tuple(inner.answer(key) for key in query.keys)
    return replace(query, where=where, outputs=outputs, keys=keys), inner.relation


def _computes_rows(query: Query) -> bool:
    """Whether a query computes row by row, so that conditions can be taken out of its WHERE."""
    return not (aggregates(query) or has_windows(query) or query.having or query.qualify)


def _has_predicate(scalar: Scalar) -> bool:
    return any(isinstance(node, InSubquery | Exists | ScalarSubquery) for node in walk(scalar))


def _find_late(query: Query, relation: Relation) -> frozenset[Scalar]:
    """The subqueries as values that a question computes with after its aggregates: `plan/compound.py` has these."""
    grouped = {node for key in group_keys(query, relation) for node in walk(key)}
    found = (node for output in query.outputs for node in outside_aggregates(output.scalar))
    return frozenset(node for node in found if isinstance(node, ScalarSubquery) and node not in grouped)


def group_keys(query: Query, relation: Relation) -> list[Scalar]:
    """What a query groups by. A name that is no column of its rows means what the select list calls so."""
    named = {output.name.lower(): output.scalar for output in query.outputs}
    fields = {found.name.lower() for found in (*relation.fields, *relation.implied)}
    return [
        named.get(key.name.lower(), key)
        if isinstance(key, ColumnReference) and key.table is None and key.name.lower() not in fields
        else key
        for key in query.keys
    ]


def _refuse_inside(scalar: Scalar | None) -> None:
    for node in walk(scalar) if scalar is not None else ():
        if isinstance(node, InSubquery | Exists):
            what = "IN or EXISTS with a subquery in HAVING or ORDER BY"
            raise refuse(what, "choose rows by it, before they are grouped", node.at)


def _refuse_raw(query: Query, relation: Relation, *, is_inner: bool) -> None:
    """Refuse a predicate that would be shown row by row: it must stand in an aggregate, or be grouped by."""
    grouped = {node for key in group_keys(query, relation) for node in walk(key)}
    for output in query.outputs:
        for node in outside_aggregates(output.scalar):
            if isinstance(node, InSubquery | Exists) and node not in grouped:
                what = "IN or EXISTS with a subquery stands neither in an aggregate nor in GROUP BY"
                counted = None if node.at is None else f"COUNT(*) FILTER (WHERE {node.at.written})"
                fix = (
                    "count the rows where it holds" if counted is None else f"count the rows where it holds: {counted}"
                )
                raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=fix, instead=counted)
            if is_inner and isinstance(node, ScalarSubquery) and node not in grouped:
                what = "a subquery as a value of a row stands neither in an aggregate nor among the keys"
                raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix="put it into an aggregate")


def outside_aggregates(scalar: Scalar) -> Iterator[Scalar]:
    """The parts of a scalar that stand in no aggregate."""
    if not isinstance(scalar, Aggregate):
        yield scalar
        for child in children(scalar):
            yield from outside_aggregates(child)


@dataclass(frozen=True)
class _Found:
    """The rows that can be found: what they are matched on, and for IN the column that is compared, which comes first.

    `demands` are conditions on the row outside alone. `order` is a comparison other than an equality: of a value inside
    with a scalar of the row outside.
    """

    inner: Relation
    pairs: list[JoinPair]
    compared: JoinPair | None
    demands: list[Scalar]
    at: SourceLocation | None
    order: tuple[TypedScalar, Function, Scalar] | None = None


class Predicates(ABC):
    """A relation that gets a column for each predicate, and for each subquery as a value (`plan/row_values.py`)."""

    def __init__(self, relation: Relation, scope: OpensQueries, late: frozenset[Scalar] = frozenset()) -> None:
        self.relation = relation
        self.scope = scope
        self.late = late  # subqueries as values that are no rows', and stay as they are
        self.known: dict[tuple[Scalar, bool], Scalar] = {}  # one that stands twice is answered once

    def answer(self, scalar: Scalar, *, only_truth: bool = False) -> Scalar:
        """The scalar with predicates answered; with `only_truth` NULL and false are alike."""
        match scalar:
            case InSubquery():
                if (scalar, only_truth) not in self.known:
                    self.known[scalar, only_truth] = self._membership(scalar, only_truth=only_truth)
                return self.known[scalar, only_truth]
            case ScalarSubquery():
                if scalar in self.late:
                    return scalar
                if (scalar, True) not in self.known:
                    self.known[scalar, True] = self.value(scalar)
                return self.known[scalar, True]
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

    @abstractmethod
    def value(self, node: ScalarSubquery) -> Scalar:
        """The value of a subquery, as a column of the row."""

    def _existence(self, node: Exists) -> Scalar:
        found = self._find(node.query, (), node.at)
        return self._is_found(found, found.pairs)

    def _membership(self, node: InSubquery, *, only_truth: bool) -> Scalar:
        if node.others and not only_truth:
            what = "a list of values IN a subquery, under NOT or where NULL is not false,"
            raise refuse(what, "compare the columns in a subquery that asks whether there is such a row", node.at)
        found = self._find(node.query, (node.operand, *node.others), node.at)
        assert found.compared is not None
        matched = self._is_found(found, [found.compared, *found.pairs])
        if only_truth or found.compared.is_of_units:
            return matched
        if found.inner.people is None or _is_one_units(found.pairs):
            unknown = self._is_unknown(found, node)
        else:
            unknown = Call(Function.AND, (*found.demands, self._is_null(found.compared)), node.at)
        return Case(((matched, _TRUE), (unknown, _NULL)), _FALSE, node.at)

    def _is_unknown(self, found: _Found, node: InSubquery) -> Scalar:
        """Whether there are rows to compare with, of which one is NULL, or the operand is."""
        assert found.compared is not None
        if found.order is not None:
            what = "IN with a subquery that compares with the row outside other than by equality, under NOT,"
            raise refuse(what, "compare with the row outside by equality alone, or with constants", node.at)
        rows, values = ExactStatistic("count", None), ExactStatistic("count", found.compared.right.scalar)
        held, there = self._match(found, found.pairs, (rows, INTEGER), (values, INTEGER))
        some = Call(Function.NOT, (Call(Function.IS_NULL, (held,)),))
        missing = Call(Function.GREATER, (held, there), node.at)
        either = Call(Function.OR, (self._is_null(found.compared), missing), node.at)
        return Call(Function.AND, (*found.demands, some, either), node.at)

    def _is_null(self, compared: JoinPair) -> Scalar:
        """Whether the operand of IN is NULL, by a column that stands for it."""
        name = next(self.scope.names)
        columns = [(column, ColumnReference(column)) for column in columns_of(self.relation.rows)]
        rows = Projection(self.relation.rows, (*columns, (name, compared.left.scalar)))
        field = Field(f"{INTERNAL}{name}", "", replace(INTEGER, scalar=ColumnReference(name)))
        self.relation = replace(self.relation, rows=rows, fields=(*self.relation.fields, field))
        return Call(Function.IS_NULL, (ColumnReference(field.name),))

    def _is_found(self, found: _Found, pairs: list[JoinPair]) -> Scalar:
        there: Scalar
        if found.order is None:
            (rows,) = self._match(found, pairs, (ExactStatistic("count", None), INTEGER))
            there = Call(Function.NOT, (Call(Function.IS_NULL, (rows,), found.at),), found.at)
        else:
            inside, function, outside = found.order
            ends = _ENDS[function]
            columns = self._match(found, pairs, *((ExactStatistic(end, inside.scalar), inside) for end in ends))
            compared = [Call(function, (column, outside), found.at) for column in columns]
            there = compared[0] if len(compared) == 1 else Call(Function.OR, tuple(compared), found.at)
        if not found.demands and found.order is None:
            return there
        parts = (*found.demands, there)
        return Case(((Call(Function.AND, parts, found.at) if len(parts) > 1 else there, _TRUE),), _FALSE, found.at)

    def _find(self, query: Query | UnionAll, operands: tuple[Scalar, ...], at: SourceLocation | None) -> _Found:
        """What a predicate looks for: its subquery without the conditions that name the row outside."""
        if isinstance(query, UnionAll) or not _computes_rows(query):
            inner = self.scope.rows_of(query)
            pairs = self._compare(operands, inner, at)
            return _Found(inner, pairs[1:], pairs[0] if pairs else None, [], at)
        if query.offset or (query.limit is not None and (operands or not query.limit)):
            fix = "leave it out: which rows come first depends on other people's rows"
            raise Refused(ErrorCode.UNSUPPORTED, "LIMIT in a subquery is not answered", at=at, fix=fix)
        if operands and len(query.outputs) != len(operands):
            raise _refuse_columns(operands, at)
        inside, sides, demands, orders = self.split(query)
        inner_sides = [*(side for _, side in sides), *(side for _, _, side in orders)]
        outputs = [SelectItem(f"column_{number}", side) for number, side in enumerate(inner_sides)]
        asked = (*query.outputs, *outputs) if operands else tuple(outputs)
        plain = replace(query, where=all_of(inside, query.where), outputs=asked, order=(), limit=None)
        plain, inner = self.scope.open(plain, is_inner=True)
        if plain.where is not None:
            where = condition(inner.bind(plain.where), "WHERE", find_location(plain.where))
            columns = tuple((name, ColumnReference(name)) for name in columns_of(inner.rows))
            inner = replace(inner, rows=Projection(inner.rows, columns, where))
        matched = [output.scalar for output in plain.outputs]
        ours = [*operands, *(side for side, _ in sides)]
        pairs = [make_pair(self.relation, inner, one, theirs) for one, theirs in zip(ours, matched, strict=False)]
        compared = pairs.pop(0) if operands else None
        order = None
        if orders:
            outside, function, _ = orders[0]
            bound = inner.bind(matched[-1])
            if bound.type not in ORDERED_TYPES:
                what = f"a subquery that compares a {bound.type} with the row outside other than by equality"
                raise refuse(what, "compare with =, or compare numbers or dates", find_location(outside))
            order = (replace(bound, nullable=True), function, outside)
        return _Found(inner, pairs, compared, demands, at, order)

    def _compare(self, operands: tuple[Scalar, ...], inner: Relation, at: SourceLocation | None) -> list[JoinPair]:
        if operands and len(inner.fields) != len(operands):
            raise _refuse_columns(operands, at)
        here = replace(inner, sources=("",))
        fields = (ColumnReference(field.name) for field in inner.fields)
        return [make_pair(self.relation, here, one, theirs) for one, theirs in zip(operands, fields, strict=False)]

    def split(
        self, query: Query
    ) -> tuple[list[Scalar], list[tuple[Scalar, Scalar]], list[Scalar], list[tuple[Scalar, Function, Scalar]]]:
        """The conditions inside, the equalities with the row outside, conditions on that alone, and comparisons."""
        here = [self.scope.look(leaf) for leaf in leaves_of(query.source)]
        inside: list[Scalar] = []
        sides: list[tuple[Scalar, Scalar]] = []
        demands: list[Scalar] = []
        orders: list[tuple[Scalar, Function, Scalar]] = []
        for part in conjuncts(query.where):
            about = _places(part, here)
            if about <= {True}:
                inside.append(part)
            elif about == {False} and not _has_predicate(part):
                demands.append(part)
            else:
                outside, function, within = _correlation(part, here)
                if function is Function.EQUAL:
                    sides.append((outside, within))
                else:
                    orders.append((outside, function, within))
        if len(orders) > 1:
            what = "a subquery with several comparisons with the row outside other than equalities"
            fix = "keep one of them, and compare with constants otherwise"
            raise refuse(what, fix, find_location(orders[1][2]))
        return inside, sides, demands, orders

    def _match(
        self, found: _Found, pairs: list[JoinPair], *measures: tuple[ExactStatistic, TypedScalar]
    ) -> list[ColumnReference]:
        """Join each row with what it finds: the measures of that, NULL where it finds nothing."""
        if found.inner.people is not None:
            check_private(self.relation, found.inner, pairs, found.at)
        counted = [(next(self.scope.names), measure, bound) for measure, bound in measures]
        self.relation = look_up(self.relation, found.inner, pairs, counted, self.scope.names)
        return [ColumnReference(f"{INTERNAL}{name}") for name, _, _ in counted]


def _refuse_columns(operands: tuple[Scalar, ...], at: SourceLocation | None) -> Refused:
    many = "one column" if len(operands) == 1 else f"{len(operands)} columns"
    what = f"IN compares with {many}"
    return Refused(ErrorCode.SYNTAX, what, at=at, fix=f"select {many} in the subquery")


def look_up(
    outer: Relation,
    inner: Relation,
    pairs: list[JoinPair],
    counted: list[_Counted],
    names: Iterator[str],
    demand: Scalar | None = None,
) -> Relation:
    """Rows, each with what is counted of those that it finds: NULL where there are none.

    A row for which a `demand` is not true finds none.
    """
    pairs = [pair.as_stored() for pair in pairs]
    keys = [(next(names), pair.right.scalar) for pair in pairs]
    on: list[tuple[Scalar, Scalar]] = [
        (pair.left.scalar, ColumnReference(key)) for pair, (key, _) in zip(pairs, keys, strict=True)
    ]
    if inner.unit is not None and not any(scalar == ColumnReference(inner.unit) for _, scalar in keys):
        keys.append((next(names), ColumnReference(inner.unit)))
    rows = PerUnitAggregation(inner.rows, tuple(keys), tuple((name, measure) for name, measure, _ in counted))
    on = on or [(Literal(1), Literal(1))]  # where nothing is matched, there is one row at most
    joined = EquiJoin(outer.rows, rows, demand_first(on, demand), outer=True)
    fields = [Field(f"{INTERNAL}{c}", "", replace(bound, scalar=ColumnReference(c))) for c, _, bound in counted]
    return replace(outer, rows=joined, fields=(*outer.fields, *fields))


def demand_first(on: list[tuple[Scalar, Scalar]], demand: Scalar | None) -> tuple[tuple[Scalar, Scalar], ...]:
    """The equalities of a join, of which the first does not hold where a demand on the left side is not true."""
    if demand is None:
        return tuple(on)
    (ours, theirs), *others = on
    return ((Case(((demand, ours),), _NULL), theirs), *others)


def keep_unmatched(
    outer: Relation, inner: Relation, pairs: list[JoinPair], at: SourceLocation | None, names: Iterator[str]
) -> Relation:
    """The rows of a private relation that find none of another."""
    check_private(outer, inner, pairs, at)
    counted = next(names)
    found = look_up(outer, inner, pairs, [(counted, ExactStatistic("count", None), INTEGER)], names)
    columns = tuple((name, ColumnReference(name)) for name in columns_of(found.rows))
    return replace(found, rows=Projection(found.rows, columns, Call(Function.IS_NULL, (ColumnReference(counted),))))


def check_private(
    outer: Relation, inner: Relation, pairs: list[JoinPair], at: SourceLocation | None, form: str = _EXISTS
) -> None:
    """That what a row finds is its own unit's. `form` is how a subquery begins that a fix shows."""
    if outer.people is None:
        what = "a row of a public table that depends on private ones, and so is nobody's,"
        fix = "ask about the private table, and join the public one to it"
    elif outer.unit is None or inner.unit is None:
        what, fix = "a subquery over a private table in which each row is a unit", "ask about each by itself"
    elif outer.people != inner.people:
        what = "a subquery about different people"
        fix = "ask about each by itself; the owner may declare that the people are the same"
    elif not _is_one_units(pairs):
        what = "a subquery that looks at other people's rows"
        fix = _match_fix(outer, inner, form)
    else:
        return
    raise refuse(what, fix, at)


def _is_one_units(pairs: list[JoinPair]) -> bool:
    """Whether rows that match are one unit's."""
    return any(pair.is_of_units or pair.links is not None for pair in pairs)


def _match_fix(outer: Relation, inner: Relation, form: str) -> str:
    """What to add to the subquery so that it looks at the unit's own rows."""
    sides = ((*inner.fields, *inner.implied), (*outer.fields, *outer.implied))
    units = [next((f for f in side if f.is_unit), None) for side in sides]
    if units[0] is None or units[1] is None or not units[0].source:
        return "match the unit in the subquery, so that each row looks at rows of its own unit"
    names = " = ".join(f"{unit.source}.{unit.name}" for unit in units if unit is not None)
    return f"look at the unit's own rows: {names} in the subquery"


def _places(scalar: Scalar, here: list[Relation]) -> set[bool]:
    """Whether the columns of a scalar are inside, outside, or both. A name means a column inside, if there is one."""
    columns = (node for node in walk(scalar) if isinstance(node, ColumnReference))
    return {is_inside(node, here) for node in columns}


def is_inside(node: ColumnReference, here: list[Relation]) -> bool:
    """Whether a name means a column of one of the relations that a subquery is over.

    A name with the table of one means its column, whether or not there is one: what is unknown is refused as that.
    """
    if node.table is not None and any(node.table.lower() in map(str.lower, relation.sources) for relation in here):
        return True
    return any(has_column(relation, node) for relation in here)


def _correlation(part: Scalar, here: list[Relation]) -> tuple[Scalar, Function, Scalar]:
    """A comparison with the row outside: that side first, and how the side inside compares with it."""
    if isinstance(part, Call) and part.function in COMPARISONS:
        places, function = [_places(side, here) for side in part.arguments], Function(part.function)
        if places == [{True}, {False}]:
            return part.arguments[1], function, part.arguments[0]
        if places == [{False}, {True}]:
            return part.arguments[0], _TURNED.get(function, function), part.arguments[1]
    what = "a subquery that compares with the row outside other than column by column"
    raise refuse(what, "compare a column of each, in conditions that all have to hold", find_location(part))


def refuse(what: str, fix: str, at: SourceLocation | None) -> Refused:
    """A refusal of what is not answered."""
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=at, fix=fix)
