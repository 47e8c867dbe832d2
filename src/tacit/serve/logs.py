"""The log of a server: what happened and where, never what was asked, found or typed.

>>> try:
...     raise ValueError("ada has the flu")
... except ValueError as error:
...     record = logging.LogRecord("tacit", logging.ERROR, "", 0, "entry 7 failed", None, (ValueError, error, None))
>>> Discreet("%(message)s").format(record).splitlines()[:2]
['entry 7 failed', 'ValueError']
"""

from __future__ import annotations

import copy
import logging
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

_FORMAT = "%(asctime)s %(name)s %(levelname)s %(message)s"


class Discreet(logging.Formatter):
    """Exceptions by their kinds and places. Their texts may quote rows, questions or keys."""

    def format(self, record: logging.LogRecord) -> str:
        """The record, with none of what another formatter may have kept in it."""
        own = copy.copy(record)
        own.exc_text = None
        return super().format(own)

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


def discreet() -> None:
    """Make every log of this process discreet, and give the server's own a place where there is none."""
    root = logging.getLogger()
    if not root.handlers:
        console = logging.StreamHandler()
        console.setLevel(logging.WARNING)
        root.addHandler(console)
    for handler in root.handlers:
        handler.setFormatter(Discreet(_FORMAT))
    shown = min(handler.level for handler in root.handlers)  # a line that nobody sees is not made
    logging.getLogger("tacit.serve").setLevel(max(logging.INFO, shown))
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # the guard has its own words for each request
