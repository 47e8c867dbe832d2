"""One row of each unit, as SQL. The only statement whose rows reach Python as they are: private learning needs them."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.engines.dialect import DUCKDB, Dialect
from tacit.engines.limit_joins import limit_joined_rows
from tacit.engines.scalars import write_guarded
from tacit.engines.sql_statements import TableExpressions, write_rows
from tacit.query.nodes import ColumnReference, RelationalNode, Scalar
from tacit.query.types import Type


@dataclass(frozen=True)
class OneRowPerUnit:
    """Of the rows of `source` where `where` is true: one row of each unit, and of it the columns.

    `unit` is a column of `source`; rows where it is NULL are nobody's, and are left out. Where it is None, each row is
    a unit, and all of them are meant.

    **Theorem.** What is chosen of a unit is a function of its own rows, of the question and of its salt; so adding or
    removing a unit adds or removes at most one row and changes no other. Proof: a unit's n rows are put in the order of
    their columns, and number 1 + h mod n is taken, with h a hash of the salt and the unit. Rows that tie are equal in
    all that is used.
    """

    source: RelationalNode
    where: Scalar | None
    unit: str | None
    columns: tuple[Scalar, ...]
    salt: str = ""


def write_one_row_per_unit(node: OneRowPerUnit, sources: TableExpressions, dialect: Dialect = DUCKDB) -> str:
    """A SELECT of the columns x0, x1, ..."""
    names = [f"x{i}" for i in range(len(node.columns))]
    results = [f"{write_guarded(column, dialect)} AS {name}" for column, name in zip(node.columns, names, strict=True)]
    conditions = [] if node.where is None else [f"({write_guarded(node.where, dialect)})"]
    if node.unit is not None:
        unit = dialect.name(node.unit)
        results.append(f"{unit} AS unit")
        conditions.append(f"{unit} IS NOT NULL")
    taking_part = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    used = node.columns if node.unit is None else (*node.columns, ColumnReference(node.unit))
    source = dialect.derived.format(write_rows(limit_joined_rows(node.source, node.where, used), sources, dialect))
    rows = f"SELECT {', '.join(results)} FROM {source}{taking_part}"
    if node.unit is None:
        return rows
    order = ", ".join(dialect.order.format(name) for name in names)
    placed = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY {order}) AS place, "
        f"COUNT(*) OVER (PARTITION BY unit) AS size FROM {dialect.derived.format(rows)}"
    )
    text = f"CAST(unit AS {dialect.types[Type.TEXT]})"
    number = dialect.hashed.format(f"{dialect.text(node.salt)} || chr(31) || {text}")
    return f"SELECT {', '.join(names)} FROM {dialect.derived.format(placed)} WHERE place = 1 + {number} % size"
