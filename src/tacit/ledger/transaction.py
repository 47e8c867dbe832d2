"""The ledger as one transaction sees it: its rows as values, read and written.

What was spent stands in two places, the totals and the last entries. They must agree, or nothing goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tacit.accounting.filters import BudgetCharge, BudgetStatus, FilterLimits
from tacit.errors import ErrorCode, LedgerError
from tacit.ledger.budget import Terms
from tacit.ledger.entries import (
    ALL_ANALYSTS,
    COLUMNS,
    COST_COLUMNS,
    GENESIS,
    ChargeRequest,
    Entry,
    EntryKind,
    add_hash,
    from_row,
    hash_entry,
    to_row,
)
from tacit.ledger.epochs import EpochSource
from tacit.ledger.flights import Flight, decode_holder, encode_answered
from tacit.ledger.store import Row, SqlTransaction
from tacit.ledger.table_locks import TableLock, collect_locks, lock_key, read_tables

ZERO_COST = BudgetCharge.zero()
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM entries"
_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_SPENT = ", ".join(COST_COLUMNS)
_CAPS = ", ".join(f"cap_{grain}" for grain in COST_COLUMNS)
_COVERS = " AND ".join(f"charge_{grain} >= ?" for grain in COST_COLUMNS)


def tampering_error(what: str, code: ErrorCode = ErrorCode.LEDGER_TAMPERED) -> LedgerError:
    """The error of a ledger that contradicts itself."""
    fix = "keep it as it is, verify it, and find out who wrote to it; an older copy would forget what was spent"
    return LedgerError(code, what, fix=fix)


@dataclass(frozen=True)
class BudgetTotal:
    """What an analyst has spent of a cap, and in which month; no month where the cap does not refresh."""

    month: str
    standing: BudgetStatus


@dataclass(frozen=True)
class Payment:
    """A charge that pays for an answer, and the entry whose hash stands for both: its COMMIT, or itself."""

    charge: Entry
    head: Entry


class LedgerTransaction:
    """One transaction's ledger. `last` is the last entry, whole and named by the head.

    `taken` are the claims that work begins on in this transaction, each with its run, and `written` counts what was
    written in it.
    """

    def __init__(self, session: SqlTransaction) -> None:
        self.session = session
        self.taken: dict[int, str] = {}
        self.written = 0
        self._time = ""
        self._lasts: dict[str, Entry | None] = {}
        self._totals: dict[str, BudgetTotal] = {}  # nobody else writes meanwhile
        self.last = self._find("ORDER BY sequence DESC LIMIT 1")
        found = (0, GENESIS) if self.last is None else (self.last.sequence, self.last.hash)
        if session.run("SELECT sequence, hash FROM head") != [found]:
            raise tampering_error("the last entry is not the one that the head names", ErrorCode.LEDGER_ORDER)
        if self.last is not None and hash_entry(self.last) != self.last.hash:
            raise tampering_error("the last entry was altered")

    @property
    def length(self) -> int:
        """The number of entries."""
        return 0 if self.last is None else self.last.sequence

    def entry_at(self, sequence: int) -> Entry | None:
        """The entry of that number."""
        if self.last is not None and sequence == self.last.sequence:
            return self.last
        return self._find("WHERE sequence = ?", (sequence,))

    def last_of(self, analyst: str) -> Entry | None:
        """The last entry of an analyst, or of the owner."""
        if analyst not in self._lasts:
            self._lasts[analyst] = self._find("WHERE who = ? ORDER BY sequence DESC LIMIT 1", (analyst,))
        return self._lasts[analyst]

    def terms(self) -> Terms | None:
        """The owner's terms as written last."""
        found = self.opening()
        return None if found is None else _terms(found)

    def opening(self) -> Entry | None:
        """The entry that wrote the owner's terms down last."""
        return self._find("WHERE who = ? AND kind = 'open' ORDER BY sequence DESC LIMIT 1", (ALL_ANALYSTS,))

    def scopes(self) -> dict[str, set[str]]:
        """All that the ledger was ever a promise about: each name with every value that any opening gave it."""
        found: dict[str, set[str]] = {}
        for row in self.session.run(f"{_SELECT} WHERE who = ? AND kind = 'open' ORDER BY sequence", (ALL_ANALYSTS,)):
            for name, value in _terms(_entry(row)).limits.scope.items():
                found.setdefault(name, set()).add(value)
        return found

    def highest_limits(self) -> dict[str, FilterLimits]:
        """The most that any caps ever recorded allowed, filter by filter: of each analyst and of all together."""
        found: dict[str, FilterLimits] = {}
        for row in self.session.run(f"{_SELECT} WHERE who = ? AND kind = 'open' ORDER BY sequence", (ALL_ANALYSTS,)):
            limits = _terms(_entry(row)).limits
            for name, caps in {ALL_ANALYSTS: limits.overall, **{n: g.caps for n, g in limits.analysts.items()}}.items():
                found[name] = FilterLimits(*map(max, found.get(name, FilterLimits.zero()).grains, caps.grains))
        return found

    def sources(self, key: str) -> list[EpochSource]:
        """The data of every opening, without the MACs of those under another public key."""
        rows = self.session.run(f"{_SELECT} WHERE who = ? AND kind = 'open' ORDER BY sequence", (ALL_ANALYSTS,))
        openings = map(_terms, map(_entry, rows))
        return [terms.source if terms.key == key else terms.source.without_macs for terms in openings]

    def of_request(self, analyst: str, request: str) -> Entry | None:
        """The entry that an analyst named so."""
        return self._find("WHERE who = ? AND request = ? AND request <> ''", (analyst, request))

    def settlement(self, claim: int) -> Entry | None:
        """The COMMIT or FAIL of a claim."""
        return self._find("WHERE claim = ? AND kind IN ('commit', 'fail')", (claim,))

    def payment(self, asked: ChargeRequest, answer: bytes) -> Payment | None:
        """What pays for showing a stored answer to an analyst again; None where nothing does.

        **Failed is spent, not paid.** A charge pays for the answer that its COMMIT names and no other: for none where
        it failed, and for none yet where it has no outcome, because it may still fail. A REPEAT pays for the stored
        answer if it charged the privacy loss of it.
        """
        named = hash_answer(answer)
        charge: Entry | None = None
        while True:
            charge = self._find(
                "WHERE key = ? AND who = ? AND loss = ? AND sequence > ? AND (kind = 'reserve' OR (kind = 'repeat'"
                f" AND {_COVERS})) ORDER BY sequence LIMIT 1",
                (asked.key, asked.analyst, asked.question[1], charge.sequence if charge else 0, *asked.cost.grains),
            )
            if charge is None:
                return None
            head = charge if charge.kind is EntryKind.REPEAT else self.settlement(charge.sequence)
            if head is not None and (head is charge or head.answer_digest == named):
                self._whole(charge)
                self._whole(head)
                return Payment(charge, head)

    def open_claim(self, asked: ChargeRequest) -> Entry | None:
        """The analyst's own charge for this question that has no outcome yet, and will have none of itself."""
        flight = self.own_flight(asked)
        return None if flight is None or flight.answered else flight.claim

    def own_flight(self, asked: ChargeRequest) -> Flight | None:
        """The analyst's own charge for this question that has no outcome yet, with who works on it."""
        about = asked.analyst, asked.question
        flights = self.flights(asked.key)
        return next((each for each in flights if (each.claim.analyst, each.claim.question) == about), None)

    def tables_of(self, reserved: Entry) -> frozenset[str]:
        """The live tables of a charge: those that its RESERVE and each RESUME of it name."""
        rows = self.session.run(
            f"{_SELECT} WHERE key = ? AND who = ? AND kind = 'resume' AND claim = ? AND note <> ''",
            (reserved.key, reserved.analyst, reserved.sequence),
        )
        try:
            return read_tables(reserved).union(*(read_tables(_entry(row)) for row in rows))
        except ValueError as error:
            raise tampering_error(f"entry {reserved.sequence} cannot be read") from error

    def locks(self) -> dict[str, TableLock]:
        """All tables that are locked, by their names in lower case."""
        return self._locks("WHERE who = ? AND kind IN ('lock', 'unlock') ORDER BY sequence", (ALL_ANALYSTS,))

    def locks_of(self, tables: Iterable[str]) -> dict[str, TableLock]:
        """Those of these tables that are locked, by their names in lower case."""
        where = "WHERE key = ? AND who = ? AND kind IN ('lock', 'unlock') ORDER BY sequence DESC LIMIT 1"
        found: dict[str, TableLock] = {}
        for table in tables:
            found |= self._locks(where, (lock_key(table), ALL_ANALYSTS))
        return found

    def _locks(self, where: str, given: Sequence[Any]) -> dict[str, TableLock]:
        entries = [_entry(row) for row in self.session.run(f"{_SELECT} {where}", given)]
        for entry in entries:
            self._whole(entry)
        try:
            return collect_locks(entries)
        except ValueError as error:
            raise tampering_error("a lock cannot be read") from error

    def check_chain(self, count: int) -> None:
        """The newest entries follow from each other; earlier ones are left to `verify`."""
        before: Entry | None = None
        for entry in read_entries(self.session, max(0, self.length - count)):
            if before is not None and (entry.sequence, entry.previous) != (before.sequence + 1, before.hash):
                what = f"entry {entry.sequence} does not follow from the one before it: entries are missing or moved"
                raise tampering_error(what, ErrorCode.LEDGER_ORDER)
            self._whole(entry)
            before = entry

    def total(self, analyst: str) -> BudgetTotal | None:
        """What is spent and the cap last recorded, after checking the totals against the last entry."""
        if analyst in self._totals:
            return self._totals[analyst]
        found = self.session.run(f"SELECT month, {_SPENT}, {_CAPS} FROM totals WHERE who = ?", (analyst,))
        entry = self.last if analyst == ALL_ANALYSTS else self.last_of(analyst)
        told = ("", ZERO_COST)
        if entry is not None:
            told = ("", entry.overall) if analyst == ALL_ANALYSTS else (entry.month, entry.spent)
        if not found:
            if told[1] != ZERO_COST:
                raise tampering_error("a total is missing")
            return None
        month, *numbers = found[0]
        spent, cap = BudgetCharge(*numbers[:4]), FilterLimits(*numbers[4:])
        if spent != told[1] or (month != told[0] and spent != ZERO_COST):
            raise tampering_error("a total is not what the entries say")
        self._totals[analyst] = BudgetTotal(month, BudgetStatus(spent, cap))
        return self._totals[analyst]

    def total_before(self, analyst: str, month: str) -> BudgetTotal | None:
        """What an analyst spent in the last month before `month` that has entries of them, of the cap at its end."""
        last = self._find("WHERE who = ? AND month > '' AND month < ? ORDER BY sequence DESC LIMIT 1", (analyst, month))
        if last is None:
            return None
        opened = self._find(
            "WHERE who = ? AND kind = 'open' AND substr(time, 1, 7) <= ? ORDER BY sequence DESC LIMIT 1",
            (ALL_ANALYSTS, last.month),
        )
        self._whole(last)
        grant = None if opened is None else _terms(opened).limits.analysts.get(analyst)
        return None if grant is None else BudgetTotal(last.month, BudgetStatus(last.spent, grant.caps))

    def totals(self) -> Iterator[tuple[str, BudgetTotal]]:
        """Everyone's total, the one over all included."""
        for (analyst,) in self.session.run("SELECT who FROM totals ORDER BY who"):
            found = self.total(str(analyst))
            if found is not None:
                yield str(analyst), found

    def append(
        self,
        kind: EntryKind,
        *,
        analyst: str = ALL_ANALYSTS,
        charge: BudgetCharge = ZERO_COST,
        month: str | None = None,
        **more: Any,
    ) -> Entry:
        """Write the next entry, and its charges into the totals. A later month starts the analyst's sum anew.

        Time never runs backwards here: where the clock was set back, the time of the last entry stands.
        """
        before, own = self.last, self.last_of(analyst)
        then = "" if own is None else own.month
        month = then if month is None else month
        shared = charge if more.get("shared") else ZERO_COST
        begun = ZERO_COST if own is None or month > then > "" else own.spent
        entry = add_hash(
            Entry(
                sequence=self.length + 1,
                time=self.now(),
                kind=kind,
                analyst=analyst,
                month=month,
                charge=charge,
                spent=ZERO_COST if analyst == ALL_ANALYSTS else begun + charge,
                overall=(ZERO_COST if before is None else before.overall) + shared,
                everyone=(ZERO_COST if before is None else before.everyone) + charge,
                previous=GENESIS if before is None else before.hash,
                **more,
            )
        )
        self._change(_INSERT, to_row(entry))
        self._change("UPDATE head SET sequence = ?, hash = ?", (entry.sequence, entry.hash))
        if analyst != ALL_ANALYSTS and (charge != ZERO_COST or month != then or kind is EntryKind.CARRY):
            self._set_total(analyst, month, entry.spent)
        if shared != ZERO_COST:
            self._set_total(ALL_ANALYSTS, "", entry.overall)
        self.last = self._lasts[analyst] = entry
        return entry

    def now(self) -> str:
        """The time of this transaction, or that of the last entry where it is later."""
        if not self._time:  # read once, so that the month in which a charge counts is that of its entry
            self._time = datetime.now(UTC).isoformat(timespec="microseconds")
        return max(self._time, "" if self.last is None else self.last.time)

    def record(self, terms: Terms) -> None:
        """Write the terms down where they differ from those written last. Who is no longer named has a cap of zero.

        What was spent stays. A cap that begins to refresh keeps what was spent as that of the first month; one that
        ceases to, counts all months.
        """
        if self.terms() == terms:
            return
        opened, limits = self.append(EntryKind.OPEN, note=terms.encode()), terms.limits
        self._totals.clear()
        self._change(f"UPDATE totals SET {', '.join(f'cap_{grain} = 0' for grain in COST_COLUMNS)}")
        self._set_caps(ALL_ANALYSTS, "", limits.overall)
        for analyst, grant in limits.analysts.items():
            found = self.total(analyst)
            month = opened.time[:7] if grant.monthly else ""
            if found is not None and bool(found.month) == grant.monthly:
                month = found.month
            self._set_caps(analyst, month, grant.caps)
            if found is not None and month != found.month:
                self._carry(analyst, month)

    def _carry(self, analyst: str, month: str) -> None:
        """Go on with what was spent under a cap that refreshes from now on, or that counts all months from now on."""
        own, past = self.last_of(analyst), ZERO_COST
        if not month:
            for entry in read_entries(self.session, analyst=analyst):
                past += ZERO_COST if entry.kind is EntryKind.CARRY else entry.charge
        counted = ZERO_COST if own is None else own.spent
        charge = BudgetCharge(
            *(max(0, all_of - some) for all_of, some in zip(past.grains, counted.grains, strict=True))
        )
        self.append(EntryKind.CARRY, analyst=analyst, month=month, charge=charge)

    def flights(self, key: str | None = None) -> list[Flight]:
        """The charges without an outcome, of one question or of all."""
        where, given = ("", ()) if key is None else (" WHERE key = ?", (key,))
        found = []
        for claim, holder in self.session.run(f"SELECT claim, holder FROM flights{where} ORDER BY claim", given):
            entry = self.entry_at(claim)
            if entry is not None and entry.kind is EntryKind.RESERVE and self.settlement(claim) is None:
                found.append(Flight(entry, *decode_holder(str(holder))))
        return found

    def answered_run(self, claim: int) -> str:
        """The run whose answer to a claim was handed over, by its hash; none where there is no such run."""
        found = self.session.run("SELECT holder FROM flights WHERE claim = ?", (claim,))
        return decode_holder(str(found[0][0]))[1] if found else ""

    def run_of(self, reserved: Entry) -> str:
        """The last run of a charge, by the hash of what began it: its RESERVE, or the last RESUME of it."""
        where = "WHERE key = ? AND who = ? AND kind = 'resume' AND claim = ? ORDER BY sequence DESC LIMIT 1"
        resumed = self._find(where, (reserved.key, reserved.analyst, reserved.sequence))
        return (resumed or reserved).hash

    def hold(self, claim: Entry, holder: str, run: Entry) -> None:
        """Note who works on a claim, and what began the work."""
        self.taken[claim.sequence] = run.hash
        self._change(
            "INSERT INTO flights (claim, key, holder) VALUES (?, ?, ?)"
            " ON CONFLICT (claim) DO UPDATE SET holder = excluded.holder",
            (claim.sequence, claim.key, holder),
        )

    def hand_over(self, claim: int, holder: str, run: str) -> None:
        """Note that the answer of a run is handed over next."""
        self._change("UPDATE flights SET holder = ? WHERE claim = ?", (encode_answered(run, holder), claim))

    def release(self, claim: int) -> None:
        """Note that nobody works on a claim any longer, or that it is settled."""
        if self.settlement(claim) is None:
            self._change("UPDATE flights SET holder = '' WHERE claim = ?", (claim,))
        else:
            self._change("DELETE FROM flights WHERE claim = ?", (claim,))

    def stored_answer(self, question: tuple[str, str]) -> bytes | None:
        """The stored answer, after checking it against the digest in the chain."""
        found = self.session.run("SELECT entry, answer FROM answers WHERE key = ? AND loss = ?", question)
        if not found:
            return None
        sequence, answer = found[0]
        entry = self.entry_at(sequence)
        if entry is None or not self._whole(entry) or hash_answer(answer) != entry.answer_digest:
            raise tampering_error("a stored answer was altered")
        return bytes(answer)

    def newest_answer(self, analyst: str, last: int) -> bytes | None:
        """The answer that was committed last to an analyst, by an entry up to `last`, after checking it against the
        digest in the chain.
        """
        where = "WHERE who = ? AND kind = 'commit' AND sequence <= ? ORDER BY sequence DESC LIMIT 1"
        found = self._find(where, (analyst, last))
        if found is None:
            return None
        stored = self.entry_at(found.claim)
        answer = None if stored is None else self.stored_answer(stored.question)
        if answer is None or not self._whole(found) or hash_answer(answer) != found.answer_digest:
            raise tampering_error("a stored answer is missing or was altered")
        return answer

    def store_answer(self, entry: Entry, loss: str, answer: bytes) -> None:
        """Keep the answer of a COMMIT entry."""
        self._change(
            "INSERT INTO answers (entry, key, loss, answer) VALUES (?, ?, ?, ?)",
            (entry.sequence, entry.key, loss, answer),
        )

    def _whole(self, entry: Entry) -> bool:
        if hash_entry(entry) != entry.hash:
            raise tampering_error(f"entry {entry.sequence} was altered")
        return True

    def _set_total(self, analyst: str, month: str, spent: BudgetCharge) -> None:
        numbers = ", ".join(f"{grain} = ?" for grain in COST_COLUMNS)
        self._totals.pop(analyst, None)
        self._change(f"UPDATE totals SET month = ?, {numbers} WHERE who = ?", (month, *spent.grains, analyst))

    def _set_caps(self, analyst: str, month: str, cap: FilterLimits) -> None:
        marks = ", ".join("?" * 4)
        update = ", ".join(f"cap_{grain} = excluded.cap_{grain}" for grain in COST_COLUMNS)
        self._totals.pop(analyst, None)
        self._change(
            f"INSERT INTO totals (who, month, {_SPENT}, {_CAPS}) VALUES (?, ?, 0, 0, 0, 0, {marks})"
            f" ON CONFLICT (who) DO UPDATE SET {update}",
            (analyst, month, *cap.grains),
        )

    def _change(self, statement: str, given: Sequence[Any] = ()) -> None:
        self.written += 1
        self.session.run(statement, given)

    def _find(self, where: str, given: Sequence[Any] = ()) -> Entry | None:
        found = self.session.run(f"{_SELECT} {where}", given)
        return _entry(found[0]) if found else None


def read_entries(session: SqlTransaction, after: int = 0, analyst: str | None = None) -> Iterator[Entry]:
    """The entries in order, of one analyst or of all."""
    while page := read_page(session, after, 1000, analyst):
        yield from page
        after = page[-1].sequence


def read_page(session: SqlTransaction, after: int, count: int, analyst: str | None = None) -> list[Entry]:
    """The next entries, at most `count` of them."""
    where, given = ("", ()) if analyst is None else (" AND who = ?", (analyst,))
    rows = session.run(f"{_SELECT} WHERE sequence > ?{where} ORDER BY sequence LIMIT ?", (after, *given, count))
    return [_entry(row) for row in rows]


def _terms(entry: Entry) -> Terms:
    try:
        return Terms.decode(entry.note)
    except ValueError as error:
        raise tampering_error(f"entry {entry.sequence} cannot be read") from error


def hash_answer(answer: bytes) -> str:
    """The digest by which the chain knows an answer."""
    return hashlib.sha256(answer).hexdigest()


def _entry(row: Row) -> Entry:
    try:
        return from_row(row)
    except (ValueError, TypeError) as error:
        raise tampering_error("an entry cannot be read") from error
