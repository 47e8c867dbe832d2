"""Refusals of clauses that depend on the rows of several units, in a subquery over rows."""

from __future__ import annotations

import re

from tacit.errors import ErrorCode, Refused
from tacit.query.nodes import Query, find_location

_TAIL = re.compile(r"(\s+(LIMIT|OFFSET)\s+\d+(\s+ROWS?)?)+", re.IGNORECASE)  # after all else of a query


def refuse_some_rows(query: Query, word: str) -> Refused:
    """A refusal of LIMIT or OFFSET in a subquery: which rows it takes depends on other people's."""
    what, at = f"{word} in a subquery is not answered", query.at
    fix = "leave it out: which rows come first depends on other people's rows"
    tail = None if at is None else _TAIL.match(at.text, at.end)
    if at is None or tail is None:
        return Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix)
    suggestion = at.text[: at.end] + at.text[tail.end() :]
    return Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix, suggestion=suggestion)


def refuse_having(query: Query) -> Refused:
    """A refusal of HAVING without groups: rows are filtered with WHERE."""
    what, at = "HAVING filters groups", query.at
    having = None if query.having is None else find_location(query.having)
    word = None if having is None else re.search(r"\bHAVING\W*$", having.text[: having.start], re.IGNORECASE)
    if having is None or word is None or query.where is not None:
        return Refused(ErrorCode.AGGREGATE, what, at=at, fix="filter the rows")
    suggestion = f"{having.text[: word.start()]}WHERE{having.text[word.start() + len('HAVING') :]}"
    return Refused(ErrorCode.AGGREGATE, what, at=at, fix="filter rows with WHERE", suggestion=suggestion)


def refuse_over_rows(query: Query) -> None:
    """Refuse what only released tables have: it would compare the rows of one unit with those of others."""
    if query.sets is not None:
        what, fix = "grouping sets in a subquery over rows are not answered", "group by one list of keys there"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=query.at, fix=fix)
    if query.distinct:
        what, fix = "DISTINCT of aggregates in a subquery over rows is not answered", "leave it out"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=query.at, fix=fix)
    if query.qualify is not None:
        what, fix = "QUALIFY in a subquery over rows is not answered", "filter rows, or groups"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=query.at, fix=fix)
