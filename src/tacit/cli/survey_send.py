"""From a respondent's terminal to a collector and back."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from tacit.errors import Code, ParameterError, Refused

_LARGEST = 2**20
_SECONDS = 20


def form_of(address: str) -> str:
    """The public form of the survey at an address."""
    _, body = _call(address, "survey.json", None)
    return body


def send(address: str, report: str) -> str:
    """Send a report; what became of it, in words."""
    status, body = _call(address, "reports", report.encode())
    if status == 201:
        return "Thank you. It is counted."
    if status == 409:
        return "It is there already, and counts once."
    try:
        error = json.loads(body)["error"]
        code, what, fix = Code(error["code"]), str(error["what"]), str(error["fix"])
    except (ValueError, KeyError, TypeError):
        raise ParameterError("survey", f"the collector answered {status}", fix="try again later") from None
    raise Refused(code, what, fix=fix)


def _call(address: str, path: str, data: bytes | None) -> tuple[int, str]:
    request = urllib.request.Request(  # noqa: S310 - the caller checked that it is http or https
        f"{address.rstrip('/')}/{path}", data=data, headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - the same
            return answer.status, answer.read(_LARGEST).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise ParameterError("survey", f"{address} does not answer", fix="check the address") from error
