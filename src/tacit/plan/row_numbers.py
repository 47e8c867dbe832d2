"""Row numbers within a unit, in conditions: what keeps those up to k keeps at most k rows of a unit.

A question often numbers the rows of each unit in a subquery, and keeps the first of them outside:
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY unit ORDER BY day) AS n FROM t) WHERE n = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tacit.plan.relation import ChosenBound, Relation
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    DerivedTable,
    FromItem,
    Join,
    Literal,
    Projection,
    Query,
    Scalar,
    UnitWindow,
    Window,
)

_AT_MOST: dict[str, int] = {Function.EQUAL: 0, Function.LESS_EQUAL: 0, Function.LESS: -1}
_SEEN_FROM_THE_RIGHT: dict[str, Function] = {
    Function.EQUAL: Function.EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
    Function.GREATER: Function.LESS,
}


def push_row_numbers(query: Query) -> Query:
    """The question with conditions on row numbers of subqueries written in these, too.

    **That changes no answer.** A row that WHERE keeps comes from a row of the subquery that meets the condition, also
    across a LEFT JOIN: one that found no such row has NULL for its number, which WHERE leaves out.
    """
    conditions = [part for part in _conjuncts(query.where) if _read_comparison(part) is not None]
    return replace(query, source=_push(query.source, conditions)) if conditions else query


def _push(source: FromItem, conditions: list[Scalar]) -> FromItem:
    match source:
        case Join(left, right):
            return replace(source, left=_push(left, conditions), right=_push(right, conditions))
        case DerivedTable(Query(limit=None, offset=0) as query, alias):
            numbers = {
                output.name.lower(): output.scalar
                for output in query.outputs
                if isinstance(output.scalar, Window)
                and output.scalar.function == "row_number"
                and output.scalar.partition
            }
            kept = [] if query.qualify is None else [query.qualify]
            for condition in conditions:
                found = _read_comparison(condition)
                if found is None or (found[0].table or alias).lower() != alias.lower():
                    continue
                window = numbers.get(found[0].name.lower())
                if window is not None:
                    kept.append(Call(found[1], (window, Literal(found[2]))))
            if len(kept) == (query.qualify is not None):
                return source
            qualify = kept[0] if len(kept) == 1 else Call(Function.AND, tuple(kept))
            return replace(source, query=replace(query, qualify=qualify))
    return source


def limit_by_number(relation: Relation, where: Scalar | None) -> Relation:
    """The relation with fewer rows of a unit, where a bound condition keeps row numbers of a unit up to some k.

    **Theorem.** Of one unit at most k rows have a row number of at most k in a partition by the unit alone. Proof: the
    numbers of a unit's rows differ and start from one. That holds for what a projection makes of the rows, as it makes
    at most one of each; columns are followed through projections and windows only.
    """
    limits = [] if relation.unit is None else [_limit(part, relation) for part in _conjuncts(where)]
    known = [limit for limit in limits if limit is not None]
    if not known:
        return relation
    most = max(min(known), 1)
    each = ContributionBounds(relation.each.groups, relation.each.rows, min(relation.each.most, most))
    chosen = relation.chosen
    if chosen is not None:
        each = each if chosen.has_caps else ContributionBounds(most, most, most)
        chosen = ChosenBound(min(chosen.at_most or most, most), has_caps=True)
    return replace(relation, each=each, single=relation.single or most == 1, chosen=chosen)


def _conjuncts(where: Scalar | None) -> Iterator[Scalar]:
    if isinstance(where, Call) and where.function == Function.AND:
        for part in where.arguments:
            yield from _conjuncts(part)
    elif where is not None:
        yield where


def _limit(part: Scalar, relation: Relation) -> int | None:
    """The k of a condition that keeps row numbers of a unit up to k; None for any other."""
    found = _read_comparison(part)
    if found is None or not _numbers_unit(found[0].name, relation):
        return None
    _, function, value = found
    return 1 if function is Function.EQUAL else value + _AT_MOST[function]


def _read_comparison(part: Scalar) -> tuple[ColumnReference, Function, int] | None:
    """The column, the comparison and the number, where a condition says that a column is at most a number."""
    if not isinstance(part, Call) or len(part.arguments) != 2:
        return None
    (left, right), function = part.arguments, part.function
    if isinstance(left, Literal):
        left, right, function = right, left, _SEEN_FROM_THE_RIGHT.get(function, Function.UNEQUAL)
    value = right.value if isinstance(right, Literal) else None
    if function not in _AT_MOST or not isinstance(left, ColumnReference):
        return None
    return None if not isinstance(value, int) or isinstance(value, bool) else (left, Function(function), value)


def _numbers_unit(column: str, relation: Relation) -> bool:
    """Whether a column numbers the rows of each unit."""
    rows, unit = relation.rows, relation.unit
    while True:
        match rows:
            case Projection(source, columns):
                made = dict(columns)
                here, whose = made.get(column), made.get(unit or "")
                if not isinstance(here, ColumnReference) or not isinstance(whose, ColumnReference):
                    return False
                rows, column, unit = source, here.name, whose.name
            case UnitWindow(source, partition, _, columns):
                found = dict(columns).get(column)
                if found is not None:
                    return found.function == "row_number" and partition == (unit,)
                rows = source
            case _:
                return False
