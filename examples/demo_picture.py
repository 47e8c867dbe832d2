"""The picture of the demo
=======================

The steps of ``tacit demo`` that the README shows, as they are printed; with a path, as a picture.

Without a path the picture is shown, where there is a screen::

    python examples/demo_picture.py
    python examples/demo_picture.py docs/images/demo.svg
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tacit.cli.show import show_step
from tacit.demo.walk import run_tour

SHOWN = {"A private count", "An average for each ward", "Keys that nobody listed", "Two questions that are refused"}


def main(target: str | None = None) -> None:
    console = Console(record=True, width=118, file=io.StringIO(), force_terminal=True, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        for number, step in enumerate(run_tour(Path(folder)), start=1):
            if step.title in SHOWN:
                show_step(console, number, step)
    if target is None:
        print(console.export_text())
        return
    console.print()
    picture = re.sub(
        r"@font-face \{.*?\}", "", console.export_svg(title="tacit demo"), flags=re.DOTALL
    )  # no fonts from afar
    Path(target).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:2])
