"""A survey before publication: what each question reveals, how wide its intervals will be, and warnings.

>>> from tacit.local.survey.load import parse_survey
>>> survey = parse_survey({"id": "coins", "questions": [
...     {"name": "cheated", "text": "Cheated?", "kind": "yes-no", "epsilon": "ln 3"},
...     {"name": "hidden", "text": "Hidden?", "kind": "yes-no", "epsilon": 8}]})
>>> cheated, hidden = forecast_survey(survey, people=200)
>>> describe_inference(cheated.question)
'If 10 % would truly say yes, a yes makes it 25.0 % for its sender, a no 3.5 %.'
>>> print(describe_accuracy(cheated))
200 people give intervals within 14.3 points up and down; 1,574 people give 5 points.
>>> print(warn_large_epsilons(survey)[0])
hidden: epsilon 8 hides little. The true answer is sent with probability 99.97 %.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.arithmetic import Number, to_integer
from tacit.local.survey.choices import MultipleChoiceQuestion, YesNoQuestion
from tacit.local.survey.form import Survey
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.questions import SurveyQuestion
from tacit.local.survey.results import TARGET_HALF_WIDTH, required_respondents, worst_half_width
from tacit.local.survey.rounding import places_down, places_up
from tacit.local.survey.words import (
    describe_randomization,
    epsilon_text,
    format_factor,
    format_people,
    format_probability,
    format_range,
    legible,
)
from tacit.mechanisms.validation import check_probability

CONVINCING_ODDS = 19.0  # odds of 19 to 1 raise a probability of 1/2 to 95 %, a customary level of significance
LARGE_TOTAL_EPSILON = 10  # of a whole survey: a report can change odds by a factor of 22,000
WIDE_HALF_WIDTH = Fraction(1, 10)  # an interval that is wider is of little use
_PRIOR = Fraction(1, 10)


@dataclass(frozen=True)
class QuestionForecast:
    """The expected accuracy of a question. `half_width` is a share, or a part of a number's range, at most."""

    question: SurveyQuestion
    people: int | None
    half_width: float | None  # None where the number of people is not known
    required_users: int | None  # for a half width of five points; None where they are too many to count

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        about = {"name": self.question.name, "text": self.question.text, "kind": self.question.kind}
        bound = {"epsilon": str(self.question.epsilon), "exact_odds": float(self.question.ratio)}
        probabilities = {
            "own": float(self.question.own),
            "other": float(self.question.other),
            "chances": describe_randomization(self.question),
        }
        size = {"reach": self.half_width, "needed": self.required_users}
        return {**about, **bound, **probabilities, **size}


def forecast_survey(survey: Survey, people: int | None = None, confidence: Number = 0.95) -> list[QuestionForecast]:
    """Forecast the accuracy of each question, if so many people answer."""
    level = check_probability("confidence", confidence)
    if people is not None:
        to_integer("people", people, least=1)
    return [
        QuestionForecast(
            question,
            people,
            None if people is None else worst_half_width(question, people, level),
            required_respondents(question, level),
        )
        for question in survey.questions
    ]


def render_forecast(survey: Survey, found: Sequence[QuestionForecast], width: int = 90) -> str:
    """Render all questions, each with its probabilities, what it reveals about a respondent, and its accuracy."""
    count = len(survey.questions)
    asked = "1 question" if count == 1 else f"{count} questions"
    total = (
        f"Whoever sees all of a report can become at most {format_factor(survey.odds)} times surer of anything in it."
    )
    lines = textwrap.wrap(
        f"{survey.title}: {asked}, epsilon {epsilon_text(survey.total.epsilon)} in all. {total}", width
    )
    for each in found:
        question = each.question
        lines += ["", *textwrap.wrap(f"{question.text} ({question.name}, epsilon {question.epsilon})", width)]
        for text in (describe_randomization(question), describe_inference(question), describe_accuracy(each)):
            whole = text.replace(" %", "\u00a0%")  # a number and its sign stay on one line
            lines += textwrap.wrap(whole, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines).replace("\u00a0%", " %")


