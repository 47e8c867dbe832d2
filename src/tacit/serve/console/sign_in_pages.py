"""Signing in with a name and a password, and signing out."""

from __future__ import annotations

import hmac
import secrets

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.errors import ErrorCode, Refused, TacitError
from tacit.serve.console.requests import (
    BASE,
    Console,
    Endpoint,
    PageRequest,
    check_origin,
    client_host,
    read_form,
)
from tacit.serve.console.sessions import SignInMethod
from tacit.serve.console.view_models import view_error
from tacit.serve.responses import http_status

_SIGN_IN_COOKIE = "tacit-visit"  # the cookie of someone who is about to sign in
_SIGNED_OUT = "signed-out"  # the query of the form after a session of an identity provider was ended


def sign_in(console: Console) -> Endpoint:
    """The form, and what becomes of it. A wrong name and a wrong password are told in the same words."""

    async def endpoint(request: Request) -> Response:
        if request.method != "POST":
            if console.session_of(request) is not None:
                return RedirectResponse(BASE, 303)
            return make_sign_in_page(console, request)
        name = ""
        try:
            form = await read_form(request)
            check_origin(request)
            if not console.passwords:
                what = "passwords do not open this console"
                raise Refused(ErrorCode.FORBIDDEN, what, fix="sign in with the identity provider")
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
            return make_sign_in_page(console, request, error, name)
        request.state.user = person.name
        console.sessions.close(request.cookies.get(console.cookie, ""))
        response = RedirectResponse(BASE, 303)
        console.set_cookie(response, console.cookie, console.sessions.open(person.name, proof, address))
        response.delete_cookie(_SIGN_IN_COOKIE, path=BASE)
        return response

    return endpoint


def make_sign_in_page(console: Console, request: Request, error: TacitError | None = None, name: str = "") -> Response:
    """The form, with a cookie and the token that belongs to it. Two windows share a cookie, so both forms are good."""
    drawn = request.cookies.get(_SIGN_IN_COOKIE, "") or secrets.token_urlsafe(24)
    openid = console.openid
    signed_out = _SIGNED_OUT in request.query_params and error is None
    response = console.page(
        "sign_in.html",
        http_status(error) if error else 200,
        csrf=console.stamp(drawn),
        problem=view_error(error) if error else None,
        name=name,
        visit=None,
        passwords=console.passwords,
        openid_host=openid.configuration.host if openid else "",
        to=request.query_params.get("to", "") if error is None else "",
        sign_out_address=openid.provider.find_sign_out_address() if openid and signed_out else "",
    )
    if _SIGN_IN_COOKIE not in request.cookies:
        response.set_cookie(_SIGN_IN_COOKIE, drawn, path=BASE, secure=console.secure, httponly=True, samesite="strict")
    return response


async def sign_out(visit: PageRequest) -> Response:
    """End the session. That of the provider goes on: the next page says how to end it too."""
    console = visit.console
    console.sessions.close(visit.request.cookies.get(console.cookie, ""))
    query = f"?{_SIGNED_OUT}=" if visit.session.method is SignInMethod.OPENID else ""
    response = RedirectResponse(f"{BASE}/sign-in{query}", 303)
    response.delete_cookie(console.cookie, path="/", secure=console.secure, httponly=True, samesite="strict")
    return response
