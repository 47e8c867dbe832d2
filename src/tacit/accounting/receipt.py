"""What an answer shows of its charge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import GRAINS_PER_DELTA, GRAINS_PER_RHO, BudgetCharge, BudgetStatus, format_epsilon
from tacit.accounting.rounding import decimal_above


@dataclass(frozen=True)
class Receipt:
    """A line of the ledger, for the person who was charged.

    `entry` is the charge; for an answer shown again for nothing the one that paid for it, with its time and its head.
    `charged` is what showing it cost the analyst this time; `price` is the privacy loss of the answer itself. The
    standings are those right after the charge, or at a repeat for nothing. `head` is the hash of the entry that stands
    for this answer, over all entries before it, and `signature` the ledger's own over that hash: kept by the analyst,
    they prove what the ledger held.
    """

    entry: int
    time: str
    who: str
    key: str
    charged: BudgetCharge
    price: BudgetCharge
    repeat: bool
    analyst: BudgetStatus
    overall: BudgetStatus
    head: str
    signature: str = ""
    request: str = ""

    def __str__(self) -> str:
        """What it cost and what is left, in one line."""
        cost = (
            "a repeat, free" if self.repeat and self.charged == BudgetCharge.zero() else f"epsilon {self.charged.shown}"
        )
        left = f"{format_epsilon(self.analyst.remaining)} of {format_epsilon(self.analyst.cap.epsilon)} left"
        return f"{cost} · {self.who} has {left} · entry {self.entry} · head {self.head[:12]}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, epsilons as exact decimal text."""
        return {
            "entry": self.entry,
            "time": self.time,
            "who": self.who,
            "request": self.request,
            "key": self.key,
            "charged_epsilon": format_epsilon(self.charged.epsilon),
            **describe_cost(self.price),
            "repeat": self.repeat,
            "remaining_epsilon": format_epsilon(self.analyst.remaining),
            "remaining_epsilon_overall": format_epsilon(self.overall.remaining),
            "head": self.head,
            "signature": self.signature,
        }


def describe_cost(cost: BudgetCharge) -> dict[str, Any]:
    """Return the privacy loss of an answer as a receipt says it: epsilon as exact text, the others rounded up."""
    return {
        "answer_epsilon": format_epsilon(cost.epsilon),
        "answer_delta": decimal_above(Fraction(cost.delta_a, GRAINS_PER_DELTA)),
        "answer_rho": decimal_above(Fraction(cost.rho, GRAINS_PER_RHO)),
    }
