"""Asking: the form, the cost before it is charged, the answer, its downloads, and what is left."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from tacit.errors import ErrorCode, ParameterError, Refused, TacitError
from tacit.ledger.entries import ALL_ANALYSTS
from tacit.plan.question import Question
from tacit.serve.console import budget_history, estimate, view_models
from tacit.serve.console.requests import Handler, PageRequest, no_such_page
from tacit.serve.console.sessions import AskedQuestion
from tacit.serve.receipts import load_receipt
from tacit.serve.responses import CSV, JSON, encode_json, http_status, render_answer

__all__ = ["Handler", "ask", "budget", "download", "receipt", "show_answer", "show_estimate"]

CONFIDENCES = ("0.8", "0.9", "0.95", "0.99", "0.999")
_EPSILON, _CONFIDENCE = "0.1", "0.95"
_DECIMAL = re.compile(r"\d{0,9}\.?\d{1,12}", re.ASCII)
_ENTRY = re.compile(r"[0-9]{1,19}")
_LONGEST = 2000  # characters of a question in an address
_LONGEST_WITHIN = 500  # characters of an accuracy
_FORMS = {"csv": CSV, "json": JSON}


@dataclass(frozen=True)
class TypedQuestion:
    """What stands in the form. An accuracy, such as n=50, replaces the epsilon."""

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
            within = dict(_parse_width(part) for part in self.within.split(","))
            return Question(self.sql, within=within, confidence=confidence)
        if not _DECIMAL.fullmatch(self.epsilon):
            raise ParameterError("epsilon", "is not a number", fix="write it as 0.5, say")
        return Question(self.sql, Fraction(self.epsilon), confidence=confidence)


async def ask(visit: PageRequest) -> Response:
    """The form; or the answer to a question, which is paid for."""
    _require_analyst(visit)
    if visit.request.method != "POST":
        sql = visit.request.query_params.get("sql", "")[:_LONGEST]
        return await _page(visit, TypedQuestion(sql), priced=bool(sql))
    typed = _read_form(visit)
    try:
        answer = await visit.console.service.ask(visit.user, typed.question)
    except TacitError as error:
        visit.request.app.state.metrics.error(str(error.code))
        return await _page(visit, typed, error=error)
    asked = AskedQuestion(typed.sql, typed.epsilon, typed.confidence, answer, typed.within)
    visit.session.keep(asked)
    return await _page(visit, typed, asked=asked)


async def show_answer(visit: PageRequest) -> Response:
    """An answer of this session once more, with its question."""
    _require_analyst(visit)
    asked = _find_answer(visit)
    return await _page(visit, TypedQuestion(asked.sql, asked.epsilon, asked.confidence, asked.within), asked=asked)


async def show_estimate(visit: PageRequest) -> Response:
    """What a question would cost and how accurate it would be. Free."""
    _require_analyst(visit)
    typed = _read_form(visit)
    if not visit.part:
        return await _page(visit, typed, priced=True)
    return visit.page("price.html", **await _estimate(visit, typed))


async def download(visit: PageRequest) -> Response:
    """An answer as a file: CSV that no spreadsheet runs, or JSON."""
    media = _FORMS.get(visit.request.path_params["form"])
    if media is None:
        raise Refused(ErrorCode.NOT_FOUND, "there is no such file", fix="choose CSV or JSON")
    answer = _find_answer(visit).answer
    name = f"answer-{answer.receipt.entry}.{visit.request.path_params['form']}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    content = await visit.console.service.look(visit.user, lambda: render_answer(answer, media))
    return Response(content, media_type=media, headers=headers)


async def receipt(visit: PageRequest) -> Response:
    """A receipt from the ledger, signed. Analysts see their own."""
    curator, entry = visit.console.service.curator, _read_entry(visit)
    found = await visit.console.service.look(
        visit.user, lambda: load_receipt(curator, entry, None if visit.reads else visit.user)
    )
    headers = {"content-disposition": f'attachment; filename="receipt-{entry}.json"'}
    return Response(encode_json(found), media_type=JSON, headers=headers)


async def budget(visit: PageRequest) -> Response:
    """What is spent and what is left, over time: one's own, and that of all together."""
    curator = visit.console.service.curator

    def look() -> dict[str, Any]:
        found = []
        if visit.asks:
            own = curator.analyst(visit.user).budget
            month = f" in {own.month}" if own.month else ""
            found.append(budget_history.make_budget_panel(curator, f"Your budget{month}", visit.user, own.own))
        found.append(
            budget_history.make_budget_panel(curator, "All analysts together", ALL_ANALYSTS, curator.ledger.overall())
        )
        return {"budgets": found, "history": budget_history.load_history(curator, visit.user) if visit.asks else []}

    return visit.page(
        "budget.html", known=visit.session.newest_entries, **await visit.console.service.look(visit.user, look)
    )


