"""The whole ledger, checked from its first entry: what it says must follow from what it said before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import (
    GRAINS_PER_EPSILON,
    BudgetCharge,
    FilterLimits,
    format_epsilon,
    is_within_basic,
    is_within_zcdp,
)
from tacit.accounting.receipt import STEP_FIELDS, describe_cost
from tacit.errors import LedgerError
from tacit.ledger.budget import AnalystLimit, Terms
from tacit.ledger.entries import ALL_ANALYSTS, COST_COLUMNS, GENESIS, Entry, EntryKind, hash_entry
from tacit.ledger.reader import LedgerReader
from tacit.ledger.signing import is_valid_signature
from tacit.ledger.store import LedgerStore, Row, SqlTransaction
from tacit.ledger.table_locks import UNSENT, UNSTORED, decode_lock, read_tables, signed_text
from tacit.ledger.transaction import ZERO_COST, LedgerTransaction, hash_answer, read_entries
from tacit.ledger.witness import Witness, WitnessedHead

QuestionKey = tuple[str, str]  # a key and a loss
_OFTEN = 500  # entries from one word of progress to the next
_OVER = "its month is over: it counts in an earlier one than that in which it was charged"
_MISPRICED = "a repeat is charged its privacy loss once, and then nothing"
_PAID_BY_A_FAILURE = "its charge failed, and has paid for an answer that was shown"
_FORMER = frozenset({_OVER, _MISPRICED, _PAID_BY_A_FAILURE})  # what earlier versions charged by other rules


@dataclass(frozen=True)
class VerificationReport:
    """What `verify` found. `head` is the hash of the last entry, to compare with receipts.

    `former` of the problems are charges that an earlier version of Tacit would have made by its own rules. Such a
    ledger stays as it is and usable, because what was told under it is not undone.
    """

    entries: int
    head: str
    problems: tuple[str, ...]
    former: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def is_whole(self) -> bool:
        """Whether every entry and answer is there as it was written, whatever rule it was charged by."""
        return len(self.problems) == self.former


def verify(
    ledger: LedgerReader, witness: Witness | None = None, progress: Callable[[int], None] = lambda count: None
) -> VerificationReport:
    """Walk one moment of the ledger from its beginning, and say everything that is wrong with it.

    An editor who also recomputes every hash and every sum goes unnoticed by the walk, as does an older copy put back;
    the witness then knows other heads. Threads that share `ledger` wait; other processes do not. `progress` is told the
    number of entries walked so far, now and then.
    """
    walk = _ChainVerifier(progress)
    sights: list[WitnessedHead] = []
    try:
        sights = list(witness.backwards())[::-1] if witness is not None else []
    except LedgerError as error:
        walk.say(error.what)
    try:
        with ledger.store.read() as session:
            try:
                _check_ledger(walk, ledger.store, session, {sight.sequence: sight for sight in sights})
            except (LedgerError, ValueError, TypeError):
                walk.say(f"it cannot be read beyond entry {walk.sequence}")
    except LedgerError as error:
        walk.say(error.what)
    return VerificationReport(walk.count, walk.previous, tuple(walk.problems), walk.former)


def _check_ledger(
    walk: _ChainVerifier, store: LedgerStore, session: SqlTransaction, sights: dict[int, WitnessedHead]
) -> None:
    if not store.is_whole(session):
        walk.say("the tables or their locks were altered")
    for entry in read_entries(session):
        walk.visit(entry)
        sight = sights.pop(entry.sequence, None)
        if sight is not None and (sight.hash, sight.everyone) != (entry.hash, entry.everyone):
            walk.say(f"entry {entry.sequence}: the witness saw another in its place")
    if sights:
        walk.say(f"the witness saw {len(sights):,} entries that are not there, up to entry {max(sights)}")
    caps = [f"cap_{grain}" for grain in COST_COLUMNS]
    walk.compare_head(session.run("SELECT sequence, hash FROM head"))
    walk.compare_totals(session.run(f"SELECT who, month, {', '.join((*COST_COLUMNS, *caps))} FROM totals"))
    walk.compare_answers(session.run("SELECT entry, key, loss, answer FROM answers ORDER BY entry"))
    if damage := store.damage(session):
        walk.say(f"the file is damaged: {damage}")


@dataclass
class _ChainVerifier:
    """What the entries seen so far say.

    Whether an answer was paid for is counted, and not looked up as the ledger does. Of one question an analyst has seen
    a failure for each charge that failed, and at most one answer, the stored one: these outcomes are no more than the
    charges for it, those without an outcome included. A charge cannot turn out to be another one's later, so this is
    checked where an answer is shown and where a charge fails.
    """

    progress: Callable[[int], None]
    count: int = 0
    sequence: int = 0
    previous: str = GENESIS
    time: str = ""
    problems: list[str] = field(default_factory=list)
    former: int = 0
    terms: Terms | None = None
    sums: dict[str, BudgetCharge] = field(default_factory=dict)  # what counts against each cap
    months: dict[str, str] = field(default_factory=dict)
    lives: dict[str, BudgetCharge] = field(default_factory=dict)  # over all months
    everyone: BudgetCharge = ZERO_COST
    open_claims: dict[int, Entry] = field(default_factory=dict)  # RESERVE entries without COMMIT or FAIL
    resumed: dict[int, frozenset[str]] = field(default_factory=dict)  # the live tables that RESUMEs of a charge add
    answered: dict[QuestionKey, Entry] = field(default_factory=dict)  # the COMMIT that stored each answer
    prices: dict[QuestionKey, BudgetCharge] = field(default_factory=dict)
    charges: Counter[tuple[str, QuestionKey]] = field(default_factory=Counter)  # how often it was paid for
    failures: Counter[tuple[str, QuestionKey]] = field(default_factory=Counter)
    shown: set[tuple[str, QuestionKey]] = field(default_factory=set)  # who was shown which stored answer
    requests: set[tuple[str, str]] = field(default_factory=set)
    locked: dict[str, int] = field(default_factory=dict)  # each table in lower case with the claim that locked it

    def say(self, problem: str) -> None:
        self.problems.append(problem)

    def visit(self, entry: Entry) -> None:
        """Check one entry against those before it."""
        self.count += 1
        if self.count % _OFTEN == 0:
            self.progress(self.count)
        try:
            found = [*self._chain(entry), *self._month(entry), *self._sums(entry), *self._kind(entry)]
        except (ValueError, TypeError):
            found = ["it cannot be read"]
        self.problems += [f"entry {entry.sequence}: {problem}" for problem in found]
        self.former += sum(problem in _FORMER for problem in found)

    def _chain(self, entry: Entry) -> Iterator[str]:
        if entry.sequence != self.sequence + 1:
            yield f"the entry before it is {self.sequence}, so that one is missing"
        if entry.previous != self.previous:
            yield "it does not follow from the entry before it"
        if hash_entry(entry) != entry.hash:
            yield "it was altered: its hash is another"
        if entry.time < self.time:
            yield "it is earlier than the entry before it"
        self.sequence, self.previous, self.time = entry.sequence, entry.hash, entry.time

    def _month(self, entry: Entry) -> Iterator[str]:
        """A sum starts anew in a later month only, and for an analyst whose cap refreshes."""
        then = self.months.get(entry.analyst, "")
        if entry.analyst == ALL_ANALYSTS or entry.kind is EntryKind.CARRY:
            begins = False
        elif entry.sequence and entry.analyst not in self.months:
            begins = True
        else:
            begins = entry.month > then > ""
            if entry.month != then and not begins:
                yield "its month is not a later one"
        if entry.month and entry.month > entry.time[:7]:
            yield "its month has not come yet"
        is_charged = entry.kind in (EntryKind.RESERVE, EntryKind.REPEAT) and entry.charge != ZERO_COST
        if is_charged and "" < entry.month < entry.time[:7]:
            yield _OVER
        if begins:
            self.sums[entry.analyst] = ZERO_COST
        self.months[entry.analyst] = entry.month

    def _sums(self, entry: Entry) -> Iterator[str]:
        """Each sum is the one before it plus the charge. Go on from the stated sum: name only the first wrong one."""
        spent = self.sums.get(entry.analyst, ZERO_COST) + entry.charge
        overall = self.sums.get(ALL_ANALYSTS, ZERO_COST) + entry.shared_charge
        everyone = self.everyone + entry.charge
        told = ZERO_COST if entry.analyst == ALL_ANALYSTS else entry.spent
        if (entry.analyst != ALL_ANALYSTS and entry.spent != spent) or (entry.overall, entry.everyone) != (
            overall,
            everyone,
        ):
            yield "its sums do not follow from those before it"
        self.sums[ALL_ANALYSTS], self.everyone = entry.overall, entry.everyone
        if entry.analyst != ALL_ANALYSTS:
            self.sums[entry.analyst] = told
            if entry.kind is not EntryKind.CARRY:
                self.lives[entry.analyst] = self.lives.get(entry.analyst, ZERO_COST) + entry.charge

    def _kind(self, entry: Entry) -> Iterator[str]:
        if entry.kind is EntryKind.OPEN:
            self.terms = Terms.decode(entry.note)
        elif self.terms is None:
            yield "it comes before any terms"
        if entry.request and (entry.analyst, entry.request) in self.requests:
            yield "its request was used before"
        self.requests.add((entry.analyst, entry.request))
        match entry.kind:
            case EntryKind.RESERVE:
                yield from self._reserve(entry)
            case EntryKind.REPEAT:
                yield from self._repeat(entry)
            case EntryKind.CARRY:
                yield from self._carry(entry)
            case EntryKind.ACCEPT:
                pass  # the owner's word, whatever it charges
            case _ if entry.charge != ZERO_COST:
                yield f"a {entry.kind} charges nothing"
            case EntryKind.LOCK | EntryKind.UNLOCK:
                yield from self._lock(entry)
        if entry.kind in (EntryKind.COMMIT, EntryKind.FAIL):
            yield from self._settle(entry)
        elif entry.kind is EntryKind.RESUME:
            reserved = self.open_claims.get(entry.claim)
            if reserved is None or (reserved.analyst, reserved.question) != (entry.analyst, entry.question):
                yield f"no open claim {entry.claim} of this analyst and question"
            else:
                self.resumed[entry.claim] = self._tables_of(reserved) | read_tables(entry)
                yield from self._check_unlocked(reserved)

    def _lock(self, entry: Entry) -> Iterator[str]:
        """A table is locked by a charge that is open and reads it, or by no charge at all; only what is locked is
        unlocked.
        """
        table, _, signature = decode_lock(entry)
        key, locks = "" if self.terms is None else self.terms.key, entry.kind is EntryKind.LOCK
        if key and not is_valid_signature(signed_text(entry.kind, table, entry.previous), signature, key):
            yield f"the {entry.kind} is not signed by this ledger"
        if locks is (table.lower() in self.locked):
            yield f"{table} is {'locked already' if locks else 'not locked'}"
        if locks and entry.claim:
            reserved = self.open_claims.get(entry.claim)
            if reserved is None or table not in self._tables_of(reserved):
                yield f"no open claim {entry.claim} that reads {table}"
        if locks:
            self.locked[table.lower()] = entry.claim
        else:
            self.locked.pop(table.lower(), None)

    def _check_unlocked(self, reserved: Entry) -> Iterator[str]:
        """Nothing runs over a locked table."""
        yield from (f"it reads {table}, which is locked" for table in self._locked_of(reserved))

    def _locked_of(self, reserved: Entry) -> list[str]:
        return sorted(table for table in self._tables_of(reserved) if table.lower() in self.locked)

    def _tables_of(self, reserved: Entry) -> frozenset[str]:
        """The live tables of a charge: those that its RESERVE and each RESUME of it name."""
        return read_tables(reserved) | self.resumed.get(reserved.sequence, frozenset())

    def _reserve(self, entry: Entry) -> Iterator[str]:
        if not entry.shared:
            yield "a first answer is charged to the analyst and to all alike"
        yield from self._check_caps(entry, (entry.analyst, ALL_ANALYSTS))
        yield from self._check_unlocked(entry)
        self.open_claims[entry.sequence] = entry
        self.charges[entry.analyst, entry.question] += 1

    def _repeat(self, entry: Entry) -> Iterator[str]:
        if entry.shared:
            yield "a repeat is charged to the analyst only"
        if entry.question not in self.answered:
            yield "it repeats what was never answered"
        about = entry.analyst, entry.question
        paid = self.failures[about] + 1 <= self.charges[about]
        if entry.charge != (ZERO_COST if paid else self.prices.get(entry.question)):
            yield _MISPRICED
        if not paid:
            yield from self._check_caps(entry, (entry.analyst,))
            self.charges[about] += 1
        self.shown.add(about)

    def _carry(self, entry: Entry) -> Iterator[str]:
        if not entry.month and entry.spent != self.lives.get(entry.analyst, ZERO_COST):
            yield "a cap that no longer refreshes counts all months"
        elif entry.month and entry.charge != ZERO_COST:
            yield "a cap that begins to refresh keeps what was spent"

    def _check_caps(self, entry: Entry, guards: tuple[str, ...]) -> Iterator[str]:
        """After a charge at least one filter is within the caps recorded before it."""
        if bool(entry.month) != self._grant(entry.analyst).monthly:
            yield "its month is not what the terms say"
        for analyst in guards:
            spent, cap = self.sums[analyst], self._cap(analyst)
            if not (is_within_basic(spent, cap) or is_within_zcdp(spent, cap)):
                yield "it goes beyond " + ("the overall cap" if analyst == ALL_ANALYSTS else "the analyst's cap")

    def _cap(self, analyst: str) -> FilterLimits:
        if analyst == ALL_ANALYSTS:
            return FilterLimits.zero() if self.terms is None else self.terms.limits.overall
        return self._grant(analyst).caps

    def _grant(self, analyst: str) -> AnalystLimit:
        nothing = AnalystLimit(FilterLimits.zero())
        return nothing if self.terms is None else self.terms.limits.analysts.get(analyst, nothing)

    def _settle(self, entry: Entry) -> Iterator[str]:
        reserved = self.open_claims.pop(entry.claim, None)
        if reserved is None or (reserved.analyst, reserved.key) != (entry.analyst, entry.key):
            yield f"no open claim {entry.claim} of this analyst and question"
            return
        about, tables = (entry.analyst, reserved.question), self._tables_of(reserved)
        if entry.kind is EntryKind.COMMIT:
            yield from self._check_unlocked(reserved)
            self.shown.add(about)
            self.prices.setdefault(reserved.question, reserved.charge)
            if self.answered.setdefault(reserved.question, entry).answer_digest != entry.answer_digest:
                yield "its answer is not the one stored first"
        else:
            locked = self._locked_of(reserved)
            causes = entry.claim in self.locked.values()  # or else another charge locked a table that it reads
            unread = entry.note in {UNSENT, UNSTORED}
            if tables and not unread and (not locked or (causes and len(locked) < len(tables))):
                yield f"its charge failed, and {', '.join(sorted(tables - set(locked)))} was not locked"
            self.failures[about] += 1
            if about in self.shown and self.failures[about] + 1 > self.charges[about]:
                yield _PAID_BY_A_FAILURE

    def compare_head(self, found: list[Row]) -> None:
        """The head names the last entry."""
        if found != [(self.sequence, self.previous)]:
            self.say("the last entry is not the one that the head names")

    def compare_totals(self, found: list[Row]) -> None:
        """The totals are the sums of the charges, and their caps those recorded last."""
        totals = {str(analyst): (str(month), tuple(numbers)) for analyst, month, *numbers in found}
        named = self.terms.limits.analysts if self.terms is not None else {}
        for analyst in sorted({*totals, *self.sums, *named}):
            month, numbers = totals.get(analyst, ("", (-1,) * 8))
            whose = "the overall total" if analyst == ALL_ANALYSTS else f"the total of {analyst!r}"
            spent = self.sums.get(analyst, ZERO_COST)
            if numbers[:4] != spent.grains or (spent != ZERO_COST and month != self.months.get(analyst, "")):
                self.say(f"{whose} is not the sum of its charges")
            if numbers[4:] != self._cap(analyst).grains:
                self.say(f"{whose} has a cap that was never recorded")

    def compare_answers(self, found: Iterable[Row]) -> None:
        """Every stored answer is the one committed, and every one committed is stored."""
        left = dict(self.answered)
        for entry, key, loss, answer in found:
            told = left.pop((key, loss), None)
            if told is None or told.sequence != entry:
                self.say(f"the answer of entry {entry} was never committed")
            elif hash_answer(answer) != told.answer_digest:
                self.say(f"the answer of entry {entry} was altered")
        for missing in left.values():
            self.say(f"the answer of entry {missing.sequence} is missing")


def check_receipt(ledger: LedgerReader, receipt: Mapping[str, Any]) -> list[str]:
    """What is wrong with a receipt: it must be signed by this ledger, which must still hold what it says."""
    terms = ledger.terms()
    head, signature = str(receipt.get("head", "")), str(receipt.get("signature", ""))
    if terms is None or not is_valid_signature(head, signature, terms.key):
        return ["the receipt is not signed by this ledger"]
    entry = next((entry for entry in ledger.entries() if entry.hash == head), None)
    if entry is None:
        return ["the receipt is signed by this ledger, which no longer holds what it says"]
    with ledger.store.read() as session:
        settles = entry.kind in {EntryKind.COMMIT, EntryKind.FAIL}
        charge = LedgerTransaction(session).entry_at(entry.claim) if settles else entry
    assert charge is not None
    recorded: dict[str, object] = {
        "entry": charge.sequence,
        "time": charge.time,
        "who": charge.analyst,
        "key": charge.key,
        "charged_epsilon": format_epsilon(charge.charge.epsilon),
        "repeat": charge.kind is EntryKind.REPEAT,
    }
    repeat = {"charged_epsilon": "0", "repeat": True}
    shows_again = entry.kind in {EntryKind.COMMIT, EntryKind.REPEAT} and repeat.items() <= receipt.items()
    if shows_again:  # for nothing, under the charge that paid for it, and under any name
        recorded |= repeat
    problems = [name for name, value in recorded.items() if receipt.get(name) != value]
    if not shows_again:  # a receipt that was had again leaves these out
        cost = describe_cost(charge.charge)
        problems += [name for name, value in cost.items() if receipt.get(name, value) != value]
        if receipt.get("request", "") not in _requests_of(ledger, charge):
            problems.append("request")
    problems += _check_first_step(ledger, receipt, charge)
    return [f"its {name} is not what the ledger says" for name in problems]


def _check_first_step(ledger: LedgerReader, receipt: Mapping[str, Any], charge: Entry) -> list[str]:
    """Which fields are wrong about a clip that was charged before: its entry, what it cost, and the sums of both."""
    if not any(name in receipt for name in STEP_FIELDS):
        return []
    number = receipt.get("clip_entry")
    with ledger.store.read() as session:
        clip = LedgerTransaction(session).entry_at(number) if isinstance(number, int) else None
    if (
        clip is None
        or clip.kind is not EntryKind.RESERVE
        or clip.analyst != charge.analyst
        or number == charge.sequence
    ):
        return ["clip_entry"]
    cost = format_epsilon(clip.charge.epsilon)
    recorded: dict[str, list[str | None]] = {
        "clip_epsilon": [cost],
        "clip_charged_epsilon": [cost, "0"],  # it may have been paid before
        "both_epsilon": [_add_epsilons(receipt, "clip_epsilon", "answer_epsilon")],
        "both_charged_epsilon": [_add_epsilons(receipt, "clip_charged_epsilon", "charged_epsilon")],
    }
    return [name for name, values in recorded.items() if receipt.get(name) not in values]


def _add_epsilons(receipt: Mapping[str, Any], *names: str) -> str | None:
    """The sum of what a receipt says under some names; None where these are no numbers."""
    try:
        return format_epsilon(sum(int(Fraction(str(receipt.get(name))) * GRAINS_PER_EPSILON) for name in names))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _requests_of(ledger: LedgerReader, charge: Entry) -> set[str]:
    """Return the names under which an analyst asked for what an entry charged; asking without one is always allowed."""
    resumed = (entry for entry in ledger.entries() if entry.kind is EntryKind.RESUME and entry.claim == charge.sequence)
    return {"", charge.request} | {entry.request for entry in resumed}
