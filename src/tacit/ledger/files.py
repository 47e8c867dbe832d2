"""Files that only their owner may read and write, from their first byte on, whatever the process's umask."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from tacit.durable_files import make_file

PRIVATE = 0o600
FULL_DISK = {errno.ENOSPC, errno.EDQUOT}
"""What the system says where a disk, or this user's share of it, is full."""


def make(path: Path, content: bytes = b"") -> None:
    """Make a file, durably, whole or not at all; one that is there is left as it is."""
    make_file(path, content, PRIVATE)


def tighten(path: Path) -> None:
    """Take a file away from everyone but its owner. One of another user's, or one that is not there, is left alone."""
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o077:
            os.chmod(path, mode & 0o700)
