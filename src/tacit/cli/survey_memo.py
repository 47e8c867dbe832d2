"""What a person's coins gave, kept on their own machine: randomized answers only, never a true one.

A line is a survey that was answered, with what it cost and what was drawn:

    {"id":"habits","title":"Habits","epsilon":5.1,"collector":"https://survey.example","report":{...}}
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import Code, ParameterError, Refused

if TYPE_CHECKING:
    from tacit.local.survey.form import Survey
    from tacit.local.survey.reports import Report

_ROUNDING = 1 + 1e-9  # a sum of epsilons is rounded up


@dataclass(frozen=True)
class Answered:
    """A survey that was answered from here. `collector` is its address, or nothing where it came as a file."""

    id: str
    title: str
    epsilon: float
    collector: str
    digest: str
    report: str


def place_of(survey: Survey) -> Path:
    """Where the report to a survey is kept, unless a file is named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tacit" / "surveys" / f"{survey.digest}.json"


def answered(memo: Path | None, survey: Survey) -> list[Answered]:
    """All surveys that were answered before: those of the file that is named, else those of this user."""
    places = [memo] if memo is not None else sorted(place_of(survey).parent.glob("*.json"))
    return [entry for place in places for entry in _read(place)]


def recall(earlier: list[Answered], survey: Survey) -> Report | None:
    """The report that was drawn for exactly this survey; None where there is none."""
    for entry in earlier:
        if entry.digest == survey.digest:
            return survey.accept(entry.report)
    return None


def weigh(
    earlier: list[Answered], survey: Survey, collector: str, *, again: bool = False, at_most: float | None = None
) -> list[str]:
    """What answering would cost on top of what was answered before, in words; refused where that is too much.

    Coins that are tossed anew for another edition of one survey are independent of the first: the epsilons add up.
    """
    editions = [entry for entry in earlier if entry.id == survey.id]
    before = sum(entry.epsilon for entry in editions)
    total = survey.epsilon + before
    if editions and not again:
        title = editions[-1].title
        what = (
            f'you answered another survey with the id "{survey.id}" before, or this one before it was changed, at '
            f'epsilon {before:.4g}: "{title}". This one would toss new coins: epsilon {survey.epsilon:.4g} more, '
            f"{total:.4g} in all"
        )
        raise Refused(Code.BUDGET, what, fix="answer the one you had, or accept the cost with --again")
    if at_most is not None and total > at_most * _ROUNDING:
        what = f"this survey costs epsilon {total:.4g}, more than --at-most {at_most:g}"
        raise Refused(Code.BUDGET, what, fix="do not answer it, or ask its author for a smaller epsilon")
    told = []
    if editions:
        told.append(f"With its earlier editions it costs you epsilon {total:.4g} in all.")
    others = [entry for entry in earlier if entry.id not in {"", survey.id} and entry.collector == collector]
    if others:
        count = "1 other survey" if len(others) == 1 else f"{len(others)} other surveys"
        whose = f"of {collector}" if collector else "that came as files"
        paid = sum(entry.epsilon for entry in others)
        both = f"at epsilon {paid:.4g}; with this one it is {paid + total:.4g} in all."
        told.append(f"You answered {count} {whose} before, {both}")
    return told


def keep(place: Path, survey: Survey, report: Report, collector: str) -> None:
    """Write it down, on the disk before it is used, for this user's eyes only."""
    about = {"id": survey.id, "title": survey.title, "epsilon": survey.epsilon, "collector": collector}
    line = json.dumps({**about, "report": json.loads(report.to_json())}, separators=(",", ":"))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(file, "a", encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            if any(entry.digest == survey.digest for entry in _read(place)):
                raise ParameterError("memo", "this survey was answered at this very moment", fix="run it again")
            opened.write(line + "\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise ParameterError("memo", f"{place} cannot be written", fix="name another file with --memo") from error


def _read(place: Path) -> list[Answered]:
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
        return [_entry(line) for line in lines if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError, Refused) as error:
        what = f"{place} is not what was drawn for a survey"
        raise ParameterError("memo", what, fix="move it away, or name another file with --memo") from error


def _entry(line: str) -> Answered:
    from tacit.local.survey.reports import read_report

    found = json.loads(line)
    if "report" not in found:  # a report alone, as it was kept once
        found = {"id": "", "title": "", "epsilon": 0.0, "collector": "", "report": found}
    report = read_report(json.dumps(found["report"]))
    name, title, collector = (str(found[key]) for key in ("id", "title", "collector"))
    return Answered(name, title, float(found["epsilon"]), collector, report.survey, report.to_json())
