"""The cursors of a session: DECLARE names a question, and FETCH takes rows of its answer.

**Theorem.** A cursor is charged at most once, and not before its first FETCH or MOVE. Proof: DECLARE plans, which is
free; only `OpenCursor.fetch` asks, with the settings of the DECLARE, and it keeps the outcome, of which all later rows
are taken.

**Rule.** The question of a cursor is the one that its DECLARE planned: its text is kept with parameters and views
written out, and for a catalog statement the views are kept, so a view that changes later changes no open cursor.

**Rule.** A session has at most `MOST_CURSORS`, and their rows count among those that it holds for later.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.serve.pgwire.catalog_backend import BoundParameters
from tacit.serve.pgwire.cursor_statements import CursorDeclaration, Direction, FetchCommand
from tacit.serve.pgwire.edits import EditedText
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.results import EncodedRows, Rows, StatementResult
from tacit.serve.pgwire.settings import SessionSettings
from tacit.serve.pgwire.sqlstate import (
    CURSOR_EXISTS,
    NO_TRANSACTION,
    NOT_SCROLLABLE,
    TOO_MUCH,
    UNKNOWN_PORTAL,
    WireError,
)
from tacit.serve.pgwire.statements import Statement

MOST_CURSORS = 16  # of a session, as it may have portals
_MOST_CHARACTERS = 200_000  # of their questions together, with the views that they name


@dataclass
class OpenCursor:
    """A cursor: its question with the settings of its DECLARE, its answer once there is one, and where it stands.

    `edited` is the text of the question with parameters and views written out; a catalog statement is as the client
    wrote it, and `views` are the views of the session that it sees.
    `position` counts rows from 1: 0 is before the first, and one more than there are is after the last.
    """

    declaration: CursorDeclaration
    statement: Statement
    edited: EditedText
    views: tuple[tuple[str, str], ...]
    values: Sequence[Any]
    bound: BoundParameters
    settings: SessionSettings
    fields: tuple[WireColumn, ...]
    in_transaction: bool
    outcome: StatementResult | None = None
    position: int = 0

    @property
    def byte_size(self) -> int:
        """About how many bytes it takes beside its rows."""
        views = sum(sys.getsizeof(text) for _, text in self.views)
        return self.statement.byte_size + self.bound.byte_size + views + sum(each.byte_size for each in self.fields)

    @property
    def size(self) -> int:
        """How many characters it keeps."""
        return count_characters(self.edited, self.views)

    async def fetch(
        self, command: FetchCommand, ask: Callable[[OpenCursor], Awaitable[StatementResult]]
    ) -> StatementResult:
        """Take rows, and go where they end. The first call asks."""
        first = self.outcome is None
        if not self.declaration.can_scroll and command.count < 0:
            raise _scroll_error()  # before it is asked
        if self.outcome is None:
            self.outcome = await ask(self)
        outcome = self.outcome
        shown, position = select_rows(self.position, len(outcome.rows), command)
        if not self.declaration.can_scroll and (position < self.position or (shown and shown[0] <= self.position)):
            raise _scroll_error()
        self.position = position
        rows = _take(outcome.rows, shown)
        notices = outcome.notices if first else ()
        if command.moves:
            return StatementResult(f"MOVE {len(shown)}", notices=notices)
        return StatementResult("FETCH", outcome.fields, rows, notices)


def count_characters(edited: EditedText, views: tuple[tuple[str, str], ...]) -> int:
    """How many characters a question has, and the views that it sees."""
    return len(edited.text) + sum(len(text) for _, text in views)


def _scroll_error() -> WireError:
    return WireError(NOT_SCROLLABLE, "cursor can only scan forward", "declare it with SCROLL")


def select_rows(position: int, count: int, command: FetchCommand) -> tuple[range, int]:
    """Which of `count` rows, counted from 1, are taken from a position, and the position after that.

    As PostgreSQL has it: forward goes to the last row that is taken, or after the last there is; a count of 0 is the
    row where the cursor stands.
    """
    if command.direction is Direction.FORWARD and command.count:
        step = 1 if command.count > 0 else -1
        target = max(0, min(count + 1, position + command.count))
        return range(position + step, target + (step if 0 < target <= count else 0), step), target
    if command.direction is Direction.ABSOLUTE:
        target = command.count if command.count >= 0 else count + 1 + command.count
    else:
        target = position + (command.count if command.direction is Direction.RELATIVE else 0)
    target = max(0, min(count + 1, target))
    return range(target, target + (0 < target <= count)), target


def _take(rows: Rows | EncodedRows, places: range) -> Rows | EncodedRows:
    """The rows at places that are counted from 1."""
    if isinstance(rows, EncodedRows):
        return EncodedRows([rows[place - 1] for place in places], rows.size)
    return [rows[place - 1] for place in places]


@dataclass
class Cursors:
    """The open cursors of a session, by their names."""

    opened: dict[str, OpenCursor] = field(default_factory=dict)

    def check(self, declaration: CursorDeclaration, size: int, *, in_transaction: bool) -> None:
        """Check that a cursor of so many characters may be declared, before anything is planned for it."""
        if not in_transaction and not declaration.is_held:
            what = "DECLARE CURSOR can only be used in transaction blocks"
            raise WireError(NO_TRANSACTION, what, "BEGIN first, or declare it WITH HOLD")
        if declaration.name in self.opened:
            raise WireError(CURSOR_EXISTS, "there is a cursor of that name", "close it first")
        if len(self.opened) >= MOST_CURSORS:
            raise WireError(TOO_MUCH, f"there are {MOST_CURSORS} cursors already", "close some")
        if sum(each.size for each in self.opened.values()) + size > _MOST_CHARACTERS:
            raise WireError(TOO_MUCH, "the questions of the cursors are too long together", "close some")

    def find(self, name: str) -> OpenCursor:
        """The cursor of a name."""
        if name not in self.opened:
            raise WireError(UNKNOWN_PORTAL, "there is no cursor of that name", "declare it in this transaction")
        return self.opened[name]

    def close(self, name: str) -> None:
        """Forget a cursor; all of them where there is no name."""
        if name:
            self.find(name)
            del self.opened[name]
        else:
            self.opened.clear()

    def end_transaction(self, *, is_committed: bool) -> None:
        """Close the cursors of the transaction. Those WITH HOLD stay if it was committed."""
        self.opened = {
            name: each
            for name, each in self.opened.items()
            if not each.in_transaction or (is_committed and each.declaration.is_held)
        }
        for each in self.opened.values():
            each.in_transaction = False
