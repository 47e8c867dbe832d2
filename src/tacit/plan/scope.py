"""What FROM means: rows, the columns that may be named, and whose rows they are.

**Rule.** Every row of a private relation belongs to one unit: the value of its unit column, or the row itself where
the policy says so. A relation is made so that the rows of one unit are a function of that unit's rows in the tables and
of public tables, whatever other units hold. So adding or removing a unit adds or removes that unit's rows and changes
no others; what is kept of them is bounded afterwards, by a choice that looks at the unit's own rows only.

- A scan is the table. A table that reaches its unit through another takes the unit of the one row it refers to.
- Private with public, on columns that are unique in the public table: each row finds at most one row, so it stays one.
- Public with public, on anything: the rows are nobody's.
- Private with private, on the unit of both, within one group of people: the rows of a unit are matched with its own.
- Private with private, along a foreign key that the policy declares: the same, by the theorem below.
- A LEFT JOIN keeps rows that find nothing. Which rows of the right side there are to be found, and whether a row looks
  for any, are conditions on rows of the same unit.
- Where a row of a LEFT JOIN may find several, by a condition on both sides, see `plan/left_join.py`.
- A LEFT JOIN from public tables is their inner join, whose keys are read from them (`plan/public_keys.py`). Tables in
  the text are public (`plan/constants.py`), and may be matched by ranges that do not overlap (`plan/range_join.py`).
- A FULL JOIN of private relations is a LEFT JOIN and the other side's rows that find nothing (`plan/full_join.py`).
- A subquery without aggregates computes row by row. One that groups by the unit computes from each unit's own rows,
  with aggregates that are exact and do not depend on the order of rows. So do windows whose partition contains the
  unit (`plan/unit_windows.py`). A public one may group by anything.
- IN and EXISTS with a subquery add a column to each row (`plan/semi_join.py`), and so does a subquery that stands for
  a value of the row (`plan/row_values.py`).
- A SEMI or ANTI JOIN keeps rows by what they find (`plan/filtering_join.py`).
- UNION, INTERSECT and EXCEPT of rows group by all columns, of which one determines the unit (`plan/set_operations.py`).
- UNION ALL puts the rows of all parts together; they keep their units. A row that is its own unit gives at most one row
  for each part, in all groups together (`contribution_to_account` says what that costs).

**Theorem.** Let T be a private table and k the column by which others reach their unit through T. Where rows of two
relations are joined on equal values that both name a row of T by k (`RowReference`), the two rows belong to one unit.

*Proof.* No two rows of T share a value of k, which is checked when the data is opened, and NULL equals nothing. So
both values are the k of one row t of T. By the invariant of `RowReference` each of the two rows belongs to the unit of
t. The invariant holds in a scan of T, where the row is t itself, and in one of a table that reaches its unit through T,
where the unit is taken from t. A join passes values on to rows of the same unit, or makes them NULL; so do filters,
projections that pass a value on as it is stored, and groups that have it as a key.

What is kept of a unit follows from how many rows there can be. Where a row of the left side finds at most one (it is a
child that looks for its parent, whose key no two rows share), the caps of the left side hold. Where a row of the right
side is found by at most one in turn, the joined rows are at most as many as those of the right side, group by group, so
its caps hold; in a LEFT JOIN the rows that find nothing come to them, which are at most as many as those of the left
side: the larger number of groups and the sum of the rows, as in a UNION ALL. Where the caps let a number of rows share
a key (customers with their orders, on the unit: an order stands as often as a customer has rows), the caps of the other
side are multiplied by that. Otherwise the caps of both are multiplied. These are what is kept; that a unit moves an
answer by no more is seen to afterwards, whatever the join made of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from tacit.errors import ErrorCode, Refused
from tacit.plan.aliases import read_aliases
from tacit.plan.bounds import TypedScalar, after_cast
from tacit.plan.caps import cap_of
from tacit.plan.connect import connect_sources
from tacit.plan.constants import read_constants
from tacit.plan.declared_columns import read_as_declared
from tacit.plan.filtering_join import keep_matching
from tacit.plan.flatten import aggregates
from tacit.plan.fold import aggregate_per_unit
from tacit.plan.foreign_keys import NO_KEYS, WantedKeys, all_keys, find_wanted_keys, refer, unlisted_keys
from tacit.plan.full_join import check_size, join_fully
from tacit.plan.join import either_chosen, join_relations
from tacit.plan.left_join import about_several, finds_several, join_left
from tacit.plan.notes import about_constants
from tacit.plan.relation import ChosenBound, Field, Relation, belongs_to, condition
from tacit.plan.row_numbers import limit_by_number
from tacit.plan.row_values import RowValues
from tacit.plan.semi_join import answer_predicates
from tacit.plan.set_operations import OPERATIONS, keep_once
from tacit.plan.subquery_refusals import refuse_having, refuse_over_rows, refuse_some_rows
from tacit.plan.union_columns import describe_union_column, find_union_column
from tacit.plan.unit_windows import add_windows, has_windows, separate_groups
from tacit.policy.model import ROW_UNIT, Policy, Table, UnitForeignKey
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import (
    Aggregate,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    EquiJoin,
    FromItem,
    Join,
    Literal,
    Projection,
    Query,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    SelectItem,
    SemiJoin,
    TableReference,
    UnionAll,
    find_location,
    is_star,
    walk,
)


@dataclass(frozen=True)
class Scope:
    """Makes relations. Columns get names of their own, in the order in which they are met."""

    policy: Policy
    names: Iterator[str] = field(default_factory=lambda: (f"c{number}" for number in count()), repr=False)
    notes: list[str] = field(default_factory=list, repr=False)  # on the subqueries
    # What was looked up, by the identity of the source, which is kept: each is looked up once.
    looks: dict[int, tuple[FromItem, Relation]] = field(default_factory=dict, repr=False)
    kept: list[Relation] = field(default_factory=list, repr=False)  # public ones whose rows are keys

    def open(self, query: Query, *, is_inner: bool = False) -> tuple[Query, Relation]:
        """What FROM means, and the query over it: IN and EXISTS with a subquery are columns, and WHERE is what is left.

        An inner query may pass on keys that are not listed, so that what is around it can be joined on them.
        """
        query = connect_sources(query, self.look)
        relation = self.relation(query.source, find_wanted_keys(query, self.policy, is_inner=is_inner))
        query = read_aliases(query, relation)
        return answer_predicates(query, relation, self, RowValues, is_inner=is_inner)

    def look(self, source: FromItem) -> Relation:
        """What a source means, apart from the question: to look names up."""
        if id(source) not in self.looks:
            found = Scope(self.policy, looks=self.looks).relation(source, all_keys(source, self.policy))
            self.looks[id(source)] = (source, found)
        return self.looks[id(source)][1]

    def rows_of(self, query: Query | UnionAll) -> Relation:
        """What a subquery means."""
        return self._union(query) if isinstance(query, UnionAll) else self.subquery(query)

    def relation(self, source: FromItem, wanted: WantedKeys = NO_KEYS) -> Relation:
        """What a source in FROM means. Keys that are not listed are read where they are `wanted`."""
        match source:
            case TableReference():
                return self._table(source, wanted)
            case Join():
                sides = self.relation(source.left, wanted), self.relation(source.right, wanted)
                if source.full:
                    check_size(sides, source)
                    again = self.relation(source.left, wanted), self.relation(source.right, wanted)
                    return join_fully(sides, again, source, self.names)
                if source.kept and not source.outer and sides[1].people is not None:
                    self.kept.append(sides[0])
                if finds_several(*sides, source):
                    check_size(sides, source)
                    none = SemiJoin(source.left, source.right, source.on, source.using, False, True, source.at)
                    answers = RowValues(self.relation(source.left, wanted), self)
                    try:
                        alone = keep_matching(none, self.look(source.right), answers)
                    except Refused as refusal:
                        raise about_several(refusal, sides[1], source) from None
                    return join_left(*sides, alone, source, self.names)
                return join_relations(*sides, source, self.names)
            case SemiJoin():
                left = self.relation(source.left, wanted)
                return keep_matching(source, self.look(source.right), RowValues(left, self))
            case ConstantTable():
                return replace(read_constants(source, self.names), has_fine_grids=self.policy.has_fine_grids)
            case DerivedTable(query, alias):
                inner = self.rows_of(query)
                fields = tuple(replace(f, source=alias, hidden=False) for f in inner.fields)
                return replace(inner, fields=fields, sources=(alias,))

    def subquery(self, query: Query) -> Relation:
        """A query in FROM, whose rows still belong to units."""
        for word, there in (("LIMIT", query.limit is not None), ("OFFSET", query.offset)):
            if there:
                raise refuse_some_rows(query, word)
        query = replace(query, order=())  # all of its rows are taken, so their order decides nothing
        windows = query.sets is None and has_windows(query)
        if not windows:
            refuse_over_rows(query)
        query, relation = self.open(query, is_inner=True)
        self.notes.extend(about_constants(query, relation))
        if windows:
            return self._with_windows(query, relation)
        clauses = [*(o.scalar for o in query.outputs), *([] if query.having is None else [query.having])]
        if query.keys or any(isinstance(node, Aggregate) for clause in clauses for node in walk(clause)):
            return aggregate_per_unit(query, relation, self.names)
        if query.having is not None:
            raise refuse_having(query)
        return self._compute_rows(query, relation)

    def _with_windows(self, query: Query, relation: Relation) -> Relation:
        """A subquery with window functions: what it groups comes first, then its windows, QUALIFY and DISTINCT."""
        query = replace(query, outputs=tuple(expand_stars(query.outputs, relation)))
        if aggregates(query):
            grouped, query = separate_groups(query, relation)
            relation = aggregate_per_unit(grouped, relation, self.names)
        found = self._compute_rows(*add_windows(query, relation, self.names))
        if not query.distinct:
            return found
        once = tuple(SelectItem(output.name, ColumnReference(output.name)) for output in query.outputs)
        keys = tuple(item.scalar for item in once)
        distinct = replace(query, outputs=once, keys=keys, where=None, having=None, qualify=None, distinct=False)
        return aggregate_per_unit(distinct, found, self.names)

    def _compute_rows(self, query: Query, relation: Relation) -> Relation:
        """A subquery that computes row by row. The unit goes along, named or not."""
        where = (
            None if query.where is None else condition(relation.bind(query.where), "WHERE", find_location(query.where))
        )
        columns: list[tuple[str, Scalar]] = []
        fields = []
        stored: dict[str, str] = {}  # of a public relation: columns as they lie, and what they are called here
        for output in expand_stars(query.outputs, relation):
            scalar = relation.bare(output.scalar)
            plain = relation.field_of(scalar, links=True) if isinstance(scalar, ColumnReference) else None
            opaque = plain is not None and (plain.is_unit or plain.is_unlisted_link)
            bound = plain.bound if plain is not None and opaque else relation.bind(scalar)
            bound = after_cast(output.scalar, bound)
            name = next(self.names)
            columns.append((name, bound.scalar))
            if plain is not None and plain.raw and relation.people is None:
                lies = name
                if bound.scalar != ColumnReference(plain.raw):
                    lies = next(self.names)
                    columns.append((lies, ColumnReference(plain.raw)))
                stored[plain.raw] = lies
            fields.append(_pass_field(output.name, name, bound, plain, stored))
        unit = None
        if relation.unit is not None:
            unit = next(self.names)
            columns.append((unit, ColumnReference(relation.unit)))
        rows = Projection(relation.rows, tuple(columns), where)
        relation = limit_by_number(relation, where)
        keys = tuple(frozenset(stored[column] for column in key) for key in relation.keys if key <= stored.keys())
        return replace(relation, rows=rows, fields=tuple(fields), unit=unit, sources=(), implied=(), keys=keys)

    def _union(self, union: UnionAll) -> Relation:
        word, distinct = union.operation.upper(), union.operation in OPERATIONS
        if union.operation != "union all" and not distinct:
            fix = "keep each row once, without all"
            raise Refused(ErrorCode.UNSUPPORTED, f"{word} of rows is not answered", at=union.at, fix=fix)
        parts = [self.subquery(query) for query in union.parts]
        first = parts[0]
        for part in parts[1:]:
            if part.people != first.people or (part.unit is None) != (first.unit is None):
                fix = "put tables together whose units are the same people"
                raise Refused(ErrorCode.UNSUPPORTED, f"{word} of different units is not answered", at=union.at, fix=fix)
            if len(part.fields) != len(first.fields):
                fix = "select the same columns in the same order"
                raise Refused(ErrorCode.TYPE, f"the parts of {word} have different columns", at=union.at, fix=fix)
        fields, renamed = [], [list[tuple[str, Scalar]]() for _ in parts]
        for position, one in enumerate(first.fields):
            name = next(self.names)
            same = find_union_column(parts, position, union.at)
            fields.append(describe_union_column(one.name, name, same))
            for columns, other in zip(renamed, same, strict=True):
                columns.append((name, other.bound.scalar))
        number = next(self.names) if distinct else ""
        for place, columns in enumerate(renamed if distinct else []):
            columns.append((number, Literal(place)))
        unit = next(self.names) if first.unit is not None else None
        for part, columns in zip(parts, renamed, strict=True):
            if unit is not None and part.unit is not None:
                columns.append((unit, ColumnReference(part.unit)))
        stack = RowUnion(
            tuple(Projection(part.rows, tuple(columns)) for part, columns in zip(parts, renamed, strict=True))
        )
        groups = [part.each.groups for part in parts]
        # A row that is its own unit may stand in every part; a unit with a name is bounded once more afterwards.
        # Only a cap on all rows that was declared makes one here.
        declared_total = any(part.each.total is not None for part in parts)
        each = ContributionBounds(
            sum(groups) if unit is None else max(groups),
            sum(part.each.rows for part in parts),
            sum(part.each.most for part in parts) if declared_total else None,
        )
        found = Relation(stack, tuple(fields), first.people, unit, each, first.called, chosen=either_chosen(parts, sum))
        found = replace(found, has_fine_grids=self.policy.has_fine_grids)
        return keep_once(union, parts, found, number, self.names) if distinct else found

    def _table(self, named: TableReference, wanted: WantedKeys) -> Relation:
        table = self.policy.table(named.table)
        if table is None:
            names = ", ".join(t.name for t in self.policy.tables)
            what = f"there is no table {named.table}"
            raise Refused(ErrorCode.UNKNOWN_TABLE, what, at=named.at, fix=f"the tables are {names}")
        shown, table = {column.name for column in table.columns}, self._find_declared(table.name)
        columns, fields = [], []
        for column in table.columns:
            name = next(self.names)
            columns.append((column.name, name))  # what is hidden is scanned too, so that all have one key
            if column.name not in shown:
                continue
            is_unit = isinstance(table.unit, str) and table.unit != ROW_UNIT and column.name == table.unit
            bound = read_as_declared(column, ColumnReference(name))
            known = (column.values, column.other, is_unit, column.unique)
            link = refer(self.policy, table, column.name, name)
            fields.append(Field(column.name, named.alias, bound, *known, raw=name, link=link))
        implied = []
        for key in unlisted_keys(self.policy, table):
            if (named.alias.lower(), key.lower()) in wanted:
                name = next(self.names)
                columns.append((key, name))
                bound = TypedScalar(ColumnReference(name), None)
                implied.append(Field(key, named.alias, bound, link=refer(self.policy, table, key, name)))
        each = ContributionBounds(table.max_groups, table.max_rows_per_group, table.max_rows)
        rows, unit = self._unit(table, columns, fields, named.alias)
        if isinstance(table.unit, UnitForeignKey):
            implied += self._implied_by_way(table, rows, unit, named.alias)
        people = None if table.public else table.people or f"rows of {table.name}"
        here = dict(columns)
        return Relation(
            rows,
            tuple(fields),
            people,
            unit,
            each,
            self._unit_name(table),
            sources=(named.alias,),
            implied=tuple(implied),
            keys=tuple(frozenset(here[name] for name in key) for key in table.unique),
            chosen=ChosenBound(table.auto_up_to, table.has_caps) if table.auto else None,
            has_fine_grids=self.policy.has_fine_grids,
        )

    def _find_declared(self, name: str) -> Table:
        """A table as it is declared, with what is hidden from whoever asks."""
        found = self.policy.declared_table(name)
        assert found is not None
        return found

    def _implied_by_way(self, table: Table, rows: RelationalNode, unit: str | None, alias: str) -> Iterator[Field]:
        """What a table that reaches its unit through another has besides its listed columns: the link, and the unit."""
        assert isinstance(table.unit, UnitForeignKey)
        assert isinstance(rows, EquiJoin)
        assert unit is not None
        way, name = table.unit, self.policy.unit_name(table)
        listed = {column.name.lower() for column in table.columns}
        if name.lower() not in listed:
            bound = TypedScalar(ColumnReference(unit), None)
            link = refer(self.policy, table, name, unit) if name.lower() == way.column.lower() else None
            yield Field(name, alias, bound, is_unit=True, link=link)
        if way.column.lower() not in listed | {name.lower()}:
            column = rows.on[0][0]
            assert isinstance(column, ColumnReference)
            yield Field(
                way.column, alias, TypedScalar(column, None), link=refer(self.policy, table, way.column, column.name)
            )

    def _unit_name(self, table: Table) -> str:
        """The name of a table's unit."""
        while isinstance(table.unit, UnitForeignKey):
            table = self._find_declared(table.unit.table)
        return table.unit or ROW_UNIT

    def _unit(
        self, table: Table, columns: list[tuple[str, str]], fields: list[Field], alias: str
    ) -> tuple[RelationalNode, str | None]:
        """The rows of a table with the column that holds their unit."""
        match table.unit:
            case None | "row":
                return Scan(table.name, tuple(columns)), None
            case UnitForeignKey(column, parent, key):
                link = next(self.names)
                child = Scan(table.name, (*columns, (column, link)))
                above = self._find_declared(parent)
                known, unit_columns = next(self.names), list[tuple[str, str]]()
                unit_columns.append((key, known))
                rows, unit = self._unit(above, unit_columns, [], alias)
                return EquiJoin(child, rows, ((ColumnReference(link), ColumnReference(known)),)), unit
            case str(unit_name):
                found = next((here for there, here in columns if there == unit_name), None)
                if found is None:
                    found = next(self.names)
                    columns.append((unit_name, found))
                    bound = TypedScalar(ColumnReference(found), None)
                    reference = refer(self.policy, table, unit_name, found)
                    fields.append(Field(unit_name, alias, bound, is_unit=True, link=reference))
                return Scan(table.name, tuple(columns)), found


