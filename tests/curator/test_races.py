"""Whole asks by many processes at once: the budget holds, and a question has one answer.

Run as a script, this file has imported everything and opened nothing when it forks the processes.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.curator.resources import ledger_files
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness

pytestmark = pytest.mark.slow

POLICY = """
[data]
source = "visits.csv"

[privacy]
epsilon = {epsilon}

[tables.visits]
unit = "patient"
max_groups = 2
max_rows_per_group = 2
columns.age = {{ type = "int", lower = 0, upper = 110 }}
columns.ward = {{ type = "text", values = ["A", "B", "C"] }}

[analysts.ada]
epsilon = 1000
[analysts.bo]
epsilon = 1000
[analysts.cy]
epsilon = 1000
[analysts.di]
epsilon = 1000
"""


@pytest.fixture
def policy(tmp_path):
    """Writes a policy with an overall epsilon, and its data, and returns its path."""

    def write(epsilon: str) -> Path:
        rows = [f"{n % 40},{n % 111},{'ABC'[n % 3]}" for n in range(200)]
        (tmp_path / "visits.csv").write_text("\n".join(["patient,age,ward", *rows]) + "\n")
        (tmp_path / "clinic.toml").write_text(POLICY.format(epsilon=epsilon))
        return tmp_path / "clinic.toml"

    return write


def ask_until_refused(analyst: Any, first: str) -> int:
    """Ask questions of its own until the budget is spent; how many were answered."""
    shown = 0
    for number in range(1000):
        try:
            analyst.ask(f"SELECT SUM(age) FROM visits WHERE age > {int(first) + number}", epsilon=0.1)
        except tacit.Refused as refused:
            if refused.code != "budget":
                raise
            break
        shown += 1
    return shown


def ask_one(analyst: Any, text: str) -> Any:
    """The answer to one question."""
    return analyst.ask(text, epsilon=0.1).value


def race(work: Callable[[Any, str], Any], arguments: list[list[str]]) -> list[str]:
    """Do the work in a process for each list of arguments, all at once, and hand back what each printed."""
    command = [sys.executable, __file__, work.__name__, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    told: list[str] = json.loads(done.stdout)
    return told


def run_racer(work: Callable[[Any, str], Any], given: list[str], telling: int, start: int) -> None:
    """Open the policy, wait until `start` is closed at its other end, and work."""
    path, who, what = given
    with tacit.open(path) as curator:
        analyst = curator.analyst(who)
        os.write(telling, b"ready\n")
        os.read(start, 1)
        os.write(telling, f"{work(analyst, what)}\n".encode())


def run_all(work: Callable[[Any, str], Any], arguments: list[list[str]]) -> None:
    """Fork a process for each, and print what they say."""
    start, go = os.pipe()
    racers = []
    for given in arguments:
        reading, telling = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(300)
                os.close(go)
                run_racer(work, given, telling, start)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(telling)
        racers.append((child, os.fdopen(reading)))
    assert [pipe.readline() for _, pipe in racers] == ["ready\n"] * len(racers)
    os.close(go)
    told = [pipe.readline().strip() for _, pipe in racers]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in racers] == [0] * len(racers)
    print(json.dumps(told))


def test_four_processes_race_for_the_last_of_the_budget(policy):
    # 2.05 admits 20 questions of 0.1, whoever asks them; each has questions of their own.
    path, names = policy("2.05"), ["ada", "bo", "cy", "di"]
    shown = race(ask_until_refused, [[str(path), who, str(1000 * index)] for index, who in enumerate(names)])
    assert sum(map(int, shown)) == 20
    with tacit.open(path) as curator:
        assert curator.ledger.overall().spent.epsilon == 2 * 10**12
        for who, count in zip(names, shown, strict=True):
            assert curator.ledger.standing(who).spent.epsilon == int(count) * 10**11
        kinds = [entry.kind for entry in curator.ledger.entries()]
        assert kinds.count(EntryKind.RESERVE) == kinds.count(EntryKind.COMMIT) == 20
        assert verify(curator.ledger, Witness(ledger_files(curator.policy).witness)).ok


def test_four_processes_ask_the_same_question_at_once(policy):
    # The first is charged and asks; the others wait, and are charged for the stored answer to their own caps only.
    path, names = policy("100"), ["ada", "bo", "cy", "di"]
    text = "SELECT SUM(age) FROM visits"
    told = race(ask_one, [[str(path), who, text] for who in names])
    assert len(set(told)) == 1
    with tacit.open(path) as curator:
        assert curator.ledger.overall().spent.epsilon == 10**11
        assert [curator.ledger.standing(who).spent.epsilon for who in names] == [10**11] * 4
        kinds = [entry.kind for entry in curator.ledger.entries()]
        assert (kinds.count(EntryKind.RESERVE), kinds.count(EntryKind.COMMIT), kinds.count(EntryKind.REPEAT)) == (
            1,
            1,
            3,
        )
        assert verify(curator.ledger, Witness(ledger_files(curator.policy).witness)).ok


if __name__ == "__main__":
    for name in ("flint", "numpy.random", "pandas", "pyarrow"):  # what is imported late is imported once
        importlib.import_module(name)
    run_all({each.__name__: each for each in (ask_until_refused, ask_one)}[sys.argv[1]], json.loads(sys.argv[2]))
