"""Random histories against a model that fits on a page."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.ledger.conftest import MEMORY, clock, fresh

from tacit.accounting.filters import BudgetCharge, FilterLimits, compute_charge, compute_limits
from tacit.errors import ErrorCode, Failed, Refused
from tacit.ledger import ledger as ledger_module
from tacit.ledger.budget import AnalystLimit, BudgetLimits
from tacit.ledger.entries import Reservation
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import ApproximateDp, GaussianNoise, LaplaceNoise

pytestmark = pytest.mark.slow

ANALYSTS = ("ada", "bob", "eve")
EVERYONE = "everyone"
NOTHING = BudgetCharge.zero()
SMALL = Fraction(1, 10**7)
QUESTIONS = (  # each with the delta that Gaussian noise may be charged
    (LaplaceNoise(Fraction(1), 0), Fraction(0)),  # which costs nothing
    (LaplaceNoise(Fraction(4), 1), Fraction(0)),
    (LaplaceNoise(Fraction(2), 1), Fraction(0)),
    (LaplaceNoise(Fraction(20), 1), Fraction(0)),
    (ApproximateDp(Fraction(1, 4), SMALL), Fraction(0)),
    (GaussianNoise(Fraction(100), 1), SMALL),
    (GaussianNoise(Fraction(400), 1), Fraction(0)),  # which only the second filter admits
)
priced = cache(compute_charge)  # the price of Gaussian noise takes a tenth of a second
capped = cache(compute_limits)
epsilons = st.sampled_from([Fraction(halves, 2) for halves in (6, 5, 4, 3, 2, 1, 0)])
deltas = st.sampled_from([8 * SMALL, 8 * SMALL, 8 * SMALL, Fraction(0)])
grants = st.builds(AnalystLimit, st.builds(capped, epsilons, deltas), st.booleans())
terms = st.builds(
    lambda overall, given, left_out: BudgetLimits(
        overall, {analyst: given[analyst] for analyst in ANALYSTS if analyst != left_out}
    ),
    st.builds(capped, epsilons.map(lambda epsilon: 3 * epsilon), deltas),
    st.fixed_dictionaries(dict.fromkeys(ANALYSTS, grants)),
    st.sampled_from(["", "", "", "eve"]),
)
analysts = st.sampled_from(ANALYSTS)
names = st.sampled_from(["", "", "r-1", "r-2"])


@dataclass
class Paid:
    """A charge in the model."""

    question: int
    analyst: str
    outcome: str = "open"  # then "committed" or "failed"


class Histories(RuleBasedStateMachine):
    """Anyone asks anything; answers arrive, fail or are interrupted; the owner changes the terms; the clock jumps."""

    new_place: ClassVar[Callable[[], Path | str]]

    @initialize(limits=terms)
    def start(self, limits):
        self.stack = ExitStack()
        self.stack.enter_context(pytest.MonkeyPatch.context()).setattr(ledger_module, "compute_charge", priced)
        self.set_clock = self.stack.enter_context(clock())
        self.place = self.new_place()
        self.spent = dict.fromkeys((*ANALYSTS, EVERYONE), NOTHING)
        self.lives = dict.fromkeys(ANALYSTS, NOTHING)
        self.months: dict[str, str] = {}
        self.limits: BudgetLimits | None = None
        self.ledger: Ledger | None = None
        self.written = ""  # the month of the last entry
        self.stored: dict[int, bytes] = {}
        self.bought: set[tuple[str, int]] = set()  # stored answers that were shown at a charge
        self.charges: dict[int, Paid] = {}  # by entry
        self.requests: dict[tuple[str, str], tuple[int, int]] = {}  # to a question and the entry of its charge
        self.flying: set[int] = set()
        self.claims: list[Reservation] = []
        self.asked: list[tuple[str, int, str]] = []
        self.turn_clock(3)
        self.open(limits)

    # The owner

    @rule(month=st.integers(1, 6))
    def turn_clock(self, month):
        self.today = f"2030-{month:02d}"
        self.set_clock(f"{self.today}-15")

    @rule(limits=st.none() | terms)
    def open(self, limits):
        if self.ledger is not None:
            self.ledger.close()
        self.flying.clear()
        limits = limits or self.limits
        self.ledger = Ledger(self.place, limits)
        if limits != self.limits:
            self.limits = limits
            self.write()
            for analyst, grant in limits.analysts.items():
                self.begin_terms(analyst, grant)

    def begin_terms(self, analyst: str, grant: AnalystLimit) -> None:
        """What was spent goes on as that of this month, or of all months."""
        if bool(self.months.get(analyst, "")) != grant.monthly or analyst not in self.months:
            self.months[analyst] = self.written if grant.monthly else ""
            if not grant.monthly:
                self.spent[analyst] = self.lives[analyst]

    # The analysts

    @rule(analyst=analysts, question=st.integers(0, len(QUESTIONS) - 1), request=names)
    def ask(self, analyst, question, request):
        self.asked.append((analyst, question, request))
        loss, delta = QUESTIONS[question]
        head, expected = self.ledger.head(), self.expected(analyst, question, request)
        in_flight = any(self.charges[entry].question == question for entry in self.flying)
        self.ledger._patience = 0 if in_flight else 60  # where nobody is at work there is nothing to wait for
        begun = time.monotonic()
        if isinstance(expected, ErrorCode):
            with pytest.raises((Refused, Failed)) as error:
                self.ledger.reserve(analyst, loss, f"{question}", delta=delta, request=request)
            assert error.value.code is expected
            assert self.ledger.head() == head
            return
        claim = self.ledger.reserve(analyst, loss, f"{question}", delta=delta, request=request)
        assert time.monotonic() - begun < 30
        assert claim.stored == self.stored.get(question)
        if expected in {"bound", "free"}:
            assert self.ledger.head() == head
            assert claim.receipt.repeat or claim.entry == self.requests[analyst, request][1]
            if expected == "free":
                assert (claim.receipt.charged, claim.receipt.cost) == (NOTHING, priced(loss, delta))
                assert (claim.receipt.analyst_budget.spent, claim.receipt.analyst_budget.cap) == (
                    self.so_far(analyst),
                    self.cap(analyst),
                )
            return
        if expected in {"resume", "take"}:
            assert claim.entry == self.open_charge(analyst, question)
            self.write()
            if expected == "take":
                self.charges[claim.entry].outcome = "committed"
                self.flying.discard(claim.entry)
        else:
            self.charge(claim, analyst, question, priced(loss, delta), expected)
        if request and (analyst, request) not in self.requests:
            self.requests[analyst, request] = question, claim.entry
        if claim.stored is None:
            self.flying.add(claim.entry)
            self.claims.append(claim)

    @rule(data=st.data())
    def ask_again(self, data):
        if self.asked:
            self.ask(*data.draw(st.sampled_from(self.asked)))

    @rule(data=st.data(), analyst=analysts, request=names)
    def ask_as_another(self, data, analyst, request):
        if self.asked:
            self.ask(analyst, data.draw(st.sampled_from(self.asked))[1], request)

    def expected(self, analyst: str, question: int, request: str) -> ErrorCode | str:
        """What asking must come to: a refusal, or how it is paid."""
        if analyst not in self.limits.analysts:
            return ErrorCode.UNKNOWN_ANALYST
        about, entry = self.requests.get((analyst, request), (question, 0))
        if about != question:
            return ErrorCode.REQUEST
        if entry in self.charges and self.charges[entry].outcome == "failed":
            return ErrorCode.FAILED
        if question in self.stored:
            if self.open_charge(analyst, question):
                return "take"
            if entry:
                return "bound"
            if (analyst, question) in self.bought or self.is_answered(analyst, question):
                return "free"
            return "own charge" if self.fits(question, (analyst,)) else ErrorCode.BUDGET
        if self.open_charge(analyst, question):
            return "resume"
        return "charge" if self.fits(question, (analyst, EVERYONE)) else ErrorCode.BUDGET

    def fits(self, question: int, guards: tuple[str, ...]) -> bool:
        """Whether for every guard at least one filter is within its caps."""
        for guard in guards:
            after, cap = self.so_far(guard) + priced(*QUESTIONS[question]), self.cap(guard)
            basic = after.epsilon <= cap.epsilon and after.delta_a <= cap.delta_a
            if not (basic or (after.rho <= cap.rho and after.delta_b <= cap.delta_b)):
                return False
        return True

    def charge(self, claim: Reservation, analyst: str, question: int, price: BudgetCharge, how: str) -> None:
        self.write()
        self.spent[analyst] = self.so_far(analyst) + price
        self.lives[analyst] += price
        if self.months[analyst]:
            self.months[analyst] = self.month(analyst)
        if how == "charge":
            self.spent[EVERYONE] += price
            self.charges[claim.entry] = Paid(question, analyst)
        else:
            self.bought.add((analyst, question))
        assert (claim.receipt.charged, claim.receipt.cost) == (price, price)
        assert (claim.receipt.analyst_budget.spent, claim.receipt.analyst_budget.cap) == (
            self.spent[analyst],
            self.cap(analyst),
        )
        assert claim.receipt.overall_budget.spent == self.spent[EVERYONE]

    # What comes of a charge

    @rule(data=st.data(), answer=st.binary(max_size=3))
    def answer(self, data, answer):
        if claim := self.drawn(data):
            paid = self.charges[claim.entry]
            if paid.outcome == "failed":
                with pytest.raises(Failed):
                    self.ledger.commit(claim, answer)
                return
            stored = self.stored.setdefault(paid.question, answer)
            assert self.ledger.commit(claim, answer).stored == stored
            self.settle(claim, "committed")

    @rule(data=st.data())
    def fail(self, data):
        if claim := self.drawn(data):
            paid = self.charges[claim.entry]
            stands = self.stored[paid.question] if paid.outcome == "committed" else None
            assert self.ledger.fail(claim) == stands
            self.settle(claim, "failed")

    @rule(data=st.data())
    def interrupt(self, data):
        if claim := self.drawn(data):
            with pytest.raises(KeyboardInterrupt), self.ledger.hold(claim):
                raise KeyboardInterrupt
            self.flying.discard(claim.entry)

    def drawn(self, data) -> Reservation | None:
        """Any claim that was ever handed out."""
        return data.draw(st.sampled_from(self.claims)) if self.claims else None

    def settle(self, claim: Reservation, outcome: str) -> None:
        if self.charges[claim.entry].outcome == "open":
            self.charges[claim.entry].outcome = outcome
            self.write()
        self.flying.discard(claim.entry)

    # The model's own

    def write(self) -> None:
        """An entry was written, at no earlier time than the one before it."""
        self.written = max(self.written, self.today)

    def month(self, analyst: str) -> str:
        return max(self.months[analyst], self.written, self.today)

    def so_far(self, guard: str) -> BudgetCharge:
        """What counts against the next charge."""
        refreshed = self.months.get(guard, "") and self.month(guard) > self.months[guard]
        return NOTHING if refreshed else self.spent[guard]

    def cap(self, guard: str) -> FilterLimits:
        return self.limits.overall if guard == EVERYONE else self.limits.analysts[guard].caps

    def open_charge(self, analyst: str, question: int) -> int:
        mine = (entry for entry, paid in self.charges.items() if (paid.analyst, paid.question) == (analyst, question))
        return next((entry for entry in mine if self.charges[entry].outcome == "open"), 0)

    def is_answered(self, analyst: str, question: int) -> bool:
        """Whether a charge of theirs came to the answer. One that failed is spent, and pays for nothing."""
        return Paid(question, analyst, "committed") in self.charges.values()

    @invariant()
    def the_totals_are_those_of_the_model(self):
        for analyst in self.limits.analysts:
            found = self.ledger.standing(analyst)
            refreshed = self.months[analyst] and self.today > self.months[analyst]
            assert found.spent == (NOTHING if refreshed else self.spent[analyst])
            assert found.cap == self.cap(analyst)
        assert self.ledger.overall().spent == self.spent[EVERYONE]

    def teardown(self):
        if getattr(self, "ledger", None) is not None:
            report = verify(self.ledger)
            self.ledger.close()
            self.stack.close()
            assert report.ok, report.problems


def run(new_place: Callable[[], Path | str], examples: int) -> None:
    machine = type("Run", (Histories,), {"new_place": staticmethod(new_place)})
    steps = settings(max_examples=examples, stateful_step_count=40, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(machine, settings=steps)


def test_histories_agree_with_the_model(full):
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        run(lambda: Path(folder) / f"{next(numbers)}", 1000 if full else 20)


def test_histories_agree_with_the_model_on_postgres(postgres, full):
    run(lambda: fresh(postgres), 150 if full else 4)
