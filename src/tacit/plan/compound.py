"""Questions made of several: windows, grouping sets, unions, subqueries as values, and queries over released tables.

**Rule.** A query whose aggregates are over the rows of many units is a *member*: it is planned as any question
(`plan/plan.py`) at an equal share of epsilon and delta, and gives a released table. Whatever else the text says sees
released tables and public ones (`plan/public_tables.py`) alone, so it is post-processing (`answers/program.py`).
**Theorem.** The release of all members is (epsilon, delta)-DP. Proof: each of m members is (epsilon/m, delta/m)-DP and
basic composition adds them up; a member that stands twice in the text is released once.

A released value may choose the rows of another member, which then waits for it (`plan/released_values.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from typing import NamedTuple

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.condition import expand_condition
from tacit.aggregates.registry import function_of
from tacit.answers.choosing_values import TYPES, ChoosingValue, reads_public, releases_read
from tacit.answers.program import (
    OUTER_AGGREGATES,
    Combine,
    Compute,
    Distinct,
    Filter,
    GroupRows,
    Node,
    ProgramColumn,
    Public,
    Released,
    Sort,
    Stack,
    Windows,
    noisy_columns,
    render,
)
from tacit.canonical import canonical_text
from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.aliases import read_aliases
from tacit.plan.bounds import TypedScalar, bind
from tacit.plan.canonical import PLANS
from tacit.plan.constants import evaluate_constants
from tacit.plan.flatten import aggregates
from tacit.plan.join import conjuncts
from tacit.plan.plan import BoundQuestion, bind_question
from tacit.plan.public_keys import mark_kept
from tacit.plan.public_tables import (
    MAX_JOINED_ROWS,
    MAX_PUBLIC_ROWS,
    PublicRead,
    is_public,
    read_fields,
    read_groups,
    separate_where,
)
from tacit.plan.relation import Relation, condition, no_column
from tacit.plan.released_joins import read_released_joins
from tacit.plan.released_values import chooses_by_released, place_values, without_values
from tacit.plan.row_values import is_row_value, reads_released
from tacit.plan.scope import Scope, expand_stars
from tacit.plan.split import MAX_GROUPS
from tacit.policy.model import Policy
from tacit.query.functions import GROUPING, Function
from tacit.query.nodes import (
    STAR,
    Aggregate,
    Call,
    Case,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    FromItem,
    Join,
    Literal,
    OrderItem,
    Placeholder,
    Query,
    ReleasedKey,
    ReleasedValue,
    Scalar,
    ScalarSubquery,
    SelectItem,
    SemiJoin,
    TableReference,
    UnionAll,
    Window,
    find_location,
    is_star,
    rebuild,
    walk,
    walk_clauses,
)
from tacit.query.suggest import refuse_without_aggregate
from tacit.query.types import NUMERIC_TYPES, Type

MAX_MEMBERS = 32
_MOST_VALUES = 30
_MOST_PAIRS = 1_000_000  # rows that a join of released tables may have, from public numbers
_WHOLE = frozenset({"row_number", "rank", "dense_rank", "ntile"})
_SHARES = frozenset({"percent_rank", "cume_dist"})


@dataclass(frozen=True)
class TableColumn:
    """A column that may be named: its name and table in the question, its name in the program, and its type.

    `hidden` is one that only its qualified name means, because USING made it one with another.
    """

    name: str
    table: str
    column: str
    type: Type | None
    hidden: bool = False


@dataclass(frozen=True)
class ReleasedTable:
    """A released table, or what is computed from some; `rows` is the most that it has, from public numbers.

    `unique` are sets of its columns, by their names in the program, of which no two rows share all values.
    """

    node: Node
    columns: tuple[TableColumn, ...]
    rows: int
    unique: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class Compound:
    """A question made of several: its members, the program over them, and the columns that it shows.

    `public` are the rows of public tables that the program reads too.
    """

    members: tuple[BoundQuestion, ...]
    node: Node
    columns: tuple[TableColumn, ...]
    values: tuple[ChoosingValue, ...] = ()
    public: tuple[PublicRead, ...] = ()


def is_compound(query: Query, policy: Policy) -> bool:
    """Whether a question is more than one query over rows, and what is computed from each row of its answer."""
    if query.sets is not None or query.qualify is not None or _is_released(query.source, policy):
        return True
    if is_public(query.source, policy):
        return True
    if query.distinct and aggregates(query):
        return True
    parts = [node for clause in walk_clauses(query) for node in walk(clause)]
    if any(isinstance(node, Window) for node in parts):
        return True
    look = Scope(policy).look
    if chooses_by_released(query, look, lambda inner: _gives_released(inner, policy)):
        return True
    return any(isinstance(node, ScalarSubquery) for node in parts) and reads_released(query, look)


def compound(query: Query, policy: Policy) -> Compound:
    """The question as members and a program."""
    builder = _Builder(policy)
    table = builder.query(query)
    if not builder.members and not builder.public:
        raise refuse_without_aggregate(query)
    most = MAX_JOINED_ROWS if builder.members else MAX_PUBLIC_ROWS
    public = tuple(replace(read, most=min(read.most, most)) for read in builder.public)
    values = tuple(builder.values.values())
    return Compound(tuple(builder.members.values()), table.node, table.columns, values, public)


def read_joins(query: Query, policy: Policy) -> Query:
    """The question, with IN for a join of rows with the first keys of another one."""
    return read_released_joins(query, lambda source: _is_released(source, policy))


def _is_released(source: FromItem, policy: Policy) -> bool:
    """Whether a source is made of released tables. Of one that is made of both, the join says what is wrong."""
    match source:
        case DerivedTable(UnionAll(parts)):
            return any(_gives_released(part, policy) for part in parts)
        case DerivedTable(Query() as query):
            return _gives_released(query, policy)
        case Join(left, right) | SemiJoin(left, right):
            return _is_released(left, policy) or _is_released(right, policy)
    return False


def _gives_released(query: Query, policy: Policy) -> bool:
    query = mark_kept(query, policy)
    if _is_released(query.source, policy):
        return True
    if not aggregates(query):
        return False
    if query.sets is not None or not query.keys:
        return True
    _, relation = Scope(policy).open(without_values(query), is_inner=True)
    return relation.people is not None and not any(_names_unit(relation, key) for key in query.keys)


def _names_unit(relation: Relation, key: Scalar) -> bool:
    """Whether a key is the unit, or names a row of one; a name of the select list does not."""
    return isinstance(key, ColumnReference) and any(
        (found.is_unit or found.link is not None) and found.name.lower() == key.name.lower()
        for found in (*relation.fields, *relation.implied)
    )


class _Release(NamedTuple):
    """A released table, its columns by the names of `_Lifted` with their types, and the most rows that it has."""

    node: Node
    columns: dict[str, tuple[str, Type]]
    rows: int


def _fill(
    release: _Release, places: tuple[int, ...], lifted: _Lifted, columns: dict[str, str], types: dict[str, Type]
) -> Node:
    """A release with the keys that its grouping set lacks as NULL, and the bits of GROUPING."""
    shown = []
    for name in lifted.names():
        scalar = ColumnReference(release.columns[name][0]) if name in release.columns else Literal(None)
        shown.append(ProgramColumn(columns[name], scalar, types[name]))
    for place, name in enumerate(lifted.bits):
        shown.append(ProgramColumn(columns[name], Literal(int(place not in places)), Type.INT))
    return Compute(release.node, tuple(shown))


@dataclass
class _Builder:
    policy: Policy
    members: dict[Query, BoundQuestion] = field(default_factory=dict)
    values: dict[str, ChoosingValue] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)  # of members at epsilon 1, by their places
    names: Iterator[str] = field(default_factory=lambda: (f"c{number}" for number in count()))
    public: list[PublicRead] = field(default_factory=list)

    def query(self, query: Query | UnionAll) -> ReleasedTable:
        """The released table of a query."""
        if isinstance(query, UnionAll):
            return self.union(query)
        query = read_joins(query, self.policy)
        if _is_released(query.source, self.policy):
            return _Outer(self, query, self.source(query.source, conjuncts(query.where))).table()
        if is_public(query.source, self.policy):
            return self.public_query(query)
        if not aggregates(query):
            for output in query.outputs:
                _refuse_subqueries(output.scalar, "the select list", Scope(self.policy).look)
            what = "a query whose rows are single people's, beside one whose rows are released, is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=query.at, fix="aggregate in each of them")
        return self.member(query)

    def member(self, query: Query) -> ReleasedTable:
        """The table of a query over rows: members for its grouping sets, and all that is computed from them."""
        query = mark_kept(place_values(query, self), self.policy)
        if query.where is not None:
            _refuse_subqueries(query.where, "WHERE", Scope(self.policy).look)
        _, relation = Scope(self.policy).open(query)
        lifted = _Lifted(read_aliases(query, relation), relation)
        return self.finish(lifted, [self.release(lifted, places) for places in lifted.sets])

    def finish(self, lifted: _Lifted, releases: list[_Release]) -> ReleasedTable:
        """What is computed from the keys and aggregates of all grouping sets."""
        types = {name: kind for release in releases for name, (_, kind) in release.columns.items()}
        names = lifted.names()
        if len(releases) == 1:
            node, columns = releases[0].node, {name: releases[0].columns[name][0] for name in names}
        else:
            columns = {name: next(self.names) for name in (*names, *lifted.bits)}
            types |= dict.fromkeys(lifted.bits, Type.INT)
            node = Stack(
                tuple(
                    _fill(release, places, lifted, columns, types)
                    for release, places in zip(releases, lifted.sets, strict=True)
                )
            )
        known = tuple(TableColumn(name, "", column, types[name]) for name, column in columns.items())
        unique = (frozenset(columns[name] for name in names[: len(lifted.keys)]),) if len(releases) == 1 else ()
        table = ReleasedTable(node, known, sum(release.rows for release in releases), unique)
        return _Outer(self, lifted.outer(), table).table()

    def look(self, source: FromItem) -> Relation:
        """What a source means, to look names up."""
        return Scope(self.policy).look(source)

    def gives_released(self, query: Query) -> bool:
        """Whether a query over rows is a question of its own."""
        return _gives_released(query, self.policy)

    def give(self, scalar: Scalar, node: ScalarSubquery, *, is_equal: bool = False) -> Placeholder:
        """The placeholder of a value that is computed from a subquery, which is released first, and from constants."""
        table = self.single(node)
        if scalar is not node:
            if not isinstance(node.query, Query) or node.query.keys:
                what = "an expression of a subquery that may have no row is not answered in WHERE of rows"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="compare with the subquery alone")
            inner = ColumnReference(table.columns[0].name)
            outputs = (SelectItem("value", rebuild(scalar, lambda part: inner if part is node else None)),)
            around = Query(TableReference("", ""), outputs, None, (), None, (), None, 0, at=node.at)
            table = _Outer(self, around, table).table()
        column = table.columns[0]
        if reads_public(table.node):
            what = "a value that is computed from released and public tables, and chooses rows, is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="compare with a released value alone")
        if column.type not in TYPES:
            what = f"rows that are chosen by a released {column.type or 'NULL'} are not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="compare with a number or a date")
        if is_equal and column.column in noisy_columns(table.node):
            what = "a row's value that is equal to a released one, which has noise, is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="compare with >= or <=")
        known = list(self.members.values())
        delta = self.policy.question_delta
        # The epsilon is in the keys of the members; which values they are read for is in the name.
        for index in releases_read(table.node) - self.keys.keys():
            self.keys[index] = known[index].plan(Fraction(1), delta).key
        keys = [self.keys[index] for index in sorted(releases_read(table.node))]
        text = canonical_text(("value", keys, render(table.node, draws=False), column.column), PLANS)
        name = hashlib.sha256(text.encode()).hexdigest()
        self.values[name] = ChoosingValue(name, table.node, column.column, column.type)
        if len(self.values) > _MOST_VALUES:
            what = f"more than {_MOST_VALUES} released values choose rows"
            raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="take fewer of them")
        return Placeholder(name, column.type, node.at)

    def single(self, node: ScalarSubquery) -> ReleasedTable:
        """The released table of a subquery that has one row, or none, and one column."""
        query = node.query
        one = isinstance(query, Query) and (query.limit == 1 or (aggregates(query) and not query.keys))
        found = None
        if not one and isinstance(query, Query) and len(query.outputs) == 1 and self.is_computed(query):
            found = self.query(query)
            one = found.rows <= 1
        if not one or not isinstance(query, Query) or len(query.outputs) != 1 or query.sets is not None:
            what, fix = "a subquery as a value gives one row and one column", "select one aggregate, without groups"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
        return found or self.query(query)

    def release(self, lifted: _Lifted, places: tuple[int, ...]) -> _Release:
        """The release of one grouping set."""
        member = lifted.member(places)
        if member not in self.members:
            self.members[member] = bind_question(member, self.policy)
        recipe = self.members[member].recipe
        if len(self.members) > MAX_MEMBERS:
            what = f"the question is made of more than {MAX_MEMBERS} questions"
            raise Refused(ErrorCode.TOO_LARGE, what, at=lifted.query.at, fix="ask several smaller questions")
        columns: dict[str, tuple[str, Type]] = {}
        sources = []
        for result in recipe.results:
            if result.many:
                what = "a list of values with a window, a union or a subquery is not answered"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=lifted.query.at, fix="ask for it by itself")
            column = next(self.names)
            columns[result.name] = column, result.type
            if isinstance(result.scalar, ReleasedKey):
                sources.append((column, f"k{result.scalar.index}", False))
            else:
                assert isinstance(result.scalar, ReleasedValue)
                value = recipe.values[result.scalar.index]
                sources.append((column, f"v{result.scalar.index}", not value.is_selection))
        rows = MAX_GROUPS if recipe.groups is None else recipe.groups
        return _Release(Released(list(self.members).index(member), tuple(sources)), columns, rows)

    def is_computed(self, query: Query) -> bool:
        """Whether a query computes row by row from what is released, or from public tables."""
        known = _is_released(query.source, self.policy) or is_public(query.source, self.policy)
        return known and not aggregates(query)

    def public_query(self, query: Query) -> ReleasedTable:
        """The table of a query over public tables: the groups or the rows that are read, and what is computed of them.

        What a source of rows has no meaning for, such as LIMIT in a subquery, is computed after it is read.
        """
        scope, before = Scope(self.policy), len(self.public)
        try:
            opened, relation = scope.open(query, is_inner=True)
            opened = replace(opened, outputs=tuple(expand_stars(opened.outputs, relation)))
            where, rest = separate_where(opened, relation)
            grouped = self.public_groups(opened, relation, scope.names)
        except Refused as refused:
            del self.public[before:]
            return self.public_parts(query, refused)
        if grouped is not None:
            return grouped
        del self.public[before:]
        opened = replace(opened, where=rest)
        return _Outer(self, opened, self.public_rows(opened, relation, where, scope.names, MAX_PUBLIC_ROWS)).table()

    def public_parts(self, query: Query, refused: Refused) -> ReleasedTable:
        """The same where each table of FROM is read by itself; refused as before where that does not help."""
        try:
            return _Outer(self, query, self.source(query.source, conjuncts(query.where))).table()
        except Refused:
            raise refused from None

    def public_groups(self, query: Query, relation: Relation, names: Iterator[str]) -> ReleasedTable | None:
        """The table of a query that groups public rows, where these can be counted where they are stored."""
        if not aggregates(query):
            return None
        lifted, releases = _Lifted(query, relation), []
        for places in lifted.sets:
            keys = [lifted.keys[place] for place in places]
            read = read_groups(query, relation, keys, lifted.aggregates, self.policy, names)
            if read is None:
                return None
            node, measured = self.read(read), lifted.names()[len(lifted.keys) :]
            named = zip((*map(_key_name, places), *measured), node.columns, read.types, strict=True)
            releases.append(_Release(node, {name: (column, kind) for name, column, kind in named}, read.most))
        return self.finish(lifted, releases)

    def public_rows(
        self, query: Query, relation: Relation, where: Scalar | None, names: Iterator[str], most: int
    ) -> ReleasedTable:
        """The rows of public tables, and of their columns those that a query names."""
        clauses = (node for clause in walk_clauses(query) for node in walk(clause))
        named = {node.name.lower() for node in clauses if isinstance(node, ColumnReference)}
        used = [f for f in relation.fields if f.name.lower() in named or (STAR in named and not f.is_internal)]
        read = read_fields(query, relation, where, used, most, self.policy, names)
        node = self.read(read)
        columns, unique = [], []
        for found, column in zip(used, node.columns, strict=True):
            columns.append(TableColumn(found.name, found.source, column, found.bound.type, found.hidden))
            if found.unique and found.bound.scalar == ColumnReference(found.raw):
                unique.append(frozenset({column}))
        constants = evaluate_constants(read.rows)
        return ReleasedTable(node, tuple(columns), most if constants is None else len(constants), tuple(unique))

    def read(self, read: PublicRead) -> Public:
        """Public rows as a table of the program."""
        self.public.append(read)
        if len(self.public) > MAX_MEMBERS:
            what = f"the question reads public tables more than {MAX_MEMBERS} times"
            raise Refused(ErrorCode.TOO_LARGE, what, at=read.at, fix="ask several smaller questions")
        return Public(len(self.public) - 1, tuple(next(self.names) for _ in read.types))

    def union(self, union: UnionAll) -> ReleasedTable:
        """Tables put together, columns by their position."""
        tables = [self.query(part) for part in union.parts]
        first = tables[0]
        if any(len(table.columns) != len(first.columns) for table in tables):
            what, fix = "the parts of a union have different numbers of columns", "select the same columns in each"
            raise Refused(ErrorCode.TYPE, what, at=union.at, fix=fix)
        types = [column.type for column in _common_types(tables, union.at)]
        names = [next(self.names) for _ in first.columns]
        parts = []
        for table in tables:
            columns = []
            for name, kind, column in zip(names, types, table.columns, strict=True):
                columns.append(ProgramColumn(name, ColumnReference(column.column), kind or Type.INT))
            parts.append(Compute(table.node, tuple(columns)))
        columns_here = tuple(
            TableColumn(column.name, "", name, kind)
            for column, name, kind in zip(first.columns, names, types, strict=True)
        )
        return ReleasedTable(Stack(tuple(parts), union.operation), columns_here, sum(table.rows for table in tables))

    def source(self, source: FromItem, where: list[Scalar]) -> ReleasedTable:
        """A source of released tables. `where` are the conditions of WHERE, by which tables after a comma match."""
        match source:
            case DerivedTable(query, alias):
                inner = self.query(query)
                return replace(inner, columns=tuple(replace(c, table=alias) for c in inner.columns))
            case TableReference(at=at) | ConstantTable(at=at) if is_public(source, self.policy):
                scope = Scope(self.policy)
                every = (SelectItem(STAR, ColumnReference(STAR, None, at)),)
                query = Query(source, every, None, (), None, (), None, 0, at=at)
                return self.public_rows(query, scope.relation(source), None, scope.names, MAX_JOINED_ROWS)
            case TableReference() | ConstantTable():
                what = "a join of a released table with the rows of a table is not answered"
                fix = "aggregate in both of them, and join what comes out"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=source.at, fix=fix)
            case SemiJoin():
                what = "SEMI JOIN or ANTI JOIN with a released table is not answered"
                fix = "join the keys of a subquery, each once"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=source.at, fix=fix)
            case Join():
                return self.join(source, where)

    def join(self, node: Join, where: list[Scalar]) -> ReleasedTable:
        """A join of released tables on equal columns, or of all rows of both."""
        left, right = self.source(node.left, where), self.source(node.right, where)
        names = tuple(c.name for c in left.columns if _has_name(right, c.name)) if node.natural else node.using
        using = {name.lower() for name in names}
        others = tuple(replace(c, hidden=c.hidden or c.name.lower() in using) for c in right.columns)
        shown = (*others, *left.columns) if node.swapped else (*left.columns, *others)
        every = ReleasedTable(left.node, (*left.columns, *right.columns), 0)
        pairs: list[tuple[Scalar, Scalar]] = []
        rest: list[Scalar] = []
        for name in names:
            column = ColumnReference(name, at=node.at)
            pairs.append((_find(column, left).scalar, _find(column, right).scalar))
        parts: tuple[Scalar, ...] = ()
        if node.on is not None:
            is_and = isinstance(node.on, Call) and node.on.function == Function.AND
            parts = node.on.arguments if is_and and isinstance(node.on, Call) else (node.on,)
        ours = {column.column for column in left.columns}
        for part in parts:
            bound = bind(
                part, lambda leaf: _find(leaf, every) if isinstance(leaf, ColumnReference) else None, rows=False
            )
            sides = _sides(bound.scalar, ours)
            if sides is not None:
                pairs.append(sides)
            else:
                rest.append(condition(bound, "ON", find_location(part)))
        if rest and node.outer:
            what = "an outer join of released tables on anything but equal columns is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="filter in the subqueries")
        if node.is_cross:
            pairs += _pairs_of_where(where, every, ours)
        kind = "full" if node.full else "left" if node.outer else "inner"
        both = ReleasedTable(left.node, shown, _pairs(left, right, pairs, node))
        joined: Node = Combine(left.node, right.node, tuple(pairs), kind)
        for part in rest:
            joined = Filter(joined, part)
        both = replace(both, node=joined)
        return self._merge(both, right, using) if node.full and using else both

    def _merge(self, both: ReleasedTable, right: ReleasedTable, using: set[str]) -> ReleasedTable:
        """A FULL JOIN whose columns of USING are those of the side that has the row."""
        computed, columns = [], []
        for column in both.columns:
            scalar: Scalar = ColumnReference(column.column)
            if column.name.lower() in using and not column.hidden:
                other = _find(ColumnReference(column.name), right).scalar
                scalar = Case(((Call(Function.IS_NULL, (scalar,)), other),), scalar)
            name = next(self.names)
            computed.append(ProgramColumn(name, scalar, column.type or Type.INT))
            columns.append(replace(column, column=name))
        return replace(both, node=Compute(both.node, tuple(computed)), columns=tuple(columns))


def _has_name(table: ReleasedTable, name: str) -> bool:
    return any(column.name.lower() == name.lower() for column in table.columns)


def _pairs(left: ReleasedTable, right: ReleasedTable, on: list[tuple[Scalar, Scalar]], node: Join) -> int:
    """The most rows of a join. A row finds at most one where the columns that it is matched on are unique."""
    ours = {one.name for one, _ in on if isinstance(one, ColumnReference)}
    theirs = {other.name for _, other in on if isinstance(other, ColumnReference)}
    if any(key <= theirs for key in right.unique):
        return left.rows + (right.rows if node.full else 0)
    if any(key <= ours for key in left.unique):
        return right.rows + (left.rows if node.outer else 0)
    if left.rows * right.rows > _MOST_PAIRS:
        what = f"a join of released tables of up to {left.rows:,} and {right.rows:,} rows is not answered"
        raise Refused(ErrorCode.TOO_LARGE, what, at=node.at, fix="group by fewer or coarser keys")
    return left.rows * right.rows


def _pairs_of_where(where: list[Scalar], every: ReleasedTable, ours: set[str]) -> list[tuple[Scalar, Scalar]]:
    """The equalities of WHERE between two tables with a comma between them. They stay in WHERE, too."""
    found = []
    for part in where:
        if any(isinstance(node, ScalarSubquery | Window | Aggregate) for node in walk(part)):
            continue
        try:
            bound = bind(
                part, lambda leaf: _find(leaf, every) if isinstance(leaf, ColumnReference) else None, rows=False
            )
        except Refused:
            continue  # it names columns of further tables, or is refused where WHERE is read
        sides = _sides(bound.scalar, ours)
        if sides is not None:
            found.append(sides)
    return found


def _sides(scalar: Scalar, ours: set[str]) -> tuple[Scalar, Scalar] | None:
    """The sides of an equality, the left table's first, if each side is about one table only."""
    if not isinstance(scalar, Call) or scalar.function != Function.EQUAL:
        return None
    about = []
    for side in scalar.arguments:
        found = {node.name in ours for node in walk(side) if isinstance(node, ColumnReference)}
        about.append(found.pop() if len(found) == 1 else None)
    if about == [True, False]:
        return scalar.arguments[0], scalar.arguments[1]
    return (scalar.arguments[1], scalar.arguments[0]) if about == [False, True] else None


