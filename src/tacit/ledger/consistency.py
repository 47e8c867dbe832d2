"""What must hold before a ledger is used: it is the one that its witness saw, under the key and the scope it had."""

from __future__ import annotations

from collections.abc import Mapping, Set

from tacit.errors import ErrorCode, LedgerError
from tacit.ledger.budget import PUBLIC, BudgetLimits, Terms
from tacit.ledger.signing import SigningKey
from tacit.ledger.store import LedgerStore
from tacit.ledger.transaction import LedgerTransaction
from tacit.ledger.witness import Witness, WitnessedHead

_RECOVERY_FIX = "put the newest ledger back; if it is lost, charge all that may be missing: tacit ledger accept-loss"


def check_witness(book: LedgerTransaction, seen: WitnessedHead | None) -> None:
    """The ledger holds what the witness saw last; otherwise it is an older copy, or another ledger."""
    if seen is None:
        return
    if book.length < seen.sequence:
        what = f"it ends at entry {book.length}, and its witness has seen entry {seen.sequence}: it is an older copy"
        raise LedgerError(ErrorCode.LEDGER_OLDER, what, fix=_RECOVERY_FIX)
    entry = book.entry_at(seen.sequence)
    if entry is None or entry.hash != seen.hash:
        what = f"its entry {seen.sequence} is not the one that its witness saw: it is another one, or rewritten"
        raise LedgerError(ErrorCode.LEDGER_OLDER, what, fix=_RECOVERY_FIX)


def check_sighted(witness: Witness, recorded: Terms | None, *, marked: bool) -> None:
    """A witness that has seen nothing is a new one, and not the ledger's own, once the ledger's key is marked.

    Proof: an opening tells the witness of its entries before it marks the key, and a ledger that has a witness named
    later is seen before it says so. Otherwise an older copy would pass beside a witness that was begun anew.
    """
    if marked and recorded is not None and recorded.witnessed and witness.last() is None:
        fix = "put the ledger's own back; if it is lost, charge all that may be missing: tacit ledger accept-loss"
        raise LedgerError(ErrorCode.LEDGER_WITNESS, f"the witness {witness.path} has seen none of its entries", fix=fix)


def check_terms(recorded: Terms | None, terms: Terms) -> None:
    """The key and the witness are those that the ledger was used with."""
    if recorded is None:
        return
    if recorded.key and recorded.key != terms.key:
        fix = "put the ledger's own key back; if it is lost: tacit ledger accept-loss"
        raise LedgerError(ErrorCode.LEDGER_KEY, "it was signed with another key", fix=fix)
    if recorded.witnessed and not terms.witnessed:
        raise LedgerError(ErrorCode.LEDGER_WITNESS, "it has a witness, and none is named", fix="name the witness again")


def check_current_key(key: SigningKey, recorded: Terms | None) -> None:
    """The key is the ledger's still. A process that has the lost one writes nothing after `accept_loss` with a new one:
    it would be signed by a key that the ledger does not name.
    """
    if recorded is not None and recorded.key not in {"", key.public}:
        what = "it goes on with another key, since its owner accepted the loss of entries"
        raise LedgerError(
            ErrorCode.LEDGER_KEY, what, fix="start this process again, with the key that the ledger has now"
        )


def check_limits(book: LedgerTransaction, limits: BudgetLimits, known: int) -> None:
    """Nobody has written other caps down since entry `known` was the last to do so, when the policy was read.

    A policy is read before its data, which may take minutes. Otherwise an opening would undo a cap that the owner
    lowers meanwhile.
    """
    recorded, opening = book.terms(), book.opening()
    if recorded is not None and opening is not None and opening.sequence != known and recorded.limits != limits:
        what = "another opening has changed the budgets since the policy was read"
        raise LedgerError(ErrorCode.LEDGER_BUSY, what, fix="open it again, with the policy as it is now")


def check_key(store: LedgerStore, recorded: Terms | None, key: SigningKey) -> None:
    """A key that signs a ledger opens that one, and none that does not name it.

    Otherwise whoever deletes ledger and witness together, and leaves the key, would have a fresh budget.
    """
    if recorded is None:
        fix = (
            "put ledger and witness back; if they are lost: tacit ledger accept-loss; to begin a new ledger all the"
            " same, name a key file that does not exist yet under [ledger] in the policy"
        )
        raise store.error(f"is empty or missing, and {key.name} has signed entries", fix, ErrorCode.LEDGER_MISSING)
    if not recorded.key:
        fix = "put the key's own ledger back, or name a key file that does not exist yet under [ledger] in the policy"
        raise LedgerError(ErrorCode.LEDGER_KEY, f"it was never signed, and {key.name} signs another ledger", fix=fix)


def check_scope(known: Mapping[str, Set[str]], limits: BudgetLimits) -> None:
    """Nothing contradicts what the ledger was ever a promise about, by whichever opening.

    A policy may leave out a table and bring it back: with its unit, because what was told of it is still counted by
    that unit. A table that was public may become private, which promises more; not the other way round. Names are those
    of tables, which SQL reads in upper and lower case alike: `Visits` is `visits`.
    """
    for name, now in limits.scope.items():
        ever = {was for other, values in known.items() if other.lower() == name.lower() for was in values}
        for was in sorted(ever - {now, PUBLIC}):
            what = f"it counts what was spent with {name} {was!r}, and now it is {now!r}"
            fix = "name a new ledger in the policy; what was told from the old one is not undone by it"
            raise LedgerError(ErrorCode.LEDGER_SCOPE, what, fix=fix)


def missing_ledger_error(store: LedgerStore) -> LedgerError:
    """The error of a ledger that is no longer there."""
    fix = "put it back as it was; if it is lost, charge all that may be missing: tacit ledger accept-loss"
    return store.error("is empty or missing, and its witness has seen entries", fix, ErrorCode.LEDGER_MISSING)
