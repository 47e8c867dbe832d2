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
from decimal import Decimal
from fractions import Fraction
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tacit.accounting.receipt import Receipt
from tacit.analyst import Analyst, Model
from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.answer import Answer
from tacit.answers.explanation import Explanation
from tacit.answers.schema import Schema
from tacit.arithmetic import Number
from tacit.client import arrow_stream
from tacit.client.views import error_from_json, read_budget, read_explanation, read_schema
from tacit.errors import ErrorCode, LedgerError, ParameterError, Refused, TacitError
from tacit.plan.question import Question

_RETRYABLE = {
    ErrorCode.BUSY,
    ErrorCode.RATE,
    ErrorCode.LEDGER_BUSY,
    ErrorCode.LEDGER_UNREACHABLE,
}  # what passes by itself
_PIECE = 2**20
_LARGEST_BODY = 2**30  # bytes
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
    """Connect to a curator that is served elsewhere.

    Parameters
    ----------
    url : str
        Address of the server, such as "https://clinic.example:8080".
    key : str, optional
        The key that the data owner handed out; by default the environment variable TACIT_KEY.
    cafile : path, optional
        A certificate to trust, such as the one that `tacit serve --tls-self` makes.
    timeout : float, default 300
        Seconds to wait for one response.
    tries : int, default 4
        How often a request is sent where the connection breaks or the server is busy, at least 1. A question is
        charged once, however often it is sent.
    insecure : bool, default False
        Whether the key may be sent without TLS to another machine, where anyone on the way can read it.

    Returns
    -------
    RemoteAnalyst
        An `Analyst`, to be closed after use; it is a context manager. Nothing is sent before something is asked.

    Raises
    ------
    ParameterError
        If the key is missing, the URL is not one, or the key would be sent without TLS.

    Examples
    --------
    >>> import tacit
    >>> with tacit.connect("https://clinic.example:8080", key="tacit_...") as ada:
    ...     print(ada)
    <Analyst at https://clinic.example:8080>
    """
    key = os.environ.get("TACIT_KEY", "") if key is None else key
    if not key or not key.isascii() or not key.isprintable():
        raise ParameterError("key", "is missing, or is no key", fix='key="tacit_...", or set TACIT_KEY')
    return RemoteAnalyst(_ConnectionPool(url, key, cafile, timeout, insecure), max(1, tries))


class RemoteAnalyst(Analyst):
    """An analyst of a curator that is served elsewhere; `connect` makes one.

    **Theorem.** However often the connection breaks, a question is charged once. Proof: each has a name of its own,
    sent as its Idempotency-Key with every try, and the ledger charges each step of a name once.
    """

    def __init__(self, line: _ConnectionPool, tries: int) -> None:
        self._line = line
        self._tries = tries
        self._seen: AnalystBudget | None = None

    @property
    def name(self) -> str:
        """Who the key belongs to."""
        return str(self.budget.who)

    def _ask(self, question: Question) -> Answer:
        headers = {"Accept": arrow_stream.ARROW_STREAM, "Idempotency-Key": _name_request(question.request)}
        answer = arrow_stream.decode_answer(self._send("POST", "/v1/ask", _encode_question(question), headers))
        self._note_receipt(answer.receipt)
        return answer

    def _explain(self, question: Question) -> Explanation:
        return read_explanation(self._request("POST", "/v1/explain", _encode_question(question)))

    def _fit(
        self,
        estimator: Model,
        text: str,
        target: str,
        epsilon: Number,
        delta: Number | None,
        request: str,
        dialect: str | None,
    ) -> Model:
        from tacit.client.remote_fit import encode_estimator, restore_estimator

        body = {
            **encode_estimator(estimator),
            "sql": text,
            "target": target,
            "epsilon": _to_json_number("epsilon", epsilon),
            "delta": _to_json_number("delta", delta),
            "dialect": dialect,
        }
        headers = {"Accept": "application/json", "Idempotency-Key": _name_request(request)}
        fitted = restore_estimator(estimator, self._request("POST", "/v1/fit", _encode_json(body), headers))
        self._note_receipt(fitted.receipt_)
        return fitted

    @property
    def budget(self) -> AnalystBudget:
        """What is spent and what is left."""
        self._seen = read_budget(self._request("GET", "/v1/budget"))
        return self._seen

    @property
    def schema(self) -> Schema:
        """What may be asked about: tables, columns, bounds and keys, with the profile that was released last."""
        return read_schema(self._request("GET", "/v1/schema"))

    def receipt(self, entry: int) -> dict[str, object]:
        """Return the receipt of an answer again, as `tacit ledger verify --receipt` takes it.

        Parameters
        ----------
        entry : int
            Number of the charge in the ledger, as the answer's receipt has it.

        Returns
        -------
        dict
            The receipt as plain values.
        """
        return self._request("GET", f"/v1/receipts/{int(entry)}")

    def close(self) -> None:
        """Close the connection."""
        self._line.close()

    def __enter__(self) -> RemoteAnalyst:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """The same as of a local analyst, with the budget that was seen last: nothing is sent."""
        seen = self._seen
        return f"<Analyst at {self._line.url}>" if seen is None else f"<Analyst {seen.who} at {self._line.url}: {seen}>"

    def _note_receipt(self, receipt: Receipt) -> None:
        self._seen = AnalystBudget(receipt.analyst, receipt.analyst_budget, receipt.overall_budget)

    def _request(
        self, method: str, path: str, question: bytes = b"", headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        data = self._send(method, path, question, headers or {"Accept": "application/json"})
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise error_from_json(found)
        return found

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
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
            raise ParameterError("url", "is not the URL of a server", fix='url="https://clinic.example:8080"')
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
            data = _read_body(response, self._timeout)
        except ssl.SSLCertVerificationError as error:
            connection.close()
            fix = 'check the name in the URL; for a self-made certificate, cafile="certificate.pem"'
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


def _read_body(response: http.client.HTTPResponse, seconds: float) -> bytes:
    """All of a response, within so many seconds and a size that no answer has."""
    end, parts, size = time.monotonic() + seconds, [], 0
    while part := response.read1(_PIECE):
        parts.append(part)
        size += len(part)
        if size > _LARGEST_BODY or time.monotonic() > end:
            response.close()
            raise http.client.HTTPException("the response is too long, or takes too long")
    if response.length:  # the line broke before that
        response.close()
        raise http.client.IncompleteRead(b"", response.length)
    response.read()  # nothing is left; the connection may be used again
    return b"".join(parts)


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


def _encode_question(question: Question) -> bytes:
    if not isinstance(question.sql, str):
        fix = 'ask("SELECT COUNT(*) FROM visits", epsilon=0.5), say'
        raise ParameterError("sql", f"needs text or an Ibis expression, got {type(question.sql).__name__}", fix=fix)
    body: dict[str, Any] = {
        "sql": question.sql,
        "epsilon": _to_json_number("epsilon", question.epsilon),
        "confidence": _to_json_number("confidence", question.confidence),
    }
    if question.dialect is not None:
        body["dialect"] = question.dialect
    if question.within is not None:
        body["within"] = {str(name): _to_json_number("within", w) for name, w in dict(question.within).items()}
    return _encode_json(body)


def _encode_json(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body).encode()
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
    raise ParameterError(name, f"needs a number, got {type(value).__name__}", fix=f"{name}=0.5")


def _name_request(request: str) -> str:
    """The name under which a question is sent, however often: the caller's, or a new one."""
    if not request.isascii() or not request.isprintable():
        raise ParameterError("request", "it is not a name", fix="use printable characters of ASCII, such as a UUID")
    return request or str(uuid.uuid4())


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
