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
    from tacit.local.survey.reports import Report
    from tacit.local.survey.store import Store

_SHOWN = 10  # bad reports that are told one by one


def take(store: Store, paths: list[Path], as_json: bool) -> None:
    """Take the good ones, those of a file with one sync. Where there are only bad ones, the command has failed."""
    taken, again, bad = 0, 0, []
    for path in paths:
        good, wrong = _reports(store, path)
        bad += wrong
        fresh = store.add(good)
        taken, again = taken + sum(fresh), again + len(fresh) - sum(fresh)
    if as_json:
        found = {"taken": taken, "replayed": again, "bad": bad, "reports": store.counts.users}
        print_json(found)
    else:
        typer.echo(f"Taken {taken:,}, there already {again:,}, bad {len(bad):,}; {kept(store)} in all.")
        for each in bad[:_SHOWN]:
            typer.echo(one_line(f"· {each['file']}, line {each['line']} [{each['code']}]: {each['what']}"))
        if len(bad) > _SHOWN:
            typer.echo(f"· and {len(bad) - _SHOWN:,} more")
    if bad and not taken and not again:
        raise typer.Exit(3)


def kept(store: Store) -> str:
    """How many reports there are."""
    return "1 report" if store.counts.users == 1 else f"{store.counts.users:,} reports"


def _reports(store: Store, path: Path) -> tuple[list[Report], list[dict[str, Any]]]:
    """The reports of a file, and what is wrong with the others."""
    from tacit.local.survey.store import is_store, reports_of

    data = _read(path)
    if is_store(data):
        if not data.endswith(b"\n"):
            typer.echo(f"The last line of {path} is not whole, and left out.", err=True)
        return reports_of(data, path, store.survey), []
    good: list[Report] = []
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
