"""Every error Tacit raises on purpose: a code, what is wrong, where, and how to fix it.

>>> print(Refused(ErrorCode.UNBOUNDED, "SUM(cost * age) has no bound", fix="clamp it: SUM(LEAST(cost * age, 5000))"))
refused [unbounded]: SUM(cost * age) has no bound
  fix: clamp it: SUM(LEAST(cost * age, 5000))
"""

from __future__ import annotations

import linecache
import traceback
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """The stable names of all that can go wrong. `docs/reference/errors.md` explains each one."""

    # The text of a question.
    SYNTAX = "syntax"
    TOO_LARGE = "too-large"
    STATEMENT = "statement"
    UNSUPPORTED = "unsupported"
    UNKNOWN_TABLE = "unknown-table"
    UNKNOWN_COLUMN = "unknown-column"
    UNKNOWN_FUNCTION = "unknown-function"
    AMBIGUOUS = "ambiguous"
    # Its meaning.
    RAW_COLUMN = "raw-column"
    AGGREGATE = "aggregate"
    TYPE = "type"
    UNBOUNDED = "unbounded"
    OVERFLOW = "overflow"
    PRIVATE_KEY = "private-key"
    TOO_MANY_GROUPS = "too-many-groups"
    # Who asks, and for how much.
    UNKNOWN_ANALYST = "unknown-analyst"
    PARAMETER = "parameter"
    BUDGET = "budget"
    REQUEST = "request"
    TABLE_LOCKED = "table-locked"
    # Of a served curator.
    AUTHENTICATION = "authentication"
    FORBIDDEN = "forbidden"
    RATE = "rate-limit"
    BUSY = "busy"
    PROTOCOL = "protocol"
    NOT_FOUND = "not-found"
    IDENTITY_PROVIDER = "identity-provider"
    UNLINKED_IDENTITY = "unlinked-identity"
    # In a survey that people answer from their own machines.
    REPORT = "report"
    # What the owner wrote and pointed at.
    POLICY = "policy"
    DATA = "data"
    # What is kept.
    LEDGER = "ledger"
    LEDGER_BUSY = "ledger-busy"
    LEDGER_UNREACHABLE = "ledger-unreachable"
    LEDGER_FULL = "ledger-full"
    LEDGER_READ_ONLY = "ledger-read-only"
    LEDGER_DISK = "ledger-disk"
    LEDGER_MISSING = "ledger-missing"
    LEDGER_OLDER = "ledger-older"
    LEDGER_TAMPERED = "ledger-tampered"
    LEDGER_ORDER = "ledger-order"
    LEDGER_KEY = "ledger-key"
    LEDGER_WITNESS = "ledger-witness"
    LEDGER_SCOPE = "ledger-scope"
    LEDGER_EPOCH = "ledger-epoch"
    # After the data was touched.
    FAILED = "failed"


_LONGEST_CODE = 250  # characters of a fix that is code; the suggestion has all of it


@dataclass(frozen=True)
class SourceLocation:
    """A stretch of one line of a text: a question, or a policy file."""

    line: int
    column: int
    excerpt: str
    length: int = 1
    source: str = ""
    offset: int = 0  # columns of the line that stand before the excerpt
    text: str = field(default="", repr=False, compare=False)  # the whole question, where it is known
    start: int = field(default=0, repr=False, compare=False)  # the stretch is text[start:end], over any number of lines
    end: int = field(default=0, repr=False, compare=False)

    @property
    def words(self) -> str:
        """The stretch itself, as far as it is shown."""
        start = self.column - 1 - self.offset
        return self.excerpt[start : start + self.length]

    @property
    def written(self) -> str:
        """The whole stretch as it is written."""
        return self.text[self.start : self.end] if self.text else self.words

    def __str__(self) -> str:
        """The place in words, and the line with the stretch underlined."""
        name = f"{self.source}, " if self.source else ""
        marks = " " * (self.column - 1 - self.offset) + "^" * max(1, self.length)
        return f"{name}line {self.line}, column {self.column}\n    {self.excerpt}\n    {marks}"


def substitute(*edits: tuple[SourceLocation | None, str]) -> str | None:
    """Return the question with other SQL in the place of some stretches; None where one of them is not known.

    >>> at = SourceLocation(1, 1, "TABLE t", 5, text="TABLE t", start=0, end=5)
    >>> substitute((at, "SELECT * FROM"))
    'SELECT * FROM t'
    """
    if not edits or not all(at is not None and at.text for at, _ in edits):
        return None
    found = {(at.start, at.end, sql) for at, sql in edits if at is not None}
    text = edits[0][0].text if edits[0][0] is not None else ""
    for start, end, sql in sorted(found, reverse=True):
        text = text[:start] + sql + text[end:]
    return text


