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
    from tacit.local.survey.questions import Question
    from tacit.local.survey.reports import Report


def written(path: Path) -> dict[str, Any]:
    """The answers of a TOML file. No error shows one."""
    import tomllib
    from decimal import Decimal

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        what = f"{path.name} cannot be read as TOML"
        raise ParameterError("answers", what, fix='a line for each question: cheated = "no"') from error


def introduce(survey: Survey) -> None:
    """What the survey is, and what answering it tells at most."""
    from tacit.local.survey.outlook import dear
    from tacit.local.survey.words import surer_of_all

    for words in filter(None, (survey.title, survey.about)):
        say(*quoted(words))
    say(surer_of_all(survey.odds))
    say(*(f"Note: {each}" for each in dear(survey)))


def warn_of_chances(survey: Survey) -> None:
    """The chances of every question, for someone whose answers are in a file."""
    from tacit.local.survey.words import chances

    say(*(f"  {question.name}: {chances(question)}" for question in survey.questions))


def asked(survey: Survey) -> list[Any]:
    """The answers of someone at the terminal, who is told the chances first, and then what was understood."""
    say("Nothing is written or sent while you answer. Ctrl-C stops.")
    return [_answer(question) for question in survey.questions]


def show(survey: Survey, report: Report) -> None:
    """What goes out, in words, to whoever sends it."""
    from tacit.local.survey.words import says, surer_of_all

    say("What the coins left, and all that is sent:")
    for question, sent in zip(survey.questions, report.answers, strict=True):
        say(*_marked(f"  {question.name}: ", says(question, sent), _columns()))
    say(surer_of_all(survey.odds))


def agreed(question: str) -> bool:
    """Whether someone at the terminal says yes."""
    return _typed(f"{question} [y/N]").strip().lower() in {"y", "yes"}


def say(*lines: str) -> None:
    """Lines for whoever sits here. None becomes two, whatever words of a survey are in it."""
    for line in lines:
        typer.echo(one_line(line), err=True)


def quoted(text: str, width: int | None = None) -> list[str]:
    """A survey's own words, a mark before each line: none can pass for one of the command's."""
    return [line for part in text.split("\n") for line in _marked("| ", part, width or _columns(), "| ")]


def _marked(first: str, text: str, width: int, rest: str = "    | ") -> list[str]:
    """Words in lines that a terminal does not break: what stands before the first, and before the rest."""
    words = " ".join(one_line(text).split())
    wide = any(east_asian_width(character) in "WFA" for character in words)  # may take two columns
    room = max(1, (width - len(max(first, rest, key=len))) // (2 if wide else 1))
    lines = textwrap.wrap(words, room, break_on_hyphens=False) or [""]
    return [(rest if number else first) + line for number, line in enumerate(lines)]


def _columns() -> int:
    return max(40, get_terminal_size().columns)


def _answer(question: Question) -> Any:
    from tacit.local.survey.choices import Several
    from tacit.local.survey.numbers import Number
    from tacit.local.survey.words import chances, ends, surer

    say("", *quoted(question.text), f"  {chances(question)} {surer(question.price.odds)}")
    hint = "The number before your answer"
    if isinstance(question, Number):
        hint = f"A number from {' to '.join(ends(question))}"
    elif question.kind == "yes-no":
        hint = "yes or no"
    else:
        for number, option in enumerate(question.cells, start=1):
            say(*_marked(f"  {number:>2}) ", option, _columns()))
    if isinstance(question, Several):
        hint = f"The numbers before your answers, at most {question.most}, with commas between; Enter for none"
    while True:
        try:
            truth = question.choose(_typed(f"  {hint}"))
        except TacitError as error:
            say(f"  {error.what}")
            continue
        say(*_marked("  Your answer: ", question.shown(truth), _columns()))
        return truth


def _typed(text: str) -> str:
    """A line that is typed. Python's `input` would write to standard output."""
    typer.echo(one_line(f"{text}: "), err=True, nl=False)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.rstrip("\n")
