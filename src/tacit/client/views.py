"""What a server tells of a cost, a budget or a schema: read like the local objects, held as plain values.

>>> budget = ServerResponse({"who": "ada", "remaining": 2.5, "text": "ada has spent epsilon 0.5 of 3"})
>>> budget.remaining
2.5
>>> print(budget)
ada has spent epsilon 0.5 of 3
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused, SourceLocation, TacitError
from tacit.terminal import one_line, several_lines

_LONGEST = 2000  # characters of a server's error
_LONGEST_QUESTION = 100_000
_FARTHEST = 10**6  # lines and columns of a question


class ServerResponse:
    """Values by name, and the text in which a person reads them."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if name != "text"}
        self._text = several_lines(str(values.get("text", "")))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return dict(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no {name!r} here")
        return self._values[name]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text or repr(self._values)  # which escapes whatever cannot be printed


def error_from_json(found: Any) -> TacitError:
    """The error that a server told of, as the class that a local curator raises.

    Its words are printed as they are, so nothing in them may command a terminal or run over several lines.
    """
    try:
        told = found["error"]
        code, kind = ErrorCode(told["code"]), str(told.get("kind", ""))
        what, fix = (one_line(str(told[key]), _LONGEST) for key in ("what", "fix"))
        place = None if told.get("at") is None else _place(told["at"])
        suggestion = told.get("suggestion")
        suggestion = None if suggestion is None else several_lines(str(suggestion), _LONGEST_QUESTION)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Refused(ErrorCode.PROTOCOL, "what came back is not of Tacit's", fix="check the address")
    if kind == "parameter":
        name, _, reason = what.partition(": ")
        return ParameterError(name, reason, fix=fix)
    if kind == "failed":
        return Failed()
    return (LedgerError if kind == "ledger" else Refused)(code, what, at=place, fix=fix, suggestion=suggestion)


def _place(found: Any) -> SourceLocation:
    """A stretch of the question. Its numbers become spaces and marks, so they are bounded."""
    place = SourceLocation(**{key: value for key, value in found.items() if key not in {"text", "start", "end"}})
    for number in (place.line, place.column, place.length, place.offset):
        if type(number) is not int or not 0 <= number <= _FARTHEST:
            raise ValueError(number)
    excerpt, source = one_line(str(place.excerpt), _LONGEST), one_line(str(place.source), _LONGEST)
    start = place.column - 1 - place.offset
    if not 0 <= start <= len(excerpt):
        raise ValueError(start)
    return replace(place, excerpt=excerpt, source=source, length=min(place.length, len(excerpt) - start))
