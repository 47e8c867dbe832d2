"""A run of the tests that can be stopped and continued: `pytest -p tests.support.continued --record=FILE`.

FILE holds a line for each test that passed, and first of all the state of the files under version control. A run that
finds the same state leaves out what has passed; one that finds another begins anew. What failed or was skipped is tried
again. A state is the commit and what was changed since, so that all lines of a record are about one program.

What fails is written to FILE.failed at once: a run of hours says at its end alone what went wrong.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the record."""
    parser.addoption("--record", type=Path, help="leave out what has passed by this file, and add what passes")


def pytest_configure(config: pytest.Config) -> None:
    """Read the record once, where the run is started: all workers must leave out the same tests."""
    record: Path | None = config.getoption("record")
    if record is None:
        return
    if config.inipath is None:  # it is looked for before options are known, so beside FILE where that is a word alone
        raise pytest.UsageError(f"the tests are looked for in {config.rootpath}: write --record={record}")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_LeaveOut(config.workerinput["passed"]))
        return
    heading = json.dumps({"state": read_state()})
    lines = record.read_text().splitlines() if record.exists() else []
    kept = [line for line in lines[1:] if line.endswith("}")] if lines[:1] == [heading] else []  # whole ones
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("\n".join([heading, *kept]) + "\n")
    passed = {json.loads(line)["passed"] for line in kept}
    config.pluginmanager.register(_Record(record, passed))
    if not config.getoption("numprocesses", None):
        config.pluginmanager.register(_LeaveOut(passed))


class _Record:
    """Adds what passes to the file."""

    def __init__(self, record: Path, passed: set[str]) -> None:
        self._record = record
        self._failed = record.with_name(f"{record.name}.failed")
        self._failed.unlink(missing_ok=True)
        self._passed = passed
        self._running: dict[str, float] = {}  # seconds of tests whose body has passed, and whose end is still to come

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist what to leave out."""
        node.workerinput["passed"] = sorted(self._passed)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test whose body and whose end have both passed, and say what has failed."""
        if report.failed:
            with self._failed.open("a") as file:
                file.write(f"{report.nodeid} ({report.when})\n{report.longreprtext}\n\n")
        if report.when == "call" and report.passed:
            self._running[report.nodeid] = report.duration
        elif report.when == "teardown":
            seconds = self._running.pop(report.nodeid, None)
            if report.passed and seconds is not None:
                with self._record.open("a") as file:
                    file.write(json.dumps({"passed": report.nodeid, "seconds": round(seconds, 3)}) + "\n")

    def pytest_report_header(self) -> str:
        """How many tests are left out."""
        return f"{len(self._passed):,} tests passed before, by {self._record}"


class _LeaveOut:
    """Leaves out tests by their names."""

    def __init__(self, passed: Iterable[str]) -> None:
        self._passed = frozenset(passed)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        left = [item for item in items if item.nodeid not in self._passed]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self._passed])
        items[:] = left


def read_state() -> str:
    """The commit, and a hash of what was changed since then in files under version control."""
    commit, changes = (
        subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout
        for words in (("rev-parse", "HEAD"), ("diff", "HEAD"))
    )
    return f"{commit.decode().strip()} {hashlib.sha256(changes).hexdigest()}"
