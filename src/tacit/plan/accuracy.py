"""The privacy loss of an accuracy: the least epsilon at which counts and sums are as close as the question wants them.

Their noise does not depend on the data, so its size is known beforehand. Where a clip is chosen from the data, the
noise that is allowed is known, and what it costs follows from the clip (`plan/clip_plans.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import bind_question
from tacit.plan.clip_plans import plan_clip_choice
from tacit.plan.column_error import WantedAccuracy
from tacit.plan.compound import is_compound
from tacit.plan.flatten import flatten_query
from tacit.plan.least_epsilon import find_least_epsilon
from tacit.plan.plan import MAX_EPSILON, Plan
from tacit.policy.model import Policy
from tacit.query.nodes import Query


def plan_within(query: Query, policy: Policy, within: Mapping[str, Any], confidence: Fraction) -> Plan:
    """The cheapest plan whose named columns are within so much of the bounded value, at this confidence.

    Prices of four digits are searched. More epsilon never means more noise, so the least that is enough is found by
    halving, and the next one below it is not enough. Where units are clipped, it is the first of two steps.
    """
    wanted = WantedAccuracy.parse(within, confidence)
    query = flatten_query(query)
    if is_compound(query, policy):
        what = "no epsilon is found by the accuracy of a question made of several"
        raise Refused(ErrorCode.PARAMETER, what, at=query.at, fix="give epsilon, and look at what explain says")
    bound, delta = bind_question(query, policy.without_l2_clips), policy.question_delta
    largest = bound.plan(MAX_EPSILON, delta)
    if largest.recipe.clipping is not None:
        if largest.shown is not None:
            what = "no epsilon is found by the accuracy of clipped sums over private keys: the clip depends on the keys"
            fix = "give epsilon=1 in place of within, or group by a column with declared values"
            raise Refused(ErrorCode.PARAMETER, what, at=query.at, fix=fix)
        return plan_clip_choice(largest, wanted, policy.digest)
    found = find_least_epsilon(lambda epsilon: wanted.is_met(bound.plan(epsilon, delta).recipe))
    if found is None:
        what = f"no epsilon is enough for this accuracy: the largest is {MAX_EPSILON}"
        fix = f"ask for no less than within={{{wanted.describe_errors(largest.recipe)}}}"
        raise Refused(ErrorCode.PARAMETER, what, fix=fix)
    return bound.plan(found, delta)
