"""The page of a survey: the questions, their probabilities, and what a report reveals at most.

>>> format_posterior(Fraction(3))  # from 1 in 2 to 3 in 4
'75 %'
>>> format_posterior(Fraction(220265, 10))  # epsilon 10
'99.996 %'
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

from tacit.local.survey.choices import MultipleChoiceQuestion
from tacit.local.survey.form import Survey
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.outlook import CONVINCING_ODDS
from tacit.local.survey.questions import SurveyQuestion
from tacit.local.survey.rounding import places_up
from tacit.local.survey.words import (
    describe_answer_bound,
    describe_randomization,
    describe_report_bound,
    epsilon_text,
    format_number,
)

_NEARLY = Fraction(1, 10**6)


@dataclass(frozen=True)
class PrivacyStatement:
    """The privacy guarantee of a survey in words, and the text beside the randomized answers."""

    head: str
    proves: str
    outcome: str
    hides_little: bool


def state_privacy(survey: Survey) -> PrivacyStatement:
    """Return the privacy statement that a survey's epsilons support.

    **Theorem.** What an observer considered as likely as not about a respondent has, after a report, a probability of
    at most R/(R + 1), R = e^epsilon. Proof: Bayes' rule multiplies the odds, 1 before, by a ratio of at most R.

    A report is said to prove nothing where that stays within 95 %: for all of it, or at least for each answer.
    """
    together, one = survey.odds, max(question.epsilon.odds for question in survey.questions)
    stays, thought = "Your true answers stay here", "what someone thought 50 % likely"
    unsure = "Some of these may be what you said and some may not: nobody can be sure which."
    if together <= CONVINCING_ODDS:
        most = format_posterior(together)
        proves = f"So nothing that is sent proves anything about you: {thought} becomes {most} at most."
        return PrivacyStatement(stays, proves, unsure, False)
    if one <= CONVINCING_ODDS:
        proves = (
            f"So no answer that is sent proves anything about you, but all together tell much: {thought} becomes "
            f"{format_posterior(one)} at most by one of them, {format_posterior(together)} at most by all."
        )
        return PrivacyStatement(stays, proves, unsure, False)
    after = format_posterior(one)
    proves = f"The coins seldom change what you say: {thought} can become {after} by one answer, nearly a proof."
    return PrivacyStatement("This survey hides little", proves, "Most of it is likely to be just what you said.", True)


def format_posterior(odds: Fraction) -> str:
    """Format what a probability of 1/2 becomes at most, in percent, rounded up, and never to 100."""
    left = 100 / (1 + Fraction(odds))  # the distance to certainty
    if left < _NEARLY:
        return "nearly 100 %"
    digits = next(digits for digits in itertools.count() if left * 10**digits >= 1)
    return f"{places_up(100 - left, digits)} %"


def render_page(survey: Survey, template: str, version: str) -> str:
    """Render the page; every text of the survey is escaped."""
    environment = Environment(
        loader=DictLoader({"survey.html": template}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    form = json.dumps({**survey.form(), "digest": survey.digest}, ensure_ascii=False, separators=(",", ":"))
    return environment.get_template("survey.html").render(
        survey=survey,
        form=form,
        questions=[_describe_question(question) for question in survey.questions],
        promise=state_privacy(survey),
        total=describe_report_bound(survey.odds),
        epsilon=epsilon_text(survey.total.epsilon),
        version=version,
    )


def _describe_question(question: SurveyQuestion) -> dict[str, Any]:
    """Return what the page displays of one question."""
    about: dict[str, Any] = {
        "question": question,
        "chances": describe_randomization(question).replace(" %", "\u00a0%"),
        "surer": describe_answer_bound(question.epsilon.odds),
        "missing": "Please answer this: leaving it out would tell something.",
    }
    if isinstance(question, MultipleChoiceQuestion):
        about["missing"] = f"Please choose at most {question.most}."
    if isinstance(question, NumberQuestion):
        ends = {name: format_number(getattr(question, name)) for name in ("lower", "upper", "step")}
        about |= ends | {"missing": f"Please give a number from {ends['lower']} to {ends['upper']}, in plain digits."}
    return about
