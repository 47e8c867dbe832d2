"""An analyst of a curator that is served elsewhere.

ada = tacit.connect("https://clinic.example:8080", key="tacit_...")
ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5).to_pandas()
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import math
import os
import ssl
import time
import uuid
from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tacit.answers.answer import Answer
from tacit.client import arrow_stream
from tacit.client.views import ServerResponse, error_from_json
from tacit.errors import ErrorCode, LedgerError, ParameterError, Refused, TacitError

_RETRYABLE = {
    ErrorCode.BUSY,
    ErrorCode.RATE,
    ErrorCode.LEDGER_BUSY,
    ErrorCode.LEDGER_UNREACHABLE,
}  # what passes by itself
_LONGEST_WAIT = 10.0  # seconds between two tries


def connect(
    url: str,
    key: str | None = None,
    *,
    cafile: str | os.PathLike[str] | None = None,
    timeout: float = 300.0,
    tries: int = 4,
    insecure: bool = False,
) -> RemoteAnalyst:
    """An analyst of the curator at a URL, by the key that its owner handed out; without one, by TACIT_KEY.

    `cafile` is a certificate to trust, such as the one that `tacit serve --tls-self` makes. A key is sent over TLS, or
    to this machine; `insecure` sends it in the open.
    """
    key = os.environ.get("TACIT_KEY", "") if key is None else key
    if not key or not key.isascii() or not key.isprintable():
        raise ParameterError("key", "is missing, or is no key", fix='key="tacit_...", or set TACIT_KEY')
    return RemoteAnalyst(_ConnectionPool(url, key, cafile, timeout, insecure), max(1, tries))


class RemoteAnalyst:
    """One analyst's way in, from afar: ask, explain, budget, schema, as `tacit.Analyst` has them.

    **Theorem.** However often the line breaks, a question is charged once. Proof: each has a name of its own, sent as
    its Idempotency-Key with every try, and the ledger charges a name once.
    """

    def __init__(self, line: _ConnectionPool, tries: int) -> None:
        self._line = line
        self._tries = tries

    @property
    def name(self) -> str:
        """Who the key belongs to."""
        return str(self.budget.who)

    def ask(
        self,
        sql: str,
        *,
        epsilon: Any = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        request: str = "",
    ) -> Answer:
        """The private answer to a question in SQL, at the price `epsilon` or `within`. The same question is free."""
        question = _encode_question(sql, epsilon, within, confidence)
        headers = {
            "Accept": arrow_stream.ARROW_STREAM,
            "Idempotency-Key": _check_header("request", request or str(uuid.uuid4())),
        }
        return arrow_stream.decode_answer(self._sent("POST", "/v1/ask", question, headers))

    def explain(
        self, sql: str, *, epsilon: Any = None, within: Mapping[str, Any] | None = None, confidence: Any = 0.95
    ) -> ServerResponse:
        """What would be done, what it would cost and how accurate it would be. Free."""
        return self._told("POST", "/v1/explain", _encode_question(sql, epsilon, within, confidence))

    @property
    def budget(self) -> ServerResponse:
        """What is spent and what is left."""
        return self._told("GET", "/v1/budget")

    @property
    def schema(self) -> ServerResponse:
        """What may be asked about: tables, columns, bounds and keys."""
        return self._told("GET", "/v1/schema")

    def receipt(self, entry: int) -> dict[str, Any]:
        """The receipt of an answer again, as `tacit ledger verify --receipt` takes it."""
        return self._told("GET", f"/v1/receipts/{int(entry)}").to_dict()

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def __enter__(self) -> RemoteAnalyst:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Remote analyst at {self._line.url}>"

    def _told(self, method: str, path: str, question: bytes = b"") -> ServerResponse:
        data = self._sent(method, path, question, {"Accept": "application/json"})
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise error_from_json(found)
        return ServerResponse(found)

    def _sent(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        """The body of the response; tried again where the line broke or the server was busy."""
        pause = 0.2
        for attempt in range(1, self._tries + 1):
            try:
                return self._line.send(method, path, body, headers)
            except _RetryableError as later:
                if attempt == self._tries:
                    raise later.error from later.__cause__
                wait = later.seconds
            time.sleep(min(_LONGEST_WAIT, max(pause, wait)))
            pause *= 2
        raise AssertionError("unreachable")


class _RetryableError(Exception):
    """Something that may pass: try again after so many seconds, or raise the error."""

    def __init__(self, error: TacitError, seconds: float = 0.0) -> None:
        super().__init__()
        self.error = error
        self.seconds = seconds


class _ConnectionPool:
    """Connections to one server, kept open between requests; threads may share it."""

    def __init__(
        self, url: str, key: str, cafile: str | os.PathLike[str] | None, timeout: float, insecure: bool
    ) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in {"http", "https"} or not parts.hostname or port == -1 or parts.username:
            raise ParameterError("url", "is not the URL of a server", fix='connect("https://clinic.example:8080")')
        if parts.scheme == "http" and not insecure and not _is_loopback(parts.hostname):
            raise ParameterError("url", "the key would travel for all to read", fix="use https://")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, port or (443 if parts.scheme == "https" else 80)
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._tls = _make_tls_context(cafile) if parts.scheme == "https" else None
        self._idle: deque[http.client.HTTPConnection] = deque()

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        """One request and the body of its response, or the error that it tells of."""
        connection = self._idle.pop() if self._idle else self._open()
        try:
            connection.request(method, self._path + path, body or None, {**self._headers, **headers})
            response = connection.getresponse()
            data = response.read()
        except ssl.SSLCertVerificationError as error:
            connection.close()
            fix = "check the name in the URL; for a self-made certificate, cafile=its file"
            raise ParameterError("url", "the server's certificate is not trusted", fix=fix) from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            what, fix = f"{self.url} cannot be reached, or the line broke", "check the address, then ask again"
            raise _RetryableError(LedgerError(ErrorCode.LEDGER_UNREACHABLE, what, fix=fix)) from error
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        if response.status == 200:
            return data
        raise _read_error(response, data)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _open(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)


def _read_error(response: http.client.HTTPResponse, data: bytes) -> Exception:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    error = error_from_json(found)
    if error.code in _RETRYABLE:
        given = response.headers.get("Retry-After", "")
        return _RetryableError(error, float(given) if given.isdecimal() and given.isascii() else 0.0)
    return error


def _encode_question(sql: Any, epsilon: Any, within: Mapping[str, Any] | None, confidence: Any) -> bytes:
    if not isinstance(sql, str):
        fix = 'for an Ibis expression, ibis.to_sql(expression, dialect="duckdb")'
        raise ParameterError("sql", f"needs text, got {type(sql).__name__}", fix=fix)
    question = {
        "sql": sql,
        "epsilon": _to_json_number("epsilon", epsilon),
        "confidence": _to_json_number("confidence", confidence),
    }
    if within is not None:
        question["within"] = {str(name): _to_json_number("within", width) for name, width in dict(within).items()}
    try:
        return json.dumps(question).encode()
    except ValueError:
        raise Refused(ErrorCode.SYNTAX, "the text cannot be sent", fix="check its characters") from None


def _to_json_number(name: str, value: Any) -> Any:
    """A number as JSON has it, or as exact text."""
    if isinstance(value, Fraction | Decimal):
        return str(value) if math.isfinite(value) else float(value)
    if hasattr(value, "item") and not isinstance(value, int | float):  # numpy's numbers
        value = value.item()
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ParameterError(name, f"needs a number, got {type(value).__name__}", fix=f"{name}=0.5, say")


def _check_header(name: str, text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ParameterError(name, "it is not a name", fix="use printable characters of ASCII, such as a UUID")
    return text


def _make_tls_context(cafile: str | os.PathLike[str] | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=cafile)
    except (OSError, ssl.SSLError) as error:
        raise ParameterError("cafile", "is no certificate in PEM", fix="name the server's certificate") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
