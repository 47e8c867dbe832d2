"""The ledger: reserve, then touch.

>>> import tempfile
>>> from tacit.privacy.loss import LaplaceNoise
>>> folder = tempfile.TemporaryDirectory()
>>> one = (Fraction(1), Fraction(0))
>>> ledger = Ledger(Path(folder.name) / "clinic.ledger", BudgetLimits.of(*one, {"ada": one}))
>>> question = LaplaceNoise(scale=Fraction(4), sensitivity=1)
>>> claim = ledger.reserve("ada", question, key="5eed")  # now it is charged, and the data may be touched
>>> ledger.commit(claim, b"41 patients").stored
b'41 patients'
>>> ledger.reserve("ada", question, key="5eed").stored  # a repeat is free
b'41 patients'
>>> format_epsilon(ledger.standing("ada").remaining)
'0.75'
>>> ledger.close(); folder.cleanup()
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import ref

from tacit.accounting.filters import BudgetCharge, BudgetStatus, FilterLimits, compute_charge, format_epsilon
from tacit.accounting.receipt import Receipt
from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.ledger.budget import BudgetLimits, Terms, admit, strictest_caps
from tacit.ledger.consistency import (
    check_current_key,
    check_key,
    check_limits,
    check_scope,
    check_sighted,
    check_terms,
    check_witness,
    missing_ledger_error,
)
from tacit.ledger.entries import (
    ALL_ANALYSTS,
    ChargeRequest,
    Entry,
    EntryKind,
    Reservation,
    name_first_step,
    read_request,
)
from tacit.ledger.epochs import NO_SOURCE, EpochSource, check_epoch
from tacit.ledger.files import tighten
from tacit.ledger.flights import SMALL_ANSWER, Flight
from tacit.ledger.group_commit import GroupCommit
from tacit.ledger.lock_tables import append_failure, append_settlement, append_unlock
from tacit.ledger.open_store import open_store
from tacit.ledger.pending_failures import forget_failures, remember_failure, write_failures
from tacit.ledger.reader import LedgerReader, standing_in_month, unknown_analyst_error
from tacit.ledger.signing import SigningKey
from tacit.ledger.table_locks import (
    ABANDONED,
    INTERRUPTED,
    UNSENT,
    UNSTORED,
    TableLock,
    check_unlocked,
    encode_tables,
    share_table,
)
from tacit.ledger.transaction import ZERO_COST, LedgerTransaction, hash_answer, tampering_error
from tacit.ledger.witness import Witness, WitnessedHead
from tacit.privacy.loss import Loss, encode

__all__ = ["Ledger", "format_epsilon"]

_ENTRIES_CHECKED_AT_OPEN = 1000  # entries walked at every opening; `verify` walks them all
_LONGEST_REQUEST = 200
_MARGIN = 30.0  # seconds from the end of a run until its outcome is on disk
_log = logging.getLogger("tacit")
_opened: dict[int, ref[Ledger]] = {}  # the ledgers that are open in this process


class Ledger(LedgerReader):
    """Charges questions against caps, so that what analysts learn together costs at most `limits.overall`.

    **Theorem.** Let an answer be shown only after `commit` returned for it. Then, whatever threads, processes, hosts,
    kills and power cuts happen, the privacy losses of all passes over the data that anyone saw the outcome of are
    admitted by the overall filters, and those of the distinct answers shown to an analyst by the analyst's own. Proof:
    a charge is on disk before `reserve` returns; transactions happen one after the other, and so do the charges in one
    of them; each is admitted by the filters on the sums it finds, and sums never shrink. One charge has one outcome,
    however often its question is run: the first COMMIT or FAIL stands, and nothing else is shown. Of a question an
    analyst so sees at most one outcome for each charge of theirs: a failure for one that failed, the stored answer for
    one that did not.

    Caps are those of `limits`, or of the last opening by anyone where these are stricter: a cap that the owner lowers
    binds processes that already run, and one that the owner raises binds those opened afterwards.

    `key` signs receipts. `witness` stands outside the database: an older copy of the ledger is then refused. `source`
    is the data that is asked about: another under the same epoch is refused (`ledger/epochs.py`). `key_version` is that
    of the keys which questions have now: a new ledger remembers it. `known` is the last opening when the policy was
    read (`LedgerReader.last_opening`). `wait` bounds the wait for the database, and `patience` that for an identical
    question in flight. Without `limits` the terms are those of the last opening, and no new ones are written down.
    """

    def __init__(
        self,
        place: Path | str,
        limits: BudgetLimits | None,
        *,
        key: SigningKey | None = None,
        witness: Witness | None = None,
        source: EpochSource = NO_SOURCE,
        key_version: int = 0,
        known: int | None = None,
        wait: float = 30.0,
        patience: float = 360.0,  # a server shows a run of 300 seconds after 328
    ) -> None:
        self._source = source
        self._key_version = key_version
        self._known = known
        self._opening = 0  # the entry of the last opening that is known to name this key
        self.store = open_store(place, wait=wait)
        self._key = key
        self._witness = witness
        self._patience = patience
        self._flying: set[int] = set()  # the claims that are worked on through this object
        # Runs of this object that never began, or gave an answer that could not be written. The hash of what began a
        # run names no other one, whoever resumes the same charge.
        self._unfailed: set[str] = set()
        self._process = os.getpid()
        self._turns = GroupCommit(self._writing)
        try:
            self.limits = self._open(limits)
        except BaseException:
            self.store.close()
            raise
        _opened[id(self)] = ref(self)

    def close(self) -> None:
        """Let go of the database. What is still worked on through this object comes to nothing."""
        _opened.pop(id(self), None)
        super().close()

    def outlast(self, seconds: float) -> None:
        """Wait for an identical question in flight for longer than a run may take, so that none is begun twice."""
        self._patience = max(self._patience, seconds + _MARGIN)

    def reserve(
        self,
        analyst: str,
        loss: Loss,
        key: str,
        *,
        delta: Fraction = Fraction(0),
        request: str = "",
        is_first_step: bool = False,
        tables: Collection[str] = (),
    ) -> Reservation:
        """Charge a question, durably, before its data is touched. A refusal writes nothing and costs nothing.

        The same question is the same key and the same loss. Where its answer is stored, the claim carries it: at no
        cost to an analyst who paid for it (`LedgerTransaction.payment`) or whose charge for it has no outcome yet, else
        at its privacy loss to their own cap only. Where it is in flight, wait for it, or refuse now whoever could not
        pay for it then; where whoever asked it is gone, take it up: the analyst who paid does not pay again. What is
        shown again for nothing writes nothing.

        `request` is the analyst's own name for this question. Asking again under the same name is one question,
        charged once, with one outcome; another question under that name is refused. What writes nothing binds no name:
        it is free, and the same, under every name. The first of two steps of a question (`is_first_step`) has a name
        that follows from it, so that each step is charged once. `delta` is what Gaussian noise may be charged by basic
        composition.

        `tables` are the private ones that the question reads live: where one of them is locked it is refused
        (`ledger/table_locks.py`).
        """
        asked = self.describe_request(analyst, loss, key, delta=delta, request=request)
        name = name_first_step(request) if is_first_step else request
        asked = replace(asked, request=name, tables=frozenset(tables))
        deadline, pause = time.monotonic() + self._patience, 0.002

        def claim_of(book: LedgerTransaction) -> Reservation | None:
            return self._claim(book, asked, patient=time.monotonic() < deadline)

        while True:
            claim = self._turns.take(claim_of, self._drop)
            if claim is not None:
                return claim
            time.sleep(pause)
            pause = min(0.1, pause * 1.5)

    def describe_request(
        self, analyst: str, loss: Loss, key: str, *, delta: Fraction = Fraction(0), request: str = ""
    ) -> ChargeRequest:
        """A question as the ledger knows it, with its privacy loss. Nothing is written."""
        if analyst not in self.limits.analysts:
            raise unknown_analyst_error(analyst)
        if len(request) > _LONGEST_REQUEST or not (request.isprintable() and request == request.strip()):
            fix = f"use at most {_LONGEST_REQUEST} printable characters, such as a UUID"
            raise ParameterError("request", "it is not a name", fix=fix)
        encoded, cost = _compute_charge(loss, delta)
        return ChargeRequest(analyst, (key, encoded), cost, request)

    def repeats(self, asked: Callable[[], Sequence[ChargeRequest]]) -> list[Reservation | None]:
        """For each question, what `reserve` gives where its answer is stored and the analyst paid for it; else None.
        They need no name, and are looked up in one transaction. Nothing is written.

        `asked` is called once that is open, so that those who came while others wrote are in it. It may be called again
        where that transaction came to nothing; what it returned last is what the claims are for.
        """

        def claims_of(book: LedgerTransaction) -> list[Reservation | None]:
            return [self._show_again(book, each) for each in asked()]

        return self._turns.take(claims_of)

    def is_free(self, asked: ChargeRequest) -> bool:
        """Whether `reserve` would charge nothing: the answer is paid for, or a charge for it has no outcome yet."""
        with self.store.read() as session:
            book = LedgerTransaction(session)
            stored = book.stored_answer(asked.question)
            paid = stored is not None and book.payment(asked, stored) is not None
            return paid or book.open_claim(asked) is not None

    def commit(self, claim: Reservation, answer: bytes) -> Reservation:
        """Store the answer of a claim, durably, before it is shown. What the returned claim holds is what to show.

        The first writer wins: where the same question was answered meanwhile, that answer is returned, not this one.

        **Rule.** Once the answer's bytes are handed to the database, no error gives the charge another run. Whether
        they can be stored may depend on them: on a disk that is nearly full, under a limit of the database or of
        memory, over a connection that is lost. Such an error is the outcome of this run, seen like an answer, and a
        FAIL says so, which fits where an answer does not. Where a connection was lost in the middle and the answer is
        stored, that stands. Where no FAIL can be written, this process remembers it (`ledger/pending_failures.py`). An
        error before that (a server that cannot be reached, a ledger in use) is the same for every answer: then nothing
        is written, and the charge may be resumed. So it may after an interrupt, which comes from outside.

        Other processes and hosts know of it too: that an answer is handed over is on disk before its bytes leave, in a
        transaction of its own, unless it is small (`ledger/flights.py`). Whoever would resume such a charge, because
        the holder is gone or takes too long, writes a FAIL in its place, and so does another run of it that ends. Each
        comes after a COMMIT of the answer, which then stands, or before it.
        """
        if claim.stored is not None:
            return claim
        is_handed_over = False

        def hand_over(book: LedgerTransaction) -> None:
            nonlocal is_handed_over
            is_handed_over = True  # an error says that the answer is not small
            if book.settlement(claim.entry) is None and not book.answered_run(claim.entry):
                book.hand_over(claim.entry, self.store.holder(book.session), claim.run)

        def settle(book: LedgerTransaction) -> tuple[bytes | None, Entry]:
            nonlocal is_handed_over
            reserved = _load_reserve_entry(book, claim)
            stored = book.stored_answer(reserved.question)
            entry = book.settlement(claim.entry)
            if entry is None and book.answered_run(claim.entry) not in {"", claim.run}:
                entry = append_settlement(book, EntryKind.FAIL, reserved, note=UNSTORED)
            if entry is None:
                shown = answer if stored is None else stored
                entry = append_settlement(book, EntryKind.COMMIT, reserved, hash_answer(shown))
                if stored is None:
                    is_handed_over = True
                    book.store_answer(entry, reserved.loss, answer)
                return shown, entry
            if entry.kind is EntryKind.COMMIT and stored is None:
                raise tampering_error("a stored answer is missing")
            return stored if entry.kind is EntryKind.COMMIT else None, entry

        shown: bytes | None
        try:
            if len(answer) > SMALL_ANSWER:
                self._turns.take(hand_over)
            shown, entry = self._turns.take(settle)
        except BaseException as error:
            self._unfailed.add(claim.run)  # no row is the cause
            depends_on_bytes = is_handed_over or isinstance(error, MemoryError)  # which they fill before that too
            if not depends_on_bytes or not isinstance(error, Exception):
                raise
            remember_failure(claim, "", UNSTORED)
            shown, entry = self._fail_unstored(claim, hash_answer(answer), error)
        if shown is None:
            raise Failed
        self._flying.discard(claim.entry)
        receipt = replace(claim.receipt, head=entry.hash, signature=self._signature(entry.hash))
        return replace(claim, stored=shown, receipt=receipt, run="")

    def fail(self, claim: Reservation, *, cause: str = "", sent: bool = True) -> bytes | None:
        """Write down that no answer came of a claim. The charge stays: a refund that depends on data is a leak.

        One charge has one outcome. Where the claim was answered meanwhile, that stands and is returned: show it, and
        nothing of the failure. Otherwise the live tables that the question reads are locked in the same transaction,
        unless no statement was `sent` to the engine. `cause` is the kind of the error, for the owner.
        """
        if claim.stored is not None:
            return claim.stored
        unread = "" if sent else UNSENT

        def settle(book: LedgerTransaction) -> bytes | None:
            reserved, entry = _load_reserve_entry(book, claim), book.settlement(claim.entry)
            if entry is None:
                append_failure(book, reserved, cause, self._key, unread=unread)
            return (
                book.stored_answer(reserved.question) if entry is not None and entry.kind is EntryKind.COMMIT else None
            )

        try:
            shown = self._turns.take(settle)
        except Exception:
            remember_failure(claim, cause, unread)
            raise
        self._flying.discard(claim.entry)
        return shown

    @contextmanager
    def hold(self, claim: Reservation) -> Iterator[None]:
        """Work on a claim. Where that is interrupted, whoever asks again goes on with the same charge at once.

        Over live tables an interrupted run is a failed one: nobody knows whether the data had to do with it.
        """
        try:
            yield
        finally:
            if claim.entry in self._flying:
                self._flying.discard(claim.entry)
                with suppress(LedgerError):
                    self._turns.take(lambda book: self._let_go(book, claim))

    def unlock(self, table: str, *, entry: int | None = None) -> TableLock:
        """Write down that the owner has looked at why a table is locked, and return the lock that this ends.

        `entry` is that of the lock that the owner has seen: where another one has taken its place, that one stays.
        """
        found = self._turns.take(lambda book: append_unlock(book, table, self._key, entry=entry))
        _log.warning("table %s is unlocked", found.table)
        return found

    def _fail_unstored(self, claim: Reservation, digest: str, error: Exception) -> tuple[bytes, Entry]:
        """Fail a charge whose answer could not be stored, and raise the error; return the answer of another run, where
        that is stored by now. Its own may be stored too, where only the reply was lost: whoever asks again sees it.
        """

        def read_outcome(book: LedgerTransaction) -> tuple[bytes | None, Entry | None]:
            entry = book.settlement(claim.entry)  # the FAIL is remembered, and written before anything else
            is_answered = entry is not None and entry.kind is EntryKind.COMMIT
            return book.stored_answer(_load_reserve_entry(book, claim).question) if is_answered else None, entry

        try:
            stored, entry = self._turns.take(read_outcome)
        except Exception:  # noqa: BLE001 - the first error is the one to tell
            raise error from error.__cause__
        if stored is not None and entry is not None and entry.answer_digest != digest:
            return stored, entry
        if stored is not None or not isinstance(error, LedgerError):
            raise error from error.__cause__
        what = f"{error.what}; the answer of entry {claim.entry} is not stored, so its charge has failed"
        raise LedgerError(error.code, what, fix=error.fix) from error.__cause__

    def _let_go(self, book: LedgerTransaction, claim: Reservation) -> None:
        """Nobody works on a claim any longer, of which no outcome is known."""
        reserved = _load_reserve_entry(book, claim)
        if claim.tables and claim.run not in self._unfailed:
            append_failure(book, reserved, INTERRUPTED, self._key)
        elif claim.run == (book.answered_run(claim.entry) or book.run_of(reserved)):  # no other run has it since
            book.release(claim.entry)

    def _open(self, limits: BudgetLimits | None) -> BudgetLimits:
        """Make the ledger where there is none, check what is there, and write down new terms. Returns the limits.

        Others may open the same new ledger meanwhile. What key and witness remember is on disk in the ledger before it
        is in them; so they are read first, and where the ledger that is read afterwards lacks it, it is lost.
        """
        marked = self._key is not None and self._key.is_marked()
        sighted = self._witness is not None and self._witness.exists() and self._witness.last() is not None
        with self.store.read() as session:
            blank = self.store.is_blank(session)
            recorded = None if blank else LedgerTransaction(session).terms()
        new = self._witness if recorded is None or not recorded.witnessed else None
        if blank and (sighted or limits is None):
            raise missing_ledger_error(self.store)
        if self._key is not None and marked:
            check_key(self.store, recorded, self._key)
        if self._witness is not None:
            check_sighted(self._witness, recorded, marked=marked)
        if new is not None:
            new.create()  # before the ledger says that there is one
        with self.store.write() as session:
            if self.store.is_blank(session):
                self.store.create(session)
            if not self.store.is_whole(session):
                raise tampering_error("the tables or their locks were altered")
            self.store.upgrade(session)
        with self._writing() as book:
            book.check_chain(_ENTRIES_CHECKED_AT_OPEN)
            for _ in book.totals():
                pass
            if self._key is not None and marked:
                check_key(self.store, book.terms(), self._key)  # again, now that nobody else writes
            terms = self._find_terms(book, limits)
            if new is not None and book.last is not None:
                self._note(book.last, None, lambda seen: check_witness(book, seen))  # before the ledger says so
            book.record(terms)
            opening = book.opening()
            self._opening = 0 if opening is None else opening.sequence
            for flight in book.flights():
                is_live = flight.holder and book.tables_of(flight.claim)
                if is_live and not self.store.is_alive(book.session, flight.holder):
                    self._fail_flight(book, flight)
        if self._key is not None:
            self._key.mark()  # before anything is signed, and not before there is a ledger that names it
        if self._witness is not None:
            tighten(self._witness.path)
        return terms.limits

    def _find_terms(self, book: LedgerTransaction, limits: BudgetLimits | None) -> Terms:
        """The terms of this opening, which nothing in the ledger contradicts."""
        key, recorded = self._key.public if self._key else "", book.terms()
        if limits is None:
            if recorded is None:
                raise missing_ledger_error(self.store)
            check_terms(recorded, replace(recorded, key=key, witnessed=self._witness is not None))
            return recorded
        version = self._key_version if recorded is None else recorded.key_version
        terms = Terms(limits, key, self._witness is not None, self._source, key_version=version)
        check_terms(recorded, terms)
        if self._known is not None:
            check_limits(book, limits, self._known)
        check_scope(book.scopes(), limits)
        check_epoch(book.sources(key), self._source)
        return terms

    @contextmanager
    def _writing(self) -> Iterator[LedgerTransaction]:
        """A durable transaction on a ledger that the witness knows. The witness is told before anything is shown."""
        if self._process != os.getpid():  # forked: what was worked on is the parent's
            self._process = os.getpid()
            self._flying, self._unfailed = set(), set()
        book = None
        try:
            with self.store.write() as session:
                seen = self._witness.last() if self._witness is not None else None
                book = LedgerTransaction(session)
                check_witness(book, seen)
                self._check_key(book)
                failures = write_failures(book, self._key)
                yield book
                self._flying |= book.taken.keys()  # before others can see them
            self._unfailed.difference_update(book.taken.values())
            forget_failures(failures)
            last = book.last
            if self._witness is not None and last is not None and (seen is None or last.sequence > seen.sequence):
                self._note(last, seen, self._check_held)
        except BaseException:
            if book is not None:
                self._flying -= book.taken.keys()
                self._unfailed.update(book.taken.values())  # they never begin, also where they are on disk
            raise

    def _check_key(self, book: LedgerTransaction) -> None:
        """Look whether the ledger still names this key, once after each opening by anyone."""
        opening = book.opening() if self._opening and self._key is not None else None
        if self._key is not None and opening is not None and opening.sequence != self._opening:
            check_current_key(self._key, book.terms())
            self._opening = opening.sequence

    def _note(self, last: Entry, seen: WitnessedHead | None, check: Callable[[WitnessedHead], None]) -> None:
        """Tell the witness of an entry that is on disk. What others have told it since `seen` is in this ledger too."""
        if self._witness is not None:
            self._witness.note(WitnessedHead(last.sequence, last.hash, last.everyone), after=seen, check=check)

    def _check_held(self, seen: WitnessedHead) -> None:
        """The ledger holds what others have told the witness meanwhile."""
        with self.store.read() as session:
            check_witness(LedgerTransaction(session), seen)

    def _drop(self, claim: Reservation | None) -> None:
        """Whoever asked was interrupted and works on nothing."""
        if claim is not None:
            self._flying.discard(claim.entry)
            self._unfailed.add(claim.run)

    def _claim(self, book: LedgerTransaction, asked: ChargeRequest, *, patient: bool) -> Reservation | None:
        """The claim on an answer, or None where it is in flight and worth waiting for."""
        if asked.tables and self._fail_abandoned(book, asked.tables):
            return None  # the next look finds what was written here
        if self._is_answered(book, asked, patient=patient):
            return None
        guards = self._guards(book, asked.analyst)
        named = book.of_request(asked.analyst, asked.request) if asked.request else None
        if named is not None and named.question != asked.question:
            raise refuse_used_name(asked.request)
        stored = book.stored_answer(asked.question)
        if named is not None:
            charge = book.entry_at(named.claim) if named.kind is EntryKind.RESUME else named
            if charge is None:
                raise tampering_error(f"the claim of entry {named.sequence} is missing")
            settled = book.settlement(charge.sequence)
            if settled is not None and settled.kind is EntryKind.FAIL:
                raise Failed
            if stored is not None and charge.kind is EntryKind.RESERVE:
                settled = settled or append_settlement(book, EntryKind.COMMIT, charge, hash_answer(stored))
                return self._make_reservation(charge, stored, settled, asked, guards)
            if stored is not None and charge.charge == asked.cost:
                return self._make_reservation(charge, stored, charge, asked, guards)
        if stored is not None:
            return self._repeat(book, asked, stored, named, guards)
        return self._take_up(book, asked, named, guards, patient=patient)

    def _show_again(self, book: LedgerTransaction, asked: ChargeRequest) -> Reservation | None:
        """A stored answer that was paid for, shown again. There is nothing to write: no sum and no answer changes."""
        guards, stored = self._guards(book, asked.analyst), book.stored_answer(asked.question)
        payment = None if stored is None else book.payment(asked, stored)
        if payment is None:
            return None
        claim = self._make_reservation(payment.charge, stored, payment.head, asked, guards)
        free = replace(
            claim.receipt, charged=ZERO_COST, repeat=True, analyst_budget=guards.own, overall_budget=guards.shared
        )
        return replace(claim, receipt=free)

    def _repeat(
        self, book: LedgerTransaction, asked: ChargeRequest, stored: bytes, named: Entry | None, guards: _Accounts
    ) -> Reservation:
        """A stored answer: shown again, shown for an own charge that has none, or shown to one more analyst."""
        found = self._show_again(book, asked)
        if found is not None:
            return found
        written = replace(asked, request="") if named is not None else asked
        claim = book.open_claim(asked)
        if claim is not None:  # settled here and now: whatever else comes of its work is not shown
            self._write(book, EntryKind.RESUME, written, claim=claim.sequence)
            settled = append_settlement(book, EntryKind.COMMIT, claim, hash_answer(stored))
            return self._make_reservation(claim, stored, settled, asked, guards)
        admit(asked.cost, asked.analyst, guards.own, None)
        entry = self._write(book, EntryKind.REPEAT, written, charge=asked.cost, month=guards.month)
        return self._make_reservation(entry, stored, entry, asked, guards)

    def _take_up(
        self, book: LedgerTransaction, asked: ChargeRequest, named: Entry | None, guards: _Accounts, *, patient: bool
    ) -> Reservation | None:
        """A question without an answer: wait for whoever asks it, go on with an own charge, or charge it."""
        if asked.tables:
            check_unlocked(book.locks_of(asked.tables), asked.tables)
        flights = [each for each in book.flights(asked.key) if each.claim.question == asked.question]
        me = self.store.holder(book.session)
        own = next((each for each in flights if each.claim.analyst == asked.analyst), None)
        if patient and any(self._is_flying(book, each, me) for each in flights):
            if own is None:  # refused now: a refusal after the wait would tell when the other's answer came
                admit(asked.cost, asked.analyst, guards.own, None)
            return None
        if own is None:
            admit(asked.cost, asked.analyst, guards.own, guards.shared)
            note = encode_tables(asked.tables)
            entry = run = self._write(
                book, EntryKind.RESERVE, asked, charge=asked.cost, month=guards.month, shared=1, note=note
            )
        else:
            live = book.tables_of(own.claim)
            if not live <= asked.tables and self._fail_abandoned(book, live):  # a run of its own may be one of these
                return None
            if (asked.tables or live) and self._has_run(book, own, me):
                raise _busy_error()
            entry = own.claim
            resumed = replace(asked, request="") if named is not None else asked
            note = "" if asked.tables <= live else encode_tables(asked.tables)
            run = self._write(book, EntryKind.RESUME, resumed, claim=entry.sequence, note=note)
        book.hold(entry, me, run)
        return replace(self._make_reservation(entry, None, entry, asked, guards), run=run.hash)

    def _fail_abandoned(self, book: LedgerTransaction, tables: Collection[str]) -> bool:
        """Fail the claims over these tables of which no outcome will come, and lock what they read.

        A holder who let go says that its run did not fail, and so does this object of its own runs. Any other must be
        known to run. What is known of one run says nothing of the next one of the same charge, which another process
        may have begun since.
        """
        me, found = self.store.holder(book.session), False
        for flight in book.flights():
            claim, holder = flight.claim, flight.holder
            if not holder or not share_table(book.tables_of(claim), tables):
                continue
            flies = claim.sequence in book.taken or any(claim.sequence in each._flying for each in self._siblings())
            if flies or (holder != me and self.store.is_known_alive(book.session, holder)):
                continue
            if not flight.answered and self._unfailed and book.run_of(claim) in self._unfailed:
                continue
            self._fail_flight(book, flight)
            found = True
        return found

    def _fail_flight(self, book: LedgerTransaction, flight: Flight) -> None:
        """Fail a charge whose holder is gone. Where that had an answer, no row is the cause."""
        append_failure(book, flight.claim, ABANDONED, self._key, unread=UNSTORED if flight.answered else "")

    def _is_answered(self, book: LedgerTransaction, asked: ChargeRequest, *, patient: bool) -> bool:
        """Whether an answer to the analyst's own charge was handed over. It is waited for, or else the charge fails."""
        flight = book.own_flight(asked)
        if flight is None or not flight.answered:
            return False
        if not (patient and self._has_run(book, flight, self.store.holder(book.session))):
            self._fail_flight(book, flight)
        return True

    def _siblings(self) -> list[Ledger]:
        """All objects of this process that are open on this ledger, this one among them."""
        opened = [found() for found in list(_opened.values())]
        return [each for each in opened if each is not None and each.store.name == self.store.name]

    def _is_flying(self, book: LedgerTransaction, flight: Flight, me: str) -> bool:
        """Whether an answer may still come of a claim."""
        flies = flight.claim.sequence in self._flying or flight.claim.sequence in book.taken
        return flies or (flight.holder != me and self.store.is_alive(book.session, flight.holder))

    def _has_run(self, book: LedgerTransaction, flight: Flight, me: str) -> bool:
        """Whether a run of a claim may not have ended, of whichever object of this process or of another."""
        siblings = any(flight.claim.sequence in each._flying for each in self._siblings())
        return siblings or self._is_flying(book, flight, me)

    def _write(self, book: LedgerTransaction, kind: EntryKind, asked: ChargeRequest, **more: Any) -> Entry:
        key, loss = asked.question
        return book.append(kind, analyst=asked.analyst, request=asked.request, key=key, loss=loss, **more)

    def _make_reservation(
        self, entry: Entry, stored: bytes | None, head: Entry, asked: ChargeRequest, guards: _Accounts
    ) -> Reservation:
        """A claim on what an entry charged, with its receipt."""
        receipt = Receipt(
            entry=entry.sequence,
            time=entry.time,
            analyst=asked.analyst,
            key=asked.key,
            charged=entry.charge,
            cost=asked.cost,
            repeat=entry.kind is EntryKind.REPEAT,
            analyst_budget=BudgetStatus(entry.spent, guards.own.cap),
            overall_budget=BudgetStatus(entry.overall, guards.shared.cap),
            head=head.hash,
            signature="" if stored is None else self._signature(head.hash),  # where not yet, it is signed at the commit
            request=asked.request,
        )
        return Reservation(entry.sequence, asked.analyst, asked.key, stored, receipt, asked.tables)

    def _signature(self, head: str) -> str:
        return self._key.sign(head) if self._key else ""

    def _guards(self, book: LedgerTransaction, analyst: str) -> _Accounts:
        """What a charge must fit into, and the month in which it counts.

        That is the current one wherever the cap refreshes by the ledger's terms. This process may be opened with terms
        that are older, and under which it does not: then it takes no month for a new one before another process has.
        """
        own, shared = book.total(analyst), book.total(ALL_ANALYSTS)
        if own is None or shared is None:
            raise tampering_error("a total is missing")
        grant = self.limits.analysts[analyst]
        month = max(own.month, book.now()[:7]) if own.month else ""
        spent = standing_in_month(own, month if grant.monthly else own.month).spent
        return _Accounts(
            BudgetStatus(spent, strictest_caps(own.standing.cap, grant.caps)),
            BudgetStatus(shared.standing.spent, strictest_caps(shared.standing.cap, self.limits.overall)),
            month,
        )

    def _binding(self, analyst: str, found: BudgetStatus) -> BudgetStatus:
        grant = self.limits.analysts.get(analyst)
        cap = self.limits.overall if analyst == ALL_ANALYSTS else grant.caps if grant else FilterLimits.zero()
        return BudgetStatus(found.spent, strictest_caps(found.cap, cap))


