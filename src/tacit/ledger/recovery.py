"""The way on from a ledger that lost entries: the owner accepts the loss, and all that may be missing is charged."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    LARGEST,
    BudgetCharge,
    DeltaSplit,
    FilterLimits,
    compute_charge,
)
from tacit.durable_files import sync_path
from tacit.errors import ErrorCode, LedgerError, ParameterError
from tacit.ledger.budget import BudgetLimits, Terms
from tacit.ledger.consistency import check_scope
from tacit.ledger.entries import ALL_ANALYSTS, EntryKind
from tacit.ledger.epochs import NO_SOURCE
from tacit.ledger.files import PRIVATE
from tacit.ledger.lock_tables import append_failure, append_lock
from tacit.ledger.open_store import open_store
from tacit.ledger.reader import standing_in_month
from tacit.ledger.signing import SigningKey
from tacit.ledger.table_locks import LOST_ENTRIES
from tacit.ledger.transaction import ZERO_COST, LedgerTransaction
from tacit.ledger.witness import Witness, WitnessedHead
from tacit.privacy.loss import ApproximateDp


@dataclass(frozen=True)
class AcceptedLoss:
    """What was charged, to each analyst and to all together under the name `ALL_ANALYSTS`, and where the old witness
    went.
    """

    charged: Mapping[str, BudgetCharge]
    failed: int
    kept: Path | None


def accept_loss(
    place: Path | str,
    limits: BudgetLimits,
    *,
    key: SigningKey,
    witness: Witness,
    because: str,
    live: Collection[str] = (),
    others: Sequence[Witness] = (),
) -> AcceptedLoss:
    """Go on with the ledger that is there, after charging all that may be missing from it.

    **Theorem.** Let `witness` and `others` together have seen all that was shown. After this, every sum is at least
    what was truly spent. Proof: let s be the last head that the witness and the ledger share. What was spent on the
    lost ledger after s is at most the growth of the witness's sum over all charges to anyone, W_n - W_s; what was spent
    on this one is in its own sums. Both are counted: the growth is charged to everyone, because it is not known whose
    it was. Where the witness is lost too, nothing is known, and every cap is charged in full, as high as any opening
    that is there had it: it may have been lowered only since. A witness that has seen nothing is a lost one, beside a
    key that signs a ledger or a ledger whose key is lost. A charge without an answer fails, because its answer may be
    among what was lost.

    `others` are witnesses of other hosts. One witness alone knows only what its own hosts wrote: after a failover that
    lost commits, the one that has seen the highest entry may have seen it on the new branch, and none that were lost.
    So the growth is added up over all of them, leaving out one whose last head another has seen; what several saw of
    one branch, at different heads, is charged more than once. Copy the new witness to their places afterwards.

    What others write meanwhile is lost neither: the new witness takes the old one's place while nobody can write to the
    ledger, and has seen its last entry then. One process at a time accepts a loss.

    A lock may be among what was lost too, so all tables that are read live are locked (`ledger/table_locks.py`): those
    that `live` names, and those that a charge without an answer reads.

    The sums are those of all together, and of the analysts whom the ledger or `limits` name. What an analyst was told
    whom only the lost entries named is in the sum of all together.
    """
    if not because.strip():
        raise ParameterError("because", "no reason is given", fix="say what happened: it is written down for good")
    store = open_store(place)
    try:
        with _take_turn(witness.path):
            with store.write() as session:
                if store.is_blank(session):
                    store.create(session)
                store.upgrade(session)
                book, sights = LedgerTransaction(session), [list(other.backwards()) for other in others]
                charged, failed = _charge_missing(book, limits, key, witness, sights, because, live)
            key.mark()
            with store.write() as session:
                last = LedgerTransaction(session).last
                assert last is not None
                kept = _archive_witness(witness, WitnessedHead(last.sequence, last.hash, last.everyone))
    finally:
        store.close()
    return AcceptedLoss(charged, failed, kept)


@contextmanager
def _take_turn(witness: Path) -> Iterator[None]:
    """Hold the folder of the witness, as whoever else accepts a loss does."""
    folder = os.open(Path(os.path.realpath(witness)).parent, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = "another process accepts the loss now"
            fix = "when it has ended, see what is missing: tacit ledger verify"
            raise LedgerError(ErrorCode.LEDGER_BUSY, what, fix=fix) from error
        yield
    finally:
        os.close(folder)


def _charge_missing(
    book: LedgerTransaction,
    limits: BudgetLimits,
    key: SigningKey,
    witness: Witness,
    others: list[list[WitnessedHead]],
    because: str,
    live: Collection[str],
) -> tuple[dict[str, BudgetCharge], int]:
    """Write down what is charged to whom, and how many charges without an answer failed."""
    recorded, seen = book.terms(), list(witness.backwards()) if witness.exists() else None
    check_scope(book.scopes(), limits)
    lost = recorded is not None and recorded.witnessed and recorded.key != key.public
    if not seen and (key.is_marked() or lost):  # it has seen an entry, if it is the one that stood beside it
        seen = None
    missing = _sum_missing(book, [seen, *others]) if seen is not None else None
    whole = seen is not None and all(not each or _has_entry(book, each[0]) for each in (seen, *others))
    if whole and recorded is not None and recorded.key == key.public:
        raise ParameterError("ledger", "nothing is missing from it", fix="go on as before")
    source = NO_SOURCE if recorded is None else recorded.source
    if recorded is not None and recorded.key != key.public:
        source = source.without_macs
    version = recorded.key_version if recorded is not None else 0
    book.record(Terms(limits, key.public, witnessed=True, source=source, key_version=version))
    for table in sorted(live):
        append_lock(book, table, LOST_ENTRIES, key)
    failed = _fail_open_claims(book, key)
    charged, highest = {}, book.highest_limits()
    for analyst, total in list(book.totals()):
        month = max(total.month, book.now()[:7]) if total.month else ""  # it may have been spent this month
        standing = standing_in_month(total, month)
        cap = highest.get(analyst, standing.cap)
        charge = _remaining_budget(standing.spent, cap) if missing is None else missing
        book.append(
            EntryKind.ACCEPT,
            analyst=analyst,
            month=month,
            charge=charge,
            shared=int(analyst == ALL_ANALYSTS),
            note=because,
        )
        charged[analyst] = charge
    return charged, failed


def _sum_missing(book: LedgerTransaction, witnesses: list[list[WitnessedHead]]) -> BudgetCharge:
    """How much the sums of several witnesses have grown, each since the last head that the ledger has too.

    A witness whose last head another has seen adds nothing: the other has grown by at least as much.
    """
    counted: list[list[WitnessedHead]] = []
    for seen in sorted(filter(None, witnesses), key=lambda seen: -seen[0].sequence):
        if not any(seen[0] in other for other in counted):
            counted.append(seen)
    return sum((_missing_cost(book, seen) for seen in counted), start=ZERO_COST)


def _missing_cost(book: LedgerTransaction, seen: list[WitnessedHead]) -> BudgetCharge:
    """How much the witness's sum has grown since the last head that the ledger has too."""
    if not seen:
        return ZERO_COST
    shared = ZERO_COST
    for sight in seen:
        if _has_entry(book, sight):
            shared = sight.everyone
            break
    pairs = zip(seen[0].everyone.grains, shared.grains, strict=True)
    return BudgetCharge(*(LARGEST if now == LARGEST else now - then for now, then in pairs))


