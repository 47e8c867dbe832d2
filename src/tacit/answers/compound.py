"""The answer of a question made of several: its program, computed from the releases, with intervals.

A column that is a released value as it is has that value's interval. For others the whole program is computed again for
draws of the noise around what was released, and the interval of a row is between quantiles of what it gave there. Where
a noisy value is part of what names a row, as in UNION or GROUP BY of it, no row is found again in a draw, and there are
no intervals.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.answers.post_processing_plan import CompoundPostProcessingPlan, PostProcessingPlan, PublicTable
from tacit.answers.program import Filter, Node, Sort, columns_with_intervals, names_rows_by_noise, noisy_columns, render
from tacit.answers.propagate import redraw_parts
from tacit.answers.released_table import ARROW_TYPES, connection, noisy_table
from tacit.answers.stored import Release, unpack_all
from tacit.query.types import NUMERIC_TYPES
from tacit.sampling.bits import Bits, ReplayBits

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_ROWS = 400_000  # of all draws of all releases
_LEAST_DRAWS, _MOST_DRAWS = 100, 1_000


def compound_columns(recipe: CompoundPostProcessingPlan) -> tuple[AnswerColumn, ...]:
    """The columns of the answer, which are known before it is asked."""
    exact, noisy = columns_with_intervals(recipe.program), noisy_columns(recipe.program)
    if names_rows_by_noise(recipe.program):
        noisy = frozenset()
    kinds = []
    for result in recipe.results:
        kind = IntervalKind.EXACT if result.column in exact else IntervalKind.NONE
        if kind is IntervalKind.NONE and result.column in noisy and result.type in NUMERIC_TYPES:
            kind = IntervalKind.APPROXIMATE
        kinds.append(AnswerColumn(result.name, result.type, kind))
    return tuple(kinds)


def compute_compound(
    stored: bytes, recipe: CompoundPostProcessingPlan, headings: tuple[AnswerColumn, ...], confidence: Fraction
) -> pa.Table:
    """The table of the answer: for each column c0, c1, ... the value, and its interval where it has one."""
    releases = unpack_all(stored)
    cursor = connection(os.getpid()).cursor()
    try:
        for index, place in enumerate(recipe.places):
            noisy = noisy_table(releases[place], recipe.members[place], confidence)
            cursor.register(f"r{index}", _name_rows(noisy))
        for index, table in enumerate(recipe.public):
            cursor.register(f"p{index}", _name_rows(_public_table(table)))
        found = cursor.sql(render(recipe.program, draws=False)).to_arrow_table()
        cursor.register("found", found.append_column("_row", pa.array(range(found.num_rows), pa.int64())))
        drawn = [i for i, heading in enumerate(headings) if heading.bars is IntervalKind.APPROXIMATE]
        if drawn:
            _register_draws(cursor, releases, recipe, stored)
            cursor.register("ends", _ends(cursor, recipe, drawn, confidence))
        return cursor.sql(_statement(recipe, headings)).to_arrow_table()
    finally:
        cursor.close()


def _public_table(table: PublicTable) -> Any:
    columns = {
        f"c{place}": pa.array([row[place] for row in table.rows], ARROW_TYPES[kind])
        for place, kind in enumerate(table.types)
    }
    return pa.table({"g": pa.array(range(len(table.rows)), pa.int64())} | columns)


def _name_rows(noisy: Any) -> Any:
    """A released table whose rows have names that sort as their positions do."""
    return noisy.append_column("_id", pa.array([f"{g:05}" for g in range(noisy.num_rows)], pa.string()))


def _register_draws(
    cursor: DuckDBPyConnection, releases: list[Release], recipe: CompoundPostProcessingPlan, seed: bytes
) -> None:
    """Released tables for all draws of the noise. They follow from `seed`, so that a repeat shows the same."""
    tables = [cursor.table(f"r{index}").to_arrow_table() for index in range(len(recipe.places))]
    rows = sum(table.num_rows for table in tables)
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_ROWS // max(1, rows)))
    bits = ReplayBits(seed)
    cursor.register("draws", pa.table({"_draw": pa.array(range(draws), pa.int64())}))
    drawn: dict[int, Any] = {}
    for index, place in enumerate(recipe.places):
        cursor.unregister(f"r{index}")
        if place not in drawn:
            drawn[place] = _redrawn(tables[index], releases[place], recipe.members[place], draws, bits)
        cursor.register(f"r{index}", drawn[place])


def _redrawn(noisy: Any, release: Release, plan: PostProcessingPlan, draws: int, bits: Bits) -> Any:
    rows = pa.array(np.repeat(np.arange(noisy.num_rows), draws))
    columns: dict[str, Any] = {"_draw": pa.array(np.tile(np.arange(draws), noisy.num_rows))}
    columns["_id"] = noisy.column("_id").take(rows)
    for index, _ in enumerate(plan.keys):
        columns[f"k{index}"] = noisy.column(f"k{index}").take(rows)
    parts = redraw_parts(release.parts, plan, draws, bits)
    for index, value in enumerate(plan.values):
        simulated = value.simulate(parts)
        if simulated is None:
            columns[f"v{index}"] = noisy.column(f"v{index}").take(rows)
        else:
            columns[f"v{index}"] = pa.array(simulated, from_pandas=True)
    return pa.table(columns)


def _ends(
    cursor: DuckDBPyConnection, recipe: CompoundPostProcessingPlan, drawn: list[int], confidence: Fraction
) -> Any:
    """For each row the ends of the intervals, by its name."""
    low, high = float((1 - confidence) / 2), float((1 + confidence) / 2)
    names = [recipe.results[index].column for index in drawn]
    ends = ", ".join(
        f"quantile_cont(CAST({name} AS DOUBLE), {share!r}) AS {name}{end}"
        for name in names
        for end, share in (("_low", low), ("_high", high))
    )
    program = render(_all_rows(recipe.program), draws=True)
    return cursor.sql(f"SELECT _id, {ends} FROM ({program}) GROUP BY _id").to_arrow_table()


def _all_rows(node: Node) -> Node:
    """The program without what only says which of its rows are shown, and in which order."""
    while isinstance(node, Sort):
        node = node.source
    return node


def _statement(recipe: CompoundPostProcessingPlan, headings: tuple[AnswerColumn, ...]) -> str:
    shown = []
    for index, (result, heading) in enumerate(zip(recipe.results, headings, strict=True)):
        shown.append(f"found.{result.column} AS c{index}")
        if heading.bars is not IntervalKind.NONE:
            source = "found" if heading.bars is IntervalKind.EXACT else "ends"
            shown += [f"{source}.{result.column}{end} AS c{index}{end}" for end in ("_low", "_high")]
    joined = " LEFT JOIN ends ON found._id = ends._id" if " ends." in f" {' '.join(shown)}" else ""
    return f"SELECT {', '.join(shown)} FROM found{joined} ORDER BY found._row"


def selects_by_noise(node: Node) -> bool:
    """Whether a released value may decide if a row is shown."""
    match node:
        case Filter(source, _):
            return bool(noisy_columns(source)) or selects_by_noise(source)
        case Sort(source, _, limit, offset) if limit is not None or offset > 0:
            return bool(noisy_columns(source)) or selects_by_noise(source)
    inner: Node | None = getattr(node, "source", None)
    return inner is not None and selects_by_noise(inner)
