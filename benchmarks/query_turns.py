"""Sides that take turns, and what is made of their replies. Standard library only, so that this process stays small:
a process that it starts counts the memory of its parent as its own until it has more."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CALLS = 7
PATIENCE = 15.0  # seconds, after which a side is not asked again
FEW = 2  # replies, of which the first one counts as well: it took long, and nothing that it warmed up did


class Failed(Exception):
    """A side that ended; its text says why."""


class Side:
    """A process that answers."""

    def __init__(self, python: Path | str, script: str, *arguments: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the side
        command = [str(python), str(HERE / script), *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.replies: list[dict[str, Any]] = []
        self.versions: dict[str, str] = self._reply()["versions"]

    def ask(self) -> None:
        """One question more."""
        assert self._process.stdin is not None
        self._process.stdin.write("{}\n")
        self._process.stdin.flush()
        self.replies.append(self._reply())

    @property
    def is_done(self) -> bool:
        """Whether it was asked often enough, or long enough."""
        return len(self.replies) > CALLS or sum(r["seconds"] for r in self.replies) > PATIENCE

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()
        self._errors.close()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["no word"]
            self.close()
            raise Failed(f"ended with status {self._process.returncode}: {said[-1][:200]}")
        found: dict[str, Any] = json.loads(line)
        return found


def take_turns(sides: dict[str, Side]) -> None:
    """Ask all sides in turn, so that a busy moment of the machine falls on all of them."""
    waiting = dict(sides)
    while waiting:
        for name, side in list(waiting.items()):
            side.ask()
            if side.is_done:
                del waiting[name]


def summary(side: Side, truth: dict[str, Any], groups: int) -> dict[str, Any]:
    """Times of the calls but the first one, which warms up, and errors of all of them against the true answer."""
    replies = side.replies
    counted = replies if len(replies) <= FEW else replies[1:]
    seconds = sorted(r["seconds"] for r in counted)
    answers = {column: [r[column][:groups] for r in replies] for column in ("n", "s")}
    return {
        "calls": len(seconds),
        "first": replies[0]["seconds"],
        "median": statistics.median(seconds),
        "processor": statistics.median(r["cpu"] for r in counted),
        "least": seconds[0],
        "most": seconds[-1],
        "peak": max(r["peak"] for r in replies),
        "error": {column: error(some, truth[column][:groups]) for column, some in answers.items()},
        "spread": {column: spread(some) for column, some in answers.items()},
    }


def error(answers: list[list[float]], truth: list[float]) -> float:
    """The mean absolute error over groups and answers."""
    return statistics.fmean(abs(a - t) for answer in answers for a, t in zip(answer, truth, strict=True))


def spread(answers: list[list[float]]) -> float | None:
    """How far repeated answers lie apart: the root of the mean variance of a group; None of a single answer."""
    if len(answers) < 2:
        return None
    return math.sqrt(statistics.fmean(statistics.variance(cells) for cells in zip(*answers, strict=True)))


def middles(commands: Sequence[str], source: Path, turns: int = 3) -> dict[str, Any]:
    """Each command once in every turn, and of each the run with the middle time; a single turn where it takes long."""
    found: dict[str, list[dict[str, Any]]] = {command: [] for command in commands}
    started = time.perf_counter()
    for turn in range(turns):
        if turn and time.perf_counter() - started > PATIENCE:
            break
        for command, runs in found.items():
            runs.append(once(command, source))
    return {command: sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2] for command, runs in found.items()}


def once(command: str, source: Path) -> dict[str, Any]:
    """What a process of its own prints: a scan, or a copy made."""
    ran = subprocess.run(
        [sys.executable, HERE / "query_sides.py", command, source], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(ran.stdout) if ran.stdout else {}
    return found
