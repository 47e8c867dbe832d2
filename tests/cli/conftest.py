"""What the tests of the command share: the command itself, here and as a process of its own, and a small clinic."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main

from tacit.cli.main import main

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]

POLICY = """\
[data]
source = "t.parquet"
[privacy]
epsilon = 2
delta = 1e-6
[tables.t]
unit = "row"
[tables.t.columns]
x = { type = "int", lower = 0, upper = 3 }
[analysts.ada]
epsilon = 1
[analysts.ben]
epsilon = 1
"""


@pytest.fixture(scope="session")
def tacit() -> Run:
    """The command, in this process: quicker, and otherwise what a shell does. It is built once."""
    built = cache(typer.main.get_command)

    def run(
        *arguments: Any, cwd: Path | None = None, stdin: str = "", stderr: IO[str] | None = None, **environment: str
    ) -> Done:
        out, err = io.StringIO(), io.StringIO()
        argv = ["tacit", *map(str, arguments)]
        code: Any = 0
        with (
            chdir(cwd or Path.cwd()),
            redirect_stdout(out),
            redirect_stderr(stderr or err),
            patch.dict(os.environ, environment),
            patch.object(sys, "argv", argv),
            patch.object(sys, "stdin", io.StringIO(stdin)),
            patch.object(typer.main, "get_command", built),
        ):
            try:
                main()
            except SystemExit as stopped:
                code = stopped.code
        return Done(argv, code or 0, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def process() -> Run:
    """The command as a process of its own."""

    def run(*arguments: Any, cwd: Path | None = None, stderr: int = subprocess.PIPE, **environment: str) -> Done:
        command = [sys.executable, "-m", "tacit.cli.main", *map(str, arguments)]
        settings = {**os.environ, "COLUMNS": "100", **environment}
        return subprocess.run(
            command, check=False, cwd=cwd, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=120, env=settings
        )

    return run


def write_policy(folder: Path) -> Path:
    """Write a policy, t.toml, and its data to a folder."""
    pq.write_table(pa.table({"x": [1, 2, 3]}), folder / "t.parquet")
    (folder / "t.toml").write_text(POLICY)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a policy, t.toml, and its data; no question was asked yet."""
    return write_policy(tmp_path)


@pytest.fixture(scope="session")
def asked(tacit: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same where ada has asked COUNT and SUM at 0.25 each; the answer to the first is in answer.json. To copy."""
    folder = write_policy(tmp_path_factory.mktemp("asked"))
    questions = ("SELECT COUNT(*) AS n FROM t", "SELECT SUM(x) AS s FROM t")
    first, _ = (
        tacit("ask", "-p", "t.toml", "--as", "ada", sql, "--epsilon", "0.25", "--json", cwd=folder).stdout
        for sql in questions
    )
    (folder / "answer.json").write_text(first)
    return folder
