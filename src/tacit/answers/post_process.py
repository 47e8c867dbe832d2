"""Post-processing: everything a question does with released values, in an in-memory DuckDB that holds nothing else.

It is post-processing, so it is free, and it is a function of what is stored, so a repeat shows the same.
"""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tacit.accounting.receipt import Receipt
from tacit.answers.answer import Answer
from tacit.answers.chosen_bounds import resolve_bounds
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.answers.compound import compound_columns, compute_compound, selects_by_noise
from tacit.answers.post_processing_plan import (
    AnyPostProcessingPlan,
    CompoundPostProcessingPlan,
    OutputColumn,
    PostProcessingPlan,
)
from tacit.answers.propagate import render_result_sql, simulate_intervals
from tacit.answers.released_table import connection, noisy_table
from tacit.answers.resolve_clip import resolve_clip
from tacit.answers.stored import Release, unpack, unpack_all
from tacit.engines import scalars as sql
from tacit.query.nodes import OrderItem, ReleasedValue, walk
from tacit.query.timestamps import UNIX_EPOCH
from tacit.query.types import Type


def post_process(stored: bytes, recipe: AnyPostProcessingPlan, receipt: Receipt, confidence: Fraction) -> Answer:
    """The answer that the stored integers give."""
    recipe = _resolve(recipe, stored)
    headings = answer_columns(recipe)
    if isinstance(recipe, CompoundPostProcessingPlan):
        table = compute_compound(stored, recipe, headings, confidence)
    else:
        table = _one_table(stored, recipe, headings, confidence)
    return Answer(
        _show_timestamps(table, headings), headings, confidence, _notes(recipe, headings, confidence), receipt
    )


def _resolve(recipe: AnyPostProcessingPlan, stored: bytes) -> AnyPostProcessingPlan:
    """The recipe of a release in which clips were chosen."""
    if isinstance(recipe, PostProcessingPlan):
        if recipe.clipping is None and not recipe.bounds:
            return recipe
        release = unpack(stored)
        return resolve_bounds(resolve_clip(recipe, release), release.sizes)
    if all(member.clipping is None for member in recipe.members):
        return recipe
    both = zip(recipe.members, unpack_all(stored), strict=True)
    return replace(recipe, members=tuple(resolve_clip(member, release) for member, release in both))


def _one_table(
    stored: bytes, recipe: PostProcessingPlan, headings: tuple[AnswerColumn, ...], confidence: Fraction
) -> Any:
    release = unpack(stored)
    noisy = noisy_table(release, recipe, confidence)
    if not recipe.is_plain:
        return _compute_table(noisy, release, recipe, headings, confidence, stored)
    columns = [column for position in range(len(headings)) for column in _columns(position, recipe, headings)]
    return pa.table({name: noisy.column(source) for source, name in columns})


def answer_columns(recipe: AnyPostProcessingPlan) -> tuple[AnswerColumn, ...]:
    """The columns of the answer, which are known before it is asked."""
    if isinstance(recipe, CompoundPostProcessingPlan):
        return compound_columns(recipe)
    return tuple(AnswerColumn(r.name, r.type, _bars(r, recipe), r.many) for r in recipe.results)


def _compute_table(
    noisy: Any,
    release: Release,
    recipe: PostProcessingPlan,
    headings: tuple[AnswerColumn, ...],
    confidence: Fraction,
    seed: bytes,
) -> Any:
    """The table of an answer that selects, orders or computes."""
    cursor = connection(os.getpid()).cursor()
    try:
        if any(heading.bars is IntervalKind.APPROXIMATE for heading in headings):
            noisy = simulate_intervals(cursor, noisy, release.parts, recipe, confidence, seed)
        cursor.register("noisy", noisy)
        table = cursor.sql(_statement(recipe, headings)).to_arrow_table()
        cursor.unregister("noisy")
        return table
    finally:
        cursor.close()


def _show_timestamps(table: Any, headings: tuple[AnswerColumn, ...]) -> Any:
    """The table with dates and times for the integers that timestamps are: what the clock showed, without a zone."""
    for position, heading in enumerate(headings):
        if heading.type is Type.TIMESTAMP:
            integers = table.column(f"c{position}").combine_chunks()
            if heading.many:
                moments = _to_moments(integers.flatten())
                shown = pa.ListArray.from_arrays(integers.offsets, moments, mask=integers.is_null())
            else:
                shown = _to_moments(integers)
            table = table.set_column(table.column_names.index(f"c{position}"), f"c{position}", shown)
    return table


