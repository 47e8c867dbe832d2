"""Connections to DuckDB, as all of our own work uses them."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tacit.engines.scalars import quote_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# A result of few rows is copied once more, which takes less time than binding a statement twice.
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)


def connect_in_memory() -> DuckDBPyConnection:
    """A database in memory, which loads no extensions."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # Texts of one batch may have more than two gigabytes together.
        "arrow_large_buffer_size": "true",
        # It takes NULLIF(x, 'a') IN ('a', 'b') for "x is not NULL" where all x are 'a' (DuckDB 2.0.0), and would make
        # plans, so the time they take, depend on the least and largest values of the data. The statistics that a
        # Parquet file tells of itself leave out NaN, too, and a clamp that they make seem needless would be left out.
        # Joins are made in the order of the statement: another order may match the rows of a unit with all of its other
        # rows before a further condition leaves few of them, and which order is taken would depend on the data.
        # What several expressions share is taken out of TRY, and raises then.
        "disabled_optimizers": "statistics_propagation,join_order,common_subexpressions",
    }
    return duckdb.connect(":memory:", config=config)


def spill_privately(connection: DuckDBPyConnection, owner: object) -> weakref.finalize[[str, int], object]:
    """Let what does not fit in memory go to a folder that only this user can read, and that goes with its owner."""
    folder = tempfile.mkdtemp(prefix="tacit-")
    connection.execute(f"SET temp_directory = {quote_text(folder)}")
    return weakref.finalize(owner, _remove_spill_folder, folder, os.getpid())


def limit_memory(connection: DuckDBPyConnection, most: int, spill: Path) -> None:
    """Work in so many bytes at most, and move what does not fit to a folder."""
    row = connection.execute("SELECT parse_formatted_bytes(current_setting('memory_limit'))").fetchone()
    assert row is not None
    connection.execute(f"SET memory_limit = '{min(int(row[0]), most)}B'")
    connection.execute(f"SET temp_directory = {quote_text(str(spill))}")


def _remove_spill_folder(folder: str, process: int) -> None:
    """Remove a folder, unless this is a child of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
