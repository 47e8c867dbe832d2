"""The owner's page: the policy and what it promises, every budget, the ledger and its verification, the registry."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from tacit.curator.curator import Curator, books_of
from tacit.curator.view import spent_of
from tacit.errors import LedgerError
from tacit.ledger.entries import ALL
from tacit.ledger.history import History
from tacit.ledger.report import deployment
from tacit.ledger.verify import Report, verify
from tacit.ledger.witness import Witness
from tacit.policy.check import decimal_text, remarks
from tacit.policy.promise import overspent, promise
from tacit.serve.console import standings, views
from tacit.serve.console.views import refused
from tacit.serve.console.web import Visit
from tacit.serve.replies import JSON, as_json

_SHOWN = 5000  # entries of a ledger whose registry entry is worked out for the page; beyond, only to download
_PROBLEMS = 50  # of a damaged ledger that a page shows


async def owner(visit: Visit) -> Response:
    """All of it, unverified."""
    return await _page(visit, None)


async def verification(visit: Visit) -> Response:
    """Check every entry of the ledger, from the first one. Others are served meanwhile."""
    curator = visit.console.desk.curator
    async with visit.console.long():
        report = await visit.console.desk.look(visit.who, lambda: _verified(curator))
    if visit.part:
        return visit.page("verification.html", report=report, problems=report.problems[:_PROBLEMS])
    return await _page(visit, report)


async def registry(visit: Visit) -> Response:
    """The deployment as an entry for a public registry. Of the questions it tells only how many."""
    curator = visit.console.desk.curator
    async with visit.console.long():
        found = await visit.console.desk.look(visit.who, lambda: _deployment(curator))
    headers = {"content-disposition": 'attachment; filename="deployment.json"'}
    return Response(as_json(found), media_type=JSON, headers=headers)


async def _page(visit: Visit, report: Report | None) -> Response:
    curator = visit.console.desk.curator
    policy = curator.policy

    def look() -> dict[str, Any]:
        ledger = curator.ledger
        whole = standings.account(curator, "All together", ALL, ledger.overall())
        newest = standings.history(curator, None)
        small = not newest or newest[0].entry <= _SHOWN
        spent = spent_of(policy, ledger)
        return {
            "promise": promise(policy, spent),
            "remarks": (*overspent(policy, spent), *remarks(policy)),
            "whole": whole,
            "balances": [whole.balance, *(standings.balance(a.name, ledger.standing(a.name)) for a in policy.analysts)],
            "history": newest,
            "head": ledger.head(),
            "deployment": json.dumps(_deployment(curator), indent=2, ensure_ascii=False) if small else "",
        }

    try:
        async with visit.console.long():
            found = await visit.console.desk.look(visit.who, look)
    except LedgerError as error:  # a damaged ledger is what this page must still be there for
        unread = {"whole": None, "balances": (), "history": (), "head": "", "deployment": "", "problem": refused(error)}
        found = {"promise": promise(policy), "remarks": remarks(policy), **unread}
    facts = [
        ("Epsilon, over all analysts together", decimal_text(policy.budget.epsilon)),
        ("Delta", decimal_text(policy.budget.delta)),
        ("Neighbors", str(policy.neighbors)),
        ("Engine", policy.engine),
        ("Epoch", str(policy.epoch)),
    ]
    return visit.page(
        "owner.html",
        facts=facts,
        tables=views.schema(policy),
        report=report,
        problems=report.problems[:_PROBLEMS] if report is not None else (),
        **found,
    )


def _verified(curator: Curator) -> Report:
    """The ledger's report, read beside the one that charges, so that nobody waits for it."""
    books = books_of(curator.policy)
    with History(books.store) as history:
        return verify(history, Witness(books.witness))


def _deployment(curator: Curator) -> dict[str, Any]:
    policy = curator.policy
    with History(books_of(policy).store) as history:
        return deployment(history, policy.budget.epsilon, policy.budget.delta)
