"""Which operators there are, and how much each binds."""

from __future__ import annotations

from enum import IntEnum

from tacit.query.cursor import TokenCursor
from tacit.query.functions import Function


class Precedence(IntEnum):
    """How much an operator binds, from OR, which binds least, to a sign before a number."""

    OR = 0
    AND = 1
    NOT = 2
    IS = 3
    COMPARISON = 4
    RANGE = 5
    CONCAT = 6
    SUM = 7
    PRODUCT = 8
    POWER = 9
    SIGN = 10


ALONE = frozenset({Precedence.COMPARISON, Precedence.RANGE})  # of which two in a row need brackets
INFIX: dict[str, tuple[int, Function]] = {
    "=": (Precedence.COMPARISON, Function.EQUAL),
    "==": (Precedence.COMPARISON, Function.EQUAL),
    "<>": (Precedence.COMPARISON, Function.UNEQUAL),
    "!=": (Precedence.COMPARISON, Function.UNEQUAL),
    "<": (Precedence.COMPARISON, Function.LESS),
    "<=": (Precedence.COMPARISON, Function.LESS_EQUAL),
    ">": (Precedence.COMPARISON, Function.GREATER),
    ">=": (Precedence.COMPARISON, Function.GREATER_EQUAL),
    "||": (Precedence.CONCAT, Function.CONCAT),
    "+": (Precedence.SUM, Function.ADD),
    "-": (Precedence.SUM, Function.SUBTRACT),
    "*": (Precedence.PRODUCT, Function.MULTIPLY),
    "/": (Precedence.PRODUCT, Function.DIVIDE),
    "%": (Precedence.PRODUCT, Function.MOD),
    "//": (Precedence.PRODUCT, Function.DIV),
    "^": (Precedence.POWER, Function.POWER),
    "**": (Precedence.POWER, Function.POWER),
}
RANGES = frozenset({"BETWEEN", "IN", "LIKE", "ILIKE", "SIMILAR"})
PATTERNS = frozenset({"~~", "~~*", "!~~", "~", "~*", "!~", "^@"})  # which bind as || does
_WORDS = (
    {
        "OR": Precedence.OR,
        "AND": Precedence.AND,
        "IS": Precedence.IS,
        "ISNULL": Precedence.IS,
        "NOTNULL": Precedence.IS,
        "<=>": Precedence.COMPARISON,
    }
    | dict.fromkeys(RANGES, Precedence.RANGE)
    | dict.fromkeys(PATTERNS, Precedence.CONCAT)
)
MATCHES = frozenset({"GLOB", "REGEXP", "RLIKE"})


def find_precedence(cursor: TokenCursor) -> int | None:
    """How much the next operator binds, or None where there is none."""
    key = cursor.token.key
    if key == "NOT":
        return Precedence.RANGE if cursor.after() in RANGES | MATCHES else None
    return INFIX[key][0] if key in INFIX else _WORDS.get(key)
