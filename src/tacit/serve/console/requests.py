"""Around every page: who is signed in, what a form says, and what may leave.

**A form is believed only from here.** A session is a cookie that scripts cannot read and other sites cannot send
(HttpOnly, SameSite=Strict); every form carries a token of the session that other sites cannot know; and what a browser
says of where a request comes from must not be elsewhere.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tacit.errors import ErrorCode, Refused, TacitError
from tacit.serve.authentication import Authenticator, Role, User
from tacit.serve.console.page_files import hash_static, load_static, load_templates
from tacit.serve.console.sessions import ConsoleSession, SessionStore, SignInMethod
from tacit.serve.console.view_models import view_error
from tacit.serve.key_authentication import KeyCheckPool
from tacit.serve.middleware import hold
from tacit.serve.responses import http_status
from tacit.serve.service import CuratorService

if TYPE_CHECKING:
    from tacit.serve.openid.sign_in import OpenIdSignIn

BASE = "/console"
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)
_FIELDS = 20  # of a form
_OWN_PLACES = 3  # of one person: one piece of long work that runs, and two that wait


class LongWork:
    """Work that keeps a processor busy for a moment: one piece at a time, in the order in which they came.

    Of each person one runs and two wait, so that nobody fills the queue for the others.
    """

    def __init__(self) -> None:
        self._running = asyncio.Semaphore(1)
        self._inside: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, person: str) -> AsyncIterator[None]:
        """Wait until a person's work is next; Refused where too much of theirs waits."""
        if self._inside[person] >= _OWN_PLACES:
            what = f"{_OWN_PLACES} of {person}'s pages of this kind are being made"
            raise Refused(ErrorCode.BUSY, what, fix="wait for one of them")
        self._inside[person] += 1
        try:
            async with self._running:
                yield
        finally:
            self._inside[person] -= 1
            if not self._inside[person]:
                del self._inside[person]


class Console:
    """What all pages share."""

    def __init__(
        self,
        service: CuratorService,
        authenticator: Authenticator,
        *,
        secure: bool,
        openid: OpenIdSignIn | None = None,
        passwords: bool = True,
    ) -> None:
        self.service = service
        self.authenticator = authenticator
        self.secure = secure
        self.openid = openid
        self.passwords = passwords
        self.sessions = SessionStore()
        self.static = load_static()
        self.version = hash_static(self.static)
        self._secret = secrets.token_bytes(32)
        self.reading = LongWork()  # of owners and auditors: all of the ledger
        self.playing = LongWork()  # of anyone
        self._checkers = KeyCheckPool(authenticator)
        self._templates = load_templates(base=BASE, version=self.version, Role=Role)

    @property
    def cookie(self) -> str:
        """The name of the cookie; under TLS one that no other host can set."""
        return "__Host-tacit" if self.secure else "tacit"

    def page(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: object
    ) -> Response:
        """A page from its template."""
        text = self._templates.get_template(template).render(values)
        own = {"content-security-policy": CONTENT_SECURITY_POLICY, "referrer-policy": "same-origin"}
        return HTMLResponse(text, status, {**own, **(headers or {})})

    def problem(self, request: Request, error: TacitError) -> Response:
        """A page that only says what is wrong, for whoever asks."""
        name = "problem_part.html" if _is_part(request) else "problem.html"
        return self.page(name, http_status(error), visit=None, problem=view_error(error))

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """A cookie that scripts cannot read and other sites cannot send. It goes when the browser closes."""
        response.set_cookie(name, value, path="/", secure=self.secure, httponly=True, samesite="strict")

    def stamp(self, visit: str) -> str:
        """The token of a form that is filled in before anyone is signed in."""
        return hmac.new(self._secret, visit.encode("utf-8", "surrogatepass"), "sha256").hexdigest()

    def session_of(self, request: Request) -> tuple[ConsoleSession, User] | None:
        """Who is signed in, if they may still come in, by the same password."""
        found = self.sessions.find(request.cookies.get(self.cookie, ""), address=client_host(request))
        if found is None:
            return None
        person = self.find_user(found)
        if person is None:
            self.sessions.close(request.cookies.get(self.cookie, ""))
            return None
        return found, person

    def find_user(self, session: ConsoleSession) -> User | None:
        """Whose session it is, if they may still come in by the password or the identity that opened it."""
        person = self.authenticator.person(session.user)
        same = hmac.compare_digest(self.proof(session.user, session.method), session.proof)
        return person if person and same else None

    def proof(self, user: str, method: SignInMethod = SignInMethod.PASSWORD) -> bytes:
        """What changes whenever a password does; for a session of an identity provider, also with each link.

        A link has a serial of its own, so unlinking and linking the same account changes it too.
        """
        known = self.authenticator.verifier(user).stored_key
        if method is SignInMethod.OPENID:
            link = self.authenticator.identity(user)
            if link is None:
                return secrets.token_bytes(32)  # which is equal to none: without a link there is no session
            known += json.dumps([link.issuer, link.claim, link.value, link.serial]).encode()
        return hmac.digest(self._secret, known, "sha256")

    async def check(self, name: str, password: str, address: str) -> User | None:
        """Whoever has this name and password; after many wrong ones it takes seconds."""
        return await self._checkers.by_password(name, password, address)


