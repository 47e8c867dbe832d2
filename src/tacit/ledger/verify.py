"""The whole ledger, checked from its first entry: what it says must follow from what it said before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

from tacit.accounting.filter import Amount
from tacit.errors import LedgerError
from tacit.ledger import rows, schema
from tacit.ledger.budget import Limits
from tacit.ledger.entries import COLUMNS, GENESIS, Entry, Kind, digest, from_values
from tacit.ledger.history import History

Question = tuple[str, str]  # a key and a loss


@dataclass(frozen=True)
class Report:
    """What `verify` found. `head` is the hash of the last entry, to compare with receipts and witnesses."""

    entries: int
    head: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(ledger: History) -> Report:
    """Walk one moment of the ledger from its beginning, and say everything that is wrong with it.

    An editor who also recomputes every hash and every sum goes unnoticed here, as does an older copy put back: the head
    then differs from the one in a later receipt. Threads that share `ledger` wait; other processes do not.
    """
    walk = _Walk()
    try:
        with ledger.file.read() as connection:
            try:
                _walk(walk, connection)
            except (apsw.Error, ValueError, TypeError):
                walk.say(f"the file cannot be read beyond entry {walk.sequence}")
    except LedgerError as error:
        walk.say(error.what)
    return Report(walk.count, walk.previous, tuple(walk.problems))


def _walk(walk: _Walk, connection: apsw.Connection) -> None:
    if not schema.is_whole(connection):
        walk.say("the tables or their locks were altered")
    for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY sequence"):
        walk.visit(row)
    walk.compare_head(connection.execute("SELECT sequence, hash FROM head").fetchall())
    walk.compare_totals(connection.execute("SELECT who, epsilon, delta, cap_epsilon, cap_delta FROM totals").fetchall())
    walk.compare_answers(connection.execute("SELECT entry, key, loss, answer FROM answers"))
    for (text,) in connection.execute("PRAGMA integrity_check(10)"):
        if text != "ok":
            walk.say("the file is damaged: its pages or indexes contradict each other")
            break


@dataclass
class _Walk:
    """What the entries seen so far say."""

    count: int = 0
    sequence: int = 0
    previous: str = GENESIS
    problems: list[str] = field(default_factory=list)
    caps: Limits | None = None
    sums: dict[str, Amount] = field(default_factory=dict)  # by adding up every charge
    told: dict[str, Amount] = field(default_factory=dict)  # by the sums that the last entries state
    waiting: dict[int, Entry] = field(default_factory=dict)  # RESERVE entries without COMMIT or FAIL
    answered: dict[Question, Entry] = field(default_factory=dict)  # the COMMIT that stored each answer
    prices: dict[Question, Amount] = field(default_factory=dict)
    paid: set[tuple[str, Question]] = field(default_factory=set)

    def say(self, problem: str) -> None:
        self.problems.append(problem)

    def visit(self, row: tuple[Any, ...]) -> None:
        """Check one entry against those before it."""
        self.count += 1
        try:
            entry = from_values(row)
            found = [*self._chain(entry), *self._sums(entry), *self._kind(entry)]
        except (ValueError, TypeError):
            found = ["it cannot be read"]
            self.sequence, self.previous = row[COLUMNS.index("sequence")], str(row[COLUMNS.index("hash")])
        self.problems += [f"entry {row[COLUMNS.index('sequence')]}: {problem}" for problem in found]

    def _chain(self, entry: Entry) -> Iterator[str]:
        if entry.sequence != self.sequence + 1:
            yield f"the entry before it is {self.sequence}, so that one is missing"
        if entry.previous != self.previous:
            yield "it does not follow from the entry before it"
        if digest(entry) != entry.hash:
            yield "it was altered: its hash is another"
        self.sequence, self.previous = entry.sequence, entry.hash

    def _sums(self, entry: Entry) -> Iterator[str]:
        """Each sum is the one before it plus the charge. Go on from the stated sum: name only the first wrong one."""
        spent = self.told.get(entry.who, Amount.zero()) + entry.charge
        overall = self.told.get(rows.ALL, Amount.zero()) + entry.overall_charge
        if (entry.who != rows.ALL and entry.spent != spent) or entry.overall_spent != overall:
            yield "its sums do not follow from those before it"
        if entry.who != rows.ALL:
            self.told[entry.who] = entry.spent
            self.sums[entry.who] = self.sums.get(entry.who, Amount.zero()) + entry.charge
        self.told[rows.ALL] = entry.overall_spent
        self.sums[rows.ALL] = self.sums.get(rows.ALL, Amount.zero()) + entry.overall_charge

    def _kind(self, entry: Entry) -> Iterator[str]:
        if entry.kind is Kind.OPEN:
            self.caps = Limits.decode(entry.note)
        elif self.caps is None:
            yield "it comes before any caps"
        match entry.kind:
            case Kind.RESERVE:
                yield from self._reserve(entry)
            case Kind.REPEAT:
                yield from self._repeat(entry)
            case _:
                if entry.charge != Amount.zero() or entry.overall_charge != Amount.zero():
                    yield f"a {entry.kind} charges nothing"
        if entry.kind in (Kind.COMMIT, Kind.FAIL):
            yield from self._settle(entry)

    def _reserve(self, entry: Entry) -> Iterator[str]:
        if entry.charge != entry.overall_charge:
            yield "a first answer is charged to the analyst and to all alike"
        yield from self._capped(entry, (entry.who, rows.ALL))
        self.waiting[entry.sequence] = entry
        self.paid.add((entry.who, (entry.key, entry.loss)))

    def _repeat(self, entry: Entry) -> Iterator[str]:
        question = (entry.key, entry.loss)
        if entry.overall_charge != Amount.zero():
            yield "a repeat is charged to the analyst only"
        if question not in self.answered:
            yield "it repeats what was never answered"
        paid = (entry.who, question) in self.paid
        if entry.charge != (Amount.zero() if paid else self.prices.get(question)):
            yield "a repeat costs its price once, and then nothing"
        if not paid:
            yield from self._capped(entry, (entry.who,))
            self.paid.add((entry.who, question))

    def _capped(self, entry: Entry, guards: tuple[str, ...]) -> Iterator[str]:
        """Charges stay within the caps recorded before them."""
        for who in guards:
            cap = Amount.zero()
            if self.caps is not None:
                cap = self.caps.overall if who == rows.ALL else self.caps.analysts.get(who, cap)
            spent = self.sums[who]
            if spent.epsilon > cap.epsilon or spent.delta > cap.delta:
                yield "it goes beyond " + ("the overall cap" if who == rows.ALL else "the analyst's cap")

    def _settle(self, entry: Entry) -> Iterator[str]:
        reserved = self.waiting.pop(entry.claim, None)
        if reserved is None or (reserved.who, reserved.key) != (entry.who, entry.key):
            yield f"no open claim {entry.claim} of this analyst and question"
        elif entry.kind is Kind.COMMIT:
            question = (reserved.key, reserved.loss)
            self.prices.setdefault(question, reserved.charge)
            if self.answered.setdefault(question, entry).answer_digest != entry.answer_digest:
                yield "its answer is not the one stored first"

    def compare_head(self, found: list[Any]) -> None:
        """The head names the last entry."""
        if found != [(self.sequence, self.previous)]:
            self.say("the last entry is not the one that the head names")

    def compare_totals(self, found: list[Any]) -> None:
        """The totals are the sums of the charges, and their caps those recorded last."""
        totals = {str(who): (Amount(epsilon, delta), Amount(*cap)) for who, epsilon, delta, *cap in found}
        caps = {} if self.caps is None else {rows.ALL: self.caps.overall, **self.caps.analysts}
        for who in sorted({*totals, *self.sums, *caps}):
            spent, cap = totals.get(who, (None, None))
            whose = "the overall total" if who == rows.ALL else f"the total of {who!r}"
            if spent != self.sums.get(who, Amount.zero()):
                self.say(f"{whose} is not the sum of its charges")
            if cap != caps.get(who, Amount.zero()):
                self.say(f"{whose} has a cap that was never recorded")

    def compare_answers(self, found: Any) -> None:
        """Every stored answer is the one committed, and every one committed is stored."""
        left = dict(self.answered)
        for entry, key, loss, answer in found:
            told = left.pop((key, loss), None)
            if told is None or told.sequence != entry:
                self.say(f"the answer of entry {entry} was never committed")
            elif rows.answer_hash(answer) != told.answer_digest:
                self.say(f"the answer of entry {entry} was altered")
        for missing in left.values():
            self.say(f"the answer of entry {missing.sequence} is missing")
