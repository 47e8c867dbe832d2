"""Signing in with an identity provider: the way there, and the way back.

**The way there is taken from here only.** A page elsewhere that leads to it gets the form in place of a sign-in.
**The way back is good for one browser, once.** It needs the cookie that the way there set, which other sites cannot
read, and the state that belongs to it; whatever comes of both together, the cookie goes. The session gets a new
identifier, so that nobody has chosen it before.
**A page elsewhere spoils nothing.** It can make a browser ask for the way back, but does not know the state. What comes
without cookie and state, or is no navigation, is refused before it is counted as a failure, and the cookie stays.
"""

from __future__ import annotations

import logging
import shlex

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.errors import ErrorCode, Refused, TacitError
from tacit.serve.authentication import User
from tacit.serve.console.requests import BASE, Console, Endpoint, client_host
from tacit.serve.console.sessions import SignInMethod
from tacit.serve.console.sign_in_pages import make_sign_in_page
from tacit.serve.console.view_models import view_error
from tacit.serve.openid.sign_in import OpenIdSignIn
from tacit.serve.openid.sign_in_flow import MAX_SECONDS, SignInFlow
from tacit.serve.responses import http_status

_log = logging.getLogger("tacit.serve")


def begin_sign_in(console: Console, openid: OpenIdSignIn) -> Endpoint:
    """Send a browser to the provider, with a cookie by which it is known when it comes back."""

    async def endpoint(request: Request) -> Response:
        if request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            return RedirectResponse(f"{BASE}/sign-in", 303)
        query = request.query_params
        try:
            place, flow = await openid.begin(query.get("to", ""), client_host(request), again="again" in query)
        except TacitError as error:
            request.app.state.metrics.error(str(error.code))
            return make_sign_in_page(console, request, error)
        response = RedirectResponse(place, 303)
        response.set_cookie(
            _cookie(console),
            flow.cookie,
            path="/",
            max_age=int(MAX_SECONDS),
            secure=console.secure,
            httponly=True,
            samesite="lax",  # the provider leads back here from another site
        )
        return response

    return endpoint


def finish_sign_in(console: Console, openid: OpenIdSignIn) -> Endpoint:
    """Open a session for whom the provider names, if the owner has linked them."""

    async def endpoint(request: Request) -> Response:
        address, flow = client_host(request), None
        try:
            flow = _take_flow(console, openid, request)
            # whose account it is, the check tells: until then each sign-in is one of its own
            async with console.authenticator.attempts.trying(f"\0{flow.cookie}", address) as tried:
                response = await _finish(console, openid, request, flow, address)
                if response.status_code == 200:
                    tried.record_success()
        except TacitError as error:
            request.app.state.metrics.error(str(error.code))
            response = make_sign_in_page(console, request, error)
        response.headers["referrer-policy"] = "no-referrer"
        if flow is not None:
            response.delete_cookie(_cookie(console), path="/", secure=console.secure, httponly=True, samesite="lax")
        return response

    return endpoint


def _take_flow(console: Console, openid: OpenIdSignIn, request: Request) -> SignInFlow:
    """The flow that this response belongs to, which is used up; Refused where there is none, and nothing is changed."""
    mode, kind = (request.headers.get(name) for name in ("sec-fetch-mode", "sec-fetch-dest"))
    if mode not in {None, "navigate"} or kind not in {None, "document"}:
        what = "a sign-in is finished by a page in a window of its own, not by a part of another page"
        raise Refused(ErrorCode.FORBIDDEN, what, fix="sign in again")
    states = request.query_params.getlist("state")
    state = states[0] if len(states) == 1 else ""
    flow = openid.flows.finish(request.cookies.get(_cookie(console), ""), state)
    if flow is None:
        what = "this sign-in was not begun in this browser, is finished already or took too long"
        raise Refused(ErrorCode.FORBIDDEN, what, fix="sign in again; cookies must be allowed")
    return flow


async def _finish(console: Console, openid: OpenIdSignIn, request: Request, flow: SignInFlow, address: str) -> Response:
    query = _read_query(request)
    if "error" in query or "code" not in query:
        what = "the identity provider did not sign you in"
        raise Refused(ErrorCode.AUTHENTICATION, what, fix="sign in again, and agree to what the provider asks")
    identity = await openid.redeem(query["code"], flow, query.get("iss"), address)

    def find() -> User | None:
        return console.authenticator.by_identity(identity.issuer, identity.subject, identity.email)

    person = find()
    proof = console.proof(person.name, SignInMethod.OPENID) if person is not None else b""
    if person is None or find() != person:  # the link may be changed while the proof is made
        issuer, subject = shlex.quote(identity.issuer), shlex.quote(identity.subject)
        command = f"tacit analyst link NAME --issuer {issuer} --subject={subject}"
        what = f"this account of {openid.configuration.host} is not linked to anyone who may come in"
        error = Refused(ErrorCode.UNLINKED_IDENTITY, what, fix="send the data owner the command below")
        request.app.state.metrics.error(str(error.code))
        _log.warning("a sign-in was refused: the identity is not linked to anyone, from %s", address)
        return console.page(
            "unlinked.html",
            http_status(error),
            visit=None,
            problem=view_error(error),
            identity=identity,
            command=command,
        )
    request.state.user = person.name
    return _open_session(console, request, person, proof, flow, address)


def _open_session(
    console: Console, request: Request, person: User, proof: bytes, flow: SignInFlow, address: str
) -> Response:
    """A page that leads on. A redirect would still belong to the provider's site, and carry no cookie of ours."""
    console.sessions.close(request.cookies.get(console.cookie, ""))
    token = console.sessions.open(person.name, proof, address, SignInMethod.OPENID)
    response = console.page("signed_in.html", visit=None, to=flow.return_path, name=person.name)
    console.set_cookie(response, console.cookie, token)
    _log.info("%s signed in with OpenID Connect from %s", person.name, address)
    return response


def _read_query(request: Request) -> dict[str, str]:
    """The parameters of a response; Refused where one comes twice, since two readers might choose differently."""
    found = dict(request.query_params)
    if len(found) != len(request.query_params.multi_items()):
        raise Refused(ErrorCode.PROTOCOL, "a parameter of the response comes twice", fix="sign in again")
    return found


def _cookie(console: Console) -> str:
    """The name of the cookie of a sign-in; under TLS one that no other host can set."""
    return "__Host-tacit-oidc" if console.secure else "tacit-oidc"
