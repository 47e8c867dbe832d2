"""Questions without rows, as tools send them to learn the columns: SELECT * FROM visits LIMIT 0, or WHERE 1 = 0.

**Rule.** The answer is empty whatever the data holds, so it follows from the question and the policy: it reads nothing,
releases nothing and costs nothing. Its columns are those of the question without what leaves it no rows. Columns may
be shown that no answer shows, because none of their values is.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.engines.evaluate import evaluate
from tacit.errors import ErrorCode, Refused
from tacit.plan.flatten import aggregates
from tacit.plan.scope import Scope, expand_stars
from tacit.policy.model import Policy
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import Call, ColumnReference, DerivedTable, Literal, Query, Scalar, is_star
from tacit.query.types import Type


def find_empty_clause(query: Query) -> Query | None:
    """Return a question that has no rows without the clause that leaves it none; None where it may have some.

    **Rule.** LIMIT 0 and a HAVING or QUALIFY that is never true leave no row. A WHERE that is never true, and a
    subquery without rows in FROM, leave none to show or to group; an aggregate of no rows without keys, or in a
    grouping set without keys, still has its row.
    """
    if query.limit == 0:
        return replace(query, limit=None, offset=0)
    if query.having is not None and _is_never_true(query.having):
        return replace(query, having=None)
    if query.qualify is not None and _is_never_true(query.qualify):
        return replace(query, qualify=None)
    if aggregates(query) and (not query.keys or () in (query.sets or ())):
        return None
    if query.where is not None and _is_never_true(query.where):
        return replace(query, where=None)
    source = query.source
    if isinstance(source, DerivedTable) and isinstance(source.query, Query):
        inner = find_empty_clause(source.query)
        return None if inner is None else replace(query, source=replace(source, query=inner))
    return None


def _is_never_true(condition: Scalar) -> bool:
    """Whether a condition is FALSE, NULL, a comparison of constants that is not true, or a conjunction with one."""
    match condition:
        case Literal(value):
            return value is False or value is None
        case Call(Function.AND, parts):
            return any(map(_is_never_true, parts))
        case Call(Function.OR, parts):
            return all(map(_is_never_true, parts))
        case Call(Function.NOT, (Literal(value),)):
            return value is True or value is None
        case Call(function, (Literal(left), Literal(right))) if function in COMPARISONS and type(left) is type(right):
            return isinstance(left, int | str) and evaluate(condition, {}) is not True
    return False


def list_row_columns(query: Query, policy: Policy) -> tuple[AnswerColumn, ...]:
    """Return the columns of rows that no answer shows.

    A unit that is not listed has a column where the question names it, and none in a star.
    """
    query, relation = Scope(policy).open(query, is_inner=True)
    found = []
    for written in query.outputs:
        star = isinstance(written.scalar, ColumnReference) and is_star(written.scalar)
        for output in expand_stars((written,), relation):
            if star and isinstance(output.scalar, ColumnReference) and relation.field_of(output.scalar).is_unlisted:
                continue
            kind = relation.bind(output.scalar).type
            found.append(AnswerColumn(output.name, kind or Type.TEXT, IntervalKind.NONE))
    if not found:
        what, fix = "the question has no column that is listed", "name a column, or ask for COUNT(*)"
        raise Refused(ErrorCode.UNKNOWN_COLUMN, what, at=query.at, fix=fix)
    return tuple(found)
