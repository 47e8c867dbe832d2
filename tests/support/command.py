"""The command in this process: quicker than one of its own, and otherwise what a shell does."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer.main
import typer.testing

from tacit.cli.main import app, main

_build = cache(typer.main.get_command)  # once: it takes longer than most commands


def invoke_command(*arguments: object) -> Any:
    """What typer's own runner gives for `tacit` with these arguments; an error of Tacit's is raised."""
    with patch.object(typer.testing, "_get_command", _build):
        return typer.testing.CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def run_command(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `tacit` with these arguments does in a folder, where the environment has these names too."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["tacit", *map(str, arguments)]
    code: Any = 0
    with (
        chdir(cwd or Path.cwd()),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", argv),
        patch.object(sys, "stdin", io.StringIO()),
        patch.object(typer.main, "get_command", _build),
        patch.dict(os.environ, environment),
    ):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code
    return subprocess.CompletedProcess(argv, code or 0, out.getvalue(), err.getvalue())
