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
    FilterLimits,
    compute_limits,
    is_within_basic,
    is_within_zcdp,
)
from tacit.accounting.rounding import double_below
from tacit.arithmetic import format_decimal
from tacit.policy.check import PolicyAdvice
from tacit.policy.locate import format_path, quote_string
from tacit.policy.model import ROW_UNIT, DeclaredAnalyst, Policy, PrivacyBudget, Table, UnitForeignKey
from tacit.privacy.guarantee import epsilon_from_rho
from tacit.privacy.unit import Neighbors

_DELTA = Fraction(1, 10**6)  # where Gaussian noise is converted if the policy has no delta


@dataclass(frozen=True)
class RecordedSpending:
    """What a ledger has charged: to all together, and to each analyst, in their month where their cap refreshes.

    `highest` and `highest_each` are the most that any caps ever recorded allowed, filter by filter.
    """

    overall: BudgetCharge
    analysts: Mapping[str, BudgetCharge] = field(default_factory=dict)
    highest: FilterLimits = FilterLimits.zero()
    highest_each: Mapping[str, FilterLimits] = field(default_factory=dict)

    def of(self, analyst: DeclaredAnalyst) -> BudgetCharge:
        """What one analyst was charged."""
        return self.analysts.get(analyst.name, BudgetCharge.zero())

    def highest_of(self, analyst: DeclaredAnalyst) -> FilterLimits:
        """The most that any cap of one analyst allowed."""
        return self.highest_each.get(analyst.name, FilterLimits.zero())


def effective_budget(cap: PrivacyBudget, spent: BudgetCharge, highest: FilterLimits) -> PrivacyBudget:
    """What is promised under a cap where so much is spent already, and `highest` is the most that caps ever allowed.

    **Theorem.** Let T be a set of outcomes with the same highest limits and the same delta returned, all within the cap
    or none. Then P[T] is at most the expectation of e^epsilon over T under the neighbor's probabilities, plus delta,
    where epsilon is what is returned for each outcome: so an analyst gains nothing by choosing when to stop. Proof.
    Where a filter is within the cap, all that was told was admitted by it too, and all that will be
    (`accounting/filters.py`). Where none is, nothing more is admitted. Outcomes where filter A's sum is returned: of
    each answer's distribution all but a mass of its d_i is at most e^{e_i} times the neighbor's; multiply, and add up
    the d_i, which are at most A's delta. For the others filter B with the limits (rho, delta_b), which are the same on
    T, accepts all that was told: on T the run is that which it stops, and its rho is converted at a delta of its own.
    The rho that is spent is not: it depends on the outcome, and who may stop when it suits them could make a conversion
    of it fail more often than its delta. The union of both needs both deltas.

    Charges beyond all caps are of losses that the owner accepted, or of months that now count together: filter B then
    has the least limit that holds them, of those that are the highest times a power of two.
    """
    limit = compute_limits(cap.epsilon, cap.delta)
    if is_within_basic(spent, limit) or is_within_zcdp(spent, limit):
        return cap
    most = FilterLimits(*map(max, highest.grains, limit.grains))
    sums = spent.epsilon < LARGEST and (spent.delta_a <= most.delta_a or not is_within_zcdp(spent, most))
    ways, delta = [], Fraction(max(most.delta_a, spent.delta_a if sums else 0), GRAINS_PER_DELTA)
    if sums:
        ways.append(Fraction(spent.epsilon, GRAINS_PER_EPSILON))
    if is_within_zcdp(spent, most) or not sums:
        ways.append(_convert(most, spent.rho))
    if most.rho or not sums:
        keys = most.delta_b if sums else max(most.delta_b, spent.delta_b)
        delta += Fraction(keys, GRAINS_PER_DELTA) + _conversion_delta(most)
    return PrivacyBudget(max(cap.epsilon, _up(min(ways))), max(cap.delta, delta))


def promised_budget(policy: Policy, spent: RecordedSpending) -> PrivacyBudget:
    """What a policy promises over the answers to all analysts together, given what its ledger has charged."""
    return effective_budget(policy.budget, spent.overall, spent.highest)


def _convert(most: FilterLimits, spent: int) -> Fraction:
    """The epsilon of filter B at its limit, or at the least power of two times it that holds the rho that is spent."""
    rho, delta = max(1, most.rho), _conversion_delta(most)
    while rho < spent:
        rho *= 2
    below = min(double_below(delta), float(delta) * (1 - 2.0**-50))
    return Fraction(epsilon_from_rho(rho / GRAINS_PER_RHO * (1 + 2.0**-50), below))


def _conversion_delta(most: FilterLimits) -> Fraction:
    """Where rho is converted: the share of delta that filter B adds up is that of its conversion too."""
    return Fraction(most.delta_b, GRAINS_PER_DELTA) or _DELTA


def _up(number: Fraction) -> Fraction:
    """Rounded up to a millionth, to be read."""
    return Fraction(math.ceil(number * 10**6), 10**6)


def describe_guarantee(policy: Policy, spent: RecordedSpending | None = None) -> str:
    """What the policy promises to each unit, in plain sentences, given what its ledger has charged.

    Without that it is the promise of a policy whose ledger is empty, and says so.
    """
    units = "; ".join(_unit(table) for table in policy.tables if not table.public)
    whole = policy.budget if spent is None else promised_budget(policy, spent)
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
    each: list[tuple[tuple[str, ...], PrivacyBudget, PrivacyBudget]]
    each = [(("privacy",), policy.budget, promised_budget(policy, spent))]
    each += [(("analysts", a.name), a.budget, _of_analyst(a, spent)) for a in policy.analysts]
    for path, cap, bound in each:
        for name in ("epsilon", "delta"):
            has, had = getattr(cap, name), getattr(bound, name)
            if had > has:
                text = f"up to {format_decimal(had)} is spent already, more than {format_decimal(has)}"
                more = "what was told stays told, so the promise is of what an earlier cap allowed or of what is spent"
                more += ", and nothing more is admitted"
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
    bound = epsilon if spent is None else _of_analyst(analyst, spent).epsilon
    if not analyst.monthly:
        number = format_decimal(bound)
        return f"{analyst.name} up to {number} spent already" if bound > epsilon else f"{analyst.name} {number}"
    now = f" and up to {format_decimal(bound)} in this one already" if bound > epsilon else ""
    year = f"so {format_decimal(12 * epsilon)} over a year"
    return f"{analyst.name} {format_decimal(epsilon)} in each calendar month{now}, {year}"


def _of_analyst(analyst: DeclaredAnalyst, spent: RecordedSpending) -> PrivacyBudget:
    """What is promised of what one analyst is told alone."""
    return effective_budget(analyst.budget, spent.of(analyst), spent.highest_of(analyst))


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
