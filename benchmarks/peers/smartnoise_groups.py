"""SmartNoise SQL's side: rows in a SQLite file, filled off the clock. A unit's rows are capped in all, not
in each group: 4 groups of 5 rows are 20 rows here."""

from __future__ import annotations

import sqlite3
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pipe import Table, serve
from question import EPSILON, LARGEST, MOST_GROUPS, MOST_ROWS, SQL

warnings.simplefilter("ignore")
from snsql import Privacy, from_connection  # noqa: E402 - it warns on import


def main() -> None:
    """Serve."""
    source = Path(sys.argv[1])
    file = source.with_suffix(".sqlite")
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE events (who INTEGER, g INTEGER, v REAL)")
    for batch in pq.ParquetFile(source).iter_batches():
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
    connection.commit()
    table: dict[str, Any] = {
        "censor_dims": False,
        "clamp_counts": False,
        "clamp_columns": True,
        "max_ids": MOST_GROUPS * MOST_ROWS,
        "who": {"type": "int", "private_id": True},
        "g": {"type": "int"},
        "v": {"type": "float", "lower": 0.0, "upper": float(LARGEST)},
    }
    metadata = {"": {"": {"events": table}}}

    def reader(epsilon: float) -> Any:
        return from_connection(
            connection, engine="sqlite", privacy=Privacy(epsilon=epsilon, delta=1e-9), metadata=metadata
        )

    cost = reader(1.0).get_privacy_cost(SQL)[0]  # its epsilon is for each column that it measures

    def ask() -> Table:
        rows: Table = reader(EPSILON / cost).execute(SQL)[1:]
        return rows

    serve(ask, ("smartnoise-sql", "opendp"))


if __name__ == "__main__":
    main()
