"""Stored types that no declared type is read from, each with the reason and with what to store in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tacit.query.types import Type

_NESTED = "holds several values; store one in each row, in a table of its own"
# What the name of a stored type begins with, in small letters, in DuckDB, PostgreSQL and Spark.
_REASONS = {
    r".*\[[0-9]*\]|list|struct|map|union|array|json|jsonb|variant|hstore|record": _NESTED,
    r"time\b|time_|timetz": "a time of day; store its hour, or its minutes since midnight, as an integer",
    r"interval": "a length of time; store its days or seconds as a number",
    r"blob|bytea|binary|bit\b|bit varying|varbinary": "bytes; store a text or a number",
    r"uhugeint|bignum|varint": "an integer of more than 64 bits; store it as BIGINT or as text",
    r"money": "an amount of the server's currency; store it as numeric",
    r".*nondeterministic collation|.*collate": "a text in a collation, in which others may equal it; store it without",
    r"geometry|point|line|lseg|box|path|polygon|circle": "a shape; store its coordinates as numbers",
    r"inet|cidr|macaddr|xml|tsvector|bpchar|name": "store it as text",
}
_OTHERWISE = "a type that is not read; store it as a number, a text, a date or a timestamp"


@dataclass(frozen=True)
class LeftOut:
    """A column that cannot be declared: the type it is stored in, and why."""

    stored: str

    def __str__(self) -> str:
        return f"stored as {' '.join(self.stored.split())[:80]}: {explain_unread(self.stored)}"


def explain_unread(stored: str) -> str:
    """Why a stored type is not read, and what to store.

    >>> explain_unread("INTERVAL")
    'a length of time; store its days or seconds as a number'
    """
    return next((why for kind, why in _REASONS.items() if re.match(kind, stored.lower())), _OTHERWISE)


def suggest_type(kind: Type | None, stored: str) -> str:
    """What to do about a column that is declared as a type in which it is not stored."""
    if kind is None:
        return f"leave it out: {LeftOut(stored)}"
    return f"declare it as {kind}, or convert the data"
