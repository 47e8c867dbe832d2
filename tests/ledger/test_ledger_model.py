"""Random histories against a model that fits on a page. One unit is a quarter of an epsilon."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tacit.accounting.filter import Amount
from tacit.errors import Refused
from tacit.ledger.budget import Limits
from tacit.ledger.sqlite import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise

ANALYSTS = ("ada", "bob", "eve")
PRICES = (0, 1, 1, 2, 3, 5)  # of the six questions, in units


def units(count: int) -> Amount:
    return Amount.cap(Fraction(count, 4), Fraction(0))


class Histories(RuleBasedStateMachine):
    """Anyone asks anything; answers arrive, fail or are forgotten; the owner changes the caps."""

    @initialize(overall=st.integers(0, 12), caps=st.tuples(*[st.integers(0, 8)] * 3))
    def start(self, overall, caps):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.spent = dict.fromkeys((*ANALYSTS, "all"), 0)
        self.stored: dict[int, bytes] = {}
        self.paid: set[tuple[str, int]] = set()
        self.claims: list = []
        self.ledger = None
        self.open(overall, caps)

    @rule(overall=st.integers(0, 12), caps=st.tuples(*[st.integers(0, 8)] * 3))
    def open(self, overall, caps):
        if self.ledger is not None:
            self.ledger.close()
        self.caps = {**dict(zip(ANALYSTS, caps, strict=True)), "all": overall}
        self.ledger = Ledger(self.path, Limits(units(overall), {who: units(self.caps[who]) for who in ANALYSTS}))

    @rule(who=st.sampled_from(ANALYSTS), question=st.integers(0, 5))
    def ask(self, who, question):
        price = PRICES[question]
        known, paid = question in self.stored, (who, question) in self.paid
        guards = () if known and paid else (who,) if known else (who, "all")
        fits = all(self.spent[guard] + price <= self.caps[guard] for guard in guards)
        try:
            claim = self.ledger.reserve(who, LaplaceNoise(Fraction(4), price), f"{question}")
        except Refused:
            assert not fits
            return
        assert fits
        for guard in guards:
            self.spent[guard] += price
        self.paid.add((who, question))
        assert claim.stored == self.stored.get(question)
        assert claim.receipt.charged == units(price if guards else 0)
        assert claim.receipt.analyst.spent == units(self.spent[who])
        assert claim.receipt.overall.spent == units(self.spent["all"])
        if claim.stored is None:
            self.claims.append((question, claim))

    @rule(data=st.data(), answer=st.binary(max_size=3))
    def answer(self, data, answer):
        if self.claims:
            question, claim = self.claims.pop(data.draw(st.integers(0, len(self.claims) - 1)))
            self.stored.setdefault(question, answer)
            assert self.ledger.commit(claim, answer).stored == self.stored[question]

    @rule(data=st.data())
    def fail(self, data):
        if self.claims:
            _, claim = self.claims.pop(data.draw(st.integers(0, len(self.claims) - 1)))
            self.ledger.fail(claim)

    @invariant()
    def the_totals_are_those_of_the_model(self):
        for who in ANALYSTS:
            assert self.ledger.standing(who).spent == units(self.spent[who])
        assert self.ledger.overall().spent == units(self.spent["all"])

    def teardown(self):
        if getattr(self, "ledger", None) is not None:
            report = verify(self.ledger)
            self.ledger.close()
            self.folder.cleanup()
            assert report.ok, report.problems


def test_histories_agree_with_the_model(full):
    examples = 1000 if full else 120
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None, derandomize=True)
    )
