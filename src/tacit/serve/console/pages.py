"""The pages and their addresses: signing in and out, and what each address is answered by."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.errors import Code, Refused, TacitError
from tacit.serve.console import asking, learn, owner
from tacit.serve.console.views import refused
from tacit.serve.console.web import BASE, Console, Endpoint, Visit, check_origin, read_form, signed_in
from tacit.serve.desk import Desk
from tacit.serve.door import Door
from tacit.serve.replies import status_of

if TYPE_CHECKING:
    from fastapi import FastAPI

_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "LICENSE": "text/plain"}
_VISIT = "tacit-visit"  # the cookie of someone who is about to sign in


def mount(app: FastAPI, desk: Desk, door: Door, *, secure: bool = False) -> Console:
    """Add the console to an application. `secure` says that callers come over TLS."""
    console = Console(desk, door, secure=secure)
    app.router.routes.extend(_routes(console))
    return console


def _routes(console: Console) -> list[Route]:
    def page(path: str, handler: asking.Handler, methods: str = "GET", *, readers: bool = False) -> Route:
        return _route(BASE + path, signed_in(console, handler, readers=readers), methods)

    return [
        _route("/", _first, "GET"),
        _route(f"{BASE}/static/{{name}}", _static(console), "GET"),
        _route(f"{BASE}/sign-in", _sign_in(console), "GET POST"),
        page("/sign-out", _sign_out, "POST"),
        page("", _home),
        page("/", _home),
        page("/ask", asking.ask, "GET POST"),
        page("/price", asking.price, "POST"),
        page("/answers/{entry:int}.{form}", asking.download),
        page("/answers/{entry:int}", asking.again),
        page("/receipts/{entry:int}.json", asking.receipt),
        page("/budget", asking.budget),
        page("/owner", owner.owner, readers=True),
        page("/owner/verify", owner.verification, "POST", readers=True),
        page("/owner/registry.json", owner.registry, readers=True),
        page("/learn", learn.learn),
        page("/learn/game", learn.game, "POST"),
        page("/learn/attack", learn.attack, "POST"),
        page("/{rest:path}", _nowhere, "GET POST"),
    ]


def _route(path: str, endpoint: Endpoint, methods: str) -> Route:
    async def named(request: Request) -> Response:
        request.scope["route"] = route  # for counts and logs
        return await endpoint(request)

    route = Route(path, named, methods=methods.split(), include_in_schema=False)
    return route


async def _first(request: Request) -> Response:
    return RedirectResponse(BASE, 307)


async def _home(visit: Visit) -> Response:
    return RedirectResponse(f"{BASE}/{'ask' if visit.asks else 'owner' if visit.reads else 'learn'}", 303)


async def _nowhere(visit: Visit) -> Response:
    raise Refused(Code.NOT_FOUND, "there is no such page", fix="go back to the first one")


def _static(console: Console) -> Endpoint:
    """The style, the scripts and their licenses: a table of files, so no path leads elsewhere."""

    async def endpoint(request: Request) -> Response:
        name = request.path_params["name"]
        body = console.static.get(name)
        if body is None:
            return Response(status_code=404)
        kind = _KINDS.get(name.rpartition(".")[2], "application/octet-stream")
        return Response(body, media_type=kind, headers={"cache-control": "public, max-age=86400"})

    return endpoint


def _sign_in(console: Console) -> Endpoint:
    """The form, and what becomes of it. A wrong name and a wrong password are told in the same words."""

    async def endpoint(request: Request) -> Response:
        if request.method != "POST":
            if console.session_of(request) is not None:
                return RedirectResponse(BASE, 303)
            return _form(console, request)
        name = ""
        try:
            form = await read_form(request)
            check_origin(request)
            name = form.get("name", "")[:60]
            stamp = console.stamp(request.cookies.get(_VISIT, ""))
            if _VISIT not in request.cookies or not hmac.compare_digest(stamp.encode(), form.get("csrf", "").encode()):
                raise Refused(Code.FORBIDDEN, "this form has gone stale", fix="sign in again; cookies must be allowed")
            address = request.client.host if request.client else "-"
            proof = console.proof(form.get("name", ""))  # before the check: a password may be changed while it runs
            person = await console.check(form.get("name", ""), form.get("password", ""), address)
            if person is None:
                fix = "check both; the owner can make a new password"
                raise Refused(Code.AUTHENTICATION, "this name with this password lets nobody in", fix=fix)
        except TacitError as error:
            request.app.state.metrics.error(str(error.code))
            return _form(console, request, error, name)
        request.state.who = person.name
        console.sessions.close(request.cookies.get(console.cookie, ""))
        response = RedirectResponse(BASE, 303)
        console.set_cookie(response, console.cookie, console.sessions.open(person.name, proof))
        response.delete_cookie(_VISIT, path=BASE)
        return response

    return endpoint


def _form(console: Console, request: Request, error: TacitError | None = None, name: str = "") -> Response:
    """The form, with a cookie and the token that belongs to it. Two windows share a cookie, so both forms are good."""
    drawn = request.cookies.get(_VISIT, "") or secrets.token_urlsafe(24)
    problem = refused(error) if error else None
    status = status_of(error) if error else 200
    response = console.page("sign_in.html", status, csrf=console.stamp(drawn), problem=problem, name=name, visit=None)
    if _VISIT not in request.cookies:
        response.set_cookie(_VISIT, drawn, path=BASE, secure=console.secure, httponly=True, samesite="strict")
    return response


async def _sign_out(visit: Visit) -> Response:
    console = visit.console
    console.sessions.close(visit.request.cookies.get(console.cookie, ""))
    response = RedirectResponse(f"{BASE}/sign-in", 303)
    response.delete_cookie(console.cookie, path="/", secure=console.secure, httponly=True, samesite="strict")
    return response
