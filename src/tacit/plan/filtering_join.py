"""SEMI JOIN and ANTI JOIN: the rows of the left side that find a match, and those that find none.

**Rule.** `a SEMI JOIN b ON c` is `a` WHERE EXISTS (SELECT 1 FROM b WHERE c), and an ANTI JOIN is NOT EXISTS: each row
stays one row of its unit, chosen by rows of the same unit or of public tables (`plan/semi_join.py`). A name in ON means
a column of either side, as in other joins. The columns of the right side cannot be named afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.plan.connect import all_of
from tacit.plan.joined_columns import columns_of, common_names, put_together
from tacit.plan.relation import Relation, condition
from tacit.plan.semi_join import Predicates
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    Exists,
    Join,
    Literal,
    Projection,
    Query,
    Scalar,
    SelectItem,
    SemiJoin,
    rebuild,
)


def keep_matching(node: SemiJoin, right: Relation, answers: Predicates) -> Relation:
    """The rows of a relation, which `answers` has, that the join keeps; `right` tells names of the other side."""
    found: Scalar = _find_match(node, answers.relation, right)
    if node.anti:
        found = Call(Function.NOT, (found,), node.at)
    scalar = answers.answer(found, only_truth=True)
    relation = answers.relation
    where = condition(relation.bind(scalar), "ON", node.at)
    columns = tuple((name, ColumnReference(name)) for name in columns_of(relation.rows))
    return replace(relation, rows=Projection(relation.rows, columns, where))


def _find_match(node: SemiJoin, left: Relation, right: Relation) -> Exists:
    """Whether a row of the left side finds one of the right side."""
    join = Join(node.left, node.right, node.on, node.using, False, node.at, node.natural)
    using = common_names(left, right, join) if node.natural else node.using
    both = put_together(left, right, join)
    parts: list[Scalar] = []
    for name in using:
        column = ColumnReference(name, at=node.at)
        sides = (side.field_of(column, links=True).source for side in (left, right))
        parts.append(Call(Function.EQUAL, tuple(ColumnReference(name, side, node.at) for side in sides), node.at))

    def qualify(scalar: Scalar) -> Scalar | None:
        if not isinstance(scalar, ColumnReference):
            return None
        return replace(scalar, table=both.field_of(scalar, links=True).source)

    if node.on is not None:
        on = rebuild(node.on, qualify)
        parts += on.arguments if isinstance(on, Call) and on.function == Function.AND else (on,)
    one = (SelectItem("one", Literal(1)),)
    return Exists(Query(node.right, one, all_of(parts, None), (), None, (), None, 0, at=node.at), node.at)
