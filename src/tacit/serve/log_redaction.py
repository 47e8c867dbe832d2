"""The log of a server: what happened and where, never what was asked, found or typed.

>>> try:
...     raise ValueError("ada has the flu")
... except ValueError as error:
...     record = logging.LogRecord("tacit", logging.ERROR, "", 0, "entry 7 failed", None, (ValueError, error, None))
>>> RedactingFormatter("%(message)s").format(record).splitlines()[:2]
['entry 7 failed', 'ValueError']
"""

from __future__ import annotations

import copy
import io
import logging
import os
import threading
import traceback
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import Any

from tacit.serve.limits import RateLimiter

REQUEST = "http %s %s %d %s"  # method, route, status and who
STRANGER = "http %s %s %d - from %s"
_FORMAT = "%(asctime)s %(name)s %(levelname)s %(message)s"
_TRACE = 10  # lines that an exception counts for
_MOST = 1_000  # kinds of lines whose suppressed ones are counted
_FIRST = 60  # characters of a text by which its kind is known


class RedactingFormatter(logging.Formatter):
    """Exceptions by their kinds and places. Their texts may quote rows, questions or keys."""

    def format(self, record: logging.LogRecord) -> str:
        """The record, with none of what another formatter may have kept in it."""
        own = copy.copy(record)
        own.exc_text = None
        text = super().format(own)
        left_out = getattr(record, "left_out", 0)
        return f"{text} ({left_out:,} more like this were left out)" if left_out else text

    def formatException(  # noqa: N802 - named by the library
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Kinds and places, the cause first."""
        lines: list[str] = []
        error: Any = ei[1]
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            places = [
                f"  {Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)
            ]
            lines = [type(error).__name__, *places, *lines]
            error = error.__cause__ or error.__context__
        return "\n".join(lines)


class LineLimit(logging.Filter):
    """Lets so many lines a second through, of each kind and in all, and counts those that it leaves out.

    Answers to one analyst are a kind, and so are refusals of one analyst, those of one address, and every other text by
    itself. The next line of a kind says how many were left out. In any minute at most 8,000 lines pass, below 1 MB.
    """

    def __init__(self) -> None:
        super().__init__()
        self._all = RateLimiter(100, 2_000)
        self._answers = RateLimiter(10, 300)
        self._others = RateLimiter(1, 100)
        self._lock = threading.Lock()
        self._left_out: OrderedDict[str, int] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written. `left_out` of the record is how many like it were not."""
        kind, rate = self._kind(record)
        lines = _TRACE if record.exc_info else 1
        passes = rate.take(kind) == 0 and all(self._all.take("") == 0 for _ in range(lines))
        with self._lock:
            left_out = self._left_out.pop(kind, 0)
            if not passes:
                self._left_out[kind] = left_out + 1
                while len(self._left_out) > _MOST:
                    self._left_out.popitem(last=False)
        record.left_out = left_out if passes else 0
        return passes

    def _kind(self, record: logging.LogRecord) -> tuple[str, RateLimiter]:
        arguments = record.args
        if record.msg in {REQUEST, STRANGER} and isinstance(arguments, tuple):
            _, _, status, who = arguments
            if record.msg == REQUEST and isinstance(status, int) and status < 400:
                return f"answers to {who}", self._answers
            return f"refusals of {who}", self._others
        return f"{record.name} {str(record.msg).partition(chr(10))[0][:_FIRST]}", self._others


class OwnerFile(logging.FileHandler):
    """A log file that only its owner can read. One that others could read is closed to them."""

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
            return open(descriptor, "a", encoding=self.encoding, errors=self.errors)
        except BaseException:
            os.close(descriptor)
            raise


def redact_logs() -> None:
    """Make every log of this process discreet and limited, and give the server's own a place where there is none."""
    root = logging.getLogger()
    if not root.handlers:
        console = logging.StreamHandler()
        console.setLevel(logging.WARNING)
        root.addHandler(console)
    for handler in root.handlers:
        handler.setFormatter(RedactingFormatter(_FORMAT))
        if not any(isinstance(each, LineLimit) for each in handler.filters):
            handler.addFilter(LineLimit())
    shown = min(handler.level for handler in root.handlers)  # a line that nobody sees is not made
    logging.getLogger("tacit.serve").setLevel(max(logging.INFO, shown))
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # the guard has its own words for each request
