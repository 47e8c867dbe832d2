"""What is sent back over HTTP: answers as JSON, CSV, Arrow or text, and errors with their status.

>>> escape_formula("=SUM(A1)"), escape_formula("Surgery"), escape_formula("-1")
("'=SUM(A1)", 'Surgery', "'-1")
>>> negotiate_media_type("text/html, text/csv;q=0.9, */*;q=0.1")
'text/csv'
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from tacit.answers.answer import Answer
from tacit.client import arrow_stream
from tacit.errors import ErrorCode, LedgerError, ParameterError, Refused, TacitError
from tacit.serve.cache import compute_once
from tacit.statuses import STATUSES

JSON, CSV, TEXT = "application/json", "text/csv", "text/plain"
MEDIA_TYPES = (JSON, CSV, arrow_stream.ARROW_STREAM, TEXT)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_LONG = 5_000  # cells beyond which writing takes tenths of seconds; no kept answer has so many
_SHORT = 200  # cells that are written out at once; a longer answer is no matter for the event loop
_KINDS = {"*/*": JSON, "application/*": JSON, "text/*": CSV}

_SEPARATORS = re.compile("(?<=[;,|\t\r\n\v\f\x85\u2028\u2029\uff1b\uff0c\uff5c])")
_SIGNS = {"=", "+", "-", "@", "\u2212"}  # the last one is the minus of mathematics


def http_status(error: TacitError) -> int:
    """The HTTP status of an error."""
    return STATUSES[error.code].http


async def answer_response(answer: Answer, media: str, write: Callable[..., Awaitable[bytes]]) -> Response:
    """The answer as a response. A long one is written out by `CuratorService.write`, not on the event loop."""
    kind = f"{media}; charset=utf-8" if media.startswith("text/") else media
    is_long = len(answer) * len(answer.headings) > _LONG
    content = (
        render_answer(answer, media)
        if is_short(answer)
        else await write(render_answer, answer, media, in_background=is_long)
    )
    return Response(content, media_type=kind, headers={"Tacit-Entry": str(answer.receipt.entry)})


def is_short(answer: Answer) -> bool:
    """Whether an answer is written out in a moment."""
    return len(answer) * len(answer.headings) <= _SHORT


def error_response(error: TacitError) -> Response:
    """The error as a response."""
    status = http_status(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in {429, 503}:
        headers["Retry-After"] = str(math.ceil(error.retry_after or 1))
    return Response(encode_json(error_to_dict(error)), status, headers, media_type=JSON)


def internal_error() -> Refused:
    """What is told of a bug: that there is one, and nothing of its cause."""
    return Refused(ErrorCode.FAILED, "the server failed", fix="tell the data owner")


def error_to_dict(error: TacitError) -> dict[str, Any]:
    """An error as plain values. `kind` is the class that a client raises."""
    place = None
    if error.at is not None:
        at = error.at
        place = {"line": at.line, "column": at.column, "length": at.length, "excerpt": at.excerpt, "offset": at.offset}
    kind = "parameter" if isinstance(error, ParameterError) else error.verb
    what = error.what
    if isinstance(error, LedgerError):
        what = "the ledger cannot be used at the moment"  # where it lies is for the owner
    fix = "ask again later, or tell the data owner" if isinstance(error, LedgerError) else error.fix
    found = {"code": str(error.code), "kind": kind, "what": what, "at": place, "fix": fix}
    return {"error": found if error.suggestion is None else {**found, "suggestion": error.suggestion}}


def negotiate_media_type(accept: str) -> str:
    """The media type to answer in: of those offered, the one that is wanted most. Refused where none is."""
    wanted = []
    for position, item in enumerate(accept.lower().split(",")):
        kind, *parameters = (part.strip() for part in item.split(";"))
        found = kind if kind in MEDIA_TYPES else _KINDS.get(kind)
        weight = _parse_quality(parameters)
        if found is not None and weight > 0:
            wanted.append((-weight, position, found))
    if wanted:
        return min(wanted)[2]
    if not accept.strip():
        return JSON
    raise Refused(ErrorCode.PROTOCOL, "no media type of Accept is offered", fix=f"accept {', '.join(MEDIA_TYPES)}")


def _parse_quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0


def render_answer(answer: Answer, media: str) -> bytes:
    """The answer in a media type that is offered."""
    if media == CSV:
        return compute_once(answer, CSV, lambda: render_csv(answer).encode())
    if media == arrow_stream.ARROW_STREAM:
        return arrow_stream.encode_answer(answer)
    if media == TEXT:
        return f"{answer}\n".encode()
    before, after = compute_once(answer, JSON, lambda: _around_receipt(answer))
    return b"".join((before, encode_json(answer.receipt.to_dict()), after))


def _around_receipt(answer: Answer) -> tuple[bytes, bytes]:
    """The JSON of an answer before its receipt and after it.

    Rows are encoded one at a time: the encoder holds the interpreter's lock, and all rows of a long answer at once
    would stop every other thread for half a second.
    """
    rows = b", ".join(map(encode_json, answer.plain_rows()))
    types = [{"name": h.name, "type": f"list of {h.type}" if h.many else str(h.type)} for h in answer.headings]
    columns, confidence, notes = map(encode_json, (answer.columns, answer.confidence, answer.notes))
    before = b'{"columns": %b, "rows": [%b], "confidence": %b, "notes": %b, "receipt": '
    return before % (columns, rows, confidence, notes), b', "types": ' + encode_json(types) + b"}"


def encode_json(value: object) -> bytes:
    """Strict JSON: NaN and infinities, which it does not have, are null."""
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(_finite(value))
    return text.encode("utf-8", "replace")


def render_csv(answer: Answer) -> str:
    """The answer as CSV, each estimate x followed by x_low and x_high. No text in it is read as a formula."""
    found = answer.to_arrow()
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow([escape_formula(name) for name in found.column_names])
    columns = [found.column(index).to_pylist() for index in range(found.num_columns)]
    for row in zip(*columns, strict=True):
        writer.writerow([_format_cell(value) for value in row])
    return lines.getvalue()


def escape_formula(text: str) -> str:
    """Text that a spreadsheet shows and does not run: a quote stands before what begins like a formula.

    A spreadsheet may cut the text at another separator than the comma, by the language that it is set to, so each part
    is looked at. Signs are known in all their widths, after any blanks, invisible characters and quotes.
    """
    if text.isalnum():
        return text
    parts = _SEPARATORS.split(text)
    found = "".join(f"'{part}" if _is_formula(part) else part for part in parts)
    return f"'{found}" if text[0:1] in {"\t", "\r", "\n"} and not found.startswith("'") else found


def _is_formula(part: str) -> bool:
    for character in part:
        plain = unicodedata.normalize("NFKC", character)
        if unicodedata.category(character)[0] in "ZC" or plain == '"':
            continue
        return plain[:1] in _SIGNS
    return False


def _format_cell(value: Any) -> str:
    """A cell; numbers stay numbers, negative ones too."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return escape_formula("; ".join(map(str, value)))
    return escape_formula(str(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
