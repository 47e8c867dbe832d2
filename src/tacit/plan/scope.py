"""What FROM means: rows, the columns that may be named, and whose rows they are.

**Rule.** Every row of a private relation belongs to one unit: the value of its unit column, or the row itself where
the policy says so. A relation is made so that the rows of one unit are a function of that unit's rows in the tables and
of public tables, whatever other units hold. So adding or removing a unit adds or removes that unit's rows and changes
no others; what is kept of them is bounded afterwards, by a choice that looks at the unit's own rows only.

- A scan is the table. A table that reaches its unit through another takes the unit of the one row it refers to.
- Private with public, on a column that is unique in the public table: each row finds at most one row, so it stays one.
- Private with private, on the unit of both, within one group of people: the rows of a unit are matched with its own.
- A subquery without aggregates computes row by row. One that groups by the unit computes from each unit's own rows,
  with aggregates that are exact and do not depend on the order of rows.
- UNION ALL puts the rows of all parts together; they keep their units. A row that is its own unit gives at most one row
  for each part, in all groups together (`contribution_to_account` says what that costs).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar, bind
from tacit.policy.model import ROW_UNIT, Policy, Table, UnitForeignKey
from tacit.policy.model import Column as Declared
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    Clamp,
    ColumnReference,
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
    TableReference,
    UnionAll,
    find_location,
    is_star,
    walk,
)
from tacit.query.refusals import to_printable as printable
from tacit.query.types import NUMERIC_TYPES, TYPES_BY_NAME, Key, Type


@dataclass(frozen=True)
class Field:
    """A column that may be named: where it stands, what it gives, its public keys and the one for all others.

    `hidden` is one that only its qualified name means, because USING made it one with another. `raw` is the column of a
    scan as it lies: where it is `unique` no two rows share a value, but two of its clamped values may be equal.
    """

    name: str
    source: str
    bound: TypedScalar
    values: tuple[Key, ...] | None = None
    other: Key | None = None
    is_unit: bool = False
    unique: bool = False
    hidden: bool = False
    raw: str = ""

    @property
    def is_unlisted(self) -> bool:
        """Whether this is a unit that is no listed column: it may be counted, joined on and grouped by, and no more."""
        return self.is_unit and self.bound.type is None


@dataclass(frozen=True)
class Relation:
    """Rows and what is known of them.

    `people` says whose units they are, and is None where the rows are public. `unit` is the column that holds the unit,
    or None where each row is a unit, or public. `each` is what may be kept of one unit; where each row is one, how
    often it may occur. `single` says that a unit has at most one row.
    """

    rows: RelationalNode
    fields: tuple[Field, ...]
    people: str | None
    unit: str | None
    each: ContributionBounds
    called: str = ROW_UNIT  # the name of the unit, for people
    single: bool = False
    sources: tuple[str, ...] = ()

    def field_of(self, node: ColumnReference) -> Field:
        """The field that a name means, or Refused. Unlisted columns and absent ones are refused alike."""
        if node.table is not None and node.table.lower() not in {s.lower() for s in self.sources}:
            what = f"{node.table} is not a table of this question"
            raise Refused(
                ErrorCode.UNKNOWN_TABLE, what, at=node.at, fix=f"this question is over {', '.join(self.sources)}"
            )
        found = [f for f in self.fields if f.name.lower() == node.name.lower() and _is_of(f, node.table)]
        if not found:
            where = node.table or " or ".join(self.sources)
            here = [f for f in self.fields if _is_of(f, node.table, loose=True)]
            unit = next((f.name for f in here if f.is_unlisted), "")
            raise no_column(where, node, [f.name for f in here if not f.is_unlisted], unit)
        if len(found) > 1:
            fix = f"say which: {found[0].source}.{node.name} or {found[1].source}.{node.name}"
            raise Refused(ErrorCode.AMBIGUOUS, f"{node.name} is a column of several tables", at=node.at, fix=fix)
        return found[0]

    def leaf(self, node: Scalar) -> TypedScalar | None:
        """What a column's name means over rows; None for what is not a name."""
        if isinstance(node, Aggregate):
            raise Refused(
                ErrorCode.AGGREGATE,
                f"{node.function.upper()} cannot stand inside WHERE or another aggregate",
                at=node.at,
                fix="filter released values with HAVING; combine them outside: SUM(x) / COUNT(*)",
            )
        if not isinstance(node, ColumnReference):
            return None
        found = self.field_of(node)
        if found.is_unlisted:
            raise Refused(
                ErrorCode.UNKNOWN_COLUMN,
                f"{node.name} is the unit of protection, and no listed column",
                at=node.at,
                fix=f"COUNT(DISTINCT {node.name}) counts units; join on it, or group by it in a subquery",
            )
        return found.bound

    def bind(self, scalar: Scalar) -> TypedScalar:
        """A scalar over the rows."""
        return bind(scalar, self.leaf, rows=True)

    def bare(self, scalar: Scalar) -> Scalar:
        """The column alone, where a scalar is a column that is cast to its own type; otherwise as it is."""
        match scalar:
            case Call(Function.CAST, (ColumnReference() as column, Literal(kind))):
                same = self.field_of(column).bound.type is TYPES_BY_NAME[str(kind)]
                return column if same else scalar
        return scalar

    def resolved(self, scalar: Scalar) -> Scalar:
        """The scalar with every name replaced by the column it means, so that equal ones are equal."""
        scalar = self.bare(scalar)
        match scalar:
            case ColumnReference():
                return self.field_of(scalar).bound.scalar
            case Call(function, arguments):
                return Call(function, tuple(self.resolved(a) for a in arguments))
            case Case(branches, otherwise):
                parts = tuple((self.resolved(when), self.resolved(then)) for when, then in branches)
                return Case(parts, self.resolved(otherwise))
        return scalar

    def is_unit(self, scalar: Scalar | None) -> bool:
        """Whether a scalar is the unit itself."""
        return isinstance(scalar, ColumnReference) and self.field_of(scalar).is_unit


