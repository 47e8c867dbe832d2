"""An answer as a picture with error bars. Needs matplotlib: pip install 'tacit-dp[plot]'."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tacit import pictures
from tacit.answers.answer import IntervalKind
from tacit.answers.render import find_chart_column, row_labels

if TYPE_CHECKING:
    from tacit.answers.answer import Answer

_ROWS = 100  # more than this is no picture


def save_chart(answer: Answer, path: str | os.PathLike[str], column: str | None = None) -> None:
    """Save one column with its error bars: a dot for each row, and its interval as a line through it."""
    index = find_chart_column(answer, column)
    heading = answer.headings[index]
    rows = [(label, row[index]) for label, row in zip(row_labels(answer), answer.cells(), strict=True)]
    shown = [(label, cell) for label, cell in rows if cell.value is not None][:_ROWS]
    keys = ", ".join(h.name for h in answer.headings if h.bars is IntervalKind.NONE)
    title = f"{heading.name}, {answer.percent} intervals"
    height = max(2.5, 1.2 + 0.28 * len(shown))
    with pictures.open_figure(path, title, heading.name, keys, size=(7.0, height)) as axes:
        places = range(len(shown))
        values = [cell.value for _, cell in shown]
        below = [max(0, cell.value - cell.low) for _, cell in shown]
        above = [max(0, cell.high - cell.value) for _, cell in shown]
        axes.errorbar(values, places, xerr=[below, above], fmt="o", capsize=3)
        axes.set_yticks(places, [label for label, _ in shown])
        axes.invert_yaxis()
