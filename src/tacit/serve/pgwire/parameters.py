"""Parameters: their types where the client leaves them open, and their values as literals of the question.

**Theorem.** A value never becomes anything but one literal. Proof: a parameter is a token of its own, outside of every
quote; what stands in its place is a number, TRUE, FALSE, NULL, or a text in single quotes whose own quotes are doubled,
with a space on either side; and `tacit.query.lexer` knows no escape in single quotes but the doubled one.

**Theorem.** Time and memory are linear in the text and the values, however often the text names a value. Proof: each
literal is made once, and their characters are added up over the places before anything is joined, and refused beyond
what a question may have.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from tacit.errors import Refused
from tacit.policy.model import Policy
from tacit.query.lexer import Token
from tacit.query.parameters import MOST_PARAMETERS, check_size, write_literal
from tacit.serve.pgwire.edits import Edit
from tacit.serve.pgwire.parameter_places import (
    example_argument,
    type_of_argument,
    type_of_call_after,
    type_of_call_before,
)
from tacit.serve.pgwire.sqlstate import SYNTAX, TOO_MUCH, WireError
from tacit.serve.pgwire.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    OID,
    OID_BY_NAME,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    array_of,
    element_of,
    type_oid,
)

_OPERATORS = frozenset({"=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%"})
_MAX_LOOKBACK = 40  # tokens to the left that are looked at: types are found in time proportional to the text
_BETWEEN_EXPRESSIONS = frozenset({",", "AND", "OR", "NOT", "WHERE", "HAVING", "ON", "SELECT", "WHEN", "THEN", "ELSE"})
_MOST_CASTS = 20
_MOST_MODIFIERS = 8  # tokens of numeric(10, 2), say
_QUANTIFIERS = frozenset({"ANY", "SOME", "ALL"})
_CONSTANTS = frozenset({"parameter", "text", "number"})
_SAME_TYPE_FUNCTIONS = frozenset({"LEAST", "GREATEST", "COALESCE", "NULLIF", "ABS"})  # whose arguments are of one type
_ARGUMENTS = {
    "TOP_K": INT8,
    **dict.fromkeys(("QUANTILE", "QUANTILE_CONT", "PERCENTILE_CONT", "PERCENTILE_DISC"), FLOAT8),
}
_MORE_WORDS = (("PRECISION",), ("VARYING",), ("WITH", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE"))  # of a type
_EXAMPLES: dict[int, Any] = {
    BOOL: True,
    DATE: datetime.date(2000, 1, 1),
    TIMESTAMP: datetime.datetime(2000, 1, 1),
    **dict.fromkeys((INT2, INT4, INT8, OID), 1),
    **dict.fromkeys((FLOAT4, FLOAT8), 0.5),
    NUMERIC: Decimal("0.5"),
}


def count_parameters(found: Sequence[Token]) -> int:
    """The largest number of a parameter."""
    most = max((int(token.text[1:]) for token in found if token.kind == "parameter"), default=0)
    if most > MOST_PARAMETERS or any(token.text == "$0" for token in found if token.kind == "parameter"):
        raise WireError(SYNTAX, f"parameters are numbered from 1 to {MOST_PARAMETERS:,}", "number them $1, $2, ...")
    return most


def infer_types(found: Sequence[Token], given: Sequence[int], policy: Policy) -> tuple[int, ...]:
    """The type of each parameter: the one given, or the one that its first place asks for; text where nothing does."""
    kinds = {i + 1: oid for i, oid in enumerate(given) if oid not in {0, UNKNOWN}}
    columns = {c.name.lower(): type_oid(c.type) for table in policy.tables for c in table.columns}
    brackets = enclosing_brackets(found)
    for index, token in enumerate(found):
        if token.kind == "parameter" and int(token.text[1:]) not in kinds:
            kind = infer_type_at(found, index, brackets[index], columns)
            if kind is None:
                kind = _infer_by_calls(found, index, brackets[index], columns)
            if kind is not None:
                kinds[int(token.text[1:])] = kind
    return tuple(kinds.get(i + 1, TEXT) for i in range(max(count_parameters(found), len(given))))


def enclosing_brackets(found: Sequence[Token]) -> list[int]:
    """For each token the bracket it stands in; -1 where there is none."""
    opened, around = [-1], []
    for index, token in enumerate(found):
        if token.key == ")" and len(opened) > 1:
            opened.pop()
        around.append(opened[-1])
        if token.key == "(":
            opened.append(index)
    return around


def infer_type_at(found: Sequence[Token], index: int, opening: int, columns: Mapping[str, int]) -> int | None:
    """The type that a place asks for: by a cast, a clause, a function, or the column that is compared with it."""

    def key(position: int) -> str:
        return found[position].key if 0 <= position < len(found) else ""

    def column(position: int) -> int | None:
        known = 0 <= position < len(found) and found[position].kind in {"word", "name"}
        return columns.get(found[position].text.lower()) if known else None

    before = key(index - 1)
    if key(index + 1) == "::" and index + 2 < len(found):
        return skip_casts(found, index + 1)[1]
    if before == "(" and key(index - 2) == "CAST" and key(index + 1) == "AS" and index + 2 < len(found):
        kind = OID_BY_NAME.get(found[index + 2].text)
        return array_of(kind) if "[" in {key(index + 3), key(index + 4)} else kind
    if before in {"LIMIT", "OFFSET"}:
        return INT8
    if before in {"LIKE", "ILIKE"}:
        return TEXT
    if before == "BETWEEN" or (before == "AND" and key(index - 3) == "BETWEEN"):
        start = index - 1 if before == "BETWEEN" else index - 3
        return column(start - 2 if key(start - 1) == "NOT" else start - 1)
    if before in _OPERATORS:
        for position in range(index - 1, max(-1, index - _MAX_LOOKBACK), -1):
            if key(position) not in _OPERATORS and found[position].kind not in _CONSTANTS:
                if column(position) is not None:
                    return column(position)
                break
    if key(index + 1) in _OPERATORS:
        return column(index + 4 if key(index + 3) == "." else index + 2)
    caller = key(opening - 1)
    if caller in _QUANTIFIERS and key(opening - 2) in _OPERATORS:
        kind = column(opening - 3)
        return array_of(kind) if before == "(" else kind
    if caller == "IN":
        return column(opening - 3 if key(opening - 2) == "NOT" else opening - 2)
    if caller in _SAME_TYPE_FUNCTIONS:
        places = range(opening + 1, min(index, opening + _MAX_LOOKBACK))
        return next((kind for at in places if (kind := column(at)) is not None), None)
    return _ARGUMENTS.get(caller)


def _infer_by_calls(found: Sequence[Token], index: int, opening: int, columns: Mapping[str, int]) -> int | None:
    """The type that a place asks for by a function: one that it is compared or computed with, or an argument of it.

    A quotient is a float. Constants in the text keep their types, so only parameters are judged by calls.
    """
    start = index - 1
    if found[max(0, start)].key == "AND" and index > 2 and found[index - 3].key == "BETWEEN":
        start = index - 3
    operand = start - 2 if start > 1 and found[start - 1].key == "NOT" else start - 1
    if operand >= 0 and found[start].key in _OPERATORS | {"BETWEEN"} and found[operand].key == ")":
        return _widen(type_of_call_before(found, operand, columns), found, opening, index)
    if index + 2 < len(found) and found[index + 1].key in _OPERATORS:
        return _widen(type_of_call_after(found, index + 2, columns), found, opening, index)
    kind = type_of_argument(found, index, opening)
    return _infer_choice(found, index) if kind is None else kind


def _widen(kind: int | None, found: Sequence[Token], opening: int, index: int) -> int | None:
    """A float where the expression with the parameter multiplies or divides integers."""
    near = found[max(opening + 1, index - _MAX_LOOKBACK) : index + 2]
    return FLOAT8 if kind in {INT4, INT8, NUMERIC} and any(token.key in {"*", "/"} for token in _flat(near)) else kind


def _flat(found: Sequence[Token]) -> list[Token]:
    """The tokens of the last expression, outside of brackets."""
    outside: list[Token] = []
    depth = 0
    for token in reversed(found):
        depth += {")": 1, "(": -1}.get(token.key, 0)
        if depth <= 0 and token.key in _BETWEEN_EXPRESSIONS:
            break
        if depth <= 0:
            outside.append(token)
    return outside


def _infer_choice(found: Sequence[Token], index: int) -> int | None:
    """In THEN and ELSE of a CASE that is summed or averaged, the type of the numbers beside it, or else a float."""
    if found[index - 1].key not in {"THEN", "ELSE"}:
        return None
    for position in range(index - 1, max(2, index - _MAX_LOOKBACK), -1):
        if found[position].key == "CASE":
            summed = found[position - 1].key == "(" and found[position - 2].key in {"SUM", "AVG"}
            return _type_beside(found, position) if summed else None
    return None


def _type_beside(found: Sequence[Token], case: int) -> int:
    """An integer where the numbers in THEN and ELSE of a CASE are: 1 and 1.0 are different questions."""
    near = found[case : case + 2 * _MAX_LOOKBACK]
    end = next((at for at, token in enumerate(near) if token.key == "END"), len(near))
    beside = [
        after.text
        for before, after in pairwise(near[:end])
        if before.key in {"THEN", "ELSE"} and after.kind == "number"
    ]
    return INT4 if beside and all(each.isdecimal() for each in beside) else FLOAT8


def _example(oid: int) -> Any:
    """Some value of a type; of an array, a list of one."""
    element = element_of(oid)
    return _EXAMPLES.get(oid, "2000-01-01") if element is None else [_example(element)]


def example_values(found: Sequence[Token], types: Sequence[int]) -> list[Any]:
    """Some value for each parameter, to find out the types of columns with, which do not depend on it.

    A text may stand where a date does, so the example of a text is a day; where a function takes few texts, one of
    these.
    """
    examples = [_example(oid) for oid in types]
    brackets = enclosing_brackets(found)
    for index, token in enumerate(found):
        if token.kind == "parameter" and 0 < int(token.text[1:]) <= len(examples):
            example = example_argument(found, index, brackets[index])
            if example is not None:
                examples[int(token.text[1:]) - 1] = example
    return examples


def substitute_values(found: Sequence[Token], values: Sequence[Any], *, casts: bool = False) -> list[Edit]:
    """The literals in place of the parameters.

    A question has no casts: what casts a parameter goes away, because the value has that type already.
    """
    made: list[Edit] = []
    literals: dict[int, str] = {}
    size = 0
    for index, token in enumerate(found):
        if token.kind != "parameter":
            continue
        number = int(token.text[1:])
        if number > len(values):
            raise WireError("42P02", f"there is no parameter ${number}", "give a value for each", token.start + 1)
        end = token.end if casts else found[skip_casts(found, index + 1)[0] - 1].end
        if number not in literals:
            literals[number] = f" {write_literal(values[number - 1])} "
        size += len(literals[number])
        made.append(Edit(token.start, end, literals[number]))
        try:
            check_size(size)
        except Refused as error:
            raise WireError(TOO_MUCH, error.what, error.fix) from None
    return made


def skip_casts(found: Sequence[Token], position: int) -> tuple[int, int | None]:
    """Where casts end that start at a position, and the type of the first one; None where there is no cast.

    Casts in a row are limited, and so are the numbers behind a type: this runs once for each cast.
    """
    kind, casts = None, 0
    while position + 1 < len(found) and found[position].key == "::" and found[position + 1].text in OID_BY_NAME:
        casts += 1
        if casts > _MOST_CASTS:
            raise WireError(TOO_MUCH, f"more than {_MOST_CASTS} casts in a row", "cast once", found[position].start + 1)
        named: int | None = OID_BY_NAME[found[position + 1].text]
        position += 2
        following = tuple(token.key for token in found[position : position + 3])
        more = next((words for words in _MORE_WORDS if following[: len(words)] == words), ())
        position += len(more)
        if position < len(found) and found[position].key == "(":
            inside = [token.key for token in found[position : position + _MOST_MODIFIERS]]
            position += inside.index(")") + 1 if ")" in inside else 0
        if [token.key for token in found[position : position + 2]] == ["[", "]"]:
            named = array_of(named)
            position += 2
        kind = named if kind is None else kind
    return position, kind
