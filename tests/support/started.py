"""Scripts that run in forks of one process, which has imported what is slow to import.

Run as a script, this file is that process: it reads a line of JSON for each script to run and prints how it ended.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SLOW = (
    *("duckdb", "flint", "matplotlib.figure", "numba", "pandas", "pyarrow", "scipy.optimize", "scipy.stats"),
    *("sklearn.base", "sklearn.datasets", "tacit", "tacit.curator.curator", "tacit.curator.resources", "tacit.attacks"),
)
SLOWEST = ("tacit.learn.torch", "torch") if importlib.util.find_spec("torch") else ()  # once a script names it
PATIENCE = 120  # seconds
Done = subprocess.CompletedProcess[str]


class Starter:
    """A process that has imported much and opened nothing."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def run(self, script: Path, arguments: Sequence[str], folder: Path) -> Done:
        """What `python script arguments` does in a folder; its output goes to files there."""
        asked = {"script": str(script), "arguments": list(arguments), "folder": str(folder)}
        print(json.dumps(asked), file=self._child.stdin, flush=True)
        code = int(self._child.stdout.readline())
        return Done([str(script), *arguments], code, *((folder / name).read_text("utf-8") for name in ("out", "err")))


@contextmanager
def starter() -> Iterator[Starter]:
    """The process, until the block ends."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield Starter(child)
        child.stdin.close()
        assert child.wait(60) == 0


def _run(script: str, arguments: list[str], folder: str) -> int:
    """Fork, run the script as the main program, and return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(PATIENCE)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    code: Any = 1
    try:
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as stopped:
        code = stopped.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    for name in SLOW:
        importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        for name in SLOWEST if "torch" in Path(asked["script"]).read_text("utf-8") else ():
            importlib.import_module(name)
        print(_run(**asked), flush=True)
