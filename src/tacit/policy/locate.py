"""Where a key or a value stands in a TOML text. The parser of the standard library does not say.

The text is known to be valid TOML when it comes here, so the scanner only has to tell tokens apart. Where it loses its
way it stops, and what it did not reach is said to stand at the nearest thing around it that it did reach.

>>> print(TomlFile("[tables.visits]\\nunit = 7", "clinic.toml").place(("tables", "visits", "unit")))
clinic.toml, line 2, column 8
    unit = 7
           ^
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tacit.errors import SourceLocation

KeyPath = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?""""{0,2}'
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}\n#]+")
_WIDEST = 120


class Span(NamedTuple):
    """The characters from `start` up to `end`."""

    start: int
    end: int


class KeyPosition(NamedTuple):
    """Where a path stands: its key, and its value unless that is a table under a header."""

    key: Span
    value: Span | None = None


@dataclass(frozen=True)
class TomlFile:
    """A TOML text and the name it goes by."""

    text: str
    name: str

    @cached_property
    def spots(self) -> dict[KeyPath, KeyPosition]:
        """Every path of the text."""
        return find_positions(self.text)

    def place(self, path: KeyPath, *, key: bool = False) -> SourceLocation:
        """The place of the path's value, or of its key; of the nearest table around it if the path is not there."""
        for end in range(len(path), 0, -1):
            spot = self.spots.get(path[:end])
            if spot is not None:
                whole = end == len(path) and not key
                return self.at(*(spot.value if whole and spot.value else spot.key))
        return self.at(0, 0)

    def at(self, start: int, end: int) -> SourceLocation:
        """The place of a stretch, as far as it stays on its first line."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        last = len(self.text) if last < 0 else last
        end = max(start, min(end, last))
        shown = self.text[first : min(last, max(end, first + _WIDEST))].replace("\t", " ").rstrip()
        return SourceLocation(
            self.text.count("\n", 0, start) + 1, start - first + 1, shown, max(1, end - start), self.name
        )


def find_positions(text: str) -> dict[KeyPath, KeyPosition]:
    """Every path of a valid TOML text; of any other text, those up to where it stops making sense."""
    scanner = _Scanner(text)
    with suppress(_Lost, RecursionError):
        scanner.document()
    return scanner.found


def format_path(path: KeyPath) -> str:
    """The path as TOML writes it, with [n] for the nth of a list: tables."my visits".columns.ward.values[2]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + format_key(part if len(part) <= _WIDEST else part[:_WIDEST] + "...")
    return text


def format_key(text: str) -> str:
    """The text as a TOML key, quoted only where it must be."""
    return text if _BARE.fullmatch(text) else quote_string(text)


def quote_string(text: str) -> str:
    """The text as a TOML string on one line, with nothing in it that a terminal might obey."""
    return '"' + "".join(_escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


class _Lost(Exception):
    """The text is not TOML from here on."""


class _Scanner:
    """One pass over the text, noting where each path stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.found: dict[KeyPath, KeyPosition] = {}
        self.lengths: dict[KeyPath, int] = {}  # of arrays of tables, so far

    def document(self) -> None:
        """Headers and entries, in any order."""
        table: KeyPath = ()
        while True:
            self.skip(_GAP)
            if self.position >= len(self.text):
                return
            table = self.header() if self.sees("[") else self.entry(table)

    def header(self) -> KeyPath:
        """[a.b] or [[a.b]]; gives the path of the table that it opens."""
        several = self.sees("[[")
        self.position += 2 if several else 1
        keys = self.keys()
        self.take("]]" if several else "]")
        path = self.note((), keys[:-1])
        name, key = keys[-1]
        path += (name,)
        if several:
            self.found.setdefault(path, KeyPosition(key))
            self.lengths[path] = self.lengths.get(path, 0) + 1
            path = self.latest(path)
        self.found[path] = KeyPosition(key)  # a header of its own says more than one that only passed through
        return path

    def entry(self, table: KeyPath) -> KeyPath:
        """a.b = value; gives back the table that it stands in."""
        keys = self.keys()
        self.take("=")
        name, key = keys[-1]
        path = (*self.note(table, keys[:-1]), name)
        self.found[path] = KeyPosition(key, self.value(path))
        return table

    def note(self, path: KeyPath, keys: Sequence[tuple[str, Span]]) -> KeyPath:
        """Go down the keys, noting the tables that come into being on the way."""
        for name, key in keys:
            path += (name,)
            self.found.setdefault(path, KeyPosition(key))
            path = self.latest(path)
        return path

    def latest(self, path: KeyPath) -> KeyPath:
        """The last table so far of an array of tables; any other path as it is."""
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def keys(self) -> list[tuple[str, Span]]:
        """One key or several with dots between."""
        keys = [self.key()]
        while self.sees("."):
            self.take(".")
            keys.append(self.key())
        return keys

    def key(self) -> tuple[str, Span]:
        """A bare or quoted key."""
        self.skip(_SPACE)
        is_quoted = self.sees('"') or self.sees("'")
        stretch = self.token(_STRING if is_quoted else _BARE)
        self.skip(_SPACE)
        name = self.text[stretch.start : stretch.end]
        return (_unquote(name) if is_quoted else name), stretch

    def value(self, path: KeyPath) -> Span:
        """A value, with what is inside it."""
        self.skip(_SPACE)
        start = self.position
        if self.sees("["):
            self.items(path)
        elif self.sees("{"):
            self.inline(path)
        elif self.sees('"') or self.sees("'"):
            self.token(_STRING)
        else:
            plain = self.token(_PLAIN)
            self.position = start + len(self.text[plain.start : plain.end].rstrip())
        return Span(start, self.position)

    def items(self, path: KeyPath) -> None:
        """[a, b, c], over as many lines as it likes."""
        self.take("[")
        index = 0
        while not self.closes("]"):
            item = self.value((*path, index))
            self.found[(*path, index)] = KeyPosition(item, item)
            self.comma()
            index += 1

    def inline(self, path: KeyPath) -> None:
        """{ a = 1, b.c = 2 }."""
        self.take("{")
        while not self.closes("}"):
            self.entry(path)
            self.comma()

    def closes(self, mark: str) -> bool:
        """Whether the mark comes next; if so, go past it."""
        self.skip(_GAP)
        if not self.sees(mark):
            return False
        self.position += len(mark)
        return True

    def comma(self) -> None:
        """Go past a comma if there is one."""
        self.skip(_GAP)
        if self.sees(","):
            self.position += 1

    def sees(self, mark: str) -> bool:
        """Whether the mark comes next."""
        return self.text.startswith(mark, self.position)

    def take(self, mark: str) -> None:
        """Go past the mark."""
        if not self.sees(mark):
            raise _Lost
        self.position += len(mark)

    def skip(self, pattern: re.Pattern[str]) -> None:
        """Go past what may be there."""
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def token(self, pattern: re.Pattern[str]) -> Span:
        """Go past what must be there."""
        match = pattern.match(self.text, self.position)
        if match is None:
            raise _Lost
        self.position = match.end()
        return Span(*match.span())


def _unquote(token: str) -> str:
    """What a quoted key says."""
    try:
        return str(tomllib.loads(f"key = {token}")["key"])
    except tomllib.TOMLDecodeError as error:
        raise _Lost from error
