"""The types that places beside and inside of function calls ask for: count(*) > $1, date_trunc($1, d), round(x, $1).

A place that is misjudged protects no less: the value is not of its type, the question is refused, or it is another
one than with the constant written out, and charged as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.query.lexer import Token
from tacit.serve.pgwire.types import FLOAT8, INT4, INT8, NUMERIC, TEXT

_SEARCHED = 200  # tokens of a call that are looked at: types are found in time proportional to the text
_NAMES_BY_RESULT = {
    INT8: "COUNT APPROX_COUNT_DISTINCT RANK DENSE_RANK ROW_NUMBER",
    INT4: "LENGTH CHAR_LENGTH CHARACTER_LENGTH STRPOS POSITION WIDTH_BUCKET",
    FLOAT8: (
        "AVG MEAN MEDIAN QUANTILE QUANTILE_CONT PERCENTILE_CONT STDDEV STDDEV_SAMP STDDEV_POP VARIANCE VAR_SAMP "
        "VAR_POP CORR SQRT LN EXP POWER DATE_PART"
    ),
    NUMERIC: "EXTRACT YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND DAYOFWEEK",
    TEXT: "LOWER UPPER TRIM LEFT RIGHT SUBSTR SUBSTRING REPLACE CONCAT STRFTIME TO_CHAR",
}
_RESULTS = {name: oid for oid, names in _NAMES_BY_RESULT.items() for name in names.split()}
_SAME = "SUM MIN MAX ABS ROUND FLOOR CEIL CEILING TRUNC DATE_TRUNC COALESCE LEAST GREATEST MODE"
_OF_ARGUMENT = frozenset(_SAME.split())  # whose result has the type of an argument
_ARGUMENTS = {  # by function and place, counted from 0
    **{(name, 1): INT4 for name in ("ROUND", "TRUNC", "LEFT", "RIGHT", "SUBSTR", "SUBSTRING", "LAG", "LEAD", "REPEAT")},
    **{(name, 2): INT4 for name in ("SUBSTR", "SUBSTRING", "SPLIT_PART")},
    **{("WIDTH_BUCKET", place): FLOAT8 for place in (1, 2)},
    ("WIDTH_BUCKET", 3): INT4,
    ("NTILE", 0): INT4,
    ("POWER", 1): FLOAT8,
    **{(name, 0): TEXT for name in ("DATE_TRUNC", "DATE_PART")},
}
_EXAMPLES: dict[tuple[str, int], str | float] = {
    ("DATE_TRUNC", 0): "month",
    ("DATE_PART", 0): "month",
    ("WIDTH_BUCKET", 1): 0.0,
    ("WIDTH_BUCKET", 2): 1.0,
}


def type_of_call_before(found: Sequence[Token], end: int, columns: Mapping[str, int]) -> int | None:
    """The type of the call whose closing bracket is at a place: count(*) is an integer, max(d) has the type of d."""
    depth = 0
    for position in range(end, max(-1, end - _SEARCHED), -1):
        depth += {")": 1, "(": -1}.get(found[position].key, 0)
        if not depth:
            return _result_type(found, position, end, columns)
    return None


def type_of_call_after(found: Sequence[Token], start: int, columns: Mapping[str, int]) -> int | None:
    """The type of the call whose name is at a place."""
    if start + 1 >= len(found) or found[start + 1].key != "(":
        return None
    depth = 0
    for position in range(start + 1, min(len(found), start + _SEARCHED)):
        depth += {"(": 1, ")": -1}.get(found[position].key, 0)
        if not depth:
            return _result_type(found, start + 1, position, columns)
    return None


def type_of_argument(found: Sequence[Token], index: int, opening: int) -> int | None:
    """The type that a function asks for at the place of an argument."""
    return _ARGUMENTS.get(_argument_place(found, index, opening))


def example_argument(found: Sequence[Token], index: int, opening: int) -> str | float | None:
    """A value that a function takes at a place where few are taken; None where any value of the type will do."""
    return _EXAMPLES.get(_argument_place(found, index, opening))


def _argument_place(found: Sequence[Token], index: int, opening: int) -> tuple[str, int]:
    """The function around a place, and which of its arguments stands there."""
    if opening < 1:
        return "", 0
    place = depth = 0
    for token in found[max(opening + 1, index - _SEARCHED) : index]:
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        place += token.key == "," and not depth
    return found[opening - 1].key, place


def _result_type(found: Sequence[Token], opening: int, closing: int, columns: Mapping[str, int]) -> int | None:
    name = found[opening - 1].key if opening else ""
    if name in _RESULTS:
        return _RESULTS[name]
    if name not in _OF_ARGUMENT:
        return None
    inner = found[opening + 1 : closing]
    kinds = [_RESULTS.get(each.key, columns.get(each.text.lower())) for each in inner if each.kind in {"word", "name"}]
    return next((kind for kind in kinds if kind is not None), None)