@dataclass(frozen=True)
class _Accounts:
    """The analyst's standing and everyone's, with the caps that bind, and the month in which a charge counts."""

    own: BudgetStatus
    shared: BudgetStatus
    month: str


@lru_cache(maxsize=1024)
def _compute_charge(loss: Loss, delta: Fraction) -> tuple[str, BudgetCharge]:
    """A loss as text, and what it costs."""
    cost = compute_charge(loss, delta)
    if min(cost.grains) < 0:
        raise ParameterError("loss", "its epsilon is below zero", fix="a scale and a sensitivity are never negative")
    return encode(loss), cost


def refuse_used_name(request: str) -> Refused:
    """The refusal of a name that belongs to another question of the analyst's."""
    what = f"the request {read_request(request)!r} belongs to another question"
    return Refused(ErrorCode.REQUEST, what, fix="give every question a name of its own, such as a new UUID")


def _busy_error() -> LedgerError:
    """The error of a question over live tables whose run has not ended. A second run would hide how the first ends."""
    return LedgerError(ErrorCode.LEDGER_BUSY, "this question is being answered", fix="ask again when it has ended")


def _load_reserve_entry(book: LedgerTransaction, claim: Reservation) -> Entry:
    """The RESERVE entry that a claim is for."""
    entry = book.entry_at(claim.entry)
    if entry is None or (entry.kind, entry.analyst, entry.key) != (EntryKind.RESERVE, claim.analyst, claim.key):
        raise ParameterError("claim", "it is not from this ledger", fix="commit what reserve returned")
    return entry
