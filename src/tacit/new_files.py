"""Files that are made where there is none: whole or not at all, and never over one that is there.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     make_file(Path(folder) / "a", b"first"), make_file(Path(folder) / "a", b"second")
...     (Path(folder) / "a").read_bytes()
(True, False)
b'first'
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def make_file(path: Path, content: bytes, mode: int | None = None) -> bool:
    """Make a file, durably, and return whether it was made: one that is there is left as it is.

    Without `mode` it has the permissions that the umask gives. It is written under another name and linked: nobody sees
    half of it, and no handle of it is closed after others can see it, which would drop the locks that SQLite holds on
    it in this process.
    """
    target = _resolve(path)
    if os.path.lexists(target):
        return False
    draft = target.with_name(f"{target.name}.{uuid4().hex[:8]}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return link_draft(draft, target)
    finally:
        os.unlink(draft)


def link_draft(draft: Path, path: Path) -> bool:
    """Give a finished file the name that it is for, and return whether that was free: a file there stays as it is."""
    target = _resolve(path)
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    sync_folder(target.parent)
    return True


def sync_folder(folder: Path) -> None:
    """A new name reaches the disk with its folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _resolve(path: Path) -> Path:
    """Where a link points that names no file yet."""
    return Path(os.path.realpath(path))
