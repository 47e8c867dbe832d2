"""Errors as PostgreSQL clients know them: an SQLSTATE, a message, a hint, and a position in the text.

>>> to_wire_error(Refused(ErrorCode.UNKNOWN_TABLE, "there is no table visit", fix="its tables are visits")).sqlstate
'42P01'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tacit.errors import ErrorCode, Refused, SourceLocation, TacitError
from tacit.statuses import STATUSES

SYNTAX = "42601"
UNSUPPORTED = "0A000"
PROTOCOL = "08P01"
PASSWORD = "28P01"  # noqa: S105 - a state, not a password
FORBIDDEN = "28000"
CANCELED = "57014"
STOPPING = "57P01"
INTERNAL = "XX000"
CONNECTIONS = "53300"
NO_MEMORY = "53200"
ABORTED = "25P02"
UNKNOWN_SETTING = "42704"
BAD_VALUE = "22023"
BAD_TEXT = "22P02"
OUT_OF_RANGE = "22003"
UNKNOWN_TABLE = "42P01"
UNKNOWN_STATEMENT = "26000"
UNKNOWN_PORTAL = "34000"
STATEMENT_EXISTS = "42P05"
PORTAL_EXISTS = "42P03"
TABLE_EXISTS = "42P07"
RESERVED = "42939"
CURSOR_EXISTS = "42P03"
NO_TRANSACTION = "25P01"
NOT_SCROLLABLE = "55000"
TOO_MUCH = "54000"


@dataclass
class WireError(Exception):
    """An error as it goes over the wire. `position` counts characters from one; 0 is nowhere. `fatal` ends it all.

    `routine` is what some drivers look at: where in PostgreSQL such an error comes from. `is_postgresql` says that the
    words are PostgreSQL's own. `code` is that of the error of Tacit which it is, if it is one.

    >>> WireError(SYNTAX, "refused [syntax]: this is no SQL", "a question starts with SELECT").shown_message
    'refused [syntax]: this is no SQL; fix: a question starts with SELECT'
    """

    sqlstate: str
    message: str
    hint: str = ""
    position: int = 0
    fatal: bool = False
    routine: str = ""
    detail: str = ""
    is_postgresql: bool = False
    code: ErrorCode | None = None

    @property
    def shown_message(self) -> str:
        """What is wrong and the fix in one line: psqlODBC and what is built on it show a message, and no hint.

        What PostgreSQL says, and what drivers know by its words, stays as it is.
        """
        is_known = self.is_postgresql or self.routine
        return self.message if is_known or not self.hint else f"{self.message}; fix: {self.hint}"

    def fields(self) -> list[tuple[bytes, str]]:
        """The fields of an ErrorResponse."""
        severity = "FATAL" if self.fatal else "ERROR"
        found = [(b"S", severity), (b"V", severity), (b"C", self.sqlstate), (b"M", self.shown_message)]
        if self.detail:
            found.append((b"D", self.detail))
        if self.hint:
            found.append((b"H", self.hint))
        if self.position:
            found.append((b"P", str(self.position)))
        if self.routine:
            found.append((b"R", self.routine))
        return found


def to_wire_error(error: TacitError, text: str = "", written: Callable[[int], int] = int) -> WireError:
    """An error of Tacit as a complaint.

    `text` is what was asked, and `written` finds the offset in what the client wrote for one in it.
    """
    position = 0 if error.at is None else written(text_offset(text, error.at)) + 1
    what = f"{error.verb} [{error.code}]: {error.what}"
    return WireError(sqlstate(error), what, error.fix, position, code=error.code)


def sqlstate(error: TacitError) -> str:
    """The SQLSTATE of an error of Tacit."""
    return STATUSES[error.code].sqlstate


def text_offset(text: str, at: SourceLocation) -> int:
    """How many characters of the text stand before a place."""
    start = 0
    for _ in range(at.line - 1):
        start = text.find("\n", start) + 1
    return start + at.column - 1


def protocol_error(what: str) -> WireError:
    """What is said of bytes that are no message. The connection ends with it."""
    return WireError(PROTOCOL, f"protocol: {what}", "use a PostgreSQL client", fatal=True)


def unsupported_error(what: str, hint: str, position: int = 0) -> WireError:
    """What is said of a part of PostgreSQL that is not there."""
    return WireError(UNSUPPORTED, f"refused [{ErrorCode.UNSUPPORTED}]: {what} is not answered", hint, position)


def multiple_questions_error(count: int) -> WireError:
    """What is said of two questions in one string."""
    error = Refused(ErrorCode.STATEMENT, f"there are {count} questions in one string", fix="send them one at a time")
    return to_wire_error(error)