def _find(node: ColumnReference, table: ReleasedTable) -> TypedScalar:
    """What a column's name means in a released table."""
    found = [
        column
        for column in table.columns
        if column.name.lower() == node.name.lower()
        and (not column.hidden if node.table is None else node.table.lower() == column.table.lower())
    ]
    if not found:
        where = node.table or " or ".join(dict.fromkeys(c.table for c in table.columns if c.table)) or "the subquery"
        raise no_column(where, node, [column.name for column in table.columns])
    if len(found) > 1:
        first, second = (f"{one.table}.{node.name}" for one in found[:2])
        what, fix = f"{node.name} is a column of several tables", f"say which: {first} or {second}"
        raise Refused(ErrorCode.AMBIGUOUS, what, at=node.at, fix=fix, instead=first)
    return TypedScalar(ColumnReference(found[0].column), found[0].type)


def _common_types(tables: list[ReleasedTable], at: SourceLocation | None) -> tuple[TableColumn, ...]:
    """The columns of tables put together: of one type, where NULL is of any and whole numbers are numbers."""
    found = []
    for position, first in enumerate(tables[0].columns):
        kinds = {table.columns[position].type for table in tables} - {None}
        if kinds == {Type.INT, Type.FLOAT}:
            kinds = {Type.FLOAT}
        if len(kinds) > 1:
            what = f"column {first.name} has different types in the parts of a union"
            raise Refused(ErrorCode.TYPE, what, at=at, fix="select columns of the same type")
        found.append(replace(first, type=kinds.pop() if kinds else None))
    return tuple(found)


