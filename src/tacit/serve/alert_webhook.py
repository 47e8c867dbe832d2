"""The webhook that alerts are sent to: a POST of JSON, over http or https, to one address."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tacit import __version__
from tacit.errors import ParameterError
from tacit.timed_request import ConnectionDeadline, build_opener, call_within

ADDRESS, TOKEN = "TACIT_ALERT_WEBHOOK", "TACIT_ALERT_TOKEN"
"""The environment's names for the address and for a token: a command line and a policy can be read by others."""
TIMEOUT = 10.0  # seconds for a whole post, from the lookup of the name to the end of the headers
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_PLAIN = re.compile(r"[!-~]+")  # ASCII that needs no percent-encoding to be sent


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An address that points elsewhere has not taken the alert, and the token is for it alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class AlertWebhook:
    """An address, and the token that it is called with. Neither is ever written to a log."""

    address: str = field(repr=False)
    token: str = field(default="", repr=False)
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        example = f"{ADDRESS}=https://alerts.example.org/"
        if not _is_address(self.address):
            raise ParameterError(ADDRESS, "is not an address that can be posted to", fix=f"{example}hook tacit serve")
        if "@" in urlsplit(self.address).netloc:
            what = "has a user or a password before the host, which would not be sent as such; send a token"
            raise ParameterError(ADDRESS, what, fix=f"{example}hook {TOKEN}=a-token-of-the-receiver tacit serve")
        if not _PLAIN.fullmatch(self.address):
            what = "has spaces or characters that are not ASCII; percent-encode a path, and write a host in Punycode"
            raise ParameterError(ADDRESS, what, fix=f"{example}caf%C3%A9%20hook tacit serve")
        if not (self.token.isascii() and self.token.isprintable()):
            what = "has characters that a header cannot carry; use printable ASCII"
            raise ParameterError(TOKEN, what, fix=f"{TOKEN}=a-token-of-the-receiver tacit serve")

    @classmethod
    def from_environment(cls) -> AlertWebhook | None:
        """The webhook that the environment names; None where it names none."""
        address = os.environ.get(ADDRESS, "")
        return cls(address, os.environ.get(TOKEN, "")) if address else None

    def post(self, body: Mapping[str, Any], key: str) -> str:
        """Send one alert; what went wrong, or nothing where it was taken. `key` is the same where it is sent again."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"tacit/{__version__}",
            "Idempotency-Key": key,
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
        }
        asked = urllib.request.Request(  # noqa: S310 - the scheme is http or https
            self.address, json.dumps(body).encode(), headers, method="POST"
        )
        found = call_within(self.timeout, lambda deadline: _open(asked, deadline, self.timeout), "tacit-alert-post")
        return "TimeoutError" if found is None else found


def _open(asked: urllib.request.Request, deadline: ConnectionDeadline, timeout: float) -> str:
    """Post, and return what went wrong: the class of an error or a status, never a text that may hold the address."""
    opener = build_opener(deadline, _NoRedirects())
    try:
        with opener.open(asked, timeout=timeout):
            return ""
    except urllib.error.HTTPError as error:
        with error:
            return f"status {error.code}"
    except urllib.error.URLError as error:
        return type(error.reason).__name__
    except Exception as error:  # noqa: BLE001 - whatever it was, the alert was not taken
        return type(error).__name__


def _is_address(address: str) -> bool:
    """Whether this is http or https with a host that can be looked up; what stands before the host is not judged."""
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        port = parts.port
        name = host if port is None and not host.endswith(":") else host.rpartition(":")[0]
        name.encode("idna")
    except ValueError:
        return False
    is_host = bool(_HOST.fullmatch(name)) or (bool(name) and not name.isascii())
    return parts.scheme in {"http", "https"} and is_host and port != 0 and address.isprintable()
