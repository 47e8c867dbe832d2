"""One request within a time limit and a size limit: what came back, or how it failed."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tacit.timed_request import ConnectionDeadline, build_opener, call_within

MAX_BODY = 16 * 2**20
"""Bytes of a body that are read; of a longer one these, and that it is longer."""
_CHUNK = 65536


@dataclass
class Fetched:
    """What a request gave: a status with a body, or the name of a failure; and whether a connection was made."""

    status: int | str = "timeout"
    body: bytes = b""
    is_long: bool = False
    is_connected: bool = False

    @property
    def is_reached(self) -> bool:
        """Whether a connection was made, or might have been with more time."""
        return self.is_connected or self.status == "timeout"


def fetch(request: urllib.request.Request, limit: float) -> Fetched:
    """Make the request, and give up after `limit` seconds in all, however slowly and regularly bytes arrive."""
    end = time.monotonic() + limit
    return call_within(limit, lambda deadline: _request(request, limit, end, deadline), "tacit-fetch") or Fetched()


def _request(request: urllib.request.Request, limit: float, end: float, deadline: ConnectionDeadline) -> Fetched:
    """Make the request; every exception of it is a failure with a name."""
    try:
        try:
            response: Any = build_opener(deadline).open(request, timeout=limit)
        except urllib.error.HTTPError as problem:
            response = problem
        with response:
            body, is_long = _read_body(response, end)
            return Fetched(int(response.status), body, is_long, deadline.is_connected)
    except Exception as problem:  # noqa: BLE001 - whatever it was, it is what a user would see
        reason = getattr(problem, "reason", None)
        cause = reason if isinstance(reason, Exception) else problem
        name = "timeout" if isinstance(cause, TimeoutError) else f"raised {type(cause).__name__}"
        partial = cause.partial if isinstance(cause, http.client.IncompleteRead) else b""
        return Fetched(name, partial, False, deadline.is_connected)


def _read_body(response: Any, end: float) -> tuple[bytes, bool]:
    """Return the body, or its first MAX_BODY bytes and that it is longer."""
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > MAX_BODY:
            return bytes(body[:MAX_BODY]), True
        if time.monotonic() > end:
            raise TimeoutError
    if getattr(response, "length", None):  # read1 does not say that the connection ended before the stated length
        raise http.client.IncompleteRead(bytes(body), response.length)
    return bytes(body), False
