"""Rows of public tables beside what is released: known to everyone, so computing with them is free.

**Rule.** A program (`answers/program.py`) may read the rows of a node over public tables, and an answer may list them.
**Theorem.** What is read is a function of the question, the policy and the rows of public tables. So is how many rows
are read, in which order, and whether that is refused. *Proof.* Every scan in the node is of a table that the policy
declares public, which `PublicRead.of` checks, and the nodes of a plan compute from what they scan. Rows are put in the
order of their values. So a question of such rows alone has the same answer on all neighboring databases, at no loss;
beside members it is post-processing by a public value.

WHERE is done where the rows are stored, and so are groups of counts, of the least and the largest value, and of sums of
whole numbers: these are exact in any order of the rows. Other aggregates are computed from the rows, of which so many
are read at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tacit.aggregates.condition import expand_condition
from tacit.engines.base import Engine
from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import after_cast
from tacit.plan.connect import all_of
from tacit.plan.constants import evaluate_constants
from tacit.plan.relation import Field, Relation, condition
from tacit.policy.model import Policy
from tacit.query.conditions import conjuncts
from tacit.query.integer_types import PostgresType, type_of_aggregate
from tacit.query.nodes import (
    Aggregate,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    ExactStatistic,
    FromItem,
    Join,
    PerUnitAggregation,
    Projection,
    Query,
    RelationalNode,
    Scalar,
    ScalarSubquery,
    SemiJoin,
    TableReference,
    UnionAll,
    Window,
    column_names,
    find_location,
    scanned_tables,
    walk,
)
from tacit.query.types import Type

MAX_PUBLIC_ROWS = 100_000  # that a question of public tables alone reads
MAX_JOINED_ROWS = 10_000  # that are read beside what is released, as many as the keys that are shown
_ORDERED = frozenset({Type.INT, Type.FLOAT, Type.DATE, Type.TIMESTAMP})


@dataclass(frozen=True)
class PublicRead:
    """Rows of public tables that an answer needs: the node, the types of its columns, and the most that are read.

    `nothing` is the row that stands for no rows, as of COUNT(*) without GROUP BY. `at` is where the question asks it.
    `postgres_types` are PostgreSQL's types of the columns that are whole numbers, of groups that are counted.
    """

    rows: RelationalNode
    types: tuple[Type, ...]
    most: int
    nothing: tuple[Any, ...] | None = None
    at: SourceLocation | None = None
    postgres_types: tuple[PostgresType, ...] = ()

    @staticmethod
    def of(
        rows: RelationalNode,
        types: Iterable[Type],
        most: int,
        policy: Policy,
        query: Query,
        nothing: tuple[int | None, ...] | None = None,
    ) -> PublicRead:
        """Rows to be read; Refused where a table is not public."""
        tables = [(name, policy.declared_table(name)) for name in sorted(scanned_tables(rows))]
        private = [name for name, table in tables if table is None or not table.public]
        if private:
            # A hidden table is read only as the way to the unit of one that was named.
            name = next((name for name in private if policy.table(name) is not None), private[0])
            what = f"rows of {name}, which is private, beside rows that are shown"
            raise Refused(ErrorCode.UNSUPPORTED, f"{what} are not answered", at=query.at, fix="ask about it alone")
        return PublicRead(rows, tuple(types), most, nothing, query.at)

    def read(self, engine: Engine) -> tuple[tuple[Any, ...], ...]:
        """The rows in the order of their values, NULLs last; Refused where there are too many, at no cost."""
        try:
            found = _read(self.rows, self.most + 1, engine)
        except Exception:  # noqa: BLE001 - whatever it was, an analyst learns only that it was
            found = None
        if found is None:  # outside the handler: no error carries the cause as its context
            what, fix = "public tables could not be read now", "ask again later, or tell the data owner"
            raise Refused(ErrorCode.DATA, what, fix=fix)
        if len(found) > self.most:
            what = f"the question reads more than {self.most:,} rows of public tables"
            fix = "filter them with WHERE, or count them with GROUP BY"
            raise Refused(ErrorCode.TOO_LARGE, what, at=self.at, fix=fix)
        if not found and self.nothing is not None:
            return (self.nothing,)
        finite = (tuple(map(_finite, row[: len(self.types)])) for row in found)
        return tuple(sorted(finite, key=lambda row: [(value is None, 0 if value is None else value) for value in row]))


def _read(rows: RelationalNode, most: int, engine: Engine) -> list[tuple[Any, ...]]:
    """The rows; of a few constants no engine is asked."""
    constants = evaluate_constants(rows)
    if constants is None:
        return engine.read(rows, most)
    names = column_names(rows)
    return [tuple(row[name] for name in names) for row in constants[:most]]


def _finite(value: Any) -> Any:
    """A value that an answer may hold: no number is infinite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_public(source: FromItem, policy: Policy) -> bool:
    """Whether a source is made of public tables alone."""
    match source:
        case TableReference(name):
            table = policy.table(name)
            return table is not None and table.public
        case Join(left, right) | SemiJoin(left, right):
            return is_public(left, policy) and is_public(right, policy)
        case ConstantTable():
            return True
        case DerivedTable(query):
            parts = query.parts if isinstance(query, UnionAll) else (query,)
            return all(is_public(part.source, policy) for part in parts)


