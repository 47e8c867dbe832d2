"""What an analyst has seen of a question, counted as it is shown, against what was charged for it as the sums grew.

The model knows nothing of entries, claims or payments. Every pass over the data gives an answer that no other pass
gives, and a failure is an outcome like any other; so the outcomes seen can be counted, whatever happened in between.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.ledger.conftest import MEMORY, clock, fresh, grains, limits, noise

from tacit.errors import Failed, ParameterError, Refused
from tacit.ledger.accept import accept_loss
from tacit.ledger.entries import Claim
from tacit.ledger.keys import Key
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import check_receipt, verify
from tacit.ledger.witness import Witness

ANALYSTS = ("ada", "bo", "cy")
LIMITS = limits("500", ada="90", bo="90", cy="3", monthly=["bo"])
ONE = noise("1")
analysts, questions = st.sampled_from(ANALYSTS), st.sampled_from("aaab")
processes, requests = st.integers(0, 1), st.sampled_from(["", "", "r-1", "r-2"])


@dataclass(frozen=True)
class Work:
    """A pass over the data that a process was told to make."""

    claim: Claim
    who: str
    question: str
    process: int
    name: str  # of the charge, unlike any other


class Outcomes(RuleBasedStateMachine):
    """Two processes ask for three analysts; answers come, fail, or never come; copies are lost and losses accepted."""

    new_place: ClassVar[Callable[[], Path | str]]

    @initialize()
    def start(self):
        self.month = clock()
        self.set_to = self.month.__enter__()
        self.day(1)
        self.place = self.new_place()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.key, self.witness = Key.at(self.folder / "key", create=True), Witness(self.folder / "witness")
        self.tokens, self.losses = itertools.count(), 0
        self.seen: dict[tuple[str, str], set[str]] = {}
        self.charged: Counter[tuple[str, str]] = Counter()
        self.named: dict[tuple[str, str], str] = {}
        self.works: list[Work] = []
        self.copies: list[Path] = []
        self.open()

    def open(self) -> None:
        more = {"key": self.key, "witness": self.witness}
        self.ledgers = [Ledger(self.place, LIMITS, patience=0, **more) for _ in range(2)]

    def close(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        self.works.clear()

    def shows(self, who: str, question: str, outcome: str) -> None:
        seen = self.seen.setdefault((who, question), set())
        seen.add(outcome)
        assert len(seen) <= self.charged[who, question], (who, question, seen)

    @rule(month=st.integers(1, 9))
    def day(self, month):
        self.set_to(f"2030-0{month}-15")

    @rule(who=analysts, question=questions, process=processes, request=requests)
    def ask(self, who, question, process, request):
        ledger = self.ledgers[process]
        before = sum(ledger.standing(name).spent.epsilon for name in ANALYSTS)
        try:
            claim = ledger.reserve(who, ONE, question, request=request)
        except Refused:
            return
        except Failed:
            self.shows(who, question, self.named[who, request])
            return
        after = sum(ledger.standing(name).spent.epsilon for name in ANALYSTS)
        self.charged[who, question] += round((after - before) / grains("1"))
        name = f"charge {claim.entry} after {self.losses} losses"
        if request:
            self.named[who, request] = name
        if claim.stored is not None:
            self.shows(who, question, claim.stored.decode())
            assert check_receipt(ledger, claim.receipt.to_dict()) == []
        else:
            self.works.append(Work(claim, who, question, process, name))

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def answer(self, data):
        work = data.draw(st.sampled_from(self.works))
        try:
            shown = self.ledgers[work.process].commit(work.claim, f"answer {next(self.tokens)}".encode()).stored
        except Failed:
            self.shows(work.who, work.question, work.name)
        else:
            self.shows(work.who, work.question, shown.decode())

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def fail(self, data):
        work = data.draw(st.sampled_from(self.works))
        stands = self.ledgers[work.process].fail(work.claim)
        self.shows(work.who, work.question, work.name if stands is None else stands.decode())

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def interrupt(self, data):
        work = data.draw(st.sampled_from(self.works))
        with pytest.raises(KeyboardInterrupt), self.ledgers[work.process].held(work.claim):
            raise KeyboardInterrupt

    @rule()
    def kill(self):
        self.close()
        self.open()

    @precondition(lambda self: isinstance(self.place, Path))
    @rule()
    def copy(self):
        with self.ledgers[0].store._lock:
            self.ledgers[0].store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.copies.append(Path(shutil.copy(self.place, self.folder / f"copy{len(self.copies)}")))

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), with_witness=st.booleans())
    def lose(self, data, with_witness):
        self.close()
        shutil.copy(data.draw(st.sampled_from(self.copies)), self.place)
        if not with_witness:
            self.witness.path.unlink()
        try:
            accept_loss(self.place, LIMITS, key=self.key, witness=self.witness, because="a disk died")
        except ParameterError:
            assert with_witness  # nothing is missing
        self.losses += 1
        self.open()

    def teardown(self):
        if hasattr(self, "ledgers"):
            report = verify(self.ledgers[0], self.witness)
            self.close()
            shutil.rmtree(self.folder)
            self.month.__exit__(None, None, None)
            assert report.ok, report.problems


def run(new_place: Callable[[], Path | str], examples: int) -> None:
    machine = type("Run", (Outcomes,), {"new_place": staticmethod(new_place)})
    steps = settings(max_examples=examples, stateful_step_count=30, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(machine, settings=steps)


def test_nobody_sees_more_outcomes_than_they_were_charged_for(full):
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        run(lambda: Path(folder) / f"{next(numbers)}", 1500 if full else 40)


def test_nobody_sees_more_outcomes_than_they_were_charged_for_on_postgres(postgres, full):
    run(lambda: fresh(postgres), 150 if full else 6)
