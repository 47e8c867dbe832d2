"""The sections of the benchmark. Each returns plain data."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from environment import Process, say
from ours import Measured, Ours
from questions import QUESTIONS, UNITS

from tacit.demo.clinic import build_clinic
from tacit.sampling.bits import SystemBits
from tacit.sampling.laplace import draw_array

DRAWS = 1_000_000
SCALE = 10

_ASK = """
import sys, tacit
with tacit.open(sys.argv[1]) as curator:
    list(curator.analyst("ada").ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5))
"""

Asks = dict[str, Callable[[], Measured]]
Truths = dict[str, dict[str, list[float]]]


def machine(folder: Path, peer: Process | None) -> dict[str, Any]:
    """What it ran on."""
    versions = {name: importlib.metadata.version(name) for name in ("tacit-dp", "duckdb", "numpy")}
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions | (peer("versions") if peer else {}),
        "fsync": fsync(folder),
    }


def fsync(folder: Path) -> float:
    """The median seconds to write 4 KiB and have it on disk, where the ledgers are."""
    seconds = []
    with (folder / "fsync").open("wb") as file:
        for _ in range(30):
            start = time.perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def asks(ours: Ours, peer: Process | None, truths: Truths, calls: int, warm: int) -> list[dict[str, Any]]:
    """Whole questions, the sides taking turns so that a busy moment of the machine falls on all of them."""
    rows = []
    for unit in UNITS:
        if peer:
            peer("open", unit=unit, questions=2 * len(QUESTIONS) * (calls + warm))
        for question in QUESTIONS:
            say(f"{question.title}, unit = {unit}: {calls} calls of each side...")
            sides: Asks = {"tacit": lambda q=question, u=unit: ours.ask(q, u)}
            if peer:
                sides["opendp"] = _remote(peer, "ask", question.name, unit)
                sides["by_hand"] = _remote(peer, "ask_by_hand", question.name, unit)
            rows.append({"question": question.title, "unit": unit} | _turns(sides, truths[question.name], calls, warm))
    return rows


def setups(ours: Ours, peer: Process | None, truths: Truths, calls: int) -> list[dict[str, Any]]:
    """The same with set-up on the clock: opening and closing a curator with a new ledger, or making a context."""
    rows = []
    for unit in UNITS:
        for question in QUESTIONS:
            say(f"{question.title}, unit = {unit}, with set-up: {calls} calls of each side...")
            sides: Asks = {"tacit": lambda q=question, u=unit: ours.ask_with_setup(q, u)}
            if peer:
                sides["opendp"] = _remote(peer, "ask_with_setup", question.name, unit)
            rows.append({"question": question.title, "unit": unit} | _turns(sides, truths[question.name], calls, 1))
    return rows


def _remote(peer: Process, do: str, question: str, unit: str) -> Callable[[], Measured]:
    def call() -> Measured:
        reply = peer(do, name=question, unit=unit)
        return reply["seconds"], reply["values"]

    return call


def _turns(sides: Asks, truth: dict[str, list[float]], calls: int, warm: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    errors: dict[str, dict[str, list[float]]] = {side: {column: [] for column in truth} for side in sides}
    for turn in range(warm + calls):
        for side, call in sides.items():
            taken, values = call()
            if turn < warm:
                continue
            seconds[side].append(taken)
            for column, true in truth.items():
                errors[side][column] += [abs(a - b) for a, b in zip(values[column], true, strict=True)]
    return {
        side: _summary(seconds[side]) | {"error": {c: statistics.fmean(e) for c, e in errors[side].items()}}
        for side in sides
    }


def _summary(seconds: list[float]) -> dict[str, Any]:
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return {"calls": len(seconds), "low": low, "median": middle, "high": high}


def noise(peer: Process | None) -> dict[str, float]:
    """Seconds for a million draws of scale 10: numpy's floats, Tacit's exact integers, OpenDP's exact integers."""
    say("a million draws of noise...")
    bits = SystemBits()
    rng = np.random.default_rng(0)
    times = {
        "numpy": _median(lambda: rng.laplace(0, SCALE, DRAWS), 15),
        "tacit": _median(lambda: draw_array(Fraction(SCALE), DRAWS, bits), 15),
    }
    if peer:
        peer("draws", number=1000, scale=SCALE, calls=1)
        taken = peer("draws", number=DRAWS, scale=SCALE, calls=2)
        times |= {"opendp": taken["noisy"], "opendp_handover": taken["plain"]}
    return times


def cold(calls: int = 10) -> dict[str, float]:
    """Seconds of whole processes: Python alone, importing Tacit, and opening the demo clinic for one question."""
    say("cold starts...")
    with tempfile.TemporaryDirectory() as folder:
        policy = build_clinic(Path(folder))
        ledger = policy.with_suffix(".ledger")

        def first() -> None:
            ledger.unlink(missing_ok=True)
            _python("-c", _ASK, str(policy))

        return {
            "python": _median(lambda: _python("-c", "pass"), calls),
            "import": _median(lambda: _python("-c", "import tacit"), calls),
            "ask": _median(first, calls),
        }


def _python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def _median(call: Callable[[], object], calls: int) -> float:
    call()
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
