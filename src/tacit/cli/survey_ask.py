"""Someone answers, at a terminal or from a file. All that is said goes to standard error; the report does not."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import typer

from tacit.errors import ParameterError, TacitError
from tacit.terminal import one_line

if TYPE_CHECKING:
    from tacit.local.survey.form import Survey
    from tacit.local.survey.questions import SurveyQuestion, TrueAnswer
    from tacit.local.survey.reports import SurveyReport


def read_answers(path: Path) -> dict[str, Any]:
    """The answers of a TOML file. No error shows one."""
    import tomllib
    from decimal import Decimal

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        what = f"{path.name} cannot be read as TOML"
        raise ParameterError("answers", what, fix='a line for each question: cheated = "no"') from error


def show_introduction(survey: Survey) -> None:
    """What the survey is, and what answering it tells at most."""
    from tacit.local.survey.outlook import warn_large_epsilons
    from tacit.local.survey.words import describe_report_bound

    for words in filter(None, (survey.title, survey.about)):
        print_to_stderr(*quote_lines(words))
    print_to_stderr(describe_report_bound(survey.odds))
    print_to_stderr(*(f"Note: {each}" for each in warn_large_epsilons(survey)))


def show_probabilities(survey: Survey) -> None:
    """The probabilities of every question, for someone whose answers are in a file."""
    from tacit.local.survey.words import describe_randomization

    print_to_stderr(*(f"  {question.name}: {describe_randomization(question)}" for question in survey.questions))


def ask_questions(survey: Survey) -> list[TrueAnswer]:
    """The answers of someone at the terminal, who is told the probabilities first, and then what was understood."""
    print_to_stderr("Nothing is written or sent while you answer. Ctrl-C stops.")
    return [_ask_question(question) for question in survey.questions]


def show_report(survey: Survey, report: SurveyReport) -> None:
    """What goes out, in words, to whoever sends it."""
    from tacit.local.survey.words import describe_report_bound, describe_sent

    print_to_stderr("What the coins left, and all that is sent:")
    for question, sent in zip(survey.questions, report.answers, strict=True):
        print_to_stderr(*_wrap_lines(f"  {question.name}: ", describe_sent(question, sent), _columns()))
    print_to_stderr(describe_report_bound(survey.odds))


def confirm(question: str) -> bool:
    """Whether someone at the terminal says yes."""
    return _read_line(f"{question} [y/N]").strip().lower() in {"y", "yes"}


def print_to_stderr(*lines: str) -> None:
    """Lines for whoever sits here. None becomes two, whatever words of a survey are in it."""
    for line in lines:
        typer.echo(one_line(line), err=True)


def quote_lines(text: str, width: int | None = None) -> list[str]:
    """A survey's own words, a mark before each line: none can pass for one of the command's."""
    return [line for part in text.split("\n") for line in _wrap_lines("| ", part, width or _columns(), "| ")]


def _wrap_lines(first: str, text: str, width: int, rest: str = "    | ") -> list[str]:
    """Words in lines that a terminal does not break: what stands before the first, and before the rest."""
    words = " ".join(one_line(text).split())
    wide = any(east_asian_width(character) in "WFA" for character in words)  # may take two columns
    room = max(1, (width - len(max(first, rest, key=len))) // (2 if wide else 1))
    lines = textwrap.wrap(words, room, break_on_hyphens=False) or [""]
    return [(rest if number else first) + line for number, line in enumerate(lines)]


def _columns() -> int:
    return max(40, get_terminal_size().columns)


def _ask_question(question: SurveyQuestion) -> TrueAnswer:
    from tacit.local.survey.choices import MultipleChoiceQuestion
    from tacit.local.survey.numbers import NumberQuestion
    from tacit.local.survey.words import describe_answer_bound, describe_randomization, format_range

    print_to_stderr(
        "",
        *quote_lines(question.text),
        f"  {describe_randomization(question)} {describe_answer_bound(question.epsilon.odds)}",
    )
    hint = "The number before your answer"
    if isinstance(question, NumberQuestion):
        hint = f"A number from {' to '.join(format_range(question))}"
    elif question.kind == "yes-no":
        hint = "yes or no"
    else:
        for number, option in enumerate(question.cells, start=1):
            print_to_stderr(*_wrap_lines(f"  {number:>2}) ", option, _columns()))
    if isinstance(question, MultipleChoiceQuestion):
        hint = f"The numbers before your answers, at most {question.most}, with commas between; Enter for none"
    while True:
        try:
            truth = question.choose(_read_line(f"  {hint}"))
        except TacitError as error:
            print_to_stderr(f"  {error.what}")
            continue
        print_to_stderr(*_wrap_lines("  Your answer: ", question.describe_answer(truth), _columns()))
        return truth


def _read_line(text: str) -> str:
    """A line that is typed. Python's `input` would write to standard output."""
    typer.echo(one_line(f"{text}: "), err=True, nl=False)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.rstrip("\n")
