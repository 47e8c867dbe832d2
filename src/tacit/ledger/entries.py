"""What the ledger writes down, and what it hands back.

Each entry carries the hash of the one before it, so that a change anywhere changes every hash after it.

>>> first = seal(Entry(1, "2030-01-01T00:00:00+00:00", Kind.OPEN))
>>> digest(first) == first.hash
True
>>> digest(replace(first, note="altered")) == first.hash
False
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from tacit.accounting.filter import Amount
from tacit.accounting.receipt import Receipt

GENESIS = hashlib.sha256(b"tacit ledger").hexdigest()


class Kind(StrEnum):
    """What happened."""

    OPEN = "open"  # the owner's caps, written whenever they differ from those written last
    RESERVE = "reserve"  # a charge, before data is touched
    COMMIT = "commit"  # the answer to a charge is stored
    FAIL = "fail"  # no answer came of a charge, which stays
    REPEAT = "repeat"  # a stored answer shown again


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Amounts are in grains.

    `epsilon` and `delta` are charged to the analyst, `overall_*` to all of them together: the same for a first answer,
    nothing for a repeat. `spent_*` and `overall_spent_*` are the sums after this entry, so that the last entries alone
    say what was spent. `claim` is the sequence of the RESERVE that a COMMIT or FAIL settles, else 0. `note` holds the
    caps of an OPEN.
    """

    sequence: int
    time: str
    kind: Kind
    who: str = ""
    key: str = ""
    epsilon: int = 0
    delta: int = 0
    overall_epsilon: int = 0
    overall_delta: int = 0
    spent_epsilon: int = 0
    spent_delta: int = 0
    overall_spent_epsilon: int = 0
    overall_spent_delta: int = 0
    loss: str = ""
    claim: int = 0
    answer_digest: str = ""
    note: str = ""
    previous: str = GENESIS
    hash: str = ""

    @property
    def charge(self) -> Amount:
        """What this entry charged to the analyst."""
        return Amount(self.epsilon, self.delta)

    @property
    def overall_charge(self) -> Amount:
        """What this entry charged to all together."""
        return Amount(self.overall_epsilon, self.overall_delta)

    @property
    def spent(self) -> Amount:
        """What the analyst has spent, this entry included."""
        return Amount(self.spent_epsilon, self.spent_delta)

    @property
    def overall_spent(self) -> Amount:
        """What all have spent together, this entry included."""
        return Amount(self.overall_spent_epsilon, self.overall_spent_delta)


COLUMNS = tuple(field.name for field in fields(Entry))


def seal(entry: Entry) -> Entry:
    """The entry with its hash."""
    return replace(entry, hash=digest(entry))


def digest(entry: Entry) -> str:
    """The hash over every field but the hash itself.

    A JSON list is read in one way only, so entries that differ have encodings that differ.
    """
    return hashlib.sha256(json.dumps(values(entry)[:-1], separators=(",", ":")).encode()).hexdigest()


def values(entry: Entry) -> tuple[Any, ...]:
    """The fields in the order of `COLUMNS`."""
    return tuple(getattr(entry, name) for name in COLUMNS)


def from_values(row: tuple[Any, ...]) -> Entry:
    """The entry of a row in the order of `COLUMNS`; a kind that does not exist is a ValueError."""
    sequence, time, kind, *rest = row
    return Entry(sequence, time, Kind(kind), *rest)


@dataclass(frozen=True)
class Claim:
    """A charge that is written down. Where `stored` is None, the caller runs the question once and commits."""

    entry: int
    who: str
    key: str
    stored: bytes | None
    receipt: Receipt
