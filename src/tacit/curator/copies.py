"""Where a policy's data is read to, and how its tables lie there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from tacit.engines.copy_file import CopyFile, fingerprint_copy
from tacit.engines.layout import CopyLayout, Range, substitute
from tacit.engines.readings import Readings, use_readings
from tacit.errors import Refused
from tacit.plan.compound_plan import require_one
from tacit.plan.declared_columns import clamp_column
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.model import IN_MEMORY, ROW_UNIT, Policy, Table, UnitForeignKey
from tacit.query.functions import Function
from tacit.query.nodes import Aggregation, Call, Clamp, ColumnReference, Literal, Quantize, Scalar, children
from tacit.query.types import Type

_SMALL = 64_000_000  # bytes of a source that is read into memory


def locate_copy(policy: Policy, planned: PolicyLayouts | None = None) -> CopyFile | None:
    """The file that the policy's source is read into; None where it is read into memory.

    `planned` are the layouts of the policy, where they are used further.

    A policy that does not say has a file beside its ledger, or beside the key of a ledger in a database, unless the
    source is small.
    """
    if not isinstance(policy.source, Path) or policy.copy == IN_MEMORY:
        return None
    if isinstance(policy.copy, Path):
        path = policy.copy
    elif policy.books is None or _measure_size(policy.source) <= _SMALL:
        return None
    else:
        beside = policy.books.store if isinstance(policy.books.store, Path) else policy.books.key
        path = beside.with_suffix(".copy")
    planned = planned or PolicyLayouts(policy)
    layouts = [layout for t in policy.tables if (layout := planned.find(t.name, is_ready=True)) is not None]
    return CopyFile(path, fingerprint_copy(policy.digest, layouts), policy.epoch)


class PolicyLayouts:
    """How the tables of a policy lie where they are sorted by unit, planned when it is asked for."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._planner = plan_capped(policy)
        self._readings = readings_of(policy)
        self._known: dict[tuple[str, bool], CopyLayout | None] = {}

    def find(self, table: str, *, is_ready: bool) -> CopyLayout | None:
        """How a table lies, with what questions compute ready or without; None where it has no unit."""
        if (table, is_ready) not in self._known:
            found = self._policy.table(table)
            has_unit = found is not None and found.unit not in (None, ROW_UNIT)
            self._known[table, is_ready] = self._plan(found, is_ready) if found is not None and has_unit else None
        return self._known[table, is_ready]

    def _plan(self, table: Table, is_ready: bool) -> CopyLayout:
        plain = plan_aggregation(self._planner, f"SELECT COUNT(*) FROM {quote_name(table.name)}")
        assert plain is not None
        assert plain.unit is not None
        bare = CopyLayout(table.name, plain.source, plain.unit, (), (), ())
        return _add_scalars(bare, self._planner, self._readings, table) if is_ready else bare


def readings_of(policy: Policy) -> Readings:
    """Which columns of each table a copy holds as questions read them: those with bounds, and floats.

    A column by which tables are matched, or which says whose row it is, stays as it is stored.
    """
    raw = {(other.unit.table, other.unit.key) for other in policy.tables if isinstance(other.unit, UnitForeignKey)}
    found = {}
    for table in policy.tables:
        own = table.unit.column if isinstance(table.unit, UnitForeignKey) else table.unit
        keys = {own, *(name for key in table.unique for name in key)}
        columns = [c for c in table.columns if not c.unique and c.name not in keys and (table.name, c.name) not in raw]
        readings = {c.name: clamp_column(c, ColumnReference(c.name)).scalar for c in columns}
        found[table.name] = {name: read for name, read in readings.items() if read != ColumnReference(name)}
    return found


def plan_capped(policy: Policy) -> Planner:
    """A planner with the caps of the policy, also where these are to be chosen for each question."""
    return Planner(replace(policy, tables=tuple(replace(table, auto=False) for table in policy.tables)))


def plan_aggregation(planner: Planner, text: str) -> Aggregation | None:
    """What an engine would be told; None where the question is refused."""
    try:
        return require_one(planner.plan(Question(text, epsilon=1))).exact
    except Refused:
        return None


def quote_name(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _add_scalars(bare: CopyLayout, planner: Planner, readings: Readings, table: Table) -> CopyLayout:
    """The same layout with what plain questions about each column compute: the planner says what that is."""
    scalars: dict[Scalar, Range | None] = {}
    for asked in _typical_questions(planner, table):
        exact = use_readings(asked, readings)
        leaf = CopyLayout(table.name, exact.source, exact.unit or "", (), (), ()).scan
        there: dict[Scalar, Scalar] = {
            ColumnReference(here): ColumnReference(declared) for declared, here in leaf.columns
        }
        for planned, scalar in zip(_scalars(asked), _scalars(exact), strict=True):
            integers = find_range(planned)
            if children(scalar) or integers is not None:  # another column is there already
                scalars[substitute(scalar, there)] = integers
    texts = tuple(column.name for column in table.columns if column.type is Type.TEXT)
    return replace(bare, scalars=tuple(scalars), ranges=tuple(scalars.values()), texts=texts)


def _scalars(node: Aggregation) -> list[Scalar]:
    return [key.scalar for key in node.keys] + [m.argument for m in node.measures if m.argument is not None]


def find_range(scalar: Scalar) -> Range | None:
    """The least and the largest that a planned integer can be, where that is seen at once."""
    match scalar:
        case Clamp(_, Fraction() as lower, Fraction() as upper, True):
            return int(lower), int(upper)
        case Quantize(_, _, int(lower), int(upper)):
            return lower, upper
        case Call(Function.COALESCE, (value, Literal(int(otherwise)))) if not isinstance(otherwise, bool):
            found = find_range(value)
            return None if found is None else (min(found[0], otherwise), max(found[1], otherwise))
    return None


def _typical_questions(planner: Planner, table: Table) -> Iterator[Aggregation]:
    for column in table.columns:
        name = quote_name(column.name)
        for text in (
            f"SELECT SUM({name}) FROM {quote_name(table.name)}",
            f"SELECT COUNT(*) FROM {quote_name(table.name)} GROUP BY {name}",
        ):
            exact = plan_aggregation(planner, text)
            if exact is not None:
                yield exact


def _measure_size(source: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    files = source.rglob("*") if source.is_dir() else [source]
    return sum(file.stat().st_size for file in files if file.is_file())
