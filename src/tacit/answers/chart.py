"""An answer drawn for a notebook: one column with its error bars, as SVG that needs nothing to be installed.

The picture is written by hand, so it is the same for the same answer, and no plotting library's state is touched.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.answers.answer import AnswerColumn, Estimate, IntervalKind
from tacit.answers.render import find_chart_column, render_text_chart, row_labels, value_range
from tacit.pictures import COLORS, TEXT_COLOR

if TYPE_CHECKING:
    from tacit.answers.answer import Answer

_ROWS = 100  # more than this is no picture
_WIDTH, _ROW, _TOP, _BOTTOM = 640, 24, 40, 44
_LETTER = 6.6  # about the width of one, in a font of 12
_LONGEST = 32  # letters of a label
_TICKS = 6  # at most, about


@dataclass(frozen=True)
class Chart:
    """A drawing that a notebook shows in its place, and a terminal in characters."""

    svg: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return self.svg


def chart_answer(answer: Answer, column: str | None = None) -> Chart:
    """One column: a dot for each row, its interval as a line through it, and the row's keys beside it."""
    index = find_chart_column(answer, column)
    heading = answer.headings[index]
    pairs = [(label, row[index]) for label, row in zip(row_labels(answer), answer.cells(), strict=True)]
    rows = [(_short(label), cell) for label, cell in pairs if cell.value is not None][:_ROWS]
    left = 20 + _LETTER * max((len(label) for label, _ in rows), default=0)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    about = "approximate " if heading.bars is IntervalKind.APPROXIMATE else ""
    more = f"; the first {_ROWS} of {len(pairs)} rows" if len(pairs) > _ROWS else ""
    parts = [_text(10, 22, f"{heading.name}, {about}{answer.percent} intervals{more}", "start", bold=True)]
    if rows:
        scale = _Scale(*value_range([cell for _, cell in rows]), left, _WIDTH - 30)
        parts += _axis(scale, heading, height - _BOTTOM)
        for place, (label, cell) in enumerate(rows):
            parts += _row(label, cell, _TOP + _ROW * (place + 0.5), scale)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{TEXT_COLOR}">'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>'
    )
    return Chart(svg, render_text_chart(answer, heading.name))


@dataclass(frozen=True)
class _Scale:
    """Where a value stands between the left and the right end of the drawing."""

    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        width = (self.high - self.low) or 1
        return round(self.left + (value - self.low) / width * (self.right - self.left), 1)

    def ticks(self) -> list[float]:
        """Round numbers at even distances: 1, 2 or 5 times a power of ten apart."""
        rough = (self.high - self.low) / _TICKS
        if not 0 < rough < math.inf:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _axis(scale: _Scale, heading: AnswerColumn, bottom: float) -> list[str]:
    ticks = scale.ticks()
    apart = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    decimals = max(0, min(12, -math.floor(math.log10(apart) + 1e-9))) if apart > 0 else 0
    parts = []
    for tick in ticks:
        x = scale.at(tick)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}" stroke="{TEXT_COLOR}" stroke-opacity="0.15"/>')
        parts.append(_text(x, bottom + 16, f"{tick:,.{decimals}f}", "middle"))
    parts.append(_text(scale.right, bottom + 34, heading.name, "end"))
    return parts


def _row(label: str, cell: Estimate, y: float, scale: _Scale) -> list[str]:
    parts = [_text(scale.left - 10, y + 4, label, "end")]
    if cell.low is not None and cell.high is not None:
        low, high = scale.at(cell.low), scale.at(cell.high)
        path = f"M{low} {y}H{high}M{low} {y - 4}V{y + 4}M{high} {y - 4}V{y + 4}"
        parts.append(f'<path d="{path}" stroke="{COLORS[0]}" stroke-width="1.8" fill="none"/>')
    parts.append(f'<circle cx="{scale.at(cell.value)}" cy="{y}" r="4" fill="{COLORS[0]}"/>')
    return parts


def _text(x: float, y: float, words: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight}>{_escape_xml(words)}</text>'


def _escape_xml(words: str) -> str:
    """Text that XML can hold: what is a sign of it is escaped, and what it has no place for is left out."""
    return html.escape("".join(c for c in words if c.isprintable()))


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
