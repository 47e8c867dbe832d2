"""Charts for the console, as SVG: places across are in percent, so a drawing fits any width and words stay legible.

Colors come from the style sheet, by class. Every word is escaped.

>>> print(PercentScale(0, 10).at(5))
50%
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tacit.charts.intervals import IntervalChart, find_range, title_with_count
from tacit.charts.scale import AxisScale, format_tick

ROWS = 60  # of an answer that are drawn
_ROW = 30  # pixels
_LEFT, _RIGHT = 3.0, 97.0  # percent


@dataclass(frozen=True)
class PercentScale(AxisScale):
    """An axis across a drawing: places are in percent of its width, from `left` to `right`."""

    left: float = 0.0
    right: float = 100.0

    def at(self, value: float) -> str:
        """Return the place of a number as SVG has it."""
        return f"{self.left + (self.right - self.left) * self.share(value):.4g}%"


@dataclass(frozen=True)
class ChartLine:
    """A curve through points, by the class that styles it; of steps where `steps`."""

    points: Sequence[tuple[float, float]]
    kind: str = "first"
    steps: bool = False


@dataclass(frozen=True)
class ChartMark:
    """A dot, with an interval where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    kind: str = "first"


def make_element(name: str, words: str | Markup = "", **given: object) -> Markup:
    """One element. Underscores in names of attributes stand for hyphens, a last one for nothing.

    Names are constants of this module. Values and words may be anyone's, and are escaped.
    """
    attributes = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in given.items())
    return Markup(f"<{name}{attributes}>{escape(_remove_control_characters(words))}</{name}>")  # noqa: S704 - escaped on this line


def draw_intervals(chart: IntervalChart) -> Markup:
    """Return a chart as a line for each row, with its label, its interval, its estimate and the number."""
    rows = chart.drawable_rows[:ROWS]
    if not rows:
        return Markup()
    low, high = find_range(rows)
    scale = PercentScale(float(low), float(high), left=_LEFT, right=_RIGHT)
    ticks = scale.ticks()
    parts = []
    for row in rows:
        drawn = [_vertical_line("grid", scale.at(tick), 0, _ROW) for tick in ticks]
        if row.has_interval:
            ends = scale.at(row.low), scale.at(row.high)
            drawn.append(make_element("line", class_="error-bar", x1=ends[0], x2=ends[1], y1=_ROW / 2, y2=_ROW / 2))
            drawn += [_vertical_line("error-bar", end, _ROW / 2 - 5, _ROW / 2 + 5) for end in ends]
        drawn.append(make_element("circle", class_="dot", cx=scale.at(row.value), cy=_ROW / 2, r=4.5))
        track = make_element("svg", Markup().join(drawn), class_="track", height=_ROW)
        number = make_element("span", row.text, class_="number")
        label = make_element("span", row.label, class_="label")
        parts.append(make_element("div", label + track + number, class_="row"))
    axis = [make_element("text", format_tick(tick), x=scale.at(tick), y=14, text_anchor="middle") for tick in ticks]
    parts.append(make_element("svg", Markup().join(axis), class_="axis", height=20))
    caption = title_with_count(chart, ROWS)
    grid = make_element(
        "div", Markup().join(parts), class_="rows", role="img", aria_label=f"{caption}: as in the table"
    )
    return make_element("figure", make_element("figcaption", caption) + grid, class_="bars")


