"""The demo's walk on a terminal, and the same recorded as a picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from tacit.demo.walk import TourStep, run_tour


def show_tour(folder: Path, pause: bool = False, console: Console | None = None) -> None:
    """Print the steps as they happen."""
    console = console or Console(highlight=False)
    for number, step in enumerate(run_tour(folder), start=1):
        show_step(console, number, step)
        if pause:
            console.input("[dim]Enter goes on[/dim] ")
    console.rule(style="dim")
    console.print("On your own data: [bold]tacit init your.csv --guided[/bold], then [bold]tacit check[/bold].")


def show_step(console: Console, number: int, step: TourStep) -> None:
    """One step: its title, what it is about, what is typed and what is seen."""
    console.print()
    console.print(Text(f"{number}. {step.title}", style="bold"))
    console.print(Text(step.says, style="dim"))
    for index, line in enumerate(step.typed.splitlines()):
        prompt = Text("... " if index and line.startswith(" ") else ">>> ", style="green")
        code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(line)
        code.rstrip()
        console.print(prompt + code, soft_wrap=True)
    console.print(Text(step.shows), soft_wrap=True)
