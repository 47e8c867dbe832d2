"""Charts that a notebook shows as SVG, and a terminal in characters.

>>> NotebookChart("n", "n, 95% intervals", (ChartRow("A", 40, 35, 45, "40"), ChartRow("B", 20, 15, 25, "20")))
n, 95% intervals
A                                   ├────●────┤ 40
B                ├────●───┤                     20
  0                                          45
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.charts.intervals import ChartRow, IntervalChart
from tacit.charts.svg import render_chart_svg
from tacit.charts.text import render_chart_text

__all__ = ["ChartRow", "NotebookChart"]


@dataclass(frozen=True, repr=False)
class NotebookChart(IntervalChart):
    """A chart that shows itself: as SVG in a notebook, in characters elsewhere."""

    def to_svg(self) -> str:
        """Return the chart as the text of an SVG file."""
        return render_chart_svg(self)

    def __repr__(self) -> str:
        return render_chart_text(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()
