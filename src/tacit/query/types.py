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


NUMBERS = frozenset({Type.INT, Type.FLOAT})
