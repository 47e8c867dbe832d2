"""What a policy promises to each unit, in plain sentences; where more is spent already than a cap, what holds still."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    GRAINS_PER_RHO,
    LARGEST,
    BudgetCharge,
    compute_limits,
    is_within_basic,
    is_within_zcdp,
)
from tacit.arithmetic import format_decimal
from tacit.policy.check import PolicyAdvice
from tacit.policy.locate import format_path, quote_string
from tacit.policy.model import ROW_UNIT, DeclaredAnalyst, Policy, PrivacyBudget, Table, UnitForeignKey
from tacit.privacy.guarantee import epsilon_from_rho
from tacit.privacy.unit import Neighbors

_DELTA = Fraction(1, 10**6)  # where Gaussian noise is converted if the policy has no delta


@dataclass(frozen=True)
class RecordedSpending:
    """What a ledger has charged: to all together, and to each analyst, in their month where their cap refreshes."""

    overall: BudgetCharge
    analysts: Mapping[str, BudgetCharge] = field(default_factory=dict)

    def of(self, analyst: DeclaredAnalyst) -> BudgetCharge:
        """What one analyst was charged."""
        return self.analysts.get(analyst.name, BudgetCharge.zero())


def effective_budget(cap: PrivacyBudget, spent: BudgetCharge) -> PrivacyBudget:
    """What is promised under a cap where so much is spent already.

    **Theorem.** It bounds all that was told and all that will be. Proof: where a filter is within the cap, it stays so
    (`accounting/filters.py`), and the cap holds. Where none is, nothing more is admitted, and what was told is bounded
    by the sums of epsilon and delta, and by the conversion of rho.
    """
    limit = compute_limits(cap.epsilon, cap.delta)
    if is_within_basic(spent, limit) or is_within_zcdp(spent, limit):
        return cap
    ways = []
    if spent.epsilon < LARGEST:
        ways.append((Fraction(spent.epsilon, GRAINS_PER_EPSILON), Fraction(spent.delta_a, GRAINS_PER_DELTA)))
    keys = Fraction(spent.delta_b, GRAINS_PER_DELTA)
    if cap.delta > keys or not ways:
        at = cap.delta - keys if cap.delta > keys else _DELTA
        converted = epsilon_from_rho(spent.rho / GRAINS_PER_RHO * (1 + 2.0**-50), float(at) * (1 - 2.0**-50))
        ways.append((Fraction(converted), at + keys))
    epsilon, delta = min(ways)
    return PrivacyBudget(max(cap.epsilon, _up(epsilon)), max(cap.delta, delta))


def _up(number: Fraction) -> Fraction:
    """Rounded up to a millionth, to be read."""
    return Fraction(math.ceil(number * 10**6), 10**6)


def describe_guarantee(policy: Policy, spent: RecordedSpending | None = None) -> str:
    """What the policy promises to each unit, in plain sentences, given what its ledger has charged.

    Without that it is the promise of a policy whose ledger is empty, and says so.
    """
    units = "; ".join(_unit(table) for table in policy.tables if not table.public)
    whole = policy.budget if spent is None else effective_budget(policy.budget, spent.overall)
    delta = f", plus {format_decimal(whole.delta)}" if whole.delta else ""
    start = ", counted from an empty ledger" if spent is None else ""
    return (
        f"Protected is each unit: {units}. {_together(policy)}"
        f"{_change(policy.neighbors)} changes the probability of any outcome, over the answers to all analysts "
        f"together, by a factor of at most exp({format_decimal(whole.epsilon)}){delta}{start}. "
        f"The caps of single analysts ({_caps(policy, spent)}) hold for what each of them is told alone: "
        f"analysts who pool their answers are bound by the overall cap only.{_refreshing(policy, whole)}{_live(policy)}"
    )


def find_overspent(policy: Policy, spent: RecordedSpending) -> Iterator[PolicyAdvice]:
    """Where more is spent than a cap, so that the cap is no promise: it was lowered later, or a loss was charged."""
    each: list[tuple[tuple[str, ...], PrivacyBudget, BudgetCharge]] = [(("privacy",), policy.budget, spent.overall)]
    each += [(("analysts", a.name), a.budget, spent.of(a)) for a in policy.analysts]
    for path, cap, cost in each:
        bound = effective_budget(cap, cost)
        for name in ("epsilon", "delta"):
            has, had = getattr(cap, name), getattr(bound, name)
            if had > has:
                text = f"{format_decimal(had)} is spent already, more than {format_decimal(has)}"
                more = "what was told stays told, so the promise is of what is spent, and nothing more is admitted"
                yield PolicyAdvice(format_path((*path, name)), f"{text}: {more}")


def _together(policy: Policy) -> str:
    """Which tables hold the same people, and which hold nobody."""
    people: dict[str, list[str]] = {}
    for table in policy.tables:
        if not table.public and table.unit != ROW_UNIT:
            people.setdefault(table.people, []).append(quote_string(table.name))
    said = [
        f"The units of {_join_names(names)} are the same people: all that these hold of one is protected together. "
        for names in people.values()
        if len(names) > 1
    ]
    nobody = [quote_string(table.name) for table in policy.tables if table.public]
    if nobody:
        said.append(f"Public, so that nobody is protected in them, are the rows of {_join_names(nobody)}. ")
    return "".join(said)


def _join_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _unit(table: Table) -> str:
    if table.unit == ROW_UNIT:
        return f"in {quote_string(table.name)} each row on its own, even where one person has several"
    if isinstance(table.unit, UnitForeignKey):
        way = f"{quote_string(table.unit.column)} leads to the unit's rows in {quote_string(table.unit.table)}"
        return f"in {quote_string(table.name)} all rows whose {way}"
    return f"in {quote_string(table.name)} all rows with the same {quote_string(str(table.unit))}"


def _change(neighbors: Neighbors) -> str:
    if neighbors is Neighbors.REPLACE:
        return "Replacing all rows of one unit by rows of another"
    return "Adding or removing all rows of one unit"


def _caps(policy: Policy, spent: RecordedSpending | None) -> str:
    shown = [_cap(analyst, spent) for analyst in policy.analysts[:5]]
    more = len(policy.analysts) - len(shown)
    return "epsilon: " + "; ".join(shown) + (f" and {more} more" if more else "")


def _cap(analyst: DeclaredAnalyst, spent: RecordedSpending | None) -> str:
    """A cap that refreshes is a promise about each month, and over several months these add up."""
    epsilon = analyst.budget.epsilon
    bound = epsilon if spent is None else effective_budget(analyst.budget, spent.of(analyst)).epsilon
    if not analyst.monthly:
        return f"{analyst.name} {format_decimal(bound)}" + (" spent already" if bound > epsilon else "")
    now = f" and {format_decimal(bound)} in this one already" if bound > epsilon else ""
    year = f"so {format_decimal(12 * epsilon)} over a year"
    return f"{analyst.name} {format_decimal(epsilon)} in each calendar month{now}, {year}"


def _live(policy: Policy) -> str:
    """What failures can tell of tables that are read where they are; `ledger/table_locks.py` has the theorem."""
    live = [quote_string(table.name) for table in policy.tables if table.name in policy.live_tables]
    if not live:
        return ""
    return (
        f" Questions read {_join_names(live)} live, where a row may make one fail. The first failure locks the tables "
        "that the question reads until the owner unlocks them. So, beyond the answers, n questions about a table can "
        "learn at most log2(n + 1) bits per unlock by whether and when one fails."
    )


def _refreshing(policy: Policy, whole: PrivacyBudget) -> str:
    if not any(analyst.monthly for analyst in policy.analysts):
        return ""
    epsilon = format_decimal(whole.epsilon)
    return f" Caps of single analysts may refresh; the overall cap of {epsilon} never does, and binds."
