"""What an analyst has seen of a question, counted as it is shown, against what was charged for it as the sums grew.

The model knows nothing of entries, claims or payments. Every pass over the data gives an answer that no other pass
gives, and a failure is an outcome like any other; so the outcomes seen can be counted, whatever happened in between.
"""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.ledger.conftest import MEMORY, clock, fresh, grains, limits, noise

from tacit.errors import Failed, ParameterError, Refused
from tacit.ledger.entries import Reservation
from tacit.ledger.ledger import Ledger
from tacit.ledger.recovery import accept_loss
from tacit.ledger.signing import SigningKey
from tacit.ledger.verify import check_receipt, verify
from tacit.ledger.witness import Witness

pytestmark = pytest.mark.slow

ANALYSTS = ("ada", "bo", "cy")
LIMITS = limits("500", ada="90", bo="90", cy="3", monthly=["bo"])
PRICES = {("a", "1"): noise("1"), ("a", "0.5"): noise("0.5"), ("b", "1"): noise("1")}
Question = tuple[str, str]  # a key, and the epsilon that it is asked at
REQUESTS = ("", "", "r-1", "r-2")
STEPS = {"ask": 3, "again": 12, "answer": 6, "fail": 6, "interrupt": 1, "month": 1, "kill": 1, "copy": 2, "lose": 1}


@dataclass(frozen=True)
class Work:
    """A pass over the data that a process was told to make."""

    claim: Reservation
    analyst: str
    question: Question
    request: str
    process: int
    name: str  # of the charge, unlike any other


