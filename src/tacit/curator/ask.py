"""The story of a question, on one screen.

**Theorem.** Whatever questions are asked, by whom and in what order, each chosen after seeing all answers before it,
the answers together are (epsilon, delta)-DP for the policy's unit and relation, with the policy's epsilon and delta.
Proof: an answer is a function of its release, which has the plan's privacy loss (`plan/plan.py`); the loss is on the
ledger before data is touched and is never given back, and the ledger admits losses by filters that are valid for
adaptive questions (`accounting/filters.py`). A refusal, a plan and its loss depend on the question, the policy and the
ledger. That a question failed is no answer: over a copy no row decides it, and over live tables `ledger/table_locks.py`
bounds what it tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.accounting.filters import BudgetCharge
from tacit.accounting.receipt import ClipStep
from tacit.answers.answer import Answer
from tacit.answers.choosing_values import releases_read
from tacit.answers.post_process import post_process
from tacit.answers.post_processing_plan import AnyPostProcessingPlan, CompoundPostProcessingPlan
from tacit.answers.read_value import read_value
from tacit.answers.stored import Release, pack_all, read_clip
from tacit.curator.admission import find_refusal, is_first_step_named
from tacit.curator.locked_tables import hide_locked
from tacit.engines.deadline import time_limit
from tacit.engines.one_run import OneRun
from tacit.errors import Failed, ParameterError, Refused
from tacit.plan.clip_plans import ClipChoicePlan, FixedClipPlan, format_fraction, refuse_second_step
from tacit.plan.plan import Plan
from tacit.sampling.bits import refresh_bits

if TYPE_CHECKING:
    from tacit.accounting.receipt import Receipt
    from tacit.curator.protocols import ChargedPlan, OpenCurator
    from tacit.engines.base import Engine
    from tacit.ledger.entries import Reservation
    from tacit.plan.choose_bounds import BoundsChoice
    from tacit.plan.compound_plan import AnyPlan
    from tacit.plan.public_tables import PublicRead
    from tacit.plan.question import Question
    from tacit.query.nodes import LiteralValue
    from tacit.sampling.bits import Bits


_PUBLIC_SECONDS = 10.0  # that reading public tables may take


def ask(question: Question, analyst: str, curator: OpenCurator) -> Answer:
    """Return the private answer to a question, with its error bars and its receipt; or raise Refused, at no cost."""
    plan = curator.planner.plan(question, analyst)  # bounds, sensitivity, noise, what it costs
    plan = settle_clip(question, plan, analyst, curator)  # where what it costs follows from a clip
    return answer(question, plan, analyst, curator)


def settle_clip(
    question: Question,
    plan: AnyPlan,
    analyst: str,
    curator: OpenCurator,
    run: Callable[[AnyPlan], bytes] | None = None,
) -> AnyPlan:
    """Return the plan to answer by: the plan itself, or where it chooses a clip first, what follows from the clip.

    The clip is a question with its own charge, key and stored answer, so each step is charged once: a repeat is free,
    and after a crash between the two the second goes on from the stored clip. What refuses the second gives back
    nothing of the first, so where not even a clip of one row would fit, it is refused before anything is charged, and
    so is a name of the request that either could not have. What came of the first under that name stands, a failure
    too, and is not looked for in the budget again.
    """
    if not isinstance(plan, ClipChoicePlan):
        return plan
    ledger, policy = curator.ledger, curator.policy.asked_by(analyst)
    standings = (ledger.standing(analyst), ledger.overall())
    if not is_first_step_named(plan, analyst, question.request, ledger):
        refused = find_refusal(plan, analyst, *standings, ledger, curator.live_tables, policy, is_asked=True)
        if refused is not None:
            raise refused
    run = run or (lambda each: release(each, curator.engine, curator.bits))
    read_public(plan, curator.engine)  # too much of it is refused before anything is charged
    claim = settle(plan, lambda: run(plan), analyst, curator, question.request, is_first_step=True)
    clip = read_clip(claim.stored)
    second = plan.price_clip(clip)
    whole = plan.epsilon + second.epsilon_delta[0]
    note = (
        f"The privacy loss is epsilon {format_fraction(whole)} in all: {format_fraction(plan.epsilon)} of it chose the "
        f"clip, which is entry {claim.receipt.entry} of the ledger."
    )
    first = ClipStep(claim.receipt.entry, claim.receipt.charged, claim.receipt.cost)
    return replace(second, recipe=replace(second.recipe, notes=(*second.recipe.notes, note)), first=first)


def answer(
    question: Question,
    plan: AnyPlan,
    analyst: str,
    curator: OpenCurator,
    run: Callable[[AnyPlan], bytes] | None = None,
    show: Callable[..., Answer] = post_process,
) -> Answer:
    """Return the answer to a question that is planned, and whose clip is settled where it has one.

    `run` is how the plan is released, here and without a limit by default; `show` is `post_process`, wherever it runs.
    """
    if not isinstance(plan, FixedClipPlan):
        return _answer(question, plan, analyst, curator, run, show)
    try:
        return _answer(question, plan, analyst, curator, run, show)
    except (Refused, ParameterError) as refused:
        raise refuse_second_step(plan, refused) from None


def _answer(
    question: Question,
    plan: AnyPlan,
    analyst: str,
    curator: OpenCurator,
    run: Callable[[AnyPlan], bytes] | None,
    show: Callable[..., Answer],
) -> Answer:
    level = question.level  # an error of the question, before anything is charged
    run = run or (lambda each: release(each, curator.engine, curator.bits))
    recipe = read_public(plan, curator.engine)  # what everyone knows; too much of it is refused before it is charged
    claim = settle(plan, lambda: run(plan), analyst, curator, question.request)
    assert claim.stored is not None
    return show(claim.stored, recipe, add_first_step(claim.receipt, plan), level)  # what is stored is what is shown


def add_first_step(receipt: Receipt, plan: AnyPlan, *, is_repeat: bool = False) -> Receipt:
    """The receipt with the charge of the clip that the plan follows from, if it does; a repeat charges nothing."""
    if not isinstance(plan, FixedClipPlan) or plan.first is None:
        return receipt
    return replace(receipt, clip=replace(plan.first, charged=BudgetCharge.zero()) if is_repeat else plan.first)


def can_list(read: PublicRead, engine: Engine) -> bool:
    """Whether keys that are read from public tables are few enough to be listed: a function of these tables."""
    try:
        with time_limit(_PUBLIC_SECONDS):
            read.read(engine)
    except Refused:
        return False
    return True


def read_public(plan: AnyPlan, engine: Engine) -> AnyPostProcessingPlan:
    """Return how to finish a plan, with the rows of the public tables that it reads; or raise Refused, at no cost.

    Public rows are a function of the question, the policy and public tables (`plan/public_tables.py`).
    """
    recipe = plan.recipe
    with time_limit(_PUBLIC_SECONDS):
        for member in plan.members:
            if member.listed is not None:
                member.listed.read(engine)  # read again when it is released; here only for the limit
        if isinstance(recipe, CompoundPostProcessingPlan) and recipe.public:
            tables = zip(recipe.public, plan.public, strict=True)
            recipe = replace(recipe, public=tuple(replace(table, rows=read.read(engine)) for table, read in tables))
    return recipe


def release(plan: AnyPlan, engine: Engine, bits: Bits, seconds: float | None = None) -> bytes:
    """Return the noisy values of one pass over the data for each member of the plan, ready to be stored.

    `seconds` limits the engine's work. At the limit the question fails like any other: that it was reached may depend
    on rows, so the charge stays, and the question is never taken up again at that charge.
    """
    engine = OneRun(engine)
    if plan.values:
        return _release_in_turn(plan, engine, bits, seconds)
    if isinstance(plan, Plan) and plan.bounds is not None:
        return _release_bounded(plan, plan.bounds, engine, bits, seconds)
    with time_limit(seconds):
        # integers, which never leave this function; public keys alone need no data
        exact = [member.compute(engine) for member in plan.members]
        listed = [None if member.listed is None else member.listed.read(engine) for member in plan.members]
        fresh = refresh_bits(bits)
        each = zip(plan.members, exact, listed, strict=True)
        return pack_all([member.release(found, fresh, keys, engine) for member, found, keys in each])


def _release_bounded(plan: Plan, bounds: BoundsChoice, engine: Engine, bits: Bits, seconds: float | None) -> bytes:
    """Return what `release` does, of a plan whose bounds are chosen first (`plan/choose_bounds.py` has the proof)."""
    fresh = refresh_bits(bits)
    with time_limit(seconds):
        known, sizes = bounds.choose(engine, fresh)
        keys = None if plan.listed is None else plan.listed.read(engine)
        found = plan.release(plan.compute(engine, known), fresh, keys, engine, known)
        return pack_all([replace(found, sizes=sizes)])


def _release_in_turn(plan: AnyPlan, engine: Engine, bits: Bits, seconds: float | None) -> bytes:
    """Return what `release` does, of a plan in which released values choose the rows of members that wait for them.

    Which members wait for which follows from the plan. `answers/choosing_values.py` has the proof that the loss is that
    of the plan.
    """
    assert isinstance(plan.recipe, CompoundPostProcessingPlan)
    fresh = refresh_bits(bits)
    waiting = {place: member.placeholders for place, member in enumerate(plan.members)}
    releases: dict[int, Release] = {}
    known: dict[str, LiteralValue] = {}
    with time_limit(seconds):
        while waiting:
            ready = [place for place, names in waiting.items() if names <= known.keys()]
            assert ready  # a value is computed from members that were bound before it
            for place in ready:
                member = plan.members[place]
                keys = None if member.listed is None else member.listed.read(engine)
                releases[place] = member.release(member.compute(engine, known), fresh, keys, engine, known)
                del waiting[place]
            for value in plan.values:
                needed = {plan.recipe.places[index] for index in releases_read(value.program)}
                if value.name not in known and needed <= releases.keys():
                    known[value.name] = read_value(value, releases, plan.recipe)
    return pack_all([releases[place] for place in sorted(releases)])


def settle(
    plan: ChargedPlan,
    run: Callable[[], bytes],
    analyst: str,
    curator: OpenCurator,
    request: str,
    *,
    is_first_step: bool = False,
) -> Reservation:
    """Charge a plan, run it once, and return the claim with what is stored; or raise Refused, at no cost."""
    ledger = curator.ledger
    live = plan.tables & curator.live_tables
    with hide_locked(live, curator.policy.asked_by(analyst)):
        claim = ledger.reserve(  # durable, or Refused
            analyst,
            plan.loss,
            plan.key,
            delta=plan.delta,
            request=request,
            is_first_step=is_first_step,
            tables=live,
        )
    if claim.stored is not None:  # a repeat: it is already there
        return claim
    with ledger.hold(claim):
        return ledger.commit(claim, _attempt(run, claim, curator))


def _attempt(run: Callable[[], bytes], claim: Reservation, curator: OpenCurator) -> bytes:
    """What a run released; or Failed, with no trace of the cause."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - whatever it was, an analyst learns only that it was
        cause = error
    stands = curator.note_failure(claim, cause)  # outside the handler: no error carries the cause as its context
    if stands is None:
        raise Failed
    return stands
