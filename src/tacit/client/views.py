"""What a server tells of a cost, a budget, a schema or an error, as the objects that a local curator gives.

A server may be anyone's, so nothing in its texts may command a terminal, and what is of another shape is refused.

>>> zero, cap = [0, 0, 0, 0], [10**12, 0, 10**12, 0]
>>> print(read_budget({"who": "ada", "own": {}, "grains": {"own": [zero, cap], "overall": [zero, cap]}}))
ada has spent epsilon 0 of 1, with 1 left; all analysts together epsilon 0 of 1, with 1 left
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.data_profile import DataProfile
from tacit.answers.explanation import Explanation
from tacit.answers.schema import Schema
from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused, SourceLocation, TacitError
from tacit.terminal import one_line, several_lines

Found = TypeVar("Found")

_LONGEST = 2000  # characters of a server's error
_LONGEST_QUESTION = 100_000
OTHER_SHAPES = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_FARTHEST = 10**6  # lines and columns of a question


def read_explanation(found: dict[str, Any]) -> Explanation:
    """The explanation of a question."""
    return _read(lambda: Explanation.from_dict(_clean(found)))


def read_budget(found: dict[str, Any]) -> AnalystBudget:
    """The budget of an analyst."""

    def read() -> AnalystBudget:
        plain = _clean(found)
        return AnalystBudget.from_grains(str(plain["who"]), plain["grains"], str(plain["own"].get("month", "")))

    return _read(read)


def read_schema(found: dict[str, Any]) -> Schema:
    """What may be asked about."""

    def read() -> Schema:
        plain = _clean(found)
        profile = None
        if (released := found.get("released_profile")) is not None:
            profile = DataProfile.decode(json.dumps(_clean(released)).encode())
        schema = Schema(str(plain["neighbors"]), plain["tables"], profile)
        str(schema)  # raises where a table is not of the shape that it prints
        return schema

    return _read(read)


def _read(make: Callable[[], Found]) -> Found:
    """What a server sent as an object; Refused where it is something else."""
    try:
        return make()
    except OTHER_SHAPES as error:
        fix = "check the address: is it a Tacit server of this version?"
        raise Refused(ErrorCode.PROTOCOL, "what came back is not of Tacit's", fix=fix) from error


def _clean(value: Any) -> Any:
    """Plain values, in whose texts and names nothing commands a terminal."""
    if isinstance(value, str):
        return several_lines(value, _LONGEST_QUESTION)
    if isinstance(value, dict):
        return {one_line(str(name), _LONGEST): _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value


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
