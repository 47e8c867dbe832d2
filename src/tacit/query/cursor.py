"""The checked tokens of a question, and a cursor that moves along them.

Limits, brackets and tokens that mean another thing when they touch are checked here, before the grammar is.
"""

from __future__ import annotations

from typing import NoReturn

from tacit.errors import ErrorCode, Refused, SourceLocation, substitute
from tacit.query.lexer import QUESTION, LexicalDialect, LexicalError, Token, scan
from tacit.query.refusals import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_TOKENS,
    OPERATOR_REPLACEMENTS,
    OPERATOR_SUGGESTIONS,
    RESERVED,
    SMALLER_FIX,
    UNSUPPORTED_CLAUSES,
    LineIndex,
    refuse_statement,
    refuse_too_large,
    refuse_unsupported,
    to_printable,
)

_OPENINGS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})
_PREFIX = 2  # letters before a quote that may change what it means, as in E'\n'
_SIGNS = "<=> <> <= >= != == || ** :: // ~~* ~~ ~* ~ !~~ !~ ^@ + - * / % ^ = < > ( ) [ ] , . ;"
_ALLOWED = frozenset(_SIGNS.split())


def check_text(text: object) -> str:
    """The text, or Refused where it is none, or too long to look at."""
    if not isinstance(text, str):
        raise Refused(ErrorCode.SYNTAX, f"a question must be a str, got {type(text).__name__}", fix="give it as text")
    if len(text) > MAX_CHARACTERS:
        what = f"the question has {len(text):,} characters; {MAX_CHARACTERS:,} is the most"
        raise Refused(ErrorCode.TOO_LARGE, what, fix=SMALLER_FIX)
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise _no_text(text, problem.start) from None
    if "\0" in text:
        raise _no_text(text, text.index("\0"))
    return text


def _no_text(text: str, index: int) -> Refused:
    at = LineIndex(text)(index, index + 1)
    return Refused(ErrorCode.SYNTAX, "the question contains a character that is not text", at=at, fix="remove it")


def refuse_text(error: LexicalError, places: LineIndex) -> Refused:
    """A refusal of a text that cannot be taken apart, at the place of its fault."""
    at = places(error.start, error.end)
    if error.is_unsupported:
        return refuse_unsupported(error.message, error.fix, at)
    return Refused(ErrorCode.SYNTAX, error.message, at=at, fix=error.fix)


def tokenize(text: str, places: LineIndex, dialect: LexicalDialect) -> tuple[list[Token], dict[int, int]]:
    """Return the tokens, with an end after the last, and for each opening bracket the index of its closing one."""
    tokens: list[Token] = []
    opened: list[int] = []
    closing: dict[int, int] = {}
    try:
        for token in scan(text, dialect):
            _check_token(token, places)
            if tokens and _is_raw(tokens[-1], token):
                tokens.pop()
            _check_neighbors(tokens[-1] if tokens else None, token, places)
            if len(tokens) == MAX_TOKENS:
                at = places(token.start, token.end)
                raise refuse_too_large(f"the question has more than {MAX_TOKENS:,} words and signs", at)
            if token.key == "(":
                opened.append(len(tokens))
                if len(opened) > MAX_DEPTH:
                    at = places(token.start, token.end)
                    raise refuse_too_large(f"the question is nested more than {MAX_DEPTH} deep", at)
            elif token.key == ")":
                if not opened:
                    at = places(token.start, token.end)
                    raise Refused(ErrorCode.SYNTAX, "this closing bracket has no opening one", at=at, fix="remove it")
                closing[opened.pop()] = len(tokens)
            tokens.append(token)
    except LexicalError as error:
        raise refuse_text(error, places) from None
    if opened:
        bracket = tokens[opened[-1]]
        at = places(bracket.start, bracket.end)
        fix = "close it with a bracket, or remove it"
        raise Refused(ErrorCode.SYNTAX, "this bracket is not closed", at=at, fix=fix)
    tokens.append(Token("end", "", "", len(text), len(text)))
    return tokens, closing


def _check_token(token: Token, places: LineIndex) -> None:
    """Refuse a word that is no identifier, and a sign that the grammar does not have."""
    if token.kind == "word" and not token.text.isidentifier():
        fix = "put names with such characters in double quotes"
        at = places(token.start, token.end)
        raise Refused(ErrorCode.SYNTAX, f"{token.text:.40} is not a name", at=at, fix=fix)
    if token.kind != "sign" or token.text in _ALLOWED:
        return
    sign, at = token.text, places(token.start, token.end)
    if sign in OPERATOR_SUGGESTIONS:
        raise refuse_unsupported(*OPERATOR_SUGGESTIONS[sign], at, OPERATOR_REPLACEMENTS.get(sign))
    shown = sign if sign.isprintable() else f"U+{ord(sign):04X}"
    fix = "write a plain space" if sign.isspace() else "remove it; quotes are written ' and \""
    what = f"the character {shown} is not allowed outside of quotes"
    raise Refused(ErrorCode.SYNTAX, what, at=at, fix=fix, instead=" " if sign.isspace() else None)


def _is_raw(before: Token, token: Token) -> bool:
    """Whether a text is written r'...', as BigQuery has it: backslashes mean nothing in it, as in all texts here."""
    return token.kind == "text" and before.end == token.start and before.key == "R"


