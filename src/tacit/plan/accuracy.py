"""The privacy loss of an accuracy: the least epsilon at which counts and sums are as close as the question wants them.

Their noise does not depend on the data, so its size is known beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tacit.arithmetic import to_rational
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.plan.bind_question import bind_question, read_epsilon
from tacit.plan.compound import is_compound
from tacit.plan.flatten import flatten_query
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON, Plan
from tacit.policy.model import Policy
from tacit.query.nodes import Query, ReleasedValue

_THOUSAND = 1_000
_STEPS = 9 * 9 * _THOUSAND  # nine decades of epsilons with four digits, from the least to the most


def plan_within(query: Query, policy: Policy, within: Mapping[str, Any], confidence: Fraction) -> Plan:
    """The cheapest plan whose named columns are within so much of the bounded value, at this confidence.

    Prices of four digits are searched. More epsilon never means more noise, so the least that is enough is found by
    halving, and the next one below it is not enough.
    """
    wanted = _parse_widths(within)
    query = flatten_query(query)
    if is_compound(query, policy):
        what = "no epsilon is found by the accuracy of a question made of several"
        raise Refused(ErrorCode.PARAMETER, what, at=query.at, fix="give epsilon, and look at what explain says")

    bound, delta = bind_question(query, policy), policy.question_delta

    def plan_at(step: int) -> Plan:
        return bound.plan(read_epsilon(_epsilon_at_step(step)), delta)

    def is_enough(plan: Plan) -> bool:
        return all(_column_error(plan, name, confidence) <= width for name, width in wanted.items())

    low, high = 0, _STEPS
    best = plan_at(high)
    if not is_enough(best):
        found = ", ".join(f'"{name}": {float(_column_error(best, name, confidence)):.6g}' for name in wanted)
        what = f"no epsilon is enough for this accuracy: the largest is {MAX_EPSILON}"
        raise Refused(ErrorCode.PARAMETER, what, fix=f"ask for no less than within={{{found}}}")
    while low < high:
        middle = (low + high) // 2
        plan = plan_at(middle)
        if is_enough(plan):
            high, best = middle, plan
        else:
            low = middle + 1
    return best


def _epsilon_at_step(step: int) -> Fraction:
    """The epsilons of four digits, counted from the least: 1.000e-6, 1.001e-6, ..., 9.999e-6, 1.000e-5, ..., 1000."""
    decade, digits = divmod(step, 9 * _THOUSAND)
    return MIN_EPSILON * Fraction(10) ** decade * Fraction(_THOUSAND + digits, _THOUSAND)


def _parse_widths(within: Mapping[str, Any]) -> dict[str, Fraction]:
    if not isinstance(within, Mapping) or not within:
        raise ParameterError("within", "does not name a column", fix='within={"n": 50}')
    wanted = {str(name): to_rational("within", width) for name, width in within.items()}
    for name, width in wanted.items():
        if width <= 0:
            raise ParameterError("within", f"{name} must be above zero", fix='within={"n": 50}')
    return wanted


def _column_error(plan: Plan, name: str, confidence: Fraction) -> Fraction:
    """How far a column may be off; refused where that depends on the data."""
    found = next((result for result in plan.recipe.results if result.name.lower() == name.lower()), None)
    if found is None:
        names = ", ".join(result.name for result in plan.recipe.results)
        raise ParameterError("within", f"there is no column {name!r}", fix=f"the columns are {names}")
    value = plan.recipe.values[found.scalar.index] if isinstance(found.scalar, ReleasedValue) else None
    error = None if value is None else value.half_width(plan.recipe.parts, confidence)
    if error is None:
        raise Refused(
            ErrorCode.PARAMETER,
            f"the error of {name} depends on the data, so no epsilon can be found for it",
            fix="name a COUNT or SUM column; explain shows the error of others for several numbers of rows",
        )
    return error
