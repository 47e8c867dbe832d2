"""What the tests of the command share: the command itself, here and as a process of its own, and a small clinic."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    """The command, in this process: quicker, and otherwise what a shell does."""

    def run(*arguments: Any, cwd: Path | None = None, stdin: str = "") -> Done:
        out, err = io.StringIO(), io.StringIO()
        argv = ["tacit", *map(str, arguments)]
        code: Any = 0
        with (
            chdir(cwd or Path.cwd()),
            redirect_stdout(out),
            redirect_stderr(err),
            patch.object(sys, "argv", argv),
            patch.object(sys, "stdin", io.StringIO(stdin)),
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a policy, t.toml, and its data; no question was asked yet."""
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    (tmp_path / "t.toml").write_text(POLICY)
    return tmp_path