def _is_of(found: Field, table: str | None, *, loose: bool = False) -> bool:
    return (loose or not found.hidden) if table is None else found.source.lower() == table.lower()


@dataclass(frozen=True)
class Scope:
    """Makes relations. Columns get names of their own, in the order in which they are met."""

    policy: Policy
    names: Iterator[str] = field(default_factory=lambda: (f"c{number}" for number in count()), repr=False)
    notes: list[str] = field(default_factory=list, repr=False)  # on the subqueries

    def relation(self, source: FromItem) -> Relation:
        """What a source in FROM means."""
        match source:
            case TableReference():
                return self._table(source)
            case Join():
                from tacit.plan.join import join_relations

                return join_relations(self.relation(source.left), self.relation(source.right), source, self.names)
            case DerivedTable(query, alias):
                inner = self._union(query) if isinstance(query, UnionAll) else self.subquery(query)
                fields = tuple(replace(f, source=alias, hidden=False) for f in inner.fields)
                return replace(inner, fields=fields, sources=(alias,))

    def subquery(self, query: Query) -> Relation:
        """A query in FROM, whose rows still belong to units."""
        clauses_of_order = (("ORDER BY", query.order), ("LIMIT", query.limit is not None), ("OFFSET", query.offset))
        for what, there in clauses_of_order:
            if there:
                fix = "leave it out: which rows come first depends on other people's rows"
                raise Refused(ErrorCode.UNSUPPORTED, f"{what} in a subquery is not answered", at=query.at, fix=fix)
        from tacit.plan.notes import about_constants

        relation = self.relation(query.source)
        self.notes.extend(about_constants(query, relation))
        clauses = [*(o.scalar for o in query.outputs), *([] if query.having is None else [query.having])]
        if query.keys or any(isinstance(node, Aggregate) for clause in clauses for node in walk(clause)):
            from tacit.plan.fold import aggregate_per_unit

            return aggregate_per_unit(query, relation, self.names)
        if query.having is not None:
            raise Refused(ErrorCode.AGGREGATE, "HAVING filters groups", at=query.at, fix="filter rows with WHERE")
        return self._computed(query, relation)

    def _computed(self, query: Query, relation: Relation) -> Relation:
        """A subquery that computes row by row. The unit goes along, named or not."""
        where = (
            None if query.where is None else condition(relation.bind(query.where), "WHERE", find_location(query.where))
        )
        columns: list[tuple[str, Scalar]] = []
        fields = []
        for output in _expand_stars(query.outputs, relation):
            scalar = relation.bare(output.scalar)
            plain = relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
            bound = plain.bound if plain is not None and plain.is_unit else relation.bind(scalar)
            name = next(self.names)
            columns.append((name, bound.scalar))
            fields.append(_pass_field(output.name, name, bound, plain))
        unit = None
        if relation.unit is not None:
            unit = next(self.names)
            columns.append((unit, ColumnReference(relation.unit)))
        rows = Projection(relation.rows, tuple(columns), where)
        return replace(relation, rows=rows, fields=tuple(fields), unit=unit, sources=())

    def _union(self, union: UnionAll) -> Relation:
        parts = [self.subquery(query) for query in union.parts]
        first = parts[0]
        for part in parts[1:]:
            if part.people != first.people or (part.unit is None) != (first.unit is None):
                fix = "put tables together whose units are the same people"
                raise Refused(
                    ErrorCode.UNSUPPORTED, "UNION ALL of different units is not answered", at=union.at, fix=fix
                )
            if len(part.fields) != len(first.fields):
                fix = "select the same columns in the same order"
                raise Refused(ErrorCode.TYPE, "the parts of UNION ALL have different columns", at=union.at, fix=fix)
        fields, renamed = [], [list[tuple[str, Scalar]]() for _ in parts]
        for position, one in enumerate(first.fields):
            name = next(self.names)
            same = [part.fields[position] for part in parts]
            fields.append(_alike(one, name, same, union.at))
            for columns, other in zip(renamed, same, strict=True):
                columns.append((name, other.bound.scalar))
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
        return Relation(stack, tuple(fields), first.people, unit, each, first.called)

    def _table(self, named: TableReference) -> Relation:
        table = self.policy.table(named.table)
        if table is None:
            names = ", ".join(t.name for t in self.policy.tables)
            what = f"there is no table {named.table}"
            raise Refused(ErrorCode.UNKNOWN_TABLE, what, at=named.at, fix=f"the tables are {names}")
        columns, fields = [], []
        for column in table.columns:
            name = next(self.names)
            columns.append((column.name, name))
            is_unit = isinstance(table.unit, str) and table.unit != ROW_UNIT and column.name == table.unit
            bound = read_as_declared(column, ColumnReference(name))
            known = (column.values, column.other, is_unit, column.unique)
            fields.append(Field(column.name, named.alias, bound, *known, raw=name))
        each = ContributionBounds(table.max_groups, table.max_rows_per_group, table.max_rows)
        rows, unit = self._unit(table, columns, fields, named.alias)
        people = None if table.public else table.people or f"rows of {table.name}"
        return Relation(rows, tuple(fields), people, unit, each, self._called(table), sources=(named.alias,))

    def _called(self, table: Table) -> str:
        """The name of a table's unit."""
        while isinstance(table.unit, UnitForeignKey):
            above = self.policy.table(table.unit.table)
            assert above is not None
            table = above
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
                above = self.policy.table(parent)
                assert above is not None
                known, unit_columns = next(self.names), list[tuple[str, str]]()
                unit_columns.append((key, known))
                rows, unit = self._unit(above, unit_columns, [], alias)
                return EquiJoin(child, rows, ((ColumnReference(link), ColumnReference(known)),)), unit
            case str(unit_name):
                found = next((here for there, here in columns if there == unit_name), None)
                if found is None:
                    found = next(self.names)
                    columns.append((unit_name, found))
                    fields.append(Field(unit_name, alias, TypedScalar(ColumnReference(found), None), is_unit=True))
                return Scan(table.name, tuple(columns)), found


