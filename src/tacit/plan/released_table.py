"""Released tables, by their public half: columns with their types, the most rows, and which columns are unique."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.answers.program import Node
from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import TypedScalar
from tacit.plan.relation import no_column
from tacit.query.integer_types import PostgresType, widest
from tacit.query.nodes import ColumnReference
from tacit.query.types import Type


@dataclass(frozen=True)
class TableColumn:
    """A column that may be named: its name and table in the question, its name in the program, and its type.

    `hidden` is one that only its qualified name means, because USING made it one with another. `texts` and `weight` are
    what its values are made of, as of `TypedScalar`: engines compute a column of a subquery where its name stands.
    `postgres_type` is as of `TypedScalar`, too.
    """

    name: str
    table: str
    column: str
    type: Type | None
    hidden: bool = False
    texts: int = 1
    weight: int = 1
    postgres_type: PostgresType = PostgresType.INTEGER

    def read(self) -> TypedScalar:
        """The value of the column in a row."""
        scalar, kind = ColumnReference(self.column), self.postgres_type
        return TypedScalar(scalar, self.type, texts=self.texts, weight=self.weight, postgres_type=kind)


@dataclass(frozen=True)
class ReleasedTable:
    """A released table, or what is computed from some; `rows` is the most that it has, from public numbers.

    `unique` are sets of its columns, by their names in the program, of which no two rows share all values.
    `listed` are the keys, in words, where each of their declared values has a row, whether or not the data has it.
    """

    node: Node
    columns: tuple[TableColumn, ...]
    rows: int
    unique: tuple[frozenset[str], ...] = ()
    listed: tuple[str, ...] = ()


def find_column(node: ColumnReference, table: ReleasedTable) -> TypedScalar:
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
    return found[0].read()


def has_name(table: ReleasedTable, name: str) -> bool:
    """Whether a table has a column of this name."""
    return any(column.name.lower() == name.lower() for column in table.columns)


def common_types(tables: list[ReleasedTable], at: SourceLocation | None) -> tuple[TableColumn, ...]:
    """The columns of tables put together: of one type, where NULL is of any and whole numbers are numbers."""
    found = []
    for position, first in enumerate(tables[0].columns):
        kinds = {table.columns[position].type for table in tables} - {None}
        if kinds == {Type.INT, Type.FLOAT}:
            kinds = {Type.FLOAT}
        if len(kinds) > 1:
            what = f"column {first.name} has different types in the parts of a union"
            raise Refused(ErrorCode.TYPE, what, at=at, fix="select columns of the same type")
        of_postgres = widest(table.columns[position].postgres_type for table in tables)
        found.append(replace(first, type=kinds.pop() if kinds else None, postgres_type=of_postgres))
    return tuple(found)
