"""LEFT JOIN from a public table: its rows are a list of keys, and every key has a row in the answer.

    SELECT w.ward, COUNT(v.visit_id) FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.ward

**Rule.** Let P be public, V private, and let the keys and WHERE be about columns of P alone. Let every aggregate be one
that a row of P which matches nothing adds nothing to. Then the answer of `P LEFT JOIN V` is that of `P JOIN V`, with
one row for each combination of keys that a row of P has.

*Proof.* The rows of the LEFT JOIN are those of the inner join, under the same ON, and one row for each row of P that
matches nothing, in which the columns of V are NULL. WHERE keeps or drops a row by its columns of P. So the groups are
the combinations of keys of the rows of P that WHERE keeps, and in each of them the aggregates are over the rows of the
inner join, and rows that add nothing. An aggregate ignores a row where one of its arguments is NULL, and a sum is not
changed by 0; an argument is so if it is NULL, or 0, with NULL in the place of all columns of V. COUNT(*) is not: it
counts a row that matches nothing as one, and how many these are depends on V. It is refused.

**Theorem.** The release is (epsilon, delta)-DP as that of declared keys is. *Proof.* Which groups are released, and in
which order, is read from public tables only (`PublicRead`), so it is the same on neighboring databases; what is added
to each of them is noise for the largest number of groups that there can be, on which no sensitivity decreases.

Further LEFT JOINs may follow, to private tables: a row that matched nothing has no unit, so it finds nothing there.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.answers.choosing_values import placeholders_of
from tacit.engines.evaluate import evaluate
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar, bind
from tacit.plan.flatten import aggregates
from tacit.plan.foreign_keys import joins_of
from tacit.plan.public_tables import PublicRead, is_public
from tacit.plan.relation import Field, Relation
from tacit.plan.split import MAX_GROUPS, Halves
from tacit.policy.model import Policy
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Exists,
    FromItem,
    InSubquery,
    Join,
    PerUnitAggregation,
    Projection,
    Query,
    Scalar,
    ScalarSubquery,
    column_names,
    find_location,
    walk,
    walk_clauses,
)

_STRICT = frozenset({Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.DIVIDE})  # NULL where a part is


def mark_kept(query: Query, policy: Policy) -> Query:
    """The query with its LEFT JOIN from public tables marked, if it has one: it is matched as an inner join."""
    if not aggregates(query):
        return query
    source = _mark(query.source, policy)
    return query if source is None else replace(query, source=source)


def _mark(source: FromItem, policy: Policy) -> FromItem | None:
    if not isinstance(source, Join) or not source.outer or source.full or is_public(source.right, policy):
        return None
    if any(join.is_cross for join in joins_of(source.right)):
        return None
    if not is_public(source.left, policy):
        left = _mark(source.left, policy)
        return None if left is None else replace(source, left=left)
    parts = () if source.on is None else walk(source.on)
    if any(isinstance(node, InSubquery | Exists | ScalarSubquery) for node in parts):
        return None
    return replace(source, left=_mark_public(source.left), outer=False, kept=True)


def _mark_public(source: FromItem) -> FromItem:
    """A public source of which all rows are kept: what is unique on the right of its LEFT JOINs stays so."""
    if not isinstance(source, Join):
        return source
    left, right = _mark_public(source.left), _mark_public(source.right)
    return replace(source, left=left, right=right, kept=source.outer)


def list_keys(query: Query, relation: Relation, kept: Relation, halves: Halves, policy: Policy) -> PublicRead | None:
    """The rows of public tables that are the keys of a question; Refused where it is about more. None without keys."""
    columns = frozenset(column_names(kept.rows))
    table = kept.sources[0]
    if halves.where is not None and (not _is_of(halves.where, columns) or placeholders_of(halves.where)):
        what = f"WHERE about more than columns of {table}, whose rows are all kept,"
        raise _refuse(query.where, what, "join without left and right, or put the condition beside the equality")
    for scalar, key in zip(query.keys, halves.keys, strict=True):
        if not _is_of(key.scalar, columns):
            what = f"a key of another table than {table}, whose rows are all kept,"
            raise _refuse(scalar, what, f"group by columns of {table}, or join without left and right")
    private = [f for f in (*relation.fields, *relation.implied) if not _is_of(f.bound.scalar, columns)]
    for clause in walk_clauses(query):
        for node in walk(clause):
            if isinstance(node, Aggregate) and not _adds_nothing(node, relation, private):
                what = f"an aggregate that counts rows of {table} which match nothing"
                matches = _count_matches(node, private)
                fix = "aggregate columns of the private table, or join without left and right"
                raise _refuse(node, what, fix if matches is None else f"count the rows that match: {matches}", matches)
    if not halves.keys:
        return None
    named = tuple((f"k{place}", key.scalar) for place, key in enumerate(halves.keys))
    keys = tuple((name, ColumnReference(name)) for name, _ in named)
    rows = PerUnitAggregation(Projection(kept.rows, named, halves.where), keys, ())
    return PublicRead.of(rows, halves.key_types, MAX_GROUPS, policy, query)


def _is_of(scalar: Scalar, columns: frozenset[str]) -> bool:
    return all(node.name in columns for node in walk(scalar) if isinstance(node, ColumnReference))


def _adds_nothing(node: Aggregate, relation: Relation, private: list[Field]) -> bool:
    """Whether an aggregate ignores a row whose private columns are NULL."""
    if node.argument is None:
        return False
    if node.function == "sum" and not node.distinct and _without_match(node.argument, relation, private) == 0:
        return True
    return any(_is_null(argument, relation, private) for argument in (node.argument, *node.others))


def _is_null(scalar: Scalar, relation: Relation, private: list[Field]) -> bool:
    """Whether a scalar is NULL where the private columns are."""
    if isinstance(scalar, ColumnReference):
        return relation.field_of(scalar, links=True) in private
    if isinstance(scalar, Call) and scalar.function in _STRICT:
        return any(_is_null(argument, relation, private) for argument in scalar.arguments)
    if isinstance(scalar, Case):
        results = (*(then for _, then in scalar.branches), scalar.otherwise)
        if all(_is_null(result, relation, private) for result in results):
            return True
    return _without_match(scalar, relation, private) is None


def _without_match(scalar: Scalar, relation: Relation, private: list[Field]) -> object:
    """The value of a scalar where the private columns are NULL, also those that a row always has.

    Of one that other columns decide, or that cannot be computed with, it is not known.
    """

    def missing(node: Scalar) -> TypedScalar | None:
        if not isinstance(node, ColumnReference):
            return relation.leaf(node)
        found = relation.field_of(node)
        if found not in private or found.bound.type is None:
            raise Refused(ErrorCode.UNSUPPORTED, "the value is not known", at=node.at, fix="name other columns")
        return replace(found.bound, scalar=ColumnReference(_MISSING), nullable=True)

    try:
        return evaluate(bind(scalar, missing, rows=True).scalar, {_MISSING: None})
    except Refused:
        return _UNKNOWN


_MISSING = "\0missing"
_UNKNOWN = object()


def _count_matches(node: Aggregate, private: list[Field]) -> str | None:
    """COUNT(*) as the number of rows that match."""
    unit = next((f for f in private if f.is_unit), None) or next(iter(private), None)
    return f"COUNT({unit.source}.{unit.name})" if node.argument is None and unit is not None else None


def _refuse(scalar: Scalar | None, what: str, fix: str, instead: str | None = None) -> Refused:
    at = None if scalar is None else find_location(scalar)
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=at, fix=fix, instead=instead)