def separate_where(query: Query, relation: Relation) -> tuple[Scalar | None, Scalar | None]:
    """WHERE as what is done where the rows are stored, and what waits for the values of subqueries."""
    done: list[Scalar] = []
    rest: list[Scalar] = []
    for part in conjuncts(query.where):
        waits = any(isinstance(node, ScalarSubquery | Window | Aggregate) for node in walk(part))
        if waits:
            rest.append(part)
        else:
            done.append(condition(relation.bind(part), "WHERE", find_location(part)))
    return all_of(done, None), all_of(rest, query.where)


def read_fields(
    query: Query,
    relation: Relation,
    where: Scalar | None,
    used: Iterable[Field],
    most: int,
    policy: Policy,
    names: Iterator[str],
) -> PublicRead:
    """Rows as they are declared: the columns that are used, where a condition is true."""
    fields = tuple(used)
    columns = tuple((next(names), found.bound.scalar) for found in fields)
    types = (found.bound.type or Type.INT for found in fields)
    return PublicRead.of(Projection(relation.rows, columns, where), types, most, policy, query)


def read_groups(
    query: Query,
    relation: Relation,
    keys: list[Scalar],
    measured: list[Aggregate],
    policy: Policy,
    names: Iterator[str],
) -> PublicRead | None:
    """Groups of public rows that are counted where they are stored; None where only the rows give what SQL does."""
    where, rest = separate_where(query, relation)
    measures = [_measure(node, relation) for node in measured]
    bound = [after_cast(key, relation.bind(relation.bare(key))) for key in keys]
    known = [each for each in measures if each is not None]
    if rest is not None or len(known) < len(measures) or any(key.type in {None, Type.FLOAT} for key in bound):
        return None
    grouped = tuple((next(names), key.scalar) for key in bound)
    counted = tuple((next(names), measure) for measure, _ in known)
    source = relation.rows
    if where is not None:
        source = Projection(source, tuple((name, ColumnReference(name)) for name in column_names(source)), where)
    types = (*(key.type or Type.INT for key in bound), *(kind for _, (kind, _) in known))
    of_postgres = (*(key.postgres_type for key in bound), *(whole for _, (_, whole) in known))
    nothing = None if keys else tuple(0 if m.function in {"count", "distinct"} else None for m, _ in known)
    rows = PerUnitAggregation(source, grouped, counted)
    read = PublicRead.of(rows, types, MAX_PUBLIC_ROWS, policy, query, nothing)
    return replace(read, postgres_types=of_postgres)


def _measure(node: Aggregate, relation: Relation) -> tuple[ExactStatistic, tuple[Type, PostgresType]] | None:
    """An aggregate that is exact in any order of the rows, and its types; None for others."""
    if expand_condition(node) is not None or node.function not in {"count", "sum", "min", "max"}:
        return None
    if node.argument is None:
        return ExactStatistic("count", None), (Type.INT, PostgresType.BIGINT)
    argument = after_cast(node.argument, relation.bind(relation.bare(node.argument)))
    of_postgres = type_of_aggregate(node.function, argument.postgres_type)
    if node.function == "count":
        return ExactStatistic("distinct" if node.distinct else "count", argument.scalar), (Type.INT, of_postgres)
    if node.function == "sum":
        whole = argument.type is Type.INT and not node.distinct
        return (ExactStatistic("sum", argument.scalar), (Type.INT, of_postgres)) if whole else None
    if argument.type not in _ORDERED or argument.type is None:
        return None
    return ExactStatistic(node.function, argument.scalar), (argument.type, of_postgres)
