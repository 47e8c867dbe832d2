"""DECLARE, FETCH, MOVE and CLOSE as they are written.

>>> from tacit.query.lexer import POSTGRESQL, scan
>>> declared, inner = parse_declare(list(scan("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1", POSTGRESQL)))
>>> declared, [token.text for token in inner]
(CursorDeclaration(name='c', is_held=True, can_scroll=True), ['select', '1'])
>>> parse_fetch(list(scan("FETCH BACKWARD 5 FROM c", POSTGRESQL)))
FetchCommand(name='c', direction=<Direction.FORWARD: 'forward'>, count=-5, moves=False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tacit.query.lexer import Token
from tacit.serve.pgwire.sqlstate import SYNTAX, WireError, unsupported_error

ALL = 2**31  # rows, which are more than an answer has
_LONGEST_NAME = 200
_NAMED = frozenset({"word", "name"})
_FETCH_HINT = "FETCH 100 FROM my_cursor, FETCH ALL FROM my_cursor"
_DECLARE_HINT = "DECLARE my_cursor CURSOR FOR SELECT ..."


class Direction(Enum):
    """How the place to go to is counted: from where the cursor stands, rows after it, or from the first row."""

    FORWARD = "forward"
    RELATIVE = "relative"
    ABSOLUTE = "absolute"


@dataclass(frozen=True)
class CursorDeclaration:
    """A cursor: its name, whether it outlives its transaction, and whether it goes backward."""

    name: str
    is_held: bool = False
    can_scroll: bool = True


@dataclass(frozen=True)
class FetchCommand:
    """FETCH, or MOVE, which shows no rows: a cursor, and where it goes. Backward is a negative count forward."""

    name: str
    direction: Direction = Direction.FORWARD
    count: int = 1
    moves: bool = False


def parse_declare(found: Sequence[Token]) -> tuple[CursorDeclaration, Sequence[Token]]:
    """The cursor that is declared, and the tokens of its query."""
    if len(found) < 2 or found[1].kind not in _NAMED or not 0 < len(found[1].text) <= _LONGEST_NAME:
        raise _syntax_error(found[0], _DECLARE_HINT)
    keys = [token.key for token in found]
    if "CURSOR" not in keys[2:] or "FOR" not in keys[2:]:
        raise _syntax_error(found[-1], _DECLARE_HINT)
    at, begin = keys.index("CURSOR", 2), keys.index("FOR", 2)
    options, held = keys[2:at], keys[at + 1 : begin]
    if "BINARY" in options:
        raise unsupported_error("a BINARY cursor", "leave BINARY out, and ask for binary results", found[2].start + 1)
    allowed = [each for each in options if each not in {"INSENSITIVE", "ASENSITIVE"}]
    if allowed not in ([], ["SCROLL"], ["NO", "SCROLL"]) or held not in ([], ["WITH", "HOLD"], ["WITHOUT", "HOLD"]):
        raise _syntax_error(found[2], _DECLARE_HINT)
    if begin + 1 == len(found):
        raise _syntax_error(found[-1], _DECLARE_HINT)
    return CursorDeclaration(found[1].text, held == ["WITH", "HOLD"], "NO" not in options), found[begin + 1 :]


def parse_fetch(found: Sequence[Token]) -> FetchCommand:
    """The cursor that rows are taken from, and which."""
    if len(found) < 2 or found[-1].kind not in _NAMED:
        raise _syntax_error(found[-1], _FETCH_HINT)
    name, moves = found[-1].text, found[0].key == "MOVE"
    rest = list(found[1:-1])
    if rest and rest[-1].key in {"FROM", "IN"}:
        rest.pop()
    if not rest:
        return FetchCommand(name, moves=moves)
    word, after = rest[0].key, rest[1:]
    match word:
        case "NEXT" if not after:
            direction, count = Direction.FORWARD, 1
        case "PRIOR" if not after:
            direction, count = Direction.FORWARD, -1
        case "FIRST" if not after:
            direction, count = Direction.ABSOLUTE, 1
        case "LAST" if not after:
            direction, count = Direction.ABSOLUTE, -1
        case "ABSOLUTE" | "RELATIVE":
            direction, count = Direction[word], _parse_count(after)
        case "FORWARD":
            direction, count = Direction.FORWARD, _parse_count(after) if after else 1
        case "BACKWARD":
            direction, count = Direction.FORWARD, -_parse_count(after) if after else -1
        case _:
            direction, count = Direction.FORWARD, _parse_count(rest)
    return FetchCommand(name, direction, count, moves)


def parse_close(found: Sequence[Token]) -> str:
    """The name of the cursor that is closed; "" for all of them."""
    if len(found) != 2 or found[1].kind not in _NAMED:
        raise _syntax_error(found[-1], "CLOSE my_cursor, CLOSE ALL")
    return "" if found[1].key == "ALL" else found[1].text


def _parse_count(found: Sequence[Token]) -> int:
    """A number of rows, perhaps with a sign, or ALL."""
    if [token.key for token in found] == ["ALL"]:
        return ALL
    sign = -1 if found and found[0].key == "-" else 1
    digits = found[1:] if found and found[0].key in {"-", "+"} else found
    if len(digits) != 1 or digits[0].kind != "number" or not digits[0].text.isdecimal() or len(digits[0].text) > 10:
        raise _syntax_error(found[0], _FETCH_HINT) if found else WireError(SYNTAX, _WRONG, _FETCH_HINT)
    return sign * min(int(digits[0].text), ALL)


_WRONG = "refused [syntax]: this is not how a cursor is used"


def _syntax_error(token: Token, hint: str) -> WireError:
    return WireError(SYNTAX, _WRONG, hint, token.start + 1)
