"""Reads a `Survey` from a TOML file or from its public form. Each error names its location and its fix.

>>> survey = parse_survey({"id": "lunch", "epsilon": 2, "questions": [
...     {"name": "soup", "text": "Was the soup good?", "kind": "yes-no"},
...     {"name": "dish", "text": "Your favorite?", "kind": "choice", "options": ["Fish", "Rice", "Beans"]}]})
>>> [str(question.epsilon) for question in survey.questions]
['1', '1']
>>> load_public_form(survey.to_json()) == survey
True
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.arithmetic import to_rational
from tacit.errors import ParameterError
from tacit.local.strict_json import parse
from tacit.local.survey.choices import ChoiceQuestion, MultipleChoiceQuestion, YesNoQuestion
from tacit.local.survey.form import Survey
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.questions import SurveyQuestion
from tacit.local.survey.thresholds import SurveyEpsilon
from tacit.terminal import one_line

_LARGEST = 2**20  # bytes of a file
_MOST_QUESTIONS = 50
_FARTHEST = 10**30  # of the ends of a range
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RATIO = re.compile(r"-?[0-9]{1,30}(/[1-9][0-9]{0,30})?")
_KEYS_BY_KIND: dict[str, set[str]] = {
    "yes-no": set(),
    "choice": {"options"},
    "several": {"options", "most"},
    "number": {"lower", "upper", "step", "unit"},
}
_ALL = {"name", "text", "kind", "epsilon"}


def load_survey(path: Path) -> Survey:
    """Load the survey of a TOML file, or of its public form as JSON."""
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"{path} cannot be read"
        raise ParameterError("survey", what, fix="write one: tacit survey init") from error
    if len(data) > _LARGEST:
        raise ParameterError("survey", f"{path.name} is too large", fix="ask fewer questions")
    try:
        text = data.decode("utf-8-sig")
        entries = None if path.suffix == ".json" else tomllib.loads(text, parse_float=_decimal)
    except (ValueError, RecursionError) as error:  # a number of more than 4,300 digits is a bare ValueError
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        what = f"{path.name} is not TOML: {reason}"
        raise ParameterError("survey", what, fix="compare it with what tacit survey init writes") from error
    return load_public_form(text) if entries is None else parse_survey(entries)


def load_public_form(text: str) -> Survey:
    """Load the survey of a public form, and check that its thresholds are those of its epsilons."""
    fix = "ask its publisher for the unchanged form"
    try:
        form = parse(text, number=_decimal)
        digest = form.pop("digest")
        questions = [
            {key: value for key, value in each.items() if key not in {"lie", "steps"}} for each in form["questions"]
        ]
        for each in questions:
            if each["kind"] == "yes-no":
                del each["options"]
        entries = {key: value for key, value in form.items() if key != "tacit-survey"}
        found = parse_survey({**entries, "questions": questions})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("survey", "this is not the form of a survey", fix=fix) from error
    if found.form() != form or found.digest != digest:
        what = "the form's probabilities or its digest do not match its epsilons"
        raise ParameterError("survey", what, fix=fix)
    return found


def parse_survey(entries: Mapping[str, Any]) -> Survey:
    """Build the survey of a table, as TOML gives it."""
    _check_keys(entries, {"id", "title", "about", "epsilon", "questions"}, "")
    name = entries.get("id")
    if not isinstance(name, str) or _ID.fullmatch(name) is None:
        raise ParameterError("id", "needs up to 60 lowercase letters, digits and hyphens", fix='id = "lunch-2025"')
    given = entries.get("questions")
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_QUESTIONS:
        raise ParameterError("questions", f"needs 1 to {_MOST_QUESTIONS} questions", fix="add one: [[questions]]")
    for number, each in enumerate(given, start=1):
        named = each.get("name") if isinstance(each, Mapping) else None
        if not isinstance(named, str) or _NAME.fullmatch(named) is None:
            what = "needs a name of lowercase letters, digits, hyphens and underscores"
            raise ParameterError(f"question {number}", what, fix='name = "soup"')
    names = [each["name"] for each in given]
    for number, each in enumerate(names, start=1):
        if each in names[: number - 1]:
            what = f"number {names.index(each) + 1} and number {number} are both named {each}"
            raise ParameterError("questions", what, fix="give each its own name")
    epsilons = _epsilons(entries, given)
    questions = tuple(_question(each, epsilon) for each, epsilon in zip(given, epsilons, strict=True))
    return Survey(name, _text(entries, "title", 200, name), _text(entries, "about", 2000, ""), questions)


def _epsilons(entries: Mapping[str, Any], given: list[Mapping[str, Any]]) -> list[SurveyEpsilon]:
    """Return each question's own epsilon, or an equal part of what the total leaves."""
    own = [
        SurveyEpsilon.read(each["epsilon"], f"{each['name']}.epsilon") if "epsilon" in each else None for each in given
    ]
    without = own.count(None)
    if "epsilon" not in entries:
        if without:
            fix = "epsilon = 4 above the questions, which is split over them, or give each its own"
            raise ParameterError("epsilon", "not every question has one", fix=fix)
        return [epsilon for epsilon in own if epsilon is not None]
    total = SurveyEpsilon.read(entries["epsilon"])
    taken = sum((epsilon.amount for epsilon in own if epsilon is not None), Fraction(0))
    if total.is_logarithm or any(epsilon is not None and epsilon.is_logarithm for epsilon in own):
        what = "a total cannot be split where an epsilon is a logarithm"
        raise ParameterError("epsilon", what, fix="leave out the total, or write decimals")
    if taken > total.amount or (without and taken == total.amount):
        raise ParameterError(
            "epsilon", "the questions' own epsilons add up to more than the total", fix="raise it, or lower theirs"
        )
    if not without:
        return [epsilon for epsilon in own if epsilon is not None]
    rest = SurveyEpsilon.read((total.amount - taken) / without)
    return [rest if epsilon is None else epsilon for epsilon in own]