def _refuse_subqueries(scalar: Scalar, clause: str, look: Callable[[FromItem], Relation]) -> None:
    for node in walk(scalar):
        if isinstance(node, ScalarSubquery) and not is_row_value(node, look):
            what = f"a subquery in {clause} of a query over rows is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="ask for its value first, and write it here")
        if isinstance(node, Window):
            what = f"a window function in {clause} of a query over rows is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="aggregate in groups, and use it on those")


def _key_name(place: int) -> str:
    return f"\0k{place}"


def _aggregate_name(place: int) -> str:
    return f"\0a{place}"


class _Lifted:
    """A query over rows as members, which give keys and aggregates, and a query over these.

    Keys and aggregates have names in both that no question can have.
    """

    def __init__(self, query: Query, relation: Relation) -> None:
        self.query, self.relation = query, relation
        self.named = {output.name.lower(): output.scalar for output in query.outputs}
        self.keys = [self._key(key) for key in query.keys]
        self.sets = query.sets if query.sets is not None else (tuple(range(len(self.keys))),)
        self.resolved = [relation.resolve(relation.bare(key)) for key in self.keys]
        self.aggregates: list[Aggregate] = []
        finishing = [*(item.scalar for item in query.order)]
        finishing += [clause for clause in (query.having, query.qualify) if clause is not None]
        self.outputs = tuple(replace(output, scalar=self._read(output.scalar)) for output in query.outputs)
        self.finishing = {id(scalar): self._read(scalar) for scalar in finishing}

    def names(self) -> list[str]:
        """The names of keys and aggregates."""
        return [*map(_key_name, range(len(self.keys))), *map(_aggregate_name, range(len(self.aggregates)))]

    @property
    def bits(self) -> list[str]:
        """The names of the bits of GROUPING, one for each key."""
        return [f"\0g{place}" for place in range(len(self.keys))]

    def member(self, places: tuple[int, ...]) -> Query:
        """The question of one grouping set."""
        outputs = [SelectItem(_key_name(place), self.keys[place]) for place in places]
        outputs += [SelectItem(_aggregate_name(place), each) for place, each in enumerate(self.aggregates)]
        keys = tuple(self.keys[place] for place in places)
        return Query(self.query.source, tuple(outputs), self.query.where, keys, None, (), None, 0, at=self.query.at)

    def outer(self) -> Query:
        """The query over what the members release; its source is handed over with it."""
        query = self.query
        return replace(
            query,
            outputs=self.outputs,
            where=None if query.having is None else self.finishing[id(query.having)],
            keys=(),
            having=None,
            order=tuple(replace(item, scalar=self.finishing[id(item.scalar)]) for item in query.order),
            sets=None,
            qualify=None if query.qualify is None else self.finishing[id(query.qualify)],
        )

    def _key(self, key: Scalar) -> Scalar:
        """A key; a name of the select list stands for what it names."""
        if isinstance(key, ColumnReference) and key.table is None and not self._is_field(key):
            return self.named.get(key.name.lower(), key)
        return key

    def _is_field(self, column: ColumnReference) -> bool:
        return any(f.name.lower() == column.name.lower() for f in self.relation.fields)

    def _read(self, scalar: Scalar) -> Scalar:
        """A scalar of the select list, HAVING, QUALIFY or ORDER BY over what the members release."""
        return rebuild(scalar, self._change)

    def _change(self, node: Scalar) -> Scalar | None:
        match node:
            case Aggregate():
                if node not in self.aggregates:
                    self.aggregates.append(node)
                return ColumnReference(_aggregate_name(self.aggregates.index(node)), None, node.at)
            case Call(function, arguments) if function == GROUPING:
                return self._grouping(node, arguments)
            case ColumnReference() | Call() | Case() if self._is_over_rows(node):
                found = self.relation.resolve(self.relation.bare(node))
                if found in self.resolved:
                    return ColumnReference(_key_name(self.resolved.index(found)), None, find_location(node))
        if isinstance(node, ColumnReference) and node.name != "*" and self._is_field(node):
            what = f"{node.name} would show the values of single rows"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=f"group by {node.name} too")
        return None

    def _is_over_rows(self, scalar: Scalar) -> bool:
        parts = list(walk(scalar))
        columns = [part for part in parts if isinstance(part, ColumnReference)]
        return (
            bool(columns)
            and all(map(self._is_field, columns))
            and not any(
                isinstance(part, Aggregate | Window | ScalarSubquery)
                or (isinstance(part, Call) and part.function == GROUPING)
                for part in parts
            )
        )

    def _grouping(self, node: Call, arguments: tuple[Scalar, ...]) -> Scalar:
        """GROUPING(a, b) is 2 for each row that adds up over a, and 1 more where it does over b."""
        found: Scalar = Literal(0)
        for argument in arguments:
            resolved = self.relation.resolve(self.relation.bare(argument))
            if resolved not in self.resolved:
                what = "GROUPING takes keys of GROUP BY"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="name a key")
            bit: Scalar = Literal(0)
            if len(self.sets) > 1:
                bit = ColumnReference(self.bits[self.resolved.index(resolved)])
            double = Call(Function.MULTIPLY, (Literal(2), found))
            found = bit if found == Literal(0) else Call(Function.ADD, (double, bit))
        return found


