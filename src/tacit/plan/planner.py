"""From a question to its plan, for everyone who needs one: asking, explaining, pricing, auditing.

A plan is a function of the question and the policy, so one that was made before serves again: a repeat costs no
planning, and a client that describes a question before it asks it plans once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

from tacit.accounting.filters import is_whole
from tacit.aggregates.registry import read_question
from tacit.arithmetic import to_rational
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.plan.accuracy import plan_within
from tacit.plan.bind_question import bind_reading, read_epsilon
from tacit.plan.compound_plan import AnyPlan, plan_nothing, plan_question
from tacit.plan.plan import Plan
from tacit.plan.public_tables import PublicRead
from tacit.plan.question import Question
from tacit.plan.reading import read_as_written
from tacit.plan.rewrite import has_subqueries
from tacit.plan.suggestions import drop_broken_suggestion
from tacit.policy.model import Policy
from tacit.query.nodes import Query

KEY_VERSION = 2
"""Raised where a version of Tacit gives any question another key: new ledgers hold no keys from before."""

_MOST = 500  # plans that are kept
_LONGEST = 5_000  # characters of a question whose plan is kept


class Plans(NamedTuple):
    """The plan of a question, and those of earlier versions that have other keys, where they are asked for."""

    plan: AnyPlan
    former: tuple[AnyPlan, ...] = ()


def make_plans(question: Question, policy: Policy, most_cells: int | None = None, has_former: bool = True) -> Plans:
    """Plan a question under a policy, or raise Refused. No data is touched.

    A question of more than `most_cells` values is refused: how many there are is a function of question and policy.
    `has_former` says whether the plans of earlier versions are asked for. A refusal suggests no question that would be
    refused in turn.
    """
    try:
        return _make_plans(question, policy, most_cells, has_former)
    except Refused as refusal:
        drop_broken_suggestion(
            refusal, question.sql, lambda sql: plan_question(_read(sql, question, policy), policy, 1)
        )
        raise


def _read(sql: str, question: Question, policy: Policy) -> Query:
    """A text as a question of the same dialect."""
    return read_question(sql, policy.today, question.dialect_under(policy.dialect))


def _make_plans(question: Question, policy: Policy, most_cells: int | None, has_former: bool) -> Plans:
    query = _read(question.sql, question, policy)
    nothing = plan_nothing(query, policy) if question.within is not None else None
    if nothing is not None:
        plan: AnyPlan = nothing
    elif question.within is not None:
        plan = plan_within(query, policy, question.within, question.level)  # searched among whole grains
    else:
        plan = plan_question(query, policy, question.epsilon)
    former = _make_former(question, query, policy, plan) if has_former and nothing is None else ()
    if most_cells is not None and plan.cells > most_cells:
        what = f"the answer would have up to {plan.cells:,} cells, groups by columns; {most_cells:,} is the most"
        fix = "ask for fewer columns at a time, or group by fewer or coarser keys"
        raise Refused(ErrorCode.TOO_LARGE, what, at=query.at, fix=fix)
    return Plans(_without_reading(plan), tuple(_without_reading(each) for each in former))


def _make_former(question: Question, query: Query, policy: Policy, plan: AnyPlan) -> tuple[AnyPlan, ...]:
    """The plans of earlier versions that have other keys: those with the grids of now, and with coarser ones."""
    coarse, within = policy.without_fine_grids, question.within
    if within is None:
        rounded = _plan_otherwise(query, coarse, question.epsilon, plan)
    else:
        rounded = _plan_before(lambda: plan_within(query, coarse, within, question.level), plan)
    former = _make_others(question, query, policy, plan) + rounded
    for each in rounded:
        former += _make_others(question, query, coarse, each)
    return former


def _make_others(question: Question, query: Query, policy: Policy, plan: AnyPlan) -> tuple[AnyPlan, ...]:
    """The plans of earlier versions under one rule of rounding."""
    if question.within is not None:
        if not lists_combinations(plan):
            return ()
        within, dependent = question.within, policy.without_dependent_keys
        return _plan_before(lambda: plan_within(query, dependent, within, question.level), plan)
    former: tuple[AnyPlan, ...] = ()
    before = policy.without_key_weights
    if may_clip_l2(plan):
        former = _plan_otherwise(query, policy.without_l2_clips, question.epsilon, plan)
    if weighs_keys(plan):
        former += _plan_otherwise(query, before, question.epsilon, plan)
    if isinstance(plan, Plan):
        former += _former_plans(query, before, question.epsilon, plan)
    if lists_combinations(plan):
        former += _plan_otherwise(query, policy.without_dependent_keys, question.epsilon, plan)
    if policy.lists_joined_keys and lists_keys(plan):
        for version in (policy.without_l2_clips, before):
            former += _plan_otherwise(query, version.without_joined_keys, question.epsilon, plan)
    return former


def _without_reading(plan: AnyPlan) -> AnyPlan:
    return replace(plan, reading=None) if isinstance(plan, Plan) else plan


def _former_plans(query: Query, policy: Policy, epsilon: Any, plan: Plan) -> tuple[AnyPlan, ...]:
    """The plans of earlier versions: as the text is written, and before that with epsilons that are no whole grains.

    Before there was another form than the text's, subqueries stood in FROM alone.
    """
    if has_subqueries(query):
        return ()
    assert plan.reading is not None
    is_new = is_whole(to_rational("epsilon", epsilon))
    try:
        reading = read_as_written(query, policy, plan.reading)
        if is_new and reading == plan.reading:
            return ()
        bound = bind_reading(reading, policy)
        prices = [read_epsilon(epsilon, rounded=rounded) for rounded in ((True,) if is_new else (True, False))]
        found = [bound.plan(price, policy.question_delta) for price in prices]
    except Refused:  # it was not answered then
        return ()
    return tuple(each for each in found if each.key != plan.key)


def lists_keys(plan: AnyPlan) -> bool:
    """Whether keys of a plan are read from public tables."""
    return any(member.listed is not None for member in plan.members)


def lists_combinations(plan: AnyPlan) -> bool:
    """Whether a plan may list other combinations of its keys than earlier versions did."""
    return any(member.listed is not None or member.recipe.combinations is not None for member in plan.members)


def weighs_keys(plan: AnyPlan) -> bool:
    """Whether private keys of a plan are selected by weight."""
    shown = (member.shown for member in plan.members if member.shown is not None)
    return any(isinstance(each.mechanism, WeightedGaussianSelection) for each in shown)


def may_clip_l2(plan: AnyPlan) -> bool:
    """Whether a plan may clip the L2 norm of what units add."""
    clippings = (member.recipe.clipping for member in plan.members)
    return any(clipping is not None and clipping.mechanism.delta > 0 for clipping in clippings)


def _plan_otherwise(query: Query, policy: Policy, epsilon: Any, plan: AnyPlan) -> tuple[AnyPlan, ...]:
    """The plan of earlier versions, which selected keys of joined public tables, none by weight, and clipped no L2."""
    return _plan_before(lambda: plan_question(query, policy, epsilon), plan)


def _plan_before(make: Callable[[], AnyPlan], plan: AnyPlan) -> tuple[AnyPlan, ...]:
    try:
        found = make()
    except Refused:  # it was not answered then
        return ()
    return () if found.key == plan.key else (found,)


class Planner:
    """Plans questions under one policy, and keeps the plans made last. Threads may share it.

    `knows_only` says whether a ledger knows the first of two keys and not the second: a question that it knows from
    before epsilons were rounded stays that question. It is None where no ledger knows one from before. `can_list` says
    whether the keys that public tables have are few enough to be listed; where they are not, those that occur are
    selected. `most_cells` is the most values that a question may have. A refusal is not kept.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        knows_only: Callable[[str, str], bool] | None = None,
        can_list: Callable[[PublicRead], bool] | None = None,
        most_cells: int | None = None,
        make: Callable[[Question, Policy, int | None, bool], Plans] = make_plans,
    ) -> None:
        self.policy = policy
        self._knows_only = knows_only
        self._can_list = can_list
        self._most_cells = most_cells
        self._make = make
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Plans] = OrderedDict()

    def plan(self, question: Question, analyst: str | None = None) -> AnyPlan:
        """Return the plan of a question of an analyst's, or raise Refused; of nobody's in particular where None."""
        policy = self.policy if analyst is None else self.policy.asked_by(analyst)
        plan, former = self._find(question, policy)
        if self._can_list is not None and not all(
            self._can_list(member.listed) for member in plan.members if member.listed is not None
        ):
            plan, former = self._find(question, policy.without_joined_keys)
        if self._knows_only is not None:
            for each in former:
                if self._knows_only(each.key, plan.key):
                    return each
        return plan

    def _find(self, question: Question, policy: Policy) -> Plans:
        depends_on = (question.key, policy.has_delta, policy.lists_joined_keys, policy.access)
        key = None if question.key is None or len(question.sql) > _LONGEST else depends_on
        has_former = self._knows_only is not None
        if key is None:
            return self._make(question, policy, self._most_cells, has_former)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        found = self._make(question, policy, self._most_cells, has_former)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
