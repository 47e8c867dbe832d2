"""Files that are read for every question, and are still those that were checked."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from tacit.errors import DataError, ErrorCode

_log = logging.getLogger("tacit")

_Mark = tuple[int, int, int, int]


class Files:
    """Files as they were when they were opened: which they are, how long, and when they were written."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._marks = {file: _mark(file) for file in files}

    def check(self) -> None:
        """Raise where a file is gone or another one: what was checked of it says nothing about this one."""
        for file, mark in self._marks.items():
            if _mark(file) != mark:
                _log.error("%s has changed since it was opened", file)  # analysts are not told of files
                fix = "ask the data owner to open it again, with a new epoch in the policy"
                raise DataError(ErrorCode.DATA, "the data has changed since it was opened", fix=fix)


def _mark(file: Path) -> _Mark | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
