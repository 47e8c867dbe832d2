"""A survey, and its public form: all that a client needs, with a digest that every report names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.survey.questions import SurveyQuestion
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
    Proof: the coins of different questions are independent, so the ratios multiply; the id is drawn on its own.
    """

    id: str
    title: str
    about: str
    questions: tuple[SurveyQuestion, ...]

    @cached_property
    def total(self) -> Total:
        """What a report costs its sender in all, exactly."""
        return Total.of(question.price for question in self.questions)

    @property
    def epsilon(self) -> float:
        """The same as a double, rounded up."""
        return double_above(self.total.epsilon)

    @property
    def odds(self) -> Fraction:
        """How many times surer all of a report can make anyone, of anything about its sender; rounded up."""
        return self.total.odds

    @cached_property
    def digest(self) -> str:
        """The name of exactly this survey: the first half of SHA-256 over its form as canonical JSON.

        Another text, option, threshold or order of questions is another survey.
        """
        return hashlib.sha256(_canonical(self.form())).hexdigest()[:32]

    def form(self) -> dict[str, Any]:
        """What may be published: nothing of it is secret."""
        about = {"tacit-survey": VERSION, "id": self.id, "title": self.title, "about": self.about}
        return {**about, "questions": [question.public() for question in self.questions]}

    def to_json(self) -> str:
        """The form with its digest, for a file or an address."""
        return json.dumps({**self.form(), "digest": self.digest}, indent=1, ensure_ascii=False)

    def read(self, given: Mapping[str, Any]) -> list[Any]:
        """True answers to all questions, in order, from what a person wrote under their names."""
        for name in given:
            if name not in {question.name for question in self.questions}:
                raise ParameterError(
                    one_line(str(name), 60), "is no question of this survey", fix=f"answer {self._names}"
                )
        for question in self.questions:
            if question.name not in given:
                what = "is not answered; leaving it out would tell something"
                raise ParameterError(question.name, what, fix=f"answer all of {self._names}")
        return [question.read(given[question.name]) for question in self.questions]

    def respond(self, truths: Sequence[Any], bits: Bits) -> SurveyReport:
        """The report of one person: first its id is drawn, then each question's coins, in order."""
        if len(truths) != len(self.questions):
            raise ParameterError("answers", "needs one for each question", fix=f"answer {self._names}")
        name = f"{draw_below(2**128, bits):032x}"
        pairs = zip(self.questions, truths, strict=True)
        return SurveyReport(self.digest, name, tuple(question.encode(truth, bits) for question, truth in pairs))

    def accept(self, data: bytes | str) -> SurveyReport:
        """The report in what was sent; refused where it is none, is too large, or answers another survey."""
        report = parse_report(data)
        if report.survey != self.digest:
            raise Refused(ErrorCode.REPORT, "this report answers another survey", fix="send it to its own collector")
        self.support(report)
        return report

    def support(self, report: SurveyReport) -> tuple[tuple[int, ...], ...]:
        """The cells of each question that a report supports; refused where it is none that a client sends."""
        if len(report.answers) != len(self.questions):
            what = f"a report has {len(self.questions)} answers"
            raise Refused(ErrorCode.REPORT, what, fix="send what a client of this survey makes")
        return tuple(question.support(sent) for question, sent in zip(self.questions, report.answers, strict=True))

    @property
    def _names(self) -> str:
        return ", ".join(question.name for question in self.questions)


def _canonical(form: dict[str, Any]) -> bytes:
    return json.dumps(form, sort_keys=True, separators=(",", ":")).encode()
