"""What is spent and what is left, as an analyst sees it. Both are public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    READABLE,
    BudgetCharge,
    BudgetStatus,
    FilterLimits,
    format_epsilon,
    is_within_basic,
    is_within_zcdp,
)
from tacit.arithmetic import format_decimal
from tacit.notebook_html import render_list, render_table

_NAMES = ("own", "overall")


@dataclass(frozen=True)
class AnalystBudget:
    """How much an analyst, and all of them together, have spent and have left."""

    who: str
    own: BudgetStatus
    overall: BudgetStatus
    month: str = ""  # in which the own standing counts, where the cap refreshes

    @property
    def remaining(self) -> float:
        """The epsilon that one more question of this analyst may cost: the smaller of the two."""
        return min(self.own.remaining, self.overall.remaining) / GRAINS_PER_EPSILON

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, amounts as exact decimal text."""
        own = {**standing_to_dict(self.own), **({"month": self.month} if self.month else {})}
        return {"who": self.who, "own": own, "overall": standing_to_dict(self.overall)}

    def __str__(self) -> str:
        month = f" in {self.month}" if self.month else ""
        own, overall = describe_standing(self.own, month), describe_standing(self.overall)
        return f"{self.who} has spent {own}; all analysts together {overall}"

    def _repr_html_(self) -> str:
        own, overall = standing_to_dict(self.own), standing_to_dict(self.overall)
        month = f", {self.month}" if self.month else ""
        rows = [(f"{self.who}{month}", own), ("all analysts together", overall)]
        heads = ["epsilon of", "spent", "of", "left"]
        table = [[name, about["spent"], about["cap"], about["remaining"]] for name, about in rows]
        return render_table(heads, table) + render_list([str(self)])

    def to_grains(self) -> dict[str, Any]:
        """Return all amounts exactly, in grains: what a server sends for `from_grains` to read."""
        return {
            name: [list(each.spent.grains), list(each.cap.grains)]
            for name, each in zip(_NAMES, (self.own, self.overall), strict=True)
        }

    @classmethod
    def from_grains(cls, who: str, grains: Mapping[str, Any], month: str = "") -> AnalystBudget:
        """Return the budget whose amounts `to_grains` wrote."""
        own, overall = (BudgetStatus(BudgetCharge(*grains[name][0]), FilterLimits(*grains[name][1])) for name in _NAMES)
        return cls(who, own, overall, month)


def standing_to_dict(standing: BudgetStatus) -> dict[str, Any]:
    """What is spent, capped and left: of epsilon, and of the delta that questions may add up to."""
    return {
        "spent": format_epsilon(standing.spent.epsilon),
        "cap": format_epsilon(standing.cap.epsilon),
        "remaining": format_epsilon(standing.remaining),
        "delta": {
            "spent": format_delta(standing.spent.delta_a),
            "cap": format_delta(standing.cap.delta_a),
            "remaining": format_delta(remaining_delta(standing)),
        },
    }


def remaining_delta(standing: BudgetStatus) -> int:
    """The grains of delta that one more question may cost, whatever its epsilon: what the better filter has left."""
    spent, cap = standing.spent, standing.cap
    basic = cap.delta_a - spent.delta_a if spent.epsilon <= cap.epsilon else 0
    return max(0, basic, cap.delta_b - spent.delta_b if spent.rho <= cap.rho else 0)


def format_delta(grains: int) -> str:
    """Grains of delta as exact decimal text."""
    return format_decimal(Fraction(grains, GRAINS_PER_DELTA))


def describe_spent(standing: BudgetStatus) -> str:
    """What is spent of what: the sums, or, once filter B alone holds, the part of its rho."""
    spent, cap = standing.spent, standing.cap
    if is_within_zcdp(spent, cap) and not is_within_basic(spent, cap):
        return f"{100 * spent.rho / cap.rho:.3g}% of epsilon {format_epsilon(cap.epsilon)}, counted by rho"
    delta = f" and delta {format_delta(spent.delta_a)} of {format_delta(cap.delta_a)}"
    told = format_epsilon(-(-spent.epsilon // READABLE) * READABLE)
    return f"epsilon {told} of {format_epsilon(cap.epsilon)}" + (delta if spent.delta_a or cap.delta_a else "")


def describe_standing(standing: BudgetStatus, month: str = "") -> str:
    """What is spent of what, and what is left."""
    left = standing.remaining // READABLE * READABLE
    return f"{describe_spent(standing)}{month}, with {format_epsilon(left)} left"
