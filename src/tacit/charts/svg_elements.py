"""What every SVG picture is made of: a frame, and text that is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tacit.pictures import TEXT_COLOR


def frame_svg(width: float, height: float, parts: Sequence[str]) -> str:
    """Return an SVG file of that size with these parts, on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="{TEXT_COLOR}">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(parts)}</svg>'
    )


def write_text(x: float, y: float, words: str, anchor: str, *, is_bold: bool = False) -> str:
    """Return a text element. What is a sign of XML is escaped, and what it has no place for is left out."""
    weight = ' font-weight="bold"' if is_bold else ""
    safe = html.escape("".join(character for character in words if character.isprintable()))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight}>{safe}</text>'