def _question(each: Mapping[str, Any], epsilon: SurveyEpsilon) -> SurveyQuestion:
    name, kind = each["name"], each.get("kind")
    if not isinstance(kind, str) or kind not in _KEYS_BY_KIND:
        raise ParameterError(f"{name}.kind", f"must be one of {', '.join(_KEYS_BY_KIND)}", fix='kind = "yes-no"')
    _check_keys(each, _ALL | _KEYS_BY_KIND[kind], f"{name}.")
    text = _text(each, "text", 500, None, name)
    match kind:
        case "yes-no":
            return YesNoQuestion(name, text, epsilon)
        case "choice":
            return ChoiceQuestion(name, text, epsilon, _options(each))
        case "several":
            options = _options(each)
            return MultipleChoiceQuestion(name, text, epsilon, options, each.get("most", len(options)))
    lower, upper = (_number(each, end, None) for end in ("lower", "upper"))
    step = _number(each, "step", (upper - lower) / 1000)
    return NumberQuestion(name, text, epsilon, lower, upper, step, _text(each, "unit", 30, "", name))


def _options(each: Mapping[str, Any]) -> tuple[str, ...]:
    given = each.get("options")
    place = f"{each['name']}.options"
    if not isinstance(given, list):
        raise ParameterError(place, "needs a list of texts", fix='options = ["Soup", "Salad"]')
    return tuple(_check_text(place, option, 120) for option in given)


def _number(each: Mapping[str, Any], key: str, default: Fraction | None) -> Fraction:
    name, given = f"{each['name']}.{key}", each.get(key, default)
    if given is None:
        raise ParameterError(name, "is missing", fix=f"{key} = 0")
    number = Fraction(given) if isinstance(given, str) and _RATIO.fullmatch(given) else to_rational(name, given)
    if abs(number) > _FARTHEST:
        raise ParameterError(name, f"must be between -{_FARTHEST:.0e} and {_FARTHEST:.0e}", fix="use a larger unit")
    return number


def _text(entries: Mapping[str, Any], key: str, longest: int, default: str | None, name: str = "") -> str:
    place, given = f"{name}.{key}" if name else key, entries.get(key, default)
    if given is None:
        raise ParameterError(place, "is missing", fix=f'{key} = "..."')
    return given if given == default else _check_text(place, given, longest)


def _check_text(place: str, given: Any, longest: int) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > longest:
        raise ParameterError(place, f"needs a text of at most {longest} characters", fix='in quotes: "..."')
    if not all(c.isprintable() or c == "\n" for c in given):
        raise ParameterError(place, "has characters that cannot be printed", fix="leave them out")
    return given


def _check_keys(entries: Mapping[str, Any], known: set[str], place: str) -> None:
    for key in entries:
        if key not in known:
            name = one_line(str(key), 60)
            raise ParameterError(f"{place}{name}", "is not a known key", fix=f"use {', '.join(sorted(known))}")


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("Infinity")
