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
from typing import NamedTuple, TypeVar

from tacit.answers.choosing_values import TYPES, ChoosingValue, reads_public, releases_read
from tacit.answers.program import (
    Compute,
    Node,
    ProgramColumn,
    Public,
    Released,
    Stack,
    noisy_columns,
    render,
)
from tacit.canonical import canonical_text
from tacit.errors import ErrorCode, Refused
from tacit.plan.aliases import read_aliases
from tacit.plan.bind_question import BoundQuestion, bind_question, check_size
from tacit.plan.canonical import PLANS
from tacit.plan.constants import evaluate_constants
from tacit.plan.flatten import aggregates
from tacit.plan.grouping_sets import GroupedQuery, key_name
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
from tacit.plan.relation import Relation
from tacit.plan.released_joins import read_released_joins, read_rows_of_one
from tacit.plan.released_query import ReleasedQuery
from tacit.plan.released_table import ReleasedTable, TableColumn, common_types
from tacit.plan.released_values import chooses_by_released, place_values, without_values
from tacit.plan.row_values import is_row_value, reads_released
from tacit.plan.scope import Scope, expand_stars
from tacit.plan.split import MAX_GROUPS
from tacit.plan.table_joins import join_tables
from tacit.policy.model import Policy
from tacit.query.conditions import conjuncts
from tacit.query.nodes import (
    STAR,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    FromItem,
    Join,
    Literal,
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
    rebuild,
    walk,
    walk_clauses,
)
from tacit.query.suggest import refuse_without_aggregate
from tacit.query.types import Type

MAX_MEMBERS = 32
_MOST_VALUES = 30


@dataclass(frozen=True)
class Compound:
    """A question made of several: its members, the program over them, and the columns that it shows.

    `public` are the rows of public tables that the program reads too. `rows` is the most that the answer has.
    """

    members: tuple[BoundQuestion, ...]
    node: Node
    columns: tuple[TableColumn, ...]
    values: tuple[ChoosingValue, ...] = ()
    public: tuple[PublicRead, ...] = ()
    notes: tuple[str, ...] = ()
    rows: int = 0


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
    members, notes = tuple(builder.members.values()), tuple(dict.fromkeys(builder.notes))
    return Compound(members, table.node, table.columns, values, public, notes, table.rows)


def read_joins(query: Query, policy: Policy) -> Query:
    """The question, with IN for a join of rows with the first keys of another one."""
    return read_released_joins(query, lambda source: _is_released(source, policy))


_Planned = TypeVar("_Planned")


def plan_either(query: Query, policy: Policy, plan: Callable[[Query], _Planned]) -> _Planned:
    """What a question gives as it is written, or, where that is refused, with values for joins with one row."""
    try:
        return plan(query)
    except Refused as error:
        refused = error
    values = read_rows_of_one(
        query, lambda source: _is_released(source, policy), lambda source: _column_names(source, policy)
    )
    if values == query:
        raise refused
    return plan(values)


def _column_names(source: FromItem, policy: Policy) -> frozenset[str]:
    """The names of the columns of a source, in small letters, as far as they are written or declared."""
    match source:
        case Join(left, right) | SemiJoin(left, right):
            return _column_names(left, policy) | _column_names(right, policy)
        case DerivedTable(Query() as query):
            return frozenset(output.name.lower() for output in query.outputs)
        case TableReference(name):
            table = policy.table(name)
            return frozenset() if table is None else frozenset(column.name.lower() for column in table.columns)
    return frozenset()


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
    """A released table, its columns by the names of `GroupedQuery`, and the most rows that it has.

    `is_listed` says that its rows are all declared keys, whether or not the data has them.
    """

    node: Node
    columns: dict[str, TableColumn]
    rows: int
    is_listed: bool = False


