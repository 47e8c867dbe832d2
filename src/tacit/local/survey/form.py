"""A survey and its public form: all that a client needs, with a digest that every report carries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.survey.questions import SurveyQuestion, TrueAnswer
from tacit.local.survey.reports import SurveyReport, parse_report
from tacit.local.survey.rounding import double_above
from tacit.local.survey.thresholds import Total
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below
from tacit.terminal import one_line

VERSION = 1


@dataclass(frozen=True)
class Survey:
    """Questions that are answered together.

    **Theorem.** A report of it is epsilon-LDP with the sum of the questions' epsilons, whatever its sender answers.
    Proof: questions are randomized independently, so the ratios multiply; the id is drawn independently too.
    """

    id: str
    title: str
    about: str
    questions: tuple[SurveyQuestion, ...]

    @cached_property
    def total(self) -> Total:
        """The privacy loss of a whole report: the exact sum of the questions' epsilons."""
        return Total.of(question.epsilon for question in self.questions)

    @property
    def epsilon(self) -> float:
        """The total epsilon as a double, rounded up."""
        return double_above(self.total.epsilon)

    @property
    def odds(self) -> Fraction:
        """e^epsilon, rounded up: the factor by which a report can change the odds of anything about its sender."""
        return self.total.odds

    @cached_property
    def digest(self) -> str:
        """The identity of exactly this survey: the first half of SHA-256 over its form as canonical JSON.

        Another text, option, threshold or order of questions is another survey.
        """
        return hashlib.sha256(_canonical(self.form())).hexdigest()[:32]

    def form(self) -> dict[str, Any]:
        """Return the public form: nothing in it is secret."""
        about = {"tacit-survey": VERSION, "id": self.id, "title": self.title, "about": self.about}
        return {**about, "questions": [question.public() for question in self.questions]}

    def to_json(self) -> str:
        """Return the form with its digest, for a file or an address."""
        return json.dumps({**self.form(), "digest": self.digest}, indent=1, ensure_ascii=False)

    def read(self, given: Mapping[str, object]) -> list[TrueAnswer]:
        """Return the true answers to all questions, in order, from what a respondent wrote under their names."""
        for name in given:
            if name not in {question.name for question in self.questions}:
                raise ParameterError(
                    one_line(str(name), 60), "is not a question of this survey", fix=f"answer {self._names}"
                )
        for question in self.questions:
            if question.name not in given:
                what = "is not answered; leaving it out would reveal something"
                raise ParameterError(question.name, what, fix=f"answer all of {self._names}")
        return [question.read(given[question.name]) for question in self.questions]

    def respond(self, truths: Sequence[TrueAnswer], bits: Bits) -> SurveyReport:
        """Return the report of one respondent: first its id is drawn, then each question is randomized, in order."""
        if len(truths) != len(self.questions):
            raise ParameterError(
                "answers", f"needs {len(self.questions)} answers, one for each question", fix=f"answer {self._names}"
            )
        name = f"{draw_below(2**128, bits):032x}"
        pairs = zip(self.questions, truths, strict=True)
        return SurveyReport(self.digest, name, tuple(question.encode(truth, bits) for question, truth in pairs))

    def accept(self, data: bytes | str) -> SurveyReport:
        """Parse what was sent; refuse what is not a report, is too large, or answers another survey."""
        report = parse_report(data)
        if report.survey != self.digest:
            raise Refused(ErrorCode.REPORT, "this report answers another survey", fix="send it to its own collector")
        self.support(report)
        return report

    def support(self, report: SurveyReport) -> tuple[tuple[int, ...], ...]:
        """Return the cells of each question that a report supports; refuse a report that no client sends."""
        if len(report.answers) != len(self.questions):
            what = f"a report has {len(self.questions)} answers"
            raise Refused(ErrorCode.REPORT, what, fix="send what a client of this survey sends")
        return tuple(question.support(sent) for question, sent in zip(self.questions, report.answers, strict=True))

    @property
    def _names(self) -> str:
        return ", ".join(question.name for question in self.questions)


def _canonical(form: dict[str, Any]) -> bytes:
    return json.dumps(form, sort_keys=True, separators=(",", ":")).encode()
