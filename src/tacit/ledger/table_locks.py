"""Tables that are locked: a question over live data failed, and the owner has not looked yet.

Where an engine reads the owner's own tables, no check excludes that a row makes a statement fail. Whether a question
fails is then an output without noise, and n questions could tell n bits. So one failure is allowed for each table, and
the next one only after the owner has looked at the cause.

A *run* is the work on one RESERVE or RESUME. It reads live what the policy says when it begins, and that may be more
than when its question was charged: the owner may have put a server in the place of a copy since. So the live tables of
a charge are all that its RESERVE or a RESUME of it names. A charge over live tables has one run at a time: it is not
resumed while a run of it may go on, in this process or another, because only one holder is known of it. A run over a
table ends in one of four ways, and which of them is known from the ledger and from the process that runs it:

- with an answer: a COMMIT, or an answer that the ledger could not store, whose size and no more of it anyone sees;
- before any statement was run by the engine, or before it began: nothing of the table was read;
- with any other failure: an error of the engine, a limit of time, an error while noise is added, an interrupt;
- never: its process is gone, or cannot be shown to run.

**Rule.** The last two lock every private table that the run reads. A LOCK is written for each, and in the same
transaction every charge that is open over one of these tables fails, so that no run which was in flight shows anything
afterwards. A run that never ended is found by whoever next asks about one of its tables, before anything is charged.
While a table is locked nothing is charged that reads it; stored answers are shown as before, because nothing is read
for them. Only the owner's UNLOCK ends this.

**Theorem.** From one UNLOCK of a table to the next, or from the beginning, let n runs over it be admitted, by whomever
and however many at a time, each question chosen after seeing all that came before. Beyond the answers, whose privacy
loss is charged, and the times at which runs end, the runs show one of at most n + 1 sequences of outcomes: at most
log2(n + 1) bits.

Proof. Put the runs in the order in which they end in the ledger, which is a matter of times. While none has failed,
each that ended has shown an answer or nothing, and what is asked next is a function of answers and times. Let run k be
the first that ends otherwise. Its transaction locks the table and fails all runs that are in flight; so none of those
shows which of them it was, none ends with an answer afterwards, and none begins before the owner's UNLOCK. Given the
answers and the times, the whole sequence is thus a function of k, which is one of 1, ..., n, or of there being no such
run: n + 1 sequences. A crash changes nothing: LOCK and FAIL are one transaction, and as long as it is not written, the
charge is open and in flight nowhere, so that the rule locks the table before anything else is charged.

For several tables the counts multiply, and the bits add up. A run that fails before any statement is run reads no row;
it may show that a server is down, or that it cannot read the text of a statement. Where an earlier run has brought the
server down, that one fails too. A run whose charge was settled meanwhile with the stored answer to the same question
shows that answer, whatever becomes of it.

>>> sorted(read_tables(Entry(2, "", EntryKind.RESERVE, note=encode_tables({"visits", "stays"}))))
['stays', 'visits']
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tacit.errors import ErrorCode, Refused
from tacit.ledger.entries import Entry, EntryKind

UNSENT = "unsent"  # the note of a FAIL before which no statement was run
UNSTORED = "unstored"  # that of one whose answer could not be stored
ABANDONED = "the process that ran it ended"
INTERRUPTED = "interrupted"
LOST_ENTRIES = "entries of the ledger were lost, and locks may be among them"


@dataclass(frozen=True)
class TableLock:
    """A table that is locked: by which entry and since when, and the kind of failure of which charge."""

    table: str
    entry: int
    time: str
    claim: int  # the RESERVE whose run failed; 0 where entries were lost
    cause: str  # the kind of the error, without its text, which may quote rows


def bits_learned(questions: int) -> float:
    """Return the most bits that so many questions can learn from a failure, by the theorem above."""
    return math.log2(questions + 1)


def encode_tables(tables: Collection[str]) -> str:
    """Return the live tables that a run reads as the note of its RESERVE or RESUME; nothing where there are none."""
    return json.dumps({"live": sorted(tables)}, separators=(",", ":"), ensure_ascii=False) if tables else ""


def read_tables(begun: Entry) -> frozenset[str]:
    """Return the live tables that a RESERVE or RESUME names; anything else in its note is a ValueError.

    A RESUME names none where they are among those that its charge has already.
    """
    if not begun.note:
        return frozenset()
    match json.loads(begun.note):
        case {"live": [*tables]} if all(isinstance(table, str) for table in tables):
            return frozenset(tables)
    raise ValueError("these are no tables")


def encode_lock(table: str, cause: str, signature: str) -> str:
    """Return the note of a LOCK; that of an UNLOCK has no cause."""
    plain = {"table": table, **({"cause": cause} if cause else {}), **({"signature": signature} if signature else {})}
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def lock_key(table: str) -> str:
    """Return the key under which the entries of a table's locks are found; those of questions are hexadecimal."""
    return f"table {table.lower()}"


def decode_lock(entry: Entry) -> tuple[str, str, str]:
    """Return the table, the cause and the signature of a LOCK or UNLOCK; anything else is a ValueError."""
    match json.loads(entry.note):
        case {"table": str(table), **more} if entry.key == lock_key(table):
            return table, str(more.get("cause", "")), str(more.get("signature", ""))
    raise ValueError("this is no lock")


def signed_text(kind: EntryKind, table: str, previous: str) -> str:
    """Return what the signature of a LOCK or UNLOCK is over: what it says, and the place in the chain where it does."""
    return f"{kind} {table} after {previous}"


def collect_locks(entries: Iterable[Entry]) -> dict[str, TableLock]:
    """Return the tables that LOCK and UNLOCK entries leave locked, by their names in lower case as SQL reads them."""
    found: dict[str, TableLock] = {}
    for entry in entries:
        table, cause, _ = decode_lock(entry)
        if entry.kind is EntryKind.LOCK:
            found[table.lower()] = TableLock(table, entry.sequence, entry.time, entry.claim, cause)
        else:
            found.pop(table.lower(), None)
    return found


def count_runs(entries: Iterable[Entry], table: str) -> int:
    """Return how many runs over a table these entries begin after its last UNLOCK: the n of the theorem."""
    claims: set[int] = set()
    runs = 0
    for entry in entries:
        if entry.kind in (EntryKind.RESERVE, EntryKind.RESUME):
            claim = entry.claim or entry.sequence
            if share_table(read_tables(entry), [table]):
                claims.add(claim)
            runs += claim in claims
        elif entry.kind is EntryKind.UNLOCK and decode_lock(entry)[0].lower() == table.lower():
            runs = 0
    return runs


def share_table(one: Collection[str], other: Collection[str]) -> bool:
    """Return whether two questions read a table in common."""
    return not {table.lower() for table in one}.isdisjoint(table.lower() for table in other)


def check_unlocked(locks: dict[str, TableLock], tables: Collection[str]) -> None:
    """Raise Refused where one of these tables is locked."""
    locked = sorted(table for table in tables if table.lower() in locks)
    if not locked:
        return
    names = " and ".join(locked)
    what = f"{names} {'is' if len(locked) == 1 else 'are'} locked since a question about the data failed"
    commands = "; ".join(f"tacit tables unlock {table}" for table in locked)
    raise Refused(ErrorCode.TABLE_LOCKED, what, fix=f"tell the data owner, who looks at the cause and runs: {commands}")