def expand_stars(outputs: tuple[SelectItem, ...], relation: Relation) -> Iterator[SelectItem]:
    """The outputs, with * for every column that may be named."""
    for output in outputs:
        if isinstance(output.scalar, ColumnReference) and is_star(output.scalar):
            wanted, without = output.scalar.table, {name.lower() for name in output.scalar.without or ()}
            yield from (
                SelectItem(f.name, ColumnReference(f.name, f.source or None))
                for f in relation.fields
                if belongs_to(f, wanted) and not f.is_internal and f.name.lower() not in without
            )
        else:
            yield output


def _pass_field(name: str, column: str, bound: TypedScalar, plain: Field | None, stored: Mapping[str, str]) -> Field:
    """A column of a subquery. What was known of its name is void unless it is passed on as it is.

    `stored` says where columns of a public relation lie as they are stored: there they stay unique.
    """
    here = replace(bound, scalar=ColumnReference(column), capped=None, is_per_unit=False)
    cap = cap_of(bound)
    if plain is None:
        return Field(name, "", here, cap=cap, is_matched_unit=bound.is_per_unit, is_null=bound.is_null)
    lies = stored.get(plain.raw, "") if plain.raw else ""
    return Field(
        name,
        "",
        here,
        plain.values,
        plain.other,
        plain.is_unit,
        plain.unique and bool(lies),
        raw=lies,
        link=plain.link_in(column, bound.scalar),
        cap=cap,
        is_matched_unit=plain.is_matched_unit,
        is_null=plain.is_null,
    )
