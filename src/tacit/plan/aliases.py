"""Names of the select list in WHERE and inside keys: SELECT UPPER(ward) AS w ... WHERE w <> 'X' GROUP BY w.

**Rule.** A name that is no column of the rows means what the select list calls so, if that is computed row by row. A
column of that name comes first, as in DuckDB, Snowflake and BigQuery; PostgreSQL knows no such names in WHERE.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.plan.relation import Relation
from tacit.query.nodes import (
    Aggregate,
    ColumnReference,
    InSubquery,
    Query,
    Scalar,
    ScalarSubquery,
    Window,
    is_star,
    rebuild,
    walk,
)


def read_aliases(query: Query, relation: Relation) -> Query:
    """The query, with names of its select list in WHERE and inside keys replaced by what they name."""
    columns = {found.name.lower() for found in (*relation.fields, *relation.implied)}
    named = {o.name.lower(): o.scalar for o in query.outputs if o.name.lower() not in columns and _is_of_row(o.scalar)}
    if not named:
        return query

    def change(node: Scalar) -> Scalar | None:
        if isinstance(node, ColumnReference) and node.table is None:
            return named.get(node.name.lower())
        if isinstance(node, InSubquery):
            operand, *others = (rebuild(part, change) for part in (node.operand, *node.others))
            return replace(node, operand=operand, others=tuple(others))
        return None

    where = None if query.where is None else rebuild(query.where, change)
    # A key that is a name stays one: what is grouped by knows it.
    keys = tuple(key if isinstance(key, ColumnReference) else rebuild(key, change) for key in query.keys)
    return replace(query, where=where, keys=keys)


def _is_of_row(scalar: Scalar) -> bool:
    return not is_star(scalar) and not any(
        isinstance(node, Aggregate | Window | ScalarSubquery) for node in walk(scalar)
    )