class _Outer:
    """A query over a released table. Its clauses become nodes of a program, in the order in which SQL does them."""

    def __init__(self, builder: _Builder, query: Query, source: ReleasedTable) -> None:
        self.builder, self.query, self.source = builder, query, source
        self.groups = aggregates(query)
        self.keys: list[tuple[Scalar, ProgramColumn]] = []
        self.aggregates: dict[Aggregate, ProgramColumn] = {}
        self.windows: dict[Window, ProgramColumn] = {}
        self.subqueries: dict[ScalarSubquery, ReleasedTable] = {}
        self.named = {output.name.lower(): output.scalar for output in query.outputs}
        self.fixed: frozenset[str] = frozenset()  # the columns of which WHERE leaves one value

    def table(self) -> ReleasedTable:
        """The table that the query gives."""
        query, node = self.query, self.source.node
        where = None if query.where is None else self._condition(query.where, "WHERE", self._row)
        node = self._with_subqueries(node)
        if where is not None:
            node = Filter(node, where)
            self.fixed = frozenset(name for part in conjuncts(where) if (name := _fixed_column(part)))
        if query.sets is not None:
            what, fix = (
                "grouping sets over released tables are not answered",
                "write one query for each, and put them together",
            )
            raise Refused(ErrorCode.UNSUPPORTED, what, at=query.at, fix=fix)
        for key in query.keys:
            self._add_key(key)
        having = None if query.having is None else self._condition(query.having, "HAVING", self._finishing)
        qualify = None if query.qualify is None else self._condition(query.qualify, "QUALIFY", self._finishing)
        outputs = [(name, self._bind(scalar, self._leaf)) for name, scalar in self._outputs()]
        order = [(item, self._bind(item.scalar, self._finishing)) for item in query.order]
        if self.groups:
            node = GroupRows(node, tuple(column for _, column in self.keys), tuple(self.aggregates.values()))
        node = self._with_subqueries(node)
        if having is not None:
            node = Filter(node, having)
        if self.windows:
            node = Windows(node, tuple(self.windows.values()))
        if qualify is not None:
            node = Filter(node, qualify)
        return self._finish(node, outputs, order)

    def _finish(
        self, node: Node, outputs: list[tuple[str, TypedScalar]], order: list[tuple[OrderItem, TypedScalar]]
    ) -> ReleasedTable:
        """The select list, DISTINCT, ORDER BY and LIMIT."""
        query = self.query
        columns = [TableColumn(name, "", next(self.builder.names), bound.type) for name, bound in outputs]
        computed = [
            ProgramColumn(column.column, bound.scalar, column.type or Type.INT)
            for column, (_, bound) in zip(columns, outputs, strict=True)
        ]
        sorting: list[OrderItem] = []
        for item, bound in order:
            known = next(
                (c.name for c, (_, o) in zip(computed, outputs, strict=True) if o.scalar == bound.scalar), None
            )
            if known is None and query.distinct:
                what, fix = "ORDER BY of DISTINCT names columns of the select list", "add the column to the select list"
                raise Refused(ErrorCode.SYNTAX, what, at=find_location(item.scalar), fix=fix)
            if known is None:
                known = next(self.builder.names)
                computed.append(ProgramColumn(known, bound.scalar, bound.type or Type.INT))
            sorting.append(replace(item, scalar=ColumnReference(known)))
        node = Compute(node, tuple(computed))
        if query.distinct:
            node = Distinct(node)
        if sorting or query.limit is not None or query.offset:
            node = Sort(node, tuple(sorting), query.limit, query.offset)
        rows = 1 if self.groups and not self.keys else self.source.rows
        if any(key <= self.fixed for key in self.source.unique):
            rows = min(rows, 1)
        rows = rows if query.limit is None else min(query.limit, rows)
        keys = (frozenset(column.name for _, column in self.keys),) if self.groups else self.source.unique
        passed = {each.scalar.name: each.name for each in computed if isinstance(each.scalar, ColumnReference)}
        unique = tuple(frozenset(passed[name] for name in key) for key in keys if key <= passed.keys())
        return ReleasedTable(node, tuple(columns), rows, unique)

    def _outputs(self) -> Iterator[tuple[str, Scalar]]:
        for output in self.query.outputs:
            if not isinstance(output.scalar, ColumnReference) or not is_star(output.scalar):
                yield output.name, output.scalar
                continue
            wanted, without = output.scalar.table, {name.lower() for name in output.scalar.without or ()}
            for column in self.source.columns:
                if column.name.lower() in without:
                    continue
                if not column.hidden if wanted is None else wanted.lower() == column.table.lower():
                    yield column.name, ColumnReference(column.name, column.table or None)

    def _bind(self, scalar: Scalar, leaf: Callable[[Scalar], TypedScalar | None]) -> TypedScalar:
        return bind(rebuild(scalar, _divide_exactly), leaf, rows=False)

    def _condition(self, scalar: Scalar, clause: str, leaf: Callable[[Scalar], TypedScalar | None]) -> Scalar:
        return condition(self._bind(scalar, leaf), clause, find_location(scalar))

    def _row(self, node: Scalar) -> TypedScalar | None:
        """A part of WHERE, of a key or of an aggregate's argument: over rows of the source."""
        match node:
            case Aggregate() | Window():
                what = "an aggregate cannot stand inside WHERE or another aggregate"
                raise Refused(ErrorCode.AGGREGATE, what, at=node.at, fix="filter groups after they are made")
            case ScalarSubquery():
                return self._subquery(node)
            case ColumnReference():
                return _find(node, self.source)
        return None

    def _add_key(self, key: Scalar) -> None:
        if isinstance(key, ColumnReference) and key.table is None and not self._is_column(key):
            key = self.named.get(key.name.lower(), key)
        bound = self._bind(key, self._row)
        column = ProgramColumn(next(self.builder.names), bound.scalar, bound.type or Type.INT)
        self.keys.append((bound.scalar, column))

    def _is_column(self, node: ColumnReference) -> bool:
        return any(column.name.lower() == node.name.lower() for column in self.source.columns)

    def _finishing(self, node: Scalar) -> TypedScalar | None:
        """A part of HAVING, QUALIFY or ORDER BY, where the names of the select list may be used too."""
        if isinstance(node, ColumnReference) and node.table is None and node.name.lower() in self.named:
            named = self.named[node.name.lower()]
            if named != node:
                return self._bind(named, self._leaf)
        return self._leaf(node)

    def _leaf(self, node: Scalar) -> TypedScalar | None:
        """A part of the select list: of keys and aggregates where the query groups, of rows where it does not."""
        match node:
            case Window():
                return self._window(node)
            case Aggregate():
                return self._aggregate(node)
            case ScalarSubquery():
                return self._subquery(node)
        if not self.groups:
            return _find(node, self.source) if isinstance(node, ColumnReference) else None
        if isinstance(node, ColumnReference | Call | Case) and self._is_of_rows(node):
            bound = self._bind(node, self._row)
            for scalar, column in self.keys:
                if scalar == bound.scalar:
                    return TypedScalar(ColumnReference(column.name), bound.type)
        if isinstance(node, ColumnReference):
            what = f"{node.name} is neither grouped by nor inside an aggregate"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix="group by it too, or aggregate it")
        return None

    def _is_of_rows(self, scalar: Scalar) -> bool:
        return all(
            not isinstance(part, Aggregate | Window | ScalarSubquery)
            and (not isinstance(part, ColumnReference) or self._is_column(part))
            for part in walk(scalar)
        )

    def _aggregate(self, node: Aggregate) -> TypedScalar:
        condition = expand_condition(node)
        if condition is not None:
            return self._bind(condition, self._finishing)
        found = self.aggregates.get(node)
        if found is None:
            bound, kind = self._measure(node, self._row)
            found = ProgramColumn(next(self.builder.names), bound, kind)
            self.aggregates[node] = found
        return TypedScalar(ColumnReference(found.name), found.type)

    def _measure(self, node: Aggregate, leaf: Callable[[Scalar], TypedScalar | None]) -> tuple[Aggregate, Type]:
        """An aggregate of released values, bound, and its type."""
        if node.function not in OUTER_AGGREGATES or function_of(node).gives_list:
            what = f"{quote_aggregate(node)} over released values is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="use count, sum, avg, min, max or quantile")
        argument = None if node.argument is None else self._bind(node.argument, leaf)
        others = tuple(self._bind(other, leaf).scalar for other in node.others)
        bound = replace(node, argument=None if argument is None else argument.scalar, others=others)
        if node.function == "count" or argument is None:
            return bound, Type.INT
        if node.function in {"min", "max", "mode", "arg_max", "arg_min"}:
            return bound, argument.type or Type.INT
        if argument.type not in NUMERIC_TYPES | {None}:
            what = f"{quote_aggregate(node)} takes numbers"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="use count, min or max")
        whole = node.function == "sum" and argument.type is Type.INT
        return bound, Type.INT if whole else Type.FLOAT

    def _window(self, node: Window) -> TypedScalar:
        found = self.windows.get(node)
        if found is None:
            partition = tuple(self._bind(each, self._inside_window).scalar for each in node.partition)
            order = tuple(replace(i, scalar=self._bind(i.scalar, self._inside_window).scalar) for i in node.order)
            arguments = [self._bind(each, self._inside_window) for each in node.arguments]
            if node.aggregate is not None:
                measured, kind = self._measure(node.aggregate, self._inside_window)
            else:
                measured, kind = None, _window_type(node, arguments)
            scalars = tuple(argument.scalar for argument in arguments)
            bound = replace(node, arguments=scalars, aggregate=measured, partition=partition, order=order)
            found = ProgramColumn(next(self.builder.names), bound, kind)
            self.windows[node] = found
        return TypedScalar(ColumnReference(found.name), found.type)

    def _inside_window(self, node: Scalar) -> TypedScalar | None:
        if isinstance(node, Window):
            what, fix = "a window function inside another is not answered", "compute the inner one in a subquery"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
        return self._finishing(node)

    def _subquery(self, node: ScalarSubquery) -> TypedScalar:
        """The value of a subquery that has one row and one column."""
        found = self.subqueries.get(node)
        if found is None:
            found = self.builder.single(node)
            self.subqueries[node] = found
        return TypedScalar(ColumnReference(found.columns[0].column), found.columns[0].type)

    def _with_subqueries(self, node: Node) -> Node:
        """The rows with the values of the subqueries that were met since this was done last."""
        for table in self.subqueries.values():
            node = Combine(node, table.node, (), "left")
        self.subqueries = {}
        return node