async def _page(
    visit: PageRequest,
    typed: TypedQuestion,
    *,
    asked: AskedQuestion | None = None,
    error: TacitError | None = None,
    priced: bool = False,
) -> Response:
    """All of the page, or the parts of it that a question changes."""
    curator = visit.console.service.curator
    policy = curator.policy.asked_by(visit.user)

    def look() -> dict[str, Any]:
        return {
            "shown": view_models.view_answer(asked.answer) if asked is not None else None,
            "history": budget_history.load_history(curator, visit.user),
            "budget": budget_history.summarize_budget(
                "", estimate.find_binding_budget(curator.analyst(visit.user).budget)
            ),
            "tables": () if visit.part else view_models.view_schema(policy, curator.analyst(visit.user).schema.profile),
        }

    found = await visit.console.service.look(visit.user, look)
    if priced or (asked is not None and not visit.part):
        found |= await _estimate(visit, typed)
    else:
        found |= {"pricing": None, "doubt": None}
    return visit.page(
        "result.html" if visit.part else "ask.html",
        200 if error is None else http_status(error),
        {"HX-Trigger": "asked"} if visit.part else None,
        typed=typed,
        kept=visit.session.asked,
        known=visit.session.newest_entries,
        problem=view_models.view_error(error) if error is not None else None,
        confidences=CONFIDENCES,
        functions=view_models.FUNCTIONS,
        examples=() if visit.part else view_models.example_questions(policy),
        **found,
    )


async def _estimate(visit: PageRequest, typed: TypedQuestion) -> dict[str, Any]:
    """The cost of what is typed, or what is wrong with it."""
    if not typed.sql.strip():
        return {"pricing": None, "doubt": None}
    service = visit.console.service

    def look() -> estimate.QuestionEstimate:
        analyst = service.curator.analyst(visit.user)
        left, profile = analyst.budget, analyst.schema.profile
        return estimate.estimate_question(typed.question, left, service.planner, service.curator.ledger, profile)

    try:
        return {"pricing": await visit.console.service.look(visit.user, look), "doubt": None}
    except (Refused, ParameterError) as error:
        return {"pricing": None, "doubt": view_models.view_error(error)}


def _read_form(visit: PageRequest) -> TypedQuestion:
    form = visit.form
    sql = form.get("sql", "").replace("\r\n", "\n")
    epsilon, within = form.get("epsilon", "").strip()[:30], form.get("within", "").strip()[:_LONGEST_WITHIN]
    return TypedQuestion(sql, epsilon, form.get("confidence", _CONFIDENCE)[:10], within)


def _parse_width(part: str) -> tuple[str, Fraction]:
    """n=50 as a column and a width."""
    name, _, width = (each.strip() for each in part.partition("="))
    if not name or not _DECIMAL.fullmatch(width):
        raise ParameterError(
            "within", "is not a list of columns and widths", fix="write it as n=50, or n=50, total=1000"
        )
    return name.strip('"'), Fraction(width)


def _find_answer(visit: PageRequest) -> AskedQuestion:
    found = visit.session.asked.get(_read_entry(visit))
    if found is None:
        what = "this answer is not at hand any more"
        raise Refused(ErrorCode.NOT_FOUND, what, fix="ask the question again: a repeat is free")
    return found


def _read_entry(visit: PageRequest) -> int:
    """The entry of the ledger that the address names. Python reads no number of thousands of digits."""
    text = visit.request.path_params["entry"]
    if not _ENTRY.fullmatch(text):
        raise no_such_page()
    return int(text)


def _require_analyst(visit: PageRequest) -> None:
    if not visit.asks:
        what = f"{visit.user} has no budget of their own in the policy"
        raise Refused(ErrorCode.UNKNOWN_ANALYST, what, fix=f"sign in as an analyst, or add [analysts.{visit.user}]")
