"""The pages and their addresses: signing in and out, and what each address is answered by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.serve.authentication import Authenticator
from tacit.serve.console import learn_pages, owner_pages, question_pages, session_pages, sign_in_pages
from tacit.serve.console.page_files import send_static
from tacit.serve.console.requests import (
    BASE,
    Console,
    Endpoint,
    Handler,
    PageRequest,
    no_such_page,
    require_sign_in,
)
from tacit.serve.openid.configuration import CALLBACK
from tacit.serve.service import CuratorService

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tacit.serve.openid.sign_in import OpenIdSignIn


def add_console(
    app: FastAPI,
    service: CuratorService,
    authenticator: Authenticator,
    *,
    secure: bool = False,
    openid: OpenIdSignIn | None = None,
    passwords: bool = True,
) -> Console:
    """Add the console to an application. `secure` says that callers come over TLS.

    People sign in with `openid`, where there is one, and with passwords unless these are switched off.
    """
    console = Console(service, authenticator, secure=secure, openid=openid, passwords=passwords)
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
        _route(f"{BASE}/sign-in", sign_in_pages.sign_in(console), "GET POST"),
        *_openid_routes(console),
        page("/sign-out", sign_in_pages.sign_out, "POST"),
        page("", _redirect_home),
        page("/", _redirect_home),
        page("/ask", question_pages.ask, "GET POST"),
        page("/price", question_pages.show_estimate, "POST"),
        page("/answers/{entry}.{form}", question_pages.download),
        page("/answers/{entry}", question_pages.show_answer),
        page("/receipts/{entry}.json", question_pages.receipt),
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


def _openid_routes(console: Console) -> list[Route]:
    openid = console.openid
    if openid is None:
        return []
    from tacit.serve.console import openid_pages  # it needs an extra of its own

    return [
        _route(f"{BASE}/oidc/start", openid_pages.begin_sign_in(console, openid), "GET"),
        _route(CALLBACK, openid_pages.finish_sign_in(console, openid), "GET"),
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
    raise no_such_page()


def _static(console: Console) -> Endpoint:
    """The style, the scripts and their licenses."""

    async def endpoint(request: Request) -> Response:
        return send_static(console.static, request.path_params["name"])

    return endpoint
