"""The HTTP server of a survey: a page that randomizes in the browser, its form, and an endpoint for reports.

No true answer is received here, so there are no keys and no sessions. What is protected is the page itself, by TLS and
a content security policy that lets it load and send nothing elsewhere, and the estimates: reports that no client sends
are refused, an id counts once, an address has a rate limit, and the influence of malicious reports is bounded and
stated.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import signal
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tacit.errors import ErrorCode, Refused, TacitError
from tacit.local.survey.reports import MAX_REPORT_BYTES, SurveyReport
from tacit.local.survey.store import ReportStore
from tacit.serve.addresses import LOOPBACK, Network, address_group, client_address
from tacit.serve.connections import Connections
from tacit.serve.descriptors import connections_allowed
from tacit.serve.header_limits import choose_http_protocol
from tacit.serve.limits import RateLimiter
from tacit.serve.metrics import Metrics
from tacit.serve.middleware import Application, RequestMiddleware
from tacit.serve.responses import JSON, encode_json, error_response, error_to_dict
from tacit.serve.server import ServerConfig
from tacit.serve.survey_page import render_page as page_of
from tacit.serve.survey_place import bind_socket, public_address

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_STATIC = {
    "survey.js": "text/javascript",
    "survey_encoder.js": "text/javascript",
    "survey_memory.js": "text/javascript",
    "survey_bounds.js": "text/javascript",
    "survey.css": "text/css",
    "console.css": "text/css",
    "mark.svg": "image/svg+xml",
}
_MOST_WAITING = 1000
_COUNT_INTERVAL = 2.0  # seconds between two notifications of the count
_BURST = 60  # reports at once from one address: many respondents may share one


class ReportWriter:
    """Writes reports in batches: those that arrive while one sync runs share the next.

    `put` returns once the report is on the disk, or is known to be there already.
    """

    def __init__(self, store: ReportStore) -> None:
        self.store = store
        self._waiting: list[tuple[SurveyReport, asyncio.Future[bool]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def put(self, report: SurveyReport) -> bool:
        """Store a report; return whether it was new."""
        if self.store.has_report(report):
            return False
        if len(self._waiting) >= _MOST_WAITING:
            fix = "wait 1 second and send it again"
            raise Refused(ErrorCode.BUSY, "too many reports are waiting", fix=fix, retry_after=1)
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((report, done))
        if self._worker is None:
            self._worker = asyncio.create_task(self._drain())
        return await done

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                fresh = await asyncio.to_thread(self.store.add, [report for report, _ in batch])
            except Exception as error:  # noqa: BLE001 - each sender gets the error, and the next batch is tried
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for (_, done), new in zip(batch, fresh, strict=True):
                if not done.done():  # its sender may have disconnected
                    done.set_result(new)
        self._worker = None


def build_survey_app(
    store: ReportStore, *, rate: float = 5.0, secure: bool = False, proxies: Sequence[Network] = ()
) -> Application:
    """Build the application. `rate` is the accepted reports per second from one address, after a burst.

    Only the `proxies` are trusted to say, in X-Forwarded-For, which address a report came from.
    """
    survey, writer, limit, metrics = store.survey, ReportWriter(store), RateLimiter(rate, _BURST), Metrics()
    folder = files("tacit.serve.console")
    static = {name: (folder / "static" / name).read_bytes() for name in _STATIC}
    version = hashlib.sha256(b"".join(static.values())).hexdigest()[:12]
    page = page_of(survey, (folder / "templates" / "survey.html").read_text("utf-8"), version)

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers={"content-security-policy": CONTENT_SECURITY_POLICY})

    async def form(request: Request) -> Response:
        return Response(survey.to_json(), media_type=JSON)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            raise HTTPException(404)
        headers = {"cache-control": "no-cache"}  # modules name each other without a version
        return Response(static[name], media_type=_STATIC[name], headers=headers)

    async def take(request: Request) -> Response:
        peer, forwarded = request.client.host if request.client else "", request.headers.getlist("x-forwarded-for")
        seconds = limit.take(address_group(client_address(peer, ",".join(forwarded), proxies)))
        if seconds > 0:
            fix = f"wait {seconds + 1:.0f} seconds"
            raise Refused(ErrorCode.RATE, "too many reports came from this address", fix=fix, retry_after=seconds)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Refused(
                ErrorCode.PROTOCOL, "a report is JSON", fix=f"send it as {JSON}"
            )  # a form of another site cannot send that
        data = await request.body()
        if len(data) > MAX_REPORT_BYTES:
            raise Refused(
                ErrorCode.TOO_LARGE, f"a report has at most {MAX_REPORT_BYTES:,} bytes", fix="send one report at a time"
            )
        if not await writer.put(survey.accept(data)):
            again = Refused(
                ErrorCode.REPORT, "a report with this id is stored already", fix="it counts once; nothing to do"
            )
            return Response(encode_json(error_to_dict(again)), 409, media_type=JSON)
        return Response(encode_json({"taken": True}), 201, media_type=JSON)

    routes = [
        _route("/", show, "GET"),
        _route("/survey.json", form, "GET"),
        _route("/static/{name}", file, "GET"),
        _route("/reports", take, "POST"),
    ]
    handlers: dict[Any, Any] = {TacitError: _handle_tacit_error, HTTPException: _handle_http_error}
    return RequestMiddleware(Starlette(routes=routes, exception_handlers=handlers), metrics, secure=secure)


async def serve_survey(
    store: ReportStore,
    settings: ServerConfig,
    ready: Callable[[str], None],
    stop: asyncio.Event | None = None,
    rate: float = 5.0,
    on_count: Callable[[int], None] | None = None,
    proxies: Sequence[Network] = (),
) -> None:
    """Serve until `stop` is set or a signal arrives. `ready` is called with the address, `on_count` with the count.

    The count is that of the reports; it is passed when it has changed, at most every two seconds. `proxies` are trusted
    where the settings say that there is one; without a name it is one on this machine.
    """
    stopping, certificate = stop or asyncio.Event(), settings.certificate
    if certificate is not None:
        certificate.context()  # raises an error that explains what is wrong
    believed = (proxies or LOOPBACK) if settings.proxied else ()
    connections = Connections(settings.connections or connections_allowed(), only_strangers=True)
    config = uvicorn.Config(
        build_survey_app(store, rate=rate, secure=certificate is not None or settings.proxied, proxies=believed),
        http=choose_http_protocol(connections),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,  # `client_address` reads them
        timeout_graceful_shutdown=max(1, round(settings.patience)),
        ssl_certfile=str(certificate.certificate) if certificate else None,
        ssl_keyfile=str(certificate.key) if certificate else None,
    )
    server = _Server(config)
    with connections.listen(bind_socket(settings), believed) as listener, _signals(stopping):
        serving, waiting = asyncio.create_task(server.serve(sockets=[listener])), asyncio.create_task(stopping.wait())
        counting = asyncio.create_task(_report_count(store, on_count or (lambda reports: None)))
        sweeping = asyncio.create_task(connections.sweep_forever())
        ready(public_address(settings, listener))
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        stopping.set()
        counting.cancel()
        sweeping.cancel()
        await asyncio.gather(counting, sweeping, return_exceptions=True)  # a closed terminal ends no survey
        await asyncio.gather(serving, waiting)


async def _report_count(store: ReportStore, on_count: Callable[[int], None]) -> None:
    seen = store.counts.users
    while True:
        await asyncio.sleep(_COUNT_INTERVAL)
        if store.counts.users != seen:
            seen = store.counts.users
            on_count(seen)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `serve_survey` handles them


@contextlib.contextmanager
def _signals(stopping: asyncio.Event) -> Iterator[None]:
    """Set `stopping` on SIGTERM and SIGINT, where this is the main thread."""
    loop, handled = asyncio.get_running_loop(), []
    with contextlib.suppress(RuntimeError, ValueError):
        for kind in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(kind, stopping.set)
            handled.append(kind)
    try:
        yield
    finally:
        for kind in handled:
            loop.remove_signal_handler(kind)


def _route(path: str, endpoint: Callable[[Request], Any], method: str) -> Route:
    async def dispatch(request: Request) -> Response:
        request.scope["route"] = route  # for counts and logs
        found: Response = await endpoint(request)
        return found

    route = Route(path, dispatch, methods=[method], include_in_schema=False)
    return route


async def _handle_tacit_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TacitError)
    found = error_response(error)
    if error.code is ErrorCode.TOO_LARGE:
        found.status_code = 413
    return found


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Refused(ErrorCode.NOT_FOUND, "there is no such address", fix="see /")
    return Response(encode_json(error_to_dict(problem)), error.status_code, media_type=JSON)
