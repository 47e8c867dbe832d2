"""From files into a store: reports, a line each, or all that another collector kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.errors import ParameterError, Refused
from tacit.terminal import one_line

if TYPE_CHECKING:
    from tacit.local.survey.reports import SurveyReport
    from tacit.local.survey.store import ReportStore

_SHOWN = 10  # bad reports that are told one by one


def collect_files(store: ReportStore, paths: list[Path], as_json: bool) -> None:
    """Take the good ones, those of a file with one sync. Where there are only bad ones, the command has failed."""
    taken, again, bad = 0, 0, []
    for path in paths:
        good, wrong = _read_reports(store, path)
        bad += wrong
        fresh = store.add(good)
        taken, again = taken + sum(fresh), again + len(fresh) - sum(fresh)
    if as_json:
        found = {"taken": taken, "replayed": again, "bad": bad, "reports": store.counts.users}
        print_json(found)
    else:
        typer.echo(f"Taken {taken:,}, there already {again:,}, bad {len(bad):,}; {format_report_count(store)} in all.")
        for each in bad[:_SHOWN]:
            typer.echo(one_line(f"· {each['file']}, line {each['line']} [{each['code']}]: {each['what']}"))
        if len(bad) > _SHOWN:
            typer.echo(f"· and {len(bad) - _SHOWN:,} more")
    if bad and not taken and not again:
        raise typer.Exit(3)


def format_report_count(store: ReportStore) -> str:
    """How many reports there are."""
    return "1 report" if store.counts.users == 1 else f"{store.counts.users:,} reports"


def _read_reports(store: ReportStore, path: Path) -> tuple[list[SurveyReport], list[dict[str, Any]]]:
    """The reports of a file, and what is wrong with the others."""
    from tacit.local.survey.store import is_report_store, parse_store

    data = _read(path)
    if is_report_store(data):
        if not data.endswith(b"\n"):
            typer.echo(f"The last line of {path} is incomplete, and left out.", err=True)
        return parse_store(data, path, store.survey), []
    good: list[SurveyReport] = []
    bad: list[dict[str, Any]] = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
        if line.strip():
            try:
                good.append(store.survey.accept(line.strip()))
            except Refused as error:
                bad.append({"file": str(path), "line": number, "code": str(error.code), "what": error.what})
    return good, bad


def _read(path: Path) -> bytes:
    try:
        return sys.stdin.read().encode("utf-8", "replace") if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ParameterError("reports", f"{path} cannot be read", fix="name files of reports") from error
