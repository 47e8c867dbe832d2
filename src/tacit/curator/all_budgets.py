"""Everyone's budget, as the owner sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.accounting.filters import BudgetStatus, FilterLimits
from tacit.answers.analyst_budget import describe_standing, standing_to_dict
from tacit.ledger.budget import OWNER
from tacit.ledger.entries import ALL_ANALYSTS
from tacit.ledger.reader import LedgerReader
from tacit.policy.model import Policy
from tacit.policy.promise import RecordedSpending


@dataclass(frozen=True)
class AllBudgets:
    """Everyone's budget, as the owner sees them; of an analyst whose cap refreshes, that of this month."""

    overall: BudgetStatus
    analysts: dict[str, BudgetStatus]
    months: dict[str, str]

    @classmethod
    def of(cls, policy: Policy, ledger: LedgerReader) -> AllBudgets:
        """What the ledger says of the policy's analysts."""
        names = [analyst.name for analyst in policy.analysts]
        if (terms := ledger.terms()) is not None and OWNER in terms.limits.analysts and has_spent(ledger, OWNER):
            names.append(OWNER)  # what the owner has released for everyone
        months = {name: ledger.month(name) for name in names}
        return cls(ledger.overall(), {name: ledger.standing(name) for name in names}, months)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, amounts as exact decimal text."""
        months = {name: {"month": month} for name, month in self.months.items() if month}
        each = {
            name: {**standing_to_dict(standing), **months.get(name, {})} for name, standing in self.analysts.items()
        }
        return {"overall": standing_to_dict(self.overall), "analysts": each}

    def __str__(self) -> str:
        rows = [(name, describe_standing(each, self._in(name))) for name, each in self.analysts.items()]
        rows.insert(0, ("all together", describe_standing(self.overall)))
        wide = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{wide}}  {said}" for name, said in rows)

    def _in(self, name: str) -> str:
        return f" in {self.months[name]}" if self.months[name] else ""


def has_spent(ledger: LedgerReader, analyst: str) -> bool:
    """Whether anything was ever charged to an account that the ledger knows."""
    return any(ledger.standing(analyst).spent.grains)


def load_spent(policy: Policy, ledger: LedgerReader) -> RecordedSpending:
    """What a ledger has charged to the policy's analysts, and to all together."""
    terms = ledger.terms()
    known = {} if terms is None else terms.limits.analysts
    each = {a.name: ledger.standing(a.name).spent for a in policy.analysts if a.name in known}
    highest = ledger.highest_limits()
    return RecordedSpending(ledger.overall().spent, each, highest.pop(ALL_ANALYSTS, FilterLimits.zero()), highest)