def describe_inference(question: SurveyQuestion) -> str:
    """Describe what a report reveals about its sender, by Bayes' rule, where a tenth of all have the answer.

    With the probabilities p and q that it is sent by those who have it and by others, it is r p/(r p + (1 - r) q) after
    it was sent, and the same with 1 - p and 1 - q after it was not. Both are rounded away from r: neither is
    understated.
    """

    def after(own: Fraction, other: Fraction) -> Fraction:
        return 100 * _PRIOR * own / (_PRIOR * own + (1 - _PRIOR) * other)

    sent = places_up(after(question.own, question.other), 1) + " %"
    unsent = places_down(after(1 - question.own, 1 - question.other), 1) + " %"
    match question:
        case NumberQuestion():
            low, high = format_range(question)
            return (
                f"If 10 % are truly at {high} and all others at {low}, sending {high} makes it {sent} for its sender, "
                f"sending {low} {unsent}."
            )
        case YesNoQuestion():
            return f"If 10 % would truly say yes, a yes makes it {sent} for its sender, a no {unsent}."
        case MultipleChoiceQuestion():
            return (
                f"If 10 % would truly check a box, a checked one makes it {sent} for its sender, an empty one {unsent}."
            )
    return f"If 10 % would truly choose an option, sending it makes it {sent} for its sender, sending another {unsent}."


def describe_accuracy(found: QuestionForecast) -> str:
    """Describe how wide the intervals are with so many people, and how many five points take."""
    if found.people is None or found.half_width is None:
        close = format_half_width(found.question, TARGET_HALF_WIDTH)
        return f"{format_people(found.required_users)} give intervals within {close} up and down."
    enough = f"{format_people(found.required_users)} give {format_half_width(found.question, TARGET_HALF_WIDTH)}."
    if found.half_width >= 0.5:
        return f"With {format_people(found.people)} the intervals say nothing; {enough}"
    within = format_half_width(found.question, found.half_width)
    return f"{format_people(found.people)} give intervals within {within} up and down; {enough}"


def format_half_width(question: SurveyQuestion, part: Fraction | float) -> str:
    """Format a half width, rounded up: points of a share, or a number in its unit."""
    whole = Fraction(part) * (question.upper - question.lower if isinstance(question, NumberQuestion) else 100)
    return f"{legible(whole)} {(question.unit or 'of its unit') if isinstance(question, NumberQuestion) else 'points'}"


def warn_large_epsilons(survey: Survey) -> list[str]:
    """Return a warning for each question of a large epsilon, and for a large sum."""
    found = []
    for question in survey.questions:
        if question.epsilon.odds > CONVINCING_ODDS:
            match question:
                case NumberQuestion():
                    what = "The end that was drawn is sent"
                case MultipleChoiceQuestion():
                    what = "Each box is sent as it was left"
                case _:
                    what = "The true answer is sent"
            warning = f"{question.name}: epsilon {question.epsilon} hides little."
            found.append(f"{warning} {what} with probability {format_probability(question.own)}.")
    if survey.total.epsilon > LARGE_TOTAL_EPSILON and len(survey.questions) > 1:
        total = f"all answers together: epsilon {epsilon_text(survey.total.epsilon)} hides little."
        surer = f"Whoever sees them can become {format_factor(survey.odds)} times surer of anything in them."
        found.append(f"{total} {surer}")
    return found


def warn_design(survey: Survey, found: Sequence[QuestionForecast]) -> list[str]:
    """Return what an author may want to change before publication."""
    warnings = warn_large_epsilons(survey)
    wide = [
        f"{each.question.name} ({format_half_width(each.question, each.half_width)})"
        for each in found
        if each.half_width is not None and each.half_width > WIDE_HALF_WIDTH
    ]
    if wide:
        fix = "ask more people, fewer options, or fewer questions at a larger epsilon each"
        warnings.append(f"too few people: intervals this wide say little, of {', '.join(wide)}; {fix}.")
    for each in found:
        question = each.question
        if isinstance(question, MultipleChoiceQuestion) and question.most < len(question.options) <= 2 * question.most:
            useful = (len(question.options) - 1) // 2
            fix = f"most = {useful} or less would make it more accurate" if useful else "leave it out"
            warnings.append(f"{question.name}: most = {question.most} changes nothing with so few options; {fix}.")
    return warnings
