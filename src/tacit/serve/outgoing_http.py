"""Requests that the server makes itself: each has an end in time, in bytes and in hops.

**Rule.** `send_request` returns or raises within `timeout` seconds, whatever the other end does: the lookup of its
name, TLS and the last byte are inside that time. It reads at most `most_bytes` of a body, and follows no redirect.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import IO, Any


@dataclass(frozen=True)
class OutgoingResponse:
    """What came back: a status, and the body as far as it was asked for."""

    status: int
    body: bytes


class OutgoingError(Exception):
    """Nothing came back. `reason` is the class of the cause, never a text, which may hold an address or a secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def send_request(request: urllib.request.Request, *, timeout: float, most_bytes: int = 0) -> OutgoingResponse:
    """Send a request in a thread of its own, which a slow peer cannot hold: its connections are shut down at the end.

    A body that is longer than `most_bytes` is an error; with 0 it is not read.
    """
    deadline = _Deadline()
    found: list[OutgoingResponse | OutgoingError] = []
    worker = threading.Thread(
        target=lambda: found.append(_open(request, deadline, timeout, most_bytes)), name="tacit-outgoing", daemon=True
    )
    worker.start()
    worker.join(timeout)
    deadline.expire()
    result = found[0] if found else OutgoingError("TimeoutError")
    if isinstance(result, OutgoingError):
        raise result
    return result


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An address that points elsewhere has not answered, and what is sent is for it alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Deadline:
    """Ends the connections of one request, those opened too late included: a slow peer cannot hold them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._opened: list[socket.socket] = []

    def connect(self, *given: Any, **more: Any) -> socket.socket:
        """Open a connection, and keep a second handle of it, which stays valid when TLS takes over the first."""
        made = socket.create_connection(*given, **more)
        with self._lock:
            if self._is_over:
                made.close()
                raise TimeoutError
            self._opened.append(made.dup())
        return made

    def expire(self) -> None:
        """Shut the connections down, so that whoever reads from them reads the end."""
        with self._lock:
            self._is_over = True
            for each in self._opened:
                with each, contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._opened.clear()


class _OpenHttp(urllib.request.HTTPHandler):
    """Opens http under a deadline."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def make(*given: Any, **more: Any) -> http.client.HTTPConnection:
            return _connect_by(http.client.HTTPConnection(*given, **more), self._deadline)

        return self.do_open(make, req)


class _OpenHttps(urllib.request.HTTPSHandler):
    """Opens https under a deadline, with the certificates that the machine trusts."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def make(*given: Any, **more: Any) -> http.client.HTTPConnection:
            return _connect_by(http.client.HTTPSConnection(*given, **more), self._deadline)

        return self.do_open(make, req)


def _connect_by(connection: http.client.HTTPConnection, deadline: _Deadline) -> http.client.HTTPConnection:
    connection._create_connection = deadline.connect  # type: ignore[attr-defined]  # where http.client opens its socket
    return connection


def _open(
    request: urllib.request.Request, deadline: _Deadline, timeout: float, most_bytes: int
) -> OutgoingResponse | OutgoingError:
    opener = urllib.request.build_opener(_NoRedirects, _OpenHttp(deadline), _OpenHttps(deadline))
    try:
        try:
            with opener.open(request, timeout=timeout) as response:
                return OutgoingResponse(response.status, _read(response, most_bytes))
        except urllib.error.HTTPError as error:
            with error:
                return OutgoingResponse(error.code, _read(error, most_bytes))
    except urllib.error.URLError as error:
        return OutgoingError(type(error.reason).__name__)
    except OutgoingError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever it was, nothing came back
        return OutgoingError(type(error).__name__)


def _read(response: IO[bytes], most_bytes: int) -> bytes:
    if not most_bytes:
        return b""
    body = response.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise OutgoingError("TooLarge")
    return body