def _check_neighbors(before: Token | None, token: Token, places: LineIndex) -> None:
    """Refuse a text that does not begin as a question, and two tokens that mean another thing when they touch."""
    if before is None:
        if token.key not in _OPENINGS:
            raise refuse_statement(token.key, places(token.start, token.end))
    elif before.end == token.start:
        if token.kind == "text" and before.kind == "word" and len(before.text) <= _PREFIX:
            fix = "write plain quotes, with a space before them"
            raise refuse_unsupported("a quote with letters before it", fix, places(before.start, token.end))
        if before.kind == "number" and (token.kind in {"word", "number"} or token.key == "."):
            at = places(before.start, token.end)
            raise Refused(ErrorCode.SYNTAX, "this is not a number", at=at, fix="write it as 12, 0.5 or 1e6")


class TokenCursor:
    """The tokens of a question, and how far they have been read."""

    def __init__(self, text: str, dialect: LexicalDialect = QUESTION) -> None:
        self._places = LineIndex(text)
        self.tokens, self.closing = tokenize(text, self._places, dialect)
        self.index = 0
        self.after_column = 0  # where the last column ended

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    def after(self, steps: int = 1) -> str:
        """The key of a token further on."""
        return self.tokens[min(self.index + steps, len(self.tokens) - 1)].key

    def sees(self, *keys: str) -> bool:
        """Whether the next token is one of these."""
        return self.token.key in keys

    def accept(self, *keys: str) -> bool:
        """Whether these words come next, one after the other. If so they are read."""
        if self.token.key != keys[0] or any(self.after(step) != key for step, key in enumerate(keys)):
            return False
        self.index += len(keys)
        return True

    def expect(self, *keys: str) -> None:
        """Read these words, or refuse what stands in their place."""
        for key in keys:
            if not self.accept(key):
                self.refuse_unexpected(key)

    def name(self, what: str) -> str:
        """A name, which is a word that means nothing else, or stands in double quotes."""
        token = self.token
        if token.kind == "text":
            quoted, what = token.text.replace('"', '""'), "a name is written in double quotes or without quotes"
            fix, instead = f'write "{to_printable(quoted)}"', f'"{quoted}"'
            raise Refused(ErrorCode.SYNTAX, what, at=self.here(), fix=fix, instead=instead)
        if token.key in RESERVED - UNSUPPORTED_CLAUSES.keys():
            fix = f'write it at the mark; a name that is a word of SQL stands in quotes: "{token.text}"'
            raise Refused(ErrorCode.SYNTAX, f"expected {what} before {token.text}", at=self.here(), fix=fix)
        if (token.kind != "word" or token.key in RESERVED) and token.kind != "name":
            self.refuse_unexpected(what)
        if token.text in {"", "*"}:
            raise Refused(ErrorCode.SYNTAX, "this is not a name", at=self.here(), fix="write a name between the quotes")
        self.index += 1
        return token.text

    def refuse_unexpected(self, expected: str) -> NoReturn:
        """Refuse the next token: by its name where it starts a part of SQL that is not answered."""
        if self.token.key in UNSUPPORTED_CLAUSES:
            what, fix = UNSUPPORTED_CLAUSES[self.token.key]
            if what != f"{self.token.key} {self.after()}" or not fix.startswith("leave it out"):
                raise refuse_unsupported(what, fix, self.here())
            without = substitute((self.through(self.index, self.index + 1), ""))
            raise Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=self.here(), fix=fix, suggestion=without)
        if self.token.key in OPERATOR_SUGGESTIONS:
            raise refuse_unsupported(*OPERATOR_SUGGESTIONS[self.token.key], self.here())
        fix = self.two_words() or "write it at the mark, or check the words before it"
        if self.token.kind == "end":
            what = f"the question ends where {expected} is expected"
            self.index = max(0, self.index - 1)
            raise Refused(ErrorCode.SYNTAX, what, at=self.here(), fix="add it after the mark")
        raise Refused(ErrorCode.SYNTAX, f"expected {expected} before {self.excerpt()}", at=self.here(), fix=fix)

    def two_words(self) -> str:
        """What to do where a word stands after a column, as in Admit Date > 3 and in GROUP BY ward sex; or nothing."""
        first, second = self.tokens[self.index - 1], self.token
        if self.index != self.after_column or second.kind != "word" or second.key in RESERVED:
            return ""
        one, other = to_printable(first.text), to_printable(second.text)
        return f'write "{one} {other}" if that is one name, a comma between if they are two, or take {other} out'

    def here(self) -> SourceLocation:
        """The place of the next token."""
        return self._places(self.token.start, self.token.end)

    def excerpt(self) -> str:
        """The next token as it is written, or as much of it as fits a sentence."""
        return self.here().words[:20]

    def since(self, start: int) -> SourceLocation:
        """The place of all that was read from the token with this index on."""
        return self._places(self.tokens[start].start, self.tokens[max(start, self.index - 1)].end)

    def through(self, start: int, end: int) -> SourceLocation:
        """The place of the tokens from one index to another, both included."""
        return self._places(self.tokens[start].start, self.tokens[end].end)
