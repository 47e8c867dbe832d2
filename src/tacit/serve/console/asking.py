"""Asking: the form, the price before it is paid, the answer, its downloads, and what is left."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from tacit.curator.view import Budget
from tacit.errors import Code, ParameterError, Refused, TacitError
from tacit.ledger.entries import ALL
from tacit.plan.question import Question
from tacit.serve.console import prices, standings, views
from tacit.serve.console.sessions import Asked
from tacit.serve.console.web import Handler, Visit
from tacit.serve.receipts import receipt_of
from tacit.serve.replies import CSV, JSON, as_json, body, status_of

__all__ = ["Handler", "again", "ask", "budget", "download", "price", "receipt"]

CONFIDENCES = ("0.8", "0.9", "0.95", "0.99", "0.999")
_EPSILON, _CONFIDENCE = "0.1", "0.95"
_DECIMAL = re.compile(r"\d{0,9}\.?\d{1,12}", re.ASCII)
_LONGEST = 2000  # characters of a question in an address
_LONGEST_WITHIN = 500  # characters of an accuracy
_FORMS = {"csv": CSV, "json": JSON}


@dataclass(frozen=True)
class Typed:
    """What stands in the form. An accuracy, such as n=50, replaces the price."""

    sql: str = ""
    epsilon: str = _EPSILON
    confidence: str = _CONFIDENCE
    within: str = ""

    @property
    def question(self) -> Question:
        """The question with its numbers; the confidence is one of those offered."""
        if self.confidence not in CONFIDENCES:
            raise ParameterError("confidence", "is none of those offered", fix="choose one from the list")
        confidence = Fraction(self.confidence)
        if self.within:
            within = dict(_width(part) for part in self.within.split(","))
            return Question(self.sql, within=within, confidence=confidence)
        if not _DECIMAL.fullmatch(self.epsilon):
            raise ParameterError("epsilon", "is no number", fix="write it as 0.5, say")
        return Question(self.sql, Fraction(self.epsilon), confidence=confidence)


async def ask(visit: Visit) -> Response:
    """The form; or the answer to a question, which is paid for."""
    _must_ask(visit)
    if visit.request.method != "POST":
        sql = visit.request.query_params.get("sql", "")[:_LONGEST]
        return await _page(visit, Typed(sql), priced=bool(sql))
    typed = _typed(visit)
    try:
        answer = await visit.console.desk.ask(visit.who, typed.question)
    except TacitError as error:
        visit.request.app.state.metrics.error(str(error.code))
        return await _page(visit, typed, error=error)
    asked = Asked(typed.sql, typed.epsilon, typed.confidence, answer, typed.within)
    visit.session.keep(asked)
    return await _page(visit, typed, asked=asked)


async def again(visit: Visit) -> Response:
    """An answer of this session once more, with its question."""
    _must_ask(visit)
    asked = _kept(visit)
    return await _page(visit, Typed(asked.sql, asked.epsilon, asked.confidence, asked.within), asked=asked)


async def price(visit: Visit) -> Response:
    """What a question would cost and how accurate it would be. Free."""
    _must_ask(visit)
    typed = _typed(visit)
    if not visit.part:
        return await _page(visit, typed, priced=True)
    return visit.page("price.html", **await _priced(visit, typed))


async def download(visit: Visit) -> Response:
    """An answer as a file: CSV that no spreadsheet runs, or JSON."""
    media = _FORMS.get(visit.request.path_params["form"])
    if media is None:
        raise Refused(Code.NOT_FOUND, "there is no such file", fix="choose CSV or JSON")
    answer = _kept(visit).answer
    name = f"answer-{answer.receipt.entry}.{visit.request.path_params['form']}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    content = await visit.console.desk.look(visit.who, lambda: body(answer, media))
    return Response(content, media_type=media, headers=headers)


async def receipt(visit: Visit) -> Response:
    """A receipt from the ledger, signed. Analysts see their own."""
    curator, entry = visit.console.desk.curator, visit.request.path_params["entry"]
    found = await visit.console.desk.look(
        visit.who, lambda: receipt_of(curator, entry, None if visit.reads else visit.who)
    )
    headers = {"content-disposition": f'attachment; filename="receipt-{entry}.json"'}
    return Response(as_json(found), media_type=JSON, headers=headers)


async def budget(visit: Visit) -> Response:
    """What is spent and what is left, over time: one's own, and that of all together."""
    curator = visit.console.desk.curator

    def look() -> dict[str, Any]:
        found = []
        if visit.asks:
            own = curator.analyst(visit.who).budget
            month = f" in {own.month}" if own.month else ""
            found.append(standings.account(curator, f"Your budget{month}", visit.who, own.own))
        found.append(standings.account(curator, "All analysts together", ALL, curator.ledger.overall()))
        return {"budgets": found, "history": standings.history(curator, visit.who) if visit.asks else []}

    return visit.page("budget.html", known=visit.session.known, **await visit.console.desk.look(visit.who, look))


