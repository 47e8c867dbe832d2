"""Wrong options and unknown commands, said like every other error: a code, what is wrong, and how to fix it."""

from __future__ import annotations

from typing import Any

import typer

from tacit.errors import ErrorCode, TacitError

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What Typer raises for a command line that it cannot read; where it is defined depends on the version."""


def is_help(error: Exception) -> bool:
    """Whether a group was called without a command, and shows its help."""
    return type(error).__name__ == "NoArgsIsHelpError"


def to_tacit_error(error: Any) -> TacitError:
    """The same as an error of our own."""
    what = error.format_message().strip().rstrip(".")
    return TacitError(ErrorCode.PARAMETER, what[:1].lower() + what[1:], fix=_describe_fix(error))


def _describe_fix(error: Any) -> str:
    """What the parameter means, and where all of them stand."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    shown = f"{'tacit' if context is None else context.command_path} --help shows what there is"
    meaning = getattr(parameter, "help", None)
    if parameter is None or not meaning:
        return shown
    option = max(parameter.opts, key=len)
    called = " ".join(part for part in (option if option.startswith("-") else "", parameter.metavar) if part)
    return f"{called}: {meaning[:1].lower()}{meaning[1:].rstrip('.')}; {shown}"
