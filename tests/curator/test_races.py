"""Whole asks by many processes, and processes killed at any moment: the budget holds; what was shown was charged."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import tacit
from tacit.accounting.filter import Amount
from tacit.ledger.entries import Kind
from tacit.ledger.verify import verify

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


RACER = """
import sys
import tacit
path, who, start = sys.argv[1:]
with tacit.open(path) as curator:
    analyst = curator.analyst(who)
    print("ready", flush=True)
    sys.stdin.readline()
    shown = 0
    for number in range(1000):
        try:
            analyst.ask(f"SELECT SUM(age) FROM visits WHERE age > {int(start) + number}", epsilon=0.1)
        except tacit.Refused as refused:
            assert refused.code == "budget"
            break
        shown += 1
    print(shown)
"""


def test_four_processes_race_for_the_last_of_the_budget(policy):
    # 2.05 admits 20 questions of 0.1, whoever asks them; each has questions of their own.
    path = policy("2.05")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), who, str(1000 * index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index, who in enumerate(["ada", "bo", "cy", "di"])
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    shown = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        out, _ = racer.communicate(timeout=120)
        assert racer.returncode == 0
        shown.append(int(out))
    assert sum(shown) == 20
    with tacit.open(path) as curator:
        assert curator.ledger.overall().spent == Amount.cap(Fraction(2), Fraction(0))
        for who, count in zip(["ada", "bo", "cy", "di"], shown, strict=True):
            assert curator.ledger.standing(who).spent == Amount.cap(Fraction(count, 10), Fraction(0))
        kinds = [entry.kind for entry in curator.ledger.entries()]
        assert kinds.count(Kind.RESERVE) == kinds.count(Kind.COMMIT) == 20
        assert verify(curator.ledger).ok


# A process that has imported everything and opened nothing forks the victims, so that each life is short.
NURSERY = """
import json, os, random, signal, sys, time
import flint, numpy, pandas, pyarrow
import tacit
import tacit.curator.curator, tacit.engines.duckdb
from tacit.query.sql import parse

parse("SELECT COUNT(*) FROM visits")
path, kills, log = sys.argv[1], int(sys.argv[2]), os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
chance = random.Random(1701)

def life(number):
    analyst = tacit.open(path).analyst("ada")
    for question in range(10**9):
        text = f"SELECT ward, SUM(age) AS s FROM visits WHERE age > {1000 * number + question} GROUP BY ward"
        answer = analyst.ask(text, epsilon=0.001)
        shown = json.dumps([text, answer.receipt.key, answer["s"]])
        os.write(log, shown.encode() + b"\\n")

for number in range(kills):
    child = os.fork()
    if child == 0:
        try:
            life(number)
        finally:
            os._exit(1)
    before = os.fstat(log).st_size
    if number % 2:  # anywhere from its birth on
        time.sleep(chance.uniform(0, 0.4))
    else:  # or in the middle of its questions
        while os.fstat(log).st_size == before:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""


def test_kills_at_any_moment(policy, tmp_path, full):
    path, log, kills = policy("1000"), tmp_path / "shown", 200 if full else 50
    subprocess.run([sys.executable, "-c", NURSERY, str(path), str(kills), str(log)], check=True, timeout=500)
    shown = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(shown) >= kills / 2  # every second life shows something
    with tacit.open(path) as curator:
        assert verify(curator.ledger).ok
        entries = list(curator.ledger.entries())
        charged = [entry.key for entry in entries if entry.kind is Kind.RESERVE]
        # Every answer shown was charged, and stored, before it was shown.
        keys = {key for _, key, _ in shown}
        assert keys <= set(charged)
        assert keys <= {entry.key for entry in entries if entry.kind is Kind.COMMIT}
        # 0.001 each
        spent = Amount.cap(Fraction(len(charged), 1000), Fraction(0))
        assert curator.ledger.overall().spent == curator.ledger.standing("ada").spent == spent
        assert spent.epsilon_value <= curator.policy.budget.epsilon
        # A repeat by the same analyst is free and shows the same.
        ada = curator.analyst("ada")
        for text, key, values in shown if full else shown[:: 1 + len(shown) // 200]:
            again = ada.ask(text, epsilon=0.001)
            assert again.receipt.repeat
            assert again.receipt.key == key
            assert again.receipt.charged == Amount.zero()
            assert again["s"] == values
        assert curator.ledger.overall().spent == spent
        assert verify(curator.ledger).ok
