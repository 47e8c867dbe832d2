"""Finishing: everything a question does with released values, in an in-memory DuckDB that holds nothing else.

It is post-processing, so it is free, and it is a function of what is stored, so a repeat shows the same.
"""

from __future__ import annotations

import datetime
import math
import os
from fractions import Fraction
from functools import cache
from itertools import product
from operator import mul
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from tacit.accounting.receipt import Receipt
from tacit.answers import intervals
from tacit.answers.answer import Answer, Bars, Heading
from tacit.answers.propagate import bars_of_expressions, shown, spreads
from tacit.answers.recipe import Chosen, Mean, Picked, Plain, Point, Recipe, Result, Several, Spread, Total, Value
from tacit.answers.stored import Group, Release, unpack
from tacit.engines import scalars as sql
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.top_k import TopK
from tacit.query.nodes import Order, Released, walk
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST = 2**63 - 1
_ARROW = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.TEXT: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.DATE: pa.date32(),
}


def finish(stored: bytes, recipe: Recipe, receipt: Receipt, confidence: Fraction) -> Answer:
    """The answer that the stored integers give."""
    release = unpack(stored)
    noisy = _noisy_table(release, recipe, confidence)
    headings = headings_of(recipe)
    if recipe.is_plain:
        columns = [column for position in range(len(headings)) for column in _columns(position, recipe, headings)]
        table = pa.table({name: noisy.column(source) for source, name in columns})
    else:
        table = _computed(noisy, release, recipe, headings, confidence, stored)
    return Answer(table, headings, confidence, _notes(recipe, headings, confidence), receipt)


def headings_of(recipe: Recipe) -> tuple[Heading, ...]:
    """The columns of the answer, which are known before it is asked."""
    return tuple(Heading(r.name, r.type, _bars(r, recipe), r.many) for r in recipe.results)


def _computed(
    noisy: Any,
    release: Release,
    recipe: Recipe,
    headings: tuple[Heading, ...],
    confidence: Fraction,
    seed: bytes,
) -> Any:
    """The table of an answer that selects, orders or computes."""
    cursor = _connection(os.getpid()).cursor()
    try:
        if any(heading.bars is Bars.APPROXIMATE for heading in headings):
            noisy = bars_of_expressions(cursor, noisy, release.parts, recipe, confidence, seed)
        cursor.register("noisy", noisy)
        table = cursor.sql(_statement(recipe, headings)).to_arrow_table()
        cursor.unregister("noisy")
        return table
    finally:
        cursor.close()


def _columns(position: int, recipe: Recipe, headings: tuple[Heading, ...]) -> list[tuple[str, str]]:
    """For a result that is a key or a released value as it is: columns of the noisy table, and what they become."""
    scalar = recipe.results[position].scalar
    source = sql.scalar(scalar)
    ends = [] if headings[position].bars is Bars.NONE else ["_low", "_high"]
    return [(f"{source}{end}", f"c{position}{end}") for end in ["", *ends]]


