"""Thumbnails of examples that draw nothing: the first lines that they print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).parents[1] / "gallery"
LINES, COLUMNS = 13, 46
OUTPUT = re.compile(r"^ \.\. code-block:: none\n\n(.*?)(?=^\S|\Z)", re.DOTALL | re.MULTILINE)


def read_output(page: str) -> list[str]:
    """Return what the example of a page of the gallery printed."""
    blocks = OUTPUT.findall(page)
    return [line[4:] for block in blocks for line in block.rstrip().splitlines() if line.strip()]


def draw_text(lines: list[str], target: Path) -> None:
    """Draw the first lines as a terminal shows them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 2.8), dpi=100, facecolor="#0f2a35")
    shown = "\n".join(line[:COLUMNS] for line in lines[:LINES])
    style = {"family": "DejaVu Sans Mono", "size": 9, "color": "#d9eef5", "parse_math": False}
    figure.text(0.04, 0.95, shown, va="top", linespacing=1.4, **style)
    figure.savefig(target, facecolor=figure.get_facecolor())


def draw_missing_thumbnails(*_: Any) -> None:
    """Draw a thumbnail for each example whose page has no figure."""
    for page in sorted(GALLERY.glob("*.rst")):
        text = page.read_text(encoding="utf-8")
        lines = read_output(text)
        if lines and "image-sg::" not in text:
            draw_text(lines, GALLERY / "images" / "thumb" / f"sphx_glr_{page.stem}_thumb.png")


def setup(app: Any) -> dict[str, bool]:
    """Connect the above to Sphinx, after the gallery was written."""
    app.connect("builder-inited", draw_missing_thumbnails, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
