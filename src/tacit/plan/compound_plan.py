"""The plan of a question made of several (`plan/compound.py`): the plans of its members, and the program over them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.accounting.filters import GRAINS_PER_EPSILON, compute_charge
from tacit.answers.choosing_values import ChoosingValue
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.answers.post_process import answer_columns
from tacit.answers.post_processing_plan import CompoundPostProcessingPlan, ProgramResult, PublicTable
from tacit.answers.program import Nothing, ProgramColumn
from tacit.arithmetic import Number
from tacit.canonical import canonical_text
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import bind_bounded, plan_for, read_epsilon
from tacit.plan.canonical import PLANS
from tacit.plan.compound import compound, is_compound, plan_either, read_joins
from tacit.plan.flatten import aggregates, flatten_query
from tacit.plan.plan import Plan
from tacit.plan.probe import find_empty_clause, list_row_columns
from tacit.plan.public_tables import PublicRead
from tacit.plan.rewrite import count_values
from tacit.policy.model import ROW_UNIT, Policy
from tacit.privacy.loss import Compose, Loss
from tacit.query.nodes import Literal, Query, scanned_tables
from tacit.query.types import Type


@dataclass(frozen=True)
class CompoundPlan:
    """What is released for a question made of several, or of none, what all of it costs, and how to read it.

    Members are in the order of their keys. A question of one member is, for the ledger, that member: what is computed
    from a release that was paid for is free. `public` are the rows of public tables that are read besides, each time
    that it is asked. `empty` are the columns, as they would be with rows, of a question that has none whatever the data
    holds; nothing is released for it.
    """

    members: tuple[Plan, ...]
    recipe: CompoundPostProcessingPlan
    unit: str
    values: tuple[ChoosingValue, ...] = ()  # which fill the placeholders of members
    public: tuple[PublicRead, ...] = ()
    most_rows: int = 0  # of the answer, from public numbers
    empty: tuple[AnswerColumn, ...] | None = None

    @property
    def key(self) -> str:
        """The name of the private half: equal for questions that differ only in post-processing."""
        if len(self.members) == 1:
            return self.members[0].key
        named = tuple((result.name, str(result.type)) for result in self.recipe.results) if not self.members else ()
        read = ("public", tuple(read.rows for read in self.public)) if self.public and not self.members else ()
        text = canonical_text(("compound", tuple(member.key for member in self.members), named, *read), PLANS)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def loss(self) -> Loss:
        """The privacy loss of all members."""
        return self.members[0].loss if len(self.members) == 1 else Compose(tuple(m.loss for m in self.members))

    @property
    def delta(self) -> Fraction:
        """What Gaussian noise of all members may be charged by basic composition."""
        return sum((member.delta for member in self.members), Fraction(0))

    @property
    def epsilon_delta(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta) of the answer by itself."""
        found = compute_charge(self.loss, self.delta)
        return Fraction(found.epsilon, GRAINS_PER_EPSILON), Fraction(found.delta_a, 10**18)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that the engine reads."""
        read = (scanned_tables(read.rows) for read in self.public)
        return frozenset[str]().union(*(member.tables for member in self.members), *read)

    @property
    def cells(self) -> int:
        """The most values that are released, from public numbers; what is read of public tables has its own limit."""
        return sum(member.cells for member in self.members)


AnyPlan = Plan | CompoundPlan


def require_one(plan: AnyPlan) -> Plan:
    """The plan of a question that is one query over rows; Refused where it is made of several."""
    if isinstance(plan, CompoundPlan):
        what, fix = "a question made of several has no one release", "take each of them by itself"
        raise Refused(ErrorCode.UNSUPPORTED, what, fix=fix)
    if plan.recipe.clipping is not None:
        what, fix = "a question whose clip is chosen from the data is not tried", "declare max_rows as a number"
        raise Refused(ErrorCode.UNSUPPORTED, what, fix=fix)
    if plan.bounds is not None:
        what, fix = "a question whose bounds are chosen from the data is not tried", "declare lower and upper"
        raise Refused(ErrorCode.UNSUPPORTED, what, fix=fix)
    if plan.listed is not None:
        what, fix = "a question whose keys are rows of a public table is not tried", "write JOIN, or ask it"
        raise Refused(ErrorCode.UNSUPPORTED, what, fix=fix)
    return plan


def plan_question(query: Query, policy: Policy, epsilon: Number | None, *, rounded: bool = True) -> AnyPlan:
    """The plan of a question at an epsilon, or Refused."""
    nothing = plan_nothing(query, policy)
    if nothing is not None:
        return nothing
    query = read_joins(count_values(flatten_query(query), policy), policy)
    return plan_either(query, policy, lambda read: _plan_query(read, policy, epsilon, rounded=rounded))


def _plan_query(query: Query, policy: Policy, epsilon: Number | None, *, rounded: bool) -> AnyPlan:
    if not is_compound(query, policy):
        return plan_for(query, policy, epsilon, rounded=rounded)
    found = compound(query, policy)
    share = len(found.members) or 1
    price, delta = read_epsilon(epsilon, share, rounded=rounded), policy.question_delta / share
    plans = [member.plan(price, delta) for member in found.members]
    if found.values:
        plans = [_note_choice(plan) for plan in plans]
    ordered = sorted({plan.key: plan for plan in plans}.values(), key=lambda plan: plan.key)
    places = tuple(next(i for i, known in enumerate(ordered) if known.key == plan.key) for plan in plans)
    results = tuple(ProgramResult(column.name, column.column, column.type or Type.INT) for column in found.columns)
    public = tuple(PublicTable(read.types) for read in found.public)
    recipes = tuple(plan.recipe for plan in ordered)
    recipe = CompoundPostProcessingPlan(recipes, places, found.node, results, public, found.notes)
    unit = ordered[0].unit if ordered else ROW_UNIT
    return CompoundPlan(tuple(ordered), recipe, unit, found.values, found.public, found.rows)


def _note_choice(plan: Plan) -> Plan:
    """The plan of a member, which says so where released values choose its rows."""
    if not plan.placeholders:
        return plan
    note = "Rows are chosen by a value that is released first; error bars are given that value."
    return replace(plan, recipe=replace(plan.recipe, notes=(*plan.recipe.notes, note)))


def plan_nothing(query: Query, policy: Policy) -> CompoundPlan | None:
    """The plan of a question that has no rows whatever the data holds; None where it may have some.

    Nothing is released, and nothing is charged. The columns are found by the plan of the question with its rows, which
    reads nothing; where that is refused because it would show rows, they are the columns of these.
    """
    shown = find_empty_clause(query)
    if shown is None:
        return None
    columns = _list_columns(shown, policy)
    named = tuple(ProgramColumn(f"c{place}", Literal(None), column.type) for place, column in enumerate(columns))
    results = tuple(ProgramResult(c.name, here.name, c.type) for c, here in zip(columns, named, strict=True))
    recipe = CompoundPostProcessingPlan((), (), Nothing(named), results)
    return CompoundPlan((), recipe, ROW_UNIT, empty=columns)


def _list_columns(query: Query, policy: Policy) -> tuple[AnswerColumn, ...]:
    """The columns of a question, whether or not it may be answered with its rows."""
    try:
        plan = plan_question(query, policy, 1)
    except Refused as error:
        while (inner := find_empty_clause(query)) is not None:
            query = inner
        query = count_values(flatten_query(query), policy)
        if aggregates(query):
            return _list_bound_columns(query, policy, error)
        try:
            return list_row_columns(query, policy)
        except Refused as other:
            raise other if error.code is ErrorCode.RAW_COLUMN else error from None
    return answer_columns(plan.recipe) if isinstance(plan, Plan) or plan.empty is None else plan.empty


def _list_bound_columns(query: Query, policy: Policy, error: Refused) -> tuple[AnswerColumn, ...]:
    """The columns of aggregates, where only what they would cost is refused, as for want of a delta."""
    try:
        results = bind_bounded(query, policy).recipe.results
    except Refused:
        raise error from None
    return tuple(AnswerColumn(each.name, each.type, IntervalKind.NONE, each.many) for each in results)
