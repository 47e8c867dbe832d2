"""A policy that is written where none was."""

from __future__ import annotations

from pathlib import Path

from tacit.durable_files import make_file
from tacit.errors import ParameterError


def require_new(path: Path) -> None:
    """ParameterError where a file is already: a policy is never replaced."""
    if path.exists():
        raise _refuse_existing(path)


def write_new_policy(path: Path, text: str) -> None:
    """Write a policy where no file is, whole or not at all; ParameterError where one is, which stays as it is."""
    try:
        made = make_file(path, text.encode())
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        what = f"{path} cannot be written: {reason}"
        raise ParameterError("policy", what, fix="name another file with --policy") from None
    if not made:
        raise _refuse_existing(path)


def _refuse_existing(path: Path) -> ParameterError:
    return ParameterError("policy", f"{path} exists already", fix="name another file with --policy")
