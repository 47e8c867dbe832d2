"""What a person's coins gave, kept on their own machine: randomized answers only, never a true one.

A line is a survey that was answered, with what it cost and what was drawn:

    {"id":"habits","title":"Habits","epsilon":5.1,"epsilons":["ln 3","4"],"collector":"https://survey.example",
     "report":{...}}

It is written before anyone sees the report, so what is kept is at least what was revealed.

**Theorem.** A last line that is incomplete is of a report that nobody has seen: it is left out, and its coins may be
tossed anew. Proof: a report is shown once its line was synced as a whole by whoever drew it, or by whoever reads it
(`_read_synced`). Lines are added and removed by one process at a time, which holds the lock of the file, so a reader
sees no line that is removed later. What is removed is a line whose write or sync failed (`_append`), or an incomplete
last one. A line is one JSON object, and a proper prefix of an object is no JSON: a line that lacks its newline only
is complete, and stays.
"""

from __future__ import annotations

import fcntl
import io
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.terminal import one_line

if TYPE_CHECKING:
    from tacit.local.survey.form import Survey
    from tacit.local.survey.reports import SurveyReport
    from tacit.local.survey.thresholds import Total

_LONGEST = 200  # characters of a title


@dataclass(frozen=True)
class PastResponse:
    """A survey that was answered from here. `collector` is its address, or nothing where it came as a file.

    `cost` is None where it is not known: a report alone was kept once, without the survey's id and epsilon.
    """

    id: str
    title: str
    cost: Total | None
    collector: str
    digest: str
    report: str