def _fill(release: _Release, places: tuple[int, ...], lifted: GroupedQuery, columns: dict[str, TableColumn]) -> Node:
    """A release with the keys that its grouping set lacks as NULL, and the bits of GROUPING."""
    shown = []
    for name in lifted.names():
        scalar = ColumnReference(release.columns[name].column) if name in release.columns else Literal(None)
        shown.append(ProgramColumn(columns[name].column, scalar, columns[name].type or Type.INT))
    for place, name in enumerate(lifted.bits):
        shown.append(ProgramColumn(columns[name].column, Literal(int(place not in places)), Type.INT))
    return Compute(release.node, tuple(shown))


@dataclass
class _Builder:
    policy: Policy
    members: dict[Query, BoundQuestion] = field(default_factory=dict)
    values: dict[str, ChoosingValue] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)  # of members at epsilon 1, by their places
    names: Iterator[str] = field(default_factory=lambda: (f"c{number}" for number in count()))
    public: list[PublicRead] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def query(self, query: Query | UnionAll) -> ReleasedTable:
        """The released table of a query."""
        if isinstance(query, UnionAll):
            return self.union(query)
        query = read_joins(query, self.policy)
        if _is_released(query.source, self.policy):
            return ReleasedQuery(self, query, self.source(query.source, conjuncts(query.where))).table()
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
        lifted = GroupedQuery(read_aliases(query, relation), relation)
        return self.finish(lifted, [self.release(lifted, places) for places in lifted.sets])

    def finish(self, lifted: GroupedQuery, releases: list[_Release]) -> ReleasedTable:
        """What is computed from the keys and aggregates of all grouping sets."""
        known = {name: column for release in releases for name, column in release.columns.items()}
        names = lifted.names()
        if len(releases) == 1:
            node, columns = releases[0].node, {name: known[name] for name in names}
        else:
            columns = {name: replace(known[name], column=next(self.names)) for name in names}
            columns |= {name: TableColumn(name, "", next(self.names), Type.INT) for name in lifted.bits}
            filled = zip(releases, lifted.sets, strict=True)
            node = Stack(tuple(_fill(release, places, lifted, columns) for release, places in filled))
        unique = (frozenset(columns[name].column for name in names[: len(lifted.keys)]),) if len(releases) == 1 else ()
        listed = lifted.key_words() if all(release.is_listed for release in releases) else ()
        rows = sum(release.rows for release in releases)
        table = ReleasedTable(node, tuple(columns.values()), rows, unique, listed)
        return ReleasedQuery(self, lifted.outer(), table).table()

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
            table = ReleasedQuery(self, around, table).table()
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
        return Placeholder(name, column.type, node.at, column.postgres_type)

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

    def release(self, lifted: GroupedQuery, places: tuple[int, ...]) -> _Release:
        """The release of one grouping set."""
        member = lifted.member(places)
        if member not in self.members:
            self.members[member] = bind_question(member, self.policy)
        recipe = self.members[member].recipe
        check_size(sum(len(each.needed) for each in self.members.values()), lifted.query)
        if len(self.members) > MAX_MEMBERS:
            what = f"the question is made of more than {MAX_MEMBERS} questions"
            raise Refused(ErrorCode.TOO_LARGE, what, at=lifted.query.at, fix="ask several smaller questions")
        columns: dict[str, TableColumn] = {}
        sources = []
        for result in recipe.results:
            if result.many:
                what = "a list of values with a window, a union or a subquery is not answered"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=lifted.query.at, fix="ask for it by itself")
            if isinstance(result.scalar, Literal):
                what = "a query inside a question that groups by a constant is not answered"
                fix = "group by the other columns, and select the constant all the same"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=lifted.query.at, fix=fix)
            column = next(self.names)
            columns[result.name] = TableColumn(result.name, "", column, result.type, postgres_type=result.postgres_type)
            if isinstance(result.scalar, ReleasedKey):
                sources.append((column, f"k{result.scalar.index}", False))
            else:
                assert isinstance(result.scalar, ReleasedValue)
                value = recipe.values[result.scalar.index]
                sources.append((column, f"v{result.scalar.index}", not value.is_selection))
        rows = MAX_GROUPS if recipe.groups is None else recipe.groups
        released = Released(list(self.members).index(member), tuple(sources))
        return _Release(released, columns, rows, bool(places) and recipe.groups is not None)

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
        return ReleasedQuery(
            self, opened, self.public_rows(opened, relation, where, scope.names, MAX_PUBLIC_ROWS)
        ).table()

    def public_parts(self, query: Query, refused: Refused) -> ReleasedTable:
        """The same where each table of FROM is read by itself; refused as before where that does not help."""
        try:
            return ReleasedQuery(self, query, self.source(query.source, conjuncts(query.where))).table()
        except Refused:
            raise refused from None

    def public_groups(self, query: Query, relation: Relation, names: Iterator[str]) -> ReleasedTable | None:
        """The table of a query that groups public rows, where these can be counted where they are stored."""
        if not aggregates(query):
            return None
        lifted, releases = GroupedQuery(query, relation), []
        for places in lifted.sets:
            keys = [lifted.keys[place] for place in places]
            read = read_groups(query, relation, keys, lifted.aggregates, self.policy, names)
            if read is None:
                return None
            node, measured = self.read(read), lifted.names()[len(lifted.keys) :]
            named = zip((*map(key_name, places), *measured), node.columns, read.types, read.postgres_types, strict=True)
            columns = {
                name: TableColumn(name, "", column, kind, postgres_type=of_postgres)
                for name, column, kind, of_postgres in named
            }
            releases.append(_Release(node, columns, read.most))
        return self.finish(lifted, releases)

    def public_rows(
        self, query: Query, relation: Relation, where: Scalar | None, names: Iterator[str], most: int
    ) -> ReleasedTable:
        """The rows of public tables, and of their columns those that a query names."""
        clauses = [node for clause in walk_clauses(query) for node in walk(clause)]
        named = {node.name.lower(): node for node in clauses if isinstance(node, ColumnReference)}
        given = (each.name for each in query.outputs if each.name != getattr(each.scalar, "name", None))
        known = {STAR, *(f.name.lower() for f in relation.fields), *(name.lower() for name in given)}
        for name, node in named.items():
            if name not in known:
                raise relation.no_column(node)
        used = [f for f in relation.fields if f.name.lower() in named or (STAR in named and not f.is_internal)]
        read = read_fields(query, relation, where, used, most, self.policy, names)
        rows = self.read(read)
        columns, unique = [], []
        for found, column in zip(used, rows.columns, strict=True):
            kind, of_postgres = found.bound.type, found.bound.postgres_type
            columns.append(TableColumn(found.name, found.source, column, kind, found.hidden, postgres_type=of_postgres))
            if found.unique and found.bound.scalar == ColumnReference(found.raw):
                unique.append(frozenset({column}))
        constants = evaluate_constants(read.rows)
        return ReleasedTable(rows, tuple(columns), most if constants is None else len(constants), tuple(unique))

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
        common = common_types(tables, union.at)
        names = [next(self.names) for _ in first.columns]
        parts = []
        for table in tables:
            columns = []
            for name, known, column in zip(names, common, table.columns, strict=True):
                columns.append(ProgramColumn(name, ColumnReference(column.column), known.type or Type.INT))
            parts.append(Compute(table.node, tuple(columns)))
        columns_here = []
        for name, known, *same in zip(names, common, *(table.columns for table in tables), strict=True):
            texts, weight = max(column.texts for column in same), max(column.weight for column in same)
            columns_here.append(replace(known, table="", column=name, hidden=False, texts=texts, weight=weight))
        rows = sum(table.rows for table in tables)
        return ReleasedTable(Stack(tuple(parts), union.operation), tuple(columns_here), rows)

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
                left, right = self.source(source.left, where), self.source(source.right, where)
                return join_tables(source, left, right, where, self.names)


def _refuse_subqueries(scalar: Scalar, clause: str, look: Callable[[FromItem], Relation]) -> None:
    for node in walk(scalar):
        if isinstance(node, ScalarSubquery) and not is_row_value(node, look):
            what = f"a subquery in {clause} of a query over rows is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="ask for its value first, and write it here")
        if isinstance(node, Window):
            what = f"a window function in {clause} of a query over rows is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="aggregate in groups, and use it on those")
