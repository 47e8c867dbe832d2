"""A prepared copy for a policy: what it holds, and making it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tacit.curator.tables import check_join_columns, table_schemas
from tacit.engines.layout import CopyLayout, substitute
from tacit.engines.prepared import Progress, fingerprint_copy
from tacit.errors import ErrorCode, ParameterError, PolicyError, Refused
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.model import ROW_UNIT, Policy, Table
from tacit.query.nodes import Aggregation, ColumnReference, Scalar, children
from tacit.query.types import Type


def prepare(policy: Policy, progress: Progress) -> Path:
    """Make the policy's prepared copy, whole or not at all; the path it is at."""
    from tacit.engines.duckdb import DuckDBEngine

    where = locate_copy(policy)
    if where is None:
        fix = 'name one under [data]: prepared = "visits.prepared"'
        raise PolicyError(ErrorCode.POLICY, "the policy names no prepared copy", fix=fix)
    if not isinstance(policy.source, Path):
        raise ParameterError("policy", "names no source to copy", fix='add source = "visits.parquet" under [data]')
    path, layouts, stamp = where
    engine = DuckDBEngine(table_schemas(policy), policy.source)
    try:
        check_join_columns(policy, engine)
        engine.prepare(path, layouts, stamp, progress)
    finally:
        engine.close()
    return path


def locate_copy(policy: Policy) -> tuple[Path, list[CopyLayout], str] | None:
    """Where the policy's copy lies, what it holds and its stamp; None where there is none."""
    if policy.prepared is None:
        return None
    found = [plan_layout(policy, table) for table in policy.tables if table.unit not in (None, ROW_UNIT)]
    return policy.prepared, found, fingerprint_copy(policy.digest, found)


def plan_layout(policy: Policy, table: Table) -> CopyLayout:
    """How a table lies in a copy: what plain questions about each column compute, the planner says."""
    plain = plan_aggregation(policy, f"SELECT COUNT(*) FROM {quote_name(table.name)}")
    assert plain is not None
    assert plain.unit is not None
    scalars: dict[Scalar, None] = {}
    for exact in _typical_questions(policy, table):
        leaf = CopyLayout(table.name, exact.source, exact.unit or "", (), ()).scan
        there: dict[Scalar, Scalar] = {
            ColumnReference(here): ColumnReference(declared) for declared, here in leaf.columns
        }
        found = [key.scalar for key in exact.keys] + [m.argument for m in exact.measures if m.argument is not None]
        for scalar in found:
            if children(scalar):  # a bare column is there already
                scalars[substitute(scalar, there)] = None
    texts = tuple(column.name for column in table.columns if column.type is Type.TEXT)
    return CopyLayout(table.name, plain.source, plain.unit, tuple(scalars), texts)


def _typical_questions(policy: Policy, table: Table) -> Iterator[Aggregation]:
    for column in table.columns:
        name = quote_name(column.name)
        for text in (
            f"SELECT SUM({name}) FROM {quote_name(table.name)}",
            f"SELECT COUNT(*) FROM {quote_name(table.name)} GROUP BY {name}",
        ):
            exact = plan_aggregation(policy, text)
            if exact is not None:
                yield exact


def plan_aggregation(policy: Policy, text: str) -> Aggregation | None:
    """What an engine would be told; None where the question is refused."""
    try:
        return Planner(policy).plan(Question(text, epsilon=1)).exact
    except Refused:
        return None


def quote_name(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