def _has_entry(book: LedgerTransaction, sight: WitnessedHead) -> bool:
    """Whether the ledger has the entry that the witness saw."""
    entry = book.entry_at(sight.sequence)
    return entry is not None and entry.hash == sight.hash


def _remaining_budget(spent: BudgetCharge, cap: FilterLimits) -> BudgetCharge:
    """What is left of a cap, for each filter at least what the whole of it costs as one question.

    What was asked under the cap is within one of the filters, and not known to be within which; all of it together is
    (epsilon, delta)-DP by the theorem of the union (`accounting/filters.py`). Counted as one question of that, it
    counts for the other filter too, should the cap be raised or be given a delta afterwards.
    """
    sides = zip(cap.grains, cost_of_cap(cap).grains, spent.grains, strict=True)
    return BudgetCharge(*(max(0, limit - gone, all_of - gone) for limit, all_of, gone in sides))


def cost_of_cap(cap: FilterLimits) -> BudgetCharge:
    """What all that fits under a cap costs as one question."""
    delta = Fraction(cap.delta_a, GRAINS_PER_DELTA) / DeltaSplit().basic
    return compute_charge(ApproximateDp(Fraction(cap.epsilon, GRAINS_PER_EPSILON), delta))


def _fail_open_claims(book: LedgerTransaction, key: SigningKey) -> int:
    claims = [flight.claim for flight in book.flights()]
    for claim in claims:
        append_failure(book, claim, LOST_ENTRIES, key)
    return len(claims)


def _archive_witness(witness: Witness, sight: WitnessedHead) -> Path | None:
    """Keep the old witness, for whoever wants to know what was lost, and start a new one that has seen this entry.

    It takes the old one's place in one step: whoever is killed meanwhile leaves the one or the other, and never a
    witness that has seen nothing, which would be a lost one.
    """
    place = Path(os.path.realpath(witness.path))
    kept = _copy(place) if witness.exists() else None
    draft = Witness(place.with_name(f"{place.name}.new"))
    draft.path.unlink(missing_ok=True)
    draft.create()
    draft.note(sight)
    draft.path.replace(place)
    sync_path(place.parent)
    return kept


def _copy(path: Path) -> Path:
    """A durable copy under the next number, on any file system: not every one has links."""
    number = 1
    while (kept := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    handle = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    os.fchmod(handle, PRIVATE)  # whatever the mask
    with os.fdopen(handle, "wb") as file:
        file.write(path.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    return kept
