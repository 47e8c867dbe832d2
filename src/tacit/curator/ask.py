"""The story of a question, on one screen.

**Theorem.** Whatever questions are asked, by whom and in what order, each chosen after seeing all answers before it,
the answers together are (epsilon, delta)-DP for the policy's unit and relation, with the policy's epsilon and delta.
Proof: an answer is a function of its release, which has the plan's price (`plan/plan.py`); the price is on the ledger
before data is touched and is never given back, and the ledger admits prices by filters that are valid for adaptive
questions (`accounting/guard.py`). A refusal, a plan and a price depend on the question, the policy and the ledger.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.aggregates.registry import read_question
from tacit.answers.answer import Answer
from tacit.answers.finish import finish
from tacit.answers.stored import pack
from tacit.arithmetic import within
from tacit.engines.deadline import time_limit
from tacit.errors import Failed
from tacit.sampling.bits import refreshed

if TYPE_CHECKING:
    from tacit.curator.curator import Curator
    from tacit.ledger.entries import Claim
    from tacit.plan.accuracy import Price
    from tacit.plan.plan import Plan
    from tacit.query.nodes import Query


def ask(
    text: str,
    who: str,
    curator: Curator,
    price: Price,
    confidence: Any,
    request: str = "",
    seconds: float | None = None,
) -> Answer:
    """The private answer to a question, with its error bars and its receipt; or Refused, at no cost.

    `seconds` limits the engine's work. At the limit the question fails like any other: that it was reached may depend
    on rows, so the charge stays, and the question is never taken up again at that charge.
    """
    level = within("confidence", confidence, Fraction(1, 100), 1 - Fraction(1, 10**9))
    query = read_question(text)  # allow-listed SQL as our own nodes
    plan = plan_of(query, who, curator, price, level)  # bounds, sensitivity, noise, what it costs
    curator.check_data()  # that it is what was opened: nothing about its rows
    claim = curator.ledger.reserve(who, plan.loss, plan.key, delta=plan.delta, request=request)  # durable, or Refused
    if claim.stored is None:  # otherwise a repeat: it is already there
        with curator.ledger.held(claim):
            claim = curator.ledger.commit(claim, _release(plan, claim, curator, seconds))
    assert claim.stored is not None
    return finish(claim.stored, plan.recipe, claim.receipt, level)  # what is stored is what is shown


def plan_of(query: Query, who: str, curator: Curator, price: Price, confidence: Fraction) -> Plan:
    """The plan of a question. One that the ledger knows from before prices were rounded stays that question."""
    policy = curator.policy.asked_by(who)
    plan, former = price.plan(query, policy, confidence), price.former(query, policy)
    return former if former is not None and curator.ledger.knows_only(former.key, plan.key) else plan


def _release(plan: Plan, claim: Claim, curator: Curator, seconds: float | None) -> bytes:
    """The noisy values of one pass over the data, ready to be stored; or Failed, with no trace of the cause."""
    try:
        with time_limit(seconds):
            exact = curator.engine.run(plan.exact)  # integers, which never leave this function
        return pack(plan.release(exact, refreshed(curator.bits)))
    except Exception as error:  # noqa: BLE001 - whatever it was, an analyst learns only that it was
        cause = error
    stands = curator.note_failure(claim, cause)  # outside the handler: no error carries the cause as its context
    if stands is None:
        raise Failed
    return stands
