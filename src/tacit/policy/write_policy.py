"""A policy that is written where none was."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tacit.durable_files import make_file
from tacit.errors import ParameterError


def require_new(path: Path) -> None:
    """ParameterError where a file is already, which is never replaced, or where none can be written."""
    try:
        os.stat(path)
    except FileNotFoundError:
        _check_folder(path)
    except OSError as error:
        raise _refuse_writing(path, error.strerror) from None
    else:
        raise _refuse_existing(path)


def write_new_policy(path: Path, text: str) -> None:
    """Write a policy where no file is, whole or not at all; ParameterError where one is, which stays as it is."""
    try:
        made = make_file(path, text.encode())
    except OSError as error:
        raise _refuse_writing(path, error.strerror) from None
    if not made:
        raise _refuse_existing(path)


def _check_folder(path: Path) -> None:
    """ParameterError where the folder of a new file is missing or may not be written."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise _refuse_writing(path, os.strerror(errno.ENOENT))
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _refuse_writing(path, os.strerror(errno.EACCES))


def _refuse_writing(path: Path, reason: str | None) -> ParameterError:
    what = f"{path} cannot be written: {(reason or 'it failed').lower()}"
    return ParameterError("policy", what, fix="name another file with --policy")


def _refuse_existing(path: Path) -> ParameterError:
    return ParameterError("policy", f"{path} exists already", fix="name another file with --policy")
