"""Tables and lists in HTML, as notebooks show them. Every text is escaped.

>>> render_table(["ward", "n"], [["Surgery & more", "12"]])
'<table><thead><tr><th style="text-align:left">ward</th><th style="text-align:right">n</th></tr></thead>\
<tbody><tr><td style="text-align:left">Surgery &amp; more</td><td style="text-align:right">12</td></tr></tbody></table>'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def render_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool] | None = None) -> str:
    """Return a table; `left` says which columns are aligned to the left, by default the first alone."""
    sides = [True] + [False] * (len(heads) - 1) if left is None else left
    align = ["left" if side else "right" for side in sides]

    def row(parts: Sequence[str], tag: str) -> str:
        cells = (
            f'<{tag} style="text-align:{side}">{escape(part)}</{tag}>' for part, side in zip(parts, align, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(row(parts, "td") for parts in rows)
    return f"<table><thead>{row(heads, 'th')}</thead><tbody>{body}</tbody></table>"


def render_list(lines: Iterable[str]) -> str:
    """Return remarks in small type, one to a line; nothing where there are none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul style="font-size:smaller">{items}</ul>' if items else ""


def render_paragraph(text: str, *, strong: bool = False) -> str:
    """Return a paragraph."""
    return f"<p>{f'<strong>{escape(text)}</strong>' if strong else escape(text)}</p>"
