"""Texts for respondents, before anything is sent: the probabilities, what a report reveals, and what would be sent.

>>> from tacit.local.survey.load import parse_survey
>>> survey = parse_survey({"id": "coins", "questions": [
...     {"name": "a", "text": "Cheated?", "kind": "yes-no", "epsilon": "ln 3"}]})
>>> describe_randomization(survey.questions[0])
'With probability 3/4 your true answer is sent, with probability 1/4 the opposite.'
>>> describe_answer_bound(survey.questions[0].epsilon.odds)
'Whoever sees it can become at most 3 times surer of any answer of yours.'
"""

from __future__ import annotations

from fractions import Fraction

from tacit.local.survey.choices import ChoiceQuestion, MultipleChoiceQuestion
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.questions import RandomizedAnswer, SurveyQuestion
from tacit.local.survey.results import MAX_RESPONDENTS
from tacit.local.survey.rounding import decimal, round_up

_MILLION, _LEGIBLE = 10**6, 10**15  # factors below it are written exactly, and those below it without an exponent
_TINY = Fraction(1, 10**4)
_SIMPLE = 20  # the largest denominator of a probability that is written as a fraction


def describe_randomization(question: SurveyQuestion) -> str:
    """Describe how an answer is randomized, from the thresholds that are used."""
    own, flipped = format_probability(question.own), format_probability(1 - question.own)
    match question:
        case NumberQuestion():
            low, high = format_range(question)
            return (
                f"Your number is first turned into {low} or {high}, at random: the nearer it is to one of them, the "
                f"likelier that one. Then with probability {own} that end is sent, with probability {flipped} the "
                "other."
            )
        case MultipleChoiceQuestion():
            return (
                f"Each box on its own: with probability {own} it is sent as you left it, with {flipped} the opposite."
            )
        case ChoiceQuestion() if len(question.options) > 2:
            return (
                f"With probability {own} your true answer is sent; otherwise one of the other "
                f"{len(question.options) - 1}, each with probability {format_probability(question.other)}."
            )
    return f"With probability {own} your true answer is sent, with probability {flipped} the opposite."


def describe_answer_bound(odds: Fraction) -> str:
    """Describe what one answer reveals at most: Bayes' rule, with a ratio of at most e^epsilon."""
    return f"Whoever sees it can become at most {format_factor(odds)} times surer of any answer of yours."


def describe_report_bound(odds: Fraction) -> str:
    """Describe what a whole report reveals at most: its answers may be related."""
    return f"Whoever sees all of it can become at most {format_factor(odds)} times surer of anything you answered."


def format_factor(odds: Fraction) -> str:
    """Format a factor of at least 1, rounded up to three digits or to a whole number, from a million on to two digits.

    The page rounds in the same way: tests/local/survey_bounds.json has what both write.
    """
    if odds < _MILLION:
        digits = max(3, len(str(int(odds))))
        return decimal(round_up(odds, digits), comma=",")
    found = round_up(odds, 2)
    if found < _LEGIBLE:
        return decimal(found, comma=",")
    written = str(int(found))
    return f"{written[0]}.{written[1]}e+{len(written) - 1}"


def epsilon_text(epsilon: Fraction) -> str:
    """Format an epsilon, rounded up to four digits, or to a whole number where it has more."""
    return decimal(round_up(epsilon, max(4, len(str(int(epsilon))))))


def legible(number: Fraction) -> str:
    """Format a bound that is not negative, rounded up to three digits; with an exponent where it has too many."""
    found = round_up(number, 3)
    if found and not _TINY <= found < _MILLION:
        return f"{float(found):.3g}"
    return decimal(found)


def format_people(number: int | None) -> str:
    """Format a number of people; None is more than can be counted."""
    if number is None:
        return f"more than {MAX_RESPONDENTS:,} people"
    return "1 person" if number == 1 else f"{number:,} people"


def describe_sent(question: SurveyQuestion, sent: RandomizedAnswer) -> str:
    """Describe a randomized answer as its receiver sees it."""
    if isinstance(question, NumberQuestion):
        return format_range(question)[int(sent)]
    return question.describe_answer(sent)


def format_range(question: NumberQuestion) -> tuple[str, str]:
    """Format the ends of a range, with their unit."""
    unit = f" {question.unit}" if question.unit else ""
    return f"{format_number(question.lower)}{unit}", f"{format_number(question.upper)}{unit}"


def format_number(number: Fraction) -> str:
    """Format a number, without an exponent unless it is very large or small."""
    return f"{float(number):.12g}"


def format_probability(probability: Fraction) -> str:
    """Format a probability: a simple fraction where it is exactly that, else percent; never 0 or 100 by rounding."""
    if probability.denominator <= _SIMPLE:
        return str(probability)
    texts = (f"{100 * float(probability):.{digits}f}" for digits in range(1, 15))
    return next((text for text in texts if 0 < float(text) < 100), f"{100 * float(probability):.3g}") + " %"
