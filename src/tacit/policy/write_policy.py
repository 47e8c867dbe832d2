"""A policy that is written where none was."""

from __future__ import annotations

from pathlib import Path

from tacit.errors import ParameterError


def require_new(path: Path) -> None:
    """ParameterError where a file is already: a policy is never replaced."""
    if path.exists():
        raise ParameterError("policy", f"{path} exists already", fix="name another file with --policy")


def write_new_policy(path: Path, text: str) -> None:
    """Write a policy where no file is; ParameterError where one is, which stays as it is."""
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        require_new(path)
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        what = f"{path} cannot be written: {reason}"
        raise ParameterError("policy", what, fix="name another file with --policy") from None
