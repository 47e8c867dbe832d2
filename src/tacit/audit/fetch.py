"""One request within a time limit and a size limit: what came back, or how it failed."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_BODY = 16 * 2**20
"""Bytes of a body that are read; of a longer one these, and that it is longer."""
_CHUNK = 65536


@dataclass
class Fetched:
    """What a request gave: a status with a body, or the name of a failure; and whether a connection was made."""

    status: int | str = "timeout"
    body: bytes = b""
    is_long: bool = False
    sockets: list[Any] = field(default_factory=list)

    @property
    def is_reached(self) -> bool:
        """Whether a connection was made, or might have been with more time."""
        return bool(self.sockets) or self.status == "timeout"


def fetch(request: urllib.request.Request, limit: float) -> Fetched:
    """Make the request, and give up after `limit` seconds in all, however slowly and regularly bytes arrive.

    The request has a thread of its own, since nothing else ends a name lookup or a response whose every read is in
    time. Where the limit passes, its connections are shut down, which ends the thread.
    """
    opened: list[Any] = []
    done: list[Fetched] = []
    ended = threading.Event()
    deadline = time.monotonic() + limit
    worker = threading.Thread(
        target=lambda: done.append(_request(request, limit, deadline, opened, ended)), daemon=True
    )
    worker.start()
    worker.join(limit)
    ended.set()
    if done:
        return done[0]
    _shut(opened)
    return Fetched(sockets=opened)


def _request(
    request: urllib.request.Request, limit: float, deadline: float, opened: list[Any], ended: threading.Event
) -> Fetched:
    """Make the request; every exception of it is a failure with a name."""
    opener = urllib.request.build_opener(_TrackedHttp(opened, ended), _TrackedHttps(opened, ended))
    try:
        try:
            response: Any = opener.open(request, timeout=limit)
        except urllib.error.HTTPError as problem:
            response = problem
        with response:
            body, is_long = _read_body(response, deadline)
            return Fetched(int(response.status), body, is_long, opened)
    except Exception as problem:  # noqa: BLE001 - whatever it was, it is what a user would see
        reason = getattr(problem, "reason", None)
        cause = reason if isinstance(reason, Exception) else problem
        name = "timeout" if isinstance(cause, TimeoutError) else f"raised {type(cause).__name__}"
        partial = cause.partial if isinstance(cause, http.client.IncompleteRead) else b""
        return Fetched(name, partial, False, opened)


def _read_body(response: Any, deadline: float) -> tuple[bytes, bool]:
    """Return the body, or its first MAX_BODY bytes and that it is longer."""
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > MAX_BODY:
            return bytes(body[:MAX_BODY]), True
        if time.monotonic() > deadline:
            raise TimeoutError
    if getattr(response, "length", None):  # read1 does not say that the connection ended before the stated length
        raise http.client.IncompleteRead(bytes(body), response.length)
    return bytes(body), False


def _shut(opened: list[Any]) -> None:
    for each in list(opened):
        with contextlib.suppress(OSError):
            socket.socket.shutdown(each, socket.SHUT_RDWR)


def _track(http_class: Callable[..., Any], opened: list[Any], ended: threading.Event) -> Callable[..., Any]:
    """Return a maker of connections that adds the socket of each to a list."""

    def make(*arguments: Any, **options: Any) -> Any:
        connection = http_class(*arguments, **options)
        plain = connection.connect

        def connect() -> None:
            plain()
            opened.append(connection.sock)
            if ended.is_set():
                _shut(opened)

        connection.connect = connect
        return connection

    return make


class _TrackedHttp(urllib.request.HTTPHandler):
    def __init__(self, opened: list[Any], ended: threading.Event) -> None:
        super().__init__()
        self.opened, self.ended = opened, ended

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        return super().do_open(_track(http_class, self.opened, self.ended), req, **options)


class _TrackedHttps(urllib.request.HTTPSHandler):
    def __init__(self, opened: list[Any], ended: threading.Event) -> None:
        super().__init__()
        self.opened, self.ended = opened, ended

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        return super().do_open(_track(http_class, self.opened, self.ended), req, **options)
