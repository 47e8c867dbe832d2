"""Parameters of a question, $1, $2 and so on, and values as literals in their places.

>>> bind_parameters("SELECT COUNT(*) FROM visits WHERE age > $1 AND ward = $2", [65, "it's"])
"SELECT COUNT(*) FROM visits WHERE age >  65  AND ward =  'it''s' "

**Theorem.** A value never becomes anything but one literal, or a list of literals. Proof: a parameter is a sign and a
number outside of every quote and comment, as the lexer of questions finds them; what stands in its place is a number,
TRUE, FALSE, NULL, a text in single quotes whose own quotes are doubled, a date or timestamp in such quotes, or an array
of these, with a space on either side; and the lexer knows no escape in single quotes but the doubled one. So the tokens
around it are what they were, and no value is read as SQL.

It follows that a question with parameters is the question with its values written out: at the same charge, and free
where that was asked before.

**Theorem.** Time and memory are linear in what was given, the text and the values, however often the text names a
value. Proof: a text of more than `MAX_CHARACTERS` is refused before it is read; each value is written once; and the
characters of the question that comes out are added up over the places before anything is joined, and refused beyond
`MAX_CHARACTERS`, which is the parser's own bound.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tacit.errors import ParameterError
from tacit.query.cursor import check_text, refuse_text
from tacit.query.lexer import QUESTION, LexicalError, Token, scan
from tacit.query.refusals import MAX_CHARACTERS, LineIndex, refuse_too_large

MOST_PARAMETERS = 1_000
_MOST_ITEMS = 10_000  # of a list
MOST_DIGITS = 40  # of a number, before or after its point
_FIX = 'ask("SELECT COUNT(*) FROM visits WHERE age > $1", parameters=[65], epsilon=0.5)'


def bind_parameters(sql: str, values: Sequence[Any]) -> str:
    """Return a question with a literal in place of each parameter; each value is used, and each parameter has one."""
    if not isinstance(sql, str):
        raise ParameterError("sql", f"needs text, got {type(sql).__name__}", fix=_FIX)
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise ParameterError("parameters", f"is a list of values, got {type(values).__name__}", fix=_FIX)
    if len(values) > MOST_PARAMETERS:
        raise ParameterError("parameters", f"has {len(values):,} values; {MOST_PARAMETERS:,} is the most", fix=_FIX)
    check_text(sql)
    literals = [f" {write_literal(_check(value, place))} " for place, value in enumerate(values, 1)]
    if sum(map(len, literals)) > MAX_CHARACTERS:
        raise ParameterError("parameters", "the values are too long together", fix="give fewer or shorter ones")
    places = _find_parameters(sql)
    _check_numbers([number for _, _, number in places], len(literals))
    check_size(len(sql) + sum(len(literals[number - 1]) - (end - start) for start, end, number in places))
    return _join(sql, places, literals)


def check_size(characters: int) -> None:
    """Refuse a question that has so many characters with its values in their places; none of it need be joined yet."""
    if characters > MAX_CHARACTERS:
        what = f"the question has {characters:,} characters with its values; {MAX_CHARACTERS:,} is the most"
        raise refuse_too_large(what, None, "give fewer or shorter values, or name each in fewer places")


def _check_numbers(numbers: Sequence[int], count: int) -> None:
    """Refuse a parameter that has none of `count` values, and a value that has no parameter."""
    for number in numbers:
        if not 0 < number <= count:
            what = f"there is no value for ${number}: {count} were given"
            raise ParameterError("parameters", what, fix="number them from $1, and give a value for each")
    for number in sorted(set(range(1, count + 1)).difference(numbers)):
        fix = f"write ${number} where it belongs, or leave the value out"
        raise ParameterError("parameters", f"value {number} has no place in the question", fix=fix)


def _join(sql: str, places: Sequence[tuple[int, int, int]], literals: Sequence[str]) -> str:
    """The question with its literals."""
    parts, position = [], 0
    for start, end, number in places:
        parts += [sql[position:start], literals[number - 1]]
        position = end
    return "".join([*parts, sql[position:]])


def _find_parameters(sql: str) -> list[tuple[int, int, int]]:
    """Where parameters start and end, and their numbers; Refused of a text that cannot be taken apart."""
    found: list[tuple[int, int, int]] = []
    before: Token | None = None
    try:
        for token in scan(sql, QUESTION):
            is_sign = before is not None and before.kind == "sign" and before.text == "$" and before.end == token.start
            digits = sql[token.start : token.end]
            if before is not None and is_sign and digits.isascii() and digits.isdecimal() and len(digits) <= 5:
                found.append((before.start, token.end, int(digits)))
            before = token
    except LexicalError as error:
        raise refuse_text(error, LineIndex(sql)) from None
    return found


def _check(value: Any, place: int, *, inside: bool = False) -> Any:
    """A value as it is written, or an error that says which one is none; the value itself is not shown."""
    name = f"parameters: value {place}"
    value = _from_arrays(value)
    match value:
        case None | bool():
            return value
        case datetime.date():
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                raise ParameterError(name, "has a zone", fix="give the time in the column's own zone, without one")
            if value != value:  # noqa: PLR0124 - a missing time of pandas is a time, and not itself
                raise ParameterError(name, "is no time", fix="give None where there is none")
            return value
        case int():
            value = int.__add__(value, 0)  # a plain one: a subclass may write itself in its own way
            if abs(value) >= 10**MOST_DIGITS:
                raise ParameterError(name, "has too many digits", fix="give a smaller number")
            return value
        case float() | Decimal():
            value = float.__mul__(value, 1.0) if isinstance(value, float) else Decimal(value)
            if not math.isfinite(value) or abs(Decimal(value).adjusted()) > MOST_DIGITS:
                raise ParameterError(name, "is not finite, or has too many digits", fix="give a smaller number")
            return value
        case str():
            value = str.__str__(value)
            if "\0" in value:
                raise ParameterError(name, "holds a NUL character", fix="remove it")
            return value
        case list() | tuple() if not inside and len(value) <= _MOST_ITEMS:
            return [_check(item, place, inside=True) for item in value]
    what = f"is no value that can be written, got {type(value).__name__}"
    fix = "give numbers, texts, dates, conditions, None, or a list of these for = ANY($1)"
    raise ParameterError(name, what, fix=fix)


def _from_arrays(value: Any) -> Any:
    """The Python value of a number, a date or an array of numpy; times that would be read as numbers stay."""
    if not hasattr(value, "tolist"):
        return value
    found = value.tolist()
    is_time = getattr(getattr(value, "dtype", None), "kind", "") in {"M", "m"}
    return value if is_time and not isinstance(found, datetime.date) else found


def write_literal(value: object) -> str:
    """A value as SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value) if value >= 0 else f"({value})"
        case float():
            return repr(value) if value >= 0 and not repr(value).startswith("-") else f"({value!r})"
        case Decimal():
            shown = format(value, "f")
            return f"({shown})" if shown.startswith("-") else shown
        case list():
            return f"ARRAY[{', '.join(map(write_literal, value))}]"
        case datetime.datetime():
            return f"TIMESTAMP '{datetime.datetime.isoformat(value, ' ')}'"
        case datetime.date():
            return f"DATE '{datetime.date.isoformat(value)}'"
        case _:
            return quote_text(str(value))


def quote_text(text: str) -> str:
    """A text as SQL, in quotes."""
    return "'" + text.replace("'", "''") + "'"
