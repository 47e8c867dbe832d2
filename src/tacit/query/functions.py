"""The closed table of functions and operators. What is not here cannot be asked.

To add one: a row here, its rule in `plan/bind.py`, its SQL in `engines/sql.py` and its meaning in
`engines/reference.py`. Every function is total: no argument can raise, overflow or take longer than another.
"""

from __future__ import annotations

from enum import StrEnum


class Fn(StrEnum):
    """Functions over rows and over released values, by the name SQL has for them."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    NEGATE = "negate"
    ABS = "abs"
    FLOOR = "floor"
    CEIL = "ceil"
    LEAST = "least"
    GREATEST = "greatest"
    COALESCE = "coalesce"
    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    IN = "in"
    IS_NULL = "is null"
    AND = "and"
    OR = "or"
    NOT = "not"
    ROUND = "round"


FINISHING_ONLY = frozenset({Fn.ROUND})
COMPARISONS = frozenset({Fn.EQUAL, Fn.UNEQUAL, Fn.LESS, Fn.LESS_EQUAL, Fn.GREATER, Fn.GREATER_EQUAL})
CONDITIONS = frozenset({Fn.AND, Fn.OR, Fn.NOT})