def default_path(survey: Survey) -> Path:
    """Where the report to a survey is kept, unless a file is named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tacit" / "surveys" / f"{survey.digest}.json"


def load_responses(memo: Path | None, survey: Survey) -> list[PastResponse]:
    """All surveys that were answered before: those of the file that is named, else those of this user."""
    places = [memo] if memo is not None else sorted(default_path(survey).parent.glob("*.json"))
    return [entry for place in places for entry in _read(place)]


def find_report(earlier: list[PastResponse], survey: Survey) -> SurveyReport | None:
    """The report that was drawn for exactly this survey; None where there is none."""
    for entry in earlier:
        if entry.digest == survey.digest:
            return survey.accept(entry.report)
    return None


def check_total_epsilon(
    earlier: list[PastResponse], survey: Survey, collector: str, *, again: bool = False, at_most: Fraction | None = None
) -> list[str]:
    """What all reports to this survey cost together, in words; refused where that is too much.

    **Theorem.** If this returns, all reports to surveys of this id that were ever drawn here, and the one that is sent
    now, are together T-LDP with T <= `at_most`. Proof: coins that are tossed for different editions are independent, so
    their epsilons add up, each digest once, since what was drawn for it is sent again and never drawn anew; T is that
    sum, exact or rounded up. A report is on the disk before it is shown, so none is missing.
    """
    from tacit.local.survey.words import epsilon_text

    known = any(entry.digest == survey.digest for entry in earlier)
    editions = [entry for entry in earlier if entry.id == survey.id and entry.digest != survey.digest]
    before = _sum(editions)
    total = survey.total + before
    if editions and not again and not known:
        title = one_line(editions[-1].title, _LONGEST)
        what = (
            f'you answered another survey with the id "{survey.id}" before, or this one before it was changed, at '
            f'epsilon {epsilon_text(before.epsilon)}: "{title}". This one would toss new coins: epsilon '
            f"{epsilon_text(survey.total.epsilon)} more, {epsilon_text(total.epsilon)} in all"
        )
        raise Refused(ErrorCode.BUDGET, what, fix="answer the one you had, or accept the cost with --again")
    if at_most is not None:
        _check_limit(earlier, survey, total, at_most)
    told = []
    if editions:
        told.append(f"With its earlier editions it costs you epsilon {epsilon_text(total.epsilon)} in all.")
    others = [entry for entry in earlier if entry.id not in {"", survey.id} and entry.collector == collector]
    if others:
        count = "1 other survey" if len(others) == 1 else f"{len(others)} other surveys"
        whose = f"of {collector}" if collector else "that came as files"
        paid, both = _sum(others), _sum(others) + total
        costs = f"at epsilon {epsilon_text(paid.epsilon)}; with this one it is {epsilon_text(both.epsilon)} in all."
        told.append(f"You answered {count} {whose} before, {costs}")
    return told


def save_response(
    memo: Path | None, survey: Survey, report: SurveyReport, collector: str, *, again: bool, at_most: Fraction | None
) -> None:
    """Write it down, on the disk before it is used, for this user's eyes only.

    What was answered is weighed once more, while no other command can add to it: two that run at once would both have
    found room below one limit.
    """
    place = memo or default_path(survey)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _lock_folder(place.parent) as folder:
            earlier = load_responses(memo, survey)
            if any(entry.digest == survey.digest for entry in earlier):
                raise ParameterError("memo", "this survey was answered at this very moment", fix="run it again")
            check_total_epsilon(earlier, survey, collector, again=again, at_most=at_most)
            file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "r+b", buffering=0) as opened:
                os.fsync(folder)  # the name of a new file is on the disk before its first line
                fcntl.flock(opened, fcntl.LOCK_EX)
                _append(opened, line_of(survey, report, collector).encode() + b"\n")
    except OSError as error:
        raise ParameterError("memo", f"{place} cannot be written", fix="name another file with --memo") from error


def line_of(survey: Survey, report: SurveyReport, collector: str) -> str:
    """What is kept of a survey."""
    price = {"epsilon": survey.epsilon, "epsilons": [str(question.epsilon) for question in survey.questions]}
    about = {"id": survey.id, "title": survey.title, **price, "collector": collector}
    return json.dumps({**about, "report": json.loads(report.to_json())}, separators=(",", ":"))


def entry_of(line: str) -> PastResponse:
    """What a line says."""
    from tacit.local.strict_json import parse
    from tacit.local.survey.reports import parse_report

    found = parse(line)
    if "report" not in found:  # a report alone, as it was kept once
        found = {"id": "", "title": "", "epsilon": None, "collector": "", "report": found}
    report = parse_report(json.dumps(found["report"]))
    name, title, collector = (str(found[key]) for key in ("id", "title", "collector"))
    return PastResponse(name, title, _cost(found), collector, report.survey, report.to_json())


def _cost(found: dict[str, Any]) -> Total | None:
    """The epsilons as they were written, or their sum as a double, which was rounded up."""
    from tacit.local.survey.thresholds import SurveyEpsilon, Total

    if "epsilons" in found:
        return Total.of(SurveyEpsilon.read(str(epsilon)) for epsilon in found["epsilons"])
    epsilon = found["epsilon"]
    if epsilon is None and not found["id"]:
        return None
    if type(epsilon) not in (int, float) or not 0 < epsilon < math.inf:
        raise ValueError("not an epsilon")
    return Total(Fraction(epsilon))


def _sum(entries: list[PastResponse]) -> Total:
    """What the reports to different surveys cost together, where that is known."""
    from tacit.local.survey.thresholds import Total

    costs = {entry.digest: entry.cost for entry in entries if entry.cost is not None}
    return sum(costs.values(), Total())


def _check_limit(earlier: list[PastResponse], survey: Survey, total: Total, at_most: Fraction) -> None:
    from tacit.local.survey.words import epsilon_text

    if total.epsilon > at_most:
        what = f"this survey costs epsilon {epsilon_text(total.epsilon)}, more than --at-most {float(at_most):g}"
        raise Refused(ErrorCode.BUDGET, what, fix="do not answer it, or ask its author for a smaller epsilon")
    if any(entry.cost is None and entry.digest != survey.digest for entry in earlier):
        what = "a report is kept here whose survey and epsilon is not known: it may be an edition of this one"
        raise Refused(ErrorCode.BUDGET, what, fix="if it is of another survey, keep this one apart: --memo FILE")


@contextmanager
def _lock_folder(folder: Path) -> Iterator[int]:
    """Nobody else adds to the memos of a folder meanwhile."""
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield opened
    finally:
        os.close(opened)


def _append(file: io.FileIO, line: bytes) -> None:
    """Write a line after the complete ones, and sync it; where that fails, remove what was written of it."""
    complete = _remove_incomplete(file.readall())
    if complete and not complete.endswith(b"\n"):
        line = b"\n" + line
    try:
        file.truncate(len(complete))
        file.seek(len(complete))
        while line:
            line = line[file.write(line) :]
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            file.truncate(len(complete))
        raise


def _remove_incomplete(data: bytes) -> bytes:
    """The content of a file without its last line, where that is incomplete."""
    end = data.rfind(b"\n") + 1
    return data[:end] if _is_incomplete(data[end:]) else data


def _is_incomplete(line: bytes) -> bool:
    """Whether it begins as lines of a memo do and does not end; anything else is another file's, and is refused."""
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def _read(place: Path) -> list[PastResponse]:
    try:
        lines = _remove_incomplete(_read_synced(place)).decode().splitlines()
        return [entry_of(line) for line in lines if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, Refused) as error:
        what = f"{place} is not what was drawn for a survey"
        raise ParameterError("memo", what, fix="move it away, or name another file with --memo") from error


def _read_synced(place: Path) -> bytes:
    """The content of a file, on the disk as it is read: who wrote it may have been killed before it was synced."""
    with place.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        os.fsync(file.fileno())
        return file.read()
