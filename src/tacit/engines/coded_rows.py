"""Which questions can be answered from the distinct values of a table's columns, and what they compute of a row.

The columns may be those of other tables too, where each row of the table finds at most one of theirs. The rows may be
those of several tables, one part after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from tacit.engines.layout import UNIT_COLUMN, CopyLayout, find_copied_table, is_of_right_rows, substitute
from tacit.query.conditions import conjunction, conjuncts
from tacit.query.nodes import (
    Aggregation,
    Case,
    ColumnReference,
    EquiJoin,
    Literal,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    column_names,
    walk,
)


class RowMatch(NamedTuple):
    """How rows find those of another table: by equal values, in terms of the declared columns of each."""

    table: str
    on: tuple[tuple[Scalar, Scalar], ...]


class JoinedColumn(NamedTuple):
    """A column of the rows that are found, NULL where none is; without a name, whether one is found."""

    match: RowMatch
    column: str | None


class StackedPart(NamedTuple):
    """The rows of one table as a part of a union: what each column of the union is, in terms of declared columns.

    `joined` are the columns of other tables, by their names in the scalars.
    """

    table: str
    columns: tuple[tuple[str, Scalar], ...]
    joined: tuple[tuple[str, JoinedColumn], ...]


class StackedTables(NamedTuple):
    """The rows of several tables put together: those of a unit in the order of the parts, each as in the copy."""

    parts: tuple[StackedPart, ...]


@dataclass(frozen=True)
class CodedRows:
    """The rows of a table where all conditions are true: what is computed of each, in terms of declared columns.

    `arguments` are those of the question's measures, by what the question calls them. `joined` are the columns of other
    tables, by their names in the scalars. In place of a table there may be several, and the columns of their union.
    """

    table: str | StackedTables
    conditions: tuple[Scalar, ...]
    keys: tuple[Scalar, ...]
    arguments: Mapping[Scalar, Scalar]
    joined: Mapping[str, JoinedColumn] = field(default_factory=dict)

    @property
    def scalars(self) -> list[Scalar]:
        """All that is computed."""
        return [*self.conditions, *self.keys, *self.arguments.values()]


def find_coded_rows(node: Aggregation, layouts: Mapping[str, CopyLayout]) -> CodedRows | None:
    """The rows of an aggregation over one table and those that its rows find, subqueries that compute row by row
    written out; None for any other.

    **Theorem.** They are the rows of `node.source` where `node.where` is true, in the order of the copy, if each row
    finds at most one row of each other table. Proof: a subquery gives a row for each row where its condition is true,
    and a scalar of it is a function of that row, so it can stand wherever its name does. A join gives each row the
    columns of the row that it finds: it leaves a row out that finds none, or one for which a condition is not true; a
    LEFT JOIN gives it NULLs then. An inner join is the same from either side: its rows are those of the table that
    `number_rows` numbers. A union has the rows of its parts; a condition of one of them is a column of the union that
    is true in all others. Where units are in another table, the copy has the rows that reach one.
    """
    found = _find_rows(node.source, layouts, has_unit=node.unit is not None)
    if found is None or (node.unit is not None and not _has_unit(found, node.unit, layouts)):
        return None
    arguments = [measure.argument for measure in node.measures if measure.argument is not None]
    read = CodedRows(
        found.table,
        (*found.conditions, *found.write(conjuncts(node.where))),
        found.write(key.scalar for key in node.keys),
        dict(zip(arguments, found.write(arguments), strict=True)),
        found.joined,
    )
    known = {part for scalar in (*found.named.values(), *found.conditions) for part in _list_columns(scalar)}
    used = {part for scalar in read.scalars for part in _list_columns(scalar)}
    return read if used <= known else None


@dataclass(frozen=True)
class _Found:
    """A table, the conditions on its rows, and what each name stands for in terms of declared and joined columns."""

    table: str | StackedTables
    conditions: tuple[Scalar, ...]
    named: Mapping[Scalar, Scalar]
    joined: Mapping[str, JoinedColumn] = field(default_factory=dict)

    def write(self, scalars: Iterable[Scalar]) -> tuple[Scalar, ...]:
        """Scalars in terms of these columns."""
        return tuple(substitute(scalar, self.named) for scalar in scalars)


def _find_rows(node: RelationalNode, layouts: Mapping[str, CopyLayout], *, has_unit: bool) -> _Found | None:
    if isinstance(node, Projection):
        found = _find_rows(node.source, layouts, has_unit=has_unit)
        if found is None:
            return None
        named: dict[Scalar, Scalar] = {ColumnReference(name): substitute(s, found.named) for name, s in node.columns}
        conditions = (*found.conditions, *found.write(conjuncts(node.where)))
        return _Found(found.table, conditions, named, found.joined)
    leaf = find_copied_table(node, layouts) if has_unit else node
    if isinstance(leaf, Scan):
        return _Found(leaf.table, (), {ColumnReference(here): ColumnReference(there) for there, here in leaf.columns})
    if isinstance(node, RowUnion):
        return _stack([_find_rows(part, layouts, has_unit=has_unit) for part in node.parts], column_names(node))
    if isinstance(node, EquiJoin) and node.units is None:
        if is_of_right_rows(node, layouts) if has_unit else node.finds_left:
            node = EquiJoin(node.right, node.left, tuple((other, one) for one, other in node.on))
        left = _find_rows(node.left, layouts, has_unit=has_unit)
        right = _find_rows(node.right, layouts, has_unit=False)
        return None if left is None or right is None else _join(left, right, node, layouts)
    return None


def _join(left: _Found, right: _Found, node: EquiJoin, layouts: Mapping[str, CopyLayout]) -> _Found | None:
    """The rows of the left side with the columns of those that they find; None where they are not found by their own
    declared columns."""
    if not isinstance(left.table, str) or not isinstance(right.table, str):
        return None
    held = _find_held_unit(layouts.get(left.table))
    own: dict[Scalar, Scalar] = {} if held is None else {ColumnReference(UNIT_COLUMN): ColumnReference(held)}
    on = tuple((substitute(substitute(one, left.named), own), substitute(other, right.named)) for one, other in node.on)
    ours = {part.name for one, _ in on for part in _list_columns(one)}
    if not on or right.joined or ours & {*left.joined, UNIT_COLUMN}:
        return None
    match, number = RowMatch(right.table, on), sum(column.column is None for column in left.joined.values())
    there = {part for scalar in (*right.named.values(), *right.conditions) for part in _list_columns(scalar)}
    renamed: dict[Scalar, Scalar] = {part: ColumnReference(_name_joined(number, part.name)) for part in there}
    is_found = ColumnReference(_name_joined(number, None))
    needed = (is_found, *(substitute(condition, renamed) for condition in right.conditions))
    named = {name: substitute(scalar, renamed) for name, scalar in right.named.items()}
    if node.outer:
        named = {
            name: scalar
            if isinstance(scalar, ColumnReference) and not right.conditions
            else Case(((conjunction(needed), scalar),), Literal(None))
            for name, scalar in named.items()
        }
    joined = {_name_joined(number, part.name): JoinedColumn(match, part.name) for part in there}
    joined[is_found.name] = JoinedColumn(match, None)
    conditions = left.conditions if node.outer else (*left.conditions, *needed)
    return _Found(left.table, conditions, {**left.named, **named}, {**left.joined, **joined})


def _stack(found: list[_Found | None], names: list[str]) -> _Found | None:
    """The rows of all parts; None where one is not read so, or is a union itself."""
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    conditions = list(zip(*zip_longest(*(part.conditions for part in parts), fillvalue=Literal(True)), strict=True))
    is_in = [ColumnReference(f"#in {number}") for number in range(len(conditions[0]) if conditions else 0)]
    stacked = []
    for place, part in enumerate(parts):
        if not isinstance(part.table, str):
            return None
        columns = [(name, part.named[ColumnReference(name)]) for name in names]
        columns += [(column.name, conditions[place][i]) for i, column in enumerate(is_in)]
        stacked.append(StackedPart(part.table, tuple(columns), tuple(part.joined.items())))
    named: dict[Scalar, Scalar] = {ColumnReference(name): ColumnReference(name) for name in names}
    return _Found(StackedTables(tuple(stacked)), tuple(is_in), named)


def _name_joined(number: int, column: str | None) -> str:
    """A name that no declared column has: those do not begin with #."""
    return f"#found {number}" if column is None else f"#joined {number} {column}"


