"""What one respondent sends: the survey's digest, a random id, and one randomized answer for each question.

>>> report = SurveyReport("0" * 32, "f" * 32, (1, "011", 0))
>>> print(report.to_json())
{"survey":"00000000000000000000000000000000","id":"ffffffffffffffffffffffffffffffff","answers":[1,"011",0]}
>>> parse_report(report.to_json()) == report
True
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tacit.errors import ErrorCode, Refused
from tacit.local.strict_json import parse

MAX_REPORT_BYTES = 16 * 1024  # bytes: fifty questions of sixty-four options take 4 KiB
_NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class SurveyReport:
    """A randomized answer to a whole survey. It has no true answers, and its id is independent of its sender."""

    survey: str
    id: str
    answers: tuple[int | str, ...]

    def to_json(self) -> str:
        """Return one line of JSON, with the keys in this order, as browsers send it too."""
        about = {"survey": self.survey, "id": self.id, "answers": list(self.answers)}
        return json.dumps(about, separators=(",", ":"))


def parse_report(data: bytes | str) -> SurveyReport:
    """Parse a report; whether its answers fit a survey is checked by `Survey.accept`."""
    if len(data) > MAX_REPORT_BYTES:
        raise Refused(
            ErrorCode.TOO_LARGE, f"a report has at most {MAX_REPORT_BYTES:,} bytes", fix="send one report at a time"
        )
    try:
        found = parse(data)
    except ValueError:
        raise bad_report_error("this is not JSON") from None
    if not isinstance(found, dict) or set(found) != {"survey", "id", "answers"}:
        raise bad_report_error("a report has a survey, an id and answers, and nothing else")
    survey, name, answers = found["survey"], found["id"], found["answers"]
    if not all(isinstance(each, str) and _NAME.fullmatch(each) for each in (survey, name)):
        raise bad_report_error("a survey and an id are 32 hexadecimal digits")
    if not isinstance(answers, list) or any(type(answer) not in (int, str) for answer in answers):
        raise bad_report_error("answers are numbers and texts, in a list")
    return SurveyReport(survey, name, tuple(answers))


def bad_report_error(what: str) -> Refused:
    """Return the refusal of a malformed report."""
    return Refused(ErrorCode.REPORT, what, fix="send what a client of this survey sends")
