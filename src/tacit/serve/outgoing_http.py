"""Requests that the server makes itself: each has an end in time, in bytes and in hops.

**Rule.** `send_request` returns or raises within `timeout` seconds, whatever the other end does: the lookup of its
name, TLS and the last byte are inside that time. It reads at most `most_bytes` of a body, and follows no redirect.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import IO, Any

from tacit.timed_request import ConnectionDeadline, build_opener, call_within


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
    """Send a request within a time (`timed_request`), and return what came back.

    A body that is longer than `most_bytes` is an error; with 0 it is not read.
    """
    found = call_within(timeout, lambda deadline: _open(request, deadline, timeout, most_bytes), "tacit-outgoing")
    result = OutgoingError("TimeoutError") if found is None else found
    if isinstance(result, OutgoingError):
        raise result
    return result


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An address that points elsewhere has not answered, and what is sent is for it alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _open(
    request: urllib.request.Request, deadline: ConnectionDeadline, timeout: float, most_bytes: int
) -> OutgoingResponse | OutgoingError:
    opener = build_opener(deadline, _NoRedirects())
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
