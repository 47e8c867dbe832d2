"""A prepared copy for a policy: what it holds, and making it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tacit.engines.layout import Layout, read
from tacit.engines.prepared import Progress, stamp_of
from tacit.errors import Code, ParameterError, PolicyError, Refused
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.model import ROW, Policy, Table
from tacit.query.nodes import Aggregation, Column, Scalar, children
from tacit.query.types import Type


def prepare(policy: Policy, progress: Progress) -> Path:
    """Make the policy's prepared copy, whole or not at all; the path it is at."""
    from tacit.curator.curator import check_links, shapes
    from tacit.engines.duckdb import DuckDB

    where = copy_of(policy)
    if where is None:
        fix = 'name one under [data]: prepared = "visits.prepared"'
        raise PolicyError(Code.POLICY, "the policy names no prepared copy", fix=fix)
    if not isinstance(policy.source, Path):
        raise ParameterError("policy", "names no source to copy", fix='add source = "visits.parquet" under [data]')
    path, layouts, stamp = where
    engine = DuckDB(shapes(policy), policy.source)
    try:
        check_links(policy, engine)
        engine.prepare(path, layouts, stamp, progress)
    finally:
        engine.close()
    return path


def copy_of(policy: Policy) -> tuple[Path, list[Layout], str] | None:
    """Where the policy's copy lies, what it holds and its stamp; None where there is none."""
    if policy.prepared is None:
        return None
    found = [layout_of(policy, table) for table in policy.tables if table.unit not in (None, ROW)]
    return policy.prepared, found, stamp_of(policy.digest, found)


def layout_of(policy: Policy, table: Table) -> Layout:
    """How a table lies in a copy: what plain questions about each column compute, the planner says."""
    plain = planned(policy, f"SELECT COUNT(*) FROM {quoted(table.name)}")
    assert plain is not None
    assert plain.unit is not None
    scalars: dict[Scalar, None] = {}
    for exact in _questions(policy, table):
        leaf = Layout(table.name, exact.source, exact.unit or "", (), ()).scan
        there: dict[Scalar, Scalar] = {Column(here): Column(declared) for declared, here in leaf.columns}
        found = [key.scalar for key in exact.keys] + [m.argument for m in exact.measures if m.argument is not None]
        for scalar in found:
            if children(scalar):  # a bare column is there already
                scalars[read(scalar, there)] = None
    texts = tuple(column.name for column in table.columns if column.type is Type.TEXT)
    return Layout(table.name, plain.source, plain.unit, tuple(scalars), texts)


def _questions(policy: Policy, table: Table) -> Iterator[Aggregation]:
    for column in table.columns:
        name = quoted(column.name)
        for text in (
            f"SELECT SUM({name}) FROM {quoted(table.name)}",
            f"SELECT COUNT(*) FROM {quoted(table.name)} GROUP BY {name}",
        ):
            exact = planned(policy, text)
            if exact is not None:
                yield exact


def planned(policy: Policy, text: str) -> Aggregation | None:
    """What an engine would be told; None where the question is refused."""
    try:
        return Planner(policy).plan(Question(text, epsilon=1)).exact
    except Refused:
        return None


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
