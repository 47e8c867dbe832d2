"""What a person is told before anything is sent: the chances, what it tells others, and what would go out.

>>> from tacit.local.survey.load import survey_of
>>> survey = survey_of({"id": "coins", "questions": [
...     {"name": "a", "text": "Cheated?", "kind": "yes-no", "epsilon": "ln 3"}]})
>>> chances(survey.questions[0])
'With probability 3/4 your true answer is sent, with probability 1/4 the opposite.'
>>> surer(survey.questions[0].price.odds)
'Whoever sees it can become at most 3 times surer of any answer of yours.'
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tacit.local.survey.choices import Choice, Several
from tacit.local.survey.numbers import Number
from tacit.local.survey.questions import Question
from tacit.local.survey.results import MOST_PEOPLE
from tacit.local.survey.rounding import decimal, round_up

_MILLION, _LEGIBLE = 10**6, 10**15  # factors with fewer digits, and those that are written out
_TINY = Fraction(1, 10**4)
_SIMPLE = 20  # the largest denominator of a chance that is told as a fraction


def chances(question: Question) -> str:
    """How an answer is randomized, in a sentence or two, from the integers that are used."""
    own, turned = told(question.own), told(1 - question.own)
    match question:
        case Number():
            low, high = ends(question)
            return (
                f"Your number is first turned into {low} or {high}, at random: the nearer it is to one of them, the "
                f"likelier that one. Then with probability {own} that end is sent, with probability {turned} the other."
            )
        case Several():
            return f"Each box on its own: with probability {own} it is sent as you left it, with {turned} the opposite."
        case Choice() if len(question.options) > 2:
            return (
                f"With probability {own} your true answer is sent; otherwise one of the other "
                f"{len(question.options) - 1}, each with probability {told(question.other)}."
            )
    return f"With probability {own} your true answer is sent, with probability {turned} the opposite."


def surer(odds: Fraction) -> str:
    """What one answer tells at most: Bayes' rule, with a ratio of at most e^epsilon."""
    return f"Whoever sees it can become at most {times(odds)} times surer of any answer of yours."


def surer_of_all(odds: Fraction) -> str:
    """The same for a whole report: answers that go together tell of each other too."""
    return f"Whoever sees all of it can become at most {times(odds)} times surer of anything you answered."


def times(odds: Fraction) -> str:
    """A factor of at least 1, rounded up to three digits or to a whole number, from a million on to two digits.

    The page rounds in the same way: tests/local/survey_bounds.json has what both say.
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
    """An epsilon, rounded up to four digits, or to a whole number where it has more."""
    return decimal(round_up(epsilon, max(4, len(str(int(epsilon))))))


def legible(number: Fraction) -> str:
    """A bound that is not negative, rounded up to three digits; with an exponent where it has too many."""
    found = round_up(number, 3)
    if found and not _TINY <= found < _MILLION:
        return f"{float(found):.3g}"
    return decimal(found)


def people(number: int | None) -> str:
    """So many people; None are more than can be counted."""
    if number is None:
        return f"more than {MOST_PEOPLE:,} people"
    return "1 person" if number == 1 else f"{number:,} people"


def says(question: Question, sent: Any) -> str:
    """What a randomized answer looks like to whoever receives it."""
    if isinstance(question, Number):
        return ends(question)[int(sent)]
    return question.shown(sent)


def ends(question: Number) -> tuple[str, str]:
    """The ends of a range, with their unit."""
    unit = f" {question.unit}" if question.unit else ""
    return f"{plain(question.lower)}{unit}", f"{plain(question.upper)}{unit}"


def plain(number: Fraction) -> str:
    """A number without an exponent where it is of everyday size."""
    return f"{float(number):.12g}"


def told(chance: Fraction) -> str:
    """A chance: a simple fraction where it is exactly that, else percent; never 0 or 100 where it is neither."""
    if chance.denominator <= _SIMPLE:
        return str(chance)
    texts = (f"{100 * float(chance):.{digits}f}" for digits in range(1, 15))
    return next((text for text in texts if 0 < float(text) < 100), f"{100 * float(chance):.3g}") + " %"
