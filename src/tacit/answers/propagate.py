"""Error bars of expressions: draw the noise again around what was released, and evaluate the same expression.

The true values are the released ones less their noise, and the noise is symmetric, so the spread of the expression
around the released values is close to its spread around the truth. The bars are marked approximate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.aggregates.base import Floats, ReleasedSelection, ReleasedVector
from tacit.answers.post_processing_plan import OutputColumn, PostProcessingPlan
from tacit.engines import scalars as sql
from tacit.mechanisms.laplace import Laplace
from tacit.query.nodes import ReleasedValue, walk
from tacit.query.types import Type
from tacit.sampling import gaussian, laplace
from tacit.sampling.bits import Bits, ReplayBits

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_ROWS = 2_000_000
_MOST_DRAWS = 1_000
_LEAST_DRAWS = 200
_MOST_VALUES = 4_000_000  # of all columns that are held at a time, of 8 bytes each
_SHOWN_AS = {
    Type.INT: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.BOOL: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "BIGINT",
}


def simulate_intervals(
    cursor: DuckDBPyConnection,
    noisy: pa.Table,
    released: list[list[int]],
    recipe: PostProcessingPlan,
    confidence: Fraction,
    seed: bytes,
) -> pa.Table:
    """The noisy table with x_low and x_high for each result that is an expression of released values.

    The draws follow from `seed`, the stored answer, so that a repeat shows the same bars; they protect nobody.
    """
    groups = noisy.num_rows
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_ROWS // max(1, groups)))
    computed = [
        (index, result)
        for index, result in enumerate(recipe.results)
        if not isinstance(result.scalar, ReleasedValue)
        and result.type in {Type.INT, Type.FLOAT}
        and any(isinstance(node, ReleasedValue) for node in walk(result.scalar))
    ]
    bits = ReplayBits(seed)
    size = max(1, _MOST_VALUES // (draws * (len(recipe.parts) + len(recipe.values))))  # groups at a time
    stretches = []
    for start in range(0, max(1, groups), size):
        some = [numbers[start : start + size] for numbers in released]
        stretches.append(_bars(cursor, noisy.slice(start, size), some, recipe, computed, confidence, draws, bits))
    ends = pa.concat_tables(stretches)
    for name in ends.column_names:
        noisy = noisy.append_column(name, ends.column(name))
    return noisy


def _bars(
    cursor: DuckDBPyConnection,
    noisy: Any,
    released: list[list[int]],
    recipe: PostProcessingPlan,
    computed: list[tuple[int, OutputColumn]],
    confidence: Fraction,
    draws: int,
    bits: Bits,
) -> Any:
    """The columns x_low and x_high of some groups."""
    groups = noisy.num_rows
    parts = redraw_parts(released, recipe, draws, bits)
    columns: dict[str, Any] = {"g": pa.array(np.repeat(np.arange(groups), draws))}
    for index, _ in enumerate(recipe.keys):
        columns[f"k{index}"] = noisy.column(f"k{index}").take(columns["g"])
    for index, value in enumerate(recipe.values):
        simulated = value.simulate(parts)
        if simulated is None:
            columns[f"v{index}"] = noisy.column(f"v{index}").take(columns["g"])
        else:
            columns[f"v{index}"] = pa.array(simulated, from_pandas=True)
    cursor.register("redrawn", pa.table(columns))
    low, high = float((1 - confidence) / 2), float((1 + confidence) / 2)
    ends: dict[str, Any] = {}
    for index, result in computed:
        found = cursor.sql(
            f"SELECT quantile_cont(x, {low!r}) AS low, quantile_cont(x, {high!r}) AS high "
            f"FROM (SELECT g, {render_result_sql(replace(result, type=Type.FLOAT))} AS x FROM redrawn) "
            "GROUP BY g ORDER BY g"
        ).to_arrow_table()
        ends |= {f"x{index}_low": found.column("low"), f"x{index}_high": found.column("high")}
    cursor.unregister("redrawn")
    return pa.table(ends)


def render_result_sql(result: OutputColumn) -> str:
    """A result as SQL that is NULL where a number overflows: TRY catches integers, and doubles go to infinity."""
    if result.many:
        return sql.write_scalar(result.scalar)
    value = f"TRY(CAST({sql.write_scalar(result.scalar)} AS {_SHOWN_AS[result.type]}))"
    return f"CASE WHEN isfinite({value}) THEN {value} END" if result.type is Type.FLOAT else value


def redraw_parts(released: list[list[int]], recipe: PostProcessingPlan, draws: int, bits: Bits) -> list[Floats]:
    """For each part `draws` values around each released one, in the user's units."""
    return [_redrawn(numbers, part, draws, bits) for numbers, part in zip(released, recipe.parts, strict=True)]


def _redrawn(numbers: list[int], part: ReleasedVector | ReleasedSelection, draws: int, bits: Bits) -> Floats:
    """For each group `draws` values around the released one, in the user's units. What was chosen stays."""
    if isinstance(part, ReleasedSelection):
        return np.zeros(0)
    count = len(numbers) * draws
    if isinstance(part.mechanism, Laplace):
        scale = min(part.mechanism.scale, Fraction(2) ** 50)
        noise, times = laplace.draw_array(scale, count, bits), float(part.mechanism.scale / scale)
    else:
        variance = min(part.mechanism.variance, Fraction(2) ** 78)
        noise, times = gaussian.draw_array(variance, count, bits), math.sqrt(part.mechanism.variance / variance)
    return (np.repeat(np.array(numbers, dtype=np.float64), draws) + noise.astype(np.float64) * times) * float(part.unit)