class Outcomes:
    """Two processes ask for three analysts; answers come, fail, or never come; copies are lost and losses accepted."""

    def __init__(self, place: Path | str, folder: Path, set_to: Callable[[str], None], seed: int) -> None:
        self.place, self.folder, self.set_to = place, folder, set_to
        self.random = random.Random(seed)
        self.today = 1
        self.set_to("2030-01-15")
        self.key, self.witness = SigningKey.at(self.folder / "key", create=True), Witness(self.folder / "witness")
        self.tokens, self.losses = itertools.count(), 0
        self.seen: dict[tuple[str, Question], set[str]] = {}
        self.charged: Counter[tuple[str, Question]] = Counter()
        self.copies: list[Path] = []
        self.forget()
        self.open()

    def forget(self) -> None:
        """What holds from one loss to the next only: what comes of an open charge, an answer or a name is lost too."""
        self.asked: list[tuple[str, Question]] = []
        self.works: list[Work] = []
        self.answers: dict[Question, str] = {}
        self.answered: set[tuple[str, Question]] = set()  # who was shown which
        self.named: dict[tuple[str, str], str] = {}
        self.outcomes: dict[tuple[str, str, Question], str] = {}  # of each name
        self.idle = Counter(self.charged)  # charges whose outcome nobody will see
        for about, seen in self.seen.items():
            self.idle[about] -= len(seen)

    def open(self) -> None:
        more = {"key": self.key, "witness": self.witness}
        self.ledgers = [Ledger(self.place, LIMITS, patience=0, **more) for _ in range(2)]

    def close(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        self.works.clear()

    def shows(self, analyst: str, question: Question, request: str, outcome: str) -> None:
        """Of one question nobody sees more outcomes than charges, and one name, one charge, has one outcome."""
        seen = self.seen.setdefault((analyst, question), set())
        seen.add(outcome)
        assert len(seen) <= self.charged[analyst, question], (analyst, question, seen)
        if outcome.startswith("answer"):
            assert self.answers.setdefault(question, outcome) == outcome
            self.answered.add((analyst, question))
        if request:
            assert self.outcomes.setdefault((analyst, request, question), outcome) == outcome
        self.spent_covers_what_was_seen(self.ledgers[0])

    def spent_covers_what_was_seen(self, ledger: Ledger) -> None:
        """The sums hold what was shown, also where its charges are lost; the cap that refreshes holds a month of it."""
        told: Counter[str] = Counter()
        overall: dict[Question, set[str]] = {}
        for (analyst, question), seen in self.seen.items():
            told[analyst] += len(seen) * grains(question[1])
            overall.setdefault(question, set()).update(seen)
        for analyst in ("ada", "cy"):
            assert told[analyst] <= ledger.standing(analyst).spent.epsilon
        together = sum(len(seen) * grains(question[1]) for question, seen in overall.items())
        assert together <= ledger.overall().spent.epsilon

    def step(self) -> str:
        """One step of the walk, and what it was. One that cannot be taken now is none."""
        what, pick = self.random.choices(list(STEPS), list(STEPS.values()))[0], self.random.choice
        if what == "ask":
            self.ask(pick(ANALYSTS), pick(list(PRICES)))
        elif what == "again" and self.asked:
            first, question = pick(self.asked[-2:])
            self.ask(pick((first, *ANALYSTS)), question)
        elif what in {"answer", "fail", "interrupt"} and self.works:
            work = pick(self.works[-3:])
            {"answer": self.answer, "fail": self.fail, "interrupt": self.interrupt}[what](work)
        elif what == "month":
            self.today = min(9, self.today + self.random.randint(0, 2))  # set back, a clock hides that a sum began anew
            self.set_to(f"2030-0{self.today}-15")
        elif what == "kill":
            self.close()
            self.open()
        elif what == "copy" and isinstance(self.place, Path):
            with self.ledgers[0].store._lock:
                self.ledgers[0].store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self.copies.append(Path(shutil.copy(self.place, self.folder / f"copy{len(self.copies)}")))
        elif what == "lose" and self.copies:
            self.lose(pick(self.copies), with_witness=self.random.random() < 0.8)
        return what

    def ask(self, analyst: str, question: Question) -> None:
        process, request = self.random.randrange(2), self.random.choice(REQUESTS)
        self.asked.append((analyst, question))
        ledger, about = self.ledgers[process], (analyst, question)
        before = sum(ledger.standing(name).spent.epsilon for name in ANALYSTS)
        try:
            claim = ledger.reserve(analyst, PRICES[question], question[0], request=request)
        except Refused:
            return
        except Failed:
            if (analyst, request) in self.named:
                self.shows(analyst, question, request, self.named[analyst, request])
            else:
                assert self.losses  # it says nothing of the data: the loss made the charge fail
            return
        after = sum(ledger.standing(name).spent.epsilon for name in ANALYSTS)
        charges = round((after - before) / grains(question[1]))
        if self.charged[about] - self.idle[about] > len(self.seen.get(about, ())):
            assert charges == 0  # a charge without an outcome is gone on with
        if about in self.answered:
            assert charges == 0  # an answer is never charged again
        self.charged[about] += charges
        name = f"charge {claim.entry} after {self.losses} losses"
        if request:
            self.named[analyst, request] = name
        if claim.stored is not None:
            self.shows(analyst, question, request, claim.stored.decode())
            assert check_receipt(ledger, claim.receipt.to_dict()) == []
        else:
            self.works.append(Work(claim, analyst, question, request, process, name))

    def answer(self, work: Work) -> None:
        try:
            shown = self.ledgers[work.process].commit(work.claim, f"answer {next(self.tokens)}".encode()).stored
        except Failed:
            self.shows(work.analyst, work.question, work.request, work.name)
        else:
            self.shows(work.analyst, work.question, work.request, shown.decode())

    def fail(self, work: Work) -> None:
        stands = self.ledgers[work.process].fail(work.claim)
        self.shows(work.analyst, work.question, work.request, work.name if stands is None else stands.decode())

    def interrupt(self, work: Work) -> None:
        with pytest.raises(KeyboardInterrupt), self.ledgers[work.process].hold(work.claim):
            raise KeyboardInterrupt

    def lose(self, copy: Path, *, with_witness: bool) -> None:
        self.close()
        shutil.copy(copy, self.place)
        if not with_witness:
            self.witness.path.unlink()
        try:
            accept_loss(self.place, LIMITS, key=self.key, witness=self.witness, because="a disk died")
        except ParameterError:
            assert with_witness  # nothing is missing
        else:
            self.losses += 1
            self.forget()
        self.open()
        self.spent_covers_what_was_seen(self.ledgers[1])


def run(new_place: Callable[[], Path | str], walks: int) -> None:
    for seed in range(walks):
        steps: list[str] = []
        with clock() as set_to, tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            walk = Outcomes(new_place(), Path(folder), set_to, seed)
            try:
                while len(steps) < 40:
                    steps.append(walk.step())
                report = verify(walk.ledgers[0], walk.witness)
                assert report.ok, report.problems
            except BaseException as error:
                error.add_note(f"walk {seed}: {', '.join(steps)}")
                raise
            finally:
                walk.close()


def test_nobody_sees_more_outcomes_than_they_were_charged_for(full):
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        run(lambda: Path(folder) / f"{next(numbers)}", 2000 if full else 15)


def test_nobody_sees_more_outcomes_than_they_were_charged_for_on_postgres(postgres, full):
    run(lambda: fresh(postgres), 150 if full else 2)