def no_column(where: str, node: ColumnReference, names: list[str], unit: str = "") -> Refused:
    """A refusal of a name that is no column, with what may have been meant; `unit` is one that is not listed."""
    fix = f"its columns are {', '.join(dict.fromkeys(names))}"
    if not names:
        fix = "no column of it is listed; COUNT(*) counts its rows"
    if unit:
        fix += f"; its unit is {unit}"
    longer = next((name for name in names if name.lower().startswith(f"{node.name.lower()} ")), None)
    if longer is not None:
        fix = f'write "{longer}", in double quotes'
    elif node.at is not None and node.at.words.startswith('"'):
        text = printable(node.name).replace("'", "''")
        fix = f"write '{text}' if it is a text: single quotes are for texts, double ones for names; {fix}"
    return Refused(ErrorCode.UNKNOWN_COLUMN, f"{where} has no column {printable(node.name)}", at=node.at, fix=fix)


def read_as_declared(column: Declared, plain: Scalar) -> TypedScalar:
    """A column as declared: clamped to its bounds, NaN read as NULL, and a NULL that must not be as `lower`."""
    bound = _clamp_column(column, plain)
    if column.nullable or bound.lower is None or bound.type not in NUMERIC_TYPES:
        return bound
    missing = Literal(int(bound.lower) if bound.type is Type.INT else bound.lower)
    return replace(bound, scalar=Call(Function.COALESCE, (bound.scalar, missing)), nullable=False)


