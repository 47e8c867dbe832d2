"""Processes are killed at every named point of an ask, and at any moment: what was shown was charged, and a question
asked again under its name is the same one, charged once.

Run as a script, this file is the nursery of all tests: a process that has imported everything and opened nothing
forks the victims, so that each life is short.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.accounting.filters import BudgetCharge
from tacit.aggregates.registry import read_question as parse
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, ledger_files
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.signing import SigningKey
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.policy.load import load
from tacit.sampling.bits import SystemBits

pytestmark = pytest.mark.slow

PRICE = 10**9  # grains: epsilon 0.001
POLICY = """
[data]
source = "visits.parquet"
[privacy]
epsilon = 1000
[tables.visits]
unit = "who"
max_groups = 2
max_rows_per_group = 2
columns.g = { type = "text", values = ["A", "B", "C", "D"] }
columns.x = { type = "int", lower = -3, upper = 10 }
[analysts.ada]
epsilon = 1000
"""

OF_AN_OPENING = [
    "when the witness is made",
    "in the transaction that makes the tables",
    "in the transaction of the opening",
    "before the witness notes the opening",
    "when the witness has noted the opening",
]
OF_AN_ASK = [
    "before the reserve",
    "in the transaction of the reserve",
    "before the witness notes the reserve",
    "when the witness has noted the reserve",
    "after the reserve",
    "after the data pass",
    "after the noise",
    "in the transaction of the commit",
    "before the witness notes the commit",
    "when the witness has noted the commit",
    "after the commit",
    "when the answer is shown",
]


# The victims.


class Fate:
    """Where a process dies, and how far it has come."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.stage = "opening"

    def reaches(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


class DoomedLedger(Ledger):
    def __init__(self, fate: Fate, *arguments: Any, **more: Any) -> None:
        self.fate = fate
        super().__init__(*arguments, **more)

    def reserve(self, *arguments: Any, **more: Any) -> Any:
        self.fate.reaches("before the reserve")
        self.fate.stage = "reserve"
        claim = super().reserve(*arguments, **more)
        self.fate.reaches("after the reserve")
        return claim

    def commit(self, *arguments: Any) -> Any:
        self.fate.reaches("after the noise")
        self.fate.stage = "commit"
        claim = super().commit(*arguments)
        self.fate.reaches("after the commit")
        return claim

    @contextmanager
    def _writing(self) -> Any:
        with super()._writing() as book:
            yield book
            self.fate.reaches(f"in the transaction of the {self.fate.stage}")


class DoomedWitness(Witness):
    def __init__(self, fate: Fate, path: Path) -> None:
        self.fate = fate
        super().__init__(path)

    def create(self) -> None:
        super().create()
        self.fate.reaches("when the witness is made")

    def note(self, sight: Any, **given: Any) -> None:
        self.fate.reaches(f"before the witness notes the {self.fate.stage}")
        super().note(sight, **given)
        self.fate.reaches(f"when the witness has noted the {self.fate.stage}")


class DoomedEngine(DuckDBEngine):
    fate: Fate

    def run(self, aggregation: Any) -> Any:
        exact = super().run(aggregation)
        self.fate.reaches("after the data pass")
        return exact


def doomed(path: str, fate: Fate) -> Curator:
    policy = load(path)
    books = ledger_files(policy)
    create = SqliteStore.create

    def create_and_die(store: SqliteStore, session: Any) -> None:
        create(store, session)
        fate.reaches("in the transaction that makes the tables")

    SqliteStore.create = create_and_die
    key = SigningKey.at(books.key, create=not books.witness.exists())
    ledger = DoomedLedger(fate, books.store, budget_limits(policy), key=key, witness=DoomedWitness(fate, books.witness))
    engine = DoomedEngine(table_schemas(policy), policy.source)
    engine.fate = fate
    return Curator(policy, engine, ledger, SystemBits())


# The nursery.


def fork(work: Callable[[int], None]) -> tuple[int, int]:
    """A child that works with a pipe to write to; its number, and the end to read from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 1
    try:
        work(writing)
        code = 0
    finally:
        os._exit(code)


def question(number: int) -> str:
    # Noise of scale 2 * 2 * 10 / 0.001 = 40,000 on four sums: two answers are never equal by chance.
    return f"SELECT g, SUM(x) AS s FROM visits WHERE x <> {number + 100} GROUP BY g"


def life(path: str, number: int, point: str) -> list[Any]:
    """What a process showed of one question before it died at a point, or ended."""

    def work(pipe: int) -> None:
        fate = Fate(point)
        answer = doomed(path, fate).analyst("ada").ask(question(number), epsilon=0.001, request=f"request {number}")
        os.write(pipe, json.dumps(answer["s"]).encode() + b"\n")
        fate.reaches("when the answer is shown")

    child, reading = fork(work)
    with os.fdopen(reading) as pipe:
        shown = [json.loads(line) for line in pipe]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (-signal.SIGKILL if point else 0), point
    return shown


def check(path: str, number: int, shown: list[Any], point: str, charges: set[int]) -> None:
    """The ledger is in order, and question `number` was charged as often as it may be."""
    books = ledger_files(load(path))
    with LedgerReader(books.store) as history:
        assert verify(history, Witness(books.witness)).problems == (), point
        entries = [entry for entry in history.entries() if entry.kind is EntryKind.RESERVE]
        mine = [entry for entry in entries if entry.request == f"request {number}"]
        assert len(mine) in charges, point
        assert mine or not shown, point
        if entries:
            assert history.overall().spent.epsilon == history.standing("ada").spent.epsilon == PRICE * len(entries)


def kill_at(path: str, number: int, point: str) -> int:
    """Kill a process at a point, ask again under the same name, and hand back how many answers the first one showed."""
    shown = life(path, number, point)
    charged = OF_AN_ASK.index(point) >= OF_AN_ASK.index("before the witness notes the reserve")
    check(path, number, shown, point, {int(charged)})
    again = life(path, number, "")
    check(path, number, shown + again, point, {1})
    assert len(again) == 1
    assert shown in ([], again), point
    return len(shown)


def failpoints(path: str, kills: int) -> None:
    chance = random.Random(1701)
    points = (OF_AN_ASK * (1 + kills // len(OF_AN_ASK)))[:kills]
    chance.shuffle(points)
    shown = sum(kill_at(path, number, point) for number, point in enumerate(points))
    assert shown == points.count("when the answer is shown")
    print(len(points))


def openings(path: str, _: int) -> None:
    """Kill a process at each point of a first opening, then ask."""
    for number, point in enumerate(OF_AN_OPENING):
        policy = Path(path).with_name(f"clinic{number}.toml")
        policy.write_text(POLICY)
        assert life(str(policy), number, point) == []
        assert life(str(policy), number, "") == life(str(policy), number, "")
        check(str(policy), number, [], point, {1})


def moments(path: str, kills: int) -> None:
    """Kill processes that ask one question after the other, at any moment, and print what each showed."""
    chance = random.Random(1701)

    def work(pipe: int, life: int) -> None:
        ada = tacit.open(path).analyst("ada")
        for step in range(10**6):
            answer = ada.ask(question(1000 * life + step), epsilon=0.001)
            shown = [1000 * life + step, answer.receipt.key, answer["s"]]
            os.write(pipe, json.dumps(shown).encode() + b"\n")

    for number in range(kills):
        child, reading = fork(lambda pipe, life=number: work(pipe, life))
        with os.fdopen(reading) as pipe:
            if number % 2:  # anywhere from its birth on
                time.sleep(chance.uniform(0, 0.4))
            else:  # or in the middle of its questions
                print(pipe.readline(), end="")
                time.sleep(chance.uniform(0, 0.15))
            os.kill(child, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            print(pipe.read(), end="")


# The tests.


@pytest.fixture
def policy(tmp_path, write) -> Path:
    """A policy with its data, 40 people in a Parquet file."""
    write(tmp_path / "visits.parquet", [(n % 40, "ABCD"[n % 4], n % 11, 0.0, True) for n in range(200)])
    (tmp_path / "clinic.toml").write_text(POLICY)
    return tmp_path / "clinic.toml"


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., str]]:
    """What the nursery prints."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:

        def tell(mode: str, path: Path, kills: int = 0) -> str:
            print(json.dumps([mode, str(path), kills]), file=nursery.stdin, flush=True)
            printed, error = json.loads(nursery.stdout.readline())
            assert not error, error
            return printed

        yield tell


def test_kills_at_every_failpoint(policy, run, full):
    kills = 120 if full else 12  # by default each point once
    assert run("failpoints", policy, kills) == f"{kills}\n"


def test_kills_while_the_ledger_is_made(policy, run):
    run("openings", policy)


def test_kills_at_any_moment(policy, run, full):
    kills = 100 if full else 6
    shown = [json.loads(line) for line in run("moments", policy, kills).splitlines() if line]
    assert len(shown) >= kills / 2  # every second life shows something
    with tacit.open(policy) as curator:
        witness = Witness(ledger_files(curator.policy).witness)
        assert verify(curator.ledger, witness).problems == ()
        entries = list(curator.ledger.entries())
        charged = [entry.key for entry in entries if entry.kind is EntryKind.RESERVE]
        # Every answer shown was charged, and stored, before it was shown.
        keys = {key for _, key, _ in shown}
        assert keys <= set(charged)
        assert keys <= {entry.key for entry in entries if entry.kind is EntryKind.COMMIT}
        spent = curator.ledger.overall().spent
        assert spent == curator.ledger.standing("ada").spent
        assert spent.epsilon == PRICE * len(charged)
        # A repeat by the same analyst is free and shows the same.
        ada = curator.analyst("ada")
        for number, key, values in shown if full else shown[:: 1 + len(shown) // 50]:
            again = ada.ask(question(number), epsilon=0.001)
            assert again.receipt.repeat
            assert again.receipt.key == key
            assert again.receipt.charged == BudgetCharge.zero()
            assert again["s"] == values
        assert curator.ledger.overall().spent == spent
        assert verify(curator.ledger, witness).problems == ()


if __name__ == "__main__":
    for name in ("flint", "numpy.random", "pandas", "pyarrow"):  # what is imported late is imported once
        importlib.import_module(name)
    parse("SELECT COUNT(*) FROM visits")
    modes: dict[str, Callable[[str, int], None]] = {"failpoints": failpoints, "openings": openings, "moments": moments}
    for line in sys.stdin:
        mode, path, kills = json.loads(line)
        signal.alarm(900)
        printed, error = io.StringIO(), ""
        try:
            with redirect_stdout(printed):
                modes[mode](path, kills)
        except Exception:
            error = traceback.format_exc()[-4000:]
        signal.alarm(0)
        print(json.dumps([printed.getvalue(), error]), flush=True)
