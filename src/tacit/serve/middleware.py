"""Around every HTTP request: how much is read, what headers go back, what is counted and logged, and no trace of a bug.

A log line has the moment, the route, the status and the caller's name, or the caller's address where nobody was let
in. It never has a body, a query, a header, a path as it was written, or the text of an exception.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from tacit.errors import ErrorCode, Refused
from tacit.serve.addresses import Network, client_address
from tacit.serve.log_redaction import REQUEST, STRANGER
from tacit.serve.metrics import Metrics
from tacit.serve.responses import encode_json, error_to_dict, internal_error

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

CONNECTION = "connection"  # where a request's state has its connection
MAX_BODY_BYTES = 512 * 1024  # bytes: the longest question, with every character escaped
BODY_TIMEOUT = 20.0  # seconds in which all of a body must be there
_DRAIN, _DRAIN_SECONDS = 8 * MAX_BODY_BYTES, 2.0

SECURITY_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")

_log = logging.getLogger("tacit.serve")


class RequestMiddleware:
    """An application with its guard. A page may set a header of its own in place of one of these.

    Behind `proxies` the caller's address is the one that they name in X-Forwarded-For; nobody else's word is taken.
    """

    def __init__(
        self, application: Application, metrics: Metrics, *, secure: bool, proxies: Sequence[Network] = ()
    ) -> None:
        self._proxies = proxies
        self._application = application
        self._metrics = metrics
        self._headers = list(SECURITY_HEADERS.items()) + ([STRICT_TRANSPORT] if secure else [])

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        scope.setdefault("state", {})
        if self._proxies and scope.get("client"):
            scope["client"] = (_caller(scope, self._proxies), 0)
        visit = _Exchange(scope, send, self._headers)
        connection = scope["state"].get(CONNECTION)
        if connection is not None:
            connection.requests += 1
        try:
            if content_length(scope) > MAX_BODY_BYTES:
                raise _too_large()
            body = await _read_body(receive)
            await self._application(scope, _replay_body(body, receive), visit.send)
        except asyncio.CancelledError:
            raise
        except Refused as error:
            await _drain_body(receive)
            await visit.refuse(413 if error.code is ErrorCode.TOO_LARGE else 408, error)
        except Exception as error:  # noqa: BLE001 - its text may hold anything, so only its kind and place are kept
            _log.error("a request failed: %s at %s", type(error).__name__, _locate_error(error))
            if not visit.status:
                await visit.refuse(500, internal_error())
        finally:
            if connection is not None:
                connection.requests -= 1
            self._note(scope, visit)

    def _note(self, scope: Message, visit: _Exchange) -> None:
        found = scope.get("route")
        route = str(getattr(found, "path", "")) or "-"
        seconds = time.monotonic() - visit.started
        self._metrics.count(route, visit.status, seconds)
        user = scope["state"].get("user")
        if user is not None:
            _log.info(REQUEST, scope["method"], route, visit.status, user)
        else:
            client = scope.get("client")
            address = str(client[0]) if client else "-"
            _log.info(STRANGER, scope["method"], route, visit.status, address)


class _Exchange:
    """One request: what was sent back."""

    def __init__(self, scope: Message, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = time.monotonic()
        self.status = 0
        self._scope = scope
        self._send = send
        self._headers = headers

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name.lower() for name, _ in message.get("headers", ())}
            added = [(name, value) for name, value in self._headers if name not in own]
            message["headers"] = [*message.get("headers", ()), *added]
        await self._send(message)

    async def refuse(self, status: int, error: Refused) -> None:
        body = encode_json(error_to_dict(error))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),  # what was not read is not waited for
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def hold(scope: Message, analyst: str) -> None:
    """Count the connection of a request for whoever was let in; Refused where they have too many."""
    connection = scope["state"].get(CONNECTION)
    if connection is not None and not connection.let_in(analyst):
        raise Refused(
            ErrorCode.BUSY, f"{analyst} has too many connections open", fix="close some of them, or use fewer"
        )


async def _read_body(receive: Receive) -> bytes:
    """All of a body; Refused where it is too large or comes too slowly."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while True:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MAX_BODY_BYTES:
                    raise _too_large()
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(ErrorCode.PROTOCOL, "the body did not come in time", fix="send it at once") from None


async def _drain_body(receive: Receive) -> None:
    """Throw away some more, for a while: a client reads the refusal only once it has sent what it has."""
    size, more = 0, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while more and size < _DRAIN:
                message = await receive()
                size += len(message.get("body", b""))
                more = message.get("more_body", False)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """What the application reads: the body, and then what becomes of the connection."""
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return given.pop() if given else await receive()

    return next_message


def content_length(scope: Message) -> int:
    """The length that the request declares; 0 where it does not."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else MAX_BODY_BYTES + 1
    return 0


def _caller(scope: Message, proxies: Sequence[Network]) -> str:
    """The address of whoever calls, by the word of proxies."""
    named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return client_address(scope["client"][0], ",".join(named), proxies)


def _too_large() -> Refused:
    return Refused(ErrorCode.TOO_LARGE, f"more than {MAX_BODY_BYTES:,} bytes were sent", fix="ask a shorter question")


def _locate_error(error: BaseException) -> str:
    """The line of our own code that was nearest to a bug."""
    trace, place = error.__traceback__, "-"
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
