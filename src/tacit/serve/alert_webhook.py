"""The webhook that alerts are sent to: a POST of JSON, over http or https, to one address."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tacit import __version__
from tacit.errors import ParameterError

ADDRESS, TOKEN = "TACIT_ALERT_WEBHOOK", "TACIT_ALERT_TOKEN"
"""The environment's names for the address and for a token: a command line and a policy can be read by others."""
TIMEOUT = 10.0  # seconds for each wait


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
        try:
            parts = urlsplit(self.address)
            is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid or not self.address.isprintable() or not self.token.isprintable():
            what = "is not an address that can be posted to"
            raise ParameterError(ADDRESS, what, fix=f"{ADDRESS}=https://alerts.example.org/hook tacit serve")

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
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(asked, timeout=self.timeout):
                return ""
        except urllib.error.HTTPError as error:
            with error:
                return f"status {error.code}"
        except urllib.error.URLError as error:
            return type(error.reason).__name__
        except (OSError, http.client.HTTPException, ValueError) as error:
            return type(error).__name__
