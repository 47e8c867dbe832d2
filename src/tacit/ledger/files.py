"""Files that only their owner may read and write, from their first byte on, whatever the process's umask."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600


def make(path: Path, content: bytes = b"") -> None:
    """Make a file, durably, whole or not at all; one that is there is left as it is.

    It is written under another name and linked: nobody sees half of it, and no handle of it is closed after others can
    see it, which would drop the locks that SQLite holds on it in this process.
    """
    target = Path(os.path.realpath(path))
    handle, draft = tempfile.mkstemp(prefix=f"{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), PRIVATE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, target)
            sync_folder(target.parent)
    finally:
        os.unlink(draft)


def tighten(path: Path) -> None:
    """Take a file away from everyone but its owner. One of another user's, or one that is not there, is left alone."""
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o077:
            os.chmod(path, mode & 0o700)


def sync_folder(folder: Path) -> None:
    """A new name reaches the disk with its folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
