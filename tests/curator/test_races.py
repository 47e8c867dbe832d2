"""Whole asks by many processes at once: the budget holds, and a question has one answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


START = """
import sys
import tacit
path, who, given = sys.argv[1:]
with tacit.open(path) as curator:
    analyst = curator.analyst(who)
    print("ready", flush=True)
    sys.stdin.readline()
"""
UNTIL_REFUSED = (
    START
    + """
    shown = 0
    for number in range(1000):
        try:
            analyst.ask(f"SELECT SUM(age) FROM visits WHERE age > {int(given) + number}", epsilon=0.1)
        except tacit.Refused as refused:
            assert refused.code == "budget"
            break
        shown += 1
    print(shown)
"""
)
SAME = (
    START
    + """
    print(analyst.ask(given, epsilon=0.1).value)
"""
)


def race(script: str, arguments: list[list[str]]) -> list[str]:
    """Run a script once for each list of arguments, all at once, and hand back what each printed."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for given in arguments
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    told = [racer.communicate(timeout=120)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * len(racers)
    return told


def test_four_processes_race_for_the_last_of_the_budget(policy):
    # 2.05 admits 20 questions of 0.1, whoever asks them; each has questions of their own.
    path, names = policy("2.05"), ["ada", "bo", "cy", "di"]
    shown = race(UNTIL_REFUSED, [[str(path), who, str(1000 * index)] for index, who in enumerate(names)])
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
    told = race(SAME, [[str(path), who, text] for who in names])
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
