"""Charts in characters, for terminals."""

from __future__ import annotations

from tacit.charts.intervals import IntervalChart, find_range
from tacit.charts.scale import format_tick
from tacit.terminal import one_line

_MAX_ROWS = 60


def draw_bar(low: float | None, value: float | None, high: float | None, cells: int, blank: str = " ") -> str:
    """Return an interval and its estimate in so many cells; each is the share of the axis where it stands, from 0 to 1.

    >>> draw_bar(0.2, 0.5, 0.8, 11)
    '  ├──●──┤  '
    """
    canvas = [blank] * cells
    if low is not None and high is not None:
        first, last = round(low * (cells - 1)), round(high * (cells - 1))
        canvas[first : last + 1] = "─" * (last - first + 1)
        canvas[first], canvas[last] = ("├", "┤") if first < last else ("│", "│")
    if value is not None:
        canvas[round(value * (cells - 1))] = "●"
    return "".join(canvas)


def render_chart_text(chart: IntervalChart, width: int = 60) -> str:
    """Return one line a row: its label, the interval as a bar with the estimate in it, and the number."""
    rows = chart.rows[:_MAX_ROWS]
    if all(row.value is None and row.low is None for row in rows):
        return f"{chart.name}: nothing to draw"
    labels = [one_line(row.label) for row in rows]
    indent, wide = max(map(len, labels)), max(len(row.text) for row in rows)
    low, high = find_range(rows)
    cells = max(20, width - indent - 14)

    def share(value: float | None) -> float | None:
        return None if value is None else float((value - low) / ((high - low) or 1))

    lines = [chart.title]
    for label, row in zip(labels, rows, strict=True):
        bar = draw_bar(share(row.low), share(row.value), share(row.high), cells)
        lines.append(f"{label.rjust(indent)} {bar} {row.text.rjust(wide)}")
    left, right = chart.ends or (format_tick(low), format_tick(high))
    lines.append(" " * (indent + 1) + left + right.rjust(cells - len(left)))
    return "\n".join(lines)
