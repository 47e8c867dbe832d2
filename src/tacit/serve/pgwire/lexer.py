"""The words and signs of what PostgreSQL clients send, as PostgreSQL reads them.

`tacit.query.lexer` reads questions and refuses all that is not needed for one. Clients say more than questions: casts,
regular expressions, escapes in texts, numbered parameters. Whatever stands here for a question is read again there, so
where the two readers differ the question is refused, not misread.

>>> [token.key or token.text for token in tokens("SELECT $1, 'it''s' -- done")]
['SELECT', '$1', ',', "it's"]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.serve.pgwire.sqlstate import SYNTAX, TOO_MUCH, WireError

MOST_CHARACTERS = 60_000  # of one string of statements; a question may have 50,000
_MOST_TOKENS = 5_000

_TOKEN = re.compile(
    r"(?P<space>\s++|--[^\r\n]*+)"
    r"|(?P<comment>/\*)"
    r"|(?P<escaped>[eE]'(?:[^'\\]|''|\\.)*+')"
    r"|(?P<other>(?:[bBxXnN]|[uU]&)'[^']*+(?:''[^']*+)*+')"
    r"|(?P<dollar>\$(?:[^\W\d]\w*+)?\$)"
    r"|(?P<parameter>\$[0-9]{1,5})"
    r"|(?P<text>'[^']*+(?:''[^']*+)*+')"
    r'|(?P<name>"[^"]*+(?:""[^"]*+)*+")'
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<word>[^\W\d][\w$]*+)"
    r"|(?P<sign>::|<=|>=|<>|!=|\|\||!~\*|!~|~\*|!~~\*|!~~|~~\*|~~|->>|->|@>|<@|.)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)|''", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class WireToken(NamedTuple):
    """A word, name, text, number, parameter or sign. `key` is a word in capitals, or a sign; empty for all others."""

    kind: str
    text: str
    key: str
    start: int
    end: int


def tokens(text: str) -> list[WireToken]:
    """The tokens of a text; a quote or comment that never ends is an error."""
    if len(text) > MOST_CHARACTERS:
        what = f"the text has {len(text):,} characters; {MOST_CHARACTERS:,} is the most"
        raise WireError(TOO_MUCH, what, "ask several smaller questions")
    found: list[WireToken] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        assert match.lastgroup is not None
        start, position = position, match.end()
        kind = match.lastgroup
        if kind == "comment":
            position = _after_comment(text, start)
            continue
        if kind == "dollar":
            position = _after_dollar(text, start, match[0])
        if kind != "space":
            found.append(_token(kind, text[start:position], start))
            if len(found) > _MOST_TOKENS:
                raise WireError(TOO_MUCH, f"the text has more than {_MOST_TOKENS:,} words and signs", "ask for less")
    return found


def _token(kind: str, written: str, start: int) -> WireToken:
    end = start + len(written)
    match kind:
        case "text":
            return WireToken(kind, written[1:-1].replace("''", "'"), "", start, end)
        case "escaped":
            return WireToken(kind, _ESCAPE.sub(_unescape, written[2:-1]), "", start, end)
        case "name":
            return WireToken(kind, written[1:-1].replace('""', '"'), "", start, end)
        case "word":
            return WireToken(kind, written.lower(), written.upper() if written.isascii() else "", start, end)
        case "sign":
            if written in {"'", '"'}:
                raise WireError(SYNTAX, "refused [syntax]: this quote is never closed", "close it", start + 1)
            return WireToken(kind, written, written, start, end)
    return WireToken(kind, written, "", start, end)


def _unescape(found: re.Match[str]) -> str:
    escape = found[1]
    if escape is None:
        return "'"
    if escape[0] in "uUx" and len(escape) > 1:
        code = int(escape[1:], 16)
    elif escape[0] in "01234567":
        code = int(escape, 8)
    else:
        return _CONTROLS.get(escape, escape)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _after_comment(text: str, start: int) -> int:
    """Where a comment ends; comments nest."""
    depth, position = 1, start + 2
    while depth:
        found = re.compile(r"/\*|\*/").search(text, position)
        if found is None:
            raise WireError(SYNTAX, "refused [syntax]: this comment is never closed", "close it with */", start + 1)
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return position


def _after_dollar(text: str, start: int, tag: str) -> int:
    """Where a text between two tags such as $a$ ends."""
    end = text.find(tag, start + len(tag))
    if end < 0:
        raise WireError(SYNTAX, "refused [syntax]: this quote is never closed", f"close it with {tag[:40]}", start + 1)
    return end + len(tag)


def split(found: Sequence[WireToken]) -> list[list[WireToken]]:
    """The statements between semicolons; empty ones are left out."""
    parts: list[list[WireToken]] = [[]]
    for token in found:
        if token.key == ";":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


@dataclass(frozen=True)
class Edit:
    """What stands in place of a stretch of the text."""

    start: int
    end: int
    text: str


class Edited:
    """A text with edits made, and the way back to where things stood.

    >>> made = Edited("a = $1 AND b", 0, 12, [Edit(4, 6, "'x'")])
    >>> made.text, made.written(made.text.index("b"))
    ("a = 'x' AND b", 11)
    """

    def __init__(self, text: str, start: int, end: int, edits: Sequence[Edit]) -> None:
        self._stretches: list[tuple[int, int, bool]] = []  # where it starts here, where there, and whether it is new
        parts: list[str] = []
        length, position = 0, start
        for edit in sorted(edits, key=lambda each: each.start):
            for piece, origin, new in ((text[position : edit.start], position, False), (edit.text, edit.start, True)):
                self._stretches.append((length, origin, new))
                parts.append(piece)
                length += len(piece)
            position = edit.end
        self._stretches.append((length, position, False))
        parts.append(text[position:end])
        self.text = "".join(parts)

    def written(self, offset: int) -> int:
        """The offset in the client's own text."""
        begin, origin, new = max((each for each in self._stretches if each[0] <= offset), key=lambda each: each[0])
        return origin if new else origin + offset - begin


def quote_text(text: str) -> str:
    """A text as SQL, in quotes."""
    return "'" + text.replace("'", "''") + "'"
