"""Who is protected, and which databases count as neighbors."""

from __future__ import annotations

from enum import StrEnum


class Neighbors(StrEnum):
    """The relation that a guarantee is for.

    ADD_REMOVE: one database is the other with all rows of one unit taken out.
    REPLACE: one database is the other with all rows of one unit replaced by rows of another unit.
    A replacement is a removal and an addition, so an epsilon for ADD_REMOVE is at most 2 epsilon for REPLACE.
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