@dataclass(frozen=True)
class PageRequest:
    """A request of someone who is signed in."""

    console: Console
    request: Request
    session: ConsoleSession
    person: User
    form: dict[str, str] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """Their name."""
        return self.person.name

    @property
    def asks(self) -> bool:
        """Whether the policy gives them a budget."""
        return self.console.service.policy.analyst(self.user) is not None

    @property
    def owns(self) -> bool:
        """Whether they look after the data, and may end sessions."""
        return self.person.role is Role.OWNER

    @property
    def reads(self) -> bool:
        """Whether they may read the ledger."""
        return self.person.role is not Role.ANALYST

    @property
    def here(self) -> str:
        """The page of the menu that this belongs to."""
        first = self.request.scope["path"].removeprefix(BASE).strip("/").partition("/")[0]
        return "ask" if first in {"price", "answers"} else first

    @property
    def part(self) -> bool:
        """Whether only a part of the page is wanted: a script asks for it."""
        return _is_part(self.request)

    def page(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: object
    ) -> Response:
        """A page with what all pages need."""
        about = {"visit": self, "csrf": self.session.token, "part": self.part, "problem": None}
        return self.console.page(template, status, headers, **(about | values))

    def problem(self, error: TacitError) -> Response:
        """A page that only says what is wrong."""
        name = "problem_part.html" if self.part else "problem.html"
        return self.page(name, http_status(error), problem=view_error(error))


Handler = Callable[[PageRequest], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def require_sign_in(console: Console, handler: Handler, *, readers: bool = False, owners: bool = False) -> Endpoint:
    """A page for whoever is signed in; for owners and auditors only, where `readers`, and for owners where `owners`.

    A session that an owner ends while its page is made gets the form to sign in, and nothing of the page.
    """

    async def endpoint(request: Request) -> Response:
        found = console.session_of(request)
        if found is None:
            return _redirect_to_sign_in(console, request)
        session, person = found
        request.state.user = person.name
        hold(request.scope, person.name)
        visit = PageRequest(console, request, session, person)
        try:
            if request.method == "POST":
                form = await read_form(request)
                check_origin(request)
                if not hmac.compare_digest(form.get("csrf", "").encode(), session.token.encode()):
                    raise Refused(ErrorCode.FORBIDDEN, "this form is not of your session", fix="load the page again")
                visit = PageRequest(console, request, session, person, form)
            if readers and not visit.reads:
                raise Refused(ErrorCode.FORBIDDEN, "this page is for owners and auditors", fix="ask the owner")
            if owners and not visit.owns:
                raise Refused(ErrorCode.FORBIDDEN, "this is for owners", fix="ask the owner")
            response = await handler(visit)
            return _redirect_to_sign_in(console, request) if session.is_ended else response
        except TacitError as error:
            request.app.state.metrics.error(str(error.code))
            return visit.problem(error)

    return endpoint


def client_host(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client else "-"


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form. Its size is bounded by the guard."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Refused(ErrorCode.PROTOCOL, "this is not a form of the console", fix="use the form of the page")
    try:
        text = (await request.body()).decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict"))
    except ValueError:
        raise Refused(ErrorCode.PROTOCOL, "the form cannot be read", fix="use the form of the page") from None


def check_origin(request: Request) -> None:
    """A form must not come from another site: by what the browser says of that, or of the page the form was on."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        here = site in {"same-origin", "none"}
    else:
        here = origin is None or _is_origin_of(request.headers.get("host"), origin)
    if not here:
        raise Refused(ErrorCode.FORBIDDEN, "this form comes from elsewhere", fix="load the page again")


def is_page(request: Request) -> bool:
    """Whether a request is for the console."""
    return f"{request.scope['path']}/".startswith(f"{BASE}/")


def no_such_page() -> Refused:
    """The refusal of an address of the console that leads nowhere."""
    return Refused(ErrorCode.NOT_FOUND, "there is no such page", fix="go back to the first one")


def _is_part(request: Request) -> bool:
    """Whether only a part of the page is wanted: a script asks for it."""
    return request.headers.get("hx-request") == "true"


def _is_origin_of(host: str | None, origin: str) -> bool:
    """Whether an origin is this host; one that cannot be read is not."""
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:
        return False


def _redirect_to_sign_in(console: Console, request: Request) -> Response:
    """The form; where an identity provider leads back to a page, it is the page that was asked for."""
    if _is_part(request):
        return Response(headers={"HX-Redirect": f"{BASE}/sign-in"})
    path = request.scope["path"]
    is_wanted = console.openid is not None and request.method == "GET" and path.rstrip("/") != BASE
    return RedirectResponse(f"{BASE}/sign-in{'?' + urlencode({'to': path}) if is_wanted else ''}", 303)
