"""Temporary views: CREATE TEMP VIEW name AS question. They are kept by the session, and hold nothing but text.

**Rule.** A question that names a view is the question with that view in WITH: it is planned, refused and charged as if
the client had written it so. A view has no name of a table of the policy, or of the catalog. Creating one is free, and
reads nothing.

>>> from tacit.query.lexer import POSTGRESQL, scan
>>> views = SessionViews()
>>> views.defined["n"] = SessionView("n", "SELECT COUNT(*) AS n FROM visits", (), '"n"')
>>> text = "SELECT n FROM n"
>>> [edit.text for edit in views.expand(list(scan(text, POSTGRESQL)))]
['WITH "n" AS (SELECT COUNT(*) AS n FROM visits) ']
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.policy.model import Policy
from tacit.query.lexer import Token
from tacit.query.parameters import quote_text
from tacit.serve.pgwire.catalog_schema import GUARD, quote_name
from tacit.serve.pgwire.edits import Edit
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.sqlstate import (
    RESERVED,
    SYNTAX,
    TABLE_EXISTS,
    TOO_MUCH,
    UNKNOWN_TABLE,
    WireError,
    unsupported_error,
)
from tacit.serve.pgwire.types import type_name

MOST_VIEWS = 32  # of a session
_MOST_CHARACTERS = 100_000  # of all of them
_LONGEST_NAME = 63  # bytes, as in PostgreSQL
_NAMED = frozenset({"word", "name"})
_CREATE_HINT = "CREATE TEMP VIEW my_view AS SELECT ..."
_DROP_HINT = "DROP VIEW my_view"


@dataclass(frozen=True)
class ViewDefinition:
    """CREATE TEMP VIEW, as it is written: its name, the names of its columns, and whether it may replace another."""

    name: str
    columns: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True)
class DroppedViews:
    """DROP VIEW, as it is written: the names, and whether they need not be there."""

    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class SessionView:
    """A view: its question, in which other views are written out, its columns, and what stands before AS in WITH."""

    name: str
    text: str
    fields: tuple[WireColumn, ...]
    heading: str

    @property
    def catalog_statement(self) -> str:
        """The view for the catalog: its columns, and a condition that lets nobody read it."""
        columns = ", ".join(f"NULL::{type_name(each.oid)} AS {quote_name(each.name)}" for each in self.fields)
        return (
            f"CREATE VIEW public.{quote_name(self.name)} AS SELECT {columns} WHERE {quote_text(GUARD)}::text::boolean"
        )


def parse_create_view(found: Sequence[Token]) -> tuple[ViewDefinition, Sequence[Token]]:
    """The view that is created, and the tokens of its question."""
    keys = [token.key for token in found]
    at = 1
    replaces = keys[1:3] == ["OR", "REPLACE"]
    at += 2 * replaces
    at += keys[at : at + 1] in (["LOCAL"], ["GLOBAL"])
    if keys[at : at + 1] not in (["TEMP"], ["TEMPORARY"]) or keys[at + 1 : at + 2] != ["VIEW"]:
        hint = f"nothing is ever written; a session has views: {_CREATE_HINT}"
        raise unsupported_error("CREATE", hint, found[0].start + 1)
    at += 2
    if at >= len(found) or found[at].kind not in _NAMED or "AS" not in keys[at + 1 :]:
        raise _syntax_error(found[-1], _CREATE_HINT)
    name, end = found[at].text, keys.index("AS", at + 1)
    written = found[at + 1 : end]
    columns = tuple(token.text for token in written[1:-1:2])
    if written and [token.key for token in written] != ["(", *_column_keys(written), ")"]:
        raise _syntax_error(written[0], _CREATE_HINT)
    if not 0 < len(name.encode()) <= _LONGEST_NAME:
        raise _syntax_error(found[at], _CREATE_HINT)
    if end + 1 == len(found):
        raise _syntax_error(found[-1], _CREATE_HINT)
    return ViewDefinition(name, columns, replaces), found[end + 1 :]


def _column_keys(written: Sequence[Token]) -> list[str]:
    """The keys that names with commas between them have in brackets; one that fits nothing where they are no names."""
    inner = written[1:-1]
    is_list = len(inner) % 2 and all(token.kind in _NAMED for token in inner[::2])
    return [token.key if place % 2 == 0 else "," for place, token in enumerate(inner)] if is_list else ["no list"]


def parse_drop_view(found: Sequence[Token]) -> DroppedViews:
    """The views that are dropped."""
    keys = [token.key for token in found]
    if keys[1:2] != ["VIEW"]:
        hint = f"nothing is ever written; a session's own views are dropped: {_DROP_HINT}"
        raise unsupported_error("DROP", hint, found[0].start + 1)
    if_exists = keys[2:4] == ["IF", "EXISTS"]
    names = list(found[4 if if_exists else 2 :])
    if names and names[-1].key in {"CASCADE", "RESTRICT"}:
        names.pop()
    if not len(names) % 2 or any(token.kind not in _NAMED for token in names[::2]):
        raise _syntax_error(found[-1], _DROP_HINT)
    if any(token.key != "," for token in names[1::2]):
        raise _syntax_error(names[1], _DROP_HINT)
    return DroppedViews(tuple(token.text for token in names[::2]), if_exists)


@dataclass
class SessionViews:
    """The views of a session, by their names. A transaction that is rolled back leaves them as they were."""

    defined: dict[str, SessionView] = field(default_factory=dict)
    _before: dict[str, SessionView] = field(default_factory=dict)

    def check(self, definition: ViewDefinition, policy: Policy) -> None:
        """Check that a view may have its name, before anything is planned."""
        name = definition.name
        is_catalog = name.lower().startswith("pg_") or name.lower() in {"information_schema", "tacit", "public"}
        if policy.table(name) is not None or policy.table(name.lower()) is not None or is_catalog:
            what = "a view may not have the name of a table of the policy or of the catalog"
            raise WireError(RESERVED, what, "choose another name")
        if name in self.defined and not definition.replaces:
            raise WireError(
                TABLE_EXISTS, "there is a view of that name", "drop it, or write CREATE OR REPLACE TEMP VIEW"
            )
        if len(self.defined) >= MOST_VIEWS and name not in self.defined:
            raise WireError(TOO_MUCH, f"there are {MOST_VIEWS} views already", "drop some")

    def define(self, view: SessionView) -> None:
        """Keep a view."""
        others = sum(len(each.text) for name, each in self.defined.items() if name != view.name)
        if others + len(view.text) > _MOST_CHARACTERS:
            raise WireError(TOO_MUCH, f"the views have more than {_MOST_CHARACTERS:,} characters", "drop some")
        self.defined = self.defined | {view.name: view}

    def drop(self, dropped: DroppedViews) -> None:
        """Forget views."""
        for name in dropped.names:
            if name not in self.defined and not dropped.if_exists:
                raise WireError(UNKNOWN_TABLE, "there is no view of that name", "write DROP VIEW IF EXISTS")
        self.defined = {name: each for name, each in self.defined.items() if name not in dropped.names}

    def clear(self) -> None:
        """Forget all of them."""
        self.defined = {}

    @property
    def byte_size(self) -> int:
        """About how many bytes they take, with those that a rollback would bring back."""
        views = {id(view): view for view in (*self.defined.values(), *self._before.values())}
        columns = sum(each.byte_size for view in views.values() for each in view.fields)
        return columns + sum(sys.getsizeof(view.text) for view in views.values())

    def end(self) -> None:
        """Forget all of them, and those that a rollback would bring back."""
        self.defined = self._before = {}

    def begin(self) -> None:
        """Note what there is when a transaction begins."""
        self._before = self.defined

    def roll_back(self) -> None:
        """Go back to what there was."""
        self.defined = self._before

    def expand(self, found: Sequence[Token]) -> list[Edit]:
        """The edit that puts the views that a question names before it, in WITH.

        What the question itself calls so in its own WITH is that, as in PostgreSQL.
        """
        named = [view for view in self.defined.values() if _names(found, view.name)]
        if not named or not found:
            return []
        listed = ", ".join(f"{view.heading} AS ({view.text})" for view in named)
        first = found[0]
        if first.key == "WITH":
            return [Edit(first.end, first.end, f" {listed},")]
        return [Edit(first.start, first.start, f"WITH {listed} ")]

    @property
    def catalog_views(self) -> tuple[tuple[str, str], ...]:
        """The names of the views, and the statements that make them in the catalog."""
        return tuple((view.name, view.catalog_statement) for view in self.defined.values())


def _names(found: Sequence[Token], name: str) -> bool:
    """Whether a question has a table of this name that its own WITH does not define."""
    places = [place for place, token in enumerate(found) if token.kind in _NAMED and token.text == name]
    keys = [token.key for token in found]
    if any(keys[place + 1 : place + 3] == ["AS", "("] for place in places):
        return False
    return any(place and keys[place - 1] in {"FROM", "JOIN", ",", "("} for place in places)


def make_heading(definition: ViewDefinition) -> str:
    """What stands before AS in WITH: the name, and the names of the columns where they are given."""
    columns = ", ".join(map(quote_name, definition.columns))
    return quote_name(definition.name) + (f" ({columns})" if columns else "")


def _syntax_error(token: Token, hint: str) -> WireError:
    return WireError(SYNTAX, "refused [syntax]: this is not how a view is made or dropped", hint, token.start + 1)
