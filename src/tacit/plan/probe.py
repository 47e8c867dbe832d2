"""Questions without rows, as tools send them to learn the columns: SELECT * FROM visits LIMIT 0, or WHERE 1 = 0.

**Rule.** The answer is empty whatever the data holds, so it follows from the question and the policy: it reads nothing,
releases nothing and costs nothing. Columns may be shown that no answer shows, because none of their values is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tacit.engines.evaluate import evaluate
from tacit.errors import Refused
from tacit.plan.bind_question import bind_bounded
from tacit.plan.flatten import aggregates
from tacit.plan.scope import Scope, expand_stars
from tacit.policy.model import Policy
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import Call, ColumnReference, Literal, Query, Scalar
from tacit.query.types import Type


class ProbedColumn(NamedTuple):
    """A column of an empty answer."""

    name: str
    type: Type


def probed_columns(query: Query, policy: Policy) -> tuple[ProbedColumn, ...] | None:
    """The columns of a question that has no rows; None where it may have some."""
    if query.limit != 0 and not _is_never_true(query):
        return None
    if not aggregates(query):
        return _columns_of_rows(query, policy)
    try:
        results = bind_bounded(replace(query, limit=None, where=None), policy).recipe.results
    except Refused:
        return None  # it is refused as it stands, or made of several
    return tuple(ProbedColumn(result.name, result.type) for result in results)


def _is_never_true(query: Query) -> bool:
    """Whether WHERE is a condition on constants that is not true, and leaves no row to show."""
    if query.where is None or (aggregates(query) and not query.keys):
        return False
    return _is_false(query.where)


def _is_false(condition: Scalar) -> bool:
    """Whether a condition, or one of a conjunction, is FALSE or a comparison of two constants that is not true."""
    match condition:
        case Call(Function.AND, parts):
            return any(map(_is_false, parts))
        case Call(function, (Literal(left), Literal(right))) if function in COMPARISONS and type(left) is type(right):
            return isinstance(left, int | str) and evaluate(condition, {}) is not True
    return condition == Literal(False)


def _columns_of_rows(query: Query, policy: Policy) -> tuple[ProbedColumn, ...]:
    query, relation = Scope(policy).open(query, is_inner=True)
    found = []
    for output in expand_stars(query.outputs, relation):
        if isinstance(output.scalar, ColumnReference) and relation.field_of(output.scalar).is_unlisted:
            continue  # a unit that is not listed is shown to nobody
        kind = relation.bind(output.scalar).type
        found.append(ProbedColumn(output.name, kind or Type.TEXT))
    return tuple(found)
