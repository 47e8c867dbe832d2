"""The curator over HTTP: a question is a POST, the answer JSON, CSV, an Arrow stream or text, the key a bearer token.

curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
     -d '{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5}' http://127.0.0.1:8080/v1/ask
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Body, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from tacit import __version__
from tacit.client import arrow_stream
from tacit.curator.all_budgets import AllBudgets
from tacit.curator.curator import Curator
from tacit.curator.fit import Hold
from tacit.errors import ErrorCode, Refused, TacitError
from tacit.serve.addresses import Network
from tacit.serve.authentication import Authenticator, Role
from tacit.serve.budget_alerts import measure_budgets
from tacit.serve.console import routes
from tacit.serve.console.requests import Console, is_page
from tacit.serve.fit_requests import fit_for_analyst
from tacit.serve.key_authentication import Caller, KeyCheckPool
from tacit.serve.metrics import Metrics
from tacit.serve.middleware import Application, RequestMiddleware
from tacit.serve.models import ErrorResponse, FitBody, QuestionBody
from tacit.serve.receipts import load_receipt
from tacit.serve.repeat_fast_path import RepeatFastPath
from tacit.serve.response_models import (
    AnswerBody,
    BudgetBody,
    ExplanationBody,
    FitResultBody,
    SchemaBody,
    StoredReceiptBody,
)
from tacit.serve.responses import (
    CSV,
    JSON,
    TEXT,
    answer_response,
    encode_json,
    error_response,
    error_to_dict,
    internal_error,
    negotiate_media_type,
)
from tacit.serve.service import CuratorService

if TYPE_CHECKING:
    from tacit.serve.openid.sign_in import OpenIdSignIn

_ASK = "/v1/ask"
_STATUS_DESCRIPTIONS = {
    400: "The request or the SQL cannot be read.",
    401: "No API key, or one that is not valid.",
    402: "The budget does not admit the privacy loss.",
    403: "Not for this role.",
    404: "Not there.",
    406: "No media type of Accept is offered.",
    409: "The Idempotency-Key belongs to another question.",
    422: "The question was understood and is not answered; nothing was charged but what the text names.",
    423: "A table is locked since a question failed, until the owner unlocks it; nothing was charged.",
    429: "Too often.",
    503: "Busy, stopping, or the ledger cannot be used.",
}


def build_app(
    service: CuratorService,
    authenticator: Authenticator,
    *,
    metrics: Metrics | None = None,
    secure: bool = False,
    proxies: Sequence[Network] = (),
    openid: OpenIdSignIn | None = None,
    passwords: bool = True,
) -> Application:
    """The application with its pages, behind its guard. `secure` says that callers come over TLS.

    The console is opened by `openid`, where there is one, and by passwords unless these are switched off.
    """
    api = build_api(service, authenticator, metrics := metrics or Metrics())
    api.state.console = routes.add_console(
        api, service, authenticator, secure=secure, openid=openid, passwords=passwords
    )
    route = next(each for each in api.routes if getattr(each, "path", "") == _ASK)
    return RequestMiddleware(
        RepeatFastPath(api, service, authenticator, metrics, path=_ASK, route=route),
        metrics,
        secure=secure,
        proxies=proxies,
    )


def build_api(service: CuratorService, authenticator: Authenticator, metrics: Metrics) -> FastAPI:
    """The routes, for which others may add pages. They are only ever served behind the guard."""
    api = FastAPI(
        title="Tacit",
        version=__version__,
        description="Differentially private answers to ordinary SQL.",
        docs_url=None,  # these load scripts from elsewhere
        redoc_url=None,
    )
    api.state.service, api.state.authenticator, api.state.metrics = service, authenticator, metrics
    api.state.checkers = KeyCheckPool(authenticator)
    api.exception_handler(TacitError)(_handle_tacit_error)
    api.exception_handler(RequestValidationError)(_handle_validation_error)
    api.exception_handler(HTTPException)(_handle_http_error)
    api.exception_handler(Exception)(_handle_bug)

    def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
        return {status: {"model": ErrorResponse, "description": _STATUS_DESCRIPTIONS[status]} for status in statuses}

    refusals = errors(*(status for status in _STATUS_DESCRIPTIONS if status != 404))
    media: dict[str, Any] = {kind: {} for kind in (CSV, arrow_stream.ARROW_STREAM, TEXT)}
    answered: dict[int | str, dict[str, Any]] = {200: {"model": AnswerBody, "content": media}}

    def list_responses(body: type[BaseModel], *statuses: int) -> dict[int | str, dict[str, Any]]:
        return {200: {"model": body}, **errors(*statuses)}

    api.post(_ASK, responses={**answered, **refusals}, tags=["questions"])(ask)
    api.post(
        "/v1/explain", responses=list_responses(ExplanationBody, 400, 401, 403, 422, 429, 503), tags=["questions"]
    )(explain)
    api.post("/v1/fit", responses={200: {"model": FitResultBody}, **refusals}, tags=["questions"])(fit)
    api.get("/v1/schema", responses=list_responses(SchemaBody, 401, 429, 503), tags=["questions"])(schema)
    api.get("/v1/budget", responses=list_responses(BudgetBody, 400, 401, 403, 429, 503), tags=["questions"])(budget)
    api.get(
        "/v1/receipts/{entry}", responses=list_responses(StoredReceiptBody, 400, 401, 404, 429, 503), tags=["questions"]
    )(receipt)
    api.get("/healthz", response_class=PlainTextResponse, tags=["operation"])(healthz)
    api.get("/metrics", response_class=PlainTextResponse, responses=errors(401, 403, 429, 503), tags=["operation"])(
        get_metrics
    )
    return api


IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        description="Your own name for this question: sent again under it, it is one question, charged once.",
        max_length=200,
    ),
]
Accept = Annotated[str, Header(alias="Accept", include_in_schema=False)]


async def ask(
    request: Request,
    caller: Caller,
    form: Annotated[QuestionBody, Body()],
    name: IdempotencyKey = "",
    accept: Accept = "",
) -> Response:
    """Ask a question and pay for it. The same question again is free."""
    media = _negotiate(accept)  # before anything is paid
    answer = await _service(request).ask(caller.name, form.question(request=name))
    return await answer_response(answer, media, partial(_service(request).write, caller.name))


async def explain(request: Request, caller: Caller, form: Annotated[QuestionBody, Body()]) -> Response:
    """What a question would cost and how accurate it would be. Free: no data is touched."""
    found = await _service(request).explain(caller.name, form.question())
    return _json_response({**found.to_dict(), "text": str(found)})


async def fit(
    request: Request, caller: Caller, form: Annotated[FitBody, Body()], name: IdempotencyKey = ""
) -> Response:
    """Fit a model and pay for it. The same fit again is free. `tacit.connect` makes an estimator of what comes back."""
    service = _service(request)

    def work(curator: Curator, hold: Hold) -> dict[str, Any]:
        return fit_for_analyst(curator, caller.name, form, name, service.fit_rows, hold)

    return _json_response(await service.fit(caller.name, work))


async def schema(request: Request, caller: Caller) -> Response:
    """What you may ask about: tables, columns, bounds and keys."""
    service = _service(request)

    def look() -> dict[str, Any]:
        found = service.schema(caller.name if caller.role is Role.ANALYST else None)
        released = {} if found.profile is None else {"released_profile": json.loads(found.profile.stored)}
        return {**found.to_dict(), **released, "text": str(found)}

    return _json_response(await service.look(caller.name, look))


async def budget(
    request: Request,
    caller: Caller,
    analyst: Annotated[str, Query(description="Whose; owners and auditors may name anyone.", max_length=200)] = "",
) -> Response:
    """What is spent and what is left."""
    if analyst not in {"", caller.name} and caller.role is Role.ANALYST:
        raise Refused(ErrorCode.FORBIDDEN, "the budgets of others are not for analysts", fix="leave the name out")
    service, whose = _service(request), analyst or caller.name
    opened = service.curator.analyst(whose)
    found = await service.look(caller.name, lambda: opened.budget)
    return _json_response(
        {**found.to_dict(), "remaining": found.remaining, "grains": found.to_grains(), "text": str(found)}
    )


async def receipt(
    request: Request, caller: Caller, entry: Annotated[int, Path(ge=1, le=2**63 - 1, description="As on the answer.")]
) -> Response:
    """The receipt of an answer again, signed. Analysts see their own."""
    curator = _service(request).curator
    whose = caller.name if caller.role is Role.ANALYST else None
    return _json_response(await _service(request).look(caller.name, lambda: load_receipt(curator, entry, whose)))


async def healthz() -> str:
    """Whether the server answers at all."""
    return "ok\n"


async def get_metrics(request: Request, caller: Caller) -> str:
    """Counts for Prometheus; for owners and auditors. No value of a question or an answer is in them."""
    if caller.role is Role.ANALYST:
        raise Refused(ErrorCode.FORBIDDEN, "metrics are for owners and auditors", fix="ask the owner")
    service, gauges = _service(request), {}

    def look() -> dict[str, float]:
        curator = service.curator
        budgets = AllBudgets.of(curator.policy, curator.ledger)
        return {"tables_locked": len(curator.ledger.locks()), **measure_budgets(budgets)}

    with suppress(TacitError):  # the other counts are there all the same
        gauges = await service.look(caller.name, look)
    text: str = request.app.state.metrics.text(seats_taken=service.in_use, **gauges)
    return text


def _service(request: Request) -> CuratorService:
    service: CuratorService = request.app.state.service
    return service


def _negotiate(accept: str) -> str:
    try:
        return negotiate_media_type(accept)
    except Refused as error:
        raise HTTPException(406, error.fix) from None


def _json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode_json(value), status, headers, media_type=JSON)


async def _handle_tacit_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TacitError)
    request.app.state.metrics.error(str(error.code))
    return error_response(error)


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    """What FastAPI found wrong: which field, and never what stood in it."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if first["loc"][:1] == ("body",) and kind != JSON and not kind.endswith("+json"):
        what = "the body is not sent as JSON"  # curl -d says that it is a form
        return await _handle_tacit_error(request, Refused(ErrorCode.PROTOCOL, what, fix=f"send Content-Type: {JSON}"))
    place = ".".join(str(part) for part in first["loc"] if isinstance(part, str))[:100]
    fix = 'send JSON such as {"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.5}'
    return await _handle_tacit_error(
        request, Refused(ErrorCode.PROTOCOL, f"{place}: {first['type'].replace('_', ' ')}", fix=fix)
    )


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        problem = Refused(ErrorCode.NOT_FOUND, "there is no such address", fix="see /openapi.json")
    elif error.status_code == 406:
        problem = Refused(ErrorCode.PROTOCOL, "no media type of Accept is offered", fix=str(error.detail))
    elif error.status_code == 405:
        problem = Refused(ErrorCode.PROTOCOL, "this address has another method", fix="see /openapi.json")
    else:
        problem = Refused(ErrorCode.PROTOCOL, "the request cannot be read", fix="see /openapi.json")
    request.app.state.metrics.error(str(problem.code))
    return _json_response(error_to_dict(problem), error.status_code, dict(error.headers or {}))


async def _handle_bug(request: Request, error: Exception) -> Response:
    """What nothing else handles: a page for the console, JSON for all others. The guard writes the log line."""
    problem = internal_error()
    request.app.state.metrics.error(str(problem.code))
    console: Console | None = getattr(request.app.state, "console", None)
    if console is not None and is_page(request):
        return console.problem(request, problem)
    return error_response(problem)
