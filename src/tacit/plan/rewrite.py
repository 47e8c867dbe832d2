"""One form for queries that mean the same, beyond their conditions, which `plan/simplify.py` has.

Each rule gives a query with the same rows, or the same value, on every table that the policy admits:

- a subquery that computes from the rows of a table, each by itself, is that table, with both conditions;
- the number of groups of a subquery that groups by one key is the number of its values, but for that of NULL, which
  the answer says;
- a condition that all aggregates of a question without groups have is a condition on rows: an aggregate leaves out the
  rows where FILTER is not true, and nothing else of the answer depends on them;
- a LEFT JOIN is an inner one where WHERE is true only of rows that found a match;
- inner joins of different tables are those of their tables in the order of their names, with all conditions in WHERE
  (`plan/connect.py`): each is the pairs of rows for which all conditions hold;
- CASE WHEN x IS NULL THEN y ELSE x END is COALESCE(x, y).

So equal questions have one key, and the second costs nothing. Where the form is refused, the text is planned as it is.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.errors import Refused
from tacit.plan.connect import all_of
from tacit.plan.flatten import aggregates
from tacit.plan.foreign_keys import leaves_of
from tacit.plan.scope import Scope
from tacit.plan.split import count_of_ones
from tacit.policy.model import Policy, UnitForeignKey
from tacit.query.conditions import conjuncts
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    DerivedTable,
    Exists,
    FromItem,
    InSubquery,
    Join,
    Literal,
    Query,
    Scalar,
    ScalarSubquery,
    SelectItem,
    SemiJoin,
    TableReference,
    Window,
    is_star,
    rebuild,
    walk,
    walk_clauses,
)

_NULL = Literal(None)


def rewrite_query(query: Query, policy: Policy) -> Query:
    """The query in the form that all have that mean the same."""
    if query.sets is not None or query.distinct or query.qualify is not None or has_subqueries(query):
        return query
    query = _each(_each(query, _coalesce), _ones)
    query = _inline(query)
    query = count_values(query, policy)
    query = _move_filter(query)
    query = replace(query, source=_inner_joins(query.source, conjuncts(query.where)))
    return _order_sources(query, policy)


def has_subqueries(query: Query) -> bool:
    """Whether a query has subqueries or windows in its clauses, so that names may be looked up in other queries too."""
    more = (Window, ScalarSubquery, InSubquery, Exists)
    return any(isinstance(node, more) for clause in walk_clauses(query) for node in walk(clause))


def _each(query: Query, change: object) -> Query:
    """The query with each of its scalars changed."""
    assert callable(change)

    def of(scalar: Scalar) -> Scalar:
        return rebuild(scalar, change)

    return replace(
        query,
        outputs=tuple(replace(output, scalar=of(output.scalar)) for output in query.outputs),
        where=None if query.where is None else of(query.where),
        keys=tuple(map(of, query.keys)),
        having=None if query.having is None else of(query.having),
        order=tuple(replace(item, scalar=of(item.scalar)) for item in query.order),
    )


def _ones(node: Scalar) -> Scalar | None:
    return count_of_ones(node) if isinstance(node, Aggregate) else None


def _coalesce(node: Scalar) -> Scalar | None:
    match node:
        case Case(((Call(Function.IS_NULL, (tested,)), other),), value) if tested == value:
            return Call(Function.COALESCE, (rebuild(value, _coalesce), rebuild(other, _coalesce)), node.at)
    return None


def _inline(query: Query) -> Query:
    """The query over the table that its subquery selects from."""
    source = query.source
    if not isinstance(source, DerivedTable) or not isinstance(source.query, Query):
        return query
    inner, alias = _inline(source.query), source.alias.lower()
    if not _only_selects(inner) or any(is_star(output.scalar) for output in query.outputs):
        return query
    known = {output.name.lower(): output.scalar for output in inner.outputs}
    named = {output.name.lower(): output.scalar for output in query.outputs}
    if len(known) < len(inner.outputs) or any(known.get(name, scalar) != scalar for name, scalar in named.items()):
        return query
    lost: list[Scalar] = []

    def of_column(node: Scalar) -> Scalar | None:
        if not isinstance(node, ColumnReference):
            return None
        found = known.get(node.name.lower()) if node.table is None or node.table.lower() == alias else None
        if found is None:
            lost.append(node)
            return node
        return replace(found, at=node.at) if isinstance(found, ColumnReference) else found

    def of_row(node: Scalar) -> Scalar | None:
        name = node.name.lower() if isinstance(node, ColumnReference) and node.table is None else ""
        if name in named and name not in known:
            return rebuild(named[name], of_column)  # an output, which names columns alone
        return of_column(node)

    changed = _each(query, of_row)
    if lost:
        return query
    where = all_of([*conjuncts(inner.where), *conjuncts(changed.where)], query.where or inner.where)
    return replace(changed, source=inner.source, where=where)


def _only_selects(query: Query) -> bool:
    """Whether a query computes from the rows of one table, each by itself, and selects rows by a condition."""
    return (
        isinstance(query.source, TableReference)
        and not any(is_star(node) for output in query.outputs for node in walk(output.scalar))
        and not aggregates(query)
        and not (query.keys or query.having or query.distinct or query.sets or query.qualify)
        and query.limit is None
        and not query.offset
        and not has_subqueries(query)
    )


def count_values(query: Query, policy: Policy) -> Query:
    """COUNT(*) of a subquery that groups by one key, as COUNT(DISTINCT key)."""
    source = query.source
    if not isinstance(source, DerivedTable) or not isinstance(source.query, Query) or query.keys or query.where:
        return query
    inner = source.query
    rows = Aggregate("count", None)
    counted = all(output.scalar == rows for output in query.outputs) and not (query.having or query.order)
    alone = len(inner.keys) == 1 and all(output.scalar == inner.keys[0] for output in inner.outputs)
    plain = not (inner.having or inner.offset or inner.sets or inner.qualify or has_subqueries(inner))
    if not counted or not alone or not plain or inner.limit is not None:
        return query
    is_nullable = _is_nullable(inner, policy)
    if is_nullable is None:
        return query
    key = inner.keys[0]
    values = Aggregate("count", key, distinct=True, at=query.at)
    outputs = tuple(SelectItem(output.name, values) for output in query.outputs)
    rest = [part for part in conjuncts(inner.where) if part != _is_there(key)]  # which COUNT asks for anyway
    notes = (*query.notes, "A group whose key is NULL is not counted.") if is_nullable else query.notes
    return replace(query, source=inner.source, where=all_of(rest, inner.where), outputs=outputs, notes=notes)


def _is_there(scalar: Scalar) -> Scalar:
    return Call(Function.NOT, (Call(Function.IS_NULL, (scalar,)),))


def _is_nullable(inner: Query, policy: Policy) -> bool | None:
    """Whether the only key of a private query may be NULL, as its unit may not; None of other queries."""
    key = inner.keys[0]
    try:
        _, relation = Scope(policy).open(replace(inner, keys=(), outputs=(SelectItem("n", Aggregate("count", None)),)))
        if relation.people is None:
            return None
        if relation.is_unit(key):
            return False
        return _is_there(key) not in conjuncts(inner.where) and relation.bind(key).nullable
    except Refused:
        return None


def _move_filter(query: Query) -> Query:
    """The query with the condition of all its aggregates in WHERE."""
    if query.keys:
        return query
    clauses = [*(output.scalar for output in query.outputs), *(item.scalar for item in query.order)]
    clauses += [] if query.having is None else [query.having]
    found = [node for clause in clauses for node in walk(clause) if isinstance(node, Aggregate)]
    conditions = [_filter_of(node) for node in found]
    first = conditions[0] if conditions else None
    if first is None or any(condition != first for condition in conditions):
        return query

    def change(node: Scalar) -> Scalar | None:
        if not isinstance(node, Aggregate) or not isinstance(node.argument, Case):
            return None
        value = node.argument.branches[0][1]
        rows = node.function == "count" and not node.distinct and value == Literal(1)
        return replace(node, argument=None if rows else value)

    where = all_of([*conjuncts(query.where), *conjuncts(first)], query.where or first)
    return replace(_each(query, change), where=where)


def _filter_of(node: Aggregate) -> Scalar | None:
    match node.argument:
        case Case(((condition, _),), Literal(None)):
            return condition
    return None


def _inner_joins(source: FromItem, where: list[Scalar]) -> FromItem:
    """The source with those LEFT JOINs as inner ones whose rows without a match WHERE leaves out."""
    if not isinstance(source, Join):
        return source
    left, right = _inner_joins(source.left, where), _inner_joins(source.right, [])
    there = {leaf.alias.lower() for leaf in leaves_of(source.right)}
    outer = source.outer
    if outer and not source.full and any(_demands_match(part, there) for part in where):
        return replace(source, left=left, right=right, outer=False, swapped=False)
    return replace(source, left=left, right=right if not outer else source.right)


def _demands_match(part: Scalar, there: set[str]) -> bool:
    """Whether a condition is true only where a column of these tables is not NULL."""
    match part:
        case Call(Function.NOT, (Call(Function.IS_NULL, (ColumnReference(_, str(table)),)),)):
            return table.lower() in there
        case Call(function, (ColumnReference(_, str(table)), *rest)) if function in COMPARISONS | {Function.IN}:
            return table.lower() in there and all(isinstance(other, Literal) and other != _NULL for other in rest)
    return False


def _order_sources(query: Query, policy: Policy) -> Query:
    """The query over its tables in the order of their names, with the conditions of inner joins in WHERE."""
    query = _without_using(query, policy)
    if not isinstance(query.source, Join) or any(is_star(output.scalar) for output in query.outputs):
        return query
    leaves = list(leaves_of(query.source))
    names = [leaf.table.lower() for leaf in leaves if isinstance(leaf, TableReference)]
    conditions = _conditions(query.source)
    if conditions is None or len(names) < len(leaves) or len(set(names)) < len(names) or not aggregates(query):
        return query
    ordered = [leaf for _, leaf in sorted(zip(names, leaves, strict=True), key=lambda pair: pair[0])]
    tree: FromItem = ordered[0]
    for leaf in ordered[1:]:
        tree = Join(tree, leaf, None, (), False, query.source.at)
    parts = sorted([*conditions, *conjuncts(query.where)], key=_columns)
    return replace(query, source=tree, where=all_of(parts, query.where))


def _without_using(query: Query, policy: Policy) -> Query:
    """The query with USING of inner joins of tables as equalities; a name alone means the first table's column."""
    meant: dict[str, str] = {}

    def change(source: FromItem) -> FromItem | None:
        if not isinstance(source, Join):
            return source if isinstance(source, TableReference) else None
        left, right = change(source.left), change(source.right)
        if left is None or right is None or source.outer or source.natural or source.kept:
            return None
        parts = conjuncts(source.on)
        for name in source.using:
            holders = [_holders(name, side, policy) for side in (source.left, source.right)]
            if any(len(found) != 1 for found in holders):
                return None
            (one,), (other,) = holders
            meant.setdefault(name.lower(), one)
            sides = (ColumnReference(name, one, source.at), ColumnReference(name, other, source.at))
            parts = [*parts, Call(Function.EQUAL, sides, source.at)]
        return replace(source, left=left, right=right, on=all_of(parts, source.on), using=())

    changed = change(query.source)
    if changed is None or changed == query.source:
        return query

    def qualify(node: Scalar) -> Scalar | None:
        if isinstance(node, ColumnReference) and node.table is None and node.name.lower() in meant:
            return replace(node, table=meant[node.name.lower()])
        return None

    return replace(_each(query, qualify), source=changed)


def _holders(name: str, source: FromItem, policy: Policy) -> list[str]:
    """The tables of a source that have a column of that name, listed or as their unit."""
    found = []
    for leaf in leaves_of(source):
        table = policy.table(leaf.table) if isinstance(leaf, TableReference) else None
        declared = None if table is None else policy.declared_table(table.name)
        if table is None or declared is None:
            continue
        unit = declared.unit.column if isinstance(declared.unit, UnitForeignKey) else declared.unit
        is_own = name.lower() == (unit or "").lower() and declared.column(name) is None
        if table.column(name) is not None or is_own:
            found.append(leaf.alias)
    return found


def _conditions(source: FromItem) -> list[Scalar] | None:
    """The conditions of inner joins; None where there are other joins, or columns that USING makes one."""
    if isinstance(source, SemiJoin):
        return None
    if not isinstance(source, Join):
        return []
    left, right = _conditions(source.left), _conditions(source.right)
    if left is None or right is None or source.outer or source.using or source.natural or source.kept:
        return None
    return [*left, *right, *conjuncts(source.on)]


def _columns(scalar: Scalar) -> tuple[str, ...]:
    return tuple(sorted(node.name.lower() for node in walk(scalar) if isinstance(node, ColumnReference)))