def _clamp_column(column: Declared, plain: Scalar) -> TypedScalar:
    match column.type:
        case Type.INT if column.lower is None:
            return TypedScalar(plain, Type.INT, LEAST_INT, MOST_INT, Fraction(1))
        case Type.INT:
            clamped: Scalar = Clamp(plain, column.lower, column.upper, whole=True)
            return TypedScalar(clamped, Type.INT, column.lower, column.upper, Fraction(1))
        case Type.FLOAT:
            clamped = Clamp(plain, column.lower, column.upper, whole=False)
            return TypedScalar(clamped, Type.FLOAT, column.lower, column.upper, column.step)
        case Type.DATE if column.lower is not None and column.upper is not None:
            first, last = (Literal(datetime.date.fromordinal(int(day))) for day in (column.lower, column.upper))
            early, late = Call(Function.LESS, (plain, first)), Call(Function.GREATER, (plain, last))
            clamped = Case(((early, first), (late, last)), plain)
            return TypedScalar(clamped, Type.DATE, column.lower, column.upper, Fraction(1))
    return TypedScalar(plain, column.type)


def condition(bound: TypedScalar, clause: str, at: SourceLocation | None = None) -> Scalar:
    """The scalar of a clause that takes a condition."""
    if bound.type is not Type.BOOL:
        found, example = bound.type or "NULL", "COUNT(*) > 10" if clause == "HAVING" else "age >= 40"
        raise Refused(
            ErrorCode.TYPE, f"{clause} takes a condition, got {found}", at=at, fix=f"write {clause} {example}"
        )
    return bound.scalar


def _expand_stars(outputs: tuple[SelectItem, ...], relation: Relation) -> Iterator[SelectItem]:
    """The outputs, with * for every column that may be named."""
    for output in outputs:
        if isinstance(output.scalar, ColumnReference) and is_star(output.scalar):
            wanted = output.scalar.table
            yield from (
                SelectItem(f.name, ColumnReference(f.name, f.source)) for f in relation.fields if _is_of(f, wanted)
            )
        else:
            yield output


def _pass_field(name: str, column: str, bound: TypedScalar, plain: Field | None) -> Field:
    """A column of a subquery. What was known of its name is void unless it is passed on as it is."""
    here = replace(bound, scalar=ColumnReference(column))
    if plain is None:
        return Field(name, "", here)
    return Field(name, "", here, plain.values, plain.other, plain.is_unit)


def _alike(one: Field, name: str, same: list[Field], at: SourceLocation | None) -> Field:
    """A column of a union: all that is known of every part."""
    kinds = {f.bound.type for f in same}
    if len(kinds) > 1:
        what = f"column {one.name} has different types in the parts of UNION ALL"
        raise Refused(ErrorCode.TYPE, what, at=at, fix="select columns of the same type")
    lowers, uppers = [f.bound.lower for f in same], [f.bound.upper for f in same]
    known_low, known_high = [v for v in lowers if v is not None], [v for v in uppers if v is not None]
    bounded = len(known_low) == len(lowers) and len(known_high) == len(uppers)
    steps = {f.bound.step for f in same}
    values = tuple(dict.fromkeys(v for f in same for v in f.values or ()))
    return Field(
        one.name,
        "",
        TypedScalar(
            ColumnReference(name),
            one.bound.type,
            min(known_low) if bounded else None,
            max(known_high) if bounded else None,
            steps.pop() if len(steps) == 1 else None,
            any(f.bound.nullable for f in same),
        ),
        values if all(f.values is not None for f in same) else None,
        is_unit=all(f.is_unit for f in same),
    )
