"""One column of an answer as a chart, with its error bars."""

from __future__ import annotations

from tacit.answers.columns import AnswerTable, IntervalKind
from tacit.answers.render import format_value
from tacit.charts.arrangement import arrange_rows
from tacit.charts.intervals import ChartRow, find_range
from tacit.charts.notebook import NotebookChart
from tacit.errors import ParameterError


def chart_answer(answer: AnswerTable, column: str | None = None) -> NotebookChart:
    """Return the chart of one column: the one named, or the first that has error bars."""
    return chart_column(answer, _find_column(answer, column))


def chart_column(answer: AnswerTable, index: int) -> NotebookChart:
    """Return the chart of the column at a position, which has error bars."""
    heading = answer.headings[index]
    keys = [number for number, each in enumerate(answer.headings) if each.bars is IntervalKind.NONE]
    rows, values, labels = [], [], []
    for cells in answer.cells():
        values.append(tuple(cells[key].value for key in keys))
        labels.append(tuple(format_value(cells[key].value, answer.headings[key]) for key in keys))
        cell = cells[index]
        words = [format_value(end, heading, cell) for end in (cell.low, cell.high) if end is not None]
        text = format_value(cell.value, heading, cell)
        rows.append(ChartRow(" ".join(labels[-1]), cell.value, cell.low, cell.high, text, " to ".join(words)))
    about = "approximate " if heading.bars is IntervalKind.APPROXIMATE else ""
    ends = None
    if any(row.value is not None or row.low is not None for row in rows):
        low, high = find_range(tuple(rows))
        scale = (high - low) or 1
        ends = format_value(low, heading, scale=scale), format_value(high, heading, scale=scale)
    return NotebookChart(
        name=heading.name,
        title=f"{heading.name}, {about}{answer.percent} intervals",
        rows=arrange_rows(rows, values, labels),
        keys=", ".join(answer.headings[key].name for key in keys),
        ends=ends,
    )


def _find_column(answer: AnswerTable, column: str | None) -> int:
    """Return the position of a column that has error bars: the one named, or the first."""
    for index, heading in enumerate(answer.headings):
        if heading.bars is not IntervalKind.NONE and column in {None, heading.name}:
            return index
    raise ParameterError(
        "column",
        f"there is no number {column or ''} to draw".replace("  ", " "),
        fix=f"the columns are {', '.join(answer.columns)}",
    )
