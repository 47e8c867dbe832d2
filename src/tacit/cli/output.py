"""What commands show: a bar while they work, a table at the end, and a picture that could be saved."""

from __future__ import annotations

import errno
import json
import os
import shlex
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


def check_writable(option: str, file: Path) -> None:
    """Raise ParameterError where a file can be neither made nor replaced, before anything is done for it."""
    folder = file.absolute().parent
    if not os.path.isdir(folder):
        fix = f"mkdir -p {shlex.quote(str(file.parent))}"
        raise ParameterError(option, f"there is no folder {file.parent}", fix=fix)
    if os.path.isdir(file):
        raise ParameterError(option, f"{file} is a folder", fix="name another file")
    try:
        os.stat(file)
        target, rights = file, os.W_OK
    except FileNotFoundError:
        target, rights = folder, os.W_OK | os.X_OK
    except OSError as error:
        raise unwritable_file(option, file, error) from None
    if not os.access(target, rights, effective_ids=os.access in os.supports_effective_ids):
        raise unwritable_file(option, file, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def unwritable_file(option: str, file: Path, error: OSError) -> ParameterError:
    """The error of a file that cannot be written, with the system's reason."""
    what = f"{file} cannot be written: {error.strerror or 'it failed'}"
    return ParameterError(option, what, fix="name a file that this user may write, on a disk with free space")


def check_plot_path(file: Path, option: str = "plot") -> None:
    """Raise ParameterError where a picture could not be saved, so that nothing is charged for it."""
    from importlib.util import find_spec

    if file.suffix.lower() not in {".svg", ".png", ".pdf"}:
        raise ParameterError(option, f"{file.name} has no known suffix", fix="end it in .svg, .png or .pdf")
    check_writable(option, file)
    if find_spec("matplotlib") is None:
        unlike = " (unlike --chart)" if option == "plot" else ""
        raise missing_extra("plot", f"a picture{unlike}", "matplotlib")
