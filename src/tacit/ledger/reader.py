"""A ledger as a reader sees it: who spent what, and every entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tacit.accounting.filters import BudgetCharge, BudgetStatus, FilterLimits
from tacit.errors import ErrorCode, Refused
from tacit.ledger import transaction as books
from tacit.ledger.budget import Terms
from tacit.ledger.entries import ALL_ANALYSTS, GENESIS, ChargeRequest, Entry
from tacit.ledger.epochs import EpochSource
from tacit.ledger.open_store import open_store
from tacit.ledger.store import LedgerStore
from tacit.ledger.table_locks import TableLock
from tacit.ledger.transaction import BudgetTotal, LedgerTransaction
from tacit.ledger.witness import Witness

_PAGE = 1000

_HAVE_KEYS = (
    "SELECT EXISTS (SELECT 1 FROM entries WHERE key = ?) AS former, EXISTS (SELECT 1 FROM entries WHERE key = ?) AS now"
)


class LedgerReader:
    """Reads a ledger and never writes to it. It opens a damaged one too, so that `verify` can say what is wrong.

    **Rule.** Stored answers that are read here, without a transaction that tells the `witness`, are shown only up to
    the last entry that the witness has seen: what it has not seen may be lost with an older copy, unnoticed, and
    released anew. Where the ledger has a witness and none is named, no stored answer is shown.
    """

    store: LedgerStore
    _witness: Witness | None

    def __init__(self, place: Path | str, *, wait: float = 30.0, witness: Witness | None = None) -> None:
        self._witness = witness
        self.store = open_store(place, wait=wait, writable=False)
        with self.store.read():
            pass

    def last_opening(self) -> int:
        """The number of the entry that wrote the owner's terms down last; 0 where there is none."""
        with self.store.read() as session:
            found = LedgerTransaction(session).opening()
            return 0 if found is None else found.sequence

    def standing(self, analyst: str) -> BudgetStatus:
        """What an analyst has spent, this month where their cap refreshes, and of which cap."""
        found = self._total(analyst) if analyst != ALL_ANALYSTS else None
        if found is None:
            raise unknown_analyst_error(analyst)
        return self._binding(analyst, standing_in_month(found, datetime.now(UTC).isoformat()[:7]))

    def overall(self) -> BudgetStatus:
        """What all analysts have spent together, and of which cap."""
        found = self._total(ALL_ANALYSTS)
        return (
            BudgetStatus(BudgetCharge.zero(), FilterLimits.zero())
            if found is None
            else self._binding(ALL_ANALYSTS, found.standing)
        )

    def month(self, analyst: str) -> str:
        """The month in which an analyst's standing counts; none where their cap does not refresh."""
        found = self._total(analyst)
        return "" if found is None or not found.month else max(found.month, datetime.now(UTC).isoformat()[:7])

    def total_before(self, analyst: str) -> BudgetTotal | None:
        """What an analyst spent in the last earlier month that has entries of them, of the cap at that month's end.

        None where their cap does not refresh now, or where there is no such month.
        """
        month = self.month(analyst)
        if not month:
            return None
        with self.store.read() as session:
            return LedgerTransaction(session).total_before(analyst, month)

    def terms(self) -> Terms | None:
        """The owner's terms as written last."""
        with self.store.read() as session:
            return LedgerTransaction(session).terms()

    def highest_limits(self) -> dict[str, FilterLimits]:
        """The most that any caps ever recorded allowed: of each analyst, and of all together under the empty name."""
        with self.store.read() as session:
            return LedgerTransaction(session).highest_limits()

    def sources(self, key: str) -> list[EpochSource]:
        """The data of every opening, without the MACs of those under another public key."""
        with self.store.read() as session:
            return LedgerTransaction(session).sources(key)

    def locks(self) -> dict[str, TableLock]:
        """The tables that are locked, by their names in lower case."""
        with self.store.read() as session:
            return LedgerTransaction(session).locks()

    def knows_only(self, former: str, key: str) -> bool:
        """Whether a question was asked under its former key, and never under the one it has now.

        What it finds is looked at again, and its hashes with it, when the question is charged.
        """
        with self.store.read() as session:
            ((known, current),) = session.run(_HAVE_KEYS, (former, key))
        return bool(known) and not current

    def former_lookup(self, key_version: int) -> Callable[[str, str], bool] | None:
        """How to find out whether a question is known under a former key alone; None where no entry has a former one.

        None has one if the ledger was made when keys were of this version: what was written since has these keys too.
        (Unless an older version of Tacit wrote it. What that answered is charged again, as any new question is.)
        """
        terms = self.terms()
        return None if terms is not None and terms.key_version >= key_version else self.knows_only

    def newest_answer(self, analyst: str) -> bytes | None:
        """The answer that was released last for an analyst; None where there is none that may be shown."""
        with self.store.read() as session:
            book = LedgerTransaction(session)
            return book.newest_answer(analyst, self._last_witnessed(book))

    def paid_answer(self, asked: ChargeRequest) -> bytes | None:
        """The stored answer that an analyst has paid for; None where there is none that may be shown."""
        with self.store.read() as session:
            book = LedgerTransaction(session)
            stored = book.stored_answer(asked.question)
            payment = None if stored is None else book.payment(asked, stored)
            is_shown = payment is not None and payment.head.sequence <= self._last_witnessed(book)
            return stored if is_shown else None

    def _last_witnessed(self, book: LedgerTransaction) -> int:
        """The number of the last entry that the witness has seen in this ledger; the last of all where it has none."""
        if self._witness is None or not self._witness.exists():
            terms = book.terms()
            return 0 if terms is not None and terms.witnessed else book.length
        for sight in self._witness.backwards():
            entry = book.entry_at(sight.sequence)
            if entry is not None and entry.hash == sight.hash:
                return sight.sequence
        return 0

    def entries(self) -> Iterator[Entry]:
        """Every entry in order, those included that are written while this is read."""
        sequence = 0
        while True:
            with self.store.read() as session:
                page = list(books.read_page(session, sequence, _PAGE))
            yield from page
            if len(page) < _PAGE:
                return
            sequence = page[-1].sequence

    def head(self) -> str:
        """The hash of the last entry."""
        with self.store.read() as session:
            last = LedgerTransaction(session).last
        return GENESIS if last is None else last.hash

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _total(self, analyst: str) -> BudgetTotal | None:
        with self.store.read() as session:
            return LedgerTransaction(session).total(analyst)

    def _binding(self, analyst: str, found: BudgetStatus) -> BudgetStatus:
        """The standing that binds: here, what is recorded."""
        return found


def standing_in_month(total: BudgetTotal, month: str) -> BudgetStatus:
    """The standing in a month: nothing is spent yet where the cap has refreshed since the last charge."""
    refreshed = total.month != "" and month > total.month
    return BudgetStatus(BudgetCharge.zero() if refreshed else total.standing.spent, total.standing.cap)


def unknown_analyst_error(analyst: str) -> Refused:
    """The refusal of a name that has no cap."""
    return Refused(
        ErrorCode.UNKNOWN_ANALYST, f"no analyst is called {analyst!r}", fix="ask the data owner to add this name"
    )