def _to_moments(integers: Any) -> Any:
    return pc.subtract(integers, UNIX_EPOCH).cast(pa.timestamp("us"))


def _columns(position: int, recipe: PostProcessingPlan, headings: tuple[AnswerColumn, ...]) -> list[tuple[str, str]]:
    """For a result that is a key or a released value as it is: columns of the noisy table, and what they become."""
    scalar = recipe.results[position].scalar
    source = sql.write_scalar(scalar)
    ends = [] if headings[position].bars is IntervalKind.NONE else ["_low", "_high"]
    return [(f"{source}{end}", f"c{position}{end}") for end in ["", *ends]]


def _bars(result: OutputColumn, recipe: PostProcessingPlan) -> IntervalKind:
    """Exact for a released value as it is, approximate for an expression of some, none for a key or a condition."""
    if isinstance(result.scalar, ReleasedValue):
        return IntervalKind.NONE if recipe.values[result.scalar.index].is_selection else IntervalKind.EXACT
    computed = any(
        isinstance(node, ReleasedValue) and not recipe.values[node.index].is_selection for node in walk(result.scalar)
    )
    return IntervalKind.APPROXIMATE if computed and result.type in {Type.INT, Type.FLOAT} else IntervalKind.NONE


def _statement(recipe: PostProcessingPlan, headings: tuple[AnswerColumn, ...]) -> str:
    """The post-processing as SQL over the noisy table. TRY turns an overflow into NULL."""
    columns = []
    for index, (result, heading) in enumerate(zip(recipe.results, headings, strict=True)):
        columns.append(f"{render_result_sql(result)} AS c{index}")
        if heading.bars is not IntervalKind.NONE:
            source = f"v{result.scalar.index}" if isinstance(result.scalar, ReleasedValue) else f"x{index}"
            columns += [f"{source}_low AS c{index}_low", f"{source}_high AS c{index}_high"]
    where = "" if recipe.having is None else f" WHERE TRY({sql.write_scalar(recipe.having)})"
    order = [_sort_key(item) for item in recipe.order]
    limit = "" if recipe.limit is None else f" LIMIT {recipe.limit}"
    offset = f" OFFSET {recipe.offset}" if recipe.offset else ""
    wide = ", ".join(f"CAST(v{i} AS HUGEINT) AS v{i}" for i, value in enumerate(recipe.values) if value.is_integer_sum)
    source = f"(SELECT * REPLACE ({wide}) FROM noisy)" if wide else "noisy"
    return f"SELECT {', '.join(columns)} FROM {source}{where} ORDER BY {', '.join([*order, 'g'])}{limit}{offset}"


def _sort_key(item: OrderItem) -> str:
    way, nulls = "DESC" if item.descending else "ASC", "FIRST" if item.nulls_first else "LAST"
    return f"TRY({sql.write_scalar(item.scalar)}) {way} NULLS {nulls}"


def _notes(recipe: AnyPostProcessingPlan, headings: tuple[AnswerColumn, ...], confidence: Fraction) -> tuple[str, ...]:
    notes = list(recipe.notes)
    members = recipe.members if isinstance(recipe, CompoundPostProcessingPlan) else (recipe,)
    if any(key.values is None and not key.listed for member in members for key in member.keys):
        notes.append("Groups are shown only where enough units hold them; others may exist.")
    for member in members:
        selections = sorted((value for value in member.values if value.is_selection), key=lambda value: value.positions)
        notes += dict.fromkeys(value.describe(member.parts, confidence) for value in selections)
    if any(heading.bars is IntervalKind.APPROXIMATE for heading in headings):
        names = ", ".join(h.name for h in headings if h.bars is IntervalKind.APPROXIMATE)
        notes.append(f"The intervals of {names} are approximate: the noise was drawn again around the released values.")
    if _selects_by_noise(recipe):
        notes.append("The rows shown were selected by noisy values.")
    return tuple(notes)


def _selects_by_noise(recipe: AnyPostProcessingPlan) -> bool:
    """Whether a released value may decide if a row is shown, and not its keys alone.

    It may in HAVING; and in ORDER BY where LIMIT or OFFSET leave rows out.
    """
    if isinstance(recipe, CompoundPostProcessingPlan):
        return selects_by_noise(recipe.program)
    all_shown = recipe.limit is None or (recipe.groups is not None and recipe.limit >= recipe.groups)
    deciding = [] if all_shown and not recipe.offset else [item.scalar for item in recipe.order]
    deciding += [] if recipe.having is None else [recipe.having]
    return any(isinstance(node, ReleasedValue) for scalar in deciding for node in walk(scalar))
