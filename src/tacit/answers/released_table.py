"""Released integers as a table, and the in-memory DuckDB that computes with it and holds nothing else."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.answers.stored import Release
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ARROW_TYPES = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.TEXT: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.int64(),  # until it is shown
}


@cache
def connection(process: int) -> DuckDBPyConnection:
    """One connection a process, with no way out of memory. A forked child keeps the parent's: closing it hangs."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "threads": "1",
        "disabled_optimizers": "statistics_propagation",  # wrong about NULLIF(x, 'a') IN ('a', 'b') in DuckDB 2.0.0
    }
    found = duckdb.connect(":memory:", config=config)
    found.execute("SET lock_configuration = true")
    return found


def noisy_table(release: Release, plan: PostProcessingPlan, confidence: Fraction) -> pa.Table:
    """The noisy table: a row for each group, its keys k0, k1, ..., and each value v with low and high."""
    groups = plan.list_groups() if release.groups is None else release.groups
    columns: dict[str, Any] = {"g": pa.array(range(len(groups)), pa.int64())}
    for index, key in enumerate(plan.keys):
        columns[f"k{index}"] = pa.array([group[index] for group in groups], ARROW_TYPES[key.type])
    for index, value in enumerate(plan.values):
        low, middle, high = value.estimate(release.parts, plan.parts, confidence)
        columns[f"v{index}"] = middle
        if low is not None:
            columns |= {f"v{index}_low": low, f"v{index}_high": high}
    return pa.table(columns)
