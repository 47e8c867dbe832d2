"""What commands show: a bar while they work, a table at the end, and a picture that could be saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tacit.errors import ParameterError, TacitError
from tacit.extras import missing_extra
from tacit.terminal import escaped_json

Progress = Callable[[float, str], None]
"""Takes the share that is done, from 0 to 1, and what is being done."""


@contextmanager
def show_progress() -> Iterator[Progress]:
    """A bar for as long as the work lasts. It goes to standard error, and not at all where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("", total=1.0)

        def tell(share: float, what: str) -> None:
            shown.update(task, completed=share, description=what)

        yield tell


def describe_error(error: TacitError) -> dict[str, object]:
    """An error as --json prints it."""
    at = error.at
    place = None if at is None else {"line": at.line, "column": at.column, "length": at.length}
    told: dict[str, object] = {"code": str(error.code), "what": error.what, "at": place, "fix": error.fix}
    return told if error.suggestion is None else {**told, "suggestion": error.suggestion}


def format_table(heads: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Rows of text under their heads; the first columns stand left and the others right."""
    widths = [max(len(line[index]) for line in [heads, *rows]) for index in range(len(heads))]

    def line(cells: list[str]) -> str:
        aligned = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(aligned).rstrip()

    return "\n".join([line(heads), "  ".join("─" * width for width in widths), *map(line, rows)])


def print_json(value: object) -> None:
    """Values as JSON that a person can read too."""
    typer.echo(escaped_json(json.dumps(value, indent=2, ensure_ascii=False)))


def check_plot_path(file: Path) -> None:
    """Nothing is paid for a picture that could not be saved."""
    from importlib.util import find_spec

    if file.suffix.lower() not in {".svg", ".png", ".pdf"}:
        raise ParameterError("plot", f"{file.name} is not the name of a picture", fix="end it in .svg, .png or .pdf")
    if not file.absolute().parent.is_dir():
        raise ParameterError("plot", f"there is no folder {file.parent}", fix="make it first")
    if find_spec("matplotlib") is None:
        raise missing_extra("plot", "a picture (unlike --chart)", "matplotlib")
