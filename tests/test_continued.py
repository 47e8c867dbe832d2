"""A long run of the tests can be stopped and continued, and is about one state of the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.counts import FULL

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TESTS = """
import os
import pytest
@pytest.mark.parametrize("which", ["one", "two", "bad name ]"])
def test_a(which): assert which != os.environ.get("BROKEN")
def test_skipped(): pytest.skip("not here")
"""


def run(folder: Path, record: Path, *words: str, broken: str = "") -> str:
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.continued", "-p", "no:cacheprovider"]
    command += ["--record", str(record), "-c", "/dev/null", "--rootdir", str(folder), *words, str(folder)]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "BROKEN": broken, "HOME": str(folder)}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other plugins are slow to import, and none is asked for
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout


ALONE, WITH_A_WORKER = [], ["-p", "xdist", "-n", "1"]


# By default each way once: a run that stopped without workers is continued with one, and below one is without.
@pytest.mark.parametrize(
    ("first", "then"),
    [(ALONE, ALONE), (WITH_A_WORKER, WITH_A_WORKER)] if FULL else [(ALONE, WITH_A_WORKER)],
)
def test_what_has_passed_is_left_out_and_the_rest_is_tried_again(
    tmp_path: Path, first: list[str], then: list[str]
) -> None:
    record = tmp_path / "made" / "record"
    assert "1 failed, 2 passed, 1 skipped" in run(tmp_path, record, *first, broken="two")
    assert len(record.read_text().splitlines()) == 3
    failed = record.with_name("record.failed")
    said = failed.read_text()
    assert said.startswith("test_some.py::test_a[two] (call)\n") and "assert 'two' != 'two'" in said
    with record.open("a") as file:
        file.write('{"passed": "test_some.py::test_a[tw')  # a process was killed while it wrote
    assert "1 passed, 1 skipped" in run(tmp_path, record, *then)
    assert not failed.exists()


def test_another_state_of_the_program_begins_anew(tmp_path: Path) -> None:
    record = tmp_path / "record"
    run(tmp_path, record)
    lines = record.read_text().splitlines()
    record.write_text("\n".join([json.dumps({"state": "another"}), *lines[1:]]) + "\n")
    assert "3 passed, 1 skipped" in run(tmp_path, record)
    assert record.read_text().splitlines()[0] == lines[0]
    assert "passed" not in run(tmp_path, record).splitlines()[-1]
