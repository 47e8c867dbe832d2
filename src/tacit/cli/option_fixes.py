"""Fixes that Python's callers would paste, written as the options of the command that shows them.

Errors are the same in Python, over HTTP and in a terminal, and say what to write in Python: `epsilon=0.5`. Here is one
place that knows how a terminal has it.

>>> from types import SimpleNamespace
>>> options = {"epsilon": SimpleNamespace(opts=["--epsilon", "-e"], multiple=False, nargs=1)}
>>> write_as_options("ask for at most epsilon=0.2", options)
'ask for at most --epsilon 0.2'
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

import typer
import typer.main

from tacit.errors import ErrorCode, TacitError

_CODES = frozenset({ErrorCode.PARAMETER, ErrorCode.BUDGET})  # of errors whose fix is other arguments
_NAMES = {"url": "server"}  # parameters in Python whose options have other names
_TEXT = r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'"
_INSIDE = rf"(?:{_TEXT}|[^\[\]{{}}\"'])*"
_VALUE = rf"{_TEXT}|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\[{_INSIDE}\]|\{{{_INSIDE}\}}"
_ARGUMENT = re.compile(rf"([a-z][a-z_]*)=({_VALUE})")
_ARGUMENTS = re.compile(rf"(?<![\w.\"'/?&-])(?:{_ARGUMENT.pattern})(?:, {_ARGUMENT.pattern})*(?:, say\b)?")


def fix_with_options(error: TacitError, app: typer.Typer) -> TacitError:
    """The same error, whose fix is written with the options of the command that was called."""
    if error.code in _CODES and error.suggestion is None:
        error.fix = write_as_options(error.fix, _find_parameters(app, sys.argv[1:]))
    return error


def write_as_options(fix: str, parameters: Mapping[str, Any]) -> str:
    """A fix with arguments `name=value` as a command line has them; those that are no parameters of it stay.

    So does a fix that is written with options already.
    """
    if "--" in fix:
        return fix

    def write(found: re.Match[str]) -> str:
        given = _ARGUMENT.findall(found[0])
        if any(name not in parameters for name, _ in given):
            return found[0]
        try:
            words = [_write_words(parameters[name], ast.literal_eval(value)) for name, value in given]
        except (ValueError, SyntaxError, TypeError):  # a fix of a server of another version
            return found[0]
        return " ".join(word for each in words for word in each)

    return _ARGUMENTS.sub(write, fix)


def _write_words(parameter: Any, value: object) -> list[str]:
    """The words of one option for a value; those of an argument have no name before them."""
    values: list[object]
    if isinstance(value, dict):
        values = [f"{name}={each}" for name, each in value.items()]
    elif isinstance(value, list) and (parameter.multiple or parameter.nargs != 1):
        values = value
    else:
        values = [value]
    name = max(parameter.opts, key=len)
    called = [name] if name.startswith("-") else []
    quoted = (shlex.quote(each if isinstance(each, str) else json.dumps(each)) for each in values)
    return [word for each in quoted for word in (*called, each)]


def _find_parameters(app: typer.Typer, words: list[str]) -> dict[str, Any]:
    """The parameters of the command that these words call, by their names in Python."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    found = {parameter.name: parameter for parameter in command.params}
    return {**{named: found[option] for named, option in _NAMES.items() if option in found}, **found}
