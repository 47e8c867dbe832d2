"""What a released value is that chooses rows (`answers/choosing_values.py`): a constant, or NULL.

A value that is NULL, or absent because its table has no row, is NULL, as in SQL. A number that is not finite is NULL;
a whole number beyond 64 bits is the nearest one within.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit.answers.choosing_values import ChoosingValue, releases_read
from tacit.answers.post_processing_plan import CompoundPostProcessingPlan
from tacit.answers.program import render
from tacit.answers.released_table import connection, noisy_table
from tacit.answers.resolve_clip import resolve_clip
from tacit.answers.stored import Release
from tacit.query.bound import LEAST_INT, MOST_INT
from tacit.query.nodes import LiteralValue
from tacit.query.types import Type

_HALF = Fraction(1, 2)  # a confidence: no interval is read here


def read_value(
    value: ChoosingValue, releases: Mapping[int, Release], recipe: CompoundPostProcessingPlan
) -> LiteralValue:
    """A value, from the releases that it reads, by their places among the members."""
    cursor = connection(os.getpid()).cursor()
    try:
        for index in releases_read(value.program):
            place = recipe.places[index]
            noisy = noisy_table(releases[place], resolve_clip(recipe.members[place], releases[place]), _HALF)
            rows = [f"{row:05}" for row in range(noisy.num_rows)]
            cursor.register(f"r{index}", noisy.append_column("_id", pa.array(rows, pa.string())))
        found = cursor.sql(f"SELECT {value.column} FROM ({render(value.program, draws=False)})").fetchall()
    finally:
        cursor.close()
    assert len(found) <= 1
    return _constant(found[0][0] if found else None, value.type)


def _constant(found: Any, kind: Type) -> LiteralValue:
    """A value of a program as a constant of its type, or NULL."""
    match kind:
        case _ if found is None:
            return None
        case Type.BOOL:
            return bool(found)
        case Type.INT:
            return int(max(LEAST_INT, min(MOST_INT, Fraction(found))))
        case Type.DATE:
            return found if isinstance(found, datetime.date) else None
        case Type.TEXT:
            return str(found)
    number = float(found)
    return Fraction(number) if abs(number) < float("inf") else None
