"""Answers as tables, in text and in HTML."""

from __future__ import annotations

import math

from tacit.answers.columns import AnswerColumn, AnswerTable, Estimate, IntervalKind
from tacit.notebook_html import render_list, render_table
from tacit.query.types import Type
from tacit.terminal import one_line


def render_text(answer: AnswerTable) -> str:
    """The table, its notes and its receipt. No name or value breaks a line or commands a terminal."""
    heads, rows = _grid(answer)
    heads, rows = list(map(one_line, heads)), [list(map(one_line, row)) for row in rows]
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    left = _left_aligned_columns(answer)
    lines = [
        "  ".join(_pad(part, width, at) for part, width, at in zip(line, widths, left, strict=True)).rstrip()
        for line in [heads, *rows]
    ]
    rule = "  ".join("─" * width for width in widths)
    return "\n".join(
        [lines[0], rule, *lines[1:], "", *(one_line(f"· {note}") for note in answer.notes), f"· {answer.receipt}"]
    )


def render_html(answer: AnswerTable) -> str:
    """The table for a notebook, with its notes and its receipt."""
    heads, rows = _grid(answer)
    table = render_table(heads, rows, _left_aligned_columns(answer))
    return table + render_list([*answer.notes, str(answer.receipt)])


def format_value(value: object, heading: AnswerColumn, cell: Estimate | None = None, scale: float | None = None) -> str:
    """A value with as many digits as its error bar, or `scale`, leaves any meaning to."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return ", ".join(format_value(each, heading) for each in value)
    if heading.type is Type.FLOAT or isinstance(value, float):
        spread = scale
        if cell is not None and cell.low is not None and cell.high is not None:
            spread = cell.high - cell.low
        return f"{value:,.{_digits(spread)}f}"
    return f"{value:,}" if heading.type is Type.INT and heading.bars is not IntervalKind.NONE else str(value)


def _digits(spread: float | None) -> int:
    """Decimals so that the last digit is about a hundredth of the spread."""
    if spread is None or not math.isfinite(spread) or spread <= 0:
        return 2
    return max(0, min(12, 2 - math.floor(math.log10(spread)) - 1))


def _grid(answer: AnswerTable) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows as text; each estimate is followed by its interval."""
    heads: list[str] = []
    for heading in answer.headings:
        heads.append(heading.name)
        if heading.bars is not IntervalKind.NONE:
            about = "≈ " if heading.bars is IntervalKind.APPROXIMATE else ""
            heads.append(f"{about}{answer.percent} interval")
    rows = []
    for row in answer.cells():
        shown: list[str] = []
        for heading, cell in zip(answer.headings, row, strict=True):
            shown.append(format_value(cell.value, heading, cell))
            if heading.bars is not IntervalKind.NONE:
                shown.append(f"{format_value(cell.low, heading, cell)} to {format_value(cell.high, heading, cell)}")
        rows.append(shown)
    return heads, rows


def _left_aligned_columns(answer: AnswerTable) -> list[bool]:
    """Keys stand left, numbers right."""
    sides = []
    for heading in answer.headings:
        sides += [True] if heading.bars is IntervalKind.NONE else [False, False]
    return sides


def _pad(part: str, width: int, left: bool) -> str:
    return part.ljust(width) if left else part.rjust(width)
