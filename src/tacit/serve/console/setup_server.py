"""A page on this machine on which an owner begins a policy; it ends when the policy is written.

It shows what is in the data, so nobody but the owner may see it:

- It listens on 127.0.0.1 only, and answers only requests that name that address: a site whose name was made to lead
  here names itself.
- The address that the command prints holds a token that opens the page once. From then on the browser has a cookie,
  which scripts cannot read and other sites cannot send, of a path that is not guessed: a cookie is sent to all ports of
  a host, and other users of this machine may listen on one.
- Every form carries a token of its own, and must not come from another site.
- Which file is written is said on the command line and nowhere else, and a file that is there is not replaced.
- Nothing is kept by the browser, and nothing is logged of what a page shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tacit.errors import DataError, ErrorCode, ParameterError, PolicyError, Refused, TacitError
from tacit.policy.load import load_text
from tacit.policy.template import StarterChoices, render_template
from tacit.policy.write_policy import write_new_policy
from tacit.serve.console.page_files import hash_static, load_static, load_templates, send_static
from tacit.serve.console.requests import BASE, CONTENT_SECURITY_POLICY, check_origin
from tacit.serve.console.setup_form import SetupForm, fill_in, parse_form
from tacit.serve.console.setup_pages import SetupPages
from tacit.serve.console.setup_preview import SetupPreview, SetupSource, list_next_steps
from tacit.serve.console.view_models import view_error
from tacit.serve.metrics import Metrics
from tacit.serve.middleware import Application, RequestMiddleware
from tacit.serve.responses import http_status

if TYPE_CHECKING:
    import uvicorn

HOST = "127.0.0.1"
_COOKIE = "tacit-setup"
_IDLE = 3600.0  # seconds without a request, after which the page ends
_LAST_PAGE = 2.0  # seconds for what the last page loads
_FORM = "application/x-www-form-urlencoded"
_HOW_TO_OPEN = "open the address that the command printed, or run it again"
_WITHOUT_PAGE = "go back and undo the last change, or begin in the terminal: tacit init FILE --guided"


class SetupServer:
    """The page of one owner for one source: `address` opens it once, and `written` is what was chosen in the end."""

    def __init__(self, source: SetupSource, choices: StarterChoices, port: int) -> None:
        self._pages = SetupPages(source)
        self._source = source
        self._first = choices
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self._token, self._session, self._csrf = (secrets.token_urlsafe(32) for _ in range(3))
        self._place = f"{BASE}/setup-{secrets.token_urlsafe(12)}"
        self._is_opened = False
        self._static = load_static()
        self._templates = load_templates(base=BASE, version=hash_static(self._static), visit=None, place=self._place)
        self._busy = asyncio.Lock()
        self.address = f"http://{HOST}:{port}{BASE}/open?token={self._token}"
        self.written: StarterChoices | None = None
        self.ended = asyncio.Event()
        self.used = time.monotonic()

    def build_app(self) -> Application:
        """The application, behind the guard that limits what is read and sets the headers."""
        routes = [
            Route(f"{BASE}/static/{{name}}", self._guard(self._send_static), methods=["GET"]),
            Route(f"{BASE}/open", self._guard(self._open), methods=["GET"]),
            Route(self._place, self._guard(self._show), methods=["GET"]),
            Route(self._place, self._guard(self._submit), methods=["POST"]),
            Route(f"{self._place}/preview", self._guard(self._preview), methods=["POST"]),
            Route("/{rest:path}", self._guard(self._not_found), methods=["GET", "POST"]),
        ]
        return RequestMiddleware(Starlette(routes=routes), Metrics(), secure=False)

    def _guard(self, handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Answer requests to this address only; an error is a page."""

        async def endpoint(request: Request) -> Response:
            try:
                if request.headers.get("host") not in self._hosts:
                    raise Refused(ErrorCode.FORBIDDEN, "this address is not the page's own", fix=_HOW_TO_OPEN)
                response = await handler(request)
            except TacitError as error:
                response = self._page("setup_problem.html", http_status(error), problem=view_error(error))
            except Exception:  # noqa: BLE001 - whatever the data makes fail, the owner is told what to do next
                problem = view_error(
                    DataError(ErrorCode.DATA, "the page cannot be made for this data", fix=_WITHOUT_PAGE)
                )
                response = self._page("setup_problem.html", 500, problem=problem)
            return response

        return endpoint

    def _page(self, template: str, status: int = 200, **values: object) -> Response:
        text = self._templates.get_template(template).render({"problem": None, "part": False, **values})
        headers = {"content-security-policy": CONTENT_SECURITY_POLICY, "referrer-policy": "same-origin"}
        return HTMLResponse(text, status, headers)

    async def _send_static(self, request: Request) -> Response:
        return send_static(self._static, request.path_params["name"])

    async def _not_found(self, request: Request) -> Response:
        raise Refused(ErrorCode.NOT_FOUND, "there is no such page", fix=_HOW_TO_OPEN)

    async def _open(self, request: Request) -> Response:
        """Take the token of the address for the cookie, once."""
        given = request.query_params.get("token", "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode()):
            raise Refused(ErrorCode.AUTHENTICATION, "the token of this address is wrong", fix=_HOW_TO_OPEN)
        if self._is_opened:
            what = "this address was opened before, and opens once"
            raise Refused(ErrorCode.AUTHENTICATION, what, fix="if that was not you, stop the command with Ctrl-C")
        self._is_opened = True
        response = RedirectResponse(self._place, 303)
        response.set_cookie(_COOKIE, self._session, path=self._place, httponly=True, samesite="strict")
        return response

    def _has_cookie(self, request: Request) -> bool:
        given = request.cookies.get(_COOKIE, "")
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._session.encode())

    def _require_owner(self, request: Request) -> None:
        if not self._has_cookie(request):
            raise Refused(ErrorCode.AUTHENTICATION, "this page is open in another browser", fix=_HOW_TO_OPEN)
        if self.written is not None:
            raise Refused(ErrorCode.NOT_FOUND, "the policy is written, and this page has ended", fix=_HOW_TO_OPEN)
        self.used = time.monotonic()

    async def _read_form(self, request: Request) -> SetupForm:
        self._require_owner(request)
        if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM:
            raise Refused(ErrorCode.PROTOCOL, "this is not the form of the page", fix="use the form of the page")
        check_origin(request)
        form = parse_form(await request.body())
        if not hmac.compare_digest(form.text("csrf").encode("utf-8", "surrogatepass"), self._csrf.encode()):
            raise Refused(ErrorCode.FORBIDDEN, "this form is not of this page", fix="load the page again")
        return form

    async def _show(self, request: Request) -> Response:
        self._require_owner(request)
        return await self._lay_out(fill_in(self._source.tables, self._first))

    async def _preview(self, request: Request) -> Response:
        return await self._lay_out(await self._read_form(request), part=True)

    async def _submit(self, request: Request) -> Response:
        form = await self._read_form(request)
        if form.text("action") != "write":
            return await self._lay_out(form)
        async with self._busy:
            shown, choices = await asyncio.to_thread(self._pages.view, form)
            try:
                self._write(form, choices, shown["problems"], shown["preview"])
            except TacitError as error:
                return self._page("setup.html", http_status(error), **shown, csrf=self._csrf, problem=view_error(error))
        steps = list_next_steps(self._source, choices, shown["preview"])
        response = self._page("setup_done.html", policy=self._source.policy, preview=shown["preview"], next_steps=steps)
        response.delete_cookie(_COOKIE, path=self._place, httponly=True, samesite="strict")
        response.background = BackgroundTask(self._end)
        return response

    async def _lay_out(self, form: SetupForm, *, part: bool = False) -> Response:
        async with self._busy:
            shown, _ = await asyncio.to_thread(self._pages.view, form)
        template = "setup_preview.html" if part else "setup.html"
        return self._page(template, **shown, csrf=self._csrf, part=part)

    def _write(
        self, form: SetupForm, choices: StarterChoices, problems: dict[str, str], preview: SetupPreview | None
    ) -> None:
        """Write the policy to the file of the command, where none is, unless it does not fit the data."""
        if problems:
            raise ParameterError("form", "some of it cannot be read", fix="see what is said beside the fields")
        if not form.has("confirm"):
            what = "the policy is public, and you have not confirmed that all in it may be"
            raise ParameterError("confirm", what, fix="read the policy, and tick the box above the button")
        if preview is not None and isinstance(preview.problem, DataError | PolicyError):
            raise preview.problem
        text = render_template(self._source.name, self._source.tables, choices)
        load_text(text, self._source.policy)
        write_new_policy(self._source.policy, text)
        self.written = choices

    async def _end(self) -> None:
        await asyncio.sleep(_LAST_PAGE)
        self.ended.set()


