"""The tokens of a SQL text, by one pass over it, in the dialect of questions or of PostgreSQL.

Questions (`QUESTION`) have texts in single quotes, names in double ones or in backticks, and two kinds of comment. A
point between backticks separates names, as in BigQuery. In the dialects of BigQuery and MySQL double quotes are around
texts, and a comment may start with #. Where a backslash in a text means another character, as in Snowflake too, such a
text is refused, unless it is a raw one, r'\\d'. Every other way of quoting is left to `tacit.query.cursor`, which
refuses it, so nothing that is taken for a text here could be read as words by an engine. PostgreSQL's clients
(`POSTGRESQL`) write more: escapes, dollar quotes, numbered parameters, comments in comments. Whatever they send as a
question is read again in the dialect of questions, so where the two differ the question is refused, not misread.

>>> [token.key or token.text for token in scan("SELECT $1, 'it''s' -- done", POSTGRESQL)]
['SELECT', '$1', ',', "it's"]
>>> [token.key or token.text for token in scan("SELECT 1_000, 'it''s' -- done", QUESTION)]
['SELECT', '1000', ',', "it's"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

_COMMENT_MARK = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)|''", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Token(NamedTuple):
    """A word, a name in quotes, a text, a number, a sign, a parameter, or the end.

    `text` is what it says, without quotes. `key` is what the grammar knows it by: a word in capitals, or a sign; it is
    empty for what stands in quotes, which is never a keyword.
    """

    kind: str
    text: str
    key: str
    start: int
    end: int


class LexicalError(Exception):
    """A quote or comment that does not end, or a comment inside a comment where the dialect has none."""

    def __init__(self, message: str, fix: str, start: int, end: int, *, is_unsupported: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.start = start
        self.end = end
        self.is_unsupported = is_unsupported


@dataclass(frozen=True)
class LexicalDialect:
    """What may stand in a text beyond standard SQL.

    Attributes
    ----------
    operators : str
        The operators of more than one character, longest first, with spaces between.
    postgresql_quotes : bool
        Escapes as in E'\\n', bit strings, dollar quotes and numbered parameters as in $1.
    digit_groups : bool
        Underscores between digits, as in 1_000.
    nested_comments : bool
        Comments inside comments.
    folds_words : bool
        Words outside of quotes are lower case, and may contain a dollar sign.
    backticks : bool
        Names in backticks, several with points between, as in `project.clinic.visits`.
    quoted_texts : bool
        Texts in double quotes, and comments that start with #.
    backslashes : bool
        A backslash in a text means another character than itself; such texts are refused.
    triple_quotes : bool
        Texts in three quotes, which are refused.
    spaced_comments : bool
        Only -- with a space after it starts a comment, and what stands in /*! */ is read; others are refused.
    """

    operators: str
    postgresql_quotes: bool = False
    digit_groups: bool = False
    nested_comments: bool = False
    folds_words: bool = False
    backticks: bool = False
    quoted_texts: bool = False
    backslashes: bool = False
    triple_quotes: bool = False
    spaced_comments: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of one token; a group's name is the token's kind."""
        space = r"\s++" if self.postgresql_quotes else r"[ \t\r\n]++"
        quotes = (
            r"|(?P<escaped>[eE]'(?:[^'\\]|''|\\.)*+')"
            r"|(?P<other>(?:[bBxXnN]|[uU]&)'[^']*+(?:''[^']*+)*+')"
            r"|(?P<dollar>\$(?:[^\W\d]\w*+)?\$)"
            r"|(?P<parameter>\$[0-9]{1,5})"
        )
        digits = r"[0-9]++(?:_[0-9]++)*+" if self.digit_groups else r"[0-9]++"
        word = r"[\w$]*+" if self.folds_words else r"\w*+"
        operators = "|".join(map(re.escape, self.operators.split()))
        line = r"(?:--|\#)" if self.quoted_texts else "--"
        quoted = "quoted" if self.quoted_texts else "name"
        return re.compile(
            rf"(?P<space>{space}|{line}[^\r\n]*+)"
            r"|(?P<comment>/\*)" + (quotes if self.postgresql_quotes else "") + r"|(?P<text>'[^']*+(?:''[^']*+)*+')"
            rf'|(?P<{quoted}>"[^"]*+(?:""[^"]*+)*+")'
            + (r"|(?P<backticks>`[^`]*+(?:``[^`]*+)*+`)" if self.backticks else "")
            + rf"|(?P<number>(?:{digits}(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"
            rf"|(?P<word>[^\W\d]{word})"
            rf"|(?P<sign>{operators}|.)",
            re.DOTALL,
        )


QUESTION = LexicalDialect(
    operators="<=> ->> !~~ ~~* <> <= >= != == || ** :: // -> => := && |> << >> ~~ ~* !~ ^@",
    digit_groups=True,
    backticks=True,
)
BIGQUERY = replace(QUESTION, quoted_texts=True, backslashes=True, triple_quotes=True)
SNOWFLAKE = replace(QUESTION, backslashes=True)
MYSQL = replace(QUESTION, quoted_texts=True, backslashes=True, spaced_comments=True)
POSTGRESQL = LexicalDialect(
    operators="!~~* !~* !~~ ~~* ->> :: <= >= <> != || !~ ~* ~~ -> @> <@",
    postgresql_quotes=True,
    nested_comments=True,
    folds_words=True,
)


