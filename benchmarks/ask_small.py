"""One question over a small table: asked of an open curator, and by a command that starts for it.

    make bench
    python benchmarks/ask_small.py

Writes benchmarks/ask_small.md. A person is the unit. The question groups, counts and averages over 32,000 rows; beside
it stands the same query without protection in the same DuckDB. The command asks the demo's clinic, whose data was read
before; beside it stands a process that only imports the libraries that it works with.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from ask import policy
from environment import HERE, say
from report import seconds, table

import tacit
from tacit.curator.prepare import prepare
from tacit.demo.clinic import POLICY_TEXT, build_clinic
from tacit.engines.duckdb import DuckDBEngine
from tacit.policy.load import load

ROWS = 32_000
ASKED = 60
STARTED = 7
QUESTION = "SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM visits WHERE cost > {} GROUP BY ward"
COMMAND = "SELECT ward, COUNT(*) AS n, AVG(cost) AS m FROM visits WHERE cost > {} GROUP BY ward"
LIBRARIES = "import numpy, pyarrow.compute, duckdb, cryptography, apsw, typer"

Times = tuple[float, float]  # on the clock, and of the processor


def main() -> None:
    """Measure, then tell."""
    others = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as folder:
        asked = ask_times(Path(folder))
        started = command_times(Path(folder))
    page = markdown(asked, started, others)
    (HERE / "ask_small.md").write_text(page, encoding="utf-8")
    print(page)


def ask_times(folder: Path) -> dict[str, Times]:
    """The medians of the plain query, of the whole ask, and of the engine in it."""
    say(f"{ROWS:,} rows...")
    with duckdb.connect(str(folder / "visits.duckdb")) as made:
        made.execute(
            "CREATE TABLE visits AS SELECT i // 3 AS person, CAST(hash(i) % 100 AS INTEGER) AS age,"
            " (hash(i + 1) % 500000) / 100.0 AS cost, 'W' || hash(i + 2) % 10 AS ward,"
            " DATE '2024-01-01' + CAST(hash(i + 3) % 730 AS INTEGER) AS visited,"
            f" 'D' || hash(i + 4) % 50 AS diagnosis FROM range({ROWS}) AS t(i)"
        )
    found: dict[str, list[Times]] = {"plain DuckDB": [], "the engine": [], "whole ask": []}
    run = DuckDBEngine.run

    def timed(self: DuckDBEngine, aggregation: Any) -> Any:
        answer: list[Any] = []
        found["the engine"].append(clock(lambda: answer.append(run(self, aggregation))))
        return answer[0]

    DuckDBEngine.run = timed  # type: ignore[method-assign]  # to time the engine inside the call that users make
    with (
        tacit.open(policy(folder, "person")) as curator,
        duckdb.connect(str(folder / "visits.duckdb"), read_only=True) as plain,
    ):
        ada = curator.analyst("ada")
        for number in range(ASKED):
            text = QUESTION.format(number)
            found["plain DuckDB"].append(clock(lambda t=text: plain.execute(t).fetchall()))
            found["whole ask"].append(clock(lambda t=text: ada.ask(t, epsilon=0.5)))
    DuckDBEngine.run = run  # type: ignore[method-assign]  # as it was
    return {name: medians(times[ASKED // 4 :]) for name, times in found.items()}


def command_times(folder: Path) -> dict[str, Times]:
    """The medians of a process that imports the libraries, and of `tacit ask` over data that was read before."""
    say("the command...")
    build_clinic(folder)
    text = POLICY_TEXT.replace("epoch = 1", 'prepared = "clinic.prepared"\nepoch = 1').replace(
        "clinic.ledger", "x.ledger"
    )
    (folder / "x.toml").write_text(text, encoding="utf-8")
    prepare(load(folder / "x.toml"), lambda what, share: None)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    ask = [sys.executable, "-m", "tacit", "ask", "-p", str(folder / "x.toml"), "--as", "ada", "--epsilon", "0.01"]
    found: dict[str, list[Times]] = {"importing the libraries": [], "tacit ask": []}
    for number in range(STARTED + 1):
        for name, command in (
            ("importing the libraries", [sys.executable, "-c", LIBRARIES]),
            ("tacit ask", [*ask, COMMAND.format(number)]),
        ):
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
            found[name].append((took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return {name: medians(times[1:]) for name, times in found.items()}  # the first one writes bytecode


def clock(call: Callable[[], Any]) -> Times:
    """The seconds of a call."""
    start, worked = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - worked


def medians(times: list[Times]) -> Times:
    """The median of each."""
    wall, worked = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(worked)


def markdown(asked: dict[str, Times], started: dict[str, Times], others: float) -> str:
    """The page."""

    def rows(times: dict[str, Times], title: str) -> list[list[str]]:
        first = next(iter(times.values()))
        head = [title, "on the clock", "of the processor", "ratio of the processor's"]
        return [head, *([name, seconds(a), seconds(b), f"{b / first[1]:.1f}"] for name, (a, b) in times.items())]

    return "\n".join(
        [
            "# One question over a small table",
            "",
            f"One run of `python benchmarks/ask_small.py` on {os.cpu_count()} cores; before it, other work had a load"
            f" of {others:.1f}, which it went on with. Medians.",
            "",
            f"{ROWS:,} rows, a person as the unit, GROUP BY with COUNT and AVG, asked of an open curator; the whole ask"
            " has the charge and the answer on disk:",
            "",
            *table(rows(asked, "one question")),
            "",
            "A command that starts, asks the demo's clinic, which was read before, and ends:",
            "",
            *table(rows(started, "one process")),
            "",
        ]
    )


if __name__ == "__main__":
    main()
