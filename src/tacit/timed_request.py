"""HTTP requests with a limit on the whole time: from the lookup of the name to the last byte.

A timeout of a socket limits each read, and not all of them: a peer that sends a byte now and then holds a request for
ever. Here the request has a thread of its own, since nothing else ends a name lookup, and where the limit passes its
connections are shut down, which ends the thread.

>>> call_within(0.05, lambda deadline: "done")
'done'
>>> import threading
>>> call_within(0.05, lambda deadline: threading.Event().wait(0.2)) is None
True
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

Found = TypeVar("Found")


class ConnectionDeadline:
    """Ends the connections of one request, those opened too late included: a slow peer cannot hold them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._opened: list[socket.socket] = []
        self.is_connected = False
        """Whether a connection was made."""

    def connect(self, *given: Any, **more: Any) -> socket.socket:
        """Open a connection, and keep a second handle of it, which stays valid when TLS takes over the first."""
        made = socket.create_connection(*given, **more)
        with self._lock:
            self.is_connected = True
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


def call_within(limit: float, work: Callable[[ConnectionDeadline], Found], name: str = "tacit-request") -> Found | None:
    """Return what `work` returns, or None where `limit` seconds pass before; its connections have ended either way.

    `work` opens them by `build_opener` with the deadline that it is given, and raises nothing.
    """
    deadline = ConnectionDeadline()
    found: list[Found] = []
    worker = threading.Thread(target=lambda: found.append(work(deadline)), name=name, daemon=True)
    worker.start()
    worker.join(limit)
    try:
        return found[0] if found else None
    finally:
        deadline.expire()


def build_opener(deadline: ConnectionDeadline, *handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Return an opener of http and https whose connections end with a deadline."""
    return urllib.request.build_opener(*handlers, _OpenHttp(deadline), _OpenHttps(deadline))


class _OpenHttp(urllib.request.HTTPHandler):
    """Opens http under a deadline."""

    def __init__(self, deadline: ConnectionDeadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def make(*given: Any, **more: Any) -> http.client.HTTPConnection:
            return _connect_by(http.client.HTTPConnection(*given, **more), self._deadline)

        return self.do_open(make, req)


class _OpenHttps(urllib.request.HTTPSHandler):
    """Opens https under a deadline, with the certificates that the machine trusts."""

    def __init__(self, deadline: ConnectionDeadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def make(*given: Any, **more: Any) -> http.client.HTTPConnection:
            return _connect_by(http.client.HTTPSConnection(*given, **more), self._deadline)

        return self.do_open(make, req)


def _connect_by(connection: http.client.HTTPConnection, deadline: ConnectionDeadline) -> http.client.HTTPConnection:
    connection._create_connection = deadline.connect  # type: ignore[attr-defined]  # where http.client opens its socket
    return connection
