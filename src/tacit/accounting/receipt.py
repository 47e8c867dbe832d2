"""What an answer shows of its charge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.accounting.filter import Amount, Standing


@dataclass(frozen=True)
class Receipt:
    """A line of the ledger, for the person who was charged.

    `entry` is the charge, or the repeat. `charged` is what this ask cost the analyst; `price` is the privacy loss of
    the answer itself. The standings are those right after the charge; `head` is the hash of the ledger's last entry.
    """

    entry: int
    time: str
    who: str
    key: str
    charged: Amount
    price: Amount
    repeat: bool
    analyst: Standing
    overall: Standing
    head: str

    def __str__(self) -> str:
        """What it cost and what is left, in one line."""
        cost = "a repeat, free" if self.repeat and not self.charged.epsilon else f"epsilon {self.charged.shown}"
        left = f"{self.analyst.remaining.shown} of {self.analyst.cap.shown} left"
        return f"{cost} · {self.who} has {left} · entry {self.entry} · head {self.head[:12]}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, amounts as exact decimal text."""
        return {
            "entry": self.entry,
            "time": self.time,
            "who": self.who,
            "key": self.key,
            "charged_epsilon": self.charged.shown,
            "answer_epsilon": self.price.shown,
            "repeat": self.repeat,
            "remaining_epsilon": self.analyst.remaining.shown,
            "remaining_epsilon_overall": self.overall.remaining.shown,
            "head": self.head,
        }