@cache
def _connection(process: int) -> DuckDBPyConnection:
    """One connection a process, with no way out of memory. A forked child keeps the parent's: closing it hangs."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "threads": "1",
        "disabled_optimizers": "statistics_propagation",  # wrong about NULLIF(x, 'a') IN ('a', 'b') in DuckDB 2.0.0
    }
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET lock_configuration = true")
    return connection


def _noisy_table(release: Release, recipe: Recipe, confidence: Fraction) -> Any:
    """The noisy table: a row for each group, its keys k0, k1, ..., and each value v with low and high."""
    groups: list[Group] = list(product(*(key.values or () for key in recipe.keys)))
    groups = groups if release.groups is None else release.groups
    columns: dict[str, Any] = {"g": pa.array(range(len(groups)), pa.int64())}
    for index, key in enumerate(recipe.keys):
        columns[f"k{index}"] = pa.array([group[index] for group in groups], _ARROW[key.type])
    for index, value in enumerate(recipe.values):
        low, middle, high = _estimates(release.parts, recipe, value, confidence)
        columns[f"v{index}"] = middle
        if low is not None:
            columns |= {f"v{index}_low": low, f"v{index}_high": high}
    return pa.table(columns)


def _estimates(parts: list[list[int]], recipe: Recipe, value: Value, confidence: Fraction) -> tuple[Any, Any, Any]:
    """The low end, the estimate and the high end for each group; no ends for what was chosen."""
    match value:
        case Plain():
            return _plain(parts, recipe, value, confidence)
        case Total():
            return _total(parts, recipe, value, confidence)
        case Mean():
            return _mean(parts, recipe, value, confidence)
        case Spread():
            return _spread(parts, recipe, value, confidence)
        case Point(part, step, kind):
            return None, _points(parts[part], step, kind), None
        case Chosen(part, values):
            return None, pa.array([values[position] for position in parts[part]]), None
        case Several(part, values, count):
            names = [values[position] for position in parts[part]]
            lists = [names[start : start + count] for start in range(0, len(names), count)]
            return None, pa.array(lists, pa.list_(pa.array(values).type)), None


def _points(numbers: list[int], step: Fraction, kind: Type) -> Any:
    if kind is Type.DATE:
        return pa.array([datetime.date.fromordinal(number) for number in numbers], pa.date32())
    if kind is Type.INT:
        return pa.array([int(number * step) for number in numbers], pa.int64())
    return pa.array([float(number * step) for number in numbers], pa.float64())


def _plain(released: list[list[int]], recipe: Recipe, value: Plain, confidence: Fraction) -> tuple[Any, Any, Any]:
    part = recipe.noisy(value.part)
    return _around([(part.unit, released[value.part])], intervals.half_width(part, confidence), value.type)


def _total(released: list[list[int]], recipe: Recipe, value: Total, confidence: Fraction) -> tuple[Any, Any, Any]:
    sum_of, count_of = recipe.noisy(value.sum), recipe.noisy(value.count)
    terms = [(sum_of.unit, released[value.sum]), (value.center, released[value.count])]
    return _around(terms, intervals.total(value, sum_of, count_of, confidence), value.type)


def _around(terms: list[tuple[Fraction, list[int]]], width: Fraction, kind: Type) -> tuple[Any, Any, Any]:
    """Sums of integers times units, with intervals of one width; those of integers are rounded and end at integers.

    All are integers over one denominator until the end, whose quotient is rounded once, as that of a fraction is.
    """
    below = math.lcm(width.denominator, *(unit.denominator for unit, _ in terms))
    factors, half = [int(unit * below) for unit, _ in terms], int(width * below)
    rows = zip(*(numbers for _, numbers in terms), strict=True)
    sums = [sum(map(mul, factors, row)) for row in rows]
    if kind is Type.INT:  # what lies between the ends are the same integers
        wholes = [(2 * number + below) // (2 * below) for number in sums]
        ends = ([-((half - v * below) // below) for v in wholes], wholes, [(v * below + half) // below for v in wholes])
        low, middle, high = (pa.array([_fit(v) for v in some], pa.int64()) for some in ends)
    else:
        shifts = (-half, 0, half)
        low, middle, high = (pa.array([(v + shift) / below for v in sums], pa.float64()) for shift in shifts)
    return low, middle, high


def _fit(number: int) -> int:
    """A released integer as 64 bits hold it; what is beyond is shown as the largest."""
    return max(-_MOST, min(_MOST, number))


def _mean(released: list[list[int]], recipe: Recipe, value: Mean, confidence: Fraction) -> tuple[Any, Any, Any]:
    sums, counts = released[value.sum], released[value.count]
    sum_of, count_of = recipe.noisy(value.sum), recipe.noisy(value.count)
    low, high = intervals.mean(sums, counts, value, sum_of, count_of, confidence)
    unit = sum_of.unit
    estimates = [
        float(min(max(value.center + unit * s / n, value.lower), value.upper)) if n > 0 else None
        for s, n in zip(sums, counts, strict=True)
    ]
    return pa.array(low), pa.array(estimates, pa.float64()), pa.array(high)


def _spread(released: list[list[int]], recipe: Recipe, value: Spread, confidence: Fraction) -> tuple[Any, Any, Any]:
    at = (value.squares, value.mean.sum, value.mean.count)
    numbers = (released[at[0]], released[at[1]], released[at[2]])
    parts = (recipe.noisy(at[0]), recipe.noisy(at[1]), recipe.noisy(at[2]))
    low, high = intervals.spread(numbers, value, parts, confidence)
    sums = [np.array(some, dtype=np.float64) * float(part.unit) for some, part in zip(numbers, parts, strict=True)]
    return pa.array(low), pa.array(spreads(sums[0], sums[1], sums[2], value), from_pandas=True), pa.array(high)


def _bars(result: Result, recipe: Recipe) -> Bars:
    """Exact for a released value as it is, approximate for an expression of some, none for a key or a condition."""
    if isinstance(result.scalar, Released):
        chosen = isinstance(recipe.values[result.scalar.index], Point | Chosen | Several)
        return Bars.NONE if chosen else Bars.EXACT
    computed = any(
        isinstance(node, Released) and not isinstance(recipe.values[node.index], Point | Chosen | Several)
        for node in walk(result.scalar)
    )
    return Bars.APPROXIMATE if computed and result.type in {Type.INT, Type.FLOAT} else Bars.NONE


def _statement(recipe: Recipe, headings: tuple[Heading, ...]) -> str:
    """The finishing as SQL over the noisy table. TRY turns an overflow into NULL."""
    columns = []
    for index, (result, heading) in enumerate(zip(recipe.results, headings, strict=True)):
        columns.append(f"{shown(result)} AS c{index}")
        if heading.bars is not Bars.NONE:
            source = f"v{result.scalar.index}" if isinstance(result.scalar, Released) else f"x{index}"
            columns += [f"{source}_low AS c{index}_low", f"{source}_high AS c{index}_high"]
    where = "" if recipe.having is None else f" WHERE TRY({sql.scalar(recipe.having)})"
    order = [_ordered(item) for item in recipe.order]
    limit = "" if recipe.limit is None else f" LIMIT {recipe.limit}"
    offset = f" OFFSET {recipe.offset}" if recipe.offset else ""
    wide = ", ".join(
        f"CAST(v{i} AS HUGEINT) AS v{i}"
        for i, value in enumerate(recipe.values)
        if isinstance(value, Plain | Total) and value.type is Type.INT
    )
    source = f"(SELECT * REPLACE ({wide}) FROM noisy)" if wide else "noisy"
    return f"SELECT {', '.join(columns)} FROM {source}{where} ORDER BY {', '.join([*order, 'g'])}{limit}{offset}"


def _ordered(item: Order) -> str:
    way, nulls = "DESC" if item.descending else "ASC", "FIRST" if item.nulls_first else "LAST"
    return f"TRY({sql.scalar(item.scalar)}) {way} NULLS {nulls}"


def _notes(recipe: Recipe, headings: tuple[Heading, ...], confidence: Fraction) -> tuple[str, ...]:
    notes = list(recipe.notes)
    if any(key.values is None for key in recipe.keys):
        notes.append("Groups are shown only where enough units hold them; others may exist.")
    notes += [rank(part, confidence) for part in recipe.parts if isinstance(part, Picked)]
    if any(heading.bars is Bars.APPROXIMATE for heading in headings):
        names = ", ".join(h.name for h in headings if h.bars is Bars.APPROXIMATE)
        notes.append(f"The intervals of {names} are approximate: the noise was drawn again around the released values.")
    if _selects_by_noise(recipe):
        notes.append("The rows shown were selected by noisy values.")
    return tuple(notes)


def _selects_by_noise(recipe: Recipe) -> bool:
    """Whether a released value may decide if a row is shown, and not its keys alone.

    It may in HAVING; and in ORDER BY where LIMIT or OFFSET leave rows out.
    """
    all_shown = recipe.limit is None or (recipe.groups is not None and recipe.limit >= recipe.groups)
    deciding = [] if all_shown and not recipe.offset else [item.scalar for item in recipe.order]
    deciding += [] if recipe.having is None else [recipe.having]
    return any(isinstance(node, Released) for scalar in deciding for node in walk(scalar))


def rank(part: Picked, confidence: Fraction) -> str:
    """What is known of a choice, in place of an interval."""
    often = f"{float(100 * confidence):.10g}% of the time"
    if isinstance(part.mechanism, Quantile):
        missed = part.mechanism.error(confidence)
        target = part.mechanism.target
        if target is not None:  # of the least or the largest, which aim some rows inside
            beyond = f"{target - 1 + missed:,}"
            side = "below" if part.mechanism.share == 0 else "above"
            return f"{part.name} is a value with at most {beyond} rows {side} it, {often}."
        off = f"{missed:,}"
        return f"{part.name} is a value whose rank is off by at most {off} rows, {often}."
    off = f"{part.mechanism.error(part.choices, confidence):,}"
    if isinstance(part.mechanism, TopK):
        return f"{part.name} are values, each with at most {off} rows less than the one due in its place, {often}."
    return f"{part.name} is a value with at most {off} rows less than the most frequent one, {often}."
