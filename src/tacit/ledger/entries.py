"""What the ledger writes down, and what it hands back.

Each entry carries the hash of the one before it, so that a change anywhere changes every hash after it.

>>> first = add_hash(Entry(1, "2030-01-01T00:00:00+00:00", EntryKind.OPEN))
>>> hash_entry(first) == first.hash
True
>>> hash_entry(replace(first, note="altered")) == first.hash
False
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tacit.accounting.filters import BudgetCharge
from tacit.accounting.receipt import Receipt

GENESIS = hashlib.sha256(b"tacit ledger").hexdigest()
_encode = json.JSONEncoder(separators=(",", ":")).encode
ALL_ANALYSTS = ""  # the name under which everyone is counted together, and under which the owner's entries stand
_FIRST_STEP = " clip of "


class EntryKind(StrEnum):
    """What happened."""

    OPEN = "open"  # the owner's terms, written whenever they differ from those written last
    RESERVE = "reserve"  # a charge, before data is touched
    RESUME = "resume"  # a charge without an answer is taken up again by the analyst who paid it
    COMMIT = "commit"  # the answer to a charge is stored
    FAIL = "fail"  # no answer came of a charge, which stays
    REPEAT = "repeat"  # a stored answer shown to one more analyst, at a charge; once written for free ones too
    CARRY = "carry"  # a cap begins to refresh and keeps what was spent, or ceases to and counts all months
    ACCEPT = "accept"  # the owner accepts a loss of entries, and all that may be missing is charged
    LOCK = "lock"  # a question over live data failed, and nothing more is charged that reads this table
    UNLOCK = "unlock"  # the owner has looked at the cause


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Costs are in grains.

    `charge` is what the analyst pays; where `shared` is 1, all of them together pay it too. `spent`, `overall` and
    `everyone` are sums after this entry, so that the last entries alone say what was spent: the analyst's in their
    month, that of all shared charges, and that of all charges to anyone. `month` is that in which a refreshing cap
    counts, else empty. `claim` is the sequence of the RESERVE that a COMMIT, FAIL, RESUME or LOCK is about, else 0.
    `request` is the analyst's own name for the question, if they gave one, or what `name_first_step` makes of it.
    `note` holds the terms of an OPEN, the reason of an ACCEPT, and what `ledger/table_locks.py` needs: the table of a
    LOCK or UNLOCK, the live tables that a RESERVE or RESUME reads, and of a FAIL whether nothing was sent.
    """

    sequence: int
    time: str
    kind: EntryKind
    analyst: str = ALL_ANALYSTS
    month: str = ""
    request: str = ""
    key: str = ""
    loss: str = ""
    claim: int = 0
    shared: int = 0
    charge: BudgetCharge = BudgetCharge.zero()
    spent: BudgetCharge = BudgetCharge.zero()
    overall: BudgetCharge = BudgetCharge.zero()
    everyone: BudgetCharge = BudgetCharge.zero()
    answer_digest: str = ""
    note: str = ""
    previous: str = GENESIS
    hash: str = ""

    @property
    def shared_charge(self) -> BudgetCharge:
        """What this entry charged to all together."""
        return self.charge if self.shared else BudgetCharge.zero()

    @property
    def question(self) -> tuple[str, str]:
        """What makes two questions the same: the key and the loss."""
        return self.key, self.loss


# The columns of a stored ledger, whatever the attributes are called.
COST_COLUMNS = ("epsilon", "delta_a", "rho", "delta_b")
COLUMNS = (
    *("sequence", "time", "kind", "who", "month", "request", "key", "loss", "claim", "shared"),
    *(f"{cost}_{grain}" for cost in ("charge", "spent", "overall", "everyone") for grain in COST_COLUMNS),
    *("answer_digest", "note", "previous", "hash"),
)


def name_first_step(request: str) -> str:
    """The name of the first of two steps of a question. No analyst can give it to another: theirs begin with no space.

    >>> name_first_step("mine"), name_first_step("")
    (' clip of mine', '')
    """
    return f"{_FIRST_STEP}{request}" if request else ""


def read_request(name: str) -> str:
    """The analyst's own name for a question, from that of either step."""
    return name.removeprefix(_FIRST_STEP)


def add_hash(entry: Entry) -> Entry:
    """The entry with its hash."""
    return replace(entry, hash=hash_entry(entry))


def hash_entry(entry: Entry) -> str:
    """The hash over every field but the hash itself.

    A JSON list is read in one way only, so entries that differ have encodings that differ.
    """
    return hashlib.sha256(_encode(to_row(entry)[:-1]).encode()).hexdigest()


def to_row(entry: Entry) -> tuple[Any, ...]:
    """The fields in the order of `COLUMNS`."""
    return (
        *(entry.sequence, entry.time, entry.kind, entry.analyst, entry.month, entry.request, entry.key, entry.loss),
        *(entry.claim, entry.shared),
        *(*entry.charge.grains, *entry.spent.grains, *entry.overall.grains, *entry.everyone.grains),
        *(entry.answer_digest, entry.note, entry.previous, entry.hash),
    )


def from_row(row: tuple[Any, ...]) -> Entry:
    """The entry of a row in the order of `COLUMNS`; a kind that does not exist is a ValueError."""
    sequence, time, kind, *rest = row
    plain, numbers, tail = rest[:7], rest[7:23], rest[23:]
    costs = [BudgetCharge(*numbers[at : at + 4]) for at in range(0, 16, 4)]
    return Entry(sequence, time, EntryKind(kind), *plain, *costs, *tail)


@dataclass(frozen=True)
class ChargeRequest:
    """A question as the ledger sees it: who asks, its key and loss, its cost, and the name that the analyst gave it."""

    analyst: str
    question: tuple[str, str]
    cost: BudgetCharge
    request: str = ""
    tables: frozenset[str] = frozenset()  # the private ones that it reads live

    @property
    def key(self) -> str:
        """What it is known by."""
        return self.question[0]


@dataclass(frozen=True)
class Reservation:
    """A charge that is written down. Where `stored` is None, the caller runs the question once and commits."""

    entry: int
    analyst: str
    key: str
    stored: bytes | None
    receipt: Receipt
    tables: frozenset[str] = frozenset()  # the live ones that the question reads
    run: str = ""  # the hash of the RESERVE or RESUME that began the work; none where the answer was stored