def draw_plot(
    x: PercentScale,
    y: AxisScale,
    lines: Sequence[ChartLine],
    marks: Sequence[ChartMark] = (),
    *,
    title: str,
    across: str = "",
    percent: bool = False,
    dates: Sequence[tuple[float, str]] = (),
    height: int = 200,
) -> Markup:
    """Curves and marks in a frame. `dates` names places across in place of numbers."""
    top, bottom = 12, height - 24

    def up(value: float) -> float:
        return round(bottom - (bottom - top) * min(1.0, max(0.0, y.share(value))), 1)

    parts = []
    for tick in y.ticks():
        word = f"{100 * tick:.10g}%" if percent else format_tick(tick)
        parts.append(make_element("line", class_="grid", x1="0%", x2="100%", y1=up(tick), y2=up(tick)))
        parts.append(make_element("text", word, x="0%", y=up(tick) - 4))
    for place, word in dates or [(tick, format_tick(tick)) for tick in x.ticks()]:
        anchor = _anchor((x.left + (x.right - x.left) * x.share(place)) / 100)
        parts.append(make_element("text", word, x=x.at(place), y=height - 6, text_anchor=anchor))
    for line in lines:
        for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
            kind = f"curve {line.kind}"
            if line.steps:
                parts.append(make_element("line", class_=kind, x1=x.at(x1), x2=x.at(x2), y1=up(y1), y2=up(y1)))
                parts.append(_vertical_line(kind, x.at(x2), up(y1), up(y2)))
            else:
                parts.append(make_element("line", class_=kind, x1=x.at(x1), x2=x.at(x2), y1=up(y1), y2=up(y2)))
    for mark in marks:
        here = x.at(mark.x)
        if mark.low is not None and mark.high is not None:
            parts.append(_vertical_line(f"error-bar {mark.kind}", here, up(mark.low), up(mark.high)))
        parts.append(make_element("circle", class_=f"dot {mark.kind}", cx=here, cy=up(mark.y), r=5))
    drawing = make_element("svg", Markup().join(parts), class_="plot", height=height, role="img", aria_label=title)
    below = make_element("figcaption", across) if across else Markup()
    return make_element("figure", drawing + below, class_="curves")


def draw_budget_bar(share: float, more: float = 0.0) -> Markup:
    """How much of a budget is used, as a bar; and how much one more question would take."""
    first = 100 * min(1.0, max(0.0, share))
    second = min(100 - first, 100 * max(0.0, more))
    drawn = [make_element("rect", class_="whole", width="100%", height=10, rx=5)]
    drawn.append(make_element("rect", class_="spent", width=f"{first:.4g}%", height=10, rx=5))
    if second:
        width = f"{max(1.0, second):.4g}%"
        drawn.append(make_element("rect", class_="more", x=f"{first:.4g}%", width=width, height=10, rx=5))
    words = f"{first:.0f}% of the budget is used" + (f", this would take {second:.0f}% of it" if second else "")
    return make_element("svg", Markup().join(drawn), class_="used", height=10, role="img", aria_label=words)


def draw_guessed_secrets(right: Sequence[bool]) -> Markup:
    """A dot for each person whose secret was guessed, a cross for each who was spared."""
    side = math.ceil(math.sqrt(len(right)))
    drawn = []
    for place, known in enumerate(right):
        x, y = 10 * (place % side) + 5, 10 * (place // side) + 5
        if known:
            drawn.append(make_element("circle", class_="known", cx=x, cy=y, r=3.6))
        else:
            drawn.append(make_element("path", class_="spared", d=f"M{x - 2.4} {y - 2.4}l4.8 4.8m0 -4.8l-4.8 4.8"))
    words = f"{sum(right)} of {len(right)} secrets are guessed right"
    box = f"0 0 {10 * side} {10 * math.ceil(len(right) / side)}"
    return make_element("svg", Markup().join(drawn), class_="people", viewBox=box, role="img", aria_label=words)


def _vertical_line(kind: str, x: str, top: float, bottom: float) -> Markup:
    return make_element("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)


def _anchor(share: float) -> str:
    """Words near an end grow inward."""
    return "start" if share < 0.05 else "end" if share > 0.95 else "middle"


def _remove_control_characters(words: str | Markup) -> str | Markup:
    """Words without what HTML has no place for. Markup is ours, and clean."""
    if isinstance(words, Markup):
        return words
    return "".join(c if c.isprintable() else " " for c in words)
