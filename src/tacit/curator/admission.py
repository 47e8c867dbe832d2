"""Whether the ledger would admit a question now. Nothing is written, and no data is touched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress

from tacit.accounting.filters import BudgetCharge, BudgetStatus, compute_charge
from tacit.answers.explanation import Explanation
from tacit.answers.stored import read_clip
from tacit.curator.locked_tables import hide_locked
from tacit.curator.protocols import ChargedPlan, OpenCurator
from tacit.errors import ErrorCode, Refused
from tacit.ledger.budget import BudgetLimits, admit
from tacit.ledger.entries import ChargeRequest, name_first_step
from tacit.ledger.ledger import Ledger, refuse_used_name
from tacit.ledger.reader import LedgerReader
from tacit.ledger.table_locks import TableLock, check_unlocked
from tacit.ledger.transaction import LedgerTransaction
from tacit.plan.clip_plans import ClipChoicePlan, FixedClipPlan, refuse_second_step
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.explain import explain
from tacit.plan.question import Question
from tacit.policy.model import Policy
from tacit.privacy.loss import encode


def find_refusal(
    plan: AnyPlan,
    analyst: str,
    own: BudgetStatus,
    shared: BudgetStatus,
    history: LedgerReader | None,
    live: frozenset[str] = frozenset(),
    policy: Policy | None = None,
    *,
    is_asked: bool = False,
) -> Refused | None:
    """The refusal that an analyst would get for asking a plan now; None where it is admitted or free.

    An answer that others have paid for is shown at the analyst's own charge alone, also over a locked table and where
    nothing is left of the overall budget. That counts only for a question that is asked (`is_asked`): an explanation
    is free, and is the same whether others have asked.

    `own` and `shared` are what the analyst and all of them have spent, and of which caps; `history` is the ledger, or
    None where there is none yet. `live` are the tables that can be locked; which of them is said where `policy`, as the
    analyst sees it, has no hidden ones. It is about now only: others may spend before the question is asked. Of a
    question whose clip is chosen first, what both steps cost for a clip of one row must fit.
    """
    if isinstance(plan, ClipChoicePlan):
        cost = compute_charge(plan.expected_loss)
        refused = _find_refusal(plan, cost, analyst, own, shared, history, live, policy, is_asked=is_asked)
        if refused is None or refused.code is not ErrorCode.BUDGET:
            return refused
        fix = f"{refused.fix}, in place of within" if "epsilon=" in refused.fix else refused.fix
        return Refused(refused.code, f"with a clip of one row, {refused.what}", fix=fix)
    cost = compute_charge(plan.loss, plan.delta)
    return _find_refusal(plan, cost, analyst, own, shared, history, live, policy, is_asked=is_asked)


def _find_refusal(
    plan: AnyPlan,
    cost: BudgetCharge,
    analyst: str,
    own: BudgetStatus,
    shared: BudgetStatus,
    history: LedgerReader | None,
    live: frozenset[str],
    policy: Policy | None,
    *,
    is_asked: bool,
) -> Refused | None:
    is_stored = False
    locks: dict[str, TableLock] = {}
    if history is not None:
        asked = ChargeRequest(analyst, (plan.key, encode(plan.loss)), compute_charge(plan.loss, plan.delta))
        with history.store.read() as session:
            book = LedgerTransaction(session)
            answer = book.stored_answer(asked.question)
            if answer is not None and book.payment(asked, answer) is not None:
                return None
            if book.open_claim(asked) is not None:
                return None
            answer = answer if is_asked else None
            locks = book.locks_of(plan.tables & live) if answer is None else {}
            is_stored = _is_stored(plan, answer, book)
    try:
        with nullcontext() if policy is None else hide_locked(plan.tables & live, policy):
            check_unlocked(locks, plan.tables & live)
        admit(cost, analyst, own, None if is_stored else shared)
    except Refused as refused:
        return Refused(refused.code, refused.what, fix=refused.fix)  # without the frames of its traceback
    return None


def _is_stored(plan: AnyPlan, answer: bytes | None, book: LedgerTransaction) -> bool:
    """Whether all of an answer is there; of a question whose clip is chosen first, the second step as well.

    A clip that others have paid for is read for that, and its value decides nothing: the second step that follows from
    it is there where anybody has asked for both, whatever the clip is.
    """
    if answer is None or not isinstance(plan, ClipChoicePlan):
        return answer is not None
    try:
        second = plan.price_clip(read_clip(answer))
    except Refused:
        return False
    return book.stored_answer((second.key, encode(second.loss))) is not None


def is_first_step_named(plan: AnyPlan, analyst: str, request: str, ledger: Ledger) -> bool:
    """Whether the first of two steps is known under the request's name, so that what came of it there stands.

    Raise Refused for a name that a step cannot have, and ParameterError for what is no name. One that is in use belongs
    to another question, unless this analyst has paid for the first step before.
    """
    asked = ledger.describe_request(analyst, plan.loss, plan.key, delta=plan.delta, request=request)
    if not request:
        return False
    with ledger.store.read() as session:
        book = LedgerTransaction(session)
        first = book.of_request(analyst, name_first_step(request))
        stored = book.stored_answer(asked.question)
        is_paid = stored is not None and book.payment(asked, stored) is not None
        is_used = book.of_request(analyst, request) is not None
    if (is_used and not is_paid) or (first is not None and first.question != asked.question):
        raise refuse_used_name(request)
    return first is not None


def find_second_step(plan: AnyPlan, analyst: str, history: LedgerReader | None) -> AnyPlan:
    """The plan that follows from a clip, where this analyst has paid for that; else the plan as it is.

    Without a charge of the analyst's own, the explanation is not that of the stored clip. That others have asked shows
    in no explanation. What it cost them is in the totals of all (`docs/guide/threat-model.md`).
    """
    if history is None or not isinstance(plan, ClipChoicePlan):
        return plan
    stored = find_paid_answer(plan, analyst, history)
    return plan if stored is None else plan.price_clip(read_clip(stored))


def find_paid_answer(plan: ChargedPlan, analyst: str, history: LedgerReader) -> bytes | None:
    """The stored answer that this analyst has paid for, which is theirs for nothing; None where there is none."""
    asked = ChargeRequest(analyst, (plan.key, encode(plan.loss)), compute_charge(plan.loss, plan.delta))
    return history.paid_answer(asked)


def explain_question(
    question: Question,
    plan: AnyPlan,
    analyst: str,
    curator: OpenCurator,
    tell: Callable[..., Explanation] = explain,
) -> Explanation:
    """What would be done, what it would cost, and why asking it would be refused now, if it would be.

    `tell` is `explain`, wherever it runs.
    """
    policy, ledger = curator.policy.asked_by(analyst), curator.ledger
    plan = find_second_step(plan, analyst, ledger)
    found, standings = tell(plan, policy, question.level), (ledger.standing(analyst), ledger.overall())
    refused = find_refusal(plan, analyst, *standings, ledger, curator.live_tables, policy)
    if refused is not None and isinstance(plan, FixedClipPlan):
        refused = refuse_second_step(plan, refused)
    return found.refused_by(refused)


def read_standings(
    limits: BudgetLimits, analyst: str, history: LedgerReader | None
) -> tuple[BudgetStatus, BudgetStatus]:
    """What an analyst and all of them have spent, under the caps that `limits` will set when the ledger is opened."""
    own, shared = BudgetCharge.zero(), BudgetCharge.zero()
    if history is not None:
        with suppress(Refused):  # an analyst whom the policy names only since the ledger was opened last
            own = history.standing(analyst).spent
        shared = history.overall().spent
    return BudgetStatus(own, limits.analysts[analyst].caps), BudgetStatus(shared, limits.overall)