def scan(text: str, dialect: LexicalDialect) -> Iterator[Token]:
    """Yield the tokens of a text, without an end; raise LexicalError where a quote or comment is not closed."""
    match_token = dialect.pattern.match
    position = 0
    while position < len(text):
        match = match_token(text, position)
        assert match is not None
        kind = match.lastgroup
        assert kind is not None
        start, position = position, match.end()
        _refuse_other_meaning(text, start, position, kind, dialect)
        if kind == "comment":
            position = _skip_comment(text, start, dialect)
        elif kind == "dollar":
            position = _skip_dollar_quote(text, start, match[0])
            yield Token(kind, text[start:position], "", start, position)
        elif kind == "backticks":
            yield from _split_backticks(match[0], start)
        elif kind != "space":
            yield _make_token(kind, match[0], start, dialect)


def _refuse_other_meaning(text: str, start: int, end: int, kind: str, dialect: LexicalDialect) -> None:
    """Refuse what means something else in the dialect: texts with a backslash or in three quotes, and comments."""
    written = text[start:end]
    what = fix = ""
    if kind in {"text", "quoted"}:
        before = text[max(0, start - 2) : start]
        is_raw = before[-1:] in {"r", "R"} and not (before[:-1].isalnum() or before[:-1] == "_")
        if dialect.backslashes and written.endswith("\\", 0, -1):
            what, fix = "a quote after a backslash", f"write the quote twice: {2 * written[-1]}"
        elif dialect.backslashes and not is_raw and "\\" in written:
            what, fix = "a text with a backslash", "write the character that it stands for"
        elif dialect.triple_quotes and written.startswith(3 * written[0]):
            what, fix = "a text in three quotes", f"write one: {written[0]}abc{written[0]}"
    elif dialect.spaced_comments and written.startswith("--") and written[2:3].strip():
        what, fix = "-- without a space after it", "put a space after it, or between two minus signs"
    elif dialect.spaced_comments and kind == "comment" and text.startswith("!", end):
        what, fix = "a comment that MySQL runs", "write what stands in it, or leave it out"
    if what:
        raise LexicalError(what, fix, start, end, is_unsupported=True)


def _make_token(kind: str, written: str, start: int, dialect: LexicalDialect) -> Token:
    end = start + len(written)
    match kind:
        case "text":
            return Token(kind, written[1:-1].replace("''", "'"), "", start, end)
        case "quoted":
            return Token("text", written[1:-1].replace('""', '"'), "", start, end)
        case "escaped":
            return Token(kind, _ESCAPE.sub(_unescape, written[2:-1]), "", start, end)
        case "name":
            return Token(kind, written[1:-1].replace('""', '"'), "", start, end)
        case "word":
            # "ſELECT" in capitals is SELECT, but to no engine
            key = written.upper() if written.isascii() else ""
            return Token(kind, written.lower() if dialect.folds_words else written, key, start, end)
        case "number":
            return Token(kind, written.replace("_", ""), "", start, end)
        case "sign":
            if written in {"'", '"'} or (written == "`" and dialect.backticks):
                fix = f"close it with {written}, or remove it"
                raise LexicalError("this quote is not closed", fix, start, end)
            return Token(kind, written, written, start, end)
    return Token(kind, written, "", start, end)


def _split_backticks(written: str, start: int) -> Iterator[Token]:
    """Yield the names between two backticks, and the points between them."""
    position = start + 1
    for number, name in enumerate(written[1:-1].split(".")):
        if number:
            yield Token("sign", ".", ".", position - 1, position)
        end = position + len(name)
        yield Token("name", name.replace("``", "`"), "", position, end)
        position = end + 1


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


def _skip_comment(text: str, start: int, dialect: LexicalDialect) -> int:
    """Return where the comment that starts here ends."""
    if dialect.nested_comments:
        depth, position = 1, start + 2
        while depth and position:
            mark = _COMMENT_MARK.search(text, position)
            depth += 1 if mark is not None and mark[0] == "/*" else -1
            position = 0 if mark is None else mark.end()
    else:
        position = text.find("*/", start + 2) + 2
        position = 0 if position < start + 2 else position
        inner = text.find("/*", start + 2, max(0, position - 2))
        if inner >= 0:
            fix = "close the first one before"
            raise LexicalError("a comment in a comment", fix, inner, inner + 2, is_unsupported=True)
    if not position:
        raise LexicalError("this comment is not closed", "close it with */, or remove it", start, start + 2)
    return position


def _skip_dollar_quote(text: str, start: int, tag: str) -> int:
    """Return where a text between two tags such as $a$ ends."""
    end = text.find(tag, start + len(tag))
    if end < 0:
        raise LexicalError("this quote is not closed", f"close it with {tag[:40]}", start, start + len(tag))
    return end + len(tag)
