"""The pages and their addresses: signing in and out, and what each address is answered by."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.errors import ErrorCode, Refused, TacitError
from tacit.serve.authentication import Authenticator
from tacit.serve.console import learn_pages, owner_pages, question_pages, session_pages
from tacit.serve.console.page_files import send_static
from tacit.serve.console.requests import (
    BASE,
    Console,
    Endpoint,
    Handler,
    PageRequest,
    check_origin,
    client_host,
    read_form,
    require_sign_in,
)
from tacit.serve.console.view_models import view_error
from tacit.serve.responses import http_status
from tacit.serve.service import CuratorService

if TYPE_CHECKING:
    from fastapi import FastAPI

_SIGN_IN_COOKIE = "tacit-visit"  # the cookie of someone who is about to sign in


def add_console(
    app: FastAPI, service: CuratorService, authenticator: Authenticator, *, secure: bool = False
) -> Console:
    """Add the console to an application. `secure` says that callers come over TLS."""
    console = Console(service, authenticator, secure=secure)
    app.router.routes.extend(_routes(console))
    return console


def _routes(console: Console) -> list[Route]:
    def page(
        path: str, handler: Handler, methods: str = "GET", *, readers: bool = False, owners: bool = False
    ) -> Route:
        return _route(BASE + path, require_sign_in(console, handler, readers=readers, owners=owners), methods)

    return [
        _route("/", _redirect_to_console, "GET"),
        _route(f"{BASE}/static/{{name}}", _static(console), "GET"),
        _route(f"{BASE}/sign-in", _sign_in(console), "GET POST"),
        page("/sign-out", _sign_out, "POST"),
        page("", _redirect_home),
        page("/", _redirect_home),
        page("/ask", question_pages.ask, "GET POST"),
        page("/price", question_pages.show_estimate, "POST"),
        page("/answers/{entry:int}.{form}", question_pages.download),
        page("/answers/{entry:int}", question_pages.show_answer),
        page("/receipts/{entry:int}.json", question_pages.receipt),
        page("/budget", question_pages.budget),
        page("/owner", owner_pages.show_owner_page, readers=True),
        page("/owner/verify", owner_pages.verify_ledger, "POST", readers=True),
        page("/owner/sessions/end", session_pages.end_session, "POST", owners=True),
        page("/owner/sessions/end-others", session_pages.end_other_sessions, "POST", owners=True),
        page("/owner/registry.json", owner_pages.download_deployment, readers=True),
        page("/learn", learn_pages.show_learn_page),
        page("/learn/game", learn_pages.play_game, "POST"),
        page("/learn/attack", learn_pages.show_attack, "POST"),
        page("/{rest:path}", _not_found, "GET POST"),
    ]


def _route(path: str, endpoint: Endpoint, methods: str) -> Route:
    async def handle(request: Request) -> Response:
        request.scope["route"] = route  # for counts and logs
        return await endpoint(request)

    route = Route(path, handle, methods=methods.split(), include_in_schema=False)
    return route


async def _redirect_to_console(request: Request) -> Response:
    return RedirectResponse(BASE, 307)


async def _redirect_home(visit: PageRequest) -> Response:
    return RedirectResponse(f"{BASE}/{'ask' if visit.asks else 'owner' if visit.reads else 'learn'}", 303)


async def _not_found(visit: PageRequest) -> Response:
    raise Refused(ErrorCode.NOT_FOUND, "there is no such page", fix="go back to the first one")


def _static(console: Console) -> Endpoint:
    """The style, the scripts and their licenses."""

    async def endpoint(request: Request) -> Response:
        return send_static(console.static, request.path_params["name"])

    return endpoint


def _sign_in(console: Console) -> Endpoint:
    """The form, and what becomes of it. A wrong name and a wrong password are told in the same words."""

    async def endpoint(request: Request) -> Response:
        if request.method != "POST":
            if console.session_of(request) is not None:
                return RedirectResponse(BASE, 303)
            return _sign_in_page(console, request)
        name = ""
        try:
            form = await read_form(request)
            check_origin(request)
            name = form.get("name", "")[:60]
            stamp = console.stamp(request.cookies.get(_SIGN_IN_COOKIE, ""))
            if _SIGN_IN_COOKIE not in request.cookies or not hmac.compare_digest(
                stamp.encode(), form.get("csrf", "").encode()
            ):
                raise Refused(
                    ErrorCode.FORBIDDEN, "this form has gone stale", fix="sign in again; cookies must be allowed"
                )
            address = client_host(request)
            proof = console.proof(form.get("name", ""))  # before the check: a password may be changed while it runs
            person = await console.check(form.get("name", ""), form.get("password", ""), address)
            if person is None:
                fix = "check both; the owner can make a new password"
                raise Refused(ErrorCode.AUTHENTICATION, "the name or the password is wrong", fix=fix)
        except TacitError as error:
            request.app.state.metrics.error(str(error.code))
            return _sign_in_page(console, request, error, name)
        request.state.user = person.name
        console.sessions.close(request.cookies.get(console.cookie, ""))
        response = RedirectResponse(BASE, 303)
        console.set_cookie(response, console.cookie, console.sessions.open(person.name, proof, address))
        response.delete_cookie(_SIGN_IN_COOKIE, path=BASE)
        return response

    return endpoint


def _sign_in_page(console: Console, request: Request, error: TacitError | None = None, name: str = "") -> Response:
    """The form, with a cookie and the token that belongs to it. Two windows share a cookie, so both forms are good."""
    drawn = request.cookies.get(_SIGN_IN_COOKIE, "") or secrets.token_urlsafe(24)
    problem = view_error(error) if error else None
    status = http_status(error) if error else 200
    response = console.page("sign_in.html", status, csrf=console.stamp(drawn), problem=problem, name=name, visit=None)
    if _SIGN_IN_COOKIE not in request.cookies:
        response.set_cookie(_SIGN_IN_COOKIE, drawn, path=BASE, secure=console.secure, httponly=True, samesite="strict")
    return response


async def _sign_out(visit: PageRequest) -> Response:
    console = visit.console
    console.sessions.close(visit.request.cookies.get(console.cookie, ""))
    response = RedirectResponse(f"{BASE}/sign-in", 303)
    response.delete_cookie(console.cookie, path="/", secure=console.secure, httponly=True, samesite="strict")
    return response
