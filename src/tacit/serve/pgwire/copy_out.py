r"""COPY (question) TO STDOUT: the rows of an answer as text, CSV or binary, in the formats of PostgreSQL.

The question in the parentheses is asked and charged as it would be alone; only how its rows are sent is another.

>>> from tacit.query.lexer import POSTGRESQL, scan
>>> inner, how = parse_copy(list(scan("COPY (SELECT 1 AS x) TO STDOUT (FORMAT csv, HEADER)", POSTGRESQL)))
>>> [token.text for token in inner], how.kind, how.header
(['select', '1', 'as', 'x'], 'csv', True)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.query.lexer import Token
from tacit.serve.pgwire import protocol
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.sqlstate import SYNTAX, UNSUPPORTED, WireError
from tacit.serve.pgwire.types import encode

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)
_ESCAPES = {b: b"\\" + e for b, e in zip(b"\b\f\n\r\t\v\\", (b"b", b"f", b"n", b"r", b"t", b"v", b"\\"), strict=True)}
_TRUE = frozenset({"", "true", "on", "1"})
_HINT = "COPY (SELECT ...) TO STDOUT WITH (FORMAT csv, HEADER)"


@dataclass(frozen=True)
class CopyFormat:
    """How rows are written. `null` stands for NULL; `quote` and `escape` are those of CSV."""

    kind: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'

    @property
    def is_binary(self) -> bool:
        """Whether values are sent in their binary form."""
        return self.kind == "binary"


def parse_copy(found: Sequence[Token]) -> tuple[Sequence[Token], CopyFormat]:
    """The tokens of the question, and the format; or an error for what is not taken."""
    if len(found) < 2 or found[1].key != "(":
        what = "refused [unsupported]: COPY of a table would show rows as they are"
        raise WireError(UNSUPPORTED, what, "COPY (SELECT COUNT(*) FROM ...) TO STDOUT", found[0].start + 1)
    depth, end = 0, 0
    for place, token in enumerate(found[1:], 1):
        depth += (token.key == "(") - (token.key == ")")
        if depth == 0:
            end = place
            break
    words = [token.key for token in found[end + 1 : end + 3]]
    if not end or words != ["TO", "STDOUT"]:
        raise _syntax_error(found[min(end + 1, len(found) - 1)])
    return found[2:end], _parse_options(found[end + 3 :])


def _parse_options(found: Sequence[Token]) -> CopyFormat:
    """The options after STDOUT: in parentheses, or in the order of old as in CSV HEADER."""
    rest = list(found[1:] if found and found[0].key == "WITH" else found)
    if rest and rest[0].key == "(":
        if rest[-1].key != ")":
            raise _syntax_error(rest[-1])
        options = _split_options(rest[1:-1])
    else:
        options = list(_split_old_options(rest))
    kind = next((value.lower() for name, value, _ in options if name == "FORMAT"), "text")
    if kind not in {"text", "csv", "binary"}:
        raise WireError(SYNTAX, f"refused [syntax]: there is no format {kind[:20]}", _HINT)
    made = CopyFormat(kind, delimiter=",", null="") if kind == "csv" else CopyFormat(kind)
    for name, value, token in options:
        match name:
            case "FORMAT" | "ENCODING" if name == "FORMAT" or value.lower().replace("-", "") == "utf8":
                pass
            case "HEADER" if kind != "binary":
                made = replace(made, header=value.lower() in _TRUE)
            case "NULL" if kind != "binary":
                made = replace(made, null=value)
            case "DELIMITER" if kind != "binary" and len(value.encode()) == 1:
                made = replace(made, delimiter=value)
            case "QUOTE" if kind == "csv" and len(value.encode()) == 1:
                made = replace(made, quote=value, escape=value if made.escape == '"' else made.escape)
            case "ESCAPE" if kind == "csv" and len(value.encode()) == 1:
                made = replace(made, escape=value)
            case _:
                raise _syntax_error(token)
    return made


_Option = tuple[str, str, Token]


def _split_options(found: Sequence[Token]) -> list[_Option]:
    """name [value], ..."""
    options: list[_Option] = []
    part: list[Token] = []
    for token in [*found, None]:
        if token is not None and token.key != ",":
            part.append(token)
            continue
        if not 1 <= len(part) <= 2:
            raise _syntax_error(part[-1] if part else found[0])
        options.append((part[0].key, part[1].text if len(part) > 1 else "", part[0]))
        part = []
    return options


def _split_old_options(found: Sequence[Token]) -> Iterator[_Option]:
    """BINARY, CSV, HEADER, and DELIMITER, NULL, QUOTE and ESCAPE with AS and a text."""
    place = 0
    while place < len(found):
        token = found[place]
        place += 1
        if token.key in {"BINARY", "CSV"}:
            yield "FORMAT", token.key, token
        elif token.key == "HEADER":
            yield "HEADER", "", token
        elif token.key in {"DELIMITER", "NULL", "QUOTE", "ESCAPE"}:
            place += place < len(found) and found[place].key == "AS"
            if place == len(found):
                raise _syntax_error(token)
            yield token.key, found[place].text, token
            place += 1
        else:
            raise _syntax_error(token)


def encode_copy(how: CopyFormat, fields: Sequence[WireColumn], rows: Sequence[Sequence[Any]]) -> Iterator[bytes]:
    """The messages of COPY, without the last, which says that it is complete."""
    yield protocol.encode_copy_out(binary=how.is_binary, columns=len(fields))
    first = _SIGNATURE if how.is_binary else b""  # which comes in one message with what follows
    if how.header:
        yield protocol.encode_copy_data(_write_line(how, [field.name.encode() for field in fields]))
    for row in rows:
        values = [encode(value, each.oid, binary=how.is_binary) for each, value in zip(fields, row, strict=True)]
        yield protocol.encode_copy_data(first + (_pack(values) if how.is_binary else _write_line(how, values)))
        first = b""
    if how.is_binary:
        yield protocol.encode_copy_data(first + _END)
    yield protocol.COPY_DONE


def _pack(values: Sequence[bytes | None]) -> bytes:
    parts = [struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in values]
    return struct.pack("!h", len(values)) + b"".join(parts)


def _write_line(how: CopyFormat, values: Sequence[bytes | None]) -> bytes:
    null = how.null.encode()
    if how.kind != "csv":
        cells = [null if value is None else _escape(how, value) for value in values]
    elif values == [b"\\."]:  # alone in its line it would end the data
        cells = [_quote(how, b"\\.", must=True)]
    else:
        cells = [null if value is None else _quote(how, value) for value in values]
    return how.delimiter.encode().join(cells) + b"\n"


def _escape(how: CopyFormat, value: bytes) -> bytes:
    """A value of the text format: what would end it or a line, and backslashes, are escaped."""
    (delimiter,) = how.delimiter.encode()
    escapes = {delimiter: b"\\" + how.delimiter.encode()} | _ESCAPES
    return b"".join(escapes.get(byte, bytes((byte,))) for byte in value)


def _quote(how: CopyFormat, value: bytes, *, must: bool = False) -> bytes:
    """A value of CSV: in quotes where it could be read as something else."""
    quote, escape = how.quote.encode(), how.escape.encode()
    special = (how.delimiter.encode(), quote, b"\n", b"\r")
    if not must and value != how.null.encode() and not any(mark in value for mark in special):
        return value
    doubled = value.replace(escape, escape + escape) if escape != quote else value
    return quote + doubled.replace(quote, escape + quote) + quote


def _syntax_error(token: Token) -> WireError:
    return WireError(SYNTAX, "refused [syntax]: this is not what COPY takes here", _HINT, token.start + 1)
