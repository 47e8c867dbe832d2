"""From a respondent's terminal to a collector and back."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.terminal import LONGEST, one_line

if TYPE_CHECKING:
    from http.client import HTTPMessage

_LARGEST = 2**20
_LONGEST = 200  # characters of an address
_SECONDS = 20
_NAME_MISMATCH = {62, 64}  # what openssl says of a certificate for another host or address


def parse_origin(address: str) -> str:
    """Whose address it is. Plain http is for this machine only: on its way anyone could raise the probabilities."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        what = f"{one_line(address, _LONGEST)} is no address"
        raise ParameterError("survey", what, fix="https://survey.example/, say") from error
    if parts.scheme != "https" and not _is_loopback(host):
        what = f"{one_line(address, _LONGEST)} is not encrypted: anyone on the way could change the survey"
        raise ParameterError("survey", what, fix="ask for its https address, or for its file")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def fetch_form(address: str, trust: Path | None = None) -> str:
    """The public form of the survey at an address."""
    status, body = _request(address, "survey.json", None, trust)
    if status != 200:
        raise ParameterError("survey", f"{address} answered {status}: there is no survey", fix="check the address")
    return body


def send_report(address: str, report: str, trust: Path | None = None) -> str:
    """Send a report; what became of it, in words. Those of the collector are quoted, and never a fix of ours."""
    status, body = _request(address, "reports", report.encode(), trust)
    if status == 201:
        return "Thank you. It is counted."
    if status == 409:
        return "It is there already, and counts once."
    try:
        error = json.loads(body)["error"]
        code, words = ErrorCode(error["code"]), ". ".join(str(error[key]) for key in ("what", "fix"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParameterError("survey", f"the collector answered {status}", fix="try again later") from None
    what = f'the collector answered {status}: "{one_line(words, LONGEST)}"'
    raise Refused(code, what, fix="send the same again later: it is kept, and costs nothing more")


def _request(address: str, path: str, data: bytes | None, trust: Path | None) -> tuple[int, str]:
    request = urllib.request.Request(  # noqa: S310 - `parse_origin` checked that it is http or https
        f"{address.rstrip('/')}/{path}", data=data, headers={"content-type": "application/json"}
    )
    opener = urllib.request.build_opener(_SafeRedirectHandler(), urllib.request.HTTPSHandler(context=_context(trust)))
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            return answer.status, answer.read(_LARGEST).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, ParameterError):
            raise
        raise _connection_error(address, getattr(error, "reason", error)) from error


def _context(trust: Path | None) -> ssl.SSLContext:
    """The certificates that are believed: this machine's, or the one in a file and no other."""
    try:
        return ssl.create_default_context(cafile=trust)
    except OSError as error:
        fix = "name the .tls.pem that lies beside the collector's survey"
        raise ParameterError("trust", f"{trust} is no certificate in PEM", fix=fix) from error


def _connection_error(address: str, reason: object) -> ParameterError:
    """What went wrong, in the words of whoever wants to answer."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        if reason.verify_code in _NAME_MISMATCH:
            what = f"the certificate of {address} is for another address"
            return ParameterError("survey", what, fix="use the name that it was made for: ask the collector")
        what = f"the certificate of {address} is not one that this machine trusts: {reason.verify_message}"
        fix = "get the collector's .tls.pem from someone you trust, and name it: --trust FILE"
        return ParameterError("survey", what, fix=fix)
    if isinstance(reason, ssl.SSLError):
        return ParameterError("survey", f"{address} does not speak TLS", fix="check the address and its port")
    return ParameterError("survey", f"{address} does not answer", fix="check the address")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _SafeRedirectHandler(urllib.request.HTTPRedirectHandler):
    """Follows to no address that would not have been taken in the first place, and never with a report."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """The request to follow with; None where it ends here."""
        if req.data is not None:
            return None
        parse_origin(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
