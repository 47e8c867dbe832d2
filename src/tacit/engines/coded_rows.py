"""Which questions can be answered from the distinct values of one table's columns, and what they compute of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.engines.layout import CopyLayout, find_copied_table, substitute
from tacit.query.conditions import conjuncts
from tacit.query.nodes import Aggregation, ColumnReference, Projection, RelationalNode, Scalar, Scan, walk


@dataclass(frozen=True)
class CodedRows:
    """The rows of one table where all conditions are true: what is computed of each, in terms of declared columns.

    `arguments` are those of the question's measures, by what the question calls them.
    """

    table: str
    conditions: tuple[Scalar, ...]
    keys: tuple[Scalar, ...]
    arguments: Mapping[Scalar, Scalar]

    @property
    def scalars(self) -> list[Scalar]:
        """All that is computed."""
        return [*self.conditions, *self.keys, *self.arguments.values()]


def find_coded_rows(node: Aggregation, layouts: Mapping[str, CopyLayout]) -> CodedRows | None:
    """The rows of an aggregation over one table, subqueries that compute row by row written out; None for any other.

    **Theorem.** They are the rows of `node.source` where `node.where` is true, in the order of the copy. Proof: a
    subquery gives a row for each row where its condition is true, and a scalar of it is a function of that row, so it
    can stand wherever its name does. Where units are in another table, the copy has the rows that reach one.
    """
    found = _find_rows(node.source, layouts, has_unit=node.unit is not None)
    if found is None:
        return None
    table, conditions, named = found
    arguments = [measure.argument for measure in node.measures if measure.argument is not None]
    read = CodedRows(
        table,
        (*conditions, *(substitute(part, named) for part in conjuncts(node.where))),
        tuple(substitute(key.scalar, named) for key in node.keys),
        {argument: substitute(argument, named) for argument in arguments},
    )
    known = {scalar for scalar in named.values() if isinstance(scalar, ColumnReference)}
    known |= {part for scalar in named.values() for part in walk(scalar) if isinstance(part, ColumnReference)}
    used = {part for scalar in read.scalars for part in walk(scalar) if isinstance(part, ColumnReference)}
    return read if used <= known else None


_Rows = tuple[str, tuple[Scalar, ...], dict[Scalar, Scalar]]


def _find_rows(node: RelationalNode, layouts: Mapping[str, CopyLayout], *, has_unit: bool) -> _Rows | None:
    """The table, the conditions of subqueries, and what each name stands for in terms of declared columns."""
    if isinstance(node, Projection):
        found = _find_rows(node.source, layouts, has_unit=has_unit)
        if found is None:
            return None
        table, conditions, named = found
        inner = (*conditions, *(substitute(part, named) for part in conjuncts(node.where)))
        return table, inner, {ColumnReference(name): substitute(scalar, named) for name, scalar in node.columns}
    leaf = find_copied_table(node, layouts) if has_unit else node
    if not isinstance(leaf, Scan):
        return None
    return leaf.table, (), {ColumnReference(here): ColumnReference(there) for there, here in leaf.columns}
