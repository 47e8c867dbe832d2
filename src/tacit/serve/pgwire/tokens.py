"""The tokens of what PostgreSQL clients send, and the statements between semicolons."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.query.lexer import POSTGRESQL, LexicalError, Token, scan
from tacit.serve.pgwire.sqlstate import SYNTAX, TOO_MUCH, WireError

MOST_CHARACTERS = 60_000  # of one string of statements; a question may have 50,000
_MOST_TOKENS = 12_000  # pgjdbc lists all types in one statement


def tokenize_statements(text: str) -> list[Token]:
    """Return the tokens of a text; a quote or comment that never ends is an error."""
    if len(text) > MOST_CHARACTERS:
        what = f"the text has {len(text):,} characters; {MOST_CHARACTERS:,} is the most"
        raise WireError(TOO_MUCH, what, "ask several smaller questions")
    tokens: list[Token] = []
    try:
        for token in scan(text, POSTGRESQL):
            tokens.append(token)
            if len(tokens) > _MOST_TOKENS:
                raise WireError(TOO_MUCH, f"the text has more than {_MOST_TOKENS:,} words and signs", "ask for less")
    except LexicalError as error:
        raise WireError(SYNTAX, f"refused [syntax]: {error.message}", error.fix, error.start + 1) from None
    return tokens


def split_statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """The statements between semicolons; empty ones are left out."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.key == ";":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def replace_limit(text: str) -> str:
    """A question with LIMIT 0 in place of the limit that it ends with, if it has one.

    >>> replace_limit("SELECT * FROM (SELECT age FROM visits LIMIT 5) AS q ORDER BY age OFFSET 3 LIMIT 10")
    'SELECT * FROM (SELECT age FROM visits LIMIT 5) AS q ORDER BY age LIMIT 0'
    """
    depth, end = 0, len(text)
    for token in tokenize_statements(text):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and token.key in {"LIMIT", "OFFSET", "FETCH"}:
            end = token.start
            break
    return f"{text[:end].rstrip()} LIMIT 0"
