"""What a person's coins gave, kept on their own machine: randomized answers only, never a true one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import ParameterError, Refused

if TYPE_CHECKING:
    from tacit.local.survey.form import Survey
    from tacit.local.survey.reports import Report


def place_of(survey: Survey) -> Path:
    """Where the report to a survey is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tacit" / "surveys" / f"{survey.digest}.json"


def recall(place: Path, survey: Survey) -> Report | None:
    """The report that was drawn before; None where there is none."""
    try:
        return survey.accept(place.read_bytes().strip())
    except FileNotFoundError:
        return None
    except (OSError, Refused) as error:
        what = f"{place} is not what was drawn for this survey"
        raise ParameterError("memo", what, fix="move it away, or name another file with --memo") from error


def keep(place: Path, report: Report) -> None:
    """Write it down, on the disk before it is used, for this user's eyes only."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as opened:
            opened.write(report.to_json() + "\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise ParameterError("memo", f"{place} cannot be written", fix="name another file with --memo") from error