def run_setup(
    source: SetupSource, choices: StarterChoices, port: int, ready: Callable[[str], None]
) -> StarterChoices | None:
    """Serve the page until the policy is written, nobody uses it for an hour, or Ctrl-C; then what was chosen."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            what = f"{HOST}:{port} cannot be listened on"
            raise ParameterError("port", what, fix=f"choose another port: --port {port + 1}") from None
        return asyncio.run(_serve(source, choices, listener, ready))


async def _serve(
    source: SetupSource, choices: StarterChoices, listener: socket.socket, ready: Callable[[str], None]
) -> StarterChoices | None:
    import uvicorn

    page = SetupServer(source, choices, listener.getsockname()[1])
    server = uvicorn.Server(
        uvicorn.Config(
            page.build_app(),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=64,
            timeout_graceful_shutdown=1,
        )
    )
    stopper = asyncio.create_task(_stop_when_done(page, server))
    listener.listen(64)
    ready(page.address)
    try:
        await server.serve(sockets=[listener])
    finally:
        stopper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await stopper
    return page.written


async def _stop_when_done(page: SetupServer, server: uvicorn.Server) -> None:
    while not page.ended.is_set() and time.monotonic() - page.used < _IDLE:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(page.ended.wait(), 5.0)
    server.should_exit = True
