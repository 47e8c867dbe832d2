"""Files that stay the same while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tacit.errors import DataError, ErrorCode

_Mark = tuple[int, int, int, int]
_FIX = "open it again when nothing writes to it"


class Files:
    """Files as they are before they are read: which they are, how long, and when they were written."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._marks = {file: _mark(file) for file in files}

    def check(self, read: Iterable[Path]) -> None:
        """Raise where a file is gone or another one, or where one was read that was not among them.

        **Theorem.** If nothing is raised, each file of `read` was one and the same from before it was read until now.
        Proof: its device, number, length and time were looked up before anything was read, and are now what they were.
        """
        for file, mark in self._marks.items():
            if _mark(file) != mark:
                what = f"{file.name} was changed while it was read"
                raise DataError(ErrorCode.DATA, what, fix=_FIX)
        for file in read:
            if self._marks.get(file) is None:
                what = f"{file.name} was added while the source was read"
                raise DataError(ErrorCode.DATA, what, fix=_FIX)


def _mark(file: Path) -> _Mark | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