async def _page(
    visit: Visit, typed: Typed, *, asked: Asked | None = None, error: TacitError | None = None, priced: bool = False
) -> Response:
    """All of the page, or the parts of it that a question changes."""
    curator = visit.console.desk.curator

    def look() -> dict[str, Any]:
        return {
            "shown": views.answered(asked.answer) if asked is not None else None,
            "history": standings.history(curator, visit.who),
            "budget": _binding(curator.analyst(visit.who).budget),
        }

    found = await visit.console.desk.look(visit.who, look)
    if priced or (asked is not None and not visit.part):
        found |= await _priced(visit, typed)
    else:
        found |= {"pricing": None, "doubt": None}
    return visit.page(
        "result.html" if visit.part else "ask.html",
        200 if error is None else status_of(error),
        {"HX-Trigger": "asked"} if visit.part else None,
        typed=typed,
        kept=visit.session.asked,
        known=visit.session.known,
        problem=views.refused(error) if error is not None else None,
        confidences=CONFIDENCES,
        tables=() if visit.part else views.schema(visit.console.desk.policy),
        examples=() if visit.part else views.examples(visit.console.desk.policy),
        **found,
    )


async def _priced(visit: Visit, typed: Typed) -> dict[str, Any]:
    """The price of what is typed, or what is wrong with it."""
    if not typed.sql.strip():
        return {"pricing": None, "doubt": None}
    desk = visit.console.desk

    def look() -> prices.Pricing:
        left = desk.curator.analyst(visit.who).budget
        return prices.pricing(typed.question, left, desk.planner, desk.curator.ledger)

    try:
        return {"pricing": await visit.console.desk.look(visit.who, look), "doubt": None}
    except (Refused, ParameterError) as error:
        return {"pricing": None, "doubt": views.refused(error)}


def _binding(found: Budget) -> standings.Balance:
    """What one more question may take: of one's own budget, or of all together where less is left of that."""
    return standings.balance("", min(found.own, found.overall, key=lambda standing: standing.remaining))


def _typed(visit: Visit) -> Typed:
    form = visit.form
    sql = form.get("sql", "").replace("\r\n", "\n")
    epsilon, within = form.get("epsilon", "").strip()[:30], form.get("within", "").strip()[:_LONGEST_WITHIN]
    return Typed(sql, epsilon, form.get("confidence", _CONFIDENCE)[:10], within)


def _width(part: str) -> tuple[str, Fraction]:
    """n=50 as a column and a width."""
    name, _, width = (each.strip() for each in part.partition("="))
    if not name or not _DECIMAL.fullmatch(width):
        raise ParameterError("within", "is no list of columns and widths", fix="write it as n=50, or n=50, total=1000")
    return name.strip('"'), Fraction(width)


def _kept(visit: Visit) -> Asked:
    found = visit.session.asked.get(visit.request.path_params["entry"])
    if found is None:
        what = "this answer is not at hand any more"
        raise Refused(Code.NOT_FOUND, what, fix="ask the question again: a repeat is free")
    return found


def _must_ask(visit: Visit) -> None:
    if not visit.asks:
        what = f"{visit.who} has no budget of their own in the policy"
        raise Refused(Code.UNKNOWN_ANALYST, what, fix=f"sign in as an analyst, or add [analysts.{visit.who}]")
