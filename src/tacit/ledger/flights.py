"""Charges that have no outcome yet: who works on them, and of which an answer was handed over.

A *holder* is a process or a connection, as the database's store names it; none where the holder let go. A charge whose
holder is gone is taken up by another run, unless the bytes of an answer were handed to the database before: whether
they could be stored may depend on them, so that they are not there is the outcome of the charge (`Ledger.commit`). A
row of the table says so in the place of the holder, with the run that gave the answer, and is on disk before the bytes
leave.

An answer of at most `SMALL_ANSWER` bytes needs no such row: it goes in one packet and on one page, whichever it is.
Most answers are so small.

>>> decode_holder(encode_answered("5eed", "office 7 1234"))
('office 7 1234', '5eed')
>>> decode_holder("office 7 1234")
('office 7 1234', '')
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.ledger.entries import Entry

SMALL_ANSWER = 1000
_ANSWERED = "answer "


@dataclass(frozen=True)
class Flight:
    """A RESERVE without an outcome, its holder, and the run whose answer was handed over, by its hash."""

    claim: Entry
    holder: str
    answered: str


def encode_answered(run: str, holder: str) -> str:
    """Return what stands in the place of a holder once the answer of a run is handed over."""
    return f"{_ANSWERED}{run} {holder}"


def decode_holder(text: str) -> tuple[str, str]:
    """Return the holder, and the run whose answer was handed over, or none."""
    if not text.startswith(_ANSWERED):
        return text, ""
    run, _, holder = text.removeprefix(_ANSWERED).partition(" ")
    return holder, run