def _has_unit(found: _Found, unit: str, layouts: Mapping[str, CopyLayout]) -> bool:
    """Whether the unit of the rows is that of the tables' own rows.

    It is so too where it is the unit of a private row that each of them finds: a plan joins rows of one unit only
    (`plan/scope.py`).
    """
    column = found.named.get(ColumnReference(unit))
    if not isinstance(column, ColumnReference):
        return False
    if isinstance(found.table, str):
        table, joined = found.table, found.joined.get(column.name)
        if joined is None:
            return column.name == _name_unit(layouts[table])
        other = layouts.get(joined.match.table)
        return other is not None and joined.column == _name_unit(other) and _is_needed(found, joined)
    parts = ((dict(part.columns)[column.name], layouts[part.table]) for part in found.table.parts)
    return all(own == ColumnReference(_name_unit(layout)) for own, layout in parts)


def _is_needed(found: _Found, joined: JoinedColumn) -> bool:
    """Whether rows that do not find one of that table are left out."""
    finding = [name for name, column in found.joined.items() if column == JoinedColumn(joined.match, None)]
    return any(ColumnReference(name) in found.conditions for name in finding)


def _find_held_unit(layout: CopyLayout | None) -> str | None:
    """The declared column of a table that reaches its unit through another, where its values are the units themselves:
    the way has one step, and the key at its end, which equals that column in every row of the copy, is the unit."""
    match layout:
        case CopyLayout(rows=EquiJoin(Scan() as scan, Scan(), ((one, other),))) if other == ColumnReference(
            layout.unit
        ):
            return next((there for there, here in scan.columns if one == ColumnReference(here)), None)
    return None


def _name_unit(layout: CopyLayout) -> str:
    """The column of a table that says whose a row is."""
    return next((there for there, here in layout.scan.columns if here == layout.unit), UNIT_COLUMN)


def _list_columns(scalar: Scalar) -> list[ColumnReference]:
    return [part for part in walk(scalar) if isinstance(part, ColumnReference)]
