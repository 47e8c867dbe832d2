"""Who is protected, and which databases count as neighbors."""

from __future__ import annotations

from enum import StrEnum


class Neighbors(StrEnum):
    """The relation that a guarantee is for.

    A replacement is a removal and an addition, so an epsilon for ADD_REMOVE is at most 2 epsilon for REPLACE.

    Attributes
    ----------
    ADD_REMOVE
        One database is the other with all rows of one unit taken out.
    REPLACE
        One database is the other with all rows of one unit replaced by rows of another unit.

    Examples
    --------
    >>> Neighbors("add-remove")
    <Neighbors.ADD_REMOVE: 'add-remove'>
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
