"""The environment of the peer, made on first use, and the peer's process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent / ".venv-bench"


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def make() -> Path | None:
    """The peer's Python; None, with the reason on stderr, where it cannot be installed."""
    python = ROOT / "bin" / "python"
    done = ROOT / ".installed"
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    say("Setting up opendp in .venv-bench (once, about a minute)...")
    install = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        HERE / "requirements.txt",
    ]
    try:
        subprocess.run([sys.executable, "-m", "venv", ROOT], check=True, capture_output=True, text=True)
        (ROOT / ".gitignore").write_text("*\n", encoding="utf-8")
        subprocess.run(install, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        said = getattr(problem, "stderr", "") or str(problem)
        say(f"opendp could not be installed, so it is left out: {said.strip().splitlines()[-1]}")
        return None
    done.write_text(wanted, encoding="utf-8")
    return python


class Process:
    """The peer at the other end of a pipe."""

    def __init__(self, python: Path, data: Path) -> None:
        command = [python, HERE / "peer.py", data]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, do: str, **request: Any) -> Any:
        """One request, one reply."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do} | request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the peer ended; its error is above")
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()
