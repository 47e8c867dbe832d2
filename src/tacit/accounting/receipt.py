"""What an answer shows of its charge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_RHO,
    READABLE,
    BudgetCharge,
    BudgetStatus,
    format_epsilon,
)
from tacit.accounting.rounding import decimal_above
from tacit.notebook_html import render_table

STEP_FIELDS = ("clip_entry", "clip_charged_epsilon", "clip_epsilon", "both_charged_epsilon", "both_epsilon")
"""What a receipt says beside the rest where a clip was charged before the answer."""


@dataclass(frozen=True)
class ClipStep:
    """The charge of a clip that was chosen before the sums: a line of the ledger of its own.

    Attributes
    ----------
    entry : int
        Number of the charge in the ledger.
    charged : BudgetCharge
        What the clip cost the analyst this time.
    cost : BudgetCharge
        The privacy loss of the clip itself.

    Examples
    --------
    >>> tenth = BudgetCharge(epsilon=10**11, delta_a=0, rho=5 * 10**12, delta_b=0)
    >>> ClipStep(entry=7, charged=tenth, cost=tenth).cost.text
    '0.1'
    """

    entry: int
    charged: BudgetCharge
    cost: BudgetCharge


@dataclass(frozen=True)
class Receipt:
    """A line of the ledger, for the person who was charged.

    Kept by the analyst, `head` and `signature` prove what the ledger held.

    Attributes
    ----------
    entry : int
        Number of the charge in the ledger; for an answer shown again for nothing, of the one that paid for it.
    time : str
        When that charge was made, in UTC.
    analyst : str
        The analyst who was charged.
    key : str
        What tells the question from others: the same question has the same key.
    charged : BudgetCharge
        What showing the answer cost the analyst this time.
    cost : BudgetCharge
        The privacy loss of the answer itself.
    repeat : bool
        Whether the answer was released before.
    analyst_budget, overall_budget : BudgetStatus
        What the analyst and all analysts together have spent, right after the charge or at the repeat.
    head : str
        Hash of the entry, over all entries before it.
    signature : str
        The ledger's signature of that hash.
    request : str
        The name under which the question was asked, if it was given one.
    clip : ClipStep, optional
        The first step of an answer whose clip was chosen and charged before it.

    Examples
    --------
    >>> from tacit.accounting import FilterLimits
    >>> nothing = BudgetStatus(BudgetCharge.zero(), FilterLimits.zero())
    >>> free = Receipt(7, "", "ada", "", BudgetCharge.zero(), BudgetCharge.zero(), True, nothing, nothing, "5f2c")
    >>> str(free)
    'a repeat, free · ada has 0 of 0 left · entry 7 · head 5f2c'
    """

    entry: int
    time: str
    analyst: str
    key: str
    charged: BudgetCharge
    cost: BudgetCharge
    repeat: bool
    analyst_budget: BudgetStatus
    overall_budget: BudgetStatus
    head: str
    signature: str = ""
    request: str = ""
    clip: ClipStep | None = None

    def __str__(self) -> str:
        """What it cost and what is left, in one line."""
        cost = f"epsilon {self.charged.text}"
        if self.clip is not None:
            both = (self.charged + self.clip.charged).text
            cost = f"epsilon {both}: {self.clip.charged.text} for the clip and {self.charged.text} for the answer"
        if self.is_free:
            cost = "a repeat, free"
        left = format_epsilon(self.analyst_budget.remaining // READABLE * READABLE)
        of = format_epsilon(self.analyst_budget.cap.epsilon)
        return f"{cost} · {self.analyst} has {left} of {of} left · entry {self.entry} · head {self.head[:12]}"

    @property
    def is_free(self) -> bool:
        """Whether nothing was charged this time, neither for a clip nor for the answer, because it was paid before."""
        first = BudgetCharge.zero() if self.clip is None else self.clip.charged
        return self.repeat and self.charged + first == BudgetCharge.zero()

    def to_dict(self) -> dict[str, int | float | str]:
        """Return the receipt as plain values, as `tacit ledger verify --receipt` takes it.

        Returns
        -------
        dict
            Epsilons are exact decimal text.
        """
        return {
            "entry": self.entry,
            "time": self.time,
            "who": self.analyst,
            "request": self.request,
            "key": self.key,
            "charged_epsilon": format_epsilon(self.charged.epsilon),
            **describe_cost(self.cost),
            "repeat": self.repeat,
            "remaining_epsilon": format_epsilon(self.analyst_budget.remaining),
            "remaining_epsilon_overall": format_epsilon(self.overall_budget.remaining),
            "head": self.head,
            "signature": self.signature,
            **({} if self.clip is None else self._describe_steps(self.clip)),
        }

    def _describe_steps(self, clip: ClipStep) -> dict[str, int | float | str]:
        """The first of two steps, and the sums of both."""
        charged, cost = clip.charged.epsilon, clip.cost.epsilon
        both = charged + self.charged.epsilon, cost + self.cost.epsilon
        return dict(zip(STEP_FIELDS, (clip.entry, *map(format_epsilon, (charged, cost, *both))), strict=True))

    def _repr_html_(self) -> str:
        return render_table(
            ["receipt", ""], [[name, str(value)] for name, value in self.to_dict().items()], [True, True]
        )


def describe_cost(cost: BudgetCharge) -> dict[str, str | float]:
    """Return the privacy loss of an answer as a receipt says it: epsilon as exact text, the others rounded up."""
    return {
        "answer_epsilon": format_epsilon(cost.epsilon),
        "answer_delta": decimal_above(Fraction(cost.delta_a, GRAINS_PER_DELTA)),
        "answer_rho": decimal_above(Fraction(cost.rho, GRAINS_PER_RHO)),
    }