def _divide_exactly(node: Scalar) -> Scalar | None:
    """A quotient with a sum of released values: PostgreSQL sums counts as exact numbers, which / does not cut."""
    if not isinstance(node, Call) or node.function != Function.RATIO:
        return None
    found = [part.aggregate if isinstance(part, Window) else part for side in node.arguments for part in walk(side)]
    if not any(isinstance(part, Aggregate) and part.function == "sum" for part in found):
        return None
    sides = tuple(rebuild(side, _divide_exactly) for side in node.arguments)
    return Call(Function.DIVIDE, sides, node.at)


def _fixed_column(condition: Scalar) -> str | None:
    """The column of which a condition leaves one value at most: c = 1, c, or NOT c."""
    match condition:
        case Call(Function.EQUAL, (ColumnReference(name), Literal()) | (Literal(), ColumnReference(name))):
            return name
        case ColumnReference(name) | Call(Function.NOT, (ColumnReference(name),)):
            return name
    return None


def _window_type(node: Window, arguments: list[TypedScalar]) -> Type:
    if node.function in _WHOLE:
        return Type.INT
    if node.function in _SHARES:
        return Type.FLOAT
    for place in arguments[1:2]:
        value = place.scalar.value if isinstance(place.scalar, Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**6:
            what = f"{node.function.upper()} takes a constant whole number of rows"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="write the number")
    if len(arguments) == 3 and arguments[2].type not in {arguments[0].type, None}:
        if {arguments[0].type, arguments[2].type} <= NUMERIC_TYPES:
            return Type.FLOAT
        what = f"{node.function.upper()} takes a default of the same type"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix="leave the default out")
    return arguments[0].type or Type.INT
