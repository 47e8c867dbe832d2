"""The owner's page: the policy and what it promises, every budget, the ledger and its verification, the registry."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from tacit.arithmetic import format_decimal
from tacit.curator.all_budgets import load_spent
from tacit.curator.curator import Curator
from tacit.curator.resources import ledger_files
from tacit.curator.table_status import list_lock_remarks
from tacit.errors import LedgerError
from tacit.ledger.entries import ALL_ANALYSTS
from tacit.ledger.export import describe_deployment
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import VerificationReport, verify
from tacit.ledger.witness import Witness
from tacit.policy.check import check_policy
from tacit.policy.promise import describe_guarantee, find_overspent, promised_budget
from tacit.serve.console import budget_history, view_models
from tacit.serve.console.requests import PageRequest
from tacit.serve.console.session_pages import list_sessions
from tacit.serve.console.view_models import view_error
from tacit.serve.responses import JSON, encode_json

_SHOWN = 5000  # entries of a ledger whose registry entry is worked out for the page; beyond, only to download
_PROBLEMS = 50  # of a damaged ledger that a page shows


async def show_owner_page(visit: PageRequest) -> Response:
    """All of it, unverified."""
    return await _page(visit, None)


async def verify_ledger(visit: PageRequest) -> Response:
    """Check every entry of the ledger, from the first one. Others are served meanwhile."""
    curator = visit.console.service.curator
    async with visit.console.reading.place(visit.user):
        report = await visit.console.service.look(visit.user, lambda: _verify(curator))
    if visit.part:
        return visit.page("verification.html", report=report, problems=report.problems[:_PROBLEMS])
    return await _page(visit, report)


async def download_deployment(visit: PageRequest) -> Response:
    """The deployment as an entry for a public registry. Of the questions it tells only how many."""
    curator = visit.console.service.curator
    async with visit.console.reading.place(visit.user):
        found = await visit.console.service.look(visit.user, lambda: _describe_deployment(curator))
    headers = {"content-disposition": 'attachment; filename="deployment.json"'}
    return Response(encode_json(found), media_type=JSON, headers=headers)


async def _page(visit: PageRequest, report: VerificationReport | None) -> Response:
    curator = visit.console.service.curator
    policy = curator.policy

    def look() -> dict[str, Any]:
        ledger = curator.ledger
        whole = budget_history.make_budget_panel(curator, "All together", ALL_ANALYSTS, ledger.overall())
        newest = budget_history.load_history(curator, None)
        small = not newest or newest[0].entry <= _SHOWN
        spent = load_spent(policy, ledger)
        return {
            "promise": describe_guarantee(policy, spent),
            "remarks": (
                *list_lock_remarks(policy, ledger),
                *find_overspent(policy, spent),
                *check_policy(policy),
            ),
            "whole": whole,
            "balances": [
                whole.balance,
                *(budget_history.summarize_budget(a.name, ledger.standing(a.name)) for a in policy.analysts),
            ],
            "history": newest,
            "head": ledger.head(),
            "deployment": json.dumps(_describe_deployment(curator), indent=2, ensure_ascii=False) if small else "",
        }

    try:
        async with visit.console.reading.place(visit.user):
            found = await visit.console.service.look(visit.user, look)
    except LedgerError as error:  # a damaged ledger is what this page must still be there for
        unread = {
            "whole": None,
            "balances": (),
            "history": (),
            "head": "",
            "deployment": "",
            "problem": view_error(error),
        }
        found = {"promise": describe_guarantee(policy), "remarks": check_policy(policy), **unread}
    facts = [
        ("Epsilon, over all analysts together", format_decimal(policy.budget.epsilon)),
        ("Delta", format_decimal(policy.budget.delta)),
        ("Neighbors", str(policy.neighbors)),
        ("Engine", policy.engine),
        ("Epoch", str(policy.epoch)),
    ]
    return visit.page(
        "owner.html",
        facts=facts,
        tables=view_models.view_schema(policy),
        report=report,
        problems=report.problems[:_PROBLEMS] if report is not None else (),
        sessions=list_sessions(visit.console, visit.session) if visit.owns else (),
        ended=None,
        **found,
    )


def _verify(curator: Curator) -> VerificationReport:
    """The ledger's report, read beside the one that charges, so that nobody waits for it."""
    books = ledger_files(curator.policy)
    with LedgerReader(books.store) as history:
        return verify(history, Witness(books.witness))


def _describe_deployment(curator: Curator) -> dict[str, Any]:
    policy = curator.policy
    with LedgerReader(ledger_files(policy).store) as history:
        promised = promised_budget(policy, load_spent(policy, history))
        return describe_deployment(history, promised.epsilon, promised.delta)
