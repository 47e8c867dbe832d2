"""Files that are written durably, whole or not at all: where there is none, or in the place of one.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     make_file(Path(folder) / "a", b"first"), make_file(Path(folder) / "a", b"second")
...     (Path(folder) / "a").read_bytes()
(True, False)
b'first'
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from uuid import uuid4

_WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def make_file(path: Path, content: bytes, mode: int | None = None) -> bool:
    """Make a file, durably, and return whether it was made: one that is there is left as it is.

    Without `mode` it has the permissions that the umask gives. It is written under another name and linked: nobody sees
    half of it, and no handle of it is closed after others can see it, which would drop the locks that SQLite holds on
    it in this process.
    """
    target = _resolve(path)
    if os.path.lexists(target):
        return False
    draft = _draft_of(target)
    try:
        _write_new(draft, content, mode)
        return link_draft(draft, target, mode)
    finally:
        draft.unlink(missing_ok=True)


def link_draft(draft: Path, path: Path, mode: int | None = None) -> bool:
    """Give a finished file the name that it is for, and return whether that was free: a file there stays as it is.

    On a file system without links, such as that of many memory cards, it is copied, and not whole until that has ended.
    """
    target = _resolve(path)
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        try:
            _write_new(target, draft.read_bytes(), mode)
        except FileExistsError:
            return False
    sync_path(target.parent)
    return True


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Replace a file, or make it, durably: a reader sees the old content or the new one, whole."""
    draft = _draft_of(path)
    try:
        _write_new(draft, content, mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Let what a file holds reach the disk, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _draft_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid4().hex[:8]}")


def _write_new(path: Path, content: bytes, mode: int | None) -> None:
    """Write a file that is not there yet. One that cannot be written to its end is removed."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _resolve(path: Path) -> Path:
    """Where a link points that names no file yet."""
    return Path(os.path.realpath(path))
