"""The statement that tells whether columns are unique."""

from __future__ import annotations

from collections.abc import Sequence


def write_is_unique(columns: Sequence[str], source: str) -> str:
    """Whether no two rows of what stands after FROM share the values of all these columns; NULL is no value.

    Columns are quoted names.
    """
    if len(columns) == 1:
        return f"SELECT COUNT({columns[0]}) = COUNT(DISTINCT {columns[0]}) FROM {source}"
    there = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    keys = ", ".join(columns)
    shared = f"SELECT COUNT(*) AS n FROM {source} WHERE {there} GROUP BY {keys} HAVING COUNT(*) > 1"
    return f"SELECT COUNT(*) = 0 FROM ({shared}) AS shared"
