"""Bounded aggregation over a copy: Arrow batches from DuckDB, the rows of each unit chosen by a compiled loop.

Rows come in the order of their units, a stretch at a time, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.engines import group_codes, sql_statements
from tacit.engines.base import GroupedMeasures
from tacit.engines.bound_contributions import (
    BoundingBuffers,
    bound_contributions,
    bound_few_groups,
    bound_one_group,
    bound_rows_per_unit,
    hash_salt,
)
from tacit.engines.copy_tables import OpenTables, locate_units, unit_to_integer
from tacit.engines.layout import (
    LISTED,
    ROW_COLUMN,
    UNIT_COLUMN,
    CopyScan,
    Range,
    order_rows,
    substitute,
    text_code_column,
)
from tacit.engines.scalars import quote_name, write_guarded
from tacit.engines.totals import GroupTotals, KeptRows, compute_measure
from tacit.engines.unit_stretches import UnitStretch, add_stretches
from tacit.engines.weigh_groups import list_weights, weigh_groups
from tacit.query.functions import Function
from tacit.query.nodes import Aggregation, Call, Clamp, ColumnReference, ExactStatistic, GroupKey, Scalar, walk
from tacit.query.types import Key

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    Coded = tuple[NDArray[Any], int, int]

_FEW = 16  # groups that are gone through for each unit


@dataclass(frozen=True)
class UnitOrderedRows:
    """Rows in the order of their units, as a statement: whose each is, the keys, and the arguments.

    Where `units` is None, the first column is the unit as an integer. Otherwise it is the number of the row, all rows
    are there, and `units` is a statement for the units in the same order, with the number of the last row of each.
    `narrow` are the arguments whose least value stands for NULL. `clamps` are arguments that are still to be clamped.
    """

    statement: str
    keys: list[group_codes.KeyEncoder]
    whole: list[Scalar]
    listed: list[Scalar]
    clamps: Mapping[Scalar, Range]
    narrow: frozenset[Scalar] = frozenset()
    units: str | None = None


def read_straight(
    cursor: DuckDBPyConnection,
    node: Aggregation,
    scan: CopyScan,
    tables: OpenTables,
) -> UnitOrderedRows:
    """The rows of a table that is sorted by unit, as they lie."""
    texts = tables.texts[scan.table]
    keys = [
        _number_texts(cursor, key, scan.texts[i], texts[scan.texts[i]])
        if i in scan.texts
        else group_codes.make_key_encoder(key)
        for i, key in enumerate(scan.keys)
    ]
    whole, listed = _arguments(node)
    results = [quote_name(ROW_COLUMN if scan.is_whole else UNIT_COLUMN), *(coder.sql for coder in keys)]
    values, clamps = _write_arguments({argument: scan.arguments[argument] for argument in whole})
    results += [
        write_guarded(scan.narrow[argument]) if argument in scan.narrow else value
        for argument, value in zip(whole, values, strict=True)
    ]
    results += [write_guarded(scan.arguments[argument]) for argument in listed]
    where = "" if scan.where is None else f" WHERE {write_guarded(scan.where)}"
    rows = sql_statements.write_rows(scan.source, {scan.table: tables.read(scan.table, scan.columns)})
    units = f"SELECT unit, last FROM {locate_units(scan.table)}" if scan.is_whole else None
    statement = f"SELECT {_number(results)} FROM ({rows}){where}"
    return UnitOrderedRows(statement, keys, whole, listed, clamps, frozenset(scan.narrow), units)


def _number_texts(
    cursor: DuckDBPyConnection, key: GroupKey, column: str, texts: Sequence[str]
) -> group_codes.NumberedKeyEncoder:
    """A key that follows from one column of numbered texts: computed for each text, not for each row."""
    there: list[Key | None] = [*texts, None]
    if not isinstance(key.scalar, ColumnReference):
        (name,) = {part.name for part in walk(key.scalar) if isinstance(part, ColumnReference)}
        values = f"(SELECT unnest(CAST(? AS VARCHAR[])) AS {quote_name(name)}, unnest(range({len(there)})) AS n)"
        found = cursor.execute(f"SELECT {write_guarded(key.scalar)} FROM {values} ORDER BY n", [there]).fetchall()
        there = [row[0] for row in found]
    kind = "UTINYINT" if len(texts) < 2**8 else "USMALLINT"
    sql = f"CAST(enum_code({quote_name(text_code_column(column))}) AS {kind})"
    return group_codes.NumberedKeyEncoder(key.values, sql, there)


def read_sorted(node: Aggregation, tables: OpenTables, type_of: Callable[[str], str]) -> UnitOrderedRows:
    """Any rows, put in the order of their units, then of the copy's rows that they are made of if they come from one
    table of it and what its rows find, or from a union of such rows, and then of all that is used of them.

    **Theorem.** The rows of a unit then come in an order that follows from these rows alone. Proof: rows of a copy are
    numbered in the order of their unit and all their columns, so which of two is first follows from what they hold;
    numbers of rows are compared within a part of a union only, where they are of one table.
    Rows that tie are equal in the unit, the keys and the arguments, and nothing else of a row is used.
    """
    assert node.unit is not None
    ordered, numbers = order_rows(node.source, tables.layouts)
    rows, unit = sql_statements.write_rows(ordered, tables.sources), quote_name(node.unit)
    keys = [group_codes.make_key_encoder(key) for key in node.keys]
    whole, listed = _arguments(node)
    results = [unit_to_integer(unit, type_of(f"SELECT {unit} FROM ({rows})")), *(coder.sql for coder in keys)]
    values, clamps = _write_arguments({argument: argument for argument in whole})
    results += [*values, *(write_guarded(argument) for argument in listed)]
    where = f"{unit} IS NOT NULL" + ("" if node.where is None else f" AND ({write_guarded(node.where)})")
    order = ", ".join(["x0", *map(quote_name, numbers), *(f"x{i}" for i in range(1, len(results)))])
    statement = f"SELECT {_number(results)} FROM ({rows}) WHERE {where} ORDER BY {order}"
    return UnitOrderedRows(statement, keys, whole, listed, clamps)


def count_rows(cursor: DuckDBPyConnection, node: Aggregation, scan: CopyScan) -> GroupedMeasures | None:
    """The cells of a question that only counts the rows or the units of a whole table, from how many each unit has;
    None where it is another."""
    if not scan.is_whole or scan.keys or scan.arguments:
        return None
    most = node.keep.rows if node.keep.total is None else min(node.keep.rows, node.keep.total)
    statement = f"SELECT COUNT(*), COALESCE(SUM(LEAST(last - first + 1, {most})), 0) FROM {locate_units(scan.table)}"
    row = cursor.execute(statement).fetchone()
    assert row is not None
    return {(): tuple(int(row[0] if measure.function == "units" else row[1]) for measure in node.measures)}


def aggregate_rows(
    cursor: DuckDBPyConnection, node: Aggregation, rows: UnitOrderedRows, *, is_large: bool
) -> GroupedMeasures:
    """The cells of each group that keeps rows.

    Rows of a table that is not large are added up by this thread alone: starting others would take longer.
    """
    plan = _BatchAggregator(node, rows)
    return plan.groups(add_stretches(cursor, rows.statement, rows.units, plan, is_large=is_large))


def _arguments(node: Aggregation) -> tuple[list[Scalar], list[Scalar]]:
    """What is added up as a whole, and what is listed value by value."""
    listed = [m.argument for m in node.measures if m.function in LISTED]
    whole = [m.argument for m in node.measures if m.argument is not None and m.argument not in listed]
    return list(dict.fromkeys(whole)), list(dict.fromkeys(argument for argument in listed if argument is not None))


def _write_arguments(arguments: Mapping[Scalar, Scalar]) -> tuple[list[str], dict[Scalar, Range]]:
    """The arguments as SQL, and between which integers those are to be clamped that are written without their clamp.

    SQL would compute what is clamped up to three times.
    """
    written, clamps = [], {}
    for argument, value in arguments.items():
        match value:
            case Clamp(operand, Fraction() as lower, Fraction() as upper, True):
                clamps[argument] = int(lower), int(upper)
                written.append(write_guarded(_simplify_null_tests(operand)))
            case _:
                written.append(write_guarded(_simplify_null_tests(value)))
    return written, clamps


def _simplify_null_tests(scalar: Scalar) -> Scalar:
    """The same scalar. A clamped integer is NULL just where the integer is."""
    clamped = {part for part in walk(scalar) if isinstance(part, Clamp) and part.whole}
    tests: dict[Scalar, Scalar] = {
        Call(Function.IS_NULL, (part,)): Call(Function.IS_NULL, (part.operand,)) for part in clamped
    }
    return substitute(scalar, tests)


def _number(results: Iterable[str]) -> str:
    return ", ".join(f"{text} AS x{i}" for i, text in enumerate(results))


@dataclass
class _BatchAggregator:
    """What is computed of each stretch of rows."""

    node: Aggregation
    rows: UnitOrderedRows
    combined: group_codes.GroupEncoder = field(init=False)

    def __post_init__(self) -> None:
        self.combined = group_codes.GroupEncoder(self.rows.keys)
        self._excluded = group_codes.ExcludedGroups(self.combined, self.node.excluded) if self.node.excluded else None

    @property
    def is_fixed(self) -> bool:
        """Whether every group has its number before any row is seen."""
        return self.combined.is_fixed

    def encode(self, batch: pa.RecordBatch) -> Coded:
        """The group of each row, the number of the first group, and how many are known by now.

        One caller at a time, unless the numbers of groups are fixed: others are numbered as they are met.
        """
        columns = [batch.column(i + 1) for i in range(len(self.rows.keys))]
        code, first = self.combined.encode(columns, batch.num_rows)
        if self._excluded is not None:
            code, first = self._excluded.leave_out(code, first), 0
        return code, first, self.combined.size

    def add(self, stretch: UnitStretch, coded: Coded, totals: GroupTotals, buffers: BoundingBuffers) -> None:
        """Choose the rows of each unit and add them up."""
        code, first, size = coded
        totals.grow(size)
        batch, runs = stretch.rows, stretch.find_runs(buffers)
        keep, key = self.node.keep, hash_salt(self.node.salt)
        if keep.total is not None:
            left = np.empty(batch.num_rows, np.int32)
            bound_rows_per_unit(runs, code, first, size, keep.total, key, left)
            code, first = left, 0
        if self._is_weighed:
            weights = (totals.weights, totals.rows)
            weigh_groups(runs, code, first, list_weights(keep.groups), key, buffers.found, *weights)
            return
        if not self.rows.keys and keep.total is None:
            kept = buffers.kept if self.rows.whole or self.rows.listed else buffers.kept[:0]
            many = bound_one_group(runs, keep.rows, key, kept, totals.units, totals.rows)
        elif size <= min(keep.groups, _FEW):
            many = bound_few_groups(runs, code, first, keep.rows, key, buffers.kept, totals.units, totals.rows)
        else:
            many = bound_contributions(
                runs, code, first, keep.groups, keep.rows, key, buffers, totals.units, totals.rows
            )
        rows = None if many < 0 else KeptRows(code, first, buffers.kept[:many])
        at = 1 + len(self.rows.keys)
        for position, argument in enumerate(self.rows.whole):
            column, clamp = batch.column(at + position), self.rows.clamps.get(argument)
            if argument in self.rows.narrow:
                totals.add_narrow(position, rows, column)
            else:
                totals.add(position, rows, column, clamp, is_summed=argument in self._summed)
        at += len(self.rows.whole)
        for column, lists in zip(batch.columns[at:], totals.lists, strict=True):
            kept = (rows or KeptRows.all_in_one_group(len(column))).kept
            lists.add(code[kept].astype(np.int64) - first, column.take(pa.array(kept)))

    @cached_property
    def _is_weighed(self) -> bool:
        return any(measure.function == "weight" for measure in self.node.measures)

    @cached_property
    def _summed(self) -> set[Scalar | None]:
        return {measure.argument for measure in self.node.measures if measure.function == "sum"}

    def none(self) -> GroupTotals:
        """Totals of no rows."""
        return GroupTotals.none(len(self.rows.whole), len(self.rows.listed))

    def groups(self, parts: Iterable[GroupTotals]) -> GroupedMeasures:
        """The cells of each group, in the order of the measures."""
        whole = self.none()
        whole.grow(self.combined.size)
        for part in parts:
            whole.merge(part)
        shown = np.flatnonzero(whole.rows) if self.node.keys else np.arange(1)
        columns = [self._cells(measure, whole, shown) for measure in self.node.measures]
        return dict(zip(self.combined.keys(shown), zip(*columns, strict=True), strict=True))

    def _cells(self, measure: ExactStatistic, totals: GroupTotals, shown: NDArray[np.int64]) -> Sequence[Any]:
        """A measure of each group."""
        rows: list[int] = totals.rows[shown].tolist()
        match measure:
            case ExactStatistic("units", _):
                return list(totals.units[shown].tolist())
            case ExactStatistic("weight", _):
                return list(totals.weights[shown].tolist())
            case ExactStatistic("count", None):
                return rows
            case ExactStatistic("count", argument) if argument in self.rows.whole:
                nulls = totals.nulls[self.rows.whole.index(argument)][shown].tolist()
                return [all_ - none for all_, none in zip(rows, nulls, strict=True)]
            case ExactStatistic("sum", argument) if argument in self.rows.whole:
                return totals.sums[self.rows.whole.index(argument)].of(shown)
        assert measure.argument is not None
        lists = totals.lists[self.rows.listed.index(measure.argument)].of(shown)
        return [compute_measure(measure.function, values) for values in lists]
