"""The types of columns, and of the keys of GROUP BY."""

from __future__ import annotations

import datetime
from enum import StrEnum

Key = str | int | bool | datetime.date


class Type(StrEnum):
    """The types a column may have."""

    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"


NUMERIC_TYPES = frozenset({Type.INT, Type.FLOAT})
TIME_TYPES = frozenset({Type.DATE, Type.TIMESTAMP})
ORDERED_TYPES = NUMERIC_TYPES | TIME_TYPES

_CALLED = {
    Type.INT: "int integer bigint int4 int8 int64 smallint tinyint hugeint int2 int32 long signed",
    Type.FLOAT: "double float float8 float4 float64 real decimal numeric dec number bignumeric",
    Type.TEXT: "text varchar string char bpchar character nvarchar",
    Type.BOOL: "bool boolean logical",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp datetime timestamp_ntz",
}
TYPES_BY_NAME = {
    name: kind for kind, names in _CALLED.items() for name in names.split()
}  # by the names that CAST has for them
EXACT_TYPES = frozenset({"decimal", "numeric", "dec", "number", "bignumeric"})  # whose numbers say how many digits


def parse_iso_date(text: str) -> datetime.date | None:
    """The date that YYYY-MM-DD says, or None."""
    try:
        return datetime.date.fromisoformat(text) if len(text) == len("2025-12-31") and text[4] == "-" else None
    except ValueError:
        return None
