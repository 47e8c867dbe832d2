"""The price of an accuracy: the least epsilon at which counts and sums are as close as the question wants them.

Their noise does not depend on the data, so its size is known beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.answers.intervals import half_width
from tacit.answers.recipe import Plain
from tacit.arithmetic import rational
from tacit.errors import Code, ParameterError, Refused
from tacit.plan.plan import LEAST_EPSILON, MOST_EPSILON, Plan, plan_for
from tacit.policy.model import Policy
from tacit.query.nodes import Query, Released

_DIGITS = 10**4  # of the price: four digits are kept
_TRIES = 60


@dataclass(frozen=True)
class Price:
    """What a question may cost: an epsilon, or the least one for an accuracy."""

    epsilon: Any = None
    within: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.within is None):
            what = "name a price: either epsilon or within"
            raise ParameterError("epsilon", what, fix='epsilon=0.5, or within={"n": 50}')

    def plan(self, query: Query, policy: Policy, confidence: Fraction) -> Plan:
        """The plan at this price."""
        if self.within is None:
            return plan_for(query, policy, self.epsilon)
        return plan_within(query, policy, self.within, confidence)


def plan_within(query: Query, policy: Policy, within: Mapping[str, Any], confidence: Fraction) -> Plan:
    """The cheapest plan whose named columns are within so much of the bounded value, at this confidence.

    The price is rounded up to four digits. More epsilon never means more noise, up to the steps of a discrete law, so
    the search goes by the ratio of errors and then upwards until the law says that it holds.
    """
    wanted = _wanted(within)
    price = Fraction(1)
    plan = plan_for(query, policy, price)
    for _ in range(_TRIES):
        ratio = max(_error(plan, name, confidence) / width for name, width in wanted.items())
        better = _rounded(price * ratio)
        if better == price or (ratio <= 1 and better > price):
            break
        price = min(max(better, LEAST_EPSILON), MOST_EPSILON)
        plan = plan_for(query, policy, price)
        if ratio <= 1 and Fraction(99, 100) < ratio:
            break
    while any(_error(plan, name, confidence) > width for name, width in wanted.items()):
        if price >= MOST_EPSILON:
            what = "no price is enough for this accuracy"
            raise Refused(Code.PARAMETER, what, fix=f"ask for less: within={{{', '.join(wanted)}: ...}} larger")
        price = min(MOST_EPSILON, _rounded(price * Fraction(1001, 1000)))
        plan = plan_for(query, policy, price)
    return plan


def _wanted(within: Mapping[str, Any]) -> dict[str, Fraction]:
    if not isinstance(within, Mapping) or not within:
        raise ParameterError("within", "names no column", fix='within={"n": 50}')
    wanted = {str(name): rational("within", width) for name, width in within.items()}
    for name, width in wanted.items():
        if width <= 0:
            raise ParameterError("within", f"{name} must be above zero", fix='within={"n": 50}')
    return wanted


def _error(plan: Plan, name: str, confidence: Fraction) -> Fraction:
    """How far a column may be off; refused where that depends on the data."""
    found = next((result for result in plan.recipe.results if result.name.lower() == name.lower()), None)
    if found is None:
        names = ", ".join(result.name for result in plan.recipe.results)
        raise ParameterError("within", f"there is no column {name!r}", fix=f"the columns are {names}")
    value = plan.recipe.values[found.scalar.index] if isinstance(found.scalar, Released) else None
    if not isinstance(value, Plain):
        raise Refused(
            Code.PARAMETER,
            f"the error of {name} depends on the data, so no price can be set for it",
            fix="name a COUNT or SUM column; explain shows the error of others for several numbers of rows",
        )
    return half_width(plan.recipe.noisy(value.part), confidence)


def _rounded(price: Fraction) -> Fraction:
    """The price with four digits, rounded up."""
    scale = Fraction(1)
    while price * scale < _DIGITS // 10:
        scale *= 10
    while price * scale >= _DIGITS:
        scale /= 10
    return Fraction(-(-price * scale // 1)) / scale
