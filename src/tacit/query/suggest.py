"""SQL for the fixes of refusals, made of the analyst's own words."""

from __future__ import annotations

import re

from tacit.errors import ErrorCode, Refused, SourceLocation, substitute
from tacit.query.lexer import QUESTION, scan
from tacit.query.nodes import Query, Scalar, find_location

_SIMPLE = re.compile(r"[\w.\"]+(\([^()]*\))?")  # a column, or a call: it needs no brackets


def quote_scalar(scalar: Scalar) -> str:
    """Return a scalar as the question has it."""
    at = find_location(scalar)
    return "this" if at is None else at.written


def clamp(inner: str, *, low: str | None = "0", high: str | None = "1000") -> str:
    """Return a value within bounds. LEAST and GREATEST skip NULL, so of NULL this would be a bound."""
    capped = inner if high is None else f"LEAST({inner}, {high})"
    return capped if low is None else f"GREATEST({low}, {capped})"


def is_known(inner: str) -> str:
    """Return the condition that a value is not NULL."""
    return f"{inner if _SIMPLE.fullmatch(inner) else f'({inner})'} IS NOT NULL"


def clamp_present(inner: str) -> str:
    """Return a value within bounds, and NULL where it is NULL."""
    return f"CASE WHEN {is_known(inner)} THEN {clamp(inner)} END"


def substitute_everywhere(whole: SourceLocation | None, part: SourceLocation | None, sql: str) -> str | None:
    """Return the question with other SQL in the place of a part, wherever the whole stands that it is a part of.

    So a key is the same in GROUP BY and in the select list. With several SELECT only the part itself is changed: a name
    may mean several columns.
    """
    if whole is None or part is None or not whole.text or not whole.start <= part.start <= part.end <= whole.end:
        return None
    tokens = list(scan(whole.text, QUESTION))
    keys = [token.key or token.text for token in tokens]
    inside = [place for place, token in enumerate(tokens) if whole.start <= token.start and token.end <= whole.end]
    if keys.count("SELECT") > 1 or not inside:
        return substitute((part, sql))
    sought = keys[inside[0] : inside[-1] + 1]
    found = whole.text[whole.start : part.start] + sql + whole.text[part.end : whole.end]
    text, place, end = [], 0, 0
    while place <= len(keys) - len(sought):
        if keys[place : place + len(sought)] == sought:
            text += [whole.text[end : tokens[place].start], found]
            end = tokens[place + len(sought) - 1].end
            place += len(sought)
        else:
            place += 1
    return "".join([*text, whole.text[end:]])


def refuse_without_aggregate(query: Query) -> Refused:
    """A refusal of a question that asks for none: it may count the rows."""
    at, what = query.at, "the question asks for no aggregate"
    start = None if at is None else re.match(r"SELECT\b", at.written, re.IGNORECASE)
    if at is None or start is None:
        return Refused(ErrorCode.AGGREGATE, what, at=at, fix="ask for an aggregate")
    counted = f"SELECT COUNT(*),{at.written[start.end() :]}"
    return Refused(ErrorCode.AGGREGATE, what, at=at, fix="count the rows: COUNT(*)", instead=counted)