class TacitError(Exception):
    """The base of every error that Tacit raises on purpose: catch it to catch all of them.

    Attributes
    ----------
    code : ErrorCode
        Stable name of what is wrong; the reference of errors explains each one.
    what : str
        What is wrong, in the caller's terms.
    at : SourceLocation or None
        Where, in a question or a policy file.
    fix : str
        What to write instead; empty where there is nothing to.
    suggestion : str or None
        The whole question with the fix put in, where the fix is code; None where it is advice.
    retry_after : float or None
        Seconds after which the same may succeed; None where waiting does not help.

    Examples
    --------
    >>> import tacit
    >>> try:
    ...     tacit.open("no-such-policy.toml")
    ... except tacit.TacitError as error:
    ...     print(error.code)
    policy
    """

    verb: ClassVar[str] = "error"

    def __init__(
        self,
        code: ErrorCode,
        what: str,
        *,
        at: SourceLocation | None = None,
        fix: str = "",
        retry_after: float | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.at = at
        self.fix = fix
        self.retry_after = retry_after
        self.suggestion = suggestion

    def __str__(self) -> str:
        lines = [f"{self.verb} [{self.code}]: {self.what}"]
        if self.at is not None:
            lines.append(f"  {self.at}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in place of a traceback: the caller's line, and the error."""
        return [*_find_callers_line(self), *str(self).split("\n")]

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.what, self.at, self.fix, self.retry_after, self.suggestion)


def _find_callers_line(error: BaseException) -> list[str]:
    """The last line outside of Tacit that led to an error; none where it is not known."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_globals.get("__name__", "").startswith("tacit."):
            text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
            found = f"line {line}: {text}" if text else found
    return [found] if found else []


def _rebuild(
    kind: type[TacitError],
    code: ErrorCode,
    what: str,
    at: SourceLocation | None,
    fix: str,
    retry_after: float | None = None,
    suggestion: str | None = None,
) -> TacitError:
    """Unpickle an error, whose fields are keywords."""
    return kind(code, what, at=at, fix=fix, retry_after=retry_after, suggestion=suggestion)


class Refused(TacitError):
    """The question is not answered: no data was read and nothing was charged.

    Where an accuracy is asked for and a clip is chosen first, the clip may be charged and the rest refused; the text
    then says what was charged.

    Examples
    --------
    >>> from tacit.demo.survey import open_survey
    >>> with open_survey() as curator:
    ...     try:
    ...         curator.analyst("ada").ask("SELECT hours FROM survey", epsilon=0.5)
    ...     except Refused as refusal:
    ...         print(refusal.code)
    raw-column
    """

    verb = "refused"

    def __init__(
        self,
        code: ErrorCode,
        what: str,
        *,
        at: SourceLocation | None = None,
        fix: str = "",
        retry_after: float | None = None,
        suggestion: str | None = None,
        instead: str | None = None,
    ) -> None:
        """Take the suggestion as it is, or make it by putting `instead` in the place of what is marked."""
        if instead is not None:
            suggestion = substitute((at, instead))
        if suggestion is not None:  # of words of the question, which may run over lines
            fix = "".join(character if character.isprintable() else " " for character in fix)
            fix = fix if len(fix) <= _LONGEST_CODE else f"{fix[: _LONGEST_CODE - 3]}..."
        super().__init__(code, what, at=at, fix=fix, retry_after=retry_after, suggestion=suggestion)


class SecondStepRefused(Refused):
    """The rest of a question is not answered; a first step of it was answered and charged, and that charge stays.

    Its text says what was charged. **Rule.** Data was read before it is raised, so whoever hides how long that took
    hides the time of this error too.
    """


class ParameterError(TacitError, ValueError):
    """An argument is of the wrong type or out of range: nothing was done.

    Attributes
    ----------
    name : str
        Name of the parameter.

    Examples
    --------
    >>> from tacit.mechanisms import Laplace
    >>> Laplace(scale=-1)
    Traceback (most recent call last):
    ...
    tacit.errors.ParameterError: error [parameter]: scale: must be positive, got -1
      fix: choose scale above 0
    """

    def __init__(self, name: str, what: str, *, fix: str = "") -> None:
        super().__init__(ErrorCode.PARAMETER, f"{name}: {what}", fix=fix)
        self.name = name
        self._reason = what

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_parameter, (self.name, self._reason, self.fix)


def _rebuild_parameter(name: str, what: str, fix: str) -> ParameterError:
    """Unpickle a parameter error."""
    return ParameterError(name, what, fix=fix)


class PolicyError(TacitError):
    """The policy does not say what it must. `at` is the line of its file."""

    verb = "policy"


class DataError(TacitError):
    """The data is not what the policy declares. Raised when it is opened, for the data owner."""

    verb = "data"


class LedgerError(TacitError):
    """The ledger cannot be trusted or reached, so nothing is answered."""

    verb = "ledger"


class Failed(TacitError):
    """The data was read and no answer came of it: the charge stays, and nothing was released.

    Its text is always the same: one that depended on the rows would be an unprotected output.
    """

    verb = "failed"

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.FAILED,
            "the question was admitted and charged, but the engine did not finish",
            fix="tell the data owner, who can see the cause",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Failed, ()
